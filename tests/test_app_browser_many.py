"""Drawings of random strokes in a real browser, one after the other, in one tab."""

import io

import numpy as np
import pytest
from browser import Hand, chromium, needs_chromium, patient, served
from drawings import picture
from PIL import Image

pytestmark = needs_chromium

SETTLED = ", ".join(f"#setwise-page[data-mask={what}]" for what in ("final", "none"))


class Tab:
    """A tab that opens pictures one after the other, and counts what goes wrong and what stays."""

    def __init__(self, browser, server):
        self.page = patient(browser.new_page(viewport={"width": 900, "height": 700}))
        self.wrong = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on(
            "console", lambda said: self.wrong.append(said.text) if said.type == "error" else None
        )
        self.page.goto(server.address())
        self.hand = Hand(self.page)
        self._metrics = self.page.context.new_cdp_session(self.page)
        self._metrics.send("Performance.enable")

    def open(self, image):
        out = io.BytesIO()
        Image.fromarray(image).save(out, "PNG")
        file = {"name": "a.png", "mimeType": "image/png", "buffer": out.getvalue()}
        self.page.locator("input[type=file]").set_input_files(file)
        self.hand.ready()

    def act(self, rng):
        """A stroke of any kind, or a step back or forth, or a look at something else."""
        press = self.page.keyboard.press
        match int(rng.integers(10)):
            case 0:
                press("z")
            case 1:
                press("y")
            case 2:
                press("u")
            case 3:
                press(f"Alt+Digit{rng.integers(2, 7)}")
            case _:
                press(str(rng.choice(list("bbbex"))))
                label = int(rng.integers(1, 4))
                self.hand.stroke(label, *rng.uniform(0.02, 0.98, (rng.integers(2, 5), 2)), steps=2)

    def held(self):
        """Nodes, listeners and bytes that the tab holds on to."""
        self._metrics.send("HeapProfiler.collectGarbage")
        found = self._metrics.send("Performance.getMetrics")["metrics"]
        numbers = {one["name"]: one["value"] for one in found}
        return [numbers[name] for name in ("Nodes", "JSEventListeners", "JSHeapUsedSize")]


def draw_many(number, actions, seed):
    """So many drawings; what the tab held after a tenth of them, and after all."""
    rng = np.random.default_rng(seed)
    with served() as server, chromium() as browser:
        tab, held = Tab(browser, server), []
        for drawing in range(number):
            tab.open(picture(*rng.integers(20, 60, 2), seed=drawing))
            for _ in range(actions):
                tab.act(rng)
            tab.page.wait_for_selector(SETTLED)
            if drawing in (number // 10, number - 1):
                held.append(tab.held())
        entries = tuple(server.drawings._entries.values())
        assert len(entries) == number
        assert sum(entry.watched for entry in entries) == 1  # the one that is shown
        assert sum(len(entry.drawing.steps) > 0 for entry in entries) > number // 2
        assert not tab.wrong
        assert not tab.page.locator(".sw-note").is_visible()
        return np.array(held)


def test_some_drawings_of_random_strokes():
    draw_many(3, 6, seed=1)


@pytest.mark.fuzz
def test_a_hundred_drawings_of_random_strokes_without_a_leak():
    early, late = draw_many(100, 8, seed=2)
    assert (late[:2] <= 1.2 * early[:2] + 100).all()
    assert late[2] <= early[2] + 10 * 2**20
