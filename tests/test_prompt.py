"""Connections on which no request comes, or half a one, are ended; nothing else is."""

import asyncio

import pytest
import uvicorn

from handlers import incoming
from handlers.contract import Contract
from handlers.errors import RequestTimeout
from handlers.prompt import Prompt

ASKED = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LONG = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"


class Hasty(Prompt):
    SECONDS, UNTAKEN = 0.2, 200
    lost = []

    def connection_lost(self, exc):
        self.lost.append(exc)
        super().connection_lost(exc)


async def answer(scope, receive, send):
    """Answers without reading the body."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def served(talk, app=answer):
    """What `talk` makes of a connection to `app`."""
    server = uvicorn.Server(uvicorn.Config(app, http=Hasty, lifespan="off", log_config=None, timeout_keep_alive=1))
    listening = await asyncio.get_running_loop().create_server(
        lambda: Hasty(server.config, server.server_state, {}), "127.0.0.1", 0)
    async with listening:
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        try:
            return await asyncio.wait_for(talk(reader, writer), 20)
        finally:
            writer.close()


@pytest.mark.parametrize("begun", [b"", b"\r\n", b"GET / HT", ASKED[:-2], LONG + b"x", ASKED + b"\r\n", ASKED + ASKED[:-2]])
def test_what_does_not_come_is_not_waited_for(begun):
    async def talk(reader, writer):
        writer.write(begun)
        return (await reader.read()).count(b"ok")       # to the end of the connection

    assert asyncio.run(served(talk)) == begun.count(b"\r\n\r\n")


def test_all_who_offer_another_protocol_at_once_are_answered():
    offer = ASKED.replace(b"Host", b"Connection: Upgrade\r\nUpgrade: h2c\r\nHost")
    last = ASKED.replace(b"Host", b"Connection: close\r\nHost")

    async def talk(reader, writer):
        writer.write(offer * 900 + last)
        return (await reader.read()).count(b"ok")

    assert asyncio.run(served(talk)) == 901


@pytest.mark.parametrize("begun", [b"GET / HTTP/1.1\r\nX: ", LONG])
def test_a_byte_now_and_then_holds_nothing(begun):
    async def talk(reader, writer):
        writer.write(begun)
        end = asyncio.ensure_future(reader.read())
        while not end.done():
            writer.write(b"x")
            await asyncio.wait([end], timeout=0.02)
        return end.exception() is None or isinstance(end.exception(), ConnectionError)

    assert asyncio.run(served(talk))


def test_who_rests_between_two_requests_or_waits_for_an_answer_stays():
    async def slow(scope, receive, send):
        await asyncio.sleep(2 * Hasty.SECONDS)
        await answer(scope, receive, send)

    async def talk(reader, writer):
        for _ in range(2):
            writer.write(ASKED)
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
            await asyncio.sleep(2 * Hasty.SECONDS)
        return not reader.at_eof()

    assert asyncio.run(served(talk, slow))


def test_a_body_that_does_not_arrive_is_refused_in_time(monkeypatch):
    """And the connection with it; who asks is looked at all the same."""
    monkeypatch.setattr(incoming, "BODY_TIME", 0.05)
    parts = [{"type": "http.request", "body": b'{"content"', "more_body": True}]
    headers = [(b"content-type", b"application/json"), (b"content-length", b"99")]

    async def part():
        return parts.pop() if parts else await asyncio.Event().wait()

    operation = next(operation for operation in Contract().operations.values() if operation.body_required)
    request = incoming.read(operation, {"type": "http", "headers": headers}, part)
    refusal = asyncio.run(request).refusal
    assert isinstance(refusal, RequestTimeout) and refusal.headers == {"Connection": "close"}


def test_who_takes_nothing_is_dropped_with_what_waits_for_him():
    async def cut_short(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"90000000")]})
        await send({"type": "http.response.body", "body": bytes(50_000_000), "more_body": True})

    async def talk(reader, writer):
        writer.transport.pause_reading()
        writer.write(ASKED)
        while not Hasty.lost:
            await asyncio.sleep(0.01)
        return True

    Hasty.lost.clear()
    assert asyncio.run(served(talk, cut_short))
