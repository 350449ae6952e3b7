"""The page over HTTP: uploads of pictures, exports of masks, and a WebSocket for events."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib import resources
from secrets import compare_digest, token_urlsafe
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from anyio import CapacityLimiter, to_thread
from numpy.typing import NDArray
from starlette.applications import Starlette
from starlette.datastructures import Headers, QueryParams
from starlette.requests import ClientDisconnect, Request, cookie_parser
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope
from starlette.types import Send as ASGISend
from starlette.websockets import WebSocket, WebSocketDisconnect

from setwise import _core
from setwise._foundation._display import png
from setwise.app import _exports
from setwise.app._decoding import CODING_BYTES, MOST_BYTES, SAMPLES, Refused, decode, sample
from setwise.app._drawing._drawing import Drawing
from setwise.app._drawing._levels import resampled
from setwise.app._drawing._memory import MemoryShare
from setwise.app._drawings import MEMORY_LIMIT, Drawings, Entry
from setwise.app._session import Session, framed

_SAFETY = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def make_app(token: str, port: int, memory_limit: int = MEMORY_LIMIT) -> Starlette:
    """Return the app of the page, for clients with the token on 127.0.0.1 or localhost."""
    drawings = Drawings(memory_limit)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        drawings.close()

    app = Starlette(
        routes=[
            Route("/", _page),
            Route("/segment.js", _module),
            Route("/segment.css", _style),
            Route("/api/samples/{name}", _sample),
            Route("/api/drawings", _open, methods=["POST"]),
            Route("/api/drawings/{key}", _describe),
            Route("/api/drawings/{key}/image.png", _image),
            Route("/api/drawings/{key}/export/{name}", _export),
            WebSocketRoute("/api/drawings/{key}/events", _events),
        ],
        exception_handlers={Refused: _refuse},
        lifespan=lifespan,
    )
    app.state.drawings, app.state.keys = drawings, PageKeys(token, port)
    app.state.first, app.state.threads = None, WeakKeyDictionary()
    hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost"))
    app.add_middleware(Guard, keys=app.state.keys, hosts=hosts)
    return app


class PageKeys:
    """The access control of the page: a token, a code, and cookies in exchange for them.

    The token is in the printed address, for people and programs. The code is in the address with
    which a browser is started. Other users can read this address in the list of processes, so the
    code works only once. If it is used a second time, the cookie that was given for it becomes
    invalid.
    """

    def __init__(self, token: str, port: int) -> None:
        self.code = token_urlsafe(24)
        self._token = token
        self._used = False
        # A browser shares cookies between all ports of a host, so the name contains the port.
        self._name = f"setwise-{port}"
        self._for_token, self._for_code = token_urlsafe(24), token_urlsafe(24)

    def opened(self, query: QueryParams) -> str | None:
        """Return a cookie for the token or code in the address, or None."""
        if _same(query.get("token"), self._token):
            return self._cookie(self._for_token)
        if not _same(query.get("once"), self.code):
            return None
        if self._used:
            self._for_code = token_urlsafe(24)
            return None
        self._used = True
        return self._cookie(self._for_code)

    def fit(self, query: QueryParams, headers: Headers) -> bool:
        """Return whether a request has the token or a valid cookie."""
        given = query.get("token") or headers.get("x-setwise-token")
        cookie = cookie_parser(headers.get("cookie", "")).get(self._name)
        return (
            _same(given, self._token)
            or _same(cookie, self._for_token)
            or _same(cookie, self._for_code)
        )

    def _cookie(self, value: str) -> str:
        # Lax: the address may be opened from another site, for instance a notebook or a mail.
        return f"{self._name}={value}; Path=/; HttpOnly; SameSite=Lax"


def _same(given: str | None, secret: str) -> bool:
    return compare_digest((given or "").encode(errors="replace"), secret.encode())


class Guard:
    """Middleware that accepts requests with a key and from the page itself."""

    def __init__(self, app: ASGIApp, keys: PageKeys, hosts: frozenset[str]) -> None:
        self._app, self._keys, self._hosts = app, keys, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: ASGISend) -> None:
        """Answer 421 for a wrong Host, 403 for a wrong Origin or key, or pass the call on.

        An address of the page with a key is redirected to the one without, with a cookie.
        """
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        answer = self._answer(scope)
        if answer is not None:
            await answer(scope, receive, send)
            return

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in _SAFETY.items()]
                message = {**message, "headers": [*message.get("headers", ()), *own]}
            await send(message)

        await self._app(scope, receive, with_headers)

    def _answer(self, scope: Scope) -> Response | None:
        """Return the response to a request that is refused or redirected, else None."""
        headers = Headers(scope=scope)
        if headers.getlist("host") not in [[host] for host in self._hosts]:
            return _text_response(421, "the Host of a request must be this page's own")
        if headers.getlist("origin") not in [[], *([f"http://{host}"] for host in self._hosts)]:
            return _text_response(403, "the Origin of a request must be this page's own")
        query = QueryParams(scope.get("query_string", b""))
        if scope["type"] == "http" and scope["path"] == "/" and scope["method"] == "GET":
            cookie = self._keys.opened(query)
            if cookie is not None:
                return Response(
                    status_code=303, headers={**_SAFETY, "location": "/", "set-cookie": cookie}
                )
        if not self._keys.fit(query, headers):
            return _text_response(
                403, "this page is opened by the address that was printed: it has a token"
            )
        return None


def _text_response(status: int, words: str) -> Response:
    return PlainTextResponse(words, status, headers=_SAFETY)


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return JSONResponse({"error": str(error)}, error.status)


# ---- the page itself


def static(name: str) -> str:
    """Return the text of a file of the page."""
    return resources.files("setwise.app").joinpath("static", name).read_text(encoding="utf-8")


async def _page(request: Request) -> Response:
    state = request.app.state
    samples = ",".join(SAMPLES)
    html = static("page.html").replace("$SAMPLES", samples)
    return Response(html.replace("$FIRST", state.first or ""), media_type="text/html")


async def _module(request: Request) -> Response:
    return Response(static("segment.js"), media_type="text/javascript")


async def _style(request: Request) -> Response:
    return Response(static("segment.css"), media_type="text/css")


# ---- drawings


def _entry(request: Request | WebSocket) -> Entry:
    drawings: Drawings = request.app.state.drawings
    entry = drawings.get(request.path_params["key"])
    if entry is None:
        raise Refused("there is no such drawing any more", 404)
    return entry


async def _sample(request: Request) -> Response:
    data = await _in_thread(_thumbnail, request.path_params["name"])
    return Response(data, media_type="image/png")


def _thumbnail(name: str) -> bytes:
    picture = sample(name)
    step = max(picture.shape[:2]) // 200 + 1
    return png(picture[::step, ::step].copy())


async def _open(request: Request) -> Response:
    """Open a drawing from the picture or exported drawing in the body, or from a sample."""
    drawings: Drawings = request.app.state.drawings
    name = request.query_params.get("sample")
    if name is not None:
        entry = await _in_thread(_add_sample, drawings, name)
    else:
        body = drawings.memory.share(request)
        try:
            data = await _body(request, body)
            title = request.query_params.get("name", "image")[:200]
            entry = await _in_thread(_add_picture, drawings, data, title)
        finally:
            body.close()
    return JSONResponse({"key": entry.key}, 201)


def _add_sample(drawings: Drawings, name: str) -> Entry:
    return _add(drawings, Drawing(sample(name), name))


def _add_picture(drawings: Drawings, data: bytes, name: str) -> Entry:
    with _refuse_without_memory():
        if data[:1] == b"{":
            drawing = _exports.read_drawing(data, drawings.memory)
        else:
            picture, original = decode(data, drawings.memory)
            drawing = Drawing(picture, name)
            drawing.original = original
    return _add(drawings, drawing)


def _add(drawings: Drawings, drawing: Drawing) -> Entry:
    with _refuse_without_memory():
        return drawings.add(drawing)


@contextmanager
def _refuse_without_memory() -> Iterator[None]:
    """Turn a lack of memory or time into ``Refused``."""
    try:
        yield
    except TimeoutError as error:
        raise Refused(str(error), 503) from error
    except MemoryError as error:
        raise Refused(str(error) or "there is not enough memory", 413) from error


async def _body(request: Request, held: MemoryShare) -> bytes:
    """Return the body. A body that is too long is refused before it is read to its end."""
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared) > MOST_BYTES:
        raise Refused(f"a file must have at most {MOST_BYTES >> 20} MiB", 413)
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > MOST_BYTES:
                raise Refused(f"a file must have at most {MOST_BYTES >> 20} MiB", 413)
            if 2 * size > held.nbytes:  # a body is held twice: in parts, and concatenated
                await _in_thread(_hold, held, 2 * max(2 * size, int(declared)))
            parts.append(part)
    except ClientDisconnect as error:
        raise Refused("the file must be sent to its end") from error
    if not size:
        raise Refused("the file must not be empty")
    return b"".join(parts)


def _hold(held: MemoryShare, nbytes: int) -> None:
    with _refuse_without_memory():
        held.grow(nbytes - held.nbytes)


async def _describe(request: Request) -> Response:
    drawing = _entry(request).drawing
    height, width = drawing.shape
    return JSONResponse({"name": drawing.name, "height": height, "width": width})


async def _image(request: Request) -> Response:
    entry = _entry(request)
    return Response(await _in_thread(png, entry.drawing.image), media_type="image/png")


async def _export(request: Request) -> Response:
    entry = _entry(request)
    data, kind = await _in_thread(_unless_closed, entry, request.path_params["name"])
    return Response(
        data,
        media_type=kind,
        headers={"content-disposition": f'attachment; filename="{file_name(entry, request)}"'},
    )


def _unless_closed(entry: Entry, name: str) -> tuple[bytes, str]:
    """Return ``exported``. Its polls raise an error when the drawing is closed."""

    def check() -> None:
        if entry.work.closed:
            raise CancelledError

    try:
        return _core.run_with_check(check, exported, entry, name)
    except CancelledError as error:
        raise Refused("the drawing was closed in the meantime", 503) from error


def file_name(entry: Entry, request: Request) -> str:
    """Return a file name of letters and digits, followed by the name of the export."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "_", entry.drawing.name.rsplit(".", 1)[0])[:60] or "image"
    return f"{stem}_{request.path_params['name']}"


