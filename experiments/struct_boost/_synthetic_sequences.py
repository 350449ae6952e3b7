"""Sequences with known boxes: a textured patch that moves over a moving ground.

One half is for development, the other for the report. The second half has other seeds, and textures
of another kind (filtered noise in the first, cells and stripes in the second). The patch changes in
one of these ways:

- "turn": it is wound around a cylinder that turns, so that other sides of it become visible;
- "roll": it turns in the plane of the image;
- "scale": it grows and shrinks, by up to a third;
- "light": the brightness of the patch and of the ground changes, each at its own pace;
- "cover": something passes in front and hides it completely for a while, while it moves on;
- "rivals": similar patches pass by, two thirds of them the patch and one third something else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates
from scipy.spatial import cKDTree

HEIGHT, WIDTH, LENGTH = 240, 320, 180
SIDES = (48.0, 60.0)  # width and height of the patch
EVENTS = ("turn", "roll", "scale", "light", "cover", "rivals")
KINDS = {
    "plain": (),
    **{event: (event,) for event in EVENTS},
    "turn + cover": ("turn", "cover"),
    "rivals + cover": ("rivals", "cover"),
    "all": EVENTS,
}
HALVES = {"development": 0, "report": 1}


@dataclass(frozen=True)
class Sequence:
    """Frames (t, h, w) of bytes, boxes (t, 4), and the visible share of the patch (t,)."""

    frames: np.ndarray
    boxes: np.ndarray
    visible: np.ndarray


def texture(rng: np.random.Generator, height: int, width: int, half: str) -> np.ndarray:
    """Return grey values of mean 128: noise at several scales, or cells, some with stripes."""
    if half == "development":
        octaves = [gaussian_filter(rng.normal(size=(height, width)), s) * s for s in (1.5, 4, 10)]
        image = sum(octaves)
    else:
        centers = rng.random((height * width // 150, 2)) * (height, width)
        y, x = np.indices((height, width))
        cell = cKDTree(centers).query(np.stack([y, x], axis=-1))[1]
        greys, angles = rng.normal(size=len(centers)), rng.uniform(0, np.pi, len(centers))
        along = x * np.cos(angles[cell]) + y * np.sin(angles[cell])
        image = gaussian_filter(greys[cell] + 0.6 * np.sin(1.2 * along), 0.7)
    return 128 + 45 * (image - image.mean()) / image.std()


def wander(rng: np.random.Generator, length: int, low: float, high: float, pace: float):
    """Return a smooth path (length,) between two bounds, reflected at them."""
    steps = gaussian_filter(rng.normal(size=length + 40), 6)[20:-20]
    path = rng.uniform(low, high) + np.cumsum(pace * steps / steps.std())
    span = max(high - low, 1e-9)
    return low + np.abs((path - low + span) % (2 * span) - span)


def place(frame: np.ndarray, look: np.ndarray, center, sides, angle: float = 0.0) -> np.ndarray:
    """Paint a patch into a frame, stretched to ``sides`` and turned; return its pixels."""
    y, x = np.indices(frame.shape)
    right, down = x - center[0], y - center[1]
    across = (right * np.cos(angle) + down * np.sin(angle)) / sides[0] + 0.5
    along = (down * np.cos(angle) - right * np.sin(angle)) / sides[1] + 0.5
    inside = (across >= 0) & (across < 1) & (along >= 0) & (along < 1)
    height, width = look.shape
    at = [along[inside] * height - 0.5, across[inside] * width - 0.5]
    frame[inside] = map_coordinates(look, at, order=1, mode="nearest")
    return inside


def sequence(kind: str, half: str, seed: int, length: int = LENGTH) -> Sequence:
    """Return the sequence of a kind; it is the same for the same arguments."""
    events = KINDS[kind]
    rng = np.random.default_rng([HALVES[half], list(KINDS).index(kind), seed])
    ground = 128 + 0.7 * (texture(rng, 2 * HEIGHT, 2 * WIDTH, half) - 128)
    wide, high = (int(side) for side in SIDES)
    around = texture(rng, high, 4 * wide, half)  # all sides of the patch
    around = np.clip(1.3 * (around - 128) + 128 + rng.choice([-40, 40]), 0, 255)
    other = texture(rng, high, wide, half)
    front = texture(rng, 100, 80, half)
    centers = np.column_stack(
        [wander(rng, length, 50, WIDTH - 50, 2.5), wander(rng, length, 50, HEIGHT - 50, 2.0)]
    )
    rivals = [
        np.column_stack(
            [wander(rng, length, 30, WIDTH - 30, 2.5), wander(rng, length, 40, HEIGHT - 40, 2.0)]
        )
        for _ in range(2)
    ]
    pan = np.column_stack([wander(rng, length, 0, HEIGHT, 1.2), wander(rng, length, 0, WIDTH, 1.2)])
    turn = wander(rng, length, 0.0, 1.0, 0.009) if "turn" in events else np.zeros(length)
    turn = turn - turn[0] if "turn" in events else turn
    roll = wander(rng, length, -0.6, 0.6, 0.03) if "roll" in events else np.zeros(length)
    roll = roll - roll[0]
    scale = np.ones(length)
    if "scale" in events:
        scale = np.exp(wander(rng, length, -0.29, 0.29, 0.012))
        scale /= scale[0]
    phase = rng.uniform(0, 2 * np.pi, 2)
    covers = [length // 3, (2 * length) // 3] if "cover" in events else []
    frames, boxes, visible = [], [], []
    for t in range(length):
        y, x = pan[t].astype(int)
        frame = ground[y : y + HEIGHT, x : x + WIDTH].copy()
        shift = (3 * wide * turn[t]) % (4 * wide)
        angle = np.arcsin(2 * (np.arange(wide) + 0.5) / wide - 1)  # half of the cylinder is visible
        columns = (shift + 2 * wide * angle / np.pi) % (4 * wide)
        look = map_coordinates(
            around, np.meshgrid(np.arange(high), columns, indexing="ij"), order=1, mode="grid-wrap"
        )
        light = [1.0, 1.0]
        if "light" in events:
            light = [
                1 + 0.4 * np.sin(2 * np.pi * t / period + p)
                for period, p in zip((110, 70), phase, strict=True)
            ]
        frame = 128 + light[0] * (frame - 128) + 40 * (light[0] - 1)
        sides = np.array(SIDES) * scale[t]
        own = place(frame, light[1] * look, centers[t], sides, roll[t])
        hidden = np.zeros_like(own)
        for k, path in enumerate(rivals if "rivals" in events else []):
            alike = 0.67 * look + 0.33 * np.roll(other, 13 * k, axis=1)
            far = path[t] + (0, 70 * np.exp(-t / 10))  # no other patch covers it in the first frame
            hidden |= place(frame, light[1] * alike, far, sides)
        for begin in covers:
            way = (t - begin) / 24  # it moves from one side to the other, and slower over the patch
            if -1 <= way <= 1:
                offset = 150 * way**3
                hidden |= place(frame, front, centers[t] + (offset, 0), (80.0, 100.0))
        frame += rng.normal(0, 3, frame.shape)
        frames.append(np.clip(np.rint(frame), 0, 255).astype(np.uint8))
        boxes.append([*(centers[t] - sides / 2), *sides])
        visible.append(1 - np.sum(own & hidden) / max(np.sum(own), 1))
    return Sequence(np.array(frames), np.array(boxes), np.array(visible))
