"""Every operation × caller × object with its one expected answer: the rows and the world they speak of.

An operation of the document without a row here fails tests/test_matrix.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from storage import keys, posts
from storage.database import database
from storage.deliveries import Delivery
from storage.models import Account, Client, Idea, Media, Team, User
from storage.oauth import Grant, OAuthClient
from storage.posts import NewTarget, Target
from storage.secrets import Vault
from storage.webhooks import Webhook
from tests.service import Http

LATER = datetime.now(UTC) + timedelta(days=1)
HOUR = timedelta(hours=1)
IDEA = {"content": "x", "sourceUrl": "https://example.net"}
HOOK = {"url": "https://example.net/hook", "events": ["post.unconfirmed"]}
REFUSED = {"nobody": 401, "revoked key": 401, "expired key": 401, "disabled user": 401,
           "disabled user's token": 401, "no scope": 403, "no plan": 403,
           "token without scope": 403, "revoked token": 401, "expired token": 401, "revoked app": 401}
FOREIGN = ("other team", "other client", "other mode", "other team's token")
FRIENDS = ("owner", "colleague", "own client", "owner's token", "own client's token")
CALLERS = (*REFUSED, *FOREIGN, *FRIENDS)


@dataclass(frozen=True)
class Row:
    """One operation on one kind of object: what friends get (`good`), what strangers get, and who is an exception."""

    operation: str
    object: str
    good: int
    stranger: int
    body: Callable = lambda o: None
    query: Callable = lambda o: ""
    id: Callable = lambda o: ""
    delivery: Callable = lambda o: ""
    mode: str = "test"
    but: tuple = ()         # (caller, status) pairs

    def expected(self, caller):
        return dict(self.but).get(caller) or REFUSED.get(caller) or (self.stranger if caller in FOREIGN else self.good)


def _targets(o, **more):
    return {"targets": [{"platform": "mastodon"}], "caption": "x", "scheduleAt": LATER.isoformat(), **more}


def _client(o):
    return f"?clientId={o.client}"


def _of_webhooks(operation, good, **more):
    """The rows of an operation on a webhook and, where its path has one, on a delivery of it."""
    return (Row(operation, "a client's", good, 404, id=lambda o: o.webhook, delivery=lambda o: o.delivery, **more),
            Row(operation, "the team's", good, 404, id=lambda o: o.team_webhook, delivery=lambda o: o.team_delivery,
                but=CLIENTS_ONLY, **more))


CLIENTS_ONLY = (("own client", 404), ("own client's token", 404))
ROWS = [
    Row("publish_post", "no object", 202, 202, body=_targets, but=(("other mode", 422),)),
    Row("publish_post", "a client", 202, 404, body=lambda o: _targets(o, clientId=o.client), but=(("other mode", 422),)),
    Row("publish_post", "a client's file", 202, 422, body=lambda o: _targets(o, media=[o.media])),
    Row("publish_post", "the team's file", 202, 422, body=lambda o: _targets(o, media=[o.team_media]),
        but=(("own client", 422), ("own client's token", 422))),
    Row("validate_post", "a client", 200, 404, body=lambda o: _targets(o, clientId=o.client), but=(("other mode", 200),)),
    Row("validate_post", "a client's file", 200, 200, body=lambda o: _targets(o, media=[o.media])),
    Row("get_post", "a client's", 200, 404, id=lambda o: o.post),
    Row("get_post", "the team's", 200, 404, id=lambda o: o.team_post, but=CLIENTS_ONLY),
    Row("list_posts", "all", 200, 200),
    Row("list_posts", "a client's", 200, 404, query=_client, but=(("other mode", 200),)),
    Row("update_post", "a client's", 200, 404, id=lambda o: o.post, body=lambda o: {"caption": "changed"}),
    Row("update_post", "the team's", 200, 404, id=lambda o: o.team_post,
        body=lambda o: {"caption": "changed"}, but=CLIENTS_ONLY),
    Row("cancel_post", "a client's", 200, 404, id=lambda o: o.post),
    Row("cancel_post", "the team's", 200, 404, id=lambda o: o.team_post, but=CLIENTS_ONLY),
    Row("retry_post", "a client's", 202, 404, id=lambda o: o.failed_post),
    Row("generate_caption", "no object", 200, 200, body=lambda o: {"topic": "bread"}, but=(("other mode", 502),)),
    Row("create_media_from_url", "no object", 422, 422, body=lambda o: {"url": "http://127.0.0.1/x"}),
    Row("create_upload_url", "no object", 201, 201, body=lambda o: {"contentType": "image/png", "fileSize": 10}),
    Row("list_accounts", "all", 200, 200, mode="live"),
    Row("list_accounts", "a client's", 200, 404, mode="live", query=_client, but=(("other mode", 200),)),
    Row("connect_account", "a client's", 409, 404, mode="live", body=lambda o: {"platform": "linkedin", "clientId": o.client},
        but=(("other mode", 409),)),
    Row("disconnect_account", "a client's", 200, 404, mode="live", id=lambda o: o.account),
    Row("disconnect_account", "the team's", 200, 404, mode="live", id=lambda o: o.team_account, but=CLIENTS_ONLY),
    Row("list_clients", "all", 200, 200),
    Row("list_platforms", "no object", 200, 200),
    Row("create_idea", "no object", 201, 201, body=lambda o: IDEA),
    Row("create_idea", "a client", 201, 404, body=lambda o: {**IDEA, "clientId": o.client},
        but=(("other mode", 201),)),
    Row("list_todays_ideas", "all", 200, 200),
    Row("list_todays_ideas", "a client's", 200, 404, query=_client, but=(("other mode", 200),)),
    Row("update_idea", "a client's", 200, 404, id=lambda o: o.idea,
        body=lambda o: {"content": "changed"}, but=(("colleague", 404),)),
    Row("update_idea", "the team's", 200, 404, id=lambda o: o.team_idea, body=lambda o: {"content": "changed"},
        but=(("colleague", 404), *CLIENTS_ONLY)),
    Row("create_webhook", "no object", 201, 201, body=lambda o: HOOK),
    Row("create_webhook", "a client", 201, 404, body=lambda o: {**HOOK, "clientId": o.client}, but=(("other mode", 201),)),
    Row("list_webhooks", "all", 200, 200),
    Row("list_webhooks", "a client's", 200, 404, query=_client, but=(("other mode", 200),)),
    *_of_webhooks("get_webhook", 200),
    *_of_webhooks("update_webhook", 200, body=lambda o: {"status": "disabled"}),
    *_of_webhooks("delete_webhook", 200),
    *_of_webhooks("rotate_webhook_secret", 200),
    *_of_webhooks("list_deliveries", 200),
    *_of_webhooks("replay_delivery", 202),
    *_of_webhooks("replay_deliveries", 202, body=lambda o: {"from": "2026-01-01T00:00:00Z"}),
]


@dataclass(frozen=True)
class Objects:
    """What belongs to the victim: each once for its client and once for the team as a whole."""

    client: str
    post: str
    team_post: str
    failed_post: str
    idea: str
    team_idea: str
    account: str
    team_account: str
    media: str
    team_media: str
    webhook: str
    team_webhook: str
    delivery: str
    team_delivery: str


class World:
    """Two teams; everything of the first one carries the word CANARY. `callers(mode)` are all who ask, by name."""

    CANARY = "canary"

    def __init__(self, url, store_address, environ):
        self.url, self.public_url, self.environ = url, store_address.public_url.rstrip("/"), environ
        self.team = Team.add(name=f"{self.CANARY} team")
        self.ann, self.bob, self.gone = (
            User.add(team_id=self.team.id, name=f"{self.CANARY} {name}") for name in ("Ann", "Bob", "Zoe"))
        self.client, self.other_client = (Client.add(team_id=self.team.id, name=f"{self.CANARY} {name}") for name in ("X", "Y"))
        self.strangers = Team.add(name="Strangers")
        self.stranger = User.add(team_id=self.strangers.id, name="Eve")
        self.lapsed = Team.add(name="Lapsed", plan_expires_at=datetime.now(UTC) - HOUR)
        User.update(disabled_at=datetime.now(UTC)).where(User.id == self.gone.id).execute()
        self.callers = {mode: self._callers(mode) for mode in ("test", "live")}

    def objects(self, mode) -> Objects:
        """Fresh ones."""
        Webhook.delete().where(Webhook.team_id == self.team.id, Webhook.mode == mode).execute()     # there may be few of them
        teams, clients = (self._made(mode, client_id) for client_id in (None, self.client.id))
        failed = self._post(mode, self.client.id)
        error = {"code": "external_service_error", "message": "x", "retryable": True}
        steps = ({"status": "publishing", "stage": "preparing"},
                 {"status": "failed", "stage": None, "error": error, "next_at": None})
        for step in steps:
            Target.update(**step).where(Target.post_id == failed).execute()
        teams = {f"team_{name}": value for name, value in teams.items()}
        return Objects(self.client.id, failed_post=failed, **clients, **teams)

    def secrets(self, objects, caller):
        """What `caller` must not be told: strangers nothing of the team, its own other credentials no object beyond theirs."""
        ids = list(vars(objects).values())
        own = {"other client": ids, "other mode": ids[1:]}      # the clients of a team are the same in both modes
        return own.get(caller, [self.CANARY, self.team.id, self.ann.id, *ids])

    def _made(self, mode, client_id):
        owned = {"team_id": self.team.id, "client_id": client_id}
        mine = {**owned, "mode": mode, "user_id": self.ann.id}
        key = f"{self.team.id}/{mode}/{keys.fresh('in')}.png"
        Media.add(**mine, key=key, state="ready", mime_type="image/png", bytes=9, width=600, height=600, animated=False)
        name = f"{self.CANARY}-{keys.fresh('in')}"
        account = Account.add(**owned, platform="gbp", username=name, display_name=name,
                              host="", platform_id=name, status="connected")
        idea = Idea.add(**mine, content=name, source_url="https://example.net")
        media = f"{self.public_url}/{key}"
        return {"post": self._post(mode, client_id), "idea": idea.id, "account": account.id, "media": media,
                **self._hook(mode, client_id)}

    def _hook(self, mode, client_id):
        vault, url = Vault((self.environ["POSTHORN_SECRET_KEYS"],)), "https://192.0.2.1/"      # where nothing is ever sent
        webhook, _ = Webhook.create(self._caller(mode), vault, 2, **{**HOOK, "url": url}, client_id=client_id)
        delivery = Delivery.insert(
            team_id=self.team.id, mode=mode, webhook_id=webhook.id, type="post.failed", subject_id="post_x", status="failed",
            snapshot={"id": "post_x", "targets": [{"platform": "gbp", "status": "failed"}]}, next_at=None)
        return {"webhook": webhook.id, "delivery": next(iter(delivery.returning(Delivery).execute())).id}

    def _caller(self, mode):
        return keys.Caller("", self.team.id, self.ann.id, None, mode, frozenset(), True)

    def _post(self, mode, client_id):
        target = NewTarget("mastodon", None, "text", None, None, [], False, {})
        with database.atomic():
            return posts.create(self._caller(mode), client_id=client_id, caption=self.CANARY, schedule_at=LATER,
                                targets=[target])["id"]

    def _callers(self, mode):
        other = {"test": "live", "live": "test"}[mode]
        lapsed = User.add(team_id=self.lapsed.id, name="Lee")
        revoked = self._key(self.ann, mode)
        keys.revoke(self.team.id, keys.ApiKey.get(keys.ApiKey.digest == keys.digest(revoked.key)).id)
        given = {
            "nobody": Http(self.url), "revoked key": revoked,
            "expired key": self._key(self.ann, mode, expires_at=datetime.now(UTC) - HOUR),
            "disabled user": self._key(self.gone, mode), "disabled user's token": self._token(self.gone, mode),
            "no plan": self._key(lapsed, mode),
            "revoked token": self._token(self.ann, mode, revoke=True),
            "expired token": self._token(self.ann, mode, lasts=-HOUR),
            "revoked app": self._token(self.ann, mode, end_app=True),
            "other team": self._key(self.stranger, mode),
            "other client": self._key(self.ann, mode, client_id=self.other_client.id),
            "other mode": self._key(self.ann, other), "other team's token": self._token(self.stranger, mode),
            "owner": self._key(self.ann, mode), "colleague": self._key(self.bob, mode),
            "own client": self._key(self.ann, mode, client_id=self.client.id), "owner's token": self._token(self.ann, mode),
            "own client's token": self._token(self.ann, mode, client_id=self.client.id)}
        return given

    def lacking(self, scope, mode):
        """Callers of the owner who have every scope but this one."""
        rest = [one for one in keys.SCOPES if one != scope]
        return {"no scope": self._key(self.ann, mode, scopes=rest),
                "token without scope": self._token(self.ann, mode, scopes=rest)}

    def _key(self, user, mode, **values):
        return Http(self.url, keys.create(team_id=user.team_id, user_id=user.id, mode=mode, **values)[0])

    def _token(self, user, mode, *, client_id=None, scopes=keys.SCOPES, lasts=HOUR, revoke=False, end_app=False):
        app, _ = OAuthClient.create(confidential=False, name="x", mode=mode,
                                    redirect_uris=["https://x.example"], scopes=list(keys.SCOPES))
        grant = Grant.add(oauth_client_id=app.id, team_id=user.team_id, user_id=user.id,
                          client_id=client_id, mode=mode, scopes=list(scopes))
        token = keys.fresh("at")
        grant.issue("access", token, list(scopes), lasts)
        if revoke:
            grant.revoke()
        if end_app:
            app.revoke()
        return Http(self.url, token)
