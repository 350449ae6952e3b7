"""The core of the page: strokes, undo, versions, answers, alternatives, many drawings."""

import gc
import json
import time
import weakref
from concurrent.futures import CancelledError
from dataclasses import replace
from threading import Event, Thread
from types import SimpleNamespace

import numpy as np
import pytest
from drawings import Desk, Queue, line, picture, random_stroke, two_strokes

import setwise as sw
from setwise.app._drawing import _jobs, _strokes
from setwise.app._drawing._answers import (
    AlternativeList,
    Failed,
    MaskAnswer,
    UncertaintyMap,
    as_percent,
)
from setwise.app._drawing._drawing import Drawing
from setwise.app._drawing._levels import (
    CUT_BYTES,
    LEVEL_BYTES,
    ImageLevel,
    State,
    enlarged,
    factor_for,
)
from setwise.app._drawing._memory import MemoryBudget
from setwise.app._drawing._strokes import MOST_LABELS, Stroke, draw
from setwise.app._drawings import Drawings, Workers
from setwise.app._exports import drawing_bytes, drawing_from_json, drawing_json
from setwise.app._session import Session


def test_a_stroke_is_the_pixels_near_its_line():
    rng = np.random.default_rng(0)
    shape = (23, 31)
    y, x = np.mgrid[: shape[0], : shape[1]] + 0.5
    for _ in range(50):
        stroke = random_stroke(rng, shape)
        if stroke.kind == "box":
            continue
        marks = np.full(shape, 7, np.int8)
        draw(marks, stroke)
        near = np.zeros(shape, bool)
        ends = np.array(stroke.points)
        for (x0, y0), (x1, y1) in zip(ends, ends[1:] if len(ends) > 1 else ends, strict=False):
            along = ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / max(
                (x1 - x0) ** 2 + (y1 - y0) ** 2, 1e-300
            )
            along = np.clip(along, 0, 1)
            away = np.hypot(x - x0 - along * (x1 - x0), y - y0 - along * (y1 - y0))
            near |= away <= stroke.radius
            if 0 <= y0 < shape[0] and 0 <= x0 < shape[1]:
                near[int(y0), int(x0)] = True  # a thin pen draws too
        wanted = np.where(near, -1 if stroke.kind == "erase" else stroke.label, 7)
        np.testing.assert_array_equal(marks, wanted)


def state_of(drawing):
    state = drawing.state()
    return state.marks.tobytes(), state.boxes, len(state.tilts), state.smoothness


def test_undo_and_redo_are_steps_on_one_path():
    rng = np.random.default_rng(1)
    drawing = Drawing(picture())
    path, at = [state_of(drawing)], 0
    for _ in range(300):
        before = drawing.version
        match rng.integers(5):
            case 0:
                assert drawing.undo() == (at > 0)
                at = max(at - 1, 0)
            case 1:
                assert drawing.redo() == (at + 1 < len(path))
                at = min(at + 1, len(path) - 1)
            case 2 if rng.random() < 0.1:
                drawing.clear()
                path[at + 1 :] = [state_of(drawing)]
                at += 1
            case _:
                drawing.add(random_stroke(rng, drawing.shape, 3))
                path[at + 1 :] = [state_of(drawing)]
                at += 1
        assert state_of(drawing) == path[at]
        assert (drawing.can_undo, drawing.can_redo) == (at > 0, at + 1 < len(path))
        assert drawing.version >= before


def test_a_growing_stroke_is_one_step():
    drawing, once = Drawing(picture()), Drawing(picture())
    points = ((5.0, 5.0), (20.0, 9.0), (30.0, 30.0))
    for k in range(1, 4):
        drawing.add(line(1, *points[:k], key="a"))
    assert drawing.version == drawing.add(line(1, *points, key="a"))  # the pen rested
    assert drawing.version == 3
    once.add(line(1, *points))
    assert state_of(drawing) == state_of(once)
    assert drawing.undo()
    assert drawing.empty
    assert not drawing.undo()


