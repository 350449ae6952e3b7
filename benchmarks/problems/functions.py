"""Set functions: every family's values and gains, and every algorithm on them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.problems import Problem, attempt, call
from setwise import functions as f


def root(total: Any) -> Any:
    return np.sqrt(total)


def capped_counts(n: Any, q: Any) -> Any:
    return np.minimum(n + 0.5 * q, 3.0)


def spread(mask: np.ndarray) -> float:
    chosen = np.flatnonzero(mask)
    return float(np.sqrt(chosen.size) + 0.1 * (chosen % 3 == 0).sum())


def _ratio(m: int, beta: float | None, part: str = "whole") -> f.Ratio:
    """Return Jaccard or F-beta; builds before 0.1.0 take the constants of the formula instead."""
    try:
        return f.Ratio(m, beta, part=part)
    except TypeError:
        b = None if beta is None else beta**2
        return f.Ratio(*((1.0, 1.0, 0.0) if b is None else (b, 1.0 + b, 1.0)), m, part)


def families(n: int, seed: int) -> dict[str, f.SetFunction]:
    """Return a function of n elements of every family, and compositions of them."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.5
    first = rng.integers(0, n, 3 * n)
    edges = np.stack([first, (first + rng.integers(1, n, 3 * n)) % n], axis=1)
    weights = rng.uniform(0.1, 2.0, n)
    concave = np.concatenate([[0.0], np.cumsum(np.sort(rng.normal(0.5, 1.0, n))[::-1])])
    m = int(positive.sum())
    made = {
        "modular": f.Modular(rng.normal(size=n)),
        "cardinality": f.Cardinality(concave),
        "any cardinality": f.Cardinality(rng.normal(size=n + 1)),
        "cut": f.Cut(edges, rng.uniform(0.0, 1.0, len(edges)), n=n),
        "directed cut": f.Cut(edges, rng.uniform(0.0, 1.0, len(edges)), n=n, directed=True),
        "coverage": f.Coverage(
            [rng.choice(2 * n, rng.integers(1, 6), replace=False) for _ in range(n)],
            rng.uniform(0.1, 1.0, 2 * n),
        ),
        "concave of modular": f.ConcaveOfModular(root, weights),
        "counts": f.Counts(capped_counts, positive),
        "table of counts": f.Counts(rng.normal(size=(m + 1, n - m + 1)), positive),
        "jaccard": f.Counts(_ratio(max(m, 1), None), positive),
        "oracle": f.Oracle(spread, n, submodular=True, increasing=True),
        "unknown oracle": f.Oracle(spread, n),
    }
    if n <= 10:
        made["table"] = f.Table(rng.normal(size=1 << n))
    made["sum"] = made["cut"] + 0.5 * made["modular"]
    made["scaled sum"] = 2.0 * made["coverage"] + 0.25 * made["cardinality"]
    made["signed sum"] = made["coverage"] - made["concave of modular"]
    half = rng.permutation(n)[: n // 2]
    made["restriction"] = made["sum"].restrict(half)
    made["contraction"] = made["sum"].contract(half)
    made["Restriction"] = made["cut"].restrict(half)
    made["Contraction"] = made["coverage"].contract(half)
    made["Complement"] = made["concave of modular"].complement()
    made["complement"] = made["directed cut"].complement()
    made["restriction of an oracle"] = made["oracle"].restrict(half)
    return made


def seen(function: f.SetFunction, seed: int) -> dict[str, Any]:
    """Return values, gains and the declared properties of a function."""
    rng = np.random.default_rng(seed)
    n = function.n
    order, w = rng.permutation(n), rng.normal(size=n)
    return {
        "values": function(rng.random((20, n)) < 0.5),
        "value": function(rng.random(n) < 0.5),
        "gains": function.gains(order),
        "first gains": function.gains(order[: n // 2]),
        "flags": [function.is_submodular, function.is_supermodular, function.is_increasing],
        "vertex": f.base_vertex(function, w),
        "extension": f.lovasz_extension(function, w),
        "restricted": function.restrict(order[: n // 2]).gains(np.arange(n // 2)),
        "contracted": function.contract(order[: n // 2]).gains(np.arange(n - n // 2)),
        "complement": function.complement().gains(order),
    }


def decomposed(function: f.SetFunction) -> Any:
    found = attempt(f.decompose, function)
    if isinstance(found, str):
        return found
    order = np.arange(function.n)
    return [found.exact, found.f.gains(order), found.g.gains(order), function.gains(order)]


def maximized(function: f.SetFunction, method: str, k: int | None = None) -> Any:
    """Call ``maximize``, whose method may have the older spelling."""
    spellings = {"double_random": ("double_random", "double-random")}.get(method, (method,))
    for spelling in spellings:
        found = attempt(f.maximize, function, k, method=spelling, rng=3)
        if not isinstance(found, str) or "must be one of" not in found:
            break
    return found


def wide() -> Iterator[Problem]:
    for n, seed in ((1, 0), (6, 1), (9, 2), (40, 3)):
        if n == 1:
            made = {"modular": f.Modular([0.5]), "cardinality": f.Cardinality([0.0, 1.0])}
        else:
            made = families(n, seed)
        for name, function in made.items():
            at = f"{n}/{name}"
            yield f"{at}/seen", partial(seen, function, seed)
            if n <= 9:
                yield f"{at}/table", lambda function=function: f.tabulate(function).values
                yield (
                    f"{at}/table flags",
                    lambda function=function: call(
                        f.check, f.tabulate(function), n_trials=200, rng=1
                    ),
                )
            yield f"{at}/check", partial(call, f.check, function, n_trials=200, rng=1)
            yield f"{at}/decompose", partial(decomposed, function)
            tilted = function + f.Modular(np.random.default_rng(seed).normal(-0.3, 1.0, function.n))
            yield f"{at}/minimize", partial(attempt, f.minimize, tilted, tol=1e-7, max_iter=300)
            for method in ("auto", "greedy", "double", "double_random"):
                yield f"{at}/maximize {method}", partial(maximized, tilted, method)
            yield f"{at}/maximize 3", partial(maximized, function, "auto", 3)
    for part in ("whole", *(p.part for p in _ratio(3, 1.0).parts())):
        ratio = _ratio(3, 1.0, part)
        n, q = np.meshgrid(np.arange(3.0), np.arange(5.0))  # n < m in all steps
        yield (
            f"ratio {part}",
            lambda ratio=ratio, n=n, q=q: [
                ratio(n, q),
                ratio.step_negative(n, q),
                ratio.step_positive(n, q),
                *(getattr(ratio, name)(4) for name in ("is_increasing", "is_submodular")),
                ratio.is_supermodular(4),
            ],
        )


def timed() -> Iterator[Problem]:
    rng = np.random.default_rng(0)
    made = families(300, 5)
    yield (
        "minimize a cut",
        partial(f.minimize, made["sum"] + f.Modular(rng.normal(-0.5, 1.0, 300)), max_iter=300),
    )
    coverage = f.Coverage([rng.choice(4000, 20, replace=False) for _ in range(1500)])
    yield "maximize a coverage", partial(f.maximize, coverage, 100)
    oracle = made["oracle"]
    orders = [rng.permutation(300) for _ in range(40)]
    yield "gains of an oracle", lambda: [oracle.gains(order) for order in orders]
    many = [rng.permutation(300) for _ in range(3000)]
    for name in ("cut", "concave of modular", "jaccard"):
        yield f"gains of {name}", lambda F=made[name]: np.array([F.gains(o) for o in many])
    yield "check", partial(call, f.check, made["cut"], n_trials=10_000, rng=0)
    yield "decompose", lambda: decomposed(f.Table(rng_table()))


def rng_table() -> np.ndarray:
    return np.random.default_rng(0).normal(size=1 << 10)
