"""The three photographs of the first page: `python docs/figures/landing.py [FOLDER]`.

The photographs are scikit-image's, which are free to use: a cup of coffee, the cat Chelsea, the
astronaut Eileen Collins.
"""

import itertools
import sys
from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data, draw, transform

import setwise as sw

WIDTH, HEIGHT = 480, 320
ORANGE, BLUE = (240, 140, 0), (0, 130, 220)
# Each entry has a label and the points of a stroke, relative to height and width.
CUP = (
    (1, (0.65, 0.2), (0.8, 0.35), (0.8, 0.6)),
    (1, (0.25, 0.33), (0.5, 0.33)),
    (0, (0.1, 0.05), (0.9, 0.05)),
    (0, (0.2, 0.9), (0.8, 0.9)),
)
CAT = (
    (1, (0.25, 0.4), (0.45, 0.5), (0.75, 0.5)),
    (0, (0.1, 0.05), (0.6, 0.05)),
    (0, (0.05, 0.7), (0.3, 0.95)),
)
ASTRONAUT = (
    (1, (0.2, 0.41), (0.45, 0.45), (0.88, 0.35)),
    (0, (0.16, 0.11), (0.59, 0.06)),
    (0, (0.1, 0.7), (0.5, 0.9)),
)


def scaled(photograph, height, width):
    """Return a photograph as bytes, cropped at the bottom to the shape."""
    rows = round(photograph.shape[1] * height / width)
    part = photograph[:rows]
    return (transform.resize(part, (height, width), anti_aliasing=True) * 255).astype(np.uint8)


def drawn(strokes, shape, radius):
    """Return strokes as an image of labels, -1 where there is none."""
    scribbles = np.full(shape, -1)
    sides = np.array(shape)
    for label, *points in strokes:
        for a, b in itertools.pairwise(points):
            for place in np.linspace(np.array(a) * sides, np.array(b) * sides, 2 * max(shape)):
                scribbles[draw.disk(place, radius + 0.5, shape=shape)] = label
    return scribbles


def with_strokes(picture, scribbles):
    """Return a picture with the strokes over it."""
    shown = picture.copy()
    shown[scribbles == 1], shown[scribbles == 0] = ORANGE, BLUE
    return shown


def cut_out(photograph, mask):
    """Return a photograph that fades outside the mask."""
    grey = photograph.mean(axis=2, keepdims=True)
    return np.where(mask[..., None], photograph, (0.25 * grey + 185).astype(np.uint8))


def segmented(photograph, strokes, height, width):
    """Segment a photograph with strokes on it."""
    image = scaled(photograph, height, width)
    return sw.images.segment(image, drawn(strokes, (height, width), max(1, width // 150)))


def proof(height, width):
    """Return a segmented cup, whose labelling is proved optimal."""
    found = segmented(data.coffee(), CUP, height, width)
    assert found.exact, "the caption says so"
    return with_strokes(cut_out(found.image, found.label_image == 1), found.scribbles)


def uncertainty(height, width):
    """Return a cat in grey, in warm colours where the labels are uncertain."""
    found = segmented(data.chelsea(), CAT, height, width)
    grey = found.image.mean(axis=2, keepdims=True)
    share = (found.entropy_image / np.log(2))[..., None] ** 0.5
    warm = (1 - share) * np.array([215, 30, 40]) + share * np.array([255, 205, 60])
    blended = (1 - share) * (0.8 * grey) + share * warm
    return with_strokes(blended.round().astype(np.uint8), found.scribbles)


def alternatives(side):
    """Return six alternatives for the astronaut, from a list without settings."""
    found = segmented(data.astronaut(), ASTRONAUT, side, side)
    six = [cut_out(found.image, labels == 1) for labels in found.alternatives.label_images]
    six[0] = with_strokes(six[0], found.scribbles)
    return np.vstack([np.hstack(six[:3]), np.hstack(six[3:])])


def write(folder, height=HEIGHT, width=WIDTH):
    """Write all three photographs as JPEG."""
    pictures = {
        "proof": proof(height, width),
        "uncertainty": uncertainty(height // 2, width // 2),
        "alternatives": alternatives(width // 3),
    }
    for name, picture in pictures.items():
        shown = Image.fromarray(picture).resize((width, height), Image.Resampling.LANCZOS)
        shown.save(Path(folder) / f"landing_{name}.jpg", quality=88)


if __name__ == "__main__":
    write(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "images")
