"""Where randomness comes from: an argument, as in scikit-learn."""

from __future__ import annotations

import numpy as np


def as_generator(random_state: object) -> np.random.Generator:
    """A generator: fresh for None, seeded by an integer, the one given otherwise."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    if isinstance(random_state, bool | np.bool_) or not isinstance(random_state, int | np.integer):
        raise TypeError(
            "random_state must be None, an integer or a numpy generator, "
            f"got {type(random_state).__name__}"
        )
    if random_state < 0:
        raise ValueError(f"random_state must not be negative, got {random_state}")
    return np.random.default_rng(int(random_state))
