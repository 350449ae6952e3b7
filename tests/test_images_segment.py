"""An image and a few strokes in, labels and what is known of them out; pictures of all of it."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

import setwise as sw
from setwise._foundation._display import PALETTE, data_uri, heat_picture, label_picture, png


def a_case() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    image = rng.integers(0, 60, (18, 24, 3), dtype=np.uint8)
    image[4:14, 6:18] += 150
    scribbles = np.full((18, 24), -1)
    scribbles[1, 2:22], scribbles[9, 8:16] = 0, 1
    return image, scribbles


@pytest.fixture(scope="module")
def found() -> sw.images.Segmentation:
    return sw.images.segment(*a_case())


def test_a_segmentation_is_what_its_parts_say(found: sw.images.Segmentation) -> None:
    field = sw.images.field_from_image(*a_case())
    best = sw.solve_map(field)
    np.testing.assert_array_equal(found.labels, best.labels)
    np.testing.assert_array_equal(found.label_image, best.labels.reshape(18, 24))
    assert (found.value, found.bound, found.gap) == (best.value, best.bound, best.gap)
    assert (found.exact, best.relative_gap) == (True, 0.0)
    assert found.certificate is found.result
    post = sw.marginals(field, tol=1e-2)
    np.testing.assert_array_equal(found.entropy, post.entropy)
    np.testing.assert_array_equal(found.entropy_image.ravel(), post.entropy)
    np.testing.assert_array_equal(found.probability_image.reshape(-1, 2), post.probabilities)
    listed = sw.diverse(field, 6)
    np.testing.assert_array_equal(found.alternatives.labelings, listed.labelings)
    assert found.alternatives is found.alternatives
    assert found.shape == (18, 24)


def test_an_overlay_mixes_colours_and_image(found: sw.images.Segmentation) -> None:
    image, scribbles = a_case()
    assert (found.overlay(opacity=0.0, scribbles=False) == image).all()
    opaque = found.overlay(opacity=1.0)
    assert (opaque == PALETTE[found.label_image]).all()
    half = found.overlay().astype(int)
    assert half.shape == (18, 24, 3)
    unmarked = scribbles < 0
    between = (image.astype(int) + PALETTE[found.label_image]) // 2
    np.testing.assert_array_equal(half[unmarked], between[unmarked])
    np.testing.assert_array_equal(half[~unmarked], PALETTE[scribbles[~unmarked]])
    other = found.overlay(np.zeros((18, 24), int), opacity=1.0, scribbles=False)
    assert (other == PALETTE[0]).all()
    with pytest.raises(ValueError, match=r"labels must have shape \(18, 24\)"):
        found.overlay(np.zeros((3, 3), int))
    with pytest.raises(ValueError, match="opacity must be at most 1"):
        found.overlay(opacity=1.5)


@pytest.mark.parametrize("kind", [np.float64, np.int16, np.bool_])
def test_grey_images_and_volumes_are_shown_in_grey(kind: type) -> None:
    rng = np.random.default_rng(0)
    for shape in ((10, 12), (6, 8, 10)):
        image = (rng.random(shape) > 0.5).astype(kind)
        marks = np.full(shape, -1)
        marks[0, 0], marks[1, 1] = 0, 1
        found = sw.images.segment(image, marks, channel_axis=None)
        picture = found.overlay(opacity=0.0, scribbles=False)
        np.testing.assert_array_equal(
            picture, 255 * image.astype(np.uint8)[..., None].repeat(3, -1)
        )


# -------------------------------------------------------------------------------------- pictures


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3), (1, 1), (300, 2, 3)])
def test_a_picture_is_a_png_that_others_read(shape: tuple[int, ...]) -> None:
    picture = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    read = np.asarray(Image.open(io.BytesIO(png(picture))))
    np.testing.assert_array_equal(read, picture)


def test_large_pictures_are_thinned() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (900, 500), dtype=np.uint8)
    read = of_address(data_uri(picture, 300))
    np.testing.assert_array_equal(read, picture[::3, ::3])


def of_address(address: str) -> np.ndarray:
    encoded = address.removeprefix("data:image/png;base64,")
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(encoded))))


def pictures_in(html: str) -> list[np.ndarray]:
    return [of_address(address) for address in re.findall(r'src="([^"]*)"', html)]


def test_notebooks_show_a_table_and_pictures(found: sw.images.Segmentation) -> None:
    labels = label_picture(found.label_image)
    np.testing.assert_array_equal(labels, PALETTE[found.label_image])
    entropy = heat_picture(found.entropy_image, np.log(2))
    alternatives = [label_picture(one) for one in found.alternatives.label_images]
    least = label_picture(found.field.unary.argmin(axis=1).reshape(18, 24))
    for shown, pictures in (
        (found.field, [least]),
        (found.result, [labels]),
        (found.marginals, [label_picture(found.marginals.label_image), entropy]),
        (found.alternatives, alternatives),
        (found, [found.overlay()]),
    ):
        html = shown._repr_html_()
        assert html.startswith("<div")
        assert html.endswith("</div>")
        assert type(shown).__name__ in html
        for read, picture in zip(pictures_in(html), pictures, strict=True):
            np.testing.assert_array_equal(read, picture)
    assert "no labelling is better" in found._repr_html_()


def test_without_an_image_there_is_a_table_alone() -> None:
    field = sw.fields.Field([[0.0, 1.0], [1.0, 0.0]]) + sw.fields.Potts([[0, 1]], 0.5)
    for shown in (field, sw.solve_map(field), sw.marginals(field), sw.diverse(field, 2)):
        html = shown._repr_html_()
        assert "<table>" in html
        assert "<img" not in html


def test_words_in_tables_are_escaped() -> None:
    class Odd(sw.fields.Potential):
        def terms(self, n_variables: int, n_labels: int) -> tuple[()]:
            return ()

        def __repr__(self) -> str:
            return "<script>"

    html = (sw.fields.Field([[0.0, 1.0]]) + Odd())._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_a_volume_is_shown_by_the_slice_in_the_middle() -> None:
    field = sw.fields.Field(np.random.default_rng(0).normal(size=(60, 2)), shape=(3, 4, 5))
    (picture,) = pictures_in(sw.solve_map(field)._repr_html_())
    np.testing.assert_array_equal(picture, label_picture(sw.solve_map(field).label_image[1]))


def test_a_history_prints_in_a_line() -> None:
    fit = sw.learning.one_slack(lambda w: (abs(w[0] - 1), np.sign(w - 1)), 1, C=0.5)
    told = repr(fit.history)
    assert "\n" not in told
    assert f"{len(fit.history.primal)} rounds" in told
