"""The server of the page: it prints nothing, whenever a client goes away or the page ends."""

import asyncio
import gc
import json
import logging
import socket
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
import uvicorn.server

from setwise.app import _http_app, _http_server
from setwise.app._drawing._answers import MaskAnswer
from setwise.app._drawing._drawing import Drawing

TOKEN, PORT = "a-token", 8123
HOST = f"Host: 127.0.0.1:{PORT}\r\n"
UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
)
MASK = bytes(4)
STEP = json.dumps({"type": "smoothness", "value": 1, "n": 1}).encode()
CLOSE, TEXT, NOT_UTF8 = (
    bytes([0x80 | opcode, 0x80 | len(data)]) + MASK + data
    for opcode, data in ((8, b""), (1, STEP), (1, b"\xff\xfe"))
)


@pytest.fixture
def printed(monkeypatch):
    """What would be printed: records of warnings and errors."""
    records = []

    class Handler(logging.Handler):
        def emit(self, record):
            records.append(self.format(record))

    monkeypatch.setattr(uvicorn.Config, "configure_logging", lambda config: None)  # keeps handlers
    handler = Handler(logging.WARNING)
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "asyncio")]
    for logger in loggers:
        logger.addHandler(handler)
    yield records
    for logger in loggers:
        logger.removeHandler(handler)


class InSteps:
    """An app that calls a function before and after each of its ASGI messages."""

    def __init__(self, app, step):
        self.app, self.step = app, step

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return

        async def received():
            await self.step()
            message = await receive()
            await self.step()
            return message

        async def sent(message):
            await self.step()
            await send(message)
            await self.step()

        await self.app(scope, received, sent)
        await self.step()


class Page:
    """A server whose connections are socket pairs, within one event loop."""

    def __init__(self):
        self.app = _http_app.make_app(TOKEN, PORT)
        self.drawings = self.app.state.drawings
        self.key = self.drawings.add(Drawing(np.zeros((9, 9, 3), np.uint8))).key
        self.server = _http_server.server_for(self.app)
        self.server.config.load()
        self.state, self.server.servers = self.server.server_state, []
        self.server.lifespan = self.server.config.lifespan_class(self.server.config)

    async def connect(self):
        """The client's end of a new connection: its socket, a reader and a writer."""
        await self.server.lifespan.startup()
        ours, theirs = socket.socketpair()
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: self.server.config.http_protocol_class(
                config=self.server.config, server_state=self.state, app_state={}
            ),
            theirs,
        )
        return ours, *await asyncio.open_connection(sock=ours)

    async def end(self):
        """Waits for the end of all connections, and ends the server."""
        while self.state.connections or self.state.tasks:
            await asyncio.sleep(0)
        await self.server.shutdown()


async def conversation(path, way, at, turns):
    """Interrupts a conversation over a socket at one of its steps; returns how many there are."""
    page, count, ending = Page(), 0, []

    async def step():
        nonlocal count
        count += 1
        if count != at:
            return
        match way:
            case "the page ends":
                ending.append(asyncio.create_task(page.server.shutdown()))
            case "the loop ends":
                for task in page.state.tasks:
                    task.cancel()
            case "the client is lost":
                for connection in page.state.connections:
                    connection.transport.abort()
            case "the client is silent":
                for connection in page.state.connections:
                    if connection.handshake_complete:
                        connection.keepalive_timeout()
            case "the client closes" | "the client errs":
                with suppress(OSError):  # the connection is closed
                    ours.send(CLOSE if way == "the client closes" else NOT_UTF8)
        for _ in range(turns):
            await asyncio.sleep(0)

    page.server.config.loaded_app = InSteps(page.server.config.loaded_app, step)
    ours, reader, writer = await page.connect()
    writer.write(f"GET {path.format(key=page.key)} HTTP/1.1\r\n{HOST}{UPGRADE}\r\n".encode())
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        answer = await reader.readuntil(b"\r\n\r\n")
        if answer.startswith(b"HTTP/1.1 101"):
            writer.write(TEXT)
            answer = b""
            while not (b'"echo": 1' in answer or b"\x88" in answer):
                part = await reader.read(10_000)
                answer += part
                if not part:
                    break
    writer.close()
    await page.end()
    for task in ending:
        await task
    return count


@pytest.mark.parametrize(
    "way",
    [
        "the page ends",
        "the loop ends",
        "the client is lost",
        "the client is silent",
        "the client closes",
        "the client errs",
    ],
)
@pytest.mark.parametrize(
    "path",
    [
        f"/api/drawings/{{key}}/events?token={TOKEN}",
        f"/api/drawings/none/events?token={TOKEN}",
        "/api/drawings/{key}/events?token=refused",
    ],
    ids=["a drawing", "no drawing", "refused"],
)
def test_a_socket_may_end_at_any_point(path, way, printed, monkeypatch):
    sleep = asyncio.sleep
    monkeypatch.setattr(uvicorn.server.asyncio, "sleep", lambda seconds: sleep(0))

    def steps(at, turns):
        one = conversation(path, way, at, turns)
        return asyncio.run(asyncio.wait_for(one, 60))

    most = steps(0, 0)  # without an interruption
    assert most >= 5
    for turns in (0, 1, 3):
        for at in range(1, most + 1):
            steps(at, turns)
            assert printed == [], (turns, at)
        gc.collect()  # of tasks whose error nobody has seen
        assert printed == [], turns


def test_the_page_ends_while_a_picture_is_decoded(printed, monkeypatch):
    monkeypatch.setattr(_http_server, "GRACE", 0.0)
    page, began = Page(), threading.Event()

    def decode(data, memory):
        began.set()
        while page.state.connections:
            time.sleep(0.001)
        raise _http_app.Refused("nobody waits for it")

    monkeypatch.setattr(_http_app, "decode", decode)

    async def talk():
        _, _, writer = await page.connect()
        path = f"/api/drawings?token={TOKEN}"
        writer.write(f"POST {path} HTTP/1.1\r\n{HOST}Content-Length: 1\r\n\r\nx".encode())
        await asyncio.to_thread(began.wait)
        await page.server.shutdown()
        writer.close()

    asyncio.run(talk())
    assert printed == []


def test_the_page_ends_beside_a_client_that_does_not_read(printed, monkeypatch):
    monkeypatch.setattr(_http_server, "GRACE", 0.0)
    page = Page()
    entry = page.drawings.get(page.key)
    answer = MaskAnswer(0, np.zeros((2000, 2000), np.uint8), 1, 0.0, 0.0, 0.0, True, True, 0.0)

    async def talk():
        _, reader, writer = await page.connect()
        path = f"/api/drawings/{page.key}/events?token={TOKEN}"
        writer.write(f"GET {path} HTTP/1.1\r\n{HOST}{UPGRADE}\r\n".encode())
        await reader.readuntil(b'"history"')
        entry.emit(answer)
        (connection,) = page.state.connections
        while not connection.transport.get_write_buffer_size():
            await asyncio.sleep(0.001)
        await page.server.shutdown()
        writer.close()

    asyncio.run(talk())
    assert printed == []
