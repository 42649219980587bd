"""The floor of the API benchmark: a bare ASGI program that does the same work as one request, and nothing else.

It checks a key, sends the same statements with the same values through psycopg2 on one thread hop, and answers the same bytes.
No framework, no document, no validation, no pool. What it sends was recorded from the API; a POST gets fresh ids each time.
"""

import asyncio
import hashlib
import os
import pickle
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg2

from storage.database import BASE62

RECORDED = pickle.loads(Path(os.environ["FLOOR_RECORDED"]).read_bytes())
KEYS = {hashlib.sha256(RECORDED["key"].encode()).digest()}
THREADS = ThreadPoolExecutor(40)
LOCAL = threading.local()


def _work(recorded):
    if not hasattr(LOCAL, "connection"):
        LOCAL.connection = psycopg2.connect(os.environ["DATABASE_URL"])
        LOCAL.connection.autocommit = True
    fresh = {old: old.partition("_")[0] + "_" + "".join(secrets.choice(BASE62) for _ in range(22)) for old in recorded["ids"]}
    for sql, values in recorded["statements"]:
        if isinstance(values, dict):
            values = {name: fresh.get(value, value) if isinstance(value, str) else value for name, value in values.items()}
        elif values:
            values = [fresh.get(value, value) if isinstance(value, str) else value for value in values]
        with LOCAL.connection.cursor() as cursor:
            cursor.execute(sql, values or ())
            if cursor.description:
                cursor.fetchall()
    body = recorded["body"]
    for old, new in fresh.items():
        body = body.replace(old.encode(), new.encode())
    return body


async def app(scope, receive, send):
    """The ASGI application."""
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
    recorded = RECORDED[scope["method"]]
    more = scope["method"] == "POST"
    while more:
        more = (await receive()).get("more_body", False)
    given = dict(scope["headers"]).get(b"authorization", b"").removeprefix(b"Bearer ")
    if hashlib.sha256(given).digest() in KEYS:
        body, status = await asyncio.get_running_loop().run_in_executor(THREADS, _work, recorded), recorded["status"]
    else:
        body, status = b"{}", 401
    await send({"type": "http.response.start", "status": status, "headers": [
        (b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})
