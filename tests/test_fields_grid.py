"""Grids, contrast weights and regions of label maps, each against a plain loop."""

import pickle
from copy import deepcopy
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

from setwise import fields
from setwise.fields import _edges
from setwise.fields._edges import grid_of

CONNECTIVITIES = {1: [2], 2: [4, 8], 3: [6, 18, 26]}


@st.composite
def grids(draw: st.DrawFn) -> tuple[tuple[int, ...], int]:
    shape = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    return tuple(shape), draw(st.sampled_from(CONNECTIVITIES[len(shape)]))


@given(grids())
def test_grid_edges_are_the_pairs_of_neighbours(grid: tuple[tuple[int, ...], int]) -> None:
    shape, connectivity = grid
    changes = CONNECTIVITIES[len(shape)].index(connectivity) + 1
    pixels = list(product(*map(range, shape)))
    near = {
        (i, j)
        for (i, p), (j, q) in product(enumerate(pixels), repeat=2)
        if i < j
        and max(abs(a - b) for a, b in zip(p, q, strict=True)) == 1
        and sum(a != b for a, b in zip(p, q, strict=True)) <= changes
    }
    edges = fields.grid_edges(shape, connectivity)
    assert edges.dtype == np.int64
    assert edges.shape == (len(near), 2)
    assert {tuple(edge) for edge in edges.tolist()} == near


def test_smaller_neighbourhoods_come_first() -> None:
    six, eighteen, most = (fields.grid_edges((3, 4, 2), k) for k in (6, 18, 26))
    np.testing.assert_array_equal(eighteen[: len(six)], six)
    np.testing.assert_array_equal(most[: len(eighteen)], eighteen)
    np.testing.assert_array_equal(fields.grid_edges((3, 4, 2)), six)


def test_offsets_are_directions() -> None:
    shape = (3, 4)
    at = np.arange(12).reshape(shape)
    edges = fields.grid_edges(shape, [[0, 1], [1, -2]])
    across = np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], axis=1)
    knights = np.stack([at[:-1, 2:].ravel(), at[1:, :-2].ravel()], axis=1)
    np.testing.assert_array_equal(edges, np.concatenate([across, knights]))
    backwards = fields.grid_edges(shape, [[0, -1]])
    assert sorted(map(sorted, backwards.tolist())) == sorted(map(sorted, across.tolist()))
    assert len(fields.grid_edges(shape, [[5, 0]])) == 0
    assert fields.grid_edges(4).tolist() == [[0, 1], [1, 2], [2, 3]]


def test_weights_are_the_formula() -> None:
    rng = np.random.default_rng(0)
    edges = fields.grid_edges((4, 5), 8)
    for image in (
        rng.integers(0, 256, (4, 5, 3)).astype(np.uint8),
        rng.integers(0, 256, (4, 5)).astype(np.uint8),
        rng.normal(size=(4, 5, 2)),
    ):
        flat = image.reshape(20, -1).astype(float)
        squares = np.array([((flat[i] - flat[j]) ** 2).sum() for i, j in edges])
        for beta in (0.0, 3.0 / 255**2):
            ours = fields.contrast_weights(image, edges, beta)
            np.testing.assert_allclose(ours, np.exp(-beta * squares), rtol=1e-12)
        ours = fields.contrast_weights(image, edges)
        np.testing.assert_allclose(ours, np.exp(-squares / (2 * squares.mean())), rtol=1e-12)


def test_weights_of_volumes_and_of_flat_images() -> None:
    volume = np.arange(8.0).reshape(2, 2, 2)
    edges = fields.grid_edges((2, 2, 2))
    weights = fields.contrast_weights(volume, edges, 0.1, channels=False)
    np.testing.assert_allclose(weights, np.exp(-0.1 * np.diff(edges, axis=1)[:, 0] ** 2.0))
    assert fields.contrast_weights(np.ones((2, 2)), [[0, 1], [2, 3]]).tolist() == [1.0, 1.0]
    assert fields.contrast_weights(np.ones((2, 2)), []).shape == (0,)
    colored = fields.contrast_weights(np.ones((3, 2)), [[0, 2]], channels=True)
    assert colored.tolist() == [1.0]


@pytest.mark.parametrize(
    ("shape", "neighbors"), [((5,), [2]), ((4, 3), [4, 8]), ((3, 2, 4), [6, 18, 26])]
)
def test_connectivity_as_in_scikit_image(shape, neighbors) -> None:
    for differing, number in enumerate(neighbors, start=1):
        edges = fields.grid_edges(shape, differing)
        np.testing.assert_array_equal(edges, fields.grid_edges(shape, number))


