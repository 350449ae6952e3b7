"""Compiled kernels. Sizes are checked, meanings are not; outputs are arrays the caller made."""

from collections.abc import Callable, Sequence
from typing import Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

_Float = TypeVar("_Float", bound=np.floating)
_Answer = TypeVar("_Answer")
_Bools = NDArray[np.bool_]
_Bytes = NDArray[np.uint8]
_Ints = NDArray[np.int64]
_Doubles = NDArray[np.float64]
_Numbers = NDArray[np.int64 | np.float64]
_Pairs = NDArray[np.int32] | NDArray[np.int64]

def encode_labels(labels: NDArray[np.generic], positive: _Bytes) -> int: ...
def encode_targets(target: NDArray[np.generic], ignore: float, codes: _Bytes) -> int: ...
def expected_of_count(chances: _Doubles, table: _Doubles) -> float: ...
def decide_ratio(
    p: _Doubles,
    weights: _Doubles,
    offsets: _Ints,
    none: _Doubles,
    jaccard: bool,
    b: float,
    n_threads: int,
    mask: _Bytes,
    scores: _Doubles,
    most: _Doubles,
) -> None: ...
def bucket_ratio(
    labels: _Bytes,
    scores: NDArray[np.float32],
    a: float,
    c: float,
    d: float,
    buckets: int,
    values: _Doubles,
    gradient: NDArray[np.float32],
) -> None: ...
def bucket_ratio_16(
    labels: _Bytes,
    scores: NDArray[np.uint16],
    a: float,
    c: float,
    d: float,
    errors: _Doubles,
    values: _Doubles,
    gradient: NDArray[np.float32],
) -> None: ...
def bucket_table(
    labels: _Bytes,
    scores: NDArray[np.float32],
    tables: _Doubles,
    starts: _Ints,
    buckets: int,
    values: _Doubles,
    gradient: NDArray[np.float32],
) -> None: ...
def bucket_table_16(
    labels: _Bytes,
    scores: NDArray[np.uint16],
    tables: _Doubles,
    starts: _Ints,
    errors: _Doubles,
    values: _Doubles,
    gradient: NDArray[np.float32],
) -> None: ...
def lovasz_classes(
    p: NDArray[np.float32],
    target: NDArray[np.int32],
    images: int,
    n_classes: int,
    classes: NDArray[np.int32],
    per_image: bool,
    a: float,
    c: float,
    d: float,
    buckets: int,
    values: _Doubles,
    gradient: NDArray[np.float32],
) -> None: ...
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
def split_tables(
    edges: _Ints, tables: _Doubles, slack: float, unary: _Doubles, weights: _Doubles
) -> float: ...
def unary_above_least(labels: _Ints, unary: _Doubles) -> float: ...
def tables_above_least(labels: _Ints, edges: _Ints, tables: _Doubles) -> float: ...
def copy_finite(values: _Doubles, largest: float, copy: _Doubles) -> bool: ...
def copy_edges(edges: _Ints, copy: _Ints) -> int: ...
def copy_weights(weights: _Doubles, copy: _Doubles) -> bool: ...
def copy_unary(unary: _Doubles, largest: float, copy: _Doubles) -> bool: ...
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
def largest_part(inside: NDArray[np.bool_], edges: _Ints) -> int: ...
def used_labels(labels: _Ints, used: _Bytes) -> None: ...
def transition_energies(
    labels: _Ints, edges: _Ints, costs: _Doubles, heights: _Doubles, energies: _Doubles
) -> None: ...
def cardinality_energies(
    labels: _Ints, n_labels: int, center: _Ints, table: _Doubles, energies: _Doubles
) -> None: ...

class AnyFlowProblem: ...

class _FlowProblem(AnyFlowProblem):
    def solve(self, threads: int = 1, small_blocks: bool = False) -> int | float: ...
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
    def unproved(self) -> tuple[int | float, int | float]: ...
    def read_sides(self, mask: NDArray[np.bool_]) -> None: ...
    def read_flows(self, flows: _Numbers, residuals: _Numbers) -> None: ...
    def read_problem(
        self, there: _Numbers, back: _Numbers, source: _Numbers, sink: _Numbers
    ) -> None: ...
    def read_edges(self, ends: _Ints) -> None: ...

