"""Ideas saved from the browser extension."""

from handlers.clients import acting_for
from handlers.errors import NotFound
from handlers.responses import ok
from storage.database import database
from storage.models import Idea


def create_idea(caller, body, keep):
    """POST /v1/ideas"""
    client_id = acting_for(caller, body.get("clientId"))
    with database.atomic():
        idea = Idea.add(team_id=caller.team_id, mode=caller.mode, user_id=caller.user_id, client_id=client_id,
                        content=body["content"], topic=body.get("topic") or None, platform=body.get("platform"),
                        source_url=body["sourceUrl"])
        return keep(ok(idea.to_dict(), status=201))


def list_todays_ideas(caller, client_id):
    """GET /v1/ideas/today: what the team saved since midnight in its time zone."""
    client_id = acting_for(caller, client_id)
    return ok({"ideas": [idea.to_dict() for idea in Idea.today(caller, client_id)]})


def update_idea(caller, id_, body):
    """PATCH /v1/ideas/{id}: only by the user who saved it; nothing is written otherwise."""
    idea = Idea.saved_by(caller).where(Idea.id == id_).get_or_none()
    idea = idea and idea.edit(body)
    if idea is None:
        raise NotFound("you saved no idea with this id")
    return ok(idea.to_dict())
