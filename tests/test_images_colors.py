"""Densities of colours from a few labelled pixels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

from setwise.images._colors import _FLOOR, ColorModel
from setwise.images._location import location_costs
from setwise.images._mixture import mixture_densities
from setwise.images._pixels import as_pixels


def noise(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def test_one_colour_is_one_gaussian() -> None:
    colors = np.random.default_rng(0).random((40, 3))
    weights = np.zeros(40)
    weights[7] = 5.0
    density = mixture_densities(colors, weights, 0.1)
    reference = multivariate_normal(colors[7], 0.01 * np.eye(3)).pdf(colors)
    np.testing.assert_allclose(density, reference, rtol=1e-9)


def test_a_mixture_explains_its_colours_as_well_as_scikit_learn_does() -> None:
    rng = np.random.default_rng(0)
    centers = rng.random((3, 3))
    sample = np.concatenate([center + 0.03 * rng.normal(size=(200, 3)) for center in centers])
    density = mixture_densities(sample, np.ones(len(sample)), 1e-3)
    peer = GaussianMixture(5, n_init=3, random_state=0).fit(sample)
    assert np.log(density).mean() > peer.score(sample) - 0.1


def test_weights_are_repetitions() -> None:
    rng = np.random.default_rng(1)
    colors, times = rng.random((30, 3)), rng.integers(1, 5, 30)
    repeated = mixture_densities(np.repeat(colors, times, axis=0), np.ones(times.sum()), 0.05)
    weighted = mixture_densities(colors, times.astype(float), 0.05)
    np.testing.assert_allclose(weighted, repeated[np.cumsum(times) - 1], rtol=1e-6)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_counts_are_spread_and_none_is_lost(channels: int) -> None:
    cells = {1: 256, 2: 64, 3: 32, 4: 16}[channels]
    image = noise((40, 50, channels))
    model = ColorModel(as_pixels(image, 2), "histogram")
    # With a cell for every colour all of the mass is seen.
    model._used = np.arange(cells**channels)
    weights = np.zeros(cells**channels)
    weights[np.random.default_rng(0).integers(0, len(weights), 20)] = 1.0
    assert model._spread(weights).sum() == pytest.approx(weights.sum())


@pytest.mark.parametrize("channels", [1, 3, 4, 7])
def test_a_cell_is_the_mean_of_its_pixels(channels: int) -> None:
    image = noise((20, 30, channels)).astype(np.float64)
    model = ColorModel(as_pixels(image, 2))
    pixels = image.reshape(-1, channels)
    scaled = (pixels - pixels.min(axis=0)) / np.ptp(pixels, axis=0)
    for cell in range(0, len(model.colors), 50):
        np.testing.assert_allclose(scaled[model.codes == cell].mean(axis=0), model.colors[cell])
    assert model.counts.sum() == model.n == 600


@pytest.mark.parametrize("kind", ["mixture", "histogram"])
def test_costs_are_those_of_the_cells_and_have_a_floor(kind: str) -> None:
    image = np.zeros((10, 10, 3), np.uint8)
    image[:, 5:] = 255
    image[0, 0] = (255, 0, 0)
    marks = np.full((10, 10), -1)
    marks[5, 1], marks[5, 8] = 0, 1
    model = ColorModel(as_pixels(image), kind)
    costs = model.costs(marks, 2).reshape(10, 10, 2)
    assert costs[5, 1, 0] < costs[5, 1, 1]
    assert costs[0, 0, 0] == pytest.approx(costs[0, 0, 1], abs=1e-3)  # neither has had it
    if kind == "mixture":
        np.testing.assert_allclose([costs[5, 1, 1], *costs[0, 0]], -np.log(_FLOOR), atol=1e-3)
    np.testing.assert_array_equal(costs.reshape(-1, 2), model.cell_costs(marks, 2)[model.codes])


def test_counts_speak_for_a_label_by_their_logarithm_in_eighths() -> None:
    values = np.repeat(np.arange(256, dtype=np.uint8), 4).reshape(32, 32)
    marks = np.full((32, 32), -1)
    marks[values == 40], marks[values == 200] = 0, 1
    costs = ColorModel(as_pixels(values), "histogram").costs(marks, 3).reshape(32, 32, 3)
    away = np.exp(-0.5 * np.square(np.arange(-3, 4)))
    for step, share in zip(range(-3, 4), away / away.sum(), strict=True):
        found = costs[values == 40 + step]
        assert not found[:, 0].any()
        np.testing.assert_array_equal(found[:, 1], np.rint(8 * np.log1p(4000 * share)) / 8)
    assert not costs[values == 120][:, :2].any()
    assert np.isinf(costs[..., 2]).all()


@given(st.integers(0, 2**32 - 1))
def test_a_stroke_changes_the_costs_of_its_own_colours_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    image = noise((12, 14, 3), seed)
    model = ColorModel(as_pixels(image, 2), "histogram")
    marks = rng.integers(-3, 2, (12, 14)).clip(-1)
    marks[0, 0], marks[0, 1] = 0, 1
    more = marks.copy()
    free = np.argwhere(marks < 0)
    places = tuple(free[rng.integers(0, len(free), 3)].T)
    more[places] = 1
    before, after = (model.costs(m, 2).reshape(12, 14, 2) for m in (marks, more))
    apart = (before[..., 1] - before[..., 0], after[..., 1] - after[..., 0])
    assert (apart[1] <= apart[0]).all()  # never less for the label that was drawn
    changed = np.argwhere(apart[0] != apart[1])
    cells = image.astype(int) * 32 // 256
    for place in changed:
        steps = np.abs(cells[tuple(place)] - cells[places]).max(axis=1)
        assert steps.min() <= 4  # the reach of a count, and a cell for the image's own range


def test_labels_that_cover_the_image_count_alike() -> None:
    image = np.repeat([[10, 10, 10, 10, 200, 10, 200, 200]], 6, axis=0).astype(np.uint8)
    labels = np.repeat([[0, 0, 0, 0, 0, 1, 1, 1]], 6, axis=0)
    model = ColorModel(as_pixels(image), "histogram")
    few = model.costs(labels, 2, covering=True)
    shares = np.log1p(1000 * np.array([[4 / 5, 1 / 5], [1 / 3, 2 / 3]]) * 0.399 / 0.001)
    apart = (few[:, 1] - few[:, 0]).reshape(6, 8)
    np.testing.assert_allclose(apart[0, [0, 4]], shares[0] - shares[1], atol=0.13)


def test_what_is_near_a_stroke_costs_less() -> None:
    marks = np.full((9, 11), -1)
    marks[4, 1], marks[4, 9] = 0, 1
    costs = location_costs(marks.ravel(), marks.shape, 3, 8.0).reshape(9, 11, 3)
    rows, columns = np.mgrid[:9, :11]
    away = [1 + np.hypot(rows - 4, columns - place) for place in (1, 9)]
    shares = 8 * away[0] / (away[0] + away[1])
    np.testing.assert_array_equal(costs[..., 0], np.rint(8 * shares) / 8)
    np.testing.assert_allclose(costs[..., :2].sum(axis=-1), 8.0, atol=0.125)
    assert not costs[..., 2].any()
    alone = np.where(marks == 0, 0, -1)
    assert not location_costs(alone.ravel(), alone.shape, 2, 8.0).any()
