"""From an image and what somebody says of it to a field."""

import itertools
import pickle
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import setwise as sw
from setwise.images import FieldOptions
from setwise.images._boxes import as_boxes, inside_boxes
from setwise.images._colors import ColorModel
from setwise.images._pixels import as_pixels


def two_tones(shape: tuple[int, ...], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A bright block on dark ground, with noise, and the truth."""
    truth = np.zeros(shape, np.int64)
    truth[tuple(slice(side // 4, -(side // 4)) for side in shape)] = 1
    noise = np.random.default_rng(seed).normal(0, 12, shape)
    return np.clip(60 + 120 * truth + noise, 0, 255).astype(np.uint8), truth


def strokes(truth: np.ndarray) -> np.ndarray:
    marks = np.full(truth.shape, -1)
    middle = tuple(side // 2 for side in truth.shape)
    marks[middle[:-1]] = np.where(truth[middle[:-1]] == 1, 1, -1)
    marks[0] = 0
    return marks


@pytest.mark.parametrize("connectivity", [4, 8])
def test_the_energy_is_the_formula(connectivity: int) -> None:
    rng = np.random.default_rng(1)
    image = rng.integers(0, 256, (3, 4, 3))
    chances = rng.dirichlet(np.ones(3), (3, 4))
    field = sw.images.field_from_image(
        image,
        probabilities=chances,
        smoothness=1.7,
        options=FieldOptions(beta=1e-4, connectivity=connectivity),
    )
    labels = rng.integers(0, 3, (3, 4))
    pixels = list(itertools.product(range(3), range(4)))
    energy = -sum(np.log(chances[i][labels[i]]) for i in pixels)
    for i, j in itertools.combinations(pixels, 2):
        steps = np.abs(np.subtract(i, j))
        near = steps.sum() == 1 if connectivity == 4 else steps.max() == 1
        if near and labels[i] != labels[j]:
            change = float(((image[i] - image[j]) ** 2).sum())
            energy += 1.7 * np.exp(-1e-4 * change) / np.linalg.norm(steps)
    np.testing.assert_allclose(field.energy(labels.ravel()), energy)
    assert field.shape == (3, 4)


def test_regions_are_a_price_for_each_pixel_that_differs_until_they_are_given_up() -> None:
    image = np.zeros((2, 10))
    chances = np.full((2, 10, 2), 0.5)
    layer = np.repeat([[0], [-1]], 10, axis=1)
    plain, with_layer = (
        sw.images.field_from_image(
            image,
            probabilities=chances,
            smoothness=0.0,
            regions=regions,
            options=FieldOptions(region_weight=2.0),
        )
        for regions in (None, layer)
    )
    for count in range(11):
        labels = np.zeros((2, 10), int)
        labels[0, :count] = labels[1, :count] = 1
        added = with_layer.energy(labels.ravel()) - plain.energy(labels.ravel())
        assert added == pytest.approx(2.0 * min(count, 10 - count, 3))


@pytest.mark.parametrize("method", ["slic", "felzenszwalb", "quickshift"])
@pytest.mark.parametrize("channels", [None, 1, 2, 3])
def test_superpixels_of_every_method_follow_the_image(method: str, channels: int | None) -> None:
    truth = np.add.outer(np.arange(20), np.arange(24)) > 22
    image = 200.0 * truth if channels is None else 200.0 * np.stack([truth] * channels, axis=-1)
    axis = None if channels is None else -1
    field = sw.images.field_from_image(
        image, strokes(truth), regions=[{"method": method}], channel_axis=axis
    )
    (layer,) = (p.regions for p in field.potentials if hasattr(p, "regions"))
    assert layer.shape == (truth.size,)
    counts = [len(np.unique(truth.ravel()[layer == k])) for k in np.unique(layer)]
    assert np.mean(counts) < 1.5
    with pytest.raises(TypeError, match="regions must be arguments that"):
        sw.images.field_from_image(
            image, strokes(truth), regions={"method": method, "speed": 1}, channel_axis=axis
        )


def test_superpixels_of_volumes_and_unknown_methods() -> None:
    volume, marks = np.zeros((4, 5, 6)), np.full((4, 5, 6), -1)
    marks[0, 0, 0], marks[3, 4, 5] = 0, 1
    for method, words in (("quickshift", "of volumes must be made by 'slic'"), ("x", "method")):
        with pytest.raises(ValueError, match=words):
            sw.images.field_from_image(volume, marks, regions={"method": method})


@pytest.mark.parametrize("regions", [6, {"n_segments": 6, "compactness": 5.0}, [4, 8]])
def test_superpixels_are_made(regions: object) -> None:
    image, truth = two_tones((16, 20))
    field = sw.images.field_from_image(image, strokes(truth), regions=regions)
    assert len(field.potentials) == (3 if isinstance(regions, list) else 2)
    assert (sw.solve_map(field).label_image == truth).all()


@pytest.mark.parametrize("colors", ["mixture", "histogram"])
@pytest.mark.parametrize("shape", [(24, 32), (8, 12, 16)], ids=["image", "volume"])
def test_strokes_on_two_tones_find_them(colors: str, shape: tuple[int, ...]) -> None:
    image, truth = two_tones(shape)
    for connectivity in (4, 8) if len(shape) == 2 else (6, 18, 26):
        field = sw.images.field_from_image(
            image, strokes(truth), colors=colors, options=FieldOptions(connectivity=connectivity)
        )
        assert field.shape == shape
        assert np.mean(sw.solve_map(field).label_image == truth) > 0.99


@pytest.mark.parametrize("n_labels", [2, 3, 5])
def test_marked_pixels_keep_their_labels(n_labels: int) -> None:
    rng = np.random.default_rng(n_labels)
    for _ in range(5):
        image = rng.integers(0, 256, (6, 7, 3), dtype=np.uint8)
        marks = np.where(rng.random((6, 7)) < 0.4, rng.integers(0, n_labels, (6, 7)), -1)
        marks[0, :n_labels] = np.arange(n_labels)
        chances = rng.dirichlet(np.ones(n_labels), (6, 7))
        for given in (None, chances):
            field = sw.images.field_from_image(image, marks, probabilities=given, smoothness=100.0)
            found = sw.solve_map(field).label_image
            assert (found[marks >= 0] == marks[marks >= 0]).all()
            sure = sw.marginals(field).probability_image.max(axis=-1)[marks >= 0]
            np.testing.assert_allclose(sure, 1.0)


def test_a_label_that_nobody_drew_is_not_given_but_one_stroke_leaves_the_rest() -> None:
    image, truth = two_tones((20, 24))
    marks = np.where(strokes(truth) == 1, 2, strokes(truth))
    field = sw.images.field_from_image(image, marks)
    assert field.n_labels == 3
    assert np.isinf(field.unary[:, 1]).all()
    alone = np.where(marks == 2, 0, -1)
    found = sw.solve_map(sw.images.field_from_image(image, alone)).label_image
    assert (found == 1 - truth).mean() > 0.9


def test_strokes_on_every_pixel_leave_nothing_to_find_and_that_is_said() -> None:
    strokes = np.zeros((4, 5), int)  # 0 for nothing drawn, as other programs have it
    strokes[1, 1] = 1
    with pytest.warns(UserWarning, match="mark every pixel, .* hold -1 where nothing was drawn"):
        sw.images.field_from_image(np.arange(20.0).reshape(4, 5), strokes)


def test_the_shape_of_the_image_is_told_from_channels() -> None:
    rng = np.random.default_rng(0)
    marks = np.full((20, 30), -1)
    marks[2, 2:20], marks[15, 2:20] = 0, 1
    image = rng.integers(0, 256, (20, 30, 3), dtype=np.uint8)
    field = sw.images.field_from_image(image, marks)
    first = sw.images.field_from_image(np.moveaxis(image, 2, 0), marks)
    np.testing.assert_array_equal(field.unary, first.unary)
    assert as_pixels(image).shape == (20, 30)
    assert as_pixels(np.zeros((20, 30, 40))).shape == (20, 30, 40)
    assert as_pixels(np.zeros((20, 30, 40, 3))).shape == (20, 30, 40)
    assert as_pixels(image, None).shape == (20, 30, 3)
    assert as_pixels(np.zeros((5, 20, 30)), 0).values.shape == (600, 5)
    assert as_pixels(np.zeros((20, 30, 2)), sides=(20, 30)).values.shape == (600, 2)
    assert as_pixels(np.zeros((3, 20, 30)), sides=(3, 20, 30)).shape == (3, 20, 30)
    for shape in ((3, 20, 30), (20, 30, 2), (5, 20, 30), (3, 20, 4), (3, 20, 30, 40)):
        with pytest.raises(ValueError, match="channel_axis must be given"):
            as_pixels(np.zeros(shape))


def test_no_unit_of_the_colours_matters() -> None:
    image, truth = two_tones((20, 24))
    field = sw.images.field_from_image(image, strokes(truth))
    for other in (image / 255.0, image.astype(np.int32) * 100 - 7, pd.DataFrame(image)):
        changed = sw.images.field_from_image(other, strokes(truth))
        assert (sw.solve_map(changed).labels == sw.solve_map(field).labels).all()
        np.testing.assert_allclose(
            changed.potentials[0].weights, field.potentials[0].weights, rtol=1e-9
        )


# ----------------------------------------------------------------------------------------- boxes


def test_a_box_ends_where_colours_and_labels_agree() -> None:
    image, truth = two_tones((40, 48))
    box = [6, 8, 34, 40]
    field = sw.images.field_from_image(image, boxes=box)
    best = sw.solve_map(field)
    assert (best.label_image == truth).mean() > 0.99
    inside = inside_boxes(as_boxes(box, (40, 48)), (40, 48))
    again = ColorModel(as_pixels(image)).costs(best.labels, 2)
    np.testing.assert_array_equal(field.unary[inside], again[inside])
    assert (best.labels[~inside] == 0).all()


def test_strokes_overrule_a_box() -> None:
    image, _ = two_tones((40, 48))
    marks = np.full((40, 48), -1)
    marks[18:22, 20:28], marks[0, 0] = 0, 1
    found = sw.solve_map(sw.images.field_from_image(image, marks, boxes=[[6, 8, 34, 40]]))
    assert (found.label_image[marks >= 0] == marks[marks >= 0]).all()


def test_boxes_in_a_volume() -> None:
    image, truth = two_tones((12, 16, 20))
    found = sw.images.segment(image, boxes=[2, 2, 2, 10, 14, 18])
    assert (found.label_image == truth).mean() > 0.99


# ---------------------------------------------------------------------------------------- shapes


def test_fields_and_results_know_the_image() -> None:
    unary = np.random.default_rng(0).normal(size=(12, 2))
    from_grid = sw.fields.Field(unary) + sw.fields.Potts(sw.fields.grid_edges((3, 4)), 0.5)
    told = sw.fields.Field(unary, shape=(3, 4)) + sw.fields.Potts([[0, 1]], 0.5)
    for field in (from_grid, told, pickle.loads(pickle.dumps(from_grid))):
        assert field.shape == field.with_unary(unary + 1.0).shape == (3, 4)
        best, post, two = sw.solve_map(field), sw.marginals(field), sw.diverse(field, 2)
        np.testing.assert_array_equal(best.label_image.ravel(), best.labels)
        np.testing.assert_array_equal(post.label_image.ravel(), post.labels)
        np.testing.assert_array_equal(post.probability_image.reshape(12, 2), post.probabilities)
        np.testing.assert_array_equal(post.entropy_image.ravel(), post.entropy)
        np.testing.assert_array_equal(two.label_images.reshape(2, 12), two.labelings)
        assert best.shape == post.shape == two.shape == (3, 4)
        assert two.probability_image is None or two.probability_image.shape == (3, 4)
    ball = sw.diverse(from_grid, 2, sw.diversities.HammingBall(2.0, 0.5))
    assert ball.label_images.shape == (2, 3, 4)
    assert ball.probability_image is None
    for method in ("messages", "enumerate"):
        assert sw.solve_map(from_grid, method).label_image.shape == (3, 4)


@pytest.mark.parametrize(
    "make",
    [
        lambda layer: sw.fields.RobustPn(layer, 1.0, 2),
        lambda layer: sw.fields.RegionConsistency(layer, 1.0, 0.5),
    ],
)
def test_regions_may_be_a_map(make: Callable[[np.ndarray], sw.fields.Potential]) -> None:
    layer = np.random.default_rng(0).integers(-1, 3, (3, 4))
    labels = np.random.default_rng(1).integers(0, 2, (5, 12))
    flat, mapped = (
        sw.fields.Field(np.zeros((12, 2))) + make(one) for one in (layer.ravel(), layer)
    )
    np.testing.assert_array_equal(flat.energy(labels), mapped.energy(labels))


def test_a_result_without_an_image_says_so() -> None:
    best = sw.solve_map(sw.fields.Field([[0.0, 1.0]]))
    assert best.shape is None
    with pytest.raises(ValueError, match="the image's shape must be known, got a result"):
        _ = best.label_image
    part = sw.fields.Potts(sw.fields.grid_edges((3, 4)), 0.5)  # of a field with more variables
    assert (sw.fields.Field(np.zeros((20, 2))) + part).shape is None
    with pytest.raises(ValueError, match="shape must be the sides of an image of 6 pixels"):
        sw.fields.Field(np.zeros((6, 2)), shape=(2, 4))


# -------------------------------------------------------------------------------------- mistakes


def test_energies_that_look_like_something_else_are_warned_of() -> None:
    rng = np.random.default_rng(0)
    chances = rng.dirichlet(np.ones(3), 50)
    with pytest.warns(UserWarning, match=r"each row sums to 1.*-np\.log\(unary\)"):
        sw.fields.Field(chances)
    with pytest.warns(UserWarning, match=r"3 variables with 400 labels each.*unary\.T"):
        sw.fields.Field(rng.normal(size=(3, 400)))
    # None of these is a mistake, and a warning is an error here.
    sw.fields.Field(-np.log(chances))
    sw.fields.Field(np.eye(2)[rng.integers(0, 2, 50)])
    sw.fields.Field(np.full((50, 2), 0.5))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "scribbles, probabilities or boxes must be given, got none of them"),
        ({"scribbles": np.full((4, 5), -1)}, "must mark at least one pixel"),
        ({"scribbles": np.zeros((5, 4), int)}, "scribbles must have the image's shape"),
        ({"scribbles": np.full((4, 5), -2)}, "got -2"),
        ({"probabilities": np.full((2, 4, 5), 0.5)}, "the labels are the last axis"),
        ({"probabilities": np.full((4, 5, 2), 3.0)}, "sum to 1 over the last axis"),
        ({"boxes": [0, 0, 4, 9]}, "boxes must lie within the image"),
        ({"boxes": [0, 0, 4]}, r"boxes must have shape \(B, 4\)"),
        ({"boxes": [0, 0, 2, 2], "n_labels": 3}, "n_labels must be 2"),
        (
            {"scribbles": np.zeros((4, 5), int), "options": FieldOptions(connectivity=6)},
            "connectivity must be 4 or 8",
        ),
        ({"scribbles": np.zeros((4, 5), int), "colors": "k-means"}, "colors must be one of"),
        ({"scribbles": np.zeros((4, 5), int), "regions": np.zeros((5, 5), int)}, "regions must"),
        ({"scribbles": np.ones((4, 5), int), "n_labels": 1}, "n_labels must be above the label 1"),
    ],
)
def test_refusals_are_a_sentence(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        sw.images.field_from_image(np.zeros((4, 5)), **arguments)


def test_superpixels_may_be_counted_from_any_number():
    image = np.zeros((12, 15), np.uint8)
    image[:, 7:] = 200
    scribbles = np.full((12, 15), -1)
    scribbles[1, 1], scribbles[5, 12] = 0, 1
    labels = np.arange(180) % 2
    energies = {
        sw.images.field_from_image(
            image, scribbles, regions={"n_segments": 4, "start_label": first}
        ).energy(np.where(scribbles.ravel() >= 0, scribbles.ravel(), labels))
        for first in (0, 1)
    }
    assert len(energies) == 1
    with pytest.raises(ValueError, match="regions must be arguments that SLIC takes"):
        sw.images.field_from_image(image, scribbles, regions={"n_segments": 0})