def test_many_dimensions_need_no_list_of_all_neighbours() -> None:
    assert fields.grid_edges((1,) * 16).shape == (0, 2)
    assert fields.grid_edges((2,) + (1,) * 30).tolist() == [[0, 1]]
    assert len(fields.grid_edges((2,) * 4, 3**4 - 1)) == 16 * 15 // 2
    with pytest.raises(ValueError, match=r"connectivity must be 1 or 2 .* 32 or 512 or .* got 430"):
        fields.grid_edges((1,) * 16, 3**16 - 1)


def test_weights_do_not_overflow() -> None:
    edges = [[0, 1], [1, 2]]
    for scale in (1.0, 1e200, 1.7e308, 1e-200):
        weights = fields.contrast_weights(scale * np.array([[0.0, 1.0, -1.0]]), edges)
        np.testing.assert_allclose(weights, np.exp([-1 / 5, -4 / 5]), rtol=1e-12)
    image = np.array([[-1.7e308, 1.7e308, 1.7e308, 0.0, 1.0]])
    along = fields.grid_edges((1, 5))
    for beta, expected in ((0.0, [1, 1, 1, 1]), (1.0, [0, 1, 0, np.exp(-1)])):
        assert fields.contrast_weights(image, along, beta) == pytest.approx(expected, rel=1e-12)
    tiny = fields.contrast_weights(np.array([[0.0, 1e160]]), [[0, 1]], 1e-320)
    assert tiny == pytest.approx([np.exp(-1)], rel=1e-3)  # such a beta has three digits


