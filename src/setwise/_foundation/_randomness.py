"""Where randomness comes from: an argument, as in scikit-learn."""

from __future__ import annotations

import numpy as np


def as_generator(random_state: object) -> np.random.Generator:
    """A generator: fresh for None, seeded by an integer, the one given otherwise."""
    check_randomness(random_state)
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    assert isinstance(random_state, int | np.integer)
    return np.random.default_rng(int(random_state))


def check_randomness(random_state: object) -> None:
    """Raise unless it is a source of randomness; nothing is drawn from it."""
    if random_state is None or isinstance(
        random_state, np.random.Generator | np.random.RandomState
    ):
        return
    if isinstance(random_state, bool | np.bool_) or not isinstance(random_state, int | np.integer):
        raise TypeError(
            "random_state must be None, an integer or a numpy generator, "
            f"got {type(random_state).__name__}"
        )
    if random_state < 0:
        raise ValueError(f"random_state must not be negative, got {random_state}")
