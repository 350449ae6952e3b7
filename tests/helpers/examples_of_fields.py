"""Good calls of fields, diversities and inference."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from example_registry import EXAMPLES, Example, array, go_on, listed, method

import setwise as sw
from setwise import diversities, fields, inference

UNARY = array([0.0, 1.0, 0.5], [2.0, 0.0, 1.0], [0.0, 0.5, 0.25], [1.0, 0.25, 2.0])
EDGES = array([0, 1], [1, 2], [2, 3])
REGIONS = array(0, 0, 1, 1)
FIELD = fields.Field(UNARY) + fields.Potts(EDGES, [0.75, 0.5, 1.0])
LABELS = array(0, 1, 1, 2)
LABELINGS = array([0, 1, 1, 2], [0, 0, 0, 0])


def root(counts: Any) -> Any:
    return np.sqrt(counts)


# --------------------------------------------------------------------------------------- fields


def energies(field: fields.Field) -> np.ndarray:
    """Those of a few labellings, whatever the field's size."""
    labelings = np.arange(9)[:, None] * (1 + np.arange(field.n_variables)) % field.n_labels
    return field.energy(labelings)


def added(potential: fields.Potential) -> np.ndarray:
    return energies(fields.Field(UNARY) + potential)


POTENTIALS: dict[str, dict[str, Any]] = {
    "CardinalityPotential": {"center": LABELS, "table": array(0.0, 1.0, -0.5, 2.0, 0.25)},
    "CliquePotential": {
        "cliques": array([0, 1], [2, 3]),
        "tables": array([0.0, 1.0, 3.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]),
    },
    "LabelCost": {"costs": 0.5, "labels": array(0, 2)},
    "LabelTransition": {
        "edges": EDGES,
        "costs": array([0.0, 1.0, 2.0], [1.0, 0.0, 0.5], [2.0, 0.5, 0.0]),
        "concave": root,
    },
    "Pairwise": {
        "edges": EDGES,
        "tables": array([0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]),
        "weights": array(1.0, -0.5, 0.25),
    },
    "Potts": {"edges": EDGES, "weights": array(1.0, 0.5, 0.25)},
    "RegionConsistency": {"regions": REGIONS, "weight": array(1.0, 2.0), "alpha": 0.5},
    "RobustPn": {
        "regions": REGIONS,
        "weight": array(1.0, 2.0),
        "truncation": array(0.5, 0.25),
        "relative": True,
    },
    "TruncatedLinear": {
        "edges": EDGES,
        "weights": array(1.0, 0.5, 0.25),
        "truncation": 1.5,
    },
    "TruncatedQuadratic": {
        "edges": EDGES,
        "weights": array(1.0, 0.5, 0.25),
        "truncation": 2.5,
    },
}
for name, arguments in POTENTIALS.items():
    listed(f"fields.{name}", added, **arguments)


class Just(fields.Potential):
    """A potential of one term."""

    def __init__(self, term: fields.Term) -> None:
        self._set(term=term)

    def terms(self, n_variables: int, n_labels: int) -> tuple[fields.Term, ...]:
        return (self.term,)


TERMS: dict[str, dict[str, Any]] = {
    "CardinalityTerm": POTENTIALS["CardinalityPotential"],
    "CliqueTerm": POTENTIALS["CliquePotential"],
    "ConstantTerm": {"value": 1.5},
    "CountTerm": {
        "regions": array(0, 1, 0, -1),
        "starts": array(0, 3, 5),
        "table": array(0.0, 1.0, 1.5, 0.5, 2.0),
    },
    "LabelTerm": {"cost": 0.5, "labels": array(True, False, True)},
    "PottsTerm": POTENTIALS["Potts"],
    "RobustTerm": {
        "regions": array(0, 1, 0, -1),
        "weights": array(1.0, 2.0),
        "truncation": array(0.5, 0.25),
    },
    "TableTerm": {
        "edges": EDGES,
        "tables": np.arange(27.0).reshape(3, 3, 3) % 5.0,
        "weights": array(1.0, 0.5, 0.25),
    },
    "TransitionTerm": POTENTIALS["LabelTransition"],
    "UnaryTerm": {"unary": np.arange(12.0).reshape(4, 3) % 5.0},
}
for name, arguments in TERMS.items():
    listed(f"fields.{name}", lambda term: added(Just(term)), **arguments)
