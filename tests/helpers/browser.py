"""Chromium by Playwright, and the page served from a thread of the test."""

import os
import shutil
import socket
import threading
import time
from contextlib import contextmanager

import pytest

from setwise.app._http_app import make_app
from setwise.app._http_server import server_for

CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
TOKEN = "the-token-of-the-tests"
PATIENCE = 300.0  # seconds: a test that hangs fails, however slow a loaded machine is

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is at hand")


class Served:
    """A running page."""

    token = TOKEN

    def __init__(self):
        self._socket = socket.socket(proto=socket.IPPROTO_TCP)  # as serve has it
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.app = make_app(TOKEN, self.port)
        self._server = server_for(self.app)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    @property
    def drawings(self):
        return self.app.state.drawings

    def address(self, key=None):
        return f"http://127.0.0.1:{self.port}/?token={TOKEN}" + (f"#{key}" if key else "")

    def stop(self):
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


@contextmanager
def served():
    page = Served()
    try:
        yield page
    finally:
        page.stop()


@contextmanager
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            yield browser
        finally:
            browser.close()


def patient(tab):
    """The page or the context, which waits long enough for a loaded machine."""
    tab.set_default_timeout(1000.0 * PATIENCE)
    return tab


class Hand:
    """Draws on a page as a person does."""

    def __init__(self, page, root="#setwise-page"):
        self.page, self.root = page, root

    def ready(self):
        self.page.wait_for_selector(f"{self.root}[data-ready=true]")
        return self

    def at(self, x, y):
        """A point of the picture, as shares of its sides, on the screen."""
        box = self.page.locator(f"{self.root} .sw-paper").bounding_box()
        return box["x"] + x * box["width"], box["y"] + y * box["height"]

    def stroke(self, label, *points, steps=4):
        self.page.bring_to_front()  # a tab behind another has no frames to wait for
        self.page.locator(f"{self.root} .sw-labels button").nth(label - 1).click()
        self.page.mouse.move(*self.at(*points[0]))
        self.page.mouse.down()
        for point in points[1:]:
            self.page.mouse.move(*self.at(*point), steps=steps)
        self.page.mouse.up()

    def mask(self, version=None):
        """Waits until the mask of a version is final."""
        which = f"[data-version='{version}']" if version is not None else ""
        self.page.wait_for_selector(f"{self.root}[data-mask=final]{which}")

    def words(self):
        return self.page.locator(f"{self.root} .sw-words").inner_text()

    def color(self, x, y):
        """Red, green, blue and opacity that the mask has somewhere."""
        return self.page.evaluate(
            """([root, x, y]) => {
                const c = document.querySelector(root + " canvas.sw-mask");
                const at = [Math.floor(x * c.width), Math.floor(y * c.height)];
                return [...c.getContext("2d").getImageData(...at, 1, 1).data];
            }""",
            [self.root, x, y],
        )
