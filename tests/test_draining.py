"""An API process that ends: who has sent something, or is just about to, gets an answer, and is told that it is the last."""

import asyncio
import socket

import pytest
import uvloop
from uvicorn.config import Config

from handlers.draining import Draining
from handlers.prompt import Prompt

REQUEST = b"GET / HTTP/1.1\r\nHost: posthorn.example\r\n\r\n"


async def app(scope, receive, send):
    """Answers with nothing."""
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


async def ask(reader, writer):
    """The head of the answer."""
    writer.write(REQUEST)
    return await reader.readuntil(b"\r\n\r\n")


async def story():
    door = socket.create_server(("127.0.0.1", 0))
    door.setblocking(False)
    address, config = door.getsockname(), Config(app, http=Prompt, lifespan="off", log_config=None)
    config.load()
    server = Draining(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[door])
    kept, silent = await asyncio.open_connection(*address), await asyncio.open_connection(*address)
    before = await ask(*kept)
    waiting = socket.create_connection(address)     # in the hands of the system: the loop does not run meanwhile
    ending = asyncio.create_task(server.shutdown([door]))
    taken = await asyncio.open_connection(sock=waiting)
    after = [await ask(*kept), await ask(*taken)]
    rest = [await reader.read() for reader, _ in (kept, taken, silent)]
    await ending
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*address)
    return before, after, rest


def test_what_is_on_its_way_when_the_process_is_told_to_end_is_answered_as_the_last(monkeypatch):
    monkeypatch.setattr(Prompt, "LAST", 2.0)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        before, after, rest = runner.run(asyncio.wait_for(story(), 20))
    assert b"connection: close" not in before
    assert all(answer.startswith(b"HTTP/1.1 204") and b"connection: close" in answer for answer in after)
    assert rest == [b"", b"", b""]
