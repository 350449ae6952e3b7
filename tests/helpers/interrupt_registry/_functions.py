"""Long calls on set functions."""

from __future__ import annotations

import numpy as np

from interrupt_registry._calls import Call, long
from setwise import functions


def cut_function(n: int) -> functions.SetFunction:
    rng = np.random.default_rng(0)
    first = rng.integers(0, n, 4 * n)
    edges = np.stack([first, (first + rng.integers(1, n, 4 * n)) % n], axis=1)
    return functions.Modular(rng.normal(0.0, 4.0, n)) + functions.Cut(edges, n=n)


@long("functions.minimize")
def minimize(size: int) -> Call:
    function = cut_function(30 * size)
    return lambda: functions.minimize(function)


@long("functions.maximize", "greedy")
def maximize(size: int) -> Call:
    function = cut_function(30 * size)
    return lambda: functions.maximize(function, 10 * size)


@long("functions.maximize", "double")
def maximize_without_k(size: int) -> Call:
    function = cut_function(30 * size)
    return lambda: functions.maximize(function, method="double")


@long("functions.decompose")
def decompose(size: int) -> Call:
    n = min(5 + size, 9)  # nothing interrupts SciPy's linear programs: seconds, from 12 on
    table = functions.Table(np.r_[0.0, np.random.default_rng(0).random(2**n - 1)])
    everything = np.arange(n)

    def call() -> object:
        parts = functions.decompose(table)
        return parts.f.gains(everything), parts.g.gains(everything)

    return call


@long("functions.check")
def check(size: int) -> Call:
    n = min(5 + size, 16)
    table = functions.Table(np.r_[0.0, np.random.default_rng(0).random(2**n - 1)])
    return lambda: functions.check(table)


@long("functions.tabulate")
def tabulate(size: int) -> Call:
    function = cut_function(min(7 + size, 20))
    return lambda: functions.tabulate(function).gains(np.arange(function.n))
