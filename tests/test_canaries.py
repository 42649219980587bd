"""What a network gave us appears nowhere but in the request to that network: no log, no answer, no dump."""

import time
from base64 import b64encode

from storage.database import database
from tests.service import Member, Process, start_api
from tests.standins.server import HOST

CANARY = "canary-5f1d7c0b9e-token-of-a-network"
POST = {"caption": "x", "targets": [{"platform": "mastodon"}, {"platform": "linkedin"}, {"platform": "bluesky"}]}


def dump():
    """All rows of all tables, as text."""
    with database.connection_context():
        tables = [name for name, in database.execute_sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()]
        return "\n".join(str(row) for table in tables for row in database.execute_sql(f"SELECT t::text FROM {table} AS t").fetchall())


def tried(team_id, number):
    """Waits until a worker has had so many targets of the team in hand, and let them go."""
    deadline, query = time.monotonic() + 25, "SELECT count(*) FROM targets WHERE team_id = %s AND fence > 0 AND leased_until IS NULL"
    while time.monotonic() < deadline:
        with database.connection_context():
            if database.execute_sql(query, (team_id,)).fetchone()[0] == number:
                return
        time.sleep(0.1)
    raise AssertionError("the targets were not tried")


def forms(secret):
    """The secret as it may hide: plain, in base64 at each offset, in hexadecimal."""
    raw = secret.encode()
    return [secret, raw.hex(), *(b64encode(b"." * offset + raw).decode()[4:-4] for offset in range(3))]


def test_a_platforms_credential_appears_nowhere(environ):
    closed = f"http://{HOST}:9"
    settings = {**environ, "POSTHORN_ALLOW_PRIVATE": f"{HOST}:9", "POSTHORN_LINKEDIN_API_URL": closed}
    api, url = start_api(settings)
    worker, member = Process("worker", settings), Member(url)
    try:
        credentials = {name: CANARY for name in ("accessToken", "refreshToken", "accessJwt", "refreshJwt", "appPassword")}
        for platform in ("mastodon", "linkedin", "bluesky"):
            row = member.account(settings, platform, f"ann.{platform}", host=closed, credentials=credentials)
        told = [member.live.post("/v1/posts", POST), member.live.post("/v1/posts/validate", POST), member.live.get("/v1/accounts")]
        assert told[0].status == 202, told[0].raw
        tried(member.team.id, 3)
        told += [member.live.get("/v1/posts"), member.live.delete(f"/v1/accounts/{row.id}"), member.live.get("/v1/accounts")]
        rows, logs = dump(), api.log() + worker.log()
    finally:
        worker.stop()
        api.stop()
    everything = rows + logs + "".join(answer.raw.decode() + repr(answer.headers) for answer in told) + api.log() + worker.log()
    assert member.team.id in rows and [form for form in forms(CANARY) if form in everything] == []
