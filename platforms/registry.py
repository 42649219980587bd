"""The eleven networks, in the API's order."""

from platforms.bluesky import Bluesky
from platforms.facebook import Facebook
from platforms.gbp import GoogleBusinessProfile
from platforms.http import Http
from platforms.instagram import Instagram
from platforms.linkedin import LinkedIn
from platforms.mastodon import Mastodon
from platforms.pinterest import Pinterest
from platforms.sandbox import Sandbox
from platforms.threads import Threads
from platforms.tiktok import TikTok
from platforms.twitter import Twitter
from platforms.youtube import YouTube
from storage.urls import UrlError, parse

PLATFORMS = (Instagram, TikTok, YouTube, LinkedIn, Twitter, Facebook, Pinterest, Bluesky, Threads, Mastodon, GoogleBusinessProfile)


class Registry:
    """One connector of each network, by name, sharing one guarded client.

    `settings` holds the settings of each network by its name: addresses and app credentials. `allow_plain` holds the
    (host, port) pairs that may be spoken to without TLS. Raises ValueError naming a setting that cannot be used.
    """

    def __init__(self, fetcher, settings, *, allow_plain=frozenset()):
        for platform in PLATFORMS:
            _check_addresses(platform.name, settings.get(platform.name, {}))
        http = Http(fetcher, allow_plain)
        self._platforms = {platform.name: platform(http, settings.get(platform.name, {})) for platform in PLATFORMS}
        self.names = tuple(self._platforms)
        self.sandbox = Sandbox()

    def __getitem__(self, name):
        return self._platforms[name]

    def connector(self, name, mode):
        """Who publishes: the network itself, or in test mode the sandbox."""
        return self.sandbox if mode == "test" else self._platforms[name]


def _check_addresses(network, settings):
    for name, value in settings.items():
        try:
            if name.endswith("_url"):
                parse(value)
        except UrlError as error:
            raise ValueError(f"POSTHORN_{network}_{name}".upper() + f": {error.args[0]}") from None