def test_a_drawing_comes_back_from_json():
    rng = np.random.default_rng(2)
    desk = Desk(picture())
    desk.draw(*two_strokes(desk.drawing.shape))
    desk.run()
    desk.work.take(1)
    for _ in range(5):
        desk.drawing.add(random_stroke(rng, desk.drawing.shape))
    desk.drawing.set_smoothness(2.5)
    assert json.loads(drawing_bytes(desk.drawing)) == drawing_json(desk.drawing)
    again = drawing_from_json(drawing_json(desk.drawing))
    assert state_of(again) == state_of(desk.drawing)
    np.testing.assert_array_equal(again.image, desk.drawing.image)
    assert again.state().tilts == desk.drawing.state().tilts


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "spray"},
        {"label": 9},
        {"label": True},
        {"radius": 0},
        {"radius": float("nan")},
        {"points": []},
        {"points": [[1]]},
        {"points": [[1, "a"]]},
        {"points": [[1e300, 0]]},
        {"key": "x" * 65},
    ],
)
def test_strokes_that_are_none_are_refused_in_a_sentence(wrong):
    with pytest.raises(ValueError, match="must"):
        Stroke.read({"points": [[1.0, 1.0]], **wrong})


# ---- answers


def best(desk):
    answers = [event for event in desk.events if isinstance(event, MaskAnswer)]
    return answers[-1]


def test_two_labels_have_the_best_labelling_of_the_field_from_the_image():
    rng = np.random.default_rng(3)
    image = picture()
    desk = Desk(image)
    desk.draw(*two_strokes(desk.drawing.shape))
    for _ in range(6):  # warm: every cut starts from the one before
        desk.run()
        state = desk.drawing.state()
        field = sw.images.field_from_image(image, state.marks.astype(int), colors="histogram")
        wanted, found = sw.solve_map(field), best(desk)
        assert found.exact
        assert found.final
        assert found.version == state.version
        np.testing.assert_allclose(found.value, wanted.value, rtol=1e-10)
        np.testing.assert_array_equal(found.labels, wanted.label_image)
        own = desk.drawing.level().field(state)
        np.testing.assert_array_equal(own.unary, field.unary)
        stroke = random_stroke(rng, desk.drawing.shape)
        desk.draw(line(stroke.label, *stroke.points, radius=1.0))


def test_three_labels_are_within_what_is_said():
    image = picture()
    desk = Desk(image)
    desk.draw(*two_strokes(desk.drawing.shape), line(5, (50.0, 30.0), (50.0, 36.0)))
    desk.run()
    state = desk.drawing.state()
    assert state.labels == (0, 1, 5)
    found = best(desk)
    assert set(np.unique(found.labels)) <= {0, 1, 5}
    field = desk.drawing.level().field(state)
    labels = np.searchsorted(state.labels, found.labels.ravel())
    np.testing.assert_allclose(field.energy(labels), found.value, rtol=1e-9)
    assert found.final
    assert found.bound <= sw.solve_map(field).value + 1e-6
    assert found.value - found.bound <= 2e-3 * abs(found.value)
    assert (state.marks < 0).all() or (found.labels == state.marks)[state.marks >= 0].all()


def test_a_box_is_what_grabcut_finds():
    image = picture()
    desk = Desk(image)
    desk.draw(line(1, (10.0, 4.0), (46.0, 36.0), kind="box"))
    desk.run()
    field = sw.images.field_from_image(image, boxes=[4, 10, 36, 46], colors="histogram")
    np.testing.assert_array_equal(best(desk).labels, sw.solve_map(field).label_image)


def test_the_first_look_of_a_large_picture_is_nearly_the_answer():
    desk = Desk(picture(340, 420))
    assert desk.drawing.quick_factor > 1
    desk.draw(*two_strokes(desk.drawing.shape))
    desk.queue.run(1)
    look = best(desk)
    assert look.factor == desk.drawing.quick_factor
    assert not look.final
    desk.work.want("alternatives", False)
    desk.queue.run()
    assert best(desk).factor == 1
    wide = enlarged(look.labels, desk.drawing.shape, look.factor)
    assert (wide == best(desk).labels).mean() > 0.98


def test_shares_are_rounded_upwards_in_words():
    assert as_percent(0.003) == "0.3 %"
    assert as_percent(0.00291) == "0.3 %"
    assert as_percent(0.00301) == "0.4 %"
    assert as_percent(0.03) == "3 %"
    assert as_percent(0.12001) == "13 %"
    assert as_percent(0.0000421) == "0.005 %"


