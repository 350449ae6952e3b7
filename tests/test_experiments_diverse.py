"""The parts of the experiments on diverse sets that need no data."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import setwise as sw

FOLDER = Path(__file__).parent.parent / "experiments"
if not FOLDER.exists():
    pytest.skip("the experiments are not part of this copy", allow_module_level=True)
pytest.importorskip("skimage")
sys.path.insert(0, str(FOLDER.parent))

_cutout, _lists, _regions, _scribbles, _tuning = map(
    import_module,
    (
        "experiments.diverse._cutout",
        "experiments.diverse._list_scores",
        "experiments.shared.regions",
        "experiments.diverse._scribbles",
        "experiments.diverse._tuning",
    ),
)


def disc(shape: tuple[int, int] = (60, 80)) -> np.ndarray:
    y, x = np.indices(shape)
    return (np.hypot(y - 30, x - 35) < 18).astype(np.int8)


def photograph(truth: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(0)
    colors = np.where(truth[..., None] == 1, [200, 60, 40], [60, 110, 70])
    return np.clip(colors + rng.normal(0, 12, (*truth.shape, 3)), 0, 255).astype(np.uint8)


def test_strokes_keep_to_their_side_of_the_outline() -> None:
    truth = disc()
    marks = _scribbles.strokes(truth, np.random.default_rng(0))
    assert set(np.unique(marks)) == {-1, 0, 1}
    assert np.all(truth[marks == 1] == 1)
    assert np.all(truth[marks == 0] == 0)
    again = _scribbles.strokes(truth, np.random.default_rng(0))
    np.testing.assert_array_equal(marks, again)


def test_strokes_go_on_an_object_thinner_than_their_margin() -> None:
    truth = np.zeros((100, 100), np.int8)
    truth[50, 10:90] = 1
    marks = _scribbles.strokes(truth, np.random.default_rng(0))
    assert np.any(marks == 1)
    assert np.all(truth[marks == 1] == 1)


def test_touching_regions_are_listed_once_with_the_length_of_their_boundary() -> None:
    edges, lengths = _regions.touching(np.array([[0, 0, 1], [0, 2, 1], [3, 3, 1]]))
    assert edges.tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    assert lengths.tolist() == [1.0, 2.0, 1.0, 1.0, 1.0, 1.0]
    edges, lengths = _regions.touching(np.array([[0, 0, 1], [0, 2, 1], [2, 2, 1]]))
    assert edges.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert lengths.tolist() == [1.0, 3.0, 2.0]


def test_majority_leaves_void_out() -> None:
    regions = np.array([[0, 0, 0, 1], [2, 2, 2, 1]])
    labels = np.array([[1, 1, 0, -1], [-1, -1, 0, -1]])
    assert _regions.majority(regions, labels, 2).tolist() == [1, -1, 0]


def test_superpixels_are_numbered_without_holes() -> None:
    regions = _regions.superpixels(photograph(disc()), 60)
    assert np.unique(regions).tolist() == list(range(regions.max() + 1))
    assert regions.max() >= 10


def test_object_is_cut_out_along_its_colour() -> None:
    truth = disc()
    marks = _scribbles.strokes(truth, np.random.default_rng(1))
    case = _cutout.cutout(_scribbles.Marked("a", "a", photograph(truth), truth, marks))
    best = sw.solve_map(case.field).labels
    assert _lists.score_list(case, best[None]).accuracies[0] > 0.95
    of_marks = _regions.majority(case.regions, marks, 2)
    np.testing.assert_array_equal(best[of_marks >= 0], of_marks[of_marks >= 0])


def random_case(name: str, rng: np.random.Generator, group: str | None = None):
    regions = rng.integers(0, 5, (6, 7))
    regions.ravel()[:5] = np.arange(5)
    truth = rng.integers(-1, 3, (6, 7)).astype(np.int8)
    field = sw.fields.Field(rng.normal(size=(5, 3)))
    image = np.zeros((6, 7, 3), np.uint8)
    return _lists.Case.of(name, group or name, image, truth, regions, field)


def test_measures_are_those_of_the_pixels() -> None:
    rng = np.random.default_rng(0)
    cases = [random_case(str(k), rng) for k in range(4)]
    labelings = [rng.integers(0, 3, (6, 5)) for _ in cases]
    lists = [_lists.score_list(case, some) for case, some in zip(cases, labelings, strict=True)]
    known = [case.truth >= 0 for case in cases]
    maps = [y[:, c.regions[k]] for y, c, k in zip(labelings, cases, known, strict=True)]
    truths = [case.truth[k].astype(int) for case, k in zip(cases, known, strict=True)]
    accuracies = [sw.inference.oracle_accuracy(y, t) for y, t in zip(maps, truths, strict=True)]
    np.testing.assert_allclose(_lists.oracle_accuracies(lists), accuracies)
    overlap = sw.inference.oracle_accuracy(maps, truths, "iou")
    np.testing.assert_allclose(_lists.corpus_overlap(lists), overlap)


def test_settings_come_from_the_other_half() -> None:
    rng = np.random.default_rng(0)
    cases = [random_case(str(k), rng, group=str(k // 2)) for k in range(8)]
    half = _tuning.halves(cases, 0)
    assert half.sum() == 4
    assert np.all(half[::2] == half[1::2]), "a group is not torn apart"
    parts = []
    for _ in range(2):
        scored = {
            (float(s),): [_lists.score_list(case, rng.integers(0, 3, (4, 5))) for case in cases]
            for s in range(5)
        }
        parts.append(scored)

    def measure(lists) -> float:
        return float(_lists.oracle_accuracies(lists).mean())

    assert _lists.shares_of(6, 2) == [3, 2]
    lists, settings = _tuning.held_out(parts, half, 4, measure)
    for k, side in enumerate(half):
        others = np.flatnonzero(half != side)
        wanted = []
        for part, setting, length in zip(parts, settings[side], (3, 2), strict=True):
            scores = {s: measure([part[s][j].first(length) for j in others]) for s in part}
            assert scores[setting] == max(scores.values())
            wanted.append(part[setting][k].right[:length])
        np.testing.assert_array_equal(lists[k].right, np.concatenate(wanted))
    estimate = _tuning.by_group(np.arange(8.0), cases)
    np.testing.assert_allclose(estimate.mean, 3.5)
