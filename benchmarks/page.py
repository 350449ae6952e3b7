"""The latency of a stroke on the page in Chromium: from the end of the stroke to the painted mask.

Strokes of a dozen points, a third of a second each, are drawn on a photograph (scikit-image's
astronaut), on the object with one label and beside it with the other; masks also arrive while the
pen moves. The clock is the browser's: it starts when the pen goes up, and stops when the frame with
the mask is presented. "first" is the first mask after that, which may be a preview at a reduced
size; "proved" is the mask of the whole picture, which is proved optimal. Server and browser run on
the same machine, on all of its cores.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Page, sync_playwright
from skimage import data

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import arguments, nothing_to_measure, report

GOALS = {(640, 480): 50.0, (1000, 1000): 100.0}
POINTS, SECONDS = 12, 1 / 3  # points and duration of a stroke
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
LISTEN = """() => { window.seen = []; document.querySelector("#setwise-page").addEventListener(
    "setwise:painted", (event) => window.seen.push(event.detail)); }"""


def measure(page: Page, strokes: int) -> dict[str, list[float]]:
    """Return the milliseconds to the first mask and to the proved one, stroke by stroke."""
    page.wait_for_selector("#setwise-page[data-ready=true]")
    page.evaluate(LISTEN)
    box = page.locator(".sw-paper").bounding_box()
    assert box is not None
    rng = np.random.default_rng(0)
    times: dict[str, list[float]] = {"first": [], "proved": [], "computed": [], "reduced": []}
    for number in range(strokes):
        label = 2 - number % 2
        start = anywhere(rng, inside=label == 2)
        page.keyboard.press(str(label))
        place = (box["x"] + start[0] * box["width"], box["y"] + start[1] * box["height"])
        page.mouse.move(*place)
        page.evaluate("() => { window.seen.length = 0 }")
        page.mouse.down()
        for share in np.linspace(0, 1, POINTS):  # the pen goes up while it moves
            page.wait_for_timeout(1000 * SECONDS / POINTS)
            page.mouse.move(place[0] + 20 * share, place[1] + 14 * share)
        page.mouse.up()
        page.wait_for_selector("#setwise-page[data-mask=final]")
        page.wait_for_timeout(50)
        seen = [one for one in page.evaluate("window.seen") if one["waited"] is not None]
        if number < 2:  # warm-up: both labels need a stroke, and the reduced sizes are made
            page.wait_for_timeout(1500)
            continue
        proved = next(one for one in seen if one["final"])
        times["first"].append(seen[0]["waited"])
        times["proved"].append(proved["waited"])
        times["computed"].append(proved["computed"])
        times["reduced"].append(float(seen[0]["factor"] > 1))
    return times


def anywhere(rng: np.random.Generator, *, inside: bool) -> tuple[float, float]:
    """Return a point on the astronaut, or beside her, relative to the sides."""
    while True:
        x, y = rng.uniform(0.05, 0.9, 2)
        on = ((x - 0.4) / 0.25) ** 2 + ((y - 0.75) / 0.45) ** 2
        if (on < 0.6) if inside else (on > 1.5 and y < 0.5):
            return float(x), float(y)


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    if CHROMIUM is None:
        nothing_to_measure("no chromium on the path, nor in $CHROMIUM: nothing to measure")
    strokes = 8 if args.quick else 22
    command = [sys.executable, "-m", "setwise", "app", "--no-browser"]
    table = [["picture", "mask", "median", "95 %", "goal", "met"]]
    found: dict[str, object] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path=CHROMIUM, args=["--no-sandbox"]
                )
                for (width, height), goal in GOALS.items():
                    page = browser.new_page(viewport={"width": 1200, "height": 860})
                    page.set_default_timeout(120_000)
                    page.goto(address)
                    photograph = Image.fromarray(data.astronaut()).resize((width, height))
                    out = io.BytesIO()
                    photograph.save(out, "PNG")
                    page.locator("input[type=file]").set_input_files(
                        {"name": "a.png", "mimeType": "image/png", "buffer": out.getvalue()}
                    )
                    times = measure(page, strokes)
                    found[f"{width} x {height}"] = times
                    for which in ("first", "proved"):
                        median, late = np.percentile(times[which], [50, 95])
                        goals = which == "first"
                        table.append(
                            [
                                f"{width} × {height}",
                                which,
                                f"{median:.0f} ms",
                                f"{late:.0f} ms",
                                f"{goal:.0f} ms" if goals else "",
                                ("yes" if late <= goal else "NO") if goals else "",
                            ]
                        )
                    page.close()
                browser.close()
        finally:
            server.terminate()
    measured = f"From the end of a stroke to the painted mask, in Chromium, {strokes - 2} strokes"
    report("page", table, found, measured=measured, quick=args.quick)


if __name__ == "__main__":
    main()
