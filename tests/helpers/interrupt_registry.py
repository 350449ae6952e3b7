"""Every public callable is long or short: what is long is interrupted by every law on Ctrl-C.

``LONG`` holds the calls that may take seconds, by name, and ways to make them: each takes a size (1
for a short test) and returns a call that can be made again and again. A name that is in neither
list fails the test, so that a new one is listed or found out.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import torch
from public_api import public_objects

import setwise as sw
from setwise import fields, functions, inference, learning
from setwise.inference._map._methods import METHODS as MAP_METHODS
from setwise.inference._marginals._methods import METHODS as _MARGINALS
from setwise.surrogates._maximizers import Rule, most_violated

Call = Callable[[], object]
LONG: dict[str, dict[str, Callable[[int], Call]]] = {}


def long(name: str, case: str = "") -> Callable[[Callable[[int], Call]], Callable[[int], Call]]:
    """Lists a way to make a long call."""

    def listed(make: Callable[[int], Call]) -> Callable[[int], Call]:
        LONG.setdefault(name, {})[case] = make
        return make

    return listed


# ------------------------------------------------------------------------------- set functions


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


# -------------------------------------------------------------------------------------- fields


def grid_field(size: int, n_labels: int, *, submodular: bool = True) -> fields.Field:
    rng, side = np.random.default_rng(n_labels), 7 * size
    edges = fields.grid_edges((side, side))
    field = fields.Field(rng.normal(size=(side * side, n_labels)))
    if submodular:
        return field + fields.Potts(edges, 0.6)
    return field + fields.Pairwise(edges, rng.normal(size=(len(edges), n_labels, n_labels)))


@long("fields.read_uai")
def read_uai(size: int) -> Call:
    path = Path(mkdtemp()) / "field.uai"
    fields.write_uai(grid_field(size, 3), path)
    return lambda: fields.read_uai(path).unary


@long("fields.write_uai")
def write_uai(size: int) -> Call:
    path, field = Path(mkdtemp()) / "field.uai", grid_field(size, 3)

    def call() -> object:
        fields.write_uai(field, path)
        return np.frombuffer(path.read_bytes(), np.uint8)

    return call


def _solve_map_by(method: str) -> Callable[[int], Call]:
    def make(size: int) -> Call:
        field = grid_field(size, 2 if method == "cut" else 4)
        if method == "enumerate":
            unary = np.random.default_rng(0).normal(size=(1000, 2))
            unary[10 + min(size, 13) :, 1] = np.inf  # a chunk holds fewer of so many variables
            field = fields.Field(unary)
            return lambda: sw.solve_map(field, "enumerate")
        if method == "messages":
            field = grid_field(size, 4, submodular=False)
        return lambda: sw.solve_map(field, method, n_jobs=1)

    return make


for _method in MAP_METHODS:
    long("inference.solve_map", _method)(_solve_map_by(_method))


def _marginals_by(method: str) -> Callable[[int], Call]:
    def make(size: int) -> Call:
        field = grid_field(size, 2 if method == "exact_binary" else 3)
        most = 5 * size if method == "perturb" else None
        options = {"tol": 1e-2, "max_iter": most, "n_jobs": 1, "rng": 0}
        return lambda: sw.marginals(field, method, **options)

    return make


for _method in _MARGINALS:
    long("inference.marginals", _method)(_marginals_by(_method))


@long("inference.marginals", "float32, two threads")
def marginals_in_single_precision(size: int) -> Call:
    field = grid_field(size, 3)
    return lambda: sw.marginals(field, "projection", tol=1e-4, n_jobs=2, dtype="float32")


@long("inference.log_partition_gradient")
def log_partition_gradient(size: int) -> Call:
    field = grid_field(2 * size, 3)
    post = sw.marginals(field, n_jobs=1)
    return lambda: inference.log_partition_gradient(field, post, n_jobs=1)


@long("inference.marginals_batch", "one thread")
def marginals_batch(size: int) -> Call:
    batch = [grid_field(size, 2 + k) for k in range(3)]
    return lambda: inference.marginals_batch(batch, "projection", n_jobs=1)


@long("inference.marginals_batch", "two threads")
def marginals_batch_in_threads(size: int) -> Call:
    batch = [grid_field(size, 2 + k) for k in range(3)]
    return lambda: inference.marginals_batch(batch, "projection", n_jobs=2)


def _diverse_with(
    diversity: sw.diversities.Diversity, n_labels: int, m: int = 3, **options: object
) -> Callable[[int], Call]:
    def make(size: int) -> Call:
        field = grid_field(size, n_labels)
        return lambda: sw.diverse(field, m, diversity, n_jobs=1, **options)

    return make


_D = sw.diversities
for _case, _make in {
    "cuts": _diverse_with(_D.DivMBest(0.5), 2),
    "multipliers": _diverse_with(_D.HammingBall(20.0, 0.3), 2),
    "moves": _diverse_with(_D.DivMBest(0.5), 3),
    "moves by multipliers": _diverse_with(_D.HammingBall(20.0, 0.3), 3),
    "labels": _diverse_with(_D.LabelDiversity("sqrt", 1.5), 3),
    "messages": _diverse_with(_D.HammingBall(0.5, 0.3), 2, 2, method="messages"),
    "concatenated": _diverse_with(_D.Concatenated([_D.DivMBest(0.5), _D.DivMBest(1.0)]), 2),
}.items():
    long("inference.diverse", _case)(_make)


@long("inference.sampled_list")
def sampled_list(size: int) -> Call:
    field = grid_field(size, 3)
    return lambda: inference.sampled_list(field, 4, n_draws=20, n_jobs=1, rng=0)


@long("inference.perturbed_list", "two labels")
def perturbed_list(size: int) -> Call:
    field = grid_field(size, 2)
    return lambda: inference.perturbed_list(field, 4, n_draws=20, n_jobs=1, rng=0)


@long("inference.perturbed_list", "three labels")
def perturbed_list_of_three(size: int) -> Call:
    field = grid_field(size, 3)
    return lambda: inference.perturbed_list(field, 3, n_jobs=1, rng=0)


@long("inference.tune_diversity")
def tune_diversity(size: int) -> Call:
    images = [grid_field(size, 3) for _ in range(2)]
    truths = [field.unary.argmin(axis=1) for field in images]
    grid = {"weight": [0.2, 0.5, 1.0]}
    return lambda: inference.tune_diversity(images, truths, _D.DivMBest, grid, m=2, n_jobs=2)


# --------------------------------------------------------------------------------------- flows


def flow_graph(size: int) -> inference.FlowGraph:
    rng, shape = np.random.default_rng(0), (100 * size, 100 * size)
    graph = inference.FlowGraph.grid(shape, 4.0 * rng.random(shape))
    set_pull(graph, rng.normal(0.0, 2.0, shape).ravel())
    return graph


def set_pull(graph: inference.FlowGraph, pull: np.ndarray) -> None:
    graph.set_terminals(np.maximum(pull, 0.0), np.maximum(-pull, 0.0))


@long("inference.FlowGraph.solve")
def solve_flow(size: int) -> Call:
    graph = flow_graph(size)
    pull = np.random.default_rng(0).normal(0.0, 2.0, graph.n)

    def call() -> object:
        set_pull(graph, pull)
        graph.solve()
        return graph.value, graph.mask

    return call


@long("inference.FlowGraph.solve", "again")
def solve_flow_again(size: int) -> Call:
    graph = flow_graph(size)
    rng = np.random.default_rng(1)
    pulls = rng.normal(0.0, 2.0, (2, graph.n))

    def call() -> object:
        for pull in pulls:
            set_pull(graph, pull)
            graph.solve()
        return graph.value, graph.mask

    return call


@long("inference.maxflow")
def maxflow(size: int) -> Call:
    rng, side = np.random.default_rng(0), 60 * size
    edges = fields.grid_edges((side, side))
    capacities = rng.integers(1, 99, (2, len(edges)))
    return lambda: inference.maxflow(edges, *capacities, source=0, sink=side * side - 1)


@long("inference.maxflow_batch")
def maxflow_batch(size: int) -> Call:
    graphs = [flow_graph(size) for _ in range(3)]
    return lambda: inference.maxflow_batch([graph.copy() for graph in graphs], n_jobs=2)


# ------------------------------------------------------------------------------------ learning


def examples(size: int, p: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40 * size, 4))
    return X, (X @ rng.normal(size=(4, p)) + rng.normal(size=(40 * size, p)) > 0.3).astype(int)


def hinge(size: int) -> tuple[Callable[[int, np.ndarray], tuple[float, np.ndarray]], int]:
    X, Y = examples(size)
    signs = 2.0 * Y[:, 0] - 1.0

    def oracle(i: int, w: np.ndarray) -> tuple[float, np.ndarray]:
        slack = 1.0 - signs[i] * float(X[i] @ w)
        return max(slack, 0.0), -signs[i] * X[i] * (slack > 0)

    return oracle, len(X)


@long("learning.one_slack")
def one_slack(size: int) -> Call:
    oracle, n = hinge(size)

    def risk(w: np.ndarray) -> tuple[float, np.ndarray]:
        values, slopes = zip(*(oracle(i, w) for i in range(n)), strict=True)
        return sum(values), np.sum(slopes, axis=0)

    return lambda: learning.one_slack(risk, 4, tol=1e-6)


@long("learning.n_slack")
def n_slack(size: int) -> Call:
    oracle, n = hinge(size)
    return lambda: learning.n_slack(oracle, n, 4)


@long("learning.block_frank_wolfe")
def block_frank_wolfe(size: int) -> Call:
    oracle, n = hinge(size)
    return lambda: learning.block_frank_wolfe(oracle, n, 4, max_iter=20, rng=0)


class MeanHinge:
    def __init__(self, signs: np.ndarray) -> None:
        self._signs, self.offsets = signs, np.array([0, len(signs)])

    def __call__(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        slack = 1.0 - self._signs * scores
        return float(np.maximum(slack, 0.0).mean()), -self._signs * (slack > 0) / len(slack)


@long("learning.struct_boost", "stumps")
def struct_boost(size: int) -> Call:
    X, Y = examples(size)
    risk, search = MeanHinge(2.0 * Y[:, 0] - 1.0), learning.StumpSearch(X)
    return lambda: learning.struct_boost(risk, search, C=20.0, n_estimators=8 * size)


@long("learning.struct_boost", "perceptrons")
def struct_boost_of_perceptrons(size: int) -> Call:
    X, Y = examples(size)
    X, Y = X[: 10 * size], Y[: 10 * size]
    risk, search = (
        MeanHinge(2.0 * Y[:, 0] - 1.0),
        learning.PerceptronSearch(X, max_iter=5, n_jobs=2),
    )
    return lambda: learning.struct_boost(risk, search, C=20.0, n_estimators=2 * size)


def _search_with(make: Callable[[np.ndarray], learning.WeakLearnerSearch]) -> Callable[[int], Call]:
    def call(size: int) -> Call:
        X, Y = examples(size)
        search, weights = make(X[: 20 * size]), 2.0 * Y[: 20 * size, 0] - 1.0
        return lambda: [column.response for column in search(weights)]

    return call


def _trees(X: np.ndarray) -> learning.WeakLearnerSearch:
    from sklearn.tree import DecisionTreeClassifier

    return learning.ClassifierSearch(X, DecisionTreeClassifier(max_depth=2, random_state=0))


long("learning.StumpSearch.__call__")(_search_with(learning.StumpSearch))
long("learning.PerceptronSearch.__call__")(
    _search_with(lambda X: learning.PerceptronSearch(X, max_iter=10))
)
long("learning.ClassifierSearch.__call__")(_search_with(_trees))


def labels_of_draws(field: fields.Field) -> np.ndarray:
    return inference.perturbed_list(field, 2, n_jobs=1, rng=0)


@long("learning.Serial.map")
def serial(size: int) -> Call:
    batch = [grid_field(size, 3)] * 3
    return lambda: learning.Serial().map(labels_of_draws, batch)


@long("learning.Threads.map")
def threads(size: int) -> Call:
    batch, pool = [grid_field(size, 3)] * 4, learning.Threads(2)
    return lambda: pool.map(labels_of_draws, batch)


# ---------------------------------------------------------------------------------- surrogates


def _surrogate_of(surrogate: sw.surrogates.Surrogate, method: str) -> Callable[[int], Call]:
    def make(size: int) -> Call:
        rng = np.random.default_rng(0)
        y, scores = rng.random((400 * size, 50)) < 0.3, rng.normal(size=(400 * size, 50))
        return lambda: getattr(surrogate, method)(y, scores)

    return make


for _surrogate in (
    sw.surrogates.LovaszHinge("jaccard"),
    sw.surrogates.DecomposedHinge("dice"),
    sw.surrogates.MarginRescaling("jaccard"),
    sw.surrogates.SlackRescaling("jaccard"),
):
    for _method in ("__call__",
    "added_to", "value_and_gradient"):
        long(f"surrogates.{type(_surrogate).__name__}.{_method}")(
            _surrogate_of(_surrogate, _method)
        )


@long("surrogates.MarginRescaling.value_and_gradient", "by minimisation")
def most_violated_sets(size: int) -> Call:
    function = functions.Modular(np.full(20 * size, 8.0)) - cut_function(20 * size)
    margins = np.random.default_rng(0).normal(size=(3, function.n))
    rule = Rule(slack=False, weight=2.0)
    return lambda: most_violated(function, margins, rule, "minimize")


def _torch_loss(name: str, **options: object) -> Callable[[int], Call]:
    def make(size: int) -> Call:
        generator = torch.Generator().manual_seed(0)
        softmax = name == "lovasz_softmax"
        shape = (1, 4, 100 * size, 100) if softmax else (100 * size, 100)
        scores = torch.randn(shape, generator=generator, requires_grad=True)
        target = torch.randint(
            0, 4 if softmax else 2, (1, 100 * size, 100) if softmax else shape, generator=generator
        )

        def call() -> object:
            scores.grad = None
            loss = getattr(sw.torch, name)(scores, target, **options)
            loss.backward()
            return loss.detach().numpy(), scores.grad.numpy().copy()

        return call

    return make


for _name in ("lovasz_hinge", "lovasz_softmax"):
    long(f"torch.{_name}")(_torch_loss(_name))
    long(f"torch.{_name}", "bucket")(_torch_loss(_name, method="bucket"))
for _name in ("decomposed_hinge", "margin_rescaling", "slack_rescaling"):
    long(f"torch.{_name}")(_torch_loss(_name))


# ---------------------------------------------------------------------------------- estimators


def graphs(size: int, n_labels: int) -> tuple[list[tuple[np.ndarray, ...]], list[np.ndarray]]:
    rng, side = np.random.default_rng(n_labels), 3 * size
    edges = fields.grid_edges((side, side))
    X, Y = [], []
    for _ in range(3):
        truth = np.add.outer(np.arange(side), np.arange(side)).ravel() * n_labels // (2 * side)
        nodes = np.eye(n_labels)[truth] + rng.normal(0.0, 0.7, (side * side, n_labels))
        X.append((nodes, edges, np.ones((len(edges), 1))))
        Y.append(truth)
    return X, Y


def _fitting(estimator: object, *data: object) -> Call:
    def call() -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # too few learners to converge
            return estimator.fit(*data)  # type: ignore[attr-defined]

    return call


def _fit_of(estimator: object, data: Callable[[int], tuple[object, ...]]) -> Callable[[int], Call]:
    return lambda size: _fitting(estimator, *data(size))


def _answer_of(
    estimator: object, data: Callable[[int], tuple[object, ...]], method: str, *, with_truth: bool
) -> Callable[[int], Call]:
    def make(size: int) -> Call:
        given = data(size)
        fitted = _fitting(estimator, *data(1))()
        answer = getattr(fitted, method)
        arguments = given if with_truth else given[:1]
        if method.startswith("staged"):
            return lambda: list(answer(*arguments))
        return lambda: answer(*arguments)

    return make


def classes(size: int) -> tuple[np.ndarray, np.ndarray]:
    X, Y = examples(size, 3)
    return X, (X @ np.arange(12.0).reshape(4, 3)).argmax(axis=1) + 0 * Y[:, 0]


def two_classes(size: int) -> tuple[np.ndarray, np.ndarray]:
    X, Y = examples(size)
    return X, Y[:, 0]


_SVM, _BOOST = sw.FieldSVM(), sw.FieldBoost(n_estimators=5)
long("estimators.SetClassifier.fit")(_fit_of(sw.SetClassifier(), examples))
long("estimators.SetClassifier.fit", "two threads")(_fit_of(sw.SetClassifier(n_jobs=2), examples))
long("estimators.StructBoostClassifier.fit")(
    _fit_of(sw.StructBoostClassifier(n_estimators=5), classes)
)
long("estimators.StructBoostRanker.fit")(_fit_of(sw.StructBoostRanker(n_estimators=5), two_classes))
long("estimators.FieldSVM.fit", "two labels")(_fit_of(sw.FieldSVM(), lambda s: graphs(s, 2)))
long("estimators.FieldSVM.fit", "three labels")(_fit_of(sw.FieldSVM(), lambda s: graphs(s, 3)))
long("estimators.FieldSVM.fit", "two threads")(
    _fit_of(sw.FieldSVM(n_jobs=2), lambda s: graphs(s, 3))
)
long("estimators.FieldBoost.fit")(_fit_of(sw.FieldBoost(n_estimators=5), lambda s: graphs(s, 2)))
for _model, _labels in ((_SVM, 3), (_BOOST, 2)):
    for _method, _truth in (("predict", False), ("score", True), ("staged_predict", False)):
        if hasattr(_model, _method):
            long(f"estimators.{type(_model).__name__}.{_method}")(
                _answer_of(_model, lambda s, n=_labels: graphs(s, n), _method, with_truth=_truth)
            )
long("estimators.FieldSVM.predict", "two threads")(
    _answer_of(sw.FieldSVM(n_jobs=2), lambda s: graphs(s, 3), "predict", with_truth=False)
)


def frames() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    background, target = rng.random((40, 60)), rng.random((12, 12))
    moved = []
    for k in range(4):
        frame = background.copy()
        frame[14:26, 10 + 2 * k : 22 + 2 * k] = target
        moved.append(frame)
    return moved


@long("estimators.StructBoostTracker.start")
def start(size: int) -> Call:
    tracker = sw.StructBoostTracker(n_candidates=50, n_training=10 * size, n_estimators=5 * size)
    first = frames()[0]
    return lambda: tracker.start(first, (10, 14, 12, 12)).estimator_weights_


@long("estimators.StructBoostTracker.update")
def update(size: int) -> Call:
    """The same call gives the same answer: it is made on a copy of what the last one left."""
    from copy import deepcopy

    options = {"n_candidates": 50, "n_training": 10 * size, "n_estimators": 5 * size}
    tracker = sw.StructBoostTracker(update_every=1, **options)
    first, second, *_ = frames()
    tracker.start(first, (10, 14, 12, 12))
    before = deepcopy(tracker)

    def call() -> object:
        box = tracker.update(second)
        weights = tracker.estimator_weights_, tracker.n_frames_
        tracker.__dict__.update(deepcopy(before).__dict__)
        return box, weights

    return call


# --------------------------------------------------------------------------------------- short

# Linear in what they are given, without a search: NumPy, or one pass of a kernel.
SHORT_METHODS = {
    "__call__",
    "augment",
    "check",
    "close",
    "complement",
    "contract",
    "copy",
    "decision_function",
    "each",
    "energies",
    "energy",
    "extension_scale",
    "extra_repr",
    "forward",
    "from_function",
    "from_labels",
    "from_loss",
    "from_result",
    "from_surrogate",
    "gain",
    "gains",
    "grid",
    "importances",
    "is_increasing",
    "is_submodular",
    "is_supermodular",
    "map",
    "parts",
    "plot",
    "predict",
    "properties",
    "restrict",
    "score",
    "score_boxes",
    "set_capacities",
    "set_function",
    "set_terminals",
    "shares_of",
    "staged_decision_function",
    "staged_predict",
    "step_negative",
    "step_positive",
    "terms",
    "to_field",
    "value",
    "value_and_gradient",
    "with_unary",
}
SHORT = {
    "diversities.ball_intersections",
    "fields.contrast_weights",
    "fields.grid_edges",
    "fields.regions_from_labels",
    "functions.base_vertex",
    "functions.lovasz_extension",
    "inference.oracle_accuracy",
    "inference.oracle_items",
    "losses.get",
    "losses.names",
    "surrogates.get",
    "surrogates.names",
}


def public_callables() -> Iterator[str]:
    """Functions, and methods of classes, under the names of their homes."""
    for _, value in public_objects():
        if inspect.ismodule(value) or not callable(value):
            continue
        home = f"{value.__module__.split('.')[1]}.{value.__name__}"
        if not inspect.isclass(value):
            yield home
            continue
        for base in value.__mro__:
            if base.__module__.startswith("setwise"):
                for name, member in vars(base).items():
                    plain = inspect.isfunction(member) or isinstance(member, classmethod)
                    if plain and (not name.startswith("_") or name == "__call__"):
                        yield f"{home}.{name}"
