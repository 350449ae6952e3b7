"""The displays: what they compute is what the library says, and drawing leaves nothing behind."""

import sys
from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pytest

import setwise as sw
from setwise.plots import DecompositionDisplay, SurrogateDisplay


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    plt.close("all")
    yield
    plt.close("all")


def two_elements(values: list[float]) -> sw.losses.SetLoss:
    return sw.losses.SetLoss(sw.functions.Table(values))


SUBMODULAR = [0.0, 1.0, 1.0, 1.2]
FALLING = [0.0, 1.0, 1.0, 0.4]
SUPERMODULAR = [0.0, 1.0, 1.0, 2.8]

EXTENSIONS = {
    "Lovász, increasing": sw.surrogates.LovaszHinge(two_elements(SUBMODULAR)),
    "Lovász, not increasing": sw.surrogates.LovaszHinge(two_elements(FALLING)),
    "Lovász, case 1 of a falling loss": sw.surrogates.LovaszHinge(two_elements(FALLING), case=1),
    "margin": sw.surrogates.MarginRescaling(two_elements(SUPERMODULAR), scale="extension"),
    "slack": sw.surrogates.SlackRescaling(two_elements(SUPERMODULAR)),
    "decomposed": sw.surrogates.DecomposedHinge(two_elements(SUPERMODULAR)),
    "Jaccard by name": sw.surrogates.LovaszHinge("jaccard"),
}


@pytest.mark.parametrize("surrogate", EXTENSIONS.values(), ids=EXTENSIONS)
@pytest.mark.parametrize("y", [None, [1, -1], [0, 1]], ids=str)
def test_surface_meets_the_loss_at_the_corners(surrogate, y) -> None:
    display = SurrogateDisplay.from_surrogate(surrogate, y, n_points=13)
    assert np.isfinite(display.values).all()
    truth = np.array([1, 1] if y is None else y)
    for corner, loss in zip(display.corners, display.losses, strict=True):
        wrong = np.where(corner == 1, truth <= 0, truth > 0)
        assert loss == surrogate.loss(truth, wrong)
        at = np.searchsorted(display.s, corner)
        assert display.values[*at] == pytest.approx(loss, abs=1e-12)


def test_values_are_the_surrogate_at_s() -> None:
    hinge = sw.surrogates.LovaszHinge("jaccard")
    y = np.array([1, -1])
    display = SurrogateDisplay.from_surrogate(hinge, y, limits=(-0.5, 1.5), n_points=5)
    for i, first in enumerate(display.s):
        for j, second in enumerate(display.s):
            scores = (1.0 - np.array([first, second])) * y
            assert display.values[i, j] == pytest.approx(hinge(y, scores), abs=1e-12)


def test_grid_holds_zero_and_one_once() -> None:
    hinge = sw.surrogates.LovaszHinge("hamming")
    for n_points in (2, 3, 10, 61):
        s = SurrogateDisplay.from_surrogate(hinge, n_points=n_points).s
        assert np.diff(s).min() > 1e-3
        assert {0.0, 1.0} <= set(s)


def test_drawing_keeps_to_the_axes_it_is_given() -> None:
    hinge = sw.surrogates.LovaszHinge("hamming")
    figure, ax = plt.subplots(subplot_kw={"projection": "3d"})
    display = SurrogateDisplay.from_surrogate(hinge, ax=ax, n_points=7)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert len(plt.get_fignums()) == 1
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_zlabel()) == ("$s_1$", "$s_2$", "surrogate")
    figure.canvas.draw()
    flat, plain = plt.subplots()
    assert display.plot(plain, kind="contour", dots_kw={"s": 20}) is display
    assert display.figure_ is flat
    assert len(display.dots_.get_offsets()) == 4
    assert sum(axis.get_label() == "<colorbar>" for axis in flat.axes) == 1
    flat.canvas.draw()


def test_surface_that_is_flat_can_be_drawn() -> None:
    nothing = sw.surrogates.LovaszHinge(two_elements([0.0, 0.0, 0.0, 0.0]))
    for kind in ("surface", "contour"):
        SurrogateDisplay.from_surrogate(nothing, n_points=5, kind=kind).figure_.canvas.draw()


def test_decomposition_is_the_one_of_the_library() -> None:
    for kind in (1, 2, 3, 4):
        loss = sw.losses.FaceTrack(kind)
        display = DecompositionDisplay.from_loss(loss, 10)
        function = loss.set_function(np.ones(10))
        f, g = sw.functions.decompose(function)
        np.testing.assert_allclose(display.loss, function.values, atol=1e-12)
        np.testing.assert_allclose(display.f, f.values, atol=1e-12)
        np.testing.assert_allclose(display.g, g.values, atol=1e-12)
        for line, values in zip(display.lines_, (display.loss, display.f, display.g), strict=True):
            np.testing.assert_array_equal(line.get_ydata(), values)
        texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert texts == ["$l = f + g$", "$f$, submodular", "$g$, supermodular"]


