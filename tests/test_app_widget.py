"""The widget of notebooks: its Python side, and its module in Chromium beside a host's model."""

import base64
import time

import numpy as np
import pytest
from browser import PATIENCE, Hand, chromium, needs_chromium, patient
from drawings import picture, two_strokes
from setwise_widget_host import HOST, MODULE, PAGE, STYLE

import setwise as sw


@pytest.fixture
def widget():
    made = sw.app.SegmentWidget(picture(60, 80))
    yield made
    made.close()


def draw(widget):
    for stroke in two_strokes((60, 80)):
        widget._receive(widget, {"type": "stroke", "stroke": stroke.as_json()}, [])


def test_labels_certificate_and_alternatives(widget):
    assert widget.labels is None
    assert widget.alternatives is None
    assert widget.certificate == ""
    draw(widget)
    assert widget.certificate == "best for these strokes"
    marks = widget._entry.drawing.state().marks.astype(int)
    field = sw.images.field_from_image(picture(60, 80), marks, colors="histogram")
    np.testing.assert_array_equal(widget.labels, sw.solve_map(field).label_image)
    end = time.monotonic() + PATIENCE
    while widget.alternatives is None and time.monotonic() < end:
        time.sleep(0.01)
    assert widget.alternatives.shape == (6, 60, 80)
    np.testing.assert_array_equal(widget.alternatives[0], widget.labels)
    widget._receive(widget, {"type": "undo"}, [])
    widget._receive(widget, {"type": "undo"}, [])
    assert widget.labels is None


def test_numbers_from_0_to_1_and_grey_pictures():
    for image in (picture() / 255.0, picture()[..., 0], picture().tolist()):
        made = sw.app.SegmentWidget(image)
        assert made._entry.drawing.shape == (40, 56)
        made.close()
    with pytest.raises(ValueError, match="image must have shape"):
        sw.app.SegmentWidget(np.zeros((2, 2, 2, 2)))


FILES = {
    "": ("text/html", PAGE),
    "segment.js": ("text/javascript", MODULE),
    "segment.css": ("text/css", STYLE),
    "host.js": ("text/javascript", HOST),
}


def answer(route):
    kind, body = FILES[route.request.url.rsplit("/", 1)[1]]
    route.fulfill(content_type=kind, body=body)


@needs_chromium
def test_the_widget_in_a_browser(widget):
    told = []
    widget.send = lambda message, buffers=None: told.append((message, buffers or []))
    with chromium() as browser:
        page = patient(browser.new_page(viewport={"width": 900, "height": 700}))
        wrong = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.route("**/*", lambda route: route.abort())
        page.route("http://notebook.test/*", answer)
        page.expose_function("toPython", lambda message: widget._receive(widget, message, []))
        page.goto("http://notebook.test/")

        def pump(selector):
            end = time.monotonic() + PATIENCE
            while not page.locator(selector).count():
                assert time.monotonic() < end, (selector, wrong, told)
                while told:
                    message, buffers = told.pop(0)
                    packed = [base64.b64encode(buffer).decode() for buffer in buffers]
                    page.evaluate("([m, b]) => window.deliver(m, b)", [message, packed])
                page.wait_for_timeout(10)

        pump(".setwise-widget[data-ready=true]")
        hand = Hand(page, ".setwise-widget")
        hand.stroke(2, (0.45, 0.5), (0.55, 0.5))
        hand.stroke(1, (0.05, 0.1), (0.05, 0.9))
        pump(".setwise-widget[data-mask=final]")
        assert hand.words() == "best for these strokes"
        assert widget.labels[30, 40] == 1
        assert widget.labels[2, 2] == 0
        assert hand.color(0.5, 0.5)[0] > hand.color(0.5, 0.5)[2]
        pump(".setwise-widget [data-alternative='5']")
        page.locator("[data-alternative='2']").click()
        pump("text=best for these strokes and your choice")
        page.evaluate("window.leave()")  # what a host does when a cell is cleared
        assert not wrong
