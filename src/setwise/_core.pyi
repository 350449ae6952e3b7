"""Compiled kernels. Sizes are checked, meanings are not; outputs are arrays the caller made."""

from collections.abc import Sequence
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

_Float = TypeVar("_Float", bound=np.floating)
_Bytes = NDArray[np.uint8]
_Ints = NDArray[np.int64]
_Doubles = NDArray[np.float64]
_Numbers = NDArray[np.int64 | np.float64]
_Pairs = NDArray[np.int32] | NDArray[np.int64]

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

class AnyFlowProblem:
    def solve(self) -> None: ...

class _FlowProblem(AnyFlowProblem):
    @property
    def is_solved(self) -> bool: ...
    @property
    def compact(self) -> bool: ...
    def copy(self) -> Self: ...
    def set_capacities(self, which: _Ints, there: _Numbers, back: _Numbers) -> None: ...
    def set_all_capacities(self, there: _Numbers, back: _Numbers) -> None: ...
    def set_terminals(self, which: _Ints, source: _Numbers, sink: _Numbers) -> None: ...
    def set_all_terminals(self, source: _Numbers, sink: _Numbers) -> None: ...
    def through(self, v: int, out: bool) -> int | float: ...
    def value(self) -> int | float: ...
    def cut(self) -> int | float: ...
    def read_sides(self, mask: NDArray[np.bool_]) -> None: ...
    def read_flows(self, flows: _Numbers, residuals: _Numbers) -> None: ...
    def read_problem(
        self, there: _Numbers, back: _Numbers, source: _Numbers, sink: _Numbers
    ) -> None: ...
    def read_edges(self, ends: _Ints) -> None: ...

class IntFlowProblem(_FlowProblem): ...
class FloatFlowProblem(_FlowProblem): ...

def make_flow_graph(n: int, edges: _Pairs, kind: _Numbers) -> IntFlowProblem | FloatFlowProblem: ...
def solve_flow_graphs(graphs: Sequence[AnyFlowProblem], threads: int) -> None: ...
def first_not_capacity(values: _Numbers, infinite: bool) -> int: ...
def first_not_distinct(which: _Ints, below: int) -> int: ...
def first_not_edge(edges: _Pairs, n: int) -> int: ...

class Moves:
    def __init__(self, unary: _Doubles, n: int, labels: int) -> None: ...
    def add_potts(self, edges: _Ints, weights: _Doubles) -> None: ...
    def add_tables(self, edges: _Ints, tables: _Doubles) -> None: ...
    def add_transitions(self, edges: _Ints, costs: _Doubles, concave: _Doubles) -> None: ...
    def add_counts(
        self, regions: _Ints, starts: _Ints, table: _Doubles, groups: _Ints
    ) -> None: ...
    def add_costs(self, costs: _Doubles, groups: _Ints) -> None: ...
    def add_robust(
        self, regions: _Ints, weights: _Doubles, truncation: _Doubles, groups: _Ints
    ) -> None: ...
    def start(self, labels: _Ints) -> None: ...
    def expand(self, a: int) -> float: ...
    def swap(self, a: int, b: int) -> float: ...
    def offer_swap(self, a: int, b: int) -> None: ...
    def round(self) -> bool: ...
    def bound(self) -> float: ...
    def change(self) -> float: ...
    def commit(self) -> float: ...
    def read(self, labels: _Ints) -> None: ...
