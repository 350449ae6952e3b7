"""Sources of randomness: ``rng`` of functions (SPEC 7) and ``random_state`` of estimators."""

from __future__ import annotations

import numpy as np


def as_generator(source: object, name: str = "rng") -> np.random.Generator:
    """Return a generator: a new one for None or an integer seed, else the given one."""
    check_randomness(source, name)
    if isinstance(source, np.random.Generator):
        return source
    if source is None:
        return np.random.default_rng()
    if isinstance(source, np.random.RandomState):
        return np.random.default_rng(source.randint(2**31, size=4))
    assert isinstance(source, int | np.integer)
    return np.random.default_rng(int(source))


def check_randomness(source: object, name: str = "rng") -> None:
    """Raise an error unless ``source`` is a source of randomness. Nothing is drawn from it."""
    if source is None or isinstance(source, np.random.Generator | np.random.RandomState):
        return
    if isinstance(source, bool | np.bool_) or not isinstance(source, int | np.integer):
        raise TypeError(
            f"{name} must be None, an integer or a numpy generator, got {type(source).__name__}"
        )
    if source < 0:
        raise ValueError(f"{name} must not be negative, got {source}")