@given(st.integers(0, 2**32 - 1), st.sampled_from([4, 8]))
def test_connected_regions_are_the_components_of_each_label(seed: int, connectivity: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(-1, 3, (5, 6))
    ours = fields.regions_from_labels(labels, ignore=-1, connected=True, connectivity=connectivity)
    structure = np.ones((3, 3)) if connectivity == 8 else None
    pieces = [ndimage.label(labels == value, structure) for value in range(3)]
    assert ours.max() + 1 == sum(count for _, count in pieces)
    np.testing.assert_array_equal(ours == -1, (labels == -1).ravel())
    for found, count in pieces:
        for piece in range(1, count + 1):
            assert len(set(ours[(found == piece).ravel()])) == 1
    first = [int(np.argmax(ours == r)) for r in range(ours.max() + 1)]
    assert first == sorted(first)


def test_regions_are_numbered_by_label() -> None:
    labels = np.array([[30, -5], [30, 2**40]])
    assert fields.regions_from_labels(labels).tolist() == [1, 0, 1, 2]
    assert fields.regions_from_labels(labels, ignore=30).tolist() == [-1, 0, -1, 1]
    assert fields.regions_from_labels(np.zeros((0, 3), int), connected=True).shape == (0,)
    assert fields.regions_from_labels(np.array([[1, 0]], np.uint8), ignore=0).tolist() == [0, -1]


IMAGE = np.zeros((2, 2))

REFUSED = {
    "shape of nothing": (lambda: fields.grid_edges(()), ValueError, "at least one dimension"),
    "shape of float": (lambda: fields.grid_edges((2.0, 2)), TypeError, "shape must be an integer"),
    "shape below 0": (lambda: fields.grid_edges((2, -1)), ValueError, "shape must be at least 0"),
    "shape of a set": (lambda: fields.grid_edges({1, 2}), TypeError, "shape must be a sequence"),
    "ragged shape": (lambda: fields.grid_edges([[1], [1, 2]]), TypeError, "shape must be an int"),
    "shape of many sides": (
        lambda: fields.grid_edges((1,) * 32), ValueError, "at most 31 sides, got 32",
    ),
    "shape beyond memory": (
        lambda: fields.grid_edges((2**20, 2**20)), ValueError, "shape .* fits into memory, got",
    ),
    "side beyond numbers": (
        lambda: fields.grid_edges((2**70, 0)), ValueError, "shape .* fits into memory, got",
    ),
    "shape beyond numbers": (
        lambda: fields.grid_edges((2**40, 2**40)), ValueError, "shape .* fits into memory, got",
    ),
    "ragged offsets": (
        lambda: fields.grid_edges((2, 2), [[0, 1], [1]]), TypeError, "connectivity must be an arr",
    ),
    "five neighbours": (
        lambda: fields.grid_edges((2, 2), 5), ValueError, "4 or 8 in 2 dimensions.*got 5",
    ),
    "opposite offsets": (
        lambda: fields.grid_edges((2, 2), [[0, 1], [0, -1]]), ValueError, r"once.*got \(0, -1\)",
    ),
    "offset 0": (lambda: fields.grid_edges((2, 2), [[0, 0]]), ValueError, r"got \(0, 0\)"),
    "offsets of float": (
        lambda: fields.grid_edges((2, 2), [[0.0, 1.0]]), TypeError, "connectivity must hold",
    ),
    "offsets of three axes": (
        lambda: fields.grid_edges((2, 2), [[0, 0, 1]]), ValueError, r"shape \(K, 2\)",
    ),
    "image of text": (
        lambda: fields.contrast_weights([["a"]], []), TypeError, "image must hold real numbers",
    ),
    "ragged image": (
        lambda: fields.contrast_weights([[1], [1, 2]], []), TypeError,
        "image must be an array of numbers, got rows of different lengths",
    ),
    "masked image": (
        lambda: fields.contrast_weights(np.ma.masked_equal(IMAGE, 0), []), TypeError,
        "image must be a plain array, got a masked one",
    ),
    "image of one number": (lambda: fields.contrast_weights(1.0, []), ValueError, "axes for its"),
    "image with NaN": (
        lambda: fields.contrast_weights([[np.nan]], []), ValueError, "image must be finite",
    ),
    "edge beyond": (
        lambda: fields.contrast_weights(IMAGE, [[0, 4]]), ValueError, "edges must join.*got 4",
    ),
    "negative beta": (
        lambda: fields.contrast_weights(IMAGE, [[0, 1]], -1.0), ValueError, "beta must not be",
    ),
    "channels of int": (
        lambda: fields.contrast_weights(IMAGE, [], channels=3), TypeError, "channels must be True",
    ),
    "labels of float": (
        lambda: fields.regions_from_labels([0.5]), TypeError, "labels must hold integers",
    ),
    "one label": (lambda: fields.regions_from_labels(1), ValueError, "at least one axis"),
    "ignore of float": (
        lambda: fields.regions_from_labels([1], ignore=0.5), TypeError, "ignore must be an integer",
    ),
    "connected of int": (
        lambda: fields.regions_from_labels([1], connected=1), TypeError, "connected must be",
    ),
    "connectivity alone": (
        lambda: fields.regions_from_labels([1], connectivity=2), ValueError, "left out unless",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_one_sentence(case: str) -> None:
    call, error, sentence = REFUSED[case]
    with pytest.raises(error, match=sentence):
        call()


# ------------------------------------------------------------------ what the edges remember


def test_edges_of_a_grid_cannot_be_written() -> None:
    edges = fields.grid_edges((2, 3))
    for array in (edges, edges.view(), edges[1:], fields.Potts(edges, 1.0).edges):
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.setflags(write=True)
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 5
    with pytest.raises(ValueError, match="read-only"):
        edges += 1
    with pytest.raises(ValueError, match="read-only"):
        edges.sort(axis=0)
    assert edges.copy().flags.writeable


def test_only_the_edges_themselves_are_known_to_be_a_grid() -> None:
    edges = fields.grid_edges((2, 3), 8)
    assert grid_of(edges) == ((2, 3), ((0, 1), (1, 0), (1, -1), (1, 1)))
    assert grid_of(np.asarray(edges)) is grid_of(edges)
    assert fields.Potts(edges, 1.0).edges is edges
    others = [
        edges[:],
        edges[::-1],
        edges[:4],
        edges[:, ::-1],
        edges[np.arange(len(edges))],
        edges + 0,
        edges.copy(),
        edges.view(),
        edges.reshape(-1, 2),
        edges.astype(np.int64),
        np.array(edges),
        np.concatenate([edges, edges]),
        np.ascontiguousarray(edges[:, :]),
        pickle.loads(pickle.dumps(edges)),
        deepcopy(edges),
        pickle.loads(pickle.dumps(fields.Potts(edges, 1.0))).edges,
        fields.Potts(edges[:], 1.0).edges,
    ]
    assert [grid_of(other) for other in others] == [None] * len(others)


def test_the_memory_of_a_grid_goes_with_its_edges() -> None:
    edges = fields.grid_edges((5, 5))
    alive = _edges._GRIDS[id(edges)][0]
    assert alive() is edges
    del edges
    assert alive() is None  # nothing holds the array itself
    kept = fields.grid_edges((2, 2))  # what is gone is forgotten with the next
    assert all(alive() is not None for alive, _ in _edges._GRIDS.values())
    assert _edges.grid_of(kept) is not None


@given(grids())
def test_the_last_pixel_with_a_neighbour(grid: tuple[tuple[int, ...], int]) -> None:
    edges = fields.grid_edges(*grid)
    known = grid_of(edges)
    assert known is not None
    assert known.last == edges.max(initial=-1)


def test_the_last_pixel_with_a_neighbour_in_given_directions() -> None:
    for step in product(range(-3, 4), repeat=2):
        if any(step):
            edges = fields.grid_edges((3, 4), [step])
            known = grid_of(edges)
            assert known is not None
            assert known.last == edges.max(initial=-1)
