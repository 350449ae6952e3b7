"""Compiled kernels. Sizes are checked, meanings are not; outputs are arrays the caller made."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Float = TypeVar("_Float", bound=np.floating)
_Bytes = NDArray[np.uint8]
_Ints = NDArray[np.int64]
_Doubles = NDArray[np.float64]

def encode_labels(labels: NDArray[np.generic], positive: _Bytes) -> int: ...
def all_finite(x: NDArray[_Float]) -> bool: ...
def lovasz_ratio(
    positive: _Bytes,
    scores: NDArray[_Float],
    offsets: _Ints,
    a: float,
    c: float,
    d: float,
    part: int,
    hinge_case: int,
    values: _Doubles,
    gradient: NDArray[_Float],
) -> None: ...
def lovasz_cardinality(
    positive: _Bytes,
    scores: NDArray[_Float],
    offsets: _Ints,
    tables: _Doubles,
    starts: _Ints,
    componentwise: _Bytes,
    values: _Doubles,
    gradient: NDArray[_Float],
) -> None: ...
def lovasz_counts(
    positive: _Bytes,
    scores: NDArray[_Float],
    offsets: _Ints,
    tables: _Doubles,
    starts: _Ints,
    componentwise: _Bytes,
    values: _Doubles,
    gradient: NDArray[_Float],
) -> None: ...
def order_rows(
    positive: _Bytes,
    scores: NDArray[_Float],
    offsets: _Ints,
    componentwise: _Bytes,
    order: _Ints,
    chains: _Ints,
) -> None: ...
def hinge_of_gains(
    positive: _Bytes,
    scores: NDArray[_Float],
    offsets: _Ints,
    order: _Ints,
    chains: _Ints,
    gains: _Doubles,
    componentwise: _Bytes,
    values: _Doubles,
    gradient: NDArray[_Float],
) -> None: ...
def hinge_modular(
    positive: _Bytes,
    scores: NDArray[_Float],
    offsets: _Ints,
    weights: _Doubles,
    slopes: _Doubles,
    values: _Doubles,
    gradient: NDArray[_Float],
) -> None: ...
def rescale_ratio(
    positive: _Bytes,
    scores: NDArray[_Float],
    offsets: _Ints,
    a: float,
    c: float,
    d: float,
    part: int,
    slack: bool,
    weights: _Doubles,
    values: _Doubles,
    gradient: NDArray[_Float],
) -> None: ...
def rescale_cardinality(
    positive: _Bytes,
    scores: NDArray[_Float],
    offsets: _Ints,
    tables: _Doubles,
    starts: _Ints,
    slack: bool,
    weights: _Doubles,
    values: _Doubles,
    gradient: NDArray[_Float],
) -> None: ...
def rescale_counts(
    positive: _Bytes,
    scores: NDArray[_Float],
    offsets: _Ints,
    tables: _Doubles,
    starts: _Ints,
    slack: bool,
    weights: _Doubles,
    values: _Doubles,
    gradient: NDArray[_Float],
) -> None: ...
def rescale_prefix(
    positive: _Bytes,
    scores: NDArray[_Float],
    offsets: _Ints,
    terms: _Doubles,
    caps: _Doubles,
    weights: _Doubles,
    values: _Doubles,
    gradient: NDArray[_Float],
) -> None: ...
def chain_sums(steps: _Doubles, chains: _Ints, sums: _Doubles) -> None: ...
def prefix_gains(
    weights: _Doubles, caps: _Doubles, order: _Ints, chains: _Ints, gains: _Doubles
) -> None: ...
def cut_gains(
    indptr: _Ints,
    neighbors: _Ints,
    leaving: _Doubles,
    entering: _Doubles,
    order: _Ints,
    gains: _Doubles,
) -> None: ...
def coverage_gains(
    indptr: _Ints, items: _Ints, weights: _Doubles, order: _Ints, gains: _Doubles
) -> None: ...
def supermodular_grid(values: _Doubles, g: _Doubles) -> None: ...
def unary_energies(labels: _Ints, unary: _Doubles, energies: _Doubles) -> None: ...
def potts_energies(
    labels: _Ints, n_labels: int, edges: _Ints, weights: _Doubles, energies: _Doubles
) -> None: ...
def table_energies(
    labels: _Ints,
    n_labels: int,
    edges: _Ints,
    tables: _Doubles,
    shared: bool,
    energies: _Doubles,
) -> None: ...
def count_energies(
    labels: _Ints,
    n_labels: int,
    members: _Ints,
    offsets: _Ints,
    table: _Doubles,
    energies: _Doubles,
) -> None: ...
def robust_energies(
    labels: _Ints,
    n_labels: int,
    members: _Ints,
    offsets: _Ints,
    weights: _Doubles,
    truncation: _Doubles,
    energies: _Doubles,
) -> None: ...
def used_labels(labels: _Ints, used: _Bytes) -> None: ...
def transition_energies(
    labels: _Ints, edges: _Ints, costs: _Doubles, heights: _Doubles, energies: _Doubles
) -> None: ...
def cardinality_energies(
    labels: _Ints, n_labels: int, center: _Ints, table: _Doubles, energies: _Doubles
) -> None: ...

class MessageSearch:
    def __init__(
        self,
        *,
        n: int,
        labels: int,
        constant: float,
        unary: _Doubles,
        low: _Ints,
        high: _Ints,
        table: _Ints,
        weight: _Doubles,
        tables: _Doubles,
        count_starts: _Ints,
        count_variables: _Ints,
        count_patterns: _Ints,
        count_tables: _Ints,
        count_values: _Doubles,
        patterns: _Bytes,
        robust_starts: _Ints,
        robust_variables: _Ints,
        robust_weights: _Doubles,
        robust_truncations: _Doubles,
        forward: _Doubles,
        backward: _Doubles,
        damping: float,
    ) -> None: ...
    def dual_pass(self) -> None: ...
    def max_product_pass(self) -> None: ...
    def add_cycles(self, starts: _Ints, variables: _Ints) -> None: ...
    def step(self, rise: float) -> None: ...
    def bound(self) -> float: ...
    def offer(self, labels: _Ints) -> None: ...
    def move_tree(self, anew: bool, order: _Ints, noise: _Doubles) -> None: ...
    def best(self, labels: _Ints) -> float: ...

def count_min_marginals(table: _Doubles, costs: _Doubles, differences: _Doubles) -> float: ...