def exported(entry: Entry, name: str) -> tuple[bytes, str]:
    """Return the content and media type of an export."""
    drawing, work = entry.drawing, entry.work
    if name == "drawing.json":
        # This reserves memory for the picture as text, the steps as text, and their concatenation.
        with _memory_for_export(drawing, 3 * drawing.nbytes):
            return _exports.drawing_bytes(drawing), "application/json"
    height, width = drawing.original
    nbytes = CODING_BYTES * height * width
    if name == "alternatives.zip":
        listed = work.alternatives
        if listed is None or listed.version != drawing.version:
            raise Refused("there are no alternatives yet", 409)
        with _memory_for_export(drawing, nbytes):
            return _exports.alternatives_zip(listed, drawing.original), "application/zip"
    if name not in ("mask.png", "mask.npy", "coco.json", "polygons.json"):
        raise Refused("there is no such export", 404)
    if drawing.empty:
        raise Refused("there is no mask yet: draw something first", 409)
    with _refuse_without_memory():
        labels = work.mask()
    with _memory_for_export(drawing, nbytes):
        return _written(resampled(labels, drawing.original), drawing.name, name)


def _written(labels: NDArray[np.uint8], title: str, name: str) -> tuple[bytes, str]:
    if name == "mask.png":
        return _exports.mask_png(labels), "image/png"
    if name == "mask.npy":
        return _exports.mask_npy(labels), "application/octet-stream"
    if name == "polygons.json":
        return _exports.polygons(labels), "application/json"
    return json.dumps(_exports.coco(labels, title)).encode(), "application/json"


