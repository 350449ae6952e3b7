"""The memory of a tracker: given frames, the last frames, and older ones that differ."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.estimators._tracking._box_features import Bytes, Look


@dataclass(frozen=True)
class Example:
    """Boxes of a frame, the right one first, with features (n, d) and losses (n,)."""

    features: Bytes
    losses: FloatArray
    look: Look


@dataclass(frozen=True)
class TargetMemory:
    """Frames for learning and for recognising the object.

    A window of the last frames alone would lose earlier views of the object. A frame that leaves
    the window is therefore moved to a reservoir. When that is full, one of its two most similar
    frames is removed, which keeps it diverse. Given frames are kept, up to the size of both
    together.
    """

    labeled: tuple[Example, ...] = ()
    reservoir: tuple[Example, ...] = ()
    recent: tuple[Example, ...] = ()

    def examples(self) -> tuple[Example, ...]:
        """Return all examples."""
        return self.labeled + self.reservoir + self.recent

    def with_labeled(self, example: Example, most: int) -> TargetMemory:
        """Add a given example; the first example is never removed."""
        labeled = (*self.labeled, example)
        return replace(self, labeled=labeled[:1] + _diverse(labeled[1:], most - 1))

    def with_found(self, example: Example, n_recent: int, n_reservoir: int) -> TargetMemory:
        """Add an example that was found by the tracker."""
        recent = (*self.recent, example)
        gone, recent = recent[:-n_recent], recent[-n_recent:]
        reservoir = self.reservoir
        for old in gone:
            reservoir = _diverse((*reservoir, old), n_reservoir)
        return replace(self, reservoir=reservoir, recent=recent)

    def likeness(self, seen: Look) -> FloatArray:
        """Return the similarities (n,) of looks (n, d) to the nearest remembered one, at most 1."""
        kept = np.stack([example.look for example in self.examples()])
        likeness: FloatArray = (seen @ kept.T).max(axis=1).astype(np.float64)
        return likeness


def _diverse(examples: tuple[Example, ...], most: int) -> tuple[Example, ...]:
    """Keep at most ``most`` examples: of the two most similar, drop the one nearer to others."""
    if most <= 1:
        return examples[:most]
    while len(examples) > most:
        looks = np.stack([example.look for example in examples])
        alike = looks @ looks.T
        np.fill_diagonal(alike, -2.0)
        first, second = divmod(int(alike.argmax()), len(examples))
        nearer = [np.partition(alike[k], -2)[-2] for k in (first, second)]
        drop = first if nearer[0] > nearer[1] else second
        examples = examples[:drop] + examples[drop + 1 :]
    return examples
