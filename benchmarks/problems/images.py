"""Fields of images: from scribbles, boxes and probabilities."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.problems import Problem
from setwise import images
from setwise.images._segment import Segmentation


def drawn(shape: tuple[int, ...], channels: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return a noisy image of a bright block on a dark background, with a stroke on each."""
    rng = np.random.default_rng(0)
    truth = np.zeros(shape, np.int64)
    truth[tuple(slice(side // 4, -(side // 4)) for side in shape)] = 1
    noise = rng.normal(0, 20, (*shape, channels))
    image = np.clip(60 + 100 * truth[..., None] + noise, 0, 255).astype(np.uint8)
    marks = np.full(shape, -1)
    marks[0] = 0
    middle = tuple(side // 2 for side in shape[:-1])
    marks[middle] = np.where(truth[middle] == 1, 1, -1)
    return image, marks


def seen(image: np.ndarray, marks: np.ndarray | None = None, **options: Any) -> Any:
    field = images.field_from_image(image, marks, **options)
    weights = [getattr(potential, "weights", None) for potential in field.potentials]
    return [field.unary, *(array for array in weights if array is not None)]


def labeled(image: np.ndarray, marks: np.ndarray) -> Any:
    found: Segmentation = images.segment(image, marks, n_jobs=1)
    return [found.labels, found.value, found.bound, found.overlay()]


def wide() -> Iterator[Problem]:
    for shape in ((12, 14), (6, 8, 10)):
        image, marks = drawn(shape)
        for colors in ("mixture", "histogram"):
            yield f"{shape} {colors}", partial(seen, image, marks, colors=colors)
        box = [side // 8 for side in shape] + [side - side // 8 for side in shape]
        yield f"{shape} box", partial(seen, image, boxes=box)
        yield f"{shape} labels", partial(labeled, image, marks)
    image, marks = drawn((12, 14))
    chances = np.random.default_rng(1).dirichlet(np.ones(3), (12, 14))
    options = images.FieldOptions(connectivity=4)
    yield "probabilities", partial(seen, image, probabilities=chances, options=options)

    yield "files", partial(through_files, image)


def through_files(image: np.ndarray) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        images.write(f"{folder}/image.png", image, channels=True)
        return images.read(f"{folder}/image.png").pixels


def timed() -> Iterator[Problem]:
    image, marks = drawn((480, 640))
    yield "field_from_image", partial(seen, image, marks)
    yield "box", partial(seen, image[::2, ::2], boxes=[20, 20, 220, 300])