class IntFlowProblem(_FlowProblem): ...
class FloatFlowProblem(_FlowProblem): ...

def make_flow_graph(n: int, edges: _Pairs, kind: _Numbers) -> IntFlowProblem | FloatFlowProblem: ...
def make_flow_grid(
    sides: _Ints, steps: _Ints, there: _Numbers, back: _Numbers
) -> IntFlowProblem | FloatFlowProblem | None: ...
def solve_flow_graphs(graphs: Sequence[AnyFlowProblem], threads: int) -> None: ...
def cut_grid(
    unary: _Doubles,
    sides: _Ints,
    steps: _Ints,
    weights: _Doubles,
    labels: _Ints,
    answer: _Doubles,
    threads: int,
) -> bool: ...
def cut_edges(
    unary: _Doubles, edges: _Ints, weights: _Doubles, labels: _Ints, answer: _Doubles, threads: int
) -> None: ...

class ChangingCut:
    def solve(
        self, tilt: _Doubles, share: float, inside: _Bools, answer: _Doubles, threads: int
    ) -> None: ...

def make_changing_cut(
    costs: _Doubles, edges: _Ints, there: _Doubles, back: _Doubles
) -> ChangingCut: ...
def first_not_capacity(values: _Numbers, infinite: bool) -> int: ...
def first_not_distinct(which: _Ints, below: int) -> int: ...
def first_not_edge(edges: _Pairs, n: int) -> int: ...

class Moves:
    def __init__(self, unary: _Doubles, n: int, labels: int) -> None: ...
    def add_potts(self, edges: _Ints, weights: _Doubles) -> None: ...
    def add_tables(self, edges: _Ints, tables: _Doubles) -> None: ...
    def add_transitions(self, edges: _Ints, costs: _Doubles, concave: _Doubles) -> None: ...
    def add_counts(self, regions: _Ints, starts: _Ints, table: _Doubles, groups: _Ints) -> None: ...
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
    def gap(self) -> float: ...
    def commit(self) -> float: ...
    def read(self, labels: _Ints) -> None: ...

class FieldBatch:
    def __init__(
        self, node_starts: _Ints, edge_starts: _Ints, edges: _Ints, labels: int
    ) -> None: ...
    def add_regions(
        self, regions: _Ints, region_starts: _Ints, table_starts: _Ints, table: _Doubles
    ) -> None: ...
    def search(
        self,
        unary: _Doubles,
        edges: _Doubles,
        regions: _Doubles,
        costs: _Doubles,
        labels: _Ints,
        energies: _Doubles,
        gaps: _Doubles,
        prove: bool,
        threads: int,
    ) -> None: ...
    def measure(
        self,
        unary: _Doubles,
        edges: _Doubles,
        regions: _Doubles,
        costs: _Doubles,
        labels: _Ints,
        energies: _Doubles,
    ) -> None: ...

def path_classes(edges: _Ints, n: int, classes: _Ints) -> int: ...
def walk_paths(
    edges: _Ints, weights: _Doubles, n: int, vertices: _Ints, starts: _Ints, steps: _Doubles
) -> int: ...
def project_chain(z: _Doubles, weights: _Doubles, s: _Doubles) -> None: ...
def project_count(z: _Doubles, gains: _Doubles, s: _Doubles) -> None: ...
def project_simplex(z: _Doubles, cost: float, s: _Doubles) -> None: ...

class _State(Generic[_Float]):
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
    def finish(self) -> None: ...
    def evaluate(self, temperature: float, n_threads: int) -> tuple[float, float]: ...
    def probabilities(self, temperature: float, p: NDArray[_Float], n_threads: int) -> None: ...
    def gap(self, p: NDArray[_Float], n_threads: int) -> float: ...
    def gaps(self, p: NDArray[_Float], gaps: _Doubles, n_threads: int) -> None: ...
    def set_light(self, light: NDArray[np.uint8], n_threads: int) -> None: ...
    def scores(self, s: _Doubles) -> None: ...
    def size(self) -> int: ...
    def blocks(self, blocks: NDArray[_Float]) -> None: ...
    def set_blocks(self, blocks: NDArray[_Float], n_threads: int) -> None: ...

class RelaxationState(_State[np.float64]): ...
class RelaxationState32(_State[np.float32]): ...