@contextmanager
def _memory_for_export(drawing: Drawing, nbytes: int) -> Iterator[None]:
    """Hold the memory for a file while it is written."""
    with _refuse_without_memory(), drawing.memory.holding(lambda: nbytes, drawing):
        yield


async def _events(socket: WebSocket) -> None:
    """Exchange messages with one tab of a browser, until it goes away."""
    with suppress(WebSocketDisconnect, OSError):  # the client may disconnect at any message
        await _exchange(socket)


async def _exchange(socket: WebSocket) -> None:
    try:
        entry = _entry(socket)
    except Refused:
        await socket.accept()
        await socket.close(4404, "there is no such drawing any more")
        return
    await socket.accept()
    loop, ready = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(ready.set)

    # All tabs of a drawing share two threads. They wait for each other's strokes, and would
    # otherwise occupy the threads of other drawings.
    threads: WeakKeyDictionary[Entry, CapacityLimiter] = socket.app.state.threads
    own = threads.setdefault(entry, CapacityLimiter(2))
    session = Session(entry, wake)
    writer = asyncio.create_task(_write(socket, session, ready, own))
    try:
        if socket.app.state.drawings.get(entry.key) is not entry:
            await socket.close(4404, "there is no such drawing any more")  # the drawing was closed
            return
        await _in_thread(session.begin, limiter=own)
        # receive_text() would raise an error of its own after the writer could not send a message.
        while (message := await socket.receive())["type"] == "websocket.receive":
            if message.get("text") is None:  # the page sends no binary messages
                return
            await _in_thread(_received, session, message["text"], limiter=own)  # this may be slow
    finally:
        writer.cancel()
        session.close()


def _received(session: Session, text: str) -> None:
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        message = None
    session.receive(message)


async def _write(
    socket: WebSocket, session: Session, ready: asyncio.Event, own: CapacityLimiter
) -> None:
    """Send the messages of a session, as fast as the client reads them."""
    with suppress(WebSocketDisconnect, RuntimeError):
        while True:
            await ready.wait()
            ready.clear()
            # The messages are framed one by one, so that a slow client needs memory for only one
            # message.
            for message, buffers in await _in_thread(session.messages, limiter=own):
                data = await _in_thread(framed, message, buffers, limiter=own)
                await socket.send_bytes(data)


async def _in_thread(
    function: Callable[..., Any], *arguments: Any, limiter: CapacityLimiter | None = None
) -> Any:
    call: Awaitable[Any] = to_thread.run_sync(function, *arguments, limiter=limiter)
    return await call
