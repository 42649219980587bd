"""Every command of administration leaves its line in the trail, or is known to change nothing; none reaches beyond its team.

A new one must say which.
"""

import json
from dataclasses import dataclass

import click
import pytest
from click.testing import CliRunner

from handlers.cli import posthorn
from storage import keys
from storage.audit import Entry
from storage.database import database, open_pool
from storage.models import ApiKey
from storage.oauth import Grant
from tests.person import BACK, PASSWORD, app, can_sign_in
from tests.service import Member
from tests.standins.mastodon import MastodonServer
from tests.standins.server import HOST

# What is typed after the command, and what the trail says then.
ACTS = {
    "team create": ("Bread", "team.created"), "team plan": ("2030-12-31 --team {team}", "team.plan_set"),
    "client create": ("Cafe --team {team}", "client.created"),
    "client status": ("{client} archived --team {team}", "client.status_set"),
    "key create": ("--team {team}", "key.created"), "key rotate": ("{key} --team {team}", "key.rotated"),
    "key narrow": ("{key} --scope posts:read --team {team}", "key.narrowed"),
    "key revoke": ("{key} --team {team}", "key.revoked"),
    "user create": ("Bob --team {team}", "user.created"), "user login": ("{user} new.{user} --team {team}", "user.login_set"),
    "user password": ("{user} --team {team}", "user.password_set"), "user link": ("{user} --team {team}", "user.link_made"),
    "user disable": ("{user} --team {team}", "user.disabled"),
    "oauth-client create": (f"Clipper --redirect {BACK}", "oauth_client.created"),
    "oauth-client revoke": ("{app}", "oauth_client.revoked"), "oauth-client rotate": ("{app}", "oauth_client.rotated"),
    "grant revoke": ("{grant} --team {team}", "grant.revoked"),
    "account add": ("mastodon host={network} accessToken=canary-token --team {team}", "account.connected"),
    "account connect": ("mastodon --instance {network} --no-wait --team {team}", "account.connecting"),
    "account remove": ("{account} --team {team}", "account.disconnected"),
    "secrets rotate": ("", "secrets.rotated"), "restored": ("--moved", "database.moved"),
}
# What only reads, with what is typed after it; None where it is not run here.
READS = {
    "team list": "", "client list": "--team {team}", "key list": "--team {team}", "key show": "{key} --team {team}",
    "user list": "--team {team}", "oauth-client list": "", "grant list": "--team {team}",
    "account list": "--team {team}", "audit list": "--team {team}",
    "secrets new": "", "migrate": None, "doctor": None, "serve": None, "worker": None, "media sweep": None,
    "up": None,     # the first keys, which it makes: tests/test_up.py
}
KEPT = ("teams", "users", "clients", "api_keys", "accounts", "oauth_clients", "oauth_grants", "sign_in_links",
        "connect_requests")


def leaves(command, *path):
    """The names of all commands below this one."""
    if not isinstance(command, click.Group):
        return [" ".join(path)]
    context = click.Context(command)
    return [leaf for name in command.list_commands(context) for leaf in leaves(command.get_command(context, name), *path, name)]


def written():
    """What commands have written; a worker may write meanwhile."""
    return Entry.select().where(Entry.actor.startswith("command "))


@dataclass
class Desk:
    """Commands typed in this very process, since each in one of its own would take a second."""

    environ: dict
    things: dict

    def type(self, command, given):
        """What the command said."""
        done = self.try_to(command, given)
        # Other tests may have left what no key opens, which rotating ends with.
        assert done.exit_code == 0 or "no configured key opens" in done.output, done.output
        return done.stdout

    def try_to(self, command, given):
        """What came of the command."""
        arguments = [word.format(**self.things) for word in (*command.split(), *given.split())]
        return CliRunner().invoke(posthorn, arguments, input=f"{PASSWORD}\n", env=self.environ)

    def kept(self):
        """A digest of each table of KEPT, and the last line of the trail that a command wrote."""
        one = "SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {} AS t"
        with database.connection_context():
            digests = {table: database.execute_sql(one.format(table)).fetchone()[0] for table in KEPT}
            return digests, max((entry.id for entry in written()), default=0)


@pytest.fixture(scope="module")
def network():
    with MastodonServer() as network:
        network.add_user("ann", "canary-token")
        yield network


