"""The login of Facebook, and the Pages that it opens: https://developers.facebook.com/docs/facebook-login/guides"""

from dataclasses import dataclass

from tests.standins.meta import LONG, ROOT, SHORT, Graph, api, page_of, pick
from tests.standins.meta_upload import upload_error
from tests.standins.server import Answer, route


@dataclass
class Page:
    """One Page; `business` is the one that owns it, and then /me/accounts does not list it."""

    id: str
    name: str
    username: str | None = None
    tasks: tuple = ("CREATE_CONTENT", "MANAGE")
    business: str | None = None
    token: str = ""
    instagram: dict | None = None


class Pages(Graph):
    """A Graph API whose accounts belong to Pages, with the login of Facebook. `all_scopes` are those that it knows."""

    all_scopes: set = set()

    def __init__(self, port=0):
        super().__init__(port)
        self.pages: dict[str, Page] = {}

    def uploader(self, request) -> str:
        """The Page whose token an upload brings. Raises Answer for a token that is none, or dead."""
        token = self.tokens.get(request.headers.get("Authorization", "").removeprefix("OAuth "))
        if token is None or token.problem:
            raise Answer(401, upload_error("NotAuthorizedError", "The user is not authorized"))
        return token.owner

    def add_user(self, name="ann", token=None, scopes=None) -> str:
        """A person who may log in, with a long-lived token if one is given."""
        self.consenting = name
        if token:
            self.new_token(token, kind="user", owner=name, scopes=set(scopes or self.all_scopes), end=self.now() + LONG)
        return name

    def add_page(self, name, token=None, *, scopes=None, **details) -> Page:
        """A Page on which every user may publish, with its token."""
        page = Page(self.new_id(), name, **details)
        self.pages[page.id] = page
        self.renew(page.id, token, scopes)
        return page

    def renew(self, page, token=None, scopes=None):
        """Give a Page another token; the old one is dead, as after a change of the password."""
        if old := self.tokens.get(self.pages[page].token):
            old.problem = 460
        self.pages[page].token = self.new_token(token, kind="page", owner=page, scopes=set(scopes or self.all_scopes))

    @route("GET", f"{ROOT}/dialog/oauth")
    def dialog(self, request):
        """The consent page, with the consent given at once."""
        return self.consent(dict(request.query), self.all_scopes)

    @route("GET", f"{ROOT}/oauth/access_token")
    def access_token(self, request):
        """A short token for a code, a long one for a short one."""
        given = dict(request.query)
        if given.get("grant_type") == "fb_exchange_token":
            self.check_app(given)
            old = self.alive(given.get("fb_exchange_token"))
            token = self.new_token(kind="user", owner=old.owner, scopes=old.scopes, end=self.now() + LONG)
            return {"access_token": token, "token_type": "bearer", "expires_in": LONG}
        grant = self.redeem(given)
        token = self.new_token(kind="user", owner=grant["user"], scopes=grant["scopes"], end=self.now() + SHORT, short=True)
        return {"access_token": token, "token_type": "bearer", "expires_in": SHORT}

    @api("GET", f"{ROOT}/me/accounts", "pages_show_list", params=("limit", "after"), kind="user")
    def accounts(self, request, token, given):
        """The Pages of the user, but those of businesses."""
        return self._pages(token, given, None)

    @api("GET", f"{ROOT}/me/businesses", "business_management", params=("limit", "after"), kind="user")
    def businesses(self, request, token, given):
        """The businesses of the user."""
        found = sorted({page.business for page in self.pages.values() if page.business})
        return page_of(found, given, lambda one: {"id": one})

    @api("GET", f"{ROOT}/:business/owned_pages", "pages_show_list", params=("limit", "after"), kind="user")
    def owned_pages(self, request, token, given):
        """The Pages of a business."""
        return self._pages(token, given, request.args["business"])

    @api("GET", f"{ROOT}/:business/client_pages", "pages_show_list", params=("limit", "after"), kind="user")
    def client_pages(self, request, token, given):
        """The Pages that others lent to a business."""
        return {"data": []}

    def _pages(self, token, given, business):
        found = [page for page in self.pages.values() if page.business == business]
        return page_of(found, given, lambda page: pick(self._page_node(page), given.get("fields"), "Page"))

    def _page_node(self, page):
        able = "CREATE_CONTENT" in page.tasks
        return {"id": page.id, "name": page.name, "username": page.username, "tasks": list(page.tasks),
                "access_token": page.token if able else None, "link": f"https://www.facebook.com/{page.id}",
                "picture": {"data": {"url": f"https://scontent.test/{page.id}.jpg", "is_silhouette": False}}}
