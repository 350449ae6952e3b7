"""The display of a list of labellings."""

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pytest

import setwise as sw
from setwise.plots import DiverseDisplay


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    plt.close("all")
    yield
    plt.close("all")


def image_list(shape: tuple[int, int] = (6, 9), m: int = 4) -> sw.inference.DiverseResult:
    unary = np.random.default_rng(0).normal(size=(shape[0] * shape[1], 3))
    field = sw.fields.Field(unary) + sw.fields.Potts(sw.fields.grid_edges(shape), 0.3)
    return sw.diverse(field, m, sw.diversities.DivMBest(0.4), n_jobs=1)


def test_list_is_that_of_the_result() -> None:
    found = image_list()
    display = DiverseDisplay.from_result(found, (6, 9), image=np.ones((6, 9, 3)))
    np.testing.assert_array_equal(display.labelings.reshape(4, -1), found.labelings)
    np.testing.assert_array_equal(display.values, found.values)
    np.testing.assert_allclose(
        display.share, np.mean(found.labelings != found.labelings[0], axis=1)
    )
    assert len(display.axes_) == 5
    assert len(display.images_) == len(display.outlines_) == 4
    titles = [ax.get_title() for ax in display.axes_]
    assert titles[0] == "image"
    assert titles[1] == f"1: energy {found.values[0]:,.5g}"
    rise = 100 * (found.values[3] - found.values[0]) / abs(found.values[0])
    what, share = display.changes[3].rsplit(", ", 1)
    assert titles[4] == f"4: {what}\n{share}, energy {rise:+.2g} %"
    assert share == f"{100 * display.share[3]:.0f} % of the pixels"
    display.figure_.canvas.draw()


