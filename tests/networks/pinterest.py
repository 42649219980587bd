"""What the conformance suite needs to know of Pinterest."""

from dataclasses import replace

from platforms.base import Account, Content
from tests.live import image, video
from tests.standins.pinterest import CREATE, PinterestServer

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
