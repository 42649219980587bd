"""What a network's answer means to us: every connector raises one of these, and only the publisher acts on them.

The classes follow the question "may the post be public now?", since that alone decides whether it may be sent again.
"""


class PlatformError(Exception):
    """A network did not do what was asked.

    `message` is a sentence for the caller. `platform_code` and `platform_message` are the network's own words, shortened;
    they must never hold a credential. `rule` is a stable name of the rule that was broken, where there is one.
    """

    code = "external_service_error"     # out of the eleven error codes of the API
    retryable = False                   # may the caller ask for the same thing again with hope?
    answered = False                    # did the network answer sensibly, so that it is not down?

    def __init__(self, message, *, platform_code=None, platform_message=None, rule=None):
        super().__init__(message)
        self.message = message
        self.platform_code = None if platform_code is None else str(platform_code)[:100]
        self.platform_message = None if platform_message is None else str(platform_message)[:500]
        self.rule = rule

    @property
    def words(self) -> dict:
        """The network's own words, for an error that says the same in a better sentence."""
        return {"platform_code": self.platform_code, "platform_message": self.platform_message}


class Rejected(PlatformError):
    """The network understood and refused: sending the same again would be refused again."""

    code = "unprocessable"


class Disconnected(PlatformError):
    """The credentials no longer work: a person has to connect the account again."""

    code = "invalid_state"


class PermissionMissing(PlatformError):
    """The account is connected, but lacks a permission that the network asks for."""

    code = "insufficient_permissions"


class Unavailable(PlatformError):
    """Surely not done, and worth another try: throttled, in maintenance, or never reached.

    `retry_after` is the network's own wish in seconds, None where it gave none. `receipt` is what is left of the receipt
    when the network has lost a finished step, so that the next try repeats it; None = the stored one still holds.
    """

    retryable = True

    def __init__(self, message, *, retry_after=None, throttled=False, receipt=None, **words):
        super().__init__(message, **words)
        self.retry_after = retry_after
        self.receipt = receipt
        self.answered = receipt is not None or retry_after is not None
        self.code = "rate_limited" if throttled else "external_service_error"


class Unconfirmed(PlatformError):
    """The request left us and no trustworthy answer came back: the post may be public."""


class OurFault(Unavailable):
    """Not done, and the network has nothing to do with it. Not for connectors."""

    def __init__(self, message, retry_after=None):
        super().__init__(message, retry_after=retry_after)
        self.code = "internal_error"


def describe(error: PlatformError) -> dict:
    """A target's error as the API shows it."""
    wire = {"code": error.code, "message": error.message, "retryable": error.retryable, "rule": error.rule,
            "platformCode": error.platform_code, "platformMessage": error.platform_message}
    return {name: value for name, value in wire.items() if value is not None}