def test_the_certificate_in_words():
    answer = MaskAnswer(1, np.zeros((2, 2), np.uint8), 1, 5.0, 5.0, 0.0, True, True, 0.01)
    assert answer.words == "best for these strokes"
    loose = MaskAnswer(1, answer.labels, 1, 5.0, 4.9, 0.003, False, True, 0.01)
    assert loose.words == "at most 0.3 % from the best for these strokes"
    assert answer.statement == (
        "proved: no mask has a lower energy, given these strokes, their colours and the smoothness"
    )
    assert "a lower energy by more than 0.3 %, given these strokes" in loose.statement
    chosen = replace(loose, chosen=True)
    assert chosen.words == "at most 0.3 % from the best for these strokes and your choice"
    assert "your choice and the smoothness" in chosen.statement
    assert replace(answer, factor=2).statement == ""
    assert replace(loose, relative_gap=np.inf).statement == ""


# ---- alternatives and uncertainty


def test_an_alternative_that_is_taken_is_the_best_labelling_from_then_on():
    desk = Desk(picture())
    desk.draw(*two_strokes(desk.drawing.shape))
    desk.run()
    listed = desk.work.alternatives
    assert listed.items[0].words == "the best one"
    assert len(listed.items) == 6
    np.testing.assert_array_equal(listed.items[0].labels, best(desk).labels)
    assert all(item.above >= 0 for item in listed.items)
    chosen = listed.items[3]
    desk.work.take(3)
    desk.work.changed()
    desk.run()
    np.testing.assert_array_equal(best(desk).labels, chosen.labels)
    assert best(desk).words == "best for these strokes and your choice"
    desk.drawing.undo()
    desk.work.changed()
    desk.run()
    np.testing.assert_array_equal(best(desk).labels, listed.items[0].labels)
    with pytest.raises(ValueError, match="there is no alternative 7"):
        desk.work.take(6)


def test_an_alternative_of_three_labels_is_kept_too():
    desk = Desk(picture(24, 30))
    desk.draw(line(1, (15.0, 12.0)), line(0, (2.0, 2.0)), line(2, (27.0, 20.0)))
    desk.run()
    listed = desk.work.alternatives
    chosen = listed.items[1]
    desk.work.take(1)
    desk.work.changed()
    desk.run()
    agree = (best(desk).labels == chosen.labels).mean()
    assert agree > (best(desk).labels == listed.items[0].labels).mean()
    assert agree > 0.95


def test_uncertainty_is_the_entropy_of_the_marginals():
    desk = Desk(picture())
    desk.work.want("uncertainty", True)
    desk.draw(*two_strokes(desk.drawing.shape))
    desk.run()
    found = desk.work.uncertainty
    post = sw.marginals(desk.drawing.level().field(desk.drawing.state()), tol=1e-2, dtype="float32")
    heat = 255 * post.entropy.reshape(desk.drawing.shape) / np.log(2)
    np.testing.assert_allclose(found.heat, heat, atol=1.0)
    marked = desk.drawing.state().marks >= 0
    assert not found.heat[marked].any()
    assert all(region.entropy >= 0.25 for region in found.regions)


# ---- versions and cancellation


def test_a_late_answer_to_an_old_stroke_is_dropped(monkeypatch):
    desk = Desk(picture())
    first, second = two_strokes(desk.drawing.shape)
    desk.work.want("alternatives", False)
    desk.draw(first)
    solve = ImageLevel.solve

    def slow(level, state):
        if desk.drawing.version == 1:
            desk.draw(second)  # while the answer to the first is computed
        return solve(level, state)

    monkeypatch.setattr(ImageLevel, "solve", slow)
    desk.run()
    assert [event.version for event in desk.events] == [2]
    assert desk.work.idle


def test_a_new_stroke_ends_the_alternatives_of_the_old_one():
    desk = Desk(picture())
    first, second = two_strokes(desk.drawing.shape)
    desk.draw(first, second)
    more = line(0, (50.0, 3.0), (52.0, 30.0))

    def hook(event):
        if type(event).__name__ == "Working" and event.version == 2:
            desk.hook = None
            desk.draw(more)

    desk.hook = hook
    desk.run()
    lists = [event for event in desk.events if isinstance(event, AlternativeList)]
    assert [listed.version for listed in lists] == [3]
    assert not any(isinstance(event, Failed) for event in desk.events)


