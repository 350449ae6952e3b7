"""Answers to the last bit: they hang neither on threads nor on where arrays lie in memory."""

import numpy as np
import pytest
from field_registry import FIELDS, of_seed

from setwise import marginals


@pytest.mark.parametrize("name", [name for name in FIELDS if of_seed(name, 0).is_submodular])
def test_marginals_do_not_hang_on_memory_or_threads(name):
    rng = np.random.default_rng(0)
    kept, answers = [], set()
    for k in range(12):
        kept.append(np.empty(rng.integers(1, 3000), np.uint8))  # the next arrays lie elsewhere
        post = marginals(of_seed(name, 0), "projection", tol=1e-4, max_iter=30, n_jobs=1 + k % 2)
        answers.add((post.log_partition_upper, post.probabilities.tobytes()))
    assert len(answers) == 1