listed("fields.Field", energies, unary=UNARY[:, :3], shape=array(2, 2))
method("fields.Field.energy", lambda: FIELD, labels=LABELINGS)
method("fields.Field.with_unary", lambda: FIELD, energies, unary=UNARY + 1.0)

FOLDER = Path(tempfile.mkdtemp())
fields.write_uai(FIELD, FOLDER / "field.uai")
(FOLDER / "field.evid").write_text("1 0 1")
listed(
    "fields.contrast_weights",
    image=array([0.0, 0.5], [1.0, 0.25]),
    edges=EDGES,
    beta=2.0,
    channels=False,
)
listed("fields.grid_edges", shape=array(2, 3), connectivity=array([0, 1], [1, 1]))
listed(
    "fields.read_uai",
    energies,
    path=str(FOLDER / "field.uai"),
    evidence=str(FOLDER / "field.evid"),
)
listed(
    "fields.regions_from_labels",
    labels=array([7, 7, 0], [3, 0, 7]),
    ignore=0,
    connected=True,
    connectivity=4,
)
listed("fields.write_uai", field=FIELD, path=str(FOLDER / "written.uai"))


# ---------------------------------------------------------------------------------- diversities

DIVERSITIES: dict[str, dict[str, Any]] = {
    "BallCoverage": {"weight": 1.5, "radius": 1, "n_labels": 3},
    "BallCoverageBound": {"weight": 1.5, "radius": 1, "n_labels": 3},
    "DivMBest": {"weight": 0.75},
    "GroupCoverage": {
        "groups": [array(0, 1), array(2)],
        "h": root,
        "weight": 2.0,
        "parsimony": 1.5,
    },
    "HammingBall": {"weight": 2.0, "gamma": 0.5},
    "LabelDiversity": {"h": "sqrt", "weight": 1.5, "parsimony": 1.5, "background": 0},
    "VariableCoverage": {
        "h": "sqrt",
        "weight": 1.5,
        "regions": array(0, 0, 1, 1),
        "consistency": 0.5,
    },
    "TransitionDiversity": {
        "edges": EDGES,
        "h": "min1",
        "weight": 1.5,
        "parsimony": 1.5,
        "background": 0,
    },
}


def worth(diversity: diversities.Diversity) -> float:
    return diversity.value(LABELINGS, 3)


for name, arguments in DIVERSITIES.items():
    make = functools.partial(getattr(diversities, name), **arguments)
    owner = f"diversities.{name}"
    listed(owner, worth, **arguments)
    method(f"{owner}.value", make, labelings=LABELINGS, n_labels=3)
    method(f"{owner}.gain", make, labels=LABELS, labelings=LABELINGS[1:], n_labels=3)
    steps = make if name != "BallCoverage" else functools.partial(diversities.DivMBest, 1.0)
    method(f"{owner}.augment", steps, energies, field=FIELD, labelings=LABELINGS)
COUNT = fields.CardinalityPotential(array(0, 1, 1, 0), array(2.0, 1.0, 0.5, 0.0, 0.0))
listed(
    "diversities.Addition",
    lambda addition: addition.added_to(FIELD).energy(LABELINGS),
    prices=[(array(0, 1, 1, 0), 2.0)],
    counts=[COUNT],
    potentials=[fields.LabelCost(array(1.0, 2.0, 0.5))],
)
method("diversities.Addition.added_to", lambda: diversities.Addition(counts=[COUNT]), field=FIELD)
PARTS = [diversities.DivMBest(1.0), diversities.HammingBall(1.0, 0.5)]
listed("diversities.Alternatives", repr, least_difference=0.05, least_part=0.02, max_bias=2.0)
listed("diversities.Concatenated", repr, parts=PARTS, shares=array(2, 1))
method("diversities.Concatenated.shares_of", lambda: diversities.Concatenated(PARTS), m=4)


# ------------------------------------------------------------------------------------ inference


def chain() -> inference.FlowGraph:
    graph = inference.FlowGraph(3, [[0, 1], [1, 2]], [2.0, 1.5], [0.5, 0.25])
    graph.set_terminals([3.0, 0.0, 0.5], [0.0, 1.0, 2.0])
    return graph


def solved(graph: inference.FlowGraph) -> Any:
    return graph.solve(), graph.bound, graph.mask