def test_outlines_hold_the_pixels_that_differ() -> None:
    labelings = np.zeros((3, 4, 5), int)
    labelings[1, 1, 2] = 1
    labelings[2, :2, :2] = 1
    display = DiverseDisplay(labelings, [0.0, 1.0, 2.0]).plot()
    sides = [len(patch.get_path().vertices) // 2 for patch in display.outlines_]
    assert sides == [0, 4, 8]
    corners = display.outlines_[1].get_path().vertices
    assert set(map(tuple, corners.tolist())) == {(1.5, 0.5), (2.5, 0.5), (1.5, 1.5), (2.5, 1.5)}
    assert display.share.tolist() == [0.0, 0.05, 0.2]


def test_superpixels_stand_for_their_pixels() -> None:
    field = sw.fields.Field([[0.0, 1.0], [0.0, 0.2], [1.0, 0.0]])
    found = sw.diverse(field, 2, sw.diversities.DivMBest(0.5))
    superpixels = np.array([[0, 0, 1], [0, 2, 2]])
    display = DiverseDisplay.from_result(found, superpixels=superpixels)
    assert display.labelings.tolist() == [[[0, 0, 0], [0, 1, 1]], [[0, 0, 1], [0, 1, 1]]]
    assert display.share.tolist() == [0.0, 1 / 6]


def test_labels_have_the_colours_given_and_cover_the_image_in_part() -> None:
    labelings = np.array([[[0, 1]], [[1, 1]]])
    display = DiverseDisplay(labelings, [0.0, 1.0], image=[[0.2, 0.8]], colors=["red", "blue"])
    display.plot()
    np.testing.assert_array_equal(display.images_[0].get_array()[0], [[1, 0, 0, 1], [0, 0, 1, 1]])
    assert [image.get_alpha() for image in display.images_] == [0.6, 0.6]
    assert [len(ax.images) for ax in display.axes_] == [1, 2, 2]
    assert display.plot(alpha=0.25).images_[0].get_alpha() == 0.25
    assert DiverseDisplay(labelings, [0.0, 1.0]).plot().images_[0].get_alpha() == 1.0
    more = DiverseDisplay(labelings, [0.0, 1.0], n_labels=3, colors=["red", "blue", "green"])
    assert more.plot().n_labels == 3


def test_drawing_keeps_to_the_axes_it_is_given() -> None:
    found = image_list()
    figure, axes = plt.subplots(2, 2)
    display = DiverseDisplay.from_result(found, (6, 9), ax=axes)
    assert display.figure_ is figure
    assert display.axes_.tolist() == axes.ravel().tolist()
    assert [ax.get_xlim() for ax in axes.flat] == [(-0.5, 8.5)] * 4
    assert len(plt.get_fignums()) == 1
    _, ax = plt.subplots()
    alone = DiverseDisplay.from_result(image_list(m=1), (6, 9), ax=ax)
    assert alone.axes_.tolist() == [ax]


@pytest.mark.parametrize(("n_columns", "rows"), [(None, 2), (1, 5), (2, 3), (5, 1), (9, 1)])
def test_panels_of_a_new_figure_stand_in_rows(n_columns: int | None, rows: int) -> None:
    found = image_list()
    image = np.zeros((6, 9))
    display = DiverseDisplay.from_result(found, (6, 9), image=image, n_columns=n_columns)
    assert len(display.figure_.axes) == 5
    assert len({ax.get_subplotspec().rowspan.start for ax in display.axes_}) == rows


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"result": 3}, TypeError, "result must be a DiverseResult, got int"),
        ({"shape": (6, 8)}, ValueError, r"a width with 54 pixels, got \(6, 8\)"),
        ({"shape": (54,)}, ValueError, "shape must be a height and a width"),
        ({"shape": (6.0, 9.0)}, TypeError, "shape must be an integer"),
        ({"superpixels": np.zeros((6, 9), int)}, ValueError, "shape must be left out where super"),
        (
            {"shape": None, "superpixels": np.full((6, 9), 54)},
            ValueError,
            "superpixels must lie between 0 and 53, got 54",
        ),
        (
            {"shape": None, "superpixels": np.zeros(54, int)},
            ValueError,
            r"superpixels must have shape \(H, W\), got \(54,\)",
        ),
        (
            {"shape": None, "superpixels": np.zeros((6, 9))},
            TypeError,
            "superpixels must hold integers",
        ),
        ({"image": np.zeros((6, 8))}, ValueError, r"image must have shape \(6, 9\)"),
        ({"n_labels": 2}, ValueError, "labelings must lie between 0 and 1, got 2"),
        ({"n_labels": 0}, ValueError, "n_labels must be at least 1, got 0"),
        ({"colors": ["red", "blue"]}, ValueError, "colors must hold 3 colours"),
        ({"n_columns": 0}, ValueError, "n_columns must be at least 1, got 0"),
        ({"alpha": 1.5}, ValueError, "alpha must be at most 1, got 1.5"),
        ({"alpha": -1.0}, ValueError, "alpha must not be negative"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_diverse_display_refuses(arguments, error, message) -> None:
    known = {"result": image_list(), "shape": (6, 9), **arguments}
    with pytest.raises(error, match=message):
        DiverseDisplay.from_result(**known)
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    ("labelings", "values", "message"),
    [
        (np.zeros((0, 2, 2), int), [], r"at least one labelling and one pixel, got \(0, 2, 2\)"),
        (np.zeros((2, 0, 2), int), [0.0, 0.0], "at least one labelling and one pixel"),
        (np.zeros((2, 4), int), [0.0, 0.0], r"labelings must have shape \(m, H, W\)"),
        (np.zeros((2, 1, 1), int), [0.0], r"values must have shape \(2\)"),
        (-np.ones((1, 1, 1), int), [0.0], "labelings must lie between 0"),
    ],
)
def test_list_by_hand_must_fit(labelings, values, message) -> None:
    with pytest.raises(ValueError, match=message):
        DiverseDisplay(labelings, values)


def test_diverse_display_needs_as_many_axes_as_panels() -> None:
    _, axes = plt.subplots(1, 3)
    with pytest.raises(ValueError, match="ax must hold 4 axes, one for each labelling, got 3"):
        DiverseDisplay.from_result(image_list(), (6, 9), ax=axes)
    with pytest.raises(ValueError, match=r"hold 5 axes, .* and one for the image, got 3"):
        DiverseDisplay.from_result(image_list(), (6, 9), image=np.zeros((6, 9)), ax=axes)


def test_changes_are_told_in_words():
    first = np.zeros((30, 60), np.int64)
    first[5:25, 5:15] = first[5:25, 40:55] = 1
    gone, grown, other = first.copy(), first.copy(), first.copy()
    gone[:, :20] = 0
    grown[20:29, 25:35] = 1
    other[:, 40:55] *= 3
    display = DiverseDisplay([first, gone, grown, other, first], np.arange(5.0))
    assert display.changes == [
        "nothing else",
        "without the left part, 11 % of the pixels",
        "with the lower part, 5.0 % of the pixels",
        "3 for 1 in the right part, 17 % of the pixels",
        "nothing else",
    ]
