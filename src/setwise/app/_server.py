"""The page over HTTP: pictures in, masks out, and a socket for all that happens in between."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from importlib import resources
from secrets import compare_digest
from typing import Any

from anyio import to_thread
from starlette.applications import Starlette
from starlette.datastructures import Headers, QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope
from starlette.types import Send as ASGISend
from starlette.websockets import WebSocket, WebSocketDisconnect

from setwise._foundation._pictures import png
from setwise.app import _exports
from setwise.app._decoding import MOST_BYTES, SAMPLES, Refused, decode, sample
from setwise.app._drawing import Drawing
from setwise.app._drawing_levels import resampled
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
    """The page; it answers to 127.0.0.1 and localhost at this port, and to those with the token."""
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
    app.state.drawings, app.state.token = drawings, token
    app.state.first = None
    hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost"))
    app.add_middleware(Guard, token=token, hosts=hosts)
    return app


class Guard:
    """Lets through who knows the token and comes from the page itself."""

    def __init__(self, app: ASGIApp, token: str, hosts: frozenset[str]) -> None:
        self._app, self._token, self._hosts = app, token.encode(), hosts

    async def __call__(self, scope: Scope, receive: Receive, send: ASGISend) -> None:
        """Answers 421 to another Host, 403 to another Origin or token, or hands the call on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            status, words = refusal
            await PlainTextResponse(words, status, headers=_SAFETY)(scope, receive, send)
            return

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in _SAFETY.items()]
                message = {**message, "headers": [*message.get("headers", ()), *own]}
            await send(message)

        await self._app(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        if headers.getlist("host") not in [[host] for host in self._hosts]:
            return 421, "the Host of a request must be this page's own"
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self._hosts}:
            return 403, "the Origin of a request must be this page's own"
        query = QueryParams(scope.get("query_string", b""))
        given = query.get("token") or headers.get("x-setwise-token") or ""
        if not compare_digest(given.encode(), self._token):
            return 403, "the address of this page has a token: open the one that was printed"
        return None


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return JSONResponse({"error": str(error)}, error.status)


# ---- the page itself


def static(name: str) -> str:
    """A file of the page, as it lies in the package."""
    return resources.files("setwise.app").joinpath("static", name).read_text(encoding="utf-8")


async def _page(request: Request) -> Response:
    state = request.app.state
    samples = ",".join(SAMPLES)
    html = static("page.html").replace("$TOKEN", state.token).replace("$SAMPLES", samples)
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
    picture = await _in_thread(sample, request.path_params["name"])
    step = max(picture.shape[:2]) // 200 + 1
    return Response(png(picture[::step, ::step].copy()), media_type="image/png")


async def _open(request: Request) -> Response:
    """A new drawing: of the picture or the exported drawing in the body, or of a sample."""
    name = request.query_params.get("sample")
    if name is not None:
        drawing = Drawing(await _in_thread(sample, name), name)
    else:
        body = await _body(request)
        title = request.query_params.get("name", "image")[:200]
        drawing = await _in_thread(_read_drawing, body, title)
    entry = _add(request.app.state.drawings, drawing)
    return JSONResponse({"key": entry.key}, 201)


def _add(drawings: Drawings, drawing: Drawing) -> Entry:
    try:
        return drawings.add(drawing)
    except MemoryError as error:
        raise Refused(str(error), 413) from error


def _read_drawing(body: bytes, name: str) -> Drawing:
    if body[:1] == b"{":
        try:
            given = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Refused("the JSON cannot be read") from error
        return _exports.drawing_from_json(given)
    picture, original = decode(body)
    drawing = Drawing(picture, name)
    drawing.original = original
    return drawing


async def _body(request: Request) -> bytes:
    """The body, as long as it is not too long: it is not read to its end to know that."""
    told = request.headers.get("content-length", "0")
    if not told.isdecimal() or int(told) > MOST_BYTES:
        raise Refused(f"a file must have at most {MOST_BYTES >> 20} MiB", 413)
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MOST_BYTES:
            raise Refused(f"a file must have at most {MOST_BYTES >> 20} MiB", 413)
        parts.append(part)
    if not size:
        raise Refused("the file must not be empty")
    return b"".join(parts)


async def _describe(request: Request) -> Response:
    drawing = _entry(request).drawing
    height, width = drawing.shape
    return JSONResponse({"name": drawing.name, "height": height, "width": width})


async def _image(request: Request) -> Response:
    entry = _entry(request)
    return Response(await _in_thread(png, entry.drawing.image), media_type="image/png")


async def _export(request: Request) -> Response:
    entry = _entry(request)
    data, kind = await _in_thread(exported, entry, request.path_params["name"])
    return Response(
        data,
        media_type=kind,
        headers={"content-disposition": f'attachment; filename="{file_name(entry, request)}"'},
    )


def file_name(entry: Entry, request: Request) -> str:
    """A plain name: letters, digits and what is asked for."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "_", entry.drawing.name.rsplit(".", 1)[0])[:60] or "image"
    return f"{stem}_{request.path_params['name']}"


def exported(entry: Entry, name: str) -> tuple[bytes, str]:
    """A file of what was found, by its name, and what kind it is."""
    drawing, work = entry.drawing, entry.work
    if name == "drawing.json":
        return json.dumps(_exports.drawing_json(drawing)).encode(), "application/json"
    if name == "alternatives.zip":
        listed = work.alternatives
        if listed is None or listed.version != drawing.version:
            raise Refused("there are no alternatives yet", 409)
        return _exports.alternatives_zip(listed, drawing.original), "application/zip"
    if name not in ("mask.png", "mask.npy", "coco.json", "polygons.json"):
        raise Refused("there is no such export", 404)
    if drawing.empty:
        raise Refused("there is no mask yet: draw something first", 409)
    answer = work.answer
    if answer is None or answer.version != drawing.version or answer.factor != 1:
        labels = drawing.level().solve(drawing.state()).labels
    else:
        labels = answer.labels
    labels = resampled(labels, drawing.original)
    if name == "mask.png":
        return _exports.mask_png(labels), "image/png"
    if name == "mask.npy":
        return _exports.mask_npy(labels), "application/octet-stream"
    found = (
        _exports.coco(labels, drawing.name) if name == "coco.json" else _exports.polygons(labels)
    )
    return json.dumps(found).encode(), "application/json"


async def _events(socket: WebSocket) -> None:
    """Messages of one tab in, messages for it out."""
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

    session = Session(entry, wake)
    writer = asyncio.create_task(_write(socket, session, ready))
    try:
        session.begin()
        while True:
            text = await socket.receive_text()
            try:
                message = json.loads(text)
            except (ValueError, RecursionError):
                message = None
            await _in_thread(session.receive, message)  # a stroke may take long to draw
    except (WebSocketDisconnect, KeyError):  # KeyError: a binary message
        pass
    finally:
        session.close()
        writer.cancel()


async def _write(socket: WebSocket, session: Session, ready: asyncio.Event) -> None:
    """What is to be told, as fast as it is taken."""
    with suppress(WebSocketDisconnect, RuntimeError):
        while True:
            await ready.wait()
            ready.clear()
            for message, buffers in session.messages():
                await socket.send_bytes(framed(message, buffers))


async def _in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    call: Awaitable[Any] = to_thread.run_sync(function, *arguments)
    return await call