def test_cancellation_reaches_into_the_kernels():
    drawing = Drawing(picture(300, 300))
    for stroke in (*two_strokes(drawing.shape), line(2, (250.0, 250.0))):
        drawing.add(stroke)
    drawings = Drawings()
    entry = drawings.add(drawing)
    seen = []
    entry.watch(seen.append)
    entry.work.want("uncertainty", True)
    entry.work.changed()
    wait(lambda: any(isinstance(event, MaskAnswer) and event.factor == 1 for event in seen))
    drawing.clear()
    entry.work.changed()
    wait(lambda: entry.work.idle, 5.0)
    assert not any(isinstance(event, Failed) for event in seen)
    drawings.close()


def wait(holds, seconds=30.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def is_idle(work):
    return lambda: work.idle


def all_idle(entries):
    return lambda: all(entry.work.idle for entry in entries)


def test_what_goes_wrong_is_told(monkeypatch):
    desk = Desk(picture())
    monkeypatch.setattr(ImageLevel, "solve", lambda level, state: 1 / 0)
    desk.draw(line(1, (20.0, 20.0)))
    desk.run()
    assert desk.kinds() == ["Failed"]
    assert "ZeroDivisionError" in desk.events[0].words
    assert desk.work.idle


# ---- many drawings


def test_drawings_keep_within_their_memory():
    one = Drawing(picture(60, 80))
    most = one.most_nbytes
    drawings = Drawings(memory_limit=3 * most)
    entries = []
    for seed in range(12):
        entry = drawings.add(Drawing(picture(60, 80, seed)))
        entry.watch(lambda event: None)
        for stroke in two_strokes(entry.drawing.shape):
            entry.drawing.add(stroke)
        entry.drawing.level().solve(entry.drawing.state())
        entries.append(entry)
        assert drawings.nbytes <= drawings.memory_limit
    assert len(drawings) == 12  # all are there, the older ones without their levels
    first = drawings.get(entries[0].key)
    assert first is entries[0]
    assert first.drawing.level().solve(first.drawing.state()).exact
    assert drawings.nbytes <= drawings.memory_limit
    drawings.close()


def test_drawings_that_nobody_watches_are_forgotten_and_the_others_not():
    small = Drawing(picture(60, 80))
    drawings = Drawings(memory_limit=int(1.5 * small.most_nbytes))
    watched = drawings.add(small)
    watched.watch(lambda event: None)
    keys = [drawings.add(Drawing(picture(60, 80, k))).key for k in range(80)]
    assert drawings.get(watched.key) is watched
    assert drawings.get(keys[0]) is None
    assert drawings.get(keys[-1]) is not None
    with pytest.raises(MemoryError, match="MiB"):
        drawings.add(Drawing(picture(200, 200)))
    assert drawings.get("nothing") is None
    drawings.close()


def test_a_hundred_drawings_of_random_strokes_leave_nothing_behind():
    rng = np.random.default_rng(5)
    drawings = Drawings(memory_limit=40 * 2**20)
    failed, alive = [], []
    for seed in range(100):
        entry = drawings.add(Drawing(picture(20, 26, seed)))
        alive.append(weakref.ref(entry.drawing))
        stop = entry.watch(lambda event: failed.append(event) if isinstance(event, Failed) else 0)
        entry.work.want("uncertainty", bool(seed % 10 == 0))
        entry.work.want("alternatives", bool(seed % 5 == 0))
        for _ in range(6):
            entry.drawing.add(random_stroke(rng, entry.drawing.shape, 2 + seed % 3))
            entry.work.changed()
            if rng.random() < 0.3:
                entry.drawing.undo()
                entry.work.changed()
        wait(is_idle(entry.work))
        answer = entry.work.answer
        assert entry.drawing.empty or answer.version == entry.drawing.version
        stop()
    assert not failed
    del entry, stop, answer
    drawings.close()
    del drawings
    wait(lambda: gc.collect() is not None and not any(ref() for ref in alive))


def test_nothing_is_shared_between_drawings():
    first, second = Desk(picture()), Desk(picture())
    first.draw(*two_strokes(first.drawing.shape))
    first.run()
    second.run()
    assert second.drawing.empty
    assert not second.events
    assert MOST_LABELS == 9
    assert factor_for((480, 640), 80_000) == 2
    assert isinstance(State(0, first.drawing.state().marks).labels, tuple)
    assert not isinstance(first.work.uncertainty, UncertaintyMap)


# ---- memory


def test_nothing_is_computed_for_drawings_whose_tabs_are_closed(monkeypatch):
    made = []
    make = ImageLevel.__init__
    monkeypatch.setattr(
        ImageLevel, "__init__", lambda level, *given: (made.append(level), make(level, *given))[1]
    )
    drawings = Drawings()
    drawings._workers = queue = Queue()
    for seed in range(40):
        entry = drawings.add(Drawing(picture(40, 56, seed)))
        session = Session(entry, lambda: None)
        session.begin()
        for stroke in two_strokes((40, 56)):
            session.receive({"type": "stroke", "stroke": stroke.as_json()})
        assert queue.jobs
        session.close()
        assert not queue.jobs
        assert entry.work.idle
    queue.run()
    assert not made
    assert drawings.nbytes == sum(one.drawing.nbytes for one in drawings._entries.values())
    session = Session(entry, lambda: None)  # somebody comes back
    session.begin()
    queue.run()
    assert entry.work.answer.exact
    drawings.close()


def test_what_is_counted_never_exceeds_the_limit_and_is_no_less_than_what_there_is(monkeypatch):
    levels, cuts = weakref.WeakSet(), weakref.WeakSet()
    make, cut = ImageLevel.__init__, ImageLevel._cut

    def made(level, *given):
        make(level, *given)
        levels.add(level)

    def solved(level, *given):
        found = cut(level, *given)
        if level.cut is not None:
            cuts.add(level.cut)
        return found

    monkeypatch.setattr(ImageLevel, "__init__", made)
    monkeypatch.setattr(ImageLevel, "_cut", solved)
    limit = int(3.2 * Drawing(picture(60, 80)).most_nbytes)
    drawings = Drawings(memory_limit=limit)
    entries = [drawings.add(Drawing(picture(60, 80, seed))) for seed in range(12)]
    for number, entry in enumerate(entries):
        entry.watch(lambda event: None)
        for stroke in two_strokes((60, 80)):
            entry.drawing.add(stroke)
        if number % 4 == 0:
            entry.drawing.add(line(2, (70.0, 50.0)))
        entry.work.changed()
    for entry in entries:
        wait(lambda work=entry.work: work.answer is not None)
    wait(all_idle(entries))
    assert drawings.memory.most <= limit
    held = LEVEL_BYTES * sum(level.n for level in levels) + CUT_BYTES * 60 * 80 * len(cuts)
    assert held + sum(entry.drawing.nbytes for entry in entries) == drawings.nbytes <= limit
    assert len(levels) < 12  # there is no room for all
    memory = drawings.memory
    del entry, entries, made, solved
    drawings.close()
    del drawings
    wait(lambda: gc.collect() is not None and memory.used == 0)


def test_a_drawing_that_is_forgotten_is_freed_at_once():
    most = Drawing(picture(60, 80)).most_nbytes
    drawings = Drawings(memory_limit=2 * most)
    gc.disable()  # whose help is not needed
    try:
        first = None
        while first is None or first() is not None:
            assert len(drawings) < 100
            entry = drawings.add(Drawing(picture(60, 80)))
            session = Session(entry, lambda: None)
            session.begin()
            session.receive({"type": "stroke", "stroke": two_strokes((60, 80))[0].as_json()})
            session.close()
            first = first or weakref.ref(entry.drawing)
            wait(is_idle(entry.work))
        assert drawings.nbytes <= 2 * most
    finally:
        gc.enable()
    drawings.close()


def test_drawings_that_nobody_closes_are_freed_too():
    drawings = Drawings()
    entry = drawings.add(Drawing(picture()))
    session = Session(entry, lambda: None)
    session.begin()
    session.receive({"type": "stroke", "stroke": line(1, (9.0, 9.0)).as_json()})
    wait(is_idle(entry.work))
    gone = weakref.ref(entry.drawing), weakref.ref(entry.drawing.level())
    del drawings, entry, session
    wait(lambda: gc.collect() is not None and not any(ref() for ref in gone))


def test_a_history_is_counted_and_a_stroke_that_does_not_fit_changes_nothing():
    drawing = Drawing(picture())
    memory = MemoryBudget(drawing.nbytes + 20 * 40 * 56 + 20_000)
    drawing.count_in(memory)
    before, rng, refused = memory.used, np.random.default_rng(7), None
    while refused is None:
        kept = state_of(drawing), drawing.version
        try:
            drawing.add(random_stroke(rng, drawing.shape))
        except MemoryError as error:
            refused = str(error)
        assert memory.used == before + drawing.steps[-1].total <= memory.limit
    assert "close another one first" in refused
    assert (state_of(drawing), drawing.version) == kept
    total = drawing.steps[-1].total
    while drawing.undo():
        assert memory.used == before + total  # of what may be done again
    drawing.add(line(1, (3.0, 3.0)))
    assert memory.used == before + drawing.steps[-1].total
    drawing.clear()
    assert memory.used == before + drawing.steps[-1].total


def test_many_labels_are_found_at_a_reduced_size_where_memory_allows_no_more():
    desk = Desk(picture(60, 80))
    drawing = desk.drawing
    memory = MemoryBudget(drawing.most_nbytes + 10_000)
    drawing.count_in(memory)
    desk.work.want("alternatives", False)
    desk.draw(*two_strokes(drawing.shape))
    desk.run()
    assert best(desk).exact
    desk.draw(line(2, (70.0, 50.0)))
    desk.run()
    found = best(desk)
    assert (found.coarse, found.final, found.exact) == (2, True, False)
    assert found.words == "found at 1/2 of its size: all of it takes too much memory"
    marks = drawing.state().marks
    assert (found.labels == marks)[marks >= 0].all()
    assert not any(isinstance(event, Failed) for event in desk.events)
    assert memory.most <= memory.limit
    drawing.undo()
    desk.work.changed()
    desk.run()
    assert best(desk).words == "best for these strokes"


def test_a_job_waits_for_the_memory_of_another_and_not_for_its_own():
    memory = MemoryBudget(100)
    with pytest.raises(MemoryError), memory.holding(lambda: 101):
        pass
    order = []

    def first():
        with memory.holding(lambda: 80, "first"):
            order.append("first")
            wait(lambda: "asked" in order)
            order.append("given back")

    thread = Thread(target=first)
    thread.start()
    wait(lambda: order == ["first"])
    with memory.holding(lambda: 60, "second", lambda: order.append("asked")):
        assert "given back" in order
        assert memory.used == 60
    thread.join()
    assert memory.used == 0
    assert memory.most == 80


def test_a_job_that_can_wait_lets_no_drawing_be_forgotten():
    drawings = Drawings(memory_limit=3 * Drawing(picture(60, 80)).most_nbytes)
    unwatched = drawings.add(Drawing(picture(60, 80))).key
    entry = drawings.add(Drawing(picture(60, 80)))
    free, checks = drawings.memory_limit - drawings.nbytes, []
    begun, go = Event(), Event()

    def first():
        with drawings.memory.holding(lambda: free):
            begun.set()
            go.wait(30)

    thread = Thread(target=first)
    thread.start()
    begun.wait(30)
    with drawings.memory.holding(lambda: 1000, entry.drawing, lambda: (checks.append(1), go.set())):
        assert drawings.get(unwatched) is not None
    thread.join()
    assert checks
    with drawings.memory.holding(lambda: free + 1000, entry.drawing):
        assert drawings.get(unwatched) is None
    drawings.close()


# ---- threads


class Slow:
    """An owner whose jobs last until they are let go."""

    def __init__(self, begun, name):
        self.begun, self.name, self.go = begun, name, Event()

    def run(self, job):
        self.begun.append((self.name, job))
        self.go.wait(30)


def test_no_drawing_and_no_background_occupies_all_threads():
    begun = []
    workers = Workers(3, "test")
    one, two, three, four = (Slow(begun, name) for name in "abcd")
    for number in range(5):
        workers.submit(one, f"{number}", urgent=True)
    wait(lambda: len(begun) == 2)
    workers.submit(two, "rest", urgent=False)
    wait(lambda: begun[2:] == [("b", "rest")])
    workers.submit(three, "rest", urgent=False)
    workers.submit(four, "mask", urgent=True)
    assert workers.drop(three) == ["rest"]
    workers.submit(three, "rest", urgent=False)
    two.go.set()
    wait(lambda: begun[3:] == [("d", "mask")])  # before all that is not urgent
    four.go.set()
    wait(lambda: begun[4:] == [("c", "rest")])
    for owner in (one, three):
        owner.go.set()
    wait(lambda: len(begun) == 8)
    for owner in (one, two, three, four):
        owner.go.clear()
    begun.clear()
    for number in range(3):
        for owner in (one, two, three):
            workers.submit(owner, f"rest {number}", urgent=False)
    wait(lambda: len(begun) == 2)
    workers.submit(four, "mask", urgent=True)
    wait(lambda: begun[2:] == [("d", "mask")])
    for owner in (one, two, three, four):
        owner.go.set()
    workers.close()
    with pytest.raises(RuntimeError):
        workers.submit(one, "late", urgent=True)


def test_drawings_have_their_turns_one_after_the_other():
    begun = []
    workers = Workers(1, "test")
    before, *owners = [Slow(begun, name) for name in "-abc"]
    workers.submit(before, "job", urgent=True)
    for owner, jobs in zip(owners, (4, 2, 1), strict=True):
        for _ in range(jobs):
            workers.submit(owner, "job", urgent=True)
    for owner in (*owners, before):
        owner.go.set()
    wait(lambda: len(begun) == 8)
    assert [name for name, _ in begun] == list("-abcabaa")
    workers.close()


def test_every_piece_of_the_background_has_a_limit_and_its_own_turn(monkeypatch):
    clock = [0.0]
    limits = []
    monkeypatch.setattr(_jobs, "monotonic", lambda: clock[0])

    def run_with_check(check, function):
        found = function()
        check()
        return found

    def endless(name, function):
        def call(*arguments, **named):
            limits.append((name, named["time_limit"]))
            clock[0] += 1000.0
            return function(*arguments, **{**named, "time_limit": None})

        monkeypatch.setattr(_jobs, name, call)

    monkeypatch.setattr(_jobs, "_core", SimpleNamespace(run_with_check=run_with_check))
    for name in ("diverse", "marginals", "solve_map"):
        endless(name, getattr(_jobs, name))
    desk = Desk(picture(24, 30))
    for stroke in (*two_strokes((24, 30)), line(2, (27.0, 20.0))):
        desk.drawing.add(stroke)
    desk.work.want("uncertainty", True)
    turns = 0
    while desk.queue.jobs:
        assert [urgent for _, job, urgent in desk.queue.jobs] == [turns == 0]
        desk.queue.run(1)
        turns += 1
    assert turns == 4  # the mask, its proof, the uncertainty, the alternatives
    assert [name for name, _ in limits] == ["solve_map", "marginals", "diverse"]
    assert {limit for _, limit in limits} == {_jobs.BACKGROUND_SECONDS}
    told = [event.words for event in desk.events if isinstance(event, Failed)]
    assert len(told) == 2
    assert all("takes more than" in words for words in told)
    assert best(desk).final  # with what was proved without it
    desk.work.changed()
    desk.run()
    assert len(limits) == 3  # what took too long is not begun again


def test_a_mask_ends_when_the_last_tab_closes(monkeypatch):
    drawings = Drawings()
    drawings._workers = queue = Queue()
    entry = drawings.add(Drawing(picture()))
    seen = []
    stops = [entry.watch(seen.append), entry.watch(seen.append)]
    entry.drawing.add(two_strokes((40, 56))[0])
    ends = []

    def run_with_check(check, function):
        check()
        stops.pop()()
        check()  # somebody watches still
        stops.pop()()
        try:
            check()
        except CancelledError:
            ends.append("cancelled")
            raise

    monkeypatch.setattr(_jobs, "_core", SimpleNamespace(run_with_check=run_with_check))
    entry.work.changed()
    queue.run()
    assert ends == ["cancelled"]
    assert not seen
    assert entry.work.idle
    drawings.close()


def test_a_cut_that_was_interrupted_is_found_from_nothing():
    drawing = Drawing(picture())
    for stroke in two_strokes(drawing.shape):
        drawing.add(stroke)
    level, state = drawing.level(), drawing.state()
    wanted = level.solve(state)

    class Broken:
        def ones(self, costs):
            raise CancelledError

    level._warm = Broken()
    with pytest.raises(CancelledError):
        level.solve(state)
    found = level.solve(state)
    assert found.value == wanted.value
    np.testing.assert_array_equal(found.labels, wanted.labels)


def test_long_segments_are_drawn_in_blocks(monkeypatch):
    rng = np.random.default_rng(9)
    for _ in range(20):
        stroke = random_stroke(rng, (60, 80))
        whole, parts = np.full((2, 60, 80), -1, np.int8)
        monkeypatch.setattr(_strokes, "BLOCK_SIDE", 512)
        draw(whole, stroke)
        monkeypatch.setattr(_strokes, "BLOCK_SIDE", 10)
        draw(parts, stroke)
        np.testing.assert_array_equal(parts, whole)
