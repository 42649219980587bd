"""The server's side of a connection, which nobody holds by sending nothing, or next to nothing, nor by taking nothing."""

import socket
import sys

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_CAP = 262_144      # bytes that are read of a head, or of anything else that is no body


class Prompt(HttpToolsProtocol):
    """Closes a connection on which a request has begun, or the first was to come, and is not whole in time.

    While a request is being answered its reader has a deadline of its own, which says so (handlers/incoming.py).
    """

    SECONDS = 15.0
    LAST = 0.5          # seconds in which a process that ends takes one more request: callers may have sent it before they knew
    UNTAKEN = 60_000    # milliseconds after which the system drops a reader for whom something waits, closed by us or not

    _late, _ending = None, False
    _unread = 0     # bytes that came since a head was whole or a piece of a body was found: the parser keeps them

    def connection_made(self, transport):
        """Called by the event loop."""
        super().connection_made(transport)
        if sys.platform == "linux":
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, self.UNTAKEN)
        self._expect()

    def data_received(self, data):
        """Called by the event loop."""
        self._unset_keepalive_if_required()
        try:
            while data:
                data = self._fed(data)
        except HttpParserError:
            self._refuse("Invalid HTTP request received.")
        else:
            if self._unread > HEAD_CAP:
                self._refuse("The head of the request is too long.")

    def on_headers_complete(self):
        """Called by the parser. What follows the body as a trailer is no header of the request."""
        self._unread = 0
        if not self._offers():
            super().on_headers_complete()
            self.headers = []
            if self._ending:
                self.cycle.keep_alive = False

    def on_body(self, body):
        """Called by the parser."""
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self):
        """Called by the parser at the end of a request."""
        if not self._offers():
            self._forget()
            self._unread = 0
            super().on_message_complete()

    def connection_lost(self, exc):
        """Called by the event loop."""
        self._forget()
        super().connection_lost(exc)

    def shutdown(self):
        """Called by the server when it ends. The answer that is under way, or to the next request, is the last, and says so."""
        self._ending = True
        if self.cycle is not None:
            self.cycle.keep_alive = False
        self.loop.call_later(self.LAST, self._leave)

    def _leave(self):
        # A request that has begun to come has its own deadline.
        if (self.cycle is None or self.cycle.response_complete) and not self._unread:
            self.transport.close()

    def _refuse(self, words):
        """Ends the connection: with these words, or after the answer that is under way, for which they would be taken."""
        if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            self.send_400_response(words)
        else:
            self.cycle.keep_alive = False
            self.flow.pause_reading()

    def _offers(self):
        return self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"

    def _fed(self, data):
        """Gives the data to the parser; returns what it has to be given after that. To uvicorn any byte is a sign of life."""
        if self._late is None:
            self._expect()
        self._unread += len(data)
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as offer:
            return self._declined(data[offer.args[0]:])
        return b""

    def _declined(self, rest):
        """The request once more without the offer of another protocol, such as Java's HTTP client makes with its first.

        The parser takes what follows such a head for that protocol: the body would be lost.
        """
        line = b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        headers = [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
        self.parser = HttpRequestParser(self)       # the old one takes nothing more where the connection is to end
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return b"\r\n".join([line, *headers, b"", b""]) + rest

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
