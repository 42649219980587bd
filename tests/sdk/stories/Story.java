import java.time.OffsetDateTime;
import java.util.List;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.PostsApi;
import org.openapitools.client.model.MastodonOptions;
import org.openapitools.client.model.MastodonTarget;
import org.openapitools.client.model.PinterestOptions;
import org.openapitools.client.model.PinterestTarget;
import org.openapitools.client.model.PostOperation;
import org.openapitools.client.model.PublishRequest;
import org.openapitools.client.model.Target;

/** A post to two networks with their options, scheduled, read back and canceled, and one that is not there. */
class Story {
    public static void main(String[] arguments) throws ApiException {
        ApiClient client = new ApiClient();
        client.updateBaseUri(System.getenv("URL"));
        client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + System.getenv("KEY")));
        PostsApi posts = new PostsApi(client);
        Target mastodon = new Target(new MastodonTarget().platform(MastodonTarget.PlatformEnum.MASTODON)
            .options(new MastodonOptions().visibility(MastodonOptions.VisibilityEnum.UNLISTED)));
        Target pinterest = new Target(new PinterestTarget().platform(PinterestTarget.PlatformEnum.PINTEREST)
            .options(new PinterestOptions().boardId("549755885175").media(List.of(System.getenv("PHOTO")))));
        PostOperation post = posts.publishPost(new PublishRequest().caption("Fresh bread from eight")
            .scheduleAt(OffsetDateTime.now().plusDays(1)).addTargetsItem(mastodon).addTargetsItem(pinterest), null).getData();
        System.out.println(posts.getPost(post.getId()).getData().getStatus());
        System.out.println(posts.cancelPost(post.getId()).getData().getStatus());
        try {
            posts.getPost("post_nobody");
        } catch (ApiException error) {
            System.out.println(error.getCode());
        }
    }
}
