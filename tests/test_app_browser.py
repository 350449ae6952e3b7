"""The page in a real browser. Where no Chromium is at hand these tests are skipped by name."""

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from browser import CHROMIUM, Hand, chromium, needs_chromium, patient, served
from drawings import picture
from page_screenshots import write_screenshots
from PIL import Image

from setwise.app._drawing._drawing import Drawing

pytestmark = needs_chromium

BLUE, ORANGE = (0, 114, 178), (230, 159, 0)


@pytest.fixture(scope="module")
def browser():
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def server():
    with served() as running:
        yield running


@pytest.fixture
def tab(browser, server):
    """A context whose pages may show no error and ask nobody else."""
    context = patient(browser.new_context(viewport={"width": 1000, "height": 720}))
    wrong = []

    def watch(page):
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on(
            "request",
            lambda asked: (
                asked.url.startswith(("data:", "blob:"))
                or f"//127.0.0.1:{server.port}/" in asked.url
                or wrong.append(asked.url)
            ),
        )
        page.on(
            "websocket",
            lambda opened: f"//127.0.0.1:{server.port}/" in opened.url or wrong.append(opened.url),
        )

    context.on("page", watch)
    context.wrong = wrong
    yield context
    context.close()
    assert not wrong


def drawing_on(server, image=None):
    return server.drawings.add(Drawing(picture(90, 120) if image is None else image)).key


def opened(tab, server, key):
    page = tab.new_page()
    page.goto(server.address(key))
    return Hand(page).ready()


def two_strokes(hand):
    hand.stroke(2, (0.4, 0.5), (0.6, 0.5))
    hand.stroke(1, (0.06, 0.1), (0.06, 0.9))
    hand.mask()


def is_like(color, wanted):
    return np.abs(np.subtract(color[:3], wanted)).max() < 120 and color[3] > 100


def test_from_two_strokes_to_a_mask_and_back(tab, server):
    hand = opened(tab, server, drawing_on(server))
    page = hand.page
    key = page.evaluate("location.hash")
    assert page.url == f"http://127.0.0.1:{server.port}/{key}"  # the token is not in it any more
    assert "draw a stroke" in hand.words()
    two_strokes(hand)
    assert hand.words() == "best for these strokes"
    statement = page.locator(".sw-statement")
    assert "no mask has a lower energy, given these strokes" in statement.inner_text()
    assert page.locator(".sw-proof").get_attribute("title") == statement.inner_text()
    assert re.search(r"\d+ ms · energy", page.locator(".sw-figures").inner_text())
    middle, corner = hand.color(0.5, 0.4), hand.color(0.9, 0.9)
    assert middle[0] > middle[2]  # orange
    assert corner[2] > corner[0]  # blue
    version = int(page.locator("#setwise-page").get_attribute("data-version"))
    page.get_by_role("button", name="Undo").click()
    hand.mask(version + 1)
    page.keyboard.press("z")
    page.wait_for_selector("#setwise-page[data-mask=none]")
    assert hand.color(0.5, 0.4)[3] == 0
    page.keyboard.press("y")
    page.keyboard.press("Control+y")
    hand.mask(version + 4)
    assert hand.color(0.5, 0.4) == middle
    assert page.get_by_role("button", name="Redo").is_disabled()


def test_an_alternative_is_taken_and_drawing_goes_on(tab, server):
    hand = opened(tab, server, drawing_on(server))
    two_strokes(hand)
    page = hand.page
    page.wait_for_selector("#setwise-page[data-alternatives=done]")
    strip = page.locator("[data-alternative]")
    assert strip.count() == 6
    assert "energy +" in strip.nth(1).inner_text()
    assert "%" in strip.nth(1).inner_text()
    version = int(page.locator("#setwise-page").get_attribute("data-version"))
    strip.nth(2).click()
    hand.mask(version + 1)
    assert hand.words() == "best for these strokes and your choice"
    hand.stroke(1, (0.9, 0.1), (0.9, 0.9))
    hand.mask()
    page.keyboard.press("z")
    page.keyboard.press("z")
    page.get_by_text("best for these strokes", exact=True).wait_for()


def test_uncertainty_shows_where_to_draw_next(tab, server):
    hand = opened(tab, server, drawing_on(server, picture(60, 80)))
    two_strokes(hand)
    page = hand.page
    page.get_by_role("button", name="Uncertainty").click()
    page.wait_for_selector("#setwise-page[data-uncertainty]")
    assert page.locator("canvas.sw-heat").is_visible()
    regions = page.locator(".sw-next li")
    if regions.count():
        assert "draw here next" in regions.first.inner_text()
        assert page.locator("path.sw-region").count() == regions.count()
    page.keyboard.press("u")
    assert not page.locator("canvas.sw-heat").is_visible()


