"""What a watcher of a drawing is told, and in which order."""

from dataclasses import replace

import numpy as np
from drawings import Desk, line, picture, random_stroke, two_strokes

from setwise.app import _session
from setwise.app._drawing._answers import MaskAnswer
from setwise.app._drawings import Entry
from setwise.app._session import Session, box_of_changes, framed


class Table(Desk):
    """A desk with an entry, as sessions want one."""

    def __init__(self, image):
        super().__init__(image)
        self.entry = Entry("key", self.drawing, self.queue)
        self.work = self.entry.work

    def stroke(self, session, stroke, **more):
        session.receive({"type": "stroke", "stroke": stroke.as_json(), **more})


def test_a_watcher_that_never_asks_is_kept_a_handful_of_messages():
    table = Table(picture(20, 26))
    woken = []
    session = Session(table.entry, lambda: woken.append(1))
    session.begin()
    rng = np.random.default_rng(0)
    table.work.want("uncertainty", True)
    for number in range(60):
        table.stroke(session, random_stroke(rng, (20, 26)), n=number)
        session.receive({"type": "nonsense"})
        if number % 20 == 0:
            table.run()
    table.run()
    told = session.messages()
    assert len(told) <= 6 + 16
    kinds = [message["type"] for message, _ in told]
    assert kinds[0] == "drawing"
    assert len(set(kinds)) == len(kinds) - 15  # errors alone come more than once
    history = next(message for message, _ in told if message["type"] == "history")
    assert history["version"] == history["echo"] + 1 == 60
    assert len(history["steps"]) == 60  # no part of what was dropped is missing
    assert woken
    assert not session.messages()


def test_boxes_of_changes_add_up_to_the_mask():
    table = Table(picture())
    session = Session(table.entry, lambda: None)
    session.begin()
    rng = np.random.default_rng(1)
    mask = np.full(table.drawing.shape, 255, np.uint8)
    for stroke in (*two_strokes(mask.shape), *(random_stroke(rng, mask.shape) for _ in range(12))):
        table.stroke(session, stroke)
        table.run()
        for message, buffers in session.messages():
            if message["type"] != "labels":
                continue
            top, left, height, width = message["box"]
            part = np.frombuffer(buffers[0], np.uint8).reshape(height, width)
            mask[top : top + height, left : left + width] = part
        if not table.drawing.empty:
            np.testing.assert_array_equal(mask, table.work.answer.labels)
    session.begin()
    whole = [message["box"] for message, _ in session.messages() if message["type"] == "labels"]
    assert table.drawing.empty or whole == [(0, 0, *mask.shape)]


def test_the_box_is_the_least_one():
    rng = np.random.default_rng(2)
    for _ in range(50):
        before = rng.integers(0, 2, (5, 7)).astype(np.uint8)
        after = np.where(rng.random((5, 7)) < 0.1, 1 - before, before).astype(np.uint8)
        top, left, height, width = box_of_changes(before, after)
        changed = np.argwhere(before != after)
        if not len(changed):
            assert (top, left, height, width) == (0, 0, 0, 0)
            continue
        low, high = changed.min(axis=0), changed.max(axis=0)
        assert (top, left) == tuple(low)
        assert (height, width) == tuple(high - low + 1)


def test_an_answer_waits_for_the_version_it_answers():
    table = Table(picture())
    session = Session(table.entry, lambda: None)
    session.begin()
    session.messages()
    version = table.drawing.version + 1
    labels = np.zeros(table.drawing.shape, np.uint8)
    # A job that is under way may see a stroke before the one who drew it says so.
    table.entry.emit(MaskAnswer(version, labels, 1, 0.0, 0.0, 0.0, True, True, 0.0))
    assert not session.messages()
    table.stroke(session, line(1, (20.0, 20.0)), n=7)
    kinds = [(message["type"], message.get("echo")) for message, _ in session.messages()]
    assert kinds == [("history", 7), ("labels", None)]


def test_a_change_that_changes_nothing_is_told_too():
    table = Table(picture())
    session = Session(table.entry, lambda: None)
    session.begin()
    session.messages()
    session.receive({"type": "undo", "n": 3})
    [(message, _)] = session.messages()
    assert (message["type"], message["version"], message["echo"]) == ("history", 0, 3)


# ---- the history, as differences


class Reader:
    """A tab that follows the history as the page does."""

    def __init__(self, table):
        self.table, self.steps, self.drawn, self.sizes = table, [], {}, []
        self.session = Session(table.entry, lambda: None)
        self.session.begin()

    def stroke(self, stroke):
        self.drawn[stroke.key] = stroke.as_json()
        self.table.stroke(self.session, stroke)

    def read(self):
        while told := self.session.messages():
            for message, buffers in told:
                if message["type"] == "drawing":
                    self.steps = []
                if message["type"] == "history":
                    self.sizes.append(len(framed(message, buffers)))
                    new = [
                        step if "kind" in step else self.drawn[step["key"]]
                        for step in message["steps"]
                    ]
                    self.steps = [*self.steps[: message["keep"]], *new]
        return self.steps


def test_histories_that_are_told_as_differences_are_those_of_the_drawing(monkeypatch):
    monkeypatch.setattr(_session, "_POINTS_PER_MESSAGE", 12)
    rng = np.random.default_rng(11)
    table = Table(picture(20, 26))
    tabs = [Reader(table), Reader(table)]
    for number in range(300):
        which = int(rng.integers(2))
        tab = tabs[which]
        match rng.integers(8):
            case 0 | 1:
                tab.session.receive({"type": "undo"})
            case 2:
                tab.session.receive({"type": "redo"})
            case 3 if rng.random() < 0.2:
                tab.session.receive({"type": "clear"})
            case 4 if rng.random() < 0.2:
                tab.session.begin()
            case _:
                key = rng.choice(["", f"{which}-{number}", f"{which}-{number // 8}"])
                tab.stroke(replace(random_stroke(rng, (20, 26)), key=str(key)))
        for tab in tabs:
            if rng.random() < 0.5:
                tab.read()
    wanted = [
        step.stroke.as_json() if step.stroke else {"kind": "clear"} for step in table.drawing.steps
    ]
    assert len(wanted) > 20
    for tab in (*tabs, Reader(table)):
        assert tab.read() == wanted


def test_the_bytes_of_a_history_do_not_grow_with_its_length():
    table = Table(picture(20, 26))
    tab = Reader(table)
    points = tuple((k % 26 + 0.5, k % 20 + 0.5) for k in range(400))
    for number in range(100):
        tab.stroke(line(number % 2, *points, key=f"{number}"))
        tab.read()
    for _ in range(50):
        tab.session.receive({"type": "undo"})
        tab.read()
    for _ in range(50):
        tab.session.receive({"type": "redo"})
        tab.read()
    assert max(tab.sizes) < 300
    other = Reader(table)
    assert other.read() == tab.steps
    assert sum(other.sizes) > 100 * 400 * 10
    assert max(other.sizes) < 20 * (_session._POINTS_PER_MESSAGE + 400)
