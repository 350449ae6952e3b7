"""A function that serves the page on this machine."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import webbrowser
from contextlib import suppress
from copy import copy
from pathlib import Path
from secrets import token_urlsafe
from threading import Thread, current_thread, main_thread
from typing import Any

from numpy.typing import ArrayLike

from setwise._foundation._arguments import as_count, as_flag
from setwise._foundation._imports import load
from setwise.app._decoding import decode, working_picture
from setwise.app._drawing._drawing import Drawing


def serve(
    image: ArrayLike | str | os.PathLike[str] | None = None,
    *,
    guarantee: Any = None,
    port: int = 0,
    open_browser: bool = True,
) -> None:
    """Serve a page for scribbling on photographs and getting proved masks, until Ctrl-C.

    The server listens on 127.0.0.1 only. Its first line of output is the address, with a token that
    every client needs. The page exchanges the token for a cookie and removes it from the address of
    the browser. The browser that is opened here gets a code that works once instead. Nothing is
    written to disk. In a notebook the cell runs until it is interrupted, unlike
    ``SegmentWidget``.

    Parameters
    ----------
    image : str, path or array-like of shape (H, W) or (H, W, 3), optional
        The first picture: a PNG, JPEG or TIFF file, or an array.
    guarantee : str, path or ConformalMasks, optional
        A predictor of ``sw.conformal`` that was calibrated on fields, or its file. The page shows
        its inner and outer masks for drawings with two labels, the second of which is the object.
    port : int
        The port. By default any free port is used.
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
    model = as_guarantee(guarantee)
    try:
        load("uvicorn")
        make_app = load("setwise.app._http_app").make_app
        server_for = load("setwise.app._http_server").server_for
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("uvicorn", "starlette", "websockets", "anyio"):
            raise
        raise ImportError(
            f"setwise.app needs {missing}, which is not installed: pip install 'setwise[app]'"
        ) from error

    # With the protocol named, asyncio sends small messages immediately. Otherwise each may wait
    # 40 ms for the acknowledgement of the one before (Nagle's algorithm).
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        if os.name == "posix":  # on Windows another program could take the port too
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", number))
        except OSError as error:
            raise ValueError(f"port must be free, got {number}: {error.strerror}") from error
        number = listening.getsockname()[1]
        listening.listen()  # a client that connects before the server starts waits
        token = token_urlsafe(24)
        app = make_app(token, number)
        app.state.drawings.guarantee = model
        if first is not None:
            app.state.first = app.state.drawings.add(first).key
        page = f"http://127.0.0.1:{number}/"
        print(f"{page}?token={token}", flush=True)
        if shown:  # other users can see the command line, so its code works only once
            webbrowser.open(f"{page}?once={app.state.keys.code}")
        server = server_for(app)
        with suppress(KeyboardInterrupt):
            if _in_a_loop():
                _run_beside(server, listening)
            else:
                server.run(sockets=[listening])


def _in_a_loop() -> bool:
    """Return whether an event loop runs in this thread, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_beside(server: Any, listening: socket.socket) -> None:
    """Run the page in a thread with its own event loop, and wait for its end or Ctrl-C."""
    thread = Thread(target=server.run, kwargs={"sockets": [listening]}, name="setwise-page")
    in_front = current_thread() is main_thread()
    # The running loop would answer Ctrl-C by cancelling its task, which waits here.
    before = signal.signal(signal.SIGINT, signal.default_int_handler) if in_front else None
    try:
        thread.start()  # Ctrl-C may come while it waits for the thread to begin
        while thread.is_alive():
            thread.join(0.2)
    finally:
        server.should_exit = True
        if thread.ident is not None:
            thread.join()
        if in_front:
            signal.signal(signal.SIGINT, before)


def as_guarantee(guarantee: Any) -> Any:
    """Return a predictor of masks of fields, loaded from its file if a path is given, or None."""
    if guarantee is None:
        return None
    conformal = load("setwise.conformal")  # loaded on demand, because it needs scikit-learn
    model = guarantee
    if isinstance(guarantee, str | os.PathLike):
        try:
            model = conformal.load(guarantee)
        except OSError as error:
            raise ValueError(f"guarantee must be a file that can be read: {error}") from error
    if not isinstance(model, conformal.ConformalMasks):
        raise TypeError(
            f"guarantee must be a ConformalMasks or its file, got {type(model).__name__}"
        )
    if any(isinstance(control, dict) for control in model.controls_.values()):
        raise ValueError("guarantee must be calibrated without groups, got one with groups")
    if model.kind_ != "bias path":
        raise ValueError(f"guarantee must be calibrated on fields, got one for {model.kind_}")
    own: Any = copy(model)
    own.__dict__.pop("estimator_", None)
    return own.set_params(estimator=None)  # the page itself makes the fields


def _first(image: ArrayLike | str | os.PathLike[str] | None) -> Drawing | None:
    """Return the first drawing, or None."""
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