class FrankWolfeState(_State[np.float64]):
    def vertex(self, p: _Doubles, x: _Doubles, n_threads: int) -> None: ...
    def slope(
        self, direction: _Doubles, step: float, temperature: float, n_threads: int
    ) -> float: ...
    def shift(self, direction: _Doubles, step: float, n_threads: int) -> None: ...
    def set_scores(self, s: _Doubles) -> None: ...

class MeanField:
    def __init__(self, unary: _Doubles, small: int) -> None: ...
    def copy(self) -> MeanField: ...
    def add_potts(self, edges: _Ints, weights: _Doubles) -> None: ...
    def add_tables(self, edges: _Ints, tables: _Doubles) -> None: ...
    def add_counts(self, variables: _Ints, starts: _Ints, own: _Ints, table: _Doubles) -> None: ...
    def add_cost(self, cost: float, labels: _Bytes) -> None: ...
    def close(self) -> None: ...
    def replace_own(self, which: int, own: _Ints) -> None: ...
    def replace_tables(self, tables: _Doubles) -> None: ...
    def set_probabilities(self, q: _Doubles) -> None: ...
    def probabilities(self, q: _Doubles) -> None: ...
    def sweep(self, temperature: float) -> float: ...
    def value(self, exact: int, n_threads: int) -> tuple[float, float]: ...

class SumProduct:
    def __init__(self, unary: _Doubles) -> None: ...
    def add_potts(self, edges: _Ints, weights: _Doubles) -> None: ...
    def add_tables(self, edges: _Ints, tables: _Doubles) -> None: ...
    def close(self) -> None: ...
    def sweep(self, temperature: float, damping: float) -> float: ...
    def probabilities(self, temperature: float, p: _Doubles) -> None: ...

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
    def paid(self) -> float: ...
    def offer(self, labels: _Ints) -> None: ...
    def move_tree(self, anew: bool, order: _Ints, noise: _Doubles) -> None: ...
    def best(self, labels: _Ints) -> float: ...

class TreeReweighted:
    def __init__(
        self,
        *,
        n: int,
        labels: int,
        constant: float,
        unary: _Doubles,
        low: _Ints,
        high: _Ints,
        weight: _Doubles,
        table: _Ints,
        tables: _Doubles,
    ) -> None: ...
    def dual_pass(self) -> float: ...
    def paid(self) -> float: ...
    def decode(self, labels: _Ints) -> None: ...

def count_min_marginals(table: _Doubles, costs: _Doubles, differences: _Doubles) -> float: ...

class StumpSearch:
    def __init__(self, rows: int) -> None: ...
    def add_rows(
        self,
        up: NDArray[np.uint32],
        down: NDArray[np.uint32],
        missing: NDArray[np.uint32],
        trend: int,
    ) -> None: ...
    def add_codes(
        self,
        codes: NDArray[np.uint8] | NDArray[np.uint16],
        examples: NDArray[np.int32],
        trend: int,
    ) -> None: ...
    def add_categories(
        self, codes: NDArray[np.uint8] | NDArray[np.uint16], categories: int
    ) -> None: ...
    def gains(self, weights: _Doubles, gains: _Doubles, n_threads: int) -> None: ...
    def locate(
        self, weights: _Doubles, feature: int, slack: float
    ) -> tuple[float, int, int, float]: ...
    def sums(self, weights: _Doubles, feature: int, sums: _Doubles) -> None: ...

class SoftClassRisk:
    def __init__(
        self, labels: NDArray[np.int32], cost: _Doubles, weights: _Doubles, code: _Doubles
    ) -> None: ...
    @property
    def classes(self) -> int: ...
    def start(self, scores: _Doubles) -> None: ...
    def probabilities(self, tau: float, out: _Doubles) -> tuple[float, float, float, float]: ...
    def sums(self, response: NDArray[np.float32], out: _Doubles) -> None: ...
    def descend(
        self,
        responses: NDArray[np.float32],
        sums: _Doubles,
        segment: NDArray[np.int32],
        order: NDArray[np.int32],
        C: float,
        tau: float,
        w: _Doubles,
        radius: _Doubles,
    ) -> None: ...

