"""What `posthorn up` and the commands of administration both make: each is written down in the transaction that makes it."""

from storage import audit, keys
from storage.database import database
from storage.models import ApiKey, Client, Team, User


def make_team(name: str, first_user: str, **values) -> tuple[Team, User]:
    """A team and its first user."""
    with database.atomic():
        team = Team.add(name=name, **values)
        user = User.add(team_id=team.id, name=first_user)
        audit.record(audit.typed(), "team.created", team.id, team_id=team.id, userId=user.id)
    return team, user


def make_client(team: Team, name: str) -> Client:
    """An agency client of the team."""
    with database.atomic():
        row = Client.add(team_id=team.id, name=name)
        audit.record(audit.typed(), "client.created", row.id, team_id=team.id)
    return row


def make_key(user: User, mode: str, **values) -> tuple[str, ApiKey]:
    """An API key of the user: the key itself, which is kept nowhere, and its row."""
    with database.atomic():
        key, row = keys.create(team_id=user.team_id, user_id=user.id, mode=mode, **values)
        record_key("key.created", row)
    return key, row


def record_key(action: str, row: ApiKey) -> None:
    """Writes down what was done to a key, and what it may do now."""
    audit.record(audit.typed(), action, row.id, team_id=row.team_id, mode=row.mode, userId=row.user_id, clientId=row.client_id,
                 replaces=row.replaces, scopes=list(row.scopes))
