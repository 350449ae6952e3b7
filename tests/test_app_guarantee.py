"""The page, the widget and the command show the inner and outer masks of a calibrated predictor."""

import json
from time import monotonic, sleep

import numpy as np
import pytest
from PIL import Image

import setwise as sw
from setwise._commands import run
from setwise.app._drawing._drawing import Drawing
from setwise.app._drawing._strokes import Stroke
from setwise.app._drawings import Drawings
from setwise.app._serve import as_guarantee
from setwise.app._session import Session

SHAPE = (24, 32)


def picture(seed):
    rng = np.random.default_rng(seed)
    mask = np.zeros(SHAPE, bool)
    mask[6:18, 8 : rng.integers(18, 26)] = True
    grey = np.where(mask, 150, 100)[..., None] + rng.normal(0, 25, (*SHAPE, 3))
    marks = np.full(SHAPE, -1)
    marks[11:13, 11:15], marks[1:3, 2:30] = 1, 0
    return np.clip(grey, 0, 255).astype(np.uint8), marks, mask


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    given = [picture(k) for k in range(12)]
    fields = [sw.images.field_from_image(image, marks) for image, marks, _ in given]
    model = sw.conformal.ConformalMasks(alpha=0.1)
    model.conformalize(fields, [mask for *_, mask in given])
    path = tmp_path_factory.mktemp("guarantee") / "masks.json"
    model.save(path)
    return path


def stroke(label, points):
    return Stroke.read({"kind": "brush", "label": label, "radius": 1.5, "points": points})


def test_a_drawing_of_two_labels_gets_its_inner_and_outer_mask(file):
    model = as_guarantee(str(file))
    drawings = Drawings(guarantee=model)
    try:
        entry = drawings.add(Drawing(picture(20)[0]))
        seen = []
        session = Session(entry, lambda: seen.extend(session.messages()))
        entry.drawing.add(stroke(1, [[11.0, 11.0], [15.0, 12.0]]))
        entry.drawing.add(stroke(0, [[2.0, 2.0], [30.0, 2.0]]))
        session.begin()
        end = monotonic() + 30
        while entry.work.guaranteed is None and monotonic() < end:
            sleep(0.02)
        found = entry.work.guaranteed
        with entry.drawing.working_level(1, entry.drawing.state()) as level:
            known = model.predict_set([level.field(entry.drawing.state())])[0]
        zones = found.zones.ravel()
        np.testing.assert_array_equal(zones >= 1, known.outer.ravel())
        np.testing.assert_array_equal(zones == 2, known.inner.ravel())
        assert found.words == known.words
        end = monotonic() + 30
        while not any(m["type"] == "guaranteed" for m, _ in seen) and monotonic() < end:
            sleep(0.02)
        message, buffers = next((m, b) for m, b in seen if m["type"] == "guaranteed")
        assert (message["height"], message["width"]) == SHAPE
        assert buffers[0] == found.zones.tobytes()
        session.close()
    finally:
        drawings.close()


def test_the_widget_takes_a_predictor(file):
    pytest.importorskip("anywidget")
    widget = sw.app.SegmentWidget(picture(0)[0], guarantee=file)
    try:
        assert widget._entry.drawing.guarantee.controls_["outer"].alpha == 0.1
    finally:
        widget.close()


def test_the_command_writes_inner_and_outer_masks(file, tmp_path, capsys):
    image, marks, _ = picture(30)
    Image.fromarray(image).save(tmp_path / "cup.png")
    Image.fromarray((marks + 1).astype(np.uint8)).save(tmp_path / "strokes.png")
    names = {k: str(tmp_path / k) for k in ("cup.png", "strokes.png", "mask.png", "over.png")}
    words = ["segment", names["cup.png"], "-s", names["strokes.png"], "-o", names["mask.png"]]
    options = ["--guarantee", str(file), "--overlay", names["over.png"], "--json"]
    assert run([*words, *options]) == 0
    answer = json.loads(capsys.readouterr().out)
    found = sw.conformal.load(file).predict_set([sw.images.field_from_image(image, marks)])[0]
    assert answer["guarantee"] == found.words
    for name in ("inner", "outer"):
        written = np.array(Image.open(answer[name]["file"])) == 2
        np.testing.assert_array_equal(written, getattr(found, name))
        assert answer[name]["pixels"] == written.sum()
    np.testing.assert_array_equal(np.array(Image.open(names["over.png"])), found.overlay(image))


def test_other_predictors_are_refused_in_a_sentence(file, tmp_path):
    maps = np.random.default_rng(0).random((12, 4))
    labels = sw.conformal.ConformalLabels(alpha=0.2).conformalize(maps, maps > 0.5)
    masks = sw.conformal.ConformalMasks(alpha=0.2).conformalize(maps, maps > 0.5)
    with pytest.raises(TypeError, match="guarantee must be a ConformalMasks or its file"):
        as_guarantee(labels)
    with pytest.raises(ValueError, match="guarantee must be calibrated on fields"):
        as_guarantee(masks)
    masks.conformalize(maps, maps > 0.5, groups=["a"] * 12)
    with pytest.raises(ValueError, match="guarantee must be calibrated without groups"):
        as_guarantee(masks)
    with pytest.raises(ValueError, match="guarantee must be a file that can be read"):
        as_guarantee(tmp_path / "nothing.json")
    assert as_guarantee(None) is None
