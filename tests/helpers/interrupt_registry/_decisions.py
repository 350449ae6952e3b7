"""Long calls of decisions."""

from __future__ import annotations

import numpy as np
import torch

import setwise as sw
from interrupt_registry._calls import Call, long


@long("decisions.decide", "integrals")
def by_integrals(size: int) -> Call:
    p = np.random.default_rng(0).random((20 * size, 400))
    return lambda: sw.decide(p, "dice", n_jobs=1)


@long("decisions.decide", "samples")
def by_samples(size: int) -> Call:
    loss = sw.losses.Jaccard() + sw.losses.Hamming()
    p = np.random.default_rng(0).random((size, 12))
    return lambda: sw.decide(p, loss)


@long("decisions.decide", "label maps")
def of_classes(size: int) -> Call:
    p = np.random.default_rng(0).dirichlet(np.ones(5), 4000 * size)
    return lambda: sw.decide(p, "jaccard", classes="exclusive", n_jobs=1)


@long("torch.decide")
def of_tensors(size: int) -> Call:
    p = torch.rand(20 * size, 400, generator=torch.Generator().manual_seed(0))
    return lambda: sw.torch.decide(p, "jaccard", activation="none", per_image=True)


@long("decisions.decide_at_k")
def of_budgets(size: int) -> Call:
    p = np.random.default_rng(0).random((100 * size, 60))
    return lambda: sw.decide_at_k(p, "dice", 5, n_jobs=1)