def set_and_solve(name: str) -> Any:
    def run(**arguments: Any) -> Any:
        graph = chain()
        getattr(graph, name)(**arguments)
        return solved(graph)

    return run


class Settable:
    """A flow graph whose setters answer with what the change made of it."""

    set_terminals = staticmethod(set_and_solve("set_terminals"))
    set_capacities = staticmethod(set_and_solve("set_capacities"))


LINKS = array([0, 1], [1, 2])
THERE, BACK = array(2.0, 1.5), array(0.5, 0.25)
SOURCE, SINK = array(3.0, 0.0, 0.5), array(0.0, 1.0, 2.0)


def bounded(graph: inference.FlowGraph) -> Any:
    graph.set_terminals(1.0, 0.5)
    return solved(graph)


listed(
    "inference.FlowGraph",
    bounded,
    n=3,
    edges=LINKS,
    capacities=THERE,
    reverse=BACK,
    dtype="float64",
)
method(
    "inference.FlowGraph.grid",
    lambda: inference.FlowGraph,
    bounded,
    shape=array(2, 3),
    weights=array([[1.0]], [[0.5]]),
    reverse=array([[0.5]], [[0.25]]),
    offsets=array([0, 1], [1, 0]),
    dtype="float64",
)
method("inference.FlowGraph.copy", chain, solved)
method("inference.FlowGraph.solve", chain, n_jobs=1)
method(
    "inference.FlowGraph.set_capacities",
    Settable,
    edges=array(0, 1),
    capacities=array(1.0, 0.5),
    reverse=array(0.25, 0.5),
)
method(
    "inference.FlowGraph.set_terminals",
    Settable,
    source=array(1.0, 0.5),
    sink=array(0.25, 0.5),
    nodes=array(0, 2),
)


def small_cut() -> inference.EditableCut:
    cut = inference.EditableCut(array([-1.0, 0.5, 1.5], [0.5, 0.25, -2.0]), 0.5)
    cut.add_seeds([[0, 1]], 1)
    return cut


def edit_and_look(name: str) -> Any:
    def run(**arguments: Any) -> Any:
        cut = small_cut()
        update = getattr(cut, name)(**arguments)
        return update.proved, update.n_changed, update.reason, cut.labels

    return run


class Editable:
    """A cut whose changes answer with the labels after them."""

    add_seeds = staticmethod(edit_and_look("add_seeds"))
    change_unary = staticmethod(edit_and_look("change_unary"))
    repair = staticmethod(edit_and_look("repair"))
    replace = staticmethod(edit_and_look("replace"))


def seen(cut: inference.EditableCut) -> Any:
    return cut.labels, cut.proved, cut.certificate()


def with_own_labels(**arguments: Any) -> inference.EditableCut:
    """Labels are written by design: into a copy."""
    labels = arguments["labels"]
    copied = labels.copy() if isinstance(labels, np.ndarray) else labels
    return inference.EditableCut(**{**arguments, "labels": copied})


EXAMPLES["setwise.inference.EditableCut"] = Example(
    with_own_labels,
    {
        "unary": array([-1.0, 0.5, 1.5], [0.5, 0.25, -2.0]),
        "weights": array([[0.5]], [[0.25]]),
        "reverse": array([[0.25]], [[0.5]]),
        "connectivity": 4,
        "labels": array([0, 0, 0], [0, 0, 0]),
        "solved": False,
        "n_jobs": 1,
        "callback": go_on,
    },
    seen,
)
method(
    "inference.EditableCut.add_seeds",
    Editable,
    where=array([0, 2], [1, 0]),
    label=1,
    callback=go_on,
)
method(
    "inference.EditableCut.change_unary",
    Editable,
    window=(slice(0, 2), slice(1, 3)),
    delta=array([-1.0, 0.5], [0.25, 2.0]),
    callback=go_on,
)
method(
    "inference.EditableCut.replace",
    Editable,
    unary=array([1.0, 0.5, -1.5], [0.5, 0.25, 2.0]),
    weights=array([[0.25]], [[0.5]]),
    reverse=array([[0.5]], [[0.25]]),
    callback=go_on,
)
method("inference.EditableCut.repair", Editable, callback=go_on)
method("inference.EditableCut.undo", small_cut, lambda update: (update.proved, update.n_changed))
method("inference.EditableCut.certificate", small_cut)
listed(
    "inference.maxflow",
    edges=LINKS,
    capacities=THERE,
    reverse=BACK,
    n=3,
    source=SOURCE,
    sink=SINK,
    n_jobs=1,
)
listed("inference.maxflow_batch", graphs=[chain(), chain()], n_jobs=1)
listed(
    "solve_map",
    field=FIELD,
    method="auto",
    tol=1e-6,
    max_iter=50,
    time_limit=3600.0,
    init=LABELS,
    n_jobs=1,
    rng=0,
    verbose=False,
    callback=go_on,
)
POSTERIOR = sw.marginals(FIELD, tol=1e-6)