class RankPairs:
    def __init__(self, levels: NDArray[np.int32], weights: _Doubles, offsets: _Ints) -> None: ...
    def slopes(self, scores: _Doubles, margin: float, slopes: _Doubles) -> float: ...

class AveragePrecisionRisk:
    def __init__(self, relevant: NDArray[np.uint8], offsets: _Ints) -> None: ...
    def plane(self, scores: _Doubles, losses: _Doubles, slopes: _Doubles) -> None: ...

class Stop:
    """Ends what runs under it, in other threads, with a ``CancelledError`` at the next poll."""

    def __init__(self) -> None: ...
    def ask(self) -> None: ...
    @property
    def asked(self) -> bool: ...
    def run(self, function: Callable[..., _Answer], /, *arguments: object) -> _Answer: ...

def poll() -> None:
    """Raises ``CancelledError`` in a thread whose ``Stop`` was asked for; calls what it heeds."""

def heed(
    check: Callable[[], object] | None, function: Callable[..., _Answer], /, *arguments: object
) -> _Answer:
    """What the function says; its polls, in this thread, call the check. None: nothing at all."""

def heeds() -> bool:
    """Whether the polls of this thread call a check."""

def watch_polls(function: Callable[[], object] | None) -> None:
    """Calls the function at every poll, which then looks for Ctrl-C each time: for tests."""

class DenseRows:
    def __init__(self, X: _Doubles, intercept: bool) -> None: ...

class SparseRows:
    def __init__(
        self, starts: _Ints, columns: _Ints, data: _Doubles, d: int, intercept: bool
    ) -> None: ...

class GramRows:
    def __init__(self, products: _Doubles) -> None: ...

class KeptPlanes:
    def __init__(self, offsets: _Ints, scales: _Doubles, most: int) -> None: ...
    def begin_with(
        self, counts: _Ints, shares: _Doubles, heights: _Doubles, slopes: _Doubles
    ) -> None: ...
    def count_used(self, counts: _Ints) -> None: ...
    def copy_used(self, shares: _Doubles, heights: _Doubles, slopes: _Doubles) -> None: ...
    def copy_shares(self, shares: _Doubles) -> None: ...
    def put_shares(self, shares: _Doubles) -> None: ...
    def raise_price(self, price: float, part: float) -> None: ...
    def add(self, scores: _Doubles, values: _Doubles, slopes: _Doubles) -> float: ...
    def dual(self, v: _Doubles) -> float: ...

def plane_scores(
    rows: DenseRows | SparseRows | GramRows,
    planes: KeptPlanes,
    weights: _Doubles,
    scores: _Doubles,
) -> None: ...
def plane_pass(
    rows: DenseRows | SparseRows | GramRows,
    planes: KeptPlanes,
    number: int,
    gain: float,
    weights: _Doubles,
    curvature: _Doubles,
) -> None: ...

class SetBlocks:
    def __init__(
        self,
        positive: _Bytes,
        offsets: _Ints,
        scales: _Doubles,
        kind: int,
        tables: _Doubles,
        starts: _Ints,
    ) -> None: ...

def hinge_passes(
    rows: DenseRows | SparseRows | GramRows,
    positive: _Bytes,
    most: _Doubles,
    tol: float,
    passes: int,
    first: int,
    b: _Doubles,
    state: _Doubles,
) -> int: ...
def set_passes(
    rows: DenseRows | SparseRows | GramRows,
    sets: SetBlocks,
    labels: bool,
    target: float,
    passes: int,
    first: int,
    gain: float,
    b: _Doubles,
    weights: _Doubles,
    gaps: _Doubles,
    curvature: _Doubles,
    rest: NDArray[np.int32],
) -> int: ...
def largest_excess(sets: SetBlocks, b: _Doubles) -> float: ...
def project_sets(sets: SetBlocks, z: _Doubles, b: _Doubles) -> None: ...

class PlaneProgram:
    def __init__(self) -> None: ...
    def solve(
        self, vectors: _Doubles, cone: int, g: _Doubles, x: _Doubles, sum: _Doubles
    ) -> bool: ...
    def keep(self, kept: _Ints) -> None: ...
    def forget(self) -> None: ...

def best_mixture(
    energies: _Doubles,
    counts: _Doubles,
    slopes: _Doubles,
    which: _Ints,
    tolerance: float,
    weights: _Doubles,
) -> None: ...
