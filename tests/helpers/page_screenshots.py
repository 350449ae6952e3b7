"""Pictures of the page for the documents: `python tests/helpers/page_screenshots.py docs/images`.

A test makes them too, into a folder of its own.
"""

import sys
from pathlib import Path

from browser import Hand, chromium, patient, served

STROKES = (
    (2, (0.41, 0.2), (0.45, 0.45), (0.35, 0.88)),
    (1, (0.11, 0.16), (0.06, 0.59)),
    (1, (0.7, 0.1), (0.9, 0.5)),
)


def write_screenshots(folder, browser, server):
    """The page at work in light colours, its doubts in dark ones at 800 pixels, its beginning."""
    written = []

    def shoot(page, name):
        path = Path(folder) / f"{name}.jpg"
        page.mouse.move(2, 2)
        page.screenshot(path=path, type="jpeg", quality=86)
        written.append(path)

    size = {"width": 1180, "height": 800}
    page = patient(browser.new_page(viewport=size, color_scheme="light"))
    page.goto(server.address())
    page.wait_for_selector("[data-sample]")
    page.wait_for_load_state("networkidle")
    shoot(page, "page_start")
    page.locator("[data-sample=astronaut]").click()
    hand = Hand(page).ready()
    for label, *points in STROKES:
        hand.stroke(label, *points)
    hand.mask()
    # A second time, now that everything is made: the milliseconds are then those of a stroke.
    page.keyboard.press("z")
    hand.mask()
    page.keyboard.press("y")
    hand.mask()
    page.wait_for_selector("#setwise-page[data-alternatives=done]")
    page.locator(".sw-stage").evaluate("stage => stage.blur()")
    shoot(page, "page")
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 800, "height": 660})
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Uncertainty").click()
    page.wait_for_selector("#setwise-page[data-uncertainty]")
    page.wait_for_selector(".sw-busy", state="hidden")
    shoot(page, "page_uncertainty")
    page.close()
    return written


if __name__ == "__main__":
    with served() as own, chromium() as chrome:
        print(*write_screenshots(sys.argv[1], chrome, own), sep="\n")