def seen(result: inference.MarginalsResult) -> Any:
    return result.probabilities, result.log_partition_upper, result.log_partition_lower


listed(
    "marginals",
    seen,
    field=FIELD,
    method="auto",
    tol=1e-4,
    max_iter=200,
    time_limit=3600.0,
    temperature=1.5,
    init=sw.marginals(FIELD, temperature=1.5),
    n_jobs=1,
    rng=0,
    dtype="float64",
    verbose=False,
    callback=go_on,
)
listed(
    "inference.marginals_batch",
    lambda results: [seen(result) for result in results],
    fields=[FIELD, FIELD],
    method="auto",
    tol=1e-4,
    max_iter=200,
    temperature=1.5,
    n_jobs=1,
    dtype="float64",
)
listed(
    "sample",
    lambda drawn: (drawn.labelings, drawn.energies),
    field=FIELD,
    n=5,
    temperature=1.5,
    init=array(0, 1, 1, 2),
    n_chains=2,
    burn_in=3,
    thin=2,
    n_jobs=1,
    rng=0,
)
listed(
    "inference.reliability",
    lambda told: (told.ece, told.brier, told.nll),
    y_true=array(0, 1, 1, -1),
    y_prob=POSTERIOR.probabilities,
    n_bins=5,
    strategy="uniform",
    sample_weight=array(1.0, 0.5, 2.0, 1.0),
    ignore=-1,
)
listed(
    "calibrate_temperature",
    lambda found: (found.scores, found.temperature),
    fields=[FIELD, FIELD],
    labels=[array(0, 1, 1, -1), array(0, 1, 2, 2)],
    method="auto",
    grid={"temperature": array(0.5, 1.0), "scale": array(1.0, 2.0)},
    scoring="nll",
    cv=[0, 1],
    ignore=-1,
    tol=1e-3,
    time_limit=3600.0,
    n_jobs=1,
    verbose=False,
    callback=go_on,
)
CALIBRATION = sw.calibrate_temperature([FIELD], [array(0, 1, 1, -1)], grid={"scale": [2.0]})
method("inference.TemperatureCalibration.scaled", lambda: CALIBRATION, field=FIELD)
method("inference.TemperatureCalibration.marginals", lambda: CALIBRATION, seen, field=FIELD)
listed("inference.log_partition_gradient", field=FIELD, result=POSTERIOR, n_jobs=1)
listed(
    "diverse",
    lambda result: (result.labelings, result.values, result.gains),
    field=FIELD,
    m=2,
    diversity=diversities.DivMBest(0.75),
    method="auto",
    candidates=LABELINGS,
    time_limit=3600.0,
    n_jobs=1,
    verbose=False,
    callback=go_on,
)
TWO_LABELS = fields.Field(UNARY[:, :2]) + fields.Potts(EDGES, 0.5)
listed(
    "inference.bias_path",
    lambda path: (path.breakpoints, path.last),
    field=TWO_LABELS,
    max_bias=2.0,
    resolution=0.1,
    max_cuts=20,
    n_jobs=1,
)
listed(
    "inference.oracle_accuracy",
    labelings=LABELINGS,
    truth=array(0, 1, -1, 2),
    scoring="iou",
    ignore=-1,
)
listed(
    "inference.tune_diversity",
    lambda result: (result.scores, repr(result.diversity)),
    fields=[FIELD],
    truths=[array(0, 1, 1, -1)],
    diversity=diversities.HammingBall,
    grid={"weight": [0.5, 5.0], "gamma": [0.5]},
    m=2,
    scoring="accuracy",
    regions=[array(0, 1, 2, 3)],
    ignore=-1,
    time_limit=3600.0,
    n_jobs=1,
    verbose=False,
    callback=go_on,
)
