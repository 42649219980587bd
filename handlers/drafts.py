"""What a publish request means: which accounts, which files, which post types, and everything that is wrong with it."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from handlers import media
from handlers.clients import acting_for
from handlers.contract import parse_time
from handlers.errors import Detail
from platforms import base
from platforms.accounts import connected
from platforms.outgoing import media_of
from platforms.sandbox import USERNAME
from storage.models import Account
from storage.posts import NewTarget
from storage.secrets import Unreadable

GRACE = timedelta(minutes=5)        # a scheduleAt this far in the past still means now
HORIZON = timedelta(days=366)
COMMON = ("account", "caption", "media")    # options that are not the network's


@dataclass(frozen=True)
class Draft:
    """A post that could be written if nothing is in its way: no `problems` of values, no `obstacles` in the state of things."""

    client_id: str | None
    caption: str
    schedule_at: datetime | None
    targets: list[NewTarget]
    problems: list[Detail]
    obstacles: list[Detail]


def draft(caller, body, services, *, attached=(), now=None) -> Draft:
    """Reads a schema-valid publish request. `attached` are files of the post that it changes, which anybody who may change the
    post may leave there, whoever stored them. Raises NotFound and InvalidState for a client that cannot be acted for."""
    client_id = acting_for(caller, body.get("clientId"))
    schedule_at, problems = _schedule(body.get("scheduleAt"), now or datetime.now(UTC))
    files = _Files(caller, services, body, attached)
    accounts = None if caller.mode == "test" else list(Account.acting(caller.team_id, client_id))
    targets, obstacles = [], []
    for position, target in enumerate(body["targets"]):
        account, wrong = _account(accounts, target, position)
        problems += wrong
        if account is not None and account.status == "disconnected":
            obstacles.append(_disconnected(account, position))
        platform = _limits_of(services, target["platform"], account)
        new, wrong = _target(platform, body, target, position, account, files)
        problems += wrong
        targets.append(new)
    problems += files.problems + _twins(targets)
    return Draft(client_id, body.get("caption", ""), schedule_at, targets, problems, obstacles + files.obstacles)


def _schedule(text, now):
    if text is None:
        return None, []
    at = parse_time(text, "/scheduleAt")
    if at < now - GRACE:
        return None, [Detail("/scheduleAt", "past", "scheduleAt is more than 5 minutes in the past")]
    if at > now + HORIZON:
        return None, [Detail("/scheduleAt", "too_far", "scheduleAt is more than 366 days ahead")]
    return at, []


def _account(accounts, target, position):
    """The account of a target (None in test mode), or the problem of having none or too many."""
    path, platform = f"/targets/{position}/options/account", target["platform"]
    wanted = target.get("options", {}).get("account")
    if accounts is None:
        wrong = wanted not in (None, USERNAME)
        return None, [Detail(path, "account", f"in test mode the only account is {USERNAME}")] if wrong else []
    found = [account for account in accounts if account.platform == platform and wanted in (None, account.username)]
    if len(found) == 1:
        return found[0], []
    if not found:
        named = f" named {wanted[:100]}" if wanted else ""
        where = path if wanted else f"/targets/{position}/platform"
        return None, [Detail(where, "account", f"no {platform} account{named} is connected")]
    return None, [Detail(path, "account_ambiguous",
                         f"{len(found)} {platform} accounts are connected; name one in options.account")]


def _disconnected(account, position):
    text = f"the {account.platform} account {account.username} is disconnected; connect it again"
    return Detail(f"/targets/{position}", "account_disconnected", text)


def _limits_of(services, name, account):
    """The network with the limits that hold for this account: a Mastodon server sets its own."""
    if account is None or account.status == "disconnected":
        return services.platforms[name]
    try:
        return services.platforms[name].for_account(connected(account, services.vault))
    except Unreadable:      # the publisher says so; until the post is due the missing key may be back
        return services.platforms[name]


def _target(platform, body, target, position, account, files):
    options = target.get("options", {})
    own_media, own_caption = "media" in options, options.get("caption")
    rows = files.of(options["media"] if own_media else body.get("media", []))
    content = base.Content(caption=body.get("caption", "") if own_caption is None else own_caption,
                           media=tuple(files.content(row) for row in rows), post_type=target.get("postType"),
                           options={name: value for name, value in options.items() if name not in COMMON})
    prefix = f"/targets/{position}"
    places = {"caption": "/caption" if own_caption is None else f"{prefix}/options/caption",
              "media": f"{prefix}/options/media" if own_media else "/media"}
    problems = [Detail(_place(problem.path, places, prefix), problem.rule, problem.message)
                for problem in platform.problems(content)]
    new = NewTarget(platform=platform.name, asked_type=target.get("postType"),
                    post_type=target.get("postType") or platform.infer(content.media, content.options) or "", media=rows,
                    own_media=own_media, account_id=account and account.id, caption=own_caption, options=content.options)
    return new, problems


def _place(path, places, prefix):
    first, slash, rest = path.partition("/")
    return f"{places.get(first, f'{prefix}/{first}')}{slash}{rest}"


def _twins(targets):
    seen, problems = Counter(), []
    for position, target in enumerate(targets):
        twin = (target.platform, target.account_id, target.post_type)
        if seen[twin]:
            problems.append(Detail(f"/targets/{position}", "duplicate", "another target has the same account and post type"))
        seen[twin] += 1
    return problems


class _Files:
    """The files that a request names, each looked up and looked at once."""

    def __init__(self, caller, services, body, attached):
        self._objects = services.objects
        lists = [("/media", body.get("media", []))]
        lists += [(f"/targets/{position}/options/media", target["options"]["media"])
                  for position, target in enumerate(body["targets"]) if "media" in target.get("options", {})]
        urls = {url for _, some in lists for url in some}
        self._rows = media.find(caller, services, urls) if urls else {}
        known = {self._objects.public_url(row.key): row for row in attached}
        self._rows = {url: row for url, row in known.items() if url in urls} | self._rows
        self.problems = [problem for place, some in lists for problem in self._wrong(place, some)]
        self.obstacles = [obstacle for place, some in lists for obstacle in self._missing(place, some)]

    def of(self, urls):
        """The rows behind `urls`, in order; what is not ready counts as what it was declared to be."""
        return [self._rows[url] for url in urls if url in self._rows]

    def content(self, row):
        """A file as the platforms see it."""
        return media_of(row, self._objects)

    def _wrong(self, place, urls):
        for position, url in enumerate(urls):
            row = self._rows.get(url)
            if row is None:
                yield Detail(f"{place}/{position}", "media_unknown", "this is not the URL of a file of yours")
            elif row.state == "refused":
                yield Detail(f"{place}/{position}", "media_refused", f"this file was refused: {row.refusal}")

    def _missing(self, place, urls):
        for position, url in enumerate(urls):
            if url in self._rows and self._rows[url].state == "pending":
                yield Detail(f"{place}/{position}", "media_missing", "the upload of this file has not arrived")