@pytest.mark.parametrize(
    "loss",
    ["hamming", "exponential", 2.0 * sw.losses.FaceTrack(2), sw.losses.Hamming([0.5] * 4)],
    ids=str,
)
def test_every_loss_of_the_size_can_be_drawn(loss) -> None:
    display = DecompositionDisplay.from_loss(loss, 4)
    np.testing.assert_allclose(display.f + display.g, display.loss, atol=1e-12)


def test_any_function_is_drawn_along_an_order() -> None:
    dice = sw.losses.Dice().set_function([1, 1, 1, -1, -1])
    order = [3, 0, 4, 1]
    figure, ax = plt.subplots()
    display = DecompositionDisplay.from_function(dice, order, ax=ax)
    assert display.figure_ is figure
    assert display.ax_.get_xlabel() == "number of mistakes"
    chosen = np.zeros(5, bool)
    for k, element in enumerate([None, *order]):
        if element is not None:
            chosen[element] = True
        assert display.loss[k] == pytest.approx(dice(chosen), abs=1e-12)
    np.testing.assert_allclose(display.f + display.g, display.loss, atol=1e-12)


def test_legend_says_when_g_may_not_be_least() -> None:
    display = DecompositionDisplay([0.0, 1.0], [0.0, 1.0], [0.0, 0.0], exact=False).plot()
    assert "perhaps not the least" in display.ax_.get_legend().get_texts()[2].get_text()


def test_value_on_the_empty_set_stays_in_f() -> None:
    display = DecompositionDisplay.from_function(sw.functions.Cardinality([2.0, 1.0, 3.0]))
    assert (display.loss[0], display.f[0], display.g[0]) == (2.0, 2.0, 0.0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"surrogate": "lovasz"}, TypeError, "surrogate must be a Surrogate, got str"),
        ({"y": [1, 1, 1]}, ValueError, r"y must have shape \(2,\), got \(3,\)"),
        ({"y": [1, 5]}, ValueError, "labels in"),
        ({"limits": (0.5, 2.0)}, ValueError, "limits must enclose 0 and 1"),
        ({"limits": (-1.0, np.nan)}, ValueError, "limits must be finite"),
        ({"n_points": 1}, ValueError, "n_points must be at least 2"),
        ({"kind": "wire"}, ValueError, "kind must be 'surface' or 'contour', got 'wire'"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_surrogate_display_refuses(arguments, error, message) -> None:
    known = {"surrogate": sw.surrogates.LovaszHinge("hamming"), **arguments}
    with pytest.raises(error, match=message):
        SurrogateDisplay.from_surrogate(**known)
    assert plt.get_fignums() == []


def test_axes_must_fit_the_kind() -> None:
    hinge = sw.surrogates.LovaszHinge("hamming")
    _, plain = plt.subplots()
    with pytest.raises(ValueError, match="ax must have projection '3d' for kind 'surface'"):
        SurrogateDisplay.from_surrogate(hinge, ax=plain)
    _, space = plt.subplots(subplot_kw={"projection": "3d"})
    with pytest.raises(ValueError, match="ax must have projection 'rectilinear'"):
        SurrogateDisplay.from_surrogate(hinge, ax=space, kind="contour")


def test_loss_of_another_size_is_refused() -> None:
    three = sw.losses.SetLoss(sw.functions.Table(np.arange(8.0)))
    with pytest.raises(ValueError, match="3 elements"):
        SurrogateDisplay.from_surrogate(sw.surrogates.LovaszHinge(three))


@pytest.mark.parametrize(
    ("s", "values"),
    [([0.0, 0.5], np.zeros((2, 2))), ([1.0, 0.0], np.zeros((2, 2)))],
    ids=["without 1", "falling"],
)
def test_grid_by_hand_must_fit(s, values) -> None:
    corners = [[0.0, 0.0]]
    with pytest.raises(ValueError, match="s must increase and hold 0 and 1"):
        SurrogateDisplay(s, values, corners, [0.0])


def test_decomposition_display_refuses() -> None:
    with pytest.raises(ValueError, match="p must be at least 1"):
        DecompositionDisplay.from_loss("face_track_1", 0)
    with pytest.raises(ValueError, match="loss must be one of"):
        DecompositionDisplay.from_loss("no such loss", 3)
    with pytest.raises(ValueError, match="one of the number of elements"):
        DecompositionDisplay.from_function(sw.losses.Dice().set_function([1, 1, 0]))
    with pytest.raises(TypeError, match="set function"):
        DecompositionDisplay.from_function(np.arange(3))
    with pytest.raises(ValueError, match="f must have shape"):
        DecompositionDisplay([0.0, 1.0], [0.0], [0.0, 1.0])
    assert plt.get_fignums() == []


def test_without_matplotlib_one_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"setwise\[plot\]"):
        SurrogateDisplay.from_surrogate(sw.surrogates.LovaszHinge("hamming"))
    with pytest.raises(ImportError, match=r"setwise\[plot\]"):
        DecompositionDisplay.from_loss("face_track_1", 3)
