"""Where a page of a list ends: the `created_at` and id of its last row, opaque to whoever asks for the next one."""

import base64
import binascii
import re
from datetime import datetime

from handlers.contract import parse_time
from handlers.errors import Detail, Unprocessable

CURSOR = re.compile(r"([0-9T:.+-]{25,35}) ([a-z]+_[0-9A-Za-z]{1,64})")


def after(row) -> str:
    """The cursor of the page that begins behind `row`."""
    return base64.urlsafe_b64encode(f"{row.created_at.isoformat()} {row.id}".encode()).decode()


def position(cursor: str | None) -> tuple[datetime, str] | None:
    """The (created_at, id) that a cursor stands for. Raises Unprocessable for one that is not ours."""
    if cursor is None:
        return None
    try:
        ours = CURSOR.fullmatch(base64.urlsafe_b64decode(cursor.encode()).decode())
        if ours:
            return parse_time(ours[1], "cursor"), ours[2]
    except (binascii.Error, UnicodeDecodeError, Unprocessable):
        pass
    raise Unprocessable.of([Detail("cursor", "cursor", "this is no cursor of ours")])