def test_exports_are_what_is_seen(tab, server):
    key = drawing_on(server)
    hand = opened(tab, server, key)
    two_strokes(hand)
    labels = server.drawings.get(key).work.answer.labels
    page = hand.page

    def saved(name):
        with page.expect_download() as download:
            page.locator(f"[data-export='{name}']").click()
        with open(download.value.path(), "rb") as file:
            return file.read()

    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(saved("mask.png")))), labels + 1)
    np.testing.assert_array_equal(np.load(io.BytesIO(saved("mask.npy"))), labels)
    assert len(json.loads(saved("coco.json"))["annotations"]) == 2
    drawing = saved("drawing.json")
    page.get_by_role("button", name="Open…").click()
    page.locator("input[type=file]").set_input_files(
        {"name": "drawing.json", "mimeType": "application/json", "buffer": drawing}
    )
    hand.mask()
    fresh = server.drawings.get(page.evaluate("location.hash.slice(1)"))
    assert fresh.key != key
    np.testing.assert_array_equal(fresh.work.answer.labels, labels)


def test_a_reload_keeps_the_drawing(tab, server):
    hand = opened(tab, server, drawing_on(server))
    two_strokes(hand)
    before = hand.color(0.5, 0.4)
    hand.page.reload()
    hand.ready().mask()
    assert hand.color(0.5, 0.4) == before
    assert hand.page.get_by_role("button", name="Undo").is_enabled()
    marks = hand.page.evaluate(
        "(() => { const c = document.querySelector('canvas.sw-marks');"
        "return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(Boolean) })()"
    )
    assert marks


def test_two_tabs_have_two_drawings_or_share_one(tab, server):
    first = opened(tab, server, drawing_on(server))
    second = opened(tab, server, drawing_on(server))
    two_strokes(first)
    assert "draw a stroke" in second.words()
    shared = opened(tab, server, first.page.evaluate("location.hash.slice(1)"))
    shared.mask()
    shared.stroke(1, (0.9, 0.1), (0.9, 0.9))
    shared.mask()
    version = shared.page.locator("#setwise-page").get_attribute("data-version")
    first.mask(version)
    assert first.color(0.5, 0.4) == shared.color(0.5, 0.4)


def marked(hand):
    """Where strokes are painted, but for their soft borders."""
    found = hand.page.evaluate(
        "(() => { const c = document.querySelector('canvas.sw-marks');"
        "return [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]; })()"
    )
    return np.array(found).reshape(90, 120, 4)[..., 3] > 250


def test_tabs_of_one_drawing_show_the_same_strokes(tab, server):
    key = drawing_on(server)
    tabs = [opened(tab, server, key) for _ in range(2)]
    two_strokes(tabs[0])
    tabs[1].stroke(1, (0.9, 0.1), (0.9, 0.9))
    tabs[1].mask()
    before, sizes = server.drawings.get(key).drawing.version, []
    for turn, press in enumerate(("", "z", "z", "z", "y", "y", "z", "y", "y")):
        if press:
            tabs[turn % 2].page.bring_to_front()
            tabs[turn % 2].page.keyboard.press(press)
        version = before + turn
        for one in tabs:
            one.page.wait_for_selector(f"#setwise-page[data-version='{version}']")
        first, second = map(marked, tabs)
        assert np.count_nonzero(first != second) <= 0.1 * max(first.sum(), 10)
        sizes.append(first.sum())
    assert sizes[0] > sizes[1] > sizes[2] > sizes[3] == 0 < sizes[4] < sizes[5]
    assert sizes[8] >= 0.9 * sizes[0]


def test_pictures_come_by_choice_by_drop_and_by_paste(tab, server):
    page = tab.new_page()
    page.goto(server.address())
    page.wait_for_selector(".sw-start:not([hidden])")
    out = io.BytesIO()
    Image.fromarray(picture(30, 44)).save(out, "PNG")
    bring = """([kind, bytes, name]) => {
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(bytes)], name, {type: "image/png"}));
        const event = kind === "drop"
            ? new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true})
            : new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true});
        document.querySelector("#setwise-page").dispatchEvent(event);
    }"""
    for kind in ("drop", "paste"):
        page.evaluate(bring, [kind, list(out.getvalue()), "a.png"])
        Hand(page).ready()
        assert page.evaluate("document.querySelector('canvas.sw-picture').width") == 44
        page.reload()
        Hand(page).ready()
    page.locator("input[type=file]").set_input_files(
        {"name": "text.png", "mimeType": "image/png", "buffer": b"a text"}
    )
    page.wait_for_selector(".sw-note:not([hidden])")
    assert "must be a PNG, JPEG or TIFF" in page.locator(".sw-note").inner_text()
    tab.wrong[:] = [said for said in tab.wrong if "415" not in said]


