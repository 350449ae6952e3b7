"""Opens the page on this machine."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import webbrowser
from contextlib import suppress
from pathlib import Path
from secrets import token_urlsafe
from threading import Thread, current_thread, main_thread
from typing import Any

from numpy.typing import ArrayLike

from setwise._foundation._arguments import as_count, as_flag
from setwise._foundation._imports import load
from setwise.app._decoding import decode, working_picture
from setwise.app._drawing import Drawing

# A message is a stroke; the longest has some hundred thousand points.
_MOST_BYTES_A_MESSAGE = 8 * 2**20


def serve(
    image: ArrayLike | str | os.PathLike[str] | None = None,
    *,
    port: int = 0,
    open_browser: bool = True,
) -> None:
    """Opens the page: scribble on a photograph, get a proved mask; until Ctrl-C.

    It listens on 127.0.0.1 alone. The first line that it prints is its address, which has a token
    in it, without which nobody gets in. Nothing is written to disk. In a notebook the cell runs
    until it is interrupted; ``SegmentWidget`` does not keep it.

    Parameters
    ----------
    image : str, path or array-like of shape (H, W) or (H, W, 3), optional
        A PNG, JPEG or TIFF file, or an array, to begin with.
    port : int
        By default a free one.
    open_browser : bool
        Whether to open the address in the browser.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.app.serve("photograph.png")  # doctest: +SKIP
    http://127.0.0.1:40123/?token=...
    """
    number = as_count(port, "port")
    if number > 65535:
        raise ValueError(f"port must be at most 65535, got {number}")
    shown = as_flag(open_browser, "open_browser")
    first = _first(image)
    try:
        uvicorn, make_app = load("uvicorn"), load("setwise.app._server").make_app
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("uvicorn", "starlette", "websockets", "anyio"):
            raise
        raise ImportError(
            f"setwise.app needs {missing}, which is not installed: pip install 'setwise[app]'"
        ) from error

    # With the protocol named asyncio sends small messages at once; else each may wait 40 ms for the
    # acknowledgement of the one before (Nagle).
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        if os.name == "posix":  # elsewhere it would let another program take the port too
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", number))
        except OSError as error:
            raise ValueError(f"port must be free, got {number}: {error.strerror}") from error
        number = listening.getsockname()[1]
        listening.listen()  # who is quick with the address waits, and is not turned away
        token = token_urlsafe(24)
        app = make_app(token, number)
        if first is not None:
            app.state.first = app.state.drawings.add(first).key
        address = f"http://127.0.0.1:{number}/?token={token}"
        print(address, flush=True)
        if shown:
            webbrowser.open(address)
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                ws="websockets-sansio",
                ws_max_size=_MOST_BYTES_A_MESSAGE,
                ws_per_message_deflate=False,
                timeout_graceful_shutdown=1,
                server_header=False,
            )
        )
        with suppress(KeyboardInterrupt):
            if _in_a_loop():
                _run_beside(server, listening)
            else:
                server.run(sockets=[listening])


def _in_a_loop() -> bool:
    """Whether an event loop runs in this thread, as one does in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_beside(server: Any, listening: socket.socket) -> None:
    """Runs the page in a thread with a loop of its own, and waits for its end or for Ctrl-C."""
    thread = Thread(target=server.run, kwargs={"sockets": [listening]}, name="setwise-page")
    in_front = current_thread() is main_thread()
    # The loop's own answer to Ctrl-C is to end its task, which waits here.
    before = signal.signal(signal.SIGINT, signal.default_int_handler) if in_front else None
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.2)
    finally:
        server.should_exit = True
        thread.join()
        if in_front:
            signal.signal(signal.SIGINT, before)


def _first(image: ArrayLike | str | os.PathLike[str] | None) -> Drawing | None:
    """The drawing to begin with."""
    if image is None:
        return None
    if isinstance(image, str | os.PathLike):
        path = Path(image)
        try:
            picture, original = decode(path.read_bytes())
        except OSError as error:
            raise ValueError(f"image must be a file that can be read: {error}") from error
        name = path.name
    else:
        picture, original = working_picture(image)
        name = "image"
    drawing = Drawing(picture, name)
    drawing.original = original
    return drawing
