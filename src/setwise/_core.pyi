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
def path_classes(edges: _Ints, n: int, classes: _Ints) -> int: ...
def walk_paths(
    edges: _Ints, weights: _Doubles, n: int, vertices: _Ints, starts: _Ints, steps: _Doubles
) -> int: ...
def project_chain(z: _Doubles, weights: _Doubles, s: _Doubles) -> None: ...
def project_count(z: _Doubles, gains: _Doubles, s: _Doubles) -> None: ...
def project_simplex(z: _Doubles, cost: float, s: _Doubles) -> None: ...

class RelaxationState:
    def __init__(self, unary: _Doubles) -> None: ...
    def add_group(
        self,
        kind: int,
        variables: _Ints,
        starts: _Ints,
        parameters: _Doubles,
        slot_starts: _Ints,
        slot_labels: _Ints,
        own: _Ints,
    ) -> None: ...
    def set_unary(self, unary: _Doubles, n_threads: int) -> None: ...
    def sweep(self, temperature: float, momentum: float, n_threads: int) -> None: ...
    def revert(self, n_threads: int) -> None: ...
    def evaluate(self, temperature: float, n_threads: int) -> tuple[float, float]: ...
    def probabilities(self, temperature: float, p: _Doubles, n_threads: int) -> None: ...
    def gap(self, p: _Doubles, n_threads: int) -> float: ...
    def scores(self, s: _Doubles) -> None: ...
    def size(self) -> int: ...
    def blocks(self, blocks: _Doubles) -> None: ...
    def set_blocks(self, blocks: _Doubles, n_threads: int) -> None: ...