def test_the_keyboard_alone_does_everything(tab, server):
    page = tab.new_page()
    page.goto(server.address())
    page.wait_for_selector("[data-sample]")

    def tab_to(selector):
        for _ in range(60):
            if page.evaluate("s => document.activeElement.matches(s)", selector):
                return
            page.keyboard.press("Tab")
        raise AssertionError(selector)

    tab_to("[data-sample=coins]")
    page.keyboard.press("Enter")
    hand = Hand(page).ready()
    assert page.evaluate("document.activeElement.matches('.sw-stage')")
    for label, way in (("2", "ArrowLeft"), ("1", "ArrowDown")):
        page.keyboard.press(label)
        page.keyboard.press("Space")
        for _ in range(6):
            page.keyboard.press(way)
        page.keyboard.press("Space")
        for _ in range(12):
            page.keyboard.press("Shift+ArrowRight")
    hand.mask()
    assert hand.words() == "best for these strokes"
    page.keyboard.press("x")
    page.keyboard.press("2")
    page.keyboard.press("Space")
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("Space")
    page.keyboard.press("z")  # not the box
    hand.mask()
    page.wait_for_selector("#setwise-page[data-alternatives]")
    page.keyboard.press("Alt+Digit2")
    page.get_by_text("best for these strokes and your choice").wait_for()
    for key in ("+", "-", "0", "h", "j", "]", "[", "e", "b", "u", "u"):
        page.keyboard.press(key)
    tab_to("[data-export='mask.png']")
    with page.expect_download():
        page.keyboard.press("Enter")
    page.keyboard.press("Shift+Tab")
    tab_to("[data-alternative='0']")
    page.get_by_role("button", name="Open…").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.matches('.sw-start input')")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.matches('.sw-stage')")
    assert not page.locator(".sw-start").is_visible()


def test_labels_differ_by_more_than_colour(tab, server):
    hand = opened(tab, server, drawing_on(server))
    prints = hand.page.evaluate(
        """() => [...document.querySelectorAll(".sw-swatch")].map((image) => {
            const c = document.createElement("canvas").getContext("2d");
            c.drawImage(image, 0, 0);
            const d = c.getImageData(0, 0, 16, 16).data;
            const first = d[0] + d[1] + d[2];
            return Array.from({length: 256}, (_, k) =>
                d[4 * k] + d[4 * k + 1] + d[4 * k + 2] === first ? "0" : "1").join("");
        })"""
    )
    assert len(set(prints)) == 9
    names = hand.page.locator(".sw-labels button").all_inner_texts()
    assert [name.strip() for name in names] == [str(k) for k in range(1, 10)]


@pytest.mark.parametrize(("width", "height"), [(360, 640), (480, 800), (600, 800), (800, 620)])
def test_it_fits_on_narrow_screens(tab, server, width, height):
    page = tab.new_page()
    page.set_viewport_size({"width": width, "height": height})
    page.goto(server.address(drawing_on(server)))
    hand = Hand(page).ready()
    stage = page.locator(".sw-stage").bounding_box()
    two_strokes(hand)
    hand.stroke(2, (0.2, 0.2), (0.3, 0.3))
    hand.mask()
    assert page.locator(".sw-stage").bounding_box() == stage  # words come and go beside it
    assert stage["height"] >= 200
    for part in ("html", "#setwise-page", ".sw-head", ".sw-tools"):
        sides = page.locator(part).evaluate("e => [e.scrollWidth, e.clientWidth]")
        assert sides[0] <= sides[1] <= width, part
    names = ("Undo", "Redo", "Clear", "Open…", "Brush", "Eraser", "Box")
    seen = [page.get_by_role("button", name=name) for name in names]
    seen += [page.locator(".sw-labels button").nth(k) for k in (0, 8)]
    seen += [page.locator(f".sw-{name}") for name in ("stage", "words", "figures", "statement")]
    for one in seen:
        box = one.bounding_box()
        assert box["x"] >= 0
        assert box["y"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] + box["height"] <= height


def test_a_stopped_server_is_said_in_a_sentence(tab):
    with served() as own:
        page = tab.new_page()
        page.goto(own.address(drawing_on(own)))
        Hand(page).ready()
    page.wait_for_selector(".sw-note:not([hidden])")
    assert "has ended: start it again" in page.locator(".sw-note").inner_text()
    page.keyboard.press("z")
    tab.wrong.clear()


def test_zoom_and_pan_keep_strokes_where_they_are_drawn(tab, server):
    key = drawing_on(server)
    hand = opened(tab, server, key)
    page = hand.page
    page.mouse.move(*hand.at(0.5, 0.5))
    page.mouse.wheel(0, -400)
    page.keyboard.press("h")
    hand.stroke(2, (0.5, 0.5))
    page.wait_for_selector("#setwise-page[data-version='1']")
    (step,) = server.drawings.get(key).drawing.steps
    ((x, y),) = step.stroke.points
    assert abs(x - 60) < 0.51
    assert abs(y - 45) < 0.51


def test_there_is_a_chromium():
    assert CHROMIUM


def test_the_pictures_of_the_documents_can_be_made_anew(tmp_path, browser, server):
    for path in write_screenshots(tmp_path, browser, server):
        committed = Path(__file__).parents[1] / "docs" / "images" / path.name
        with Image.open(path) as made, Image.open(committed) as shown:
            assert made.size == shown.size
