"""What the networks of Google share: https://developers.google.com/identity/protocols/oauth2/web-server"""

from platforms.errors import Rejected
from platforms.http import THROTTLED
from platforms.oauth import OAuthPlatform


def app_trouble(_, **words):
    """The error for what only the operator of the app at Google can mend."""
    return Rejected("Google does not serve the app of this server: its operator has to look into its project there", rule="app",
                    **words)


class GooglePlatform(OAuthPlatform):
    """A network of Google, with accounts that are connected by Google's login."""

    # A refresh token comes with offline access alone, and with every login but the first only if the person is asked again.
    authorize_parameters = {"access_type": "offline", "prompt": "consent"}
    settings = {"authorize_url": "https://accounts.google.com/o/oauth2/v2/auth",
                "token_url": "https://oauth2.googleapis.com/token", "client_id": "", "client_secret": ""}
    token_verdicts = {**OAuthPlatform.token_verdicts, **dict.fromkeys(
        ("invalid_client", "unauthorized_client", "deleted_client", "disabled_client"), app_trouble)}
    verdicts = {"accessNotConfigured": app_trouble, "SERVICE_DISABLED": app_trouble,
                "rateLimitExceeded": THROTTLED, "userRateLimitExceeded": THROTTLED, "RATE_LIMIT_EXCEEDED": THROTTLED}

    def words(self, answer):
        """The reason in the older list of errors or in the newer details, else the name of the status; and the message."""
        reasons = [answer.field("error", "errors", 0, "reason", default=None),
                   *(answer.field(*detail, "reason", default=None) for detail in details(answer)),
                   answer.field("error", "status", default=None)]
        return next(filter(None, reasons), None), answer.field("error", "message", default=None)

    def call(self, account, method, address, **request):
        """One request as `account`."""
        return self.send(method, address, token=account.credentials["accessToken"], **request)


def details(answer) -> list[tuple]:
    """The paths of the details that an error has."""
    return [("error", "details", position) for position in range(len(answer.field("error", "details", kind=list, default=[])))]
