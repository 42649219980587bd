"""How an API process ends: whoever has sent it something, or is just about to, gets an answer.

A proxy asks elsewhere where its connection is refused. Where it was taken, and then reset, it cannot know what was done.
"""

import asyncio

from uvicorn.server import Server


class Draining(Server):
    """uvicorn's server, which takes what waits at its door before it closes it: the system would reset those connections."""

    async def shutdown(self, sockets=None):
        """Called when it was told to end."""
        doors = [one.dup() for one in sockets]
        for server in self.servers:
            server.close()
        for one in sockets:
            one.close()
        await asyncio.sleep(0)      # uvloop lets go of a socket in its next round; from then on only ours keep the doors open
        for door in doors:
            with door:
                waiting = list(_waiting(door))
            for connection in waiting:
                await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)
        await super().shutdown(sockets)

    def _protocol(self):
        return self.config.http_protocol_class(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)


def _waiting(door):
    """The connections that the system has taken and nobody has asked for yet."""
    try:
        while True:
            yield door.accept()[0]
    except OSError:     # none, as a rule
        return
