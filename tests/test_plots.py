"""The displays: what they compute is what the library says, and drawing leaves nothing behind."""

import sys
from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pytest

import setwise as sw
from setwise.inference import reliability
from setwise.plots import (
    DecompositionDisplay,
    MarginalsDisplay,
    ReliabilityDisplay,
    SurrogateDisplay,
)


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


def image_marginals(
    shape: tuple[int, int] = (9, 12), n_labels: int = 3
) -> sw.inference.MarginalsResult:
    unary = 2.0 * np.random.default_rng(0).normal(size=(shape[0] * shape[1], n_labels))
    field = sw.fields.Field(unary) + sw.fields.Potts(sw.fields.grid_edges(shape), 0.3)
    return sw.marginals(field, n_jobs=1)


def test_marginals_are_those_of_the_result() -> None:
    post = image_marginals()
    display = MarginalsDisplay.from_result(post, (9, 12), image=np.ones((9, 12, 3)))
    np.testing.assert_array_equal(display.labels.ravel(), post.labels)
    np.testing.assert_array_equal(display.entropy.ravel(), post.entropy)
    assert list(display.images_) == list(display.outlines_) == ["image", "labels", "entropy"]
    np.testing.assert_array_equal(display.images_["entropy"].get_array(), display.entropy)
    assert display.images_["entropy"].get_clim() == (0.0, np.log(3))
    shown = display.images_["labels"].get_array()
    assert len(np.unique(shown.reshape(-1, 4), axis=0)) == len(np.unique(post.labels))
    display.figure_.canvas.draw()


def test_regions_are_ranked_by_their_mean_entropy() -> None:
    post = image_marginals()
    layer = np.arange(9)[:, None] // 3 * 10 + np.arange(12) // 4
    layer[0, 0] = -1
    display = MarginalsDisplay.from_result(post, (9, 12), regions=layer.ravel(), n_regions=4)
    assert display.regions[0, 0] == -1
    given = np.unique(layer)[1:]
    means = [display.entropy[layer == number].mean() for number in given]
    np.testing.assert_allclose(display.region_entropy, means, rtol=1e-12)
    assert np.all(np.diff(display.region_entropy[display.region_order]) <= 0)
    texts = [text.get_text() for text in display.axes_[1].texts]
    assert texts == ["1", "2", "3", "4"]


def test_pieces_are_connected_above_the_quantile_and_no_specks() -> None:
    entropy = np.full((20, 20), 0.1)
    entropy[2:6, 2:6] = 0.5
    entropy[10:14, 10:18] = 0.6
    entropy[18, 1] = 0.7
    display = MarginalsDisplay(np.zeros((20, 20), int), entropy, 2, quantile=0.88)
    wanted = np.full((20, 20), -1)
    wanted[2:6, 2:6], wanted[10:14, 10:18] = 0, 1
    np.testing.assert_array_equal(display.regions, wanted)
    assert display.region_order.tolist() == [1, 0]
    np.testing.assert_allclose(display.region_entropy, [0.5, 0.6])
    sure = MarginalsDisplay(np.zeros((20, 20), int), np.zeros((20, 20)), 2).plot()
    assert sure.region_order.tolist() == []
    sure.figure_.canvas.draw()


def test_outlines_are_the_sides_between_chosen_regions_and_the_rest() -> None:
    rng = np.random.default_rng(0)
    layer = rng.integers(-1, 3, (6, 7))
    zeros = np.zeros((6, 7))
    display = MarginalsDisplay(zeros.astype(int), zeros, 2, regions=layer)
    for n_regions in (0, 1, 3, 9):
        lines = display.plot(n_regions=n_regions).outlines_["labels"].get_path().vertices
        found = {frozenset(map(tuple, side)) for side in lines.reshape(-1, 2, 2).tolist()}
        kept = np.where(layer < n_regions, layer, -1)
        wanted = set()
        for y in range(-1, 7):
            for x in range(-1, 8):
                here = _at(kept, y, x)
                if here != _at(kept, y, x + 1):
                    wanted.add(frozenset([(x + 0.5, y - 0.5), (x + 0.5, y + 0.5)]))
                if here != _at(kept, y + 1, x):
                    wanted.add(frozenset([(x - 0.5, y + 0.5), (x + 0.5, y + 0.5)]))
        assert found == wanted
        assert len(lines) == 2 * len(wanted)


def _at(layer: np.ndarray, y: int, x: int) -> int:
    inside = 0 <= y < layer.shape[0] and 0 <= x < layer.shape[1]
    return int(layer[y, x]) if inside else -1


def test_marginals_keep_to_the_axes_they_are_given() -> None:
    post = image_marginals()
    figure, axes = plt.subplots(1, 2)
    labels = np.zeros(108, int)
    display = MarginalsDisplay.from_result(
        post, (9, 12), labels=labels, colors=["red", "0.5", (0, 0, 1)], ax=axes, colorbar=False
    )
    assert display.figure_ is figure
    assert [ax.get_xlim() for ax in axes] == [(-0.5, 11.5)] * 2
    np.testing.assert_array_equal(display.images_["labels"].get_array()[0, 0], [1, 0, 0, 1])
    assert len(figure.axes) == 2
    _, ax = plt.subplots()
    assert display.plot(ax, panels="entropy", cmap="gray", vmax=2.0) is display
    assert display.axes_.tolist() == [ax]
    assert display.images_["entropy"].get_clim() == (0.0, 2.0)
    assert display.images_["entropy"].get_cmap().name == "gray"
    assert len(plt.get_fignums()) == 2


