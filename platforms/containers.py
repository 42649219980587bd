"""Posts out of containers, as on Instagram and Threads: made unseen, filled with files, published by one call.

https://developers.facebook.com/docs/instagram-platform/content-publishing
"""

import re

from platforms.base import Absent, Published, Waiting
from platforms.errors import PermissionMissing, PlatformError, Rejected, Unavailable, Unconfirmed
from platforms.http import CALL
from platforms.meta import PAUSES, SETTLED, SKEW, UNSEEN_PAUSE, Meta, identity, moment, pause, same_text

IN_PROGRESS, FINISHED, PUBLISHED, ERROR, EXPIRED = "IN_PROGRESS", "FINISHED", "PUBLISHED", "ERROR", "EXPIRED"
STILL = (2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0)     # seconds between questions, where there is no video
MISSES = 3              # times that a container may not be there although it was made, before another one is made
LISTED = 10             # newest posts among which a published one is looked for


class Containers(Meta):
    """A network that publishes what lies in a container. Containers last a day, and nobody sees them."""

    edge = ""                           # where containers are made: POST /{user}/{edge}
    publishing = ""                     # where they are published
    state = "status"                    # the field with the state of a container
    reason = ""                         # the field that says why it is ERROR
    passing = re.compile("(?!)")        # what in that field means that another container may do
    hiccups: frozenset = frozenset()    # subcodes by which no container was made, although another try may do
    unseen: frozenset = frozenset()     # codes by which a container is not there yet, or no longer
    misleading: frozenset = frozenset()     # codes of refusals that came although the post was made
    containers = 3                      # how many are made at most, where the network stumbles over them
    text = ""                           # the field of a post that holds its caption

    def whole(self, content, children) -> dict:
        """The parameters of the container of the post; `children` are the ids of those of its files, in a carousel."""
        raise NotImplementedError

    def part(self, content, position) -> dict:
        """The parameters of the container of one file of a carousel."""
        raise NotImplementedError

    def posts_of(self, content) -> str:
        """The list in which a post is to be found: GET /{user}/…"""
        return self.edge

    def takes_bytes(self, item) -> bool:
        """Whether the network wants the bytes of this file rather than its address."""
        return False

    def fill(self, account, item, container, begun):
        """Sends the bytes of a file to its container; `begun`: some may be there already."""
        raise NotImplementedError

    def prepare(self, account, content, receipt):
        """Makes the containers and waits until the network has filled them."""
        receipt = receipt or _fresh(0)
        begun = "container" in receipt
        if not begun:
            if self.kind(content) == "carousel":
                receipt = yield from self._fill_children(account, content, receipt)
            parameters = self.whole(content, receipt["children"])
            receipt = {**receipt, "asked": 0, "container": self._create(account, receipt, parameters)}
            yield receipt
        if self.kind(content) != "carousel":
            for item in content.media:
                receipt = yield from self._fill(account, receipt, receipt["container"], item, begun)
        receipt, state = yield from self._wait(account, content, receipt, receipt["container"])
        if state == PUBLISHED:      # by a sending of which we know no end
            yield {**receipt, "published": True}

    def publish(self, account, content, receipt):
        """Publishes the container. Where that is refused, the container says whether it is public all the same."""
        if receipt.get("published"):
            return self._seek(account, content)
        try:
            media = self.publish_container(account, receipt["container"])
        except (Rejected, Unavailable, PermissionMissing) as error:
            return self._after_refusal(account, content, receipt, error)
        return Published(media, self._link(account, media))

    def find(self, account, content, receipt):
        """Asks the container. One that is not published yet may still be, by a request that the network is slow to work off."""
        if "container" not in receipt:
            return Absent()
        state = self.look(account, receipt["container"]).field(self.state)
        if state == PUBLISHED:
            return self._named(account, content)
        settled = state == FINISHED and content.sent_ago > SETTLED
        return Absent() if settled or state == EXPIRED else None

    def kind(self, content):
        """The post type."""
        return content.post_type or self.infer(content.media, content.options)

    def create(self, account, parameters) -> str:
        """A new container."""
        form = {name: value for name, value in parameters.items() if value not in (None, "")}
        return identity(self.call(account, "POST", f"/{account.platform_id}/{self.edge}", form=form))

    def look(self, account, container):
        """The state of a container."""
        return self.call(account, "GET", f"/{container}", query={"fields": f"{self.state},{self.reason}"})

    def publish_container(self, account, container) -> str:
        """Makes a container public; the id of the post."""
        path = f"/{account.platform_id}/{self.publishing}"
        return identity(self.call(account, "POST", path, form={"creation_id": container}, commits=True))

    def _fill_children(self, account, content, receipt):
        for position, item in enumerate(content.media):
            begun = position < len(receipt["children"])
            if not begun:
                child = self._create(account, receipt, self.part(content, position))
                receipt = {**receipt, "children": [*receipt["children"], child]}
                yield receipt
            receipt = yield from self._fill(account, receipt, receipt["children"][position], item, begun)
        while receipt["ready"] < len(receipt["children"]):
            receipt, _ = yield from self._wait(account, content, receipt, receipt["children"][receipt["ready"]])
            receipt = {**receipt, "ready": receipt["ready"] + 1}
        return receipt

    def _fill(self, account, receipt, container, item, begun):
        """Sends the bytes of a file where the network wants them, once."""
        filled = receipt.get("filled", [])
        if self.takes_bytes(item) and container not in filled:
            if not begun or self._state(account, receipt, container) == IN_PROGRESS:
                self.fill(account, item, container, begun)
            receipt = {**receipt, "filled": [*filled, container]}
            yield receipt
        return receipt

    def _create(self, account, receipt, parameters):
        try:
            return self.create(account, parameters)
        except PlatformError as error:
            if str(error.platform_code).rpartition("/")[2] in self.hiccups:
                raise self._anew(receipt, error) from None
            raise

    def _wait(self, account, content, receipt, container):
        """Waits until a container is filled. Returns the receipt and the state."""
        pauses = PAUSES if any(item.is_video for item in content.media) else STILL
        while (state := self._state(account, receipt, container)) == IN_PROGRESS:
            receipt = {**receipt, "asked": receipt["asked"] + 1}
            yield Waiting(receipt, pause(receipt["asked"] - 1, pauses))
        return receipt, state

    def _state(self, account, receipt, container):
        try:
            answer = self.look(account, container)
        except Rejected as error:
            if error.platform_code in self.unseen:
                raise self._unseen(receipt, error) from None
            raise
        state, reason = answer.field(self.state), answer.field(self.reason, default=None)
        if state == EXPIRED:
            raise Unavailable(f"{self.title} has thrown the unpublished files away", receipt=_fresh(0))
        if state == ERROR:
            error = Rejected(f"{self.title} could not process the files", rule="media", platform_code=state,
                             platform_message=reason)
            raise self._anew(receipt, error) if self.passing.search(reason or "") else error
        return state

    def _anew(self, receipt, error):
        """The error after which other containers are made, or `error` itself where enough were made."""
        made = receipt["made"] + 1
        if made >= self.containers:
            return error
        return Unavailable(error.message, receipt=_fresh(made), platform_code=error.platform_code,
                           platform_message=error.platform_message)

    def _unseen(self, receipt, error):
        """The error after which the container is asked for again, or at last made anew."""
        unseen = receipt.get("unseen", 0) + 1
        if unseen > MISSES:
            return self._anew(receipt, error)
        return Unavailable(f"{self.title} does not know the files yet", retry_after=UNSEEN_PAUSE,
                           receipt={**receipt, "unseen": unseen}, platform_code=error.platform_code,
                           platform_message=error.platform_message)

    def _after_refusal(self, account, content, receipt, error):
        try:
            state = self.look(account, receipt["container"]).field(self.state)
        except PlatformError:
            state = None
        if state == PUBLISHED:
            return self._seek(account, content)
        if state is None and error.platform_code in self.misleading:
            raise Unconfirmed(f"{self.title} refused the post, and may have published it", platform_code=error.platform_code,
                              platform_message=error.platform_message) from None
        raise self._unseen(receipt, error) if error.platform_code in self.unseen else error

    def _seek(self, account, content):
        """The post that the container has said is public, whatever becomes of the question which one it is."""
        try:
            return self._named(account, content)
        except PlatformError:
            return Published(None, self.page(account))

    def _named(self, account, content):
        try:
            return self.seek(account, self.posts_of(content), content.caption, content.sent_ago)
        except (PermissionMissing, Rejected):       # who may not ask will not be told later either
            return Published(None, self.page(account))

    def seek(self, account, edge, text, ago):
        """The post of a container that was published at most `ago` seconds ago, or by the last call.

        It is the only one with our text since then, else one whose id we do not know.
        """
        answer = self.call(account, "GET", f"/{account.platform_id}/{edge}",
                           query={"fields": f"id,{self.text},permalink,timestamp", "limit": LISTED})
        since = answer.moment().timestamp() - max(ago, CALL.total) - SKEW
        ours = [place for place in (("data", position) for position in range(len(answer.field("data", kind=list))))
                if moment(answer, *place, "timestamp") >= since
                and same_text(answer.field(*place, self.text, default=""), text)]
        if len(ours) != 1:
            return Published(None, self.page(account))
        return Published(identity(answer, *ours[0]), answer.link(*ours[0], "permalink", default=self.page(account)))

    def _link(self, account, media):
        """The permalink. The post is public, whatever becomes of this question."""
        try:
            answer = self.call(account, "GET", f"/{media}", query={"fields": "permalink"})
        except PlatformError:
            return self.page(account)
        return answer.link("permalink", default=self.page(account))


def _fresh(made):
    """The receipt of a preparation that begins; `made` containers came to nothing before."""
    return {"made": made, "children": [], "ready": 0, "asked": 0}
