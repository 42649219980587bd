"""The server's side of a connection, which nobody holds by sending nothing, or next to nothing, nor by taking nothing."""

import socket

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Prompt(HttpToolsProtocol):
    """Closes a connection on which a request has begun, or the first was to come, and is not whole in time.

    While a request is being answered its reader has a deadline of its own, which says so (handlers/incoming.py).
    """

    SECONDS = 15.0
    UNTAKEN = 60_000    # milliseconds after which the system drops a reader for whom something waits, closed by us or not

    _late = None

    def connection_made(self, transport):
        """Called by the event loop."""
        super().connection_made(transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, self.UNTAKEN)
        self._expect()

    def data_received(self, data):
        """Called by the event loop; uvicorn takes any byte for a sign of life."""
        if self._late is None:
            self._expect()
        super().data_received(data)

    def on_message_complete(self):
        """Called by the parser at the end of a request."""
        self._forget()
        super().on_message_complete()

    def connection_lost(self, exc):
        """Called by the event loop."""
        self._forget()
        super().connection_lost(exc)

    def _expect(self):
        self._late = self.loop.call_later(self.SECONDS, self._give_up)

    def _forget(self):
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self):
        self._late = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
