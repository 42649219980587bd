"""When something is tried again, and when it is given up."""

import random
from datetime import timedelta

from platforms.errors import PlatformError

FIRST_PAUSE, LONGEST_PAUSE = 10.0, 900.0    # seconds: at most 12 calls in an outage of 45 minutes
LONGEST_WISH = 86_400.0                     # seconds of a network's Retry-After that are obeyed
LOOKS = (30.0, 120.0, 600.0, 3600.0)        # seconds before each look for an unconfirmed post
PROCESSING = timedelta(hours=24)            # how long a network may work on a post before nobody knows
SPREAD = 10.0                               # seconds over which posts come back to a network that was left alone
CRASHES = 5                                 # leases that may run out in a row while one target is prepared
ASKING_CRASHES = 10                         # and while it is asked after, which cannot make a second post


def pause(tries: int, error: PlatformError) -> float:
    """Seconds until the next try: the network's wish, else doubling from 10 s to 15 min, half of it by chance.

    The first wish is taken at its word. Later ones can only make the pause longer: a network that keeps asking to be called
    again in a second does not know how long it will be down.
    """
    wish = getattr(error, "retry_after", None)
    step = min(FIRST_PAUSE * 2**min(tries, 20), LONGEST_PAUSE)
    own = step / 2 + random.uniform(0, step / 2)
    if wish is None:
        return own
    wish = min(max(wish, 1.0), LONGEST_WISH) + random.uniform(0, 0.5)
    return wish if tries == 0 else max(wish, own)


def next_look(looks: int) -> float | None:
    """Seconds until an unconfirmed post is looked for, which has been done `looks` times; None = never again."""
    return LOOKS[looks] if looks < len(LOOKS) else None


def spread(seconds: float) -> float:
    """So many seconds and a little more by chance, that not all come back at once."""
    return seconds + random.uniform(0, SPREAD)