@pytest.mark.parametrize("n_labels", [1, 2, 8, 9, 21])
def test_labels_have_colours_of_their_own(n_labels: int) -> None:
    labels = np.arange(n_labels)[None]
    display = MarginalsDisplay(labels, np.zeros((1, n_labels)), n_labels).plot(panels="labels")
    shown = display.images_["labels"].get_array()[0]
    assert len(np.unique(shown, axis=0)) == n_labels


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"result": 3}, TypeError, "result must be a MarginalsResult, got int"),
        ({"shape": (9, 11)}, ValueError, r"a width with 108 pixels, got \(9, 11\)"),
        ({"shape": (108,)}, ValueError, "shape must be a height and a width"),
        ({"shape": (9.0, 12.0)}, TypeError, "shape must be an integer"),
        ({"image": np.zeros((9, 11))}, ValueError, r"image must have shape \(9, 12\)"),
        ({"image": np.zeros((9, 12, 2))}, ValueError, "with 3 or 4 colours or none"),
        ({"image": np.zeros((9, 12), complex)}, TypeError, "image must hold real numbers"),
        ({"labels": np.full(108, 3)}, ValueError, "labels must lie between 0 and 2, got 3"),
        ({"labels": np.zeros(107, int)}, ValueError, r"labels must have shape \(9, 12\)"),
        ({"regions": np.zeros((9, 12))}, TypeError, "regions must hold integers"),
        ({"regions": np.full(108, -2)}, ValueError, "or -1 for none, got -2"),
        ({"regions": np.zeros((12, 9), int)}, ValueError, r"regions must have shape \(9, 12\)"),
        ({"colors": ["red", "blue"]}, ValueError, "colors must hold 3 colours"),
        ({"quantile": 1.5}, ValueError, "quantile must be at most 1, got 1.5"),
        ({"n_regions": -1}, ValueError, "n_regions must be at least 0"),
        ({"panels": "photo"}, ValueError, "panels must be among image, labels, entropy"),
        ({"panels": ["labels", "labels"]}, ValueError, "panels must name each panel once"),
        ({"panels": ["image"]}, ValueError, "'image' where no image was given"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_marginals_display_refuses(arguments, error, message) -> None:
    known = {"result": image_marginals(), "shape": (9, 12), **arguments}
    with pytest.raises(error, match=message):
        MarginalsDisplay.from_result(**known)
    assert plt.get_fignums() == []


def test_marginals_need_as_many_axes_as_panels() -> None:
    _, ax = plt.subplots()
    with pytest.raises(ValueError, match="ax must hold 2 axes, one for each of labels, entropy"):
        MarginalsDisplay.from_result(image_marginals(), (9, 12), ax=ax)
    with pytest.raises(ValueError, match="entropy must have at least one pixel"):
        MarginalsDisplay(np.zeros((0, 3), int), np.zeros((0, 3)), 2)


def test_without_matplotlib_one_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"setwise\[plot\]"):
        SurrogateDisplay.from_surrogate(sw.surrogates.LovaszHinge("hamming"))
    with pytest.raises(ImportError, match=r"setwise\[plot\]"):
        DecompositionDisplay.from_loss("face_track_1", 3)
    with pytest.raises(ImportError, match=r"setwise\[plot\]"):
        MarginalsDisplay([[0]], [[0.0]], 2).plot()


def test_a_reliability_diagram_shows_what_was_measured() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 500)
    y = np.array([rng.choice(3, p=row) for row in p])
    told = reliability(y, p, n_bins=8)
    display = ReliabilityDisplay.from_probabilities(y, p, n_bins=8, name="drawn")
    some = told.bin_weights > 0
    np.testing.assert_array_equal(display.line_.get_xdata(), told.prob_pred[some])
    np.testing.assert_array_equal(display.line_.get_ydata(), told.prob_true[some])
    assert display.line_.get_label() == f"drawn (ECE {told.ece:.3f})"
    areas = display.points_.get_sizes()
    assert areas.argmax() == told.bin_weights[some].argmax()
    again = ReliabilityDisplay.from_reliability(told, ax=display.ax_, color="red", ref_line=False)
    assert again.ax_ is display.ax_
    assert again.line_.get_color() == "red"
    assert len(display.ax_.get_lines()) == 3  # two curves and one diagonal


def test_a_reliability_diagram_refuses() -> None:
    with pytest.raises(TypeError, match="reliability must be a Reliability, got int"):
        ReliabilityDisplay.from_reliability(3)
    with pytest.raises(ValueError, match="prob_true must be at most 1, got 2"):
        ReliabilityDisplay([2.0], [0.5], [1.0])
    with pytest.raises(TypeError, match="name must be a string or None, got int"):
        ReliabilityDisplay([0.5], [0.5], [1.0], name=3)
    assert plt.get_fignums() == []
