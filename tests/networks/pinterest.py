"""What the conformance suite and the tests of Pinterest need to know of it."""

from dataclasses import replace

from platforms.base import Account, Content
from platforms.pinterest import Pinterest
from tests.live import fixtures, image, video
from tests.standins.pinterest import PinterestServer
from tests.standins.pinterest_rules import CREATE

BOARD, TOKEN, REFRESH_TOKEN = "549755885175", "pina_canary-access", "pinr_canary-refresh"
PIN = {"boardId": BOARD, "title": "A loaf", "link": "https://bread.example/menu", "altText": "A loaf on a table"}
PUBLISH = CREATE


def _photo(number=0):
    return replace(image(number), url=f"https://media.test/{number}.png")


SAMPLES = {
    "image": Content("Fresh bread", (_photo(),), "image", PIN, "k-1"),
    "carousel": Content("Fresh bread", (_photo(1), _photo(2)), "carousel", {**PIN, "slides": [{"title": "One"}, {}]}, "k-1"),
    "video": Content("Fresh bread", (video(),), "video", {**PIN, "coverSecond": 1}, "k-1"),
}
IMAGE, CAROUSEL, VIDEO = SAMPLES.values()


def with_options(content, **options):
    """The same post with these options beside its board."""
    return replace(content, options={"boardId": BOARD, **options})


def _into_section(net, account):
    board = net.add_board(account.platform_id, "Cake", sections=("Sweet",))
    section = next(iter(board.sections))
    return with_options(IMAGE, boardId=board.id, boardSectionId=section), {"board_id": board.id, "board_section_id": section}


SLIDE = {"title": "One", "description": "first", "link": "https://bread.example/1"}
OPTIONS = {
    "boardId": (with_options(IMAGE), {"board_id": BOARD, "description": "Fresh bread"}),
    "boardSectionId": _into_section,
    "title": (with_options(IMAGE, title="A loaf"), {"title": "A loaf"}),
    "link": (with_options(IMAGE, link="https://bread.example/menu"), {"link": "https://bread.example/menu"}),
    "altText": (with_options(IMAGE, altText="A loaf on a table"), {"alt_text": "A loaf on a table"}),
    "dominantColor": (with_options(IMAGE, dominantColor="#6E7874"), {"dominant_color": "#6E7874"}),
    "slides": (with_options(CAROUSEL, slides=[SLIDE]), {"url": "https://media.test/1.png", **SLIDE}),
    "coverImageUrl": (with_options(VIDEO, coverImageUrl="https://a.test/c.jpg"), {"cover_image_url": "https://a.test/c.jpg"}),
    "coverSecond": (with_options(VIDEO, coverSecond=3), {"cover_image_key_frame_time": 3}),
}


def start():
    """The stand-in, with one account and its board."""
    net = PinterestServer()
    owner = net.add_user("ann", TOKEN, refresh_token=REFRESH_TOKEN, business_name="Ann's Bakery")
    net.add_board(owner, "Bread", board_id=BOARD)
    return net


def settings(net):
    """The addresses of the stand-in, and the app that it knows."""
    return {"api_url": f"{net.url}/v5", "authorize_url": f"{net.url}/oauth/", "token_url": f"{net.url}/v5/oauth/token",
            "public_url": net.url, "client_id": net.client_id, "client_secret": net.client_secret}


def account(net):
    """The account, with tokens that are good."""
    ends = net.grants.access[TOKEN].ends
    return Account(net.consenting, "ann", credentials={"accessToken": TOKEN, "refreshToken": REFRESH_TOKEN, "expiresAt": ends})


def public(net):
    """The ids of the Pins."""
    return [pin["id"] for pin in net.posts]


def expire(net):
    """Ends the access token; the refresh token stays good."""
    net.grants.expire()


net, pinterest, ann = fixtures(Pinterest, start, settings, account)
