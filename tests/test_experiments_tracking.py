"""The sequences that trackers are developed and reported on."""

import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent.parent / "experiments"
if not FOLDER.exists():
    pytest.skip("the experiments are not part of this copy", allow_module_level=True)
sys.path.insert(0, str(FOLDER.parent))

from experiments.struct_boost._synthetic_sequences import HALVES, place, sequence, wander  # noqa: E402


@pytest.mark.parametrize("half", HALVES)
def test_a_drawn_sequence_is_the_same_each_time(half: str) -> None:
    drawn, again = (sequence("all", half, 0, length=4) for _ in range(2))
    assert np.array_equal(drawn.frames, again.frames)
    assert drawn.frames.shape == (4, 240, 320)
    assert drawn.frames.dtype == np.uint8
    assert drawn.boxes.shape == (4, 4)
    corners = drawn.boxes[:, :2] + drawn.boxes[:, 2:]
    assert np.all(drawn.boxes[:, :2] >= 0)
    assert np.all(corners <= (320, 240))
    assert np.all((drawn.visible >= 0) & (drawn.visible <= 1))


def test_a_patch_is_painted_where_its_box_is() -> None:
    frame = np.zeros((20, 30))
    inside = place(frame, np.full((4, 4), 9.0), (15.0, 10.0), (6.0, 4.0))
    assert np.array_equal(np.argwhere(inside).min(axis=0), [8, 12])
    assert inside.sum() == 24
    assert np.all(frame[inside] == 9.0)
    assert np.all(frame[~inside] == 0.0)


def test_paths_stay_between_their_bounds() -> None:
    path = wander(np.random.default_rng(0), 500, 3.0, 9.0, 2.0)
    assert path.min() >= 3.0
    assert path.max() <= 9.0
    assert np.abs(np.diff(path)).max() < 6.0