@pytest.fixture
def desk(environ, api_url, network):
    member, oauth_client = Member(api_url), app(confidential=True)[0]
    can_sign_in(member.user, f"ann.{member.user.id}".lower())
    account = member.account(environ, "gbp", "ann")
    with database.connection_context():
        key = ApiKey.get(ApiKey.digest == keys.digest(member.test.key))
        grant = Grant.add(oauth_client_id=oauth_client.id, team_id=member.team.id, user_id=member.user.id, mode="test",
                          scopes=["ideas:read"])
    yield Desk({**environ, "POSTHORN_ALLOW_PRIVATE": f"{HOST}:{network.port}"},
               {"team": member.team.id, "stranger": Member(api_url).team.id, "network": network.url, "user": member.user.id,
                "client": member.client.id, "key": key.id, "app": oauth_client.id, "grant": grant.id, "account": account.id})
    open_pool(environ["DATABASE_URL"], connections=20)


def test_every_command_is_known():
    assert sorted(leaves(posthorn)) == sorted([*ACTS, *READS])


@pytest.mark.parametrize("command", ACTS)
def test_what_changes_something_is_written_down_once_and_without_secrets(desk, command):
    given, action = ACTS[command]
    before, last = desk.kept()
    said = desk.type(command, f"{given} --json")
    after, _ = desk.kept()
    with database.connection_context():
        entry, *ended = written().where(Entry.id > last).order_by(Entry.id)
    assert {row.action for row in ended} == ({"key.revoked", "grant.revoked"} if command == "user disable" else set())
    assert command == "secrets rotate" or isinstance(json.loads(said)[0], dict)
    assert entry.action == action and entry.object_id
    assert before != after or command in ("secrets rotate", "restored")
    secrets = [word for word in said.split('"') for word in word.split() if "sk_" in word or "cs_" in word or "token=" in word]
    assert [word for word in (*secrets, "canary-token", PASSWORD) if word in repr(entry.to_dict())] == []


@pytest.mark.parametrize("command", [command for command, given in READS.items() if given is not None])
def test_what_only_reads_changes_nothing(desk, command):
    before = desk.kept()
    desk.type(command, READS[command])
    assert desk.kept() == before


GIVEN = {**{command: given for command, (given, _) in ACTS.items()}, **READS}
ON_A_TEAM = {command: given.replace("{team}", "{stranger}") for command, given in GIVEN.items() if "{team}" in (given or "")}
OBJECTS = ("{user}", "{client}", "{key}", "{account}", "{grant}")
LIMITED = {"key create": "--client {client} --team {stranger}", "key narrow": "{key} --client {client} --team {stranger}",
           "oauth-client create": f"x --redirect {BACK} --client {{client}} --team {{stranger}}",
           "account add": "mastodon host={network} accessToken=canary-token --client {client} --team {stranger}",
           "account connect": "mastodon --instance {network} --no-wait --client {client} --team {stranger}"}
FOREIGN = [(command, given) for command, given in ON_A_TEAM.items() if any(one in given for one in OBJECTS)]


@pytest.mark.parametrize("command, given", [*FOREIGN, *LIMITED.items(), ("key create", "--user {user} --team {stranger}"), (
    "oauth-client create", f"x --redirect {BACK} --confidential --as-user {{user}} --team {{stranger}}")])
def test_what_is_another_teams_is_not_there(desk, command, given):
    before = desk.kept()
    done = desk.try_to(command, given)
    assert (done.exit_code, desk.kept()) == (1, before) and "the team has no such" in done.output, done.output


@pytest.mark.parametrize("command", [name for name in READS if name in ON_A_TEAM and (name, ON_A_TEAM[name]) not in FOREIGN])
def test_what_is_listed_is_the_teams(desk, command):
    desk.type("user login", ACTS["user login"][0])      # so that there is something in each list, the trail too
    things = [desk.things[name.strip("{}")] for name in OBJECTS]
    assert [thing for thing in things if thing in desk.type(command, READS[command])] != []
    assert [thing for thing in things if thing in desk.type(command, ON_A_TEAM[command])] == []


def test_what_one_person_has_allowed_is_listed_alone(desk):
    other = json.loads(desk.type("user create", "Bob --team {team} --json"))[0]["id"]
    assert desk.things["grant"] in desk.type("grant list", "--team {team} --user {user}")
    assert desk.things["grant"] not in desk.type("grant list", f"--team {{team}} --user {other}")
