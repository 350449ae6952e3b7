"""The server of the page, which limits the time and the size of requests."""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import suppress
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState

from setwise.app._drawing._strokes import MOST_STROKE_BYTES
from setwise.app._drawings import Drawings

# The seconds within which a client must send a request. 64 MiB on one machine take about 1 s. Not
# tuned.
PATIENCE = 60.0
# The seconds after Ctrl-C within which responses are still sent. There is a limit because a client
# may never read them. Not tuned.
GRACE = 1.0


def server_for(app: Starlette) -> uvicorn.Server:
    """Return the server of an app that ``make_app`` has made."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        http=_Requests,
        ws=_Sockets,
        ws_max_size=MOST_STROKE_BYTES,
        ws_per_message_deflate=False,
        server_header=False,
    )
    return _Server(config, app.state.drawings)


class _Server(uvicorn.Server):
    """A server that ends without an error message, whatever its clients do.

    It ends the jobs of drawings first, because pending responses wait for them. Connections that
    are open for longer than ``GRACE`` are aborted. Their tasks then end by themselves. The limit of
    uvicorn would cancel them and log an error for each.
    """

    def __init__(self, config: uvicorn.Config, drawings: Drawings) -> None:
        super().__init__(config)
        self._drawings = drawings

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._drawings.close()
        asyncio.get_running_loop().call_later(GRACE, self._abort)
        await super().shutdown(sockets)

    def _abort(self) -> None:
        for connection in tuple(self.server_state.connections):
            connection.transport.abort()


class _Requests(H11Protocol):
    """A connection that is closed if a request is not complete in time."""

    _timer: asyncio.TimerHandle | None = None

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.logger = _LOGGER

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        if self._waits() and self.cycle is not None:
            self.transport.abort()  # the rest of the body is not needed
        super().shutdown()

    def _waits(self) -> bool:
        """Return whether the client has not sent all of a request yet."""
        if self.transport.get_protocol() is not self:
            return False  # the connection has become a WebSocket
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body

    def _watch(self) -> None:
        if not self._waits():
            self._forget()
        elif self._timer is None:
            # Unsent data is dropped, because the client may never read it.
            self._timer = self.loop.call_later(PATIENCE, self.transport.abort)

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Sockets(WebSocketsSansIOProtocol):
    """A WebSocket that answers errors caused by the client and does not log them."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.logger = _LOGGER

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.pause_reading()  # a message before the handshake would raise an error

    # These three let ``send`` wait until the client has read enough; uvicorn does so since 0.52.1.

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.writable.set()  # nobody else resumes a connection that is lost
        super().connection_lost(exc)

    def shutdown(self) -> None:
        with suppress(InvalidState):  # uvicorn before 0.52.1, if the socket is closing already
            super().shutdown()
        self.transport.close()

    async def send(self, message: Any) -> None:
        """Send a message. Raise ``ClientDisconnected`` if the connection is closing."""
        try:
            if self.transport.is_closing():
                raise ClientDisconnected
            await super().send(message)
            if message["type"] == "websocket.accept":
                self.transport.resume_reading()
        finally:
            # uvicorn logs an error if a handshake is missing, also of a connection that is closed.
            self.handshake_complete |= self.transport.is_closing()


def _is_ours(record: logging.LogRecord) -> bool:
    """Return False for text that is not UTF-8 and for tasks that a second Ctrl-C cancels.

    A socket that gets such a text is closed with 1007.
    """
    kind = None if record.exc_info is None else record.exc_info[0]
    return kind is None or not issubclass(kind, UnicodeDecodeError | asyncio.CancelledError)


_LOGGER = logging.getLogger("uvicorn.error.setwise")
_LOGGER.addFilter(_is_ours)
