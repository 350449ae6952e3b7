"""Good calls of learners, estimators and pictures."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from example_registry import EXAMPLES, Example, array, go_on, itself, listed, method, resolve
from examples_of_fields import FIELD
from scipy.sparse import diags_array
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import setwise as sw
from setwise import functions, learning, losses, plots, surrogates
from setwise.learning import BoostOptions
from setwise.learning._boosting._problem import WeakLearnerSearch

# ------------------------------------------------------------------------------------- learning


def quietly(fit: Callable[[], Any]) -> Any:
    """A fit that ends after few rounds, as all do here, and says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit()


def hinge(w: np.ndarray) -> tuple[float, np.ndarray]:
    slope = np.array([-2.0, 1.0])
    slack = 1.0 + float(slope[: len(w)] @ w[:2])
    return max(slack, 0.0), slope if slack > 0 else np.zeros(2)


def hinge_of(i: int, w: np.ndarray) -> tuple[float, np.ndarray]:
    return hinge(w)


class Hinge:
    """The hinge losses of labels +1 and -1."""

    y = array(1.0, -1.0, 1.0, -1.0)
    offsets = array(0, 4)

    def each(self, scores: np.ndarray) -> Any:
        slack = 1 - self.y * scores
        return np.maximum(slack, 0), diags_array(np.where(slack > 0, -self.y, 0.0)).tocsr()

    def __call__(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        slack = 1 - self.y * scores
        return np.maximum(slack, 0).mean(), np.where(slack > 0, -self.y, 0) / len(slack)


ROWS = array([0.0, 1.0], [1.0, 0.5], [2.0, 0.25], [1.0, 0.75])
WEIGHTS = array(1.0, -1.0, -1.0, 0.5)


def first_response(columns: list[learning.Column]) -> Any:
    return [(column.segment, column.response) for column in columns]


def priced(search: WeakLearnerSearch) -> Any:
    return first_response(search(np.resize(WEIGHTS, search.X.shape[0])))


FIRST = learning.one_slack(hinge, 2, 10.0, tol=0.5)
ONE = {"C": 10.0, "tol": 1e-3, "max_iter": 50, "time_limit": 3600.0}
ONE |= {"verbose": False, "callback": go_on}


def outcome(fit: Any) -> Any:
    return fit.w, fit.value, fit.bound


listed(
    "learning.one_slack",
    outcome,
    oracle=hinge,
    dimension=2,
    nonnegative=array(0),
    least_risk=0.0,
    init=FIRST,
    **ONE,
)
listed("learning.n_slack", outcome, oracle=hinge_of, n=1, dimension=2, **ONE)
listed(
    "learning.struct_boost",
    outcome,
    risk=Hinge(),
    search=learning.StumpSearch(ROWS),
    C=10.0,
    tol=1e-3,
    n_estimators=5,
    time_limit=3600.0,
    slack="one",
    columns="class",
    penalty="l1",
    columns_per_round=1,
    verbose=False,
    callback=go_on,
)
TREE = DecisionTreeClassifier(max_depth=2, random_state=0)
SEARCHES: dict[str, dict[str, Any]] = {
    "PerceptronSearch": {"X": ROWS, "n_columns": 1, "max_iter": 20, "n_jobs": 1},
    "ClassifierSearch": {
        "X": ROWS,
        "estimator": TREE,
        "n_columns": 1,
        "drop": 0.0,
        "rng": 0,
    },
    "StepSearch": {
        "X": ROWS,
        "n_columns": 1,
        "levels": "balanced",
        "sample_weight": array(1.0, 2.0, 1.0, 1.0),
        "n_jobs": 1,
    },
    "StumpSearch": {
        "X": ROWS,
        "n_columns": 1,
        "categorical_features": array(1),
        "monotonic_cst": array(1, 0),
        "n_jobs": 1,
    },
}
for name, arguments in SEARCHES.items():
    listed(f"learning.{name}", priced, **arguments)
    make = functools.partial(getattr(learning, name), **arguments)
    method(f"learning.{name}.__call__", make, first_response, weights=WEIGHTS)
FITTED = copy.deepcopy(TREE).fit(ROWS, np.array([1, -1, -1, 1]))
LEARNERS: dict[str, dict[str, Any]] = {
    "Perceptron": {"coef": array(1.0, -1.0), "intercept": 0.5},
    "CategoryStump": {
        "feature": 1,
        "positive": (0.0, 2.0),
        "negative": (1.0,),
        "missing": -1,
    },
    "Step": {"feature": 1, "threshold": 0.5, "low": -0.5, "high": 1.5, "missing": 0.25},
    "Stump": {"feature": 1, "threshold": 0.5, "sign": -1, "missing": 1},
    "WeakClassifier": {"model": FITTED, "sign": -1},
}
for name, arguments in LEARNERS.items():
    listed(f"learning.{name}", lambda learner: learner.predict(ROWS), **arguments)
    make = functools.partial(resolve(f"setwise.learning.{name}"), **arguments)
    method(f"learning.{name}.predict", make, X=ROWS)
    method(f"learning.{name}.importances", make, n_features=2)


def first(shard, *own):
    return shard


listed("learning.tree_sum", parts=[1.0, 2.0, 3.0], add=None)
for name in ("Serial", "Threads"):
    arguments = {"n_jobs": 2} if name == "Threads" else {}
    make = functools.partial(getattr(learning, name), **arguments)
    listed(f"learning.{name}", lambda executor: executor.close(), **arguments)
    method(f"learning.{name}.map", make, function=itself, shards=[-1, 2])
    method(f"learning.{name}.place", make, shards=[-1, 2])
    method(f"learning.{name}.sums", make, function=first, shards=[-1, 2], each=None, most=1)
    method(f"learning.{name}.close", make)


# ----------------------------------------------------------------------------------- estimators

X = array([0.0, 1.0], [1.0, 0.5], [2.0, 0.25], [1.0, 0.75], [3.0, 0.5], [0.5, 0.0])
Y = array(0, 0, 1, 1, 1, 0)
GROUPS = array(0, 0, 1, 1, 1, 0)
PAIRED = array(0, 1, 0, 1, 1, 0)
SAMPLE_WEIGHT = array(1.0, 2.0, 1.0, 1.0, 2.0, 1.0)
CHAIN = array([0, 1], [1, 2])
GRAPHS = [
    (array([1.0], [2.0], [-0.5]), CHAIN, np.ones((2, 1))),
    (array([-1.0], [-2.0], [-1.5]), CHAIN, np.ones((2, 1))),
]
NODE_LABELS = [array(1, 1, 1), array(0, 0, 0)]
NODE_WEIGHTS = [array(1.0, 2.0, 1.0), array(1.0, 1.0, 1.0)]


def decided(decision: sw.decisions.Decision | list[sw.decisions.Decision]) -> Any:
    if isinstance(decision, list):
        return [decided(one) for one in decision]
    return decision.mask, decision.expected, decision.bound


def estimator(
    name: str,
    parameters: dict[str, Any],
    fit: dict[str, Any],
    methods: dict[str, dict[str, Any]],
    look: Callable[[Any], Any],
    **others: Any,
) -> None:
    """The constructor, judged by a fit, and the methods of a fitted one."""
    cls = getattr(sw, name)
    few = {"max_iter": 30, "n_estimators": 5}
    short = {key: few[key] for key in few if key in parameters}
    short = {**dict([*short.items()][:1]), **others}

    def constructed(**given: Any) -> Any:
        return cls(**given).fit(**fit)

    EXAMPLES[f"setwise.{name}"] = Example(constructed, parameters, look)
    make = functools.partial(cls, **short)
    method(f"{name}.fit", make, look, **fit)
    fitted = quietly(lambda: make().fit(**fit))
    for called, arguments in methods.items():
        answer = list if called.startswith("staged") else itself
        if called == "decide":
            answer = decided
        method(f"{name}.{called}", lambda fitted=fitted: fitted, answer, **arguments)


def decisions(model: Any) -> Any:
    return model.decision_function(X)


def probabilities_told(model: Any) -> Any:
    return model.predict_proba(X)


estimator(
    "SetClassifier",
    {
        "loss": "jaccard",
        "surrogate": "lovasz",
        "C": 10.0,
        "tol": 1e-3,
        "max_iter": 30,
        "fit_intercept": True,
        "sets": "groups",
        "calibrate": None,
        "cv": None,
        "class_weight": "balanced",
        "warm_start": False,
        "n_jobs": 1,
        "time_limit": 3600.0,
        "verbose": False,
    },
    {"X": X, "y": Y, "groups": GROUPS, "sample_weight": SAMPLE_WEIGHT, "callback": go_on},
    {
        "decision_function": {"X": X},
        "predict": {"X": X, "abstain": False, "groups": GROUPS},
        "score": {"X": X, "y": Y, "groups": GROUPS, "sample_weight": SAMPLE_WEIGHT},
        "set_params": {},
    },
    decisions,
)
estimator(
    "SetDecision",
    {
        "estimator": LogisticRegression(),
        "loss": "jaccard",
        "sets": "groups",
        "calibrate": "sigmoid",
        "presence": "fit",
        "cv": 2,
        "time_limit": None,
        "n_jobs": 1,
    },
    {"X": X, "y": Y, "groups": PAIRED, "sample_weight": SAMPLE_WEIGHT},
    {
        "decide": {"X": X, "groups": PAIRED},
        "expected_loss": {"X": X, "groups": PAIRED},
        "predict": {"X": X, "groups": PAIRED},
        "predict_proba": {"X": X},
        "score": {"X": X, "y": Y, "groups": PAIRED, "sample_weight": SAMPLE_WEIGHT},
    },
    probabilities_told,
)
estimator(
    "SetClassifierCV",
    {
        "loss": "jaccard",
        "surrogate": "lovasz",
        "Cs": array(1.0, 10.0),
        "cv": 2,
        "scoring": "accuracy",
        "refit": True,
        "tol": 1e-3,
        "max_iter": 30,
        "time_limit": None,
        "fit_intercept": True,
        "sets": "groups",
        "class_weight": {0: 1.0, 1: 2.0},
        "n_jobs": 1,
        "verbose": False,
    },
    {"X": X, "y": Y, "groups": PAIRED, "sample_weight": SAMPLE_WEIGHT},
    {
        "decision_function": {"X": X},
        "predict": {"X": X, "abstain": False, "groups": PAIRED},
        "score": {"X": X, "y": Y, "groups": PAIRED, "sample_weight": SAMPLE_WEIGHT},
        "set_params": {},
    },
    decisions,
    cv=2,
    Cs=[10.0],
)
STAGES = GradientBoostingClassifier(n_estimators=4, max_depth=1, random_state=0)
STAGES.fit(np.vstack([X, X + 0.1]), array(0, 1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 0))
FEWER = sw.thin(STAGES, X, Y, C=20.0)
listed(
    "thin",
    decisions,
    ensemble=STAGES,
    X=X,
    y=Y,
    C=20.0,
    sample_weight=SAMPLE_WEIGHT,
    oob=False,
    taxonomy=array(2, 2, -1),
    max_trees=3,
    tol=1e-3,
    cv=2,
    time_limit=60.0,
)
listed("estimators.ThinnedEnsemble", lambda model: 0)
for name, arguments in (
    ("decision_function", {"X": X}),
    ("predict", {"X": X}),
    ("fit", {}),
):
    method(f"estimators.ThinnedEnsemble.{name}", lambda: FEWER, itself, **arguments)
SETTINGS = {
    "validation_fraction": 0.2,
    "n_iter_no_change": 5,
    "n_folds": 2,
    "slack": "one",
    "categorical_features": array(1),
    "monotonic_cst": array(1, 0),
}


def boosted_with(**settings: Any) -> Any:
    model = sw.StructBoostClassifier(n_estimators=5, C=10.0, options=BoostOptions(**settings))
    return model.fit(X, Y, eval_set=(X, Y))


EXAMPLES["setwise.learning.BoostOptions"] = Example(
    boosted_with,
    {
        "penalty": "auto",
        "label_form": "coded",
        "columns": "shared",
        "columns_per_round": 1,
        "scoring": None,
        **SETTINGS,
    },
    decisions,
)
estimator(
    "StructBoostClassifier",
    {
        "estimator": "stump",
        "n_estimators": 5,
        "C": 10.0,
        "surrogate": "auto",
        "taxonomy": array(2, 2, -1),
        "class_weight": "balanced",
        "early_stopping": "auto",
        "calibrate": "softmax",
        "options": BoostOptions(**SETTINGS),
        "tol": 1e-3,
        "random_state": 0,
        "n_jobs": 1,
        "time_limit": 3600.0,
        "verbose": False,
    },
    {"X": X, "y": Y, "sample_weight": SAMPLE_WEIGHT, "eval_set": (X, Y), "callback": go_on},
    {
        "decision_function": {"X": X},
        "predict": {"X": X},
        "predict_proba": {"X": X},
        "score": {"X": X, "y": Y, "sample_weight": SAMPLE_WEIGHT},
        "staged_decision_function": {"X": X},
        "staged_predict": {"X": X},
    },
    decisions,
    C=10.0,
    calibrate="softmax",
)
estimator(
    "StructBoostRanker",
    {
        "estimator": "stump",
        "n_estimators": 5,
        "C": 10.0,
        "loss": "auc",
        "k": None,
        "tol": 1e-3,
        "ordinal": False,
        "early_stopping": "auto",
        "options": BoostOptions(**SETTINGS),
        "random_state": 0,
        "n_jobs": 1,
        "time_limit": 3600.0,
        "verbose": False,
    },
    {
        "X": X,
        "y": Y,
        "sample_weight": SAMPLE_WEIGHT,
        "groups": None,
        "qid": array(0, 1, 1, 1, 0, 1),
        "eval_set": (X, Y, array(0, 1, 1, 1, 0, 1)),
        "callback": go_on,
    },
    {
        "decision_function": {"X": X},
        "predict": {"X": X},
        "score": {
            "X": X,
            "y": Y,
            "sample_weight": SAMPLE_WEIGHT,
            "groups": array(0, 1, 1, 1, 0, 1),
            "qid": None,
        },
        "staged_decision_function": {"X": X},
    },
    decisions,
    C=10.0,
)
ON_GRAPHS = {"X": GRAPHS, "Y": NODE_LABELS, "node_weights": NODE_WEIGHTS}


def node_scores(model: Any) -> Any:
    return model.decision_function(GRAPHS)


def unaries(field: Any) -> Any:
    return field.unary


estimator(
    "FieldSVM",
    {
        "C": 10.0,
        "scores": LogisticRegression(),
        "passthrough": True,
        "measure": "jaccard",
        "decision": "bias",
        "cv": 2,
        "truncation": 0.25,
        "label_costs": True,
        "tol": 1e-3,
        "max_iter": 30,
        "fit_intercept": True,
        "n_jobs": 1,
        "time_limit": 3600.0,
        "verbose": False,
    },
    {**ON_GRAPHS, "callback": go_on},
    {
        "decide": {"X": GRAPHS, "loss": "dice", "temperature": 2.0},
        "decision_function": {"X": GRAPHS},
        "predict": {"X": GRAPHS},
        "score": ON_GRAPHS,
        "to_field": {"x": GRAPHS[0]},
    },
    node_scores,
)
estimator(
    "FieldBoost",
    {
        "estimator": ("stump", "feature"),
        "scores": LogisticRegression(),
        "passthrough": True,
        "measure": "jaccard",
        "decision": "bias",
        "cv": 2,
        "truncation": 0.25,
        "n_estimators": 5,
        "C": 10.0,
        "tol": 1e-3,
        "random_state": 0,
        "n_jobs": 1,
        "time_limit": 3600.0,
        "verbose": False,
    },
    {**ON_GRAPHS, "callback": go_on},
    {
        "decide": {"X": GRAPHS, "loss": "dice", "temperature": 2.0},
        "decision_function": {"X": GRAPHS},
        "predict": {"X": GRAPHS},
        "score": ON_GRAPHS,
        "staged_predict": {"X": GRAPHS},
        "to_field": {"x": GRAPHS[0]},
    },
    node_scores,
)

FRAME = np.zeros((24, 32))
FRAME[8:16, 8:16] = 1.0
BOX = array(8.0, 8.0, 8.0, 8.0)
SMALL = {"n_estimators": 5, "n_candidates": 10, "n_training": 10}


def followed(tracker: Any) -> Any:
    return tracker.box_, tracker.score_boxes(FRAME, [BOX])


def start(**parameters: Any) -> Any:
    return sw.StructBoostTracker(**parameters).start(FRAME, BOX)


TRACKER = quietly(lambda: start(**SMALL))
EXAMPLES["setwise.StructBoostTracker"] = Example(
    start,
    {
        "C": 10.0,
        "tol": 0.01,
        "features": ("pixels",),
        "search_radius": 0.25,
        "scales": array(1.0, 2.0),
        "memory": 3,
        "reservoir": 2,
        "update_every": 2,
        "unsure_below": 0.5,
        "found_above": 0.8,
        "patience": 4,
        **SMALL,
    },
    followed,
)
method(
    "StructBoostTracker.start",
    functools.partial(sw.StructBoostTracker, **SMALL),
    followed,
    frame=FRAME,
    box=BOX,
)
method("StructBoostTracker.as_in_paper", lambda: sw.StructBoostTracker)
method("StructBoostTracker.update", lambda: copy.deepcopy(TRACKER), frame=FRAME, box=BOX)
method("StructBoostTracker.score_boxes", lambda: TRACKER, frame=FRAME, boxes=BOX[None])


# -------------------------------------------------------------------------------------- pictures


def closed(display: Any) -> Any:
    """What was drawn, once the figure is let go of."""
    plt.close("all")
    return type(display).__name__


IMAGE = array([0.0, 0.5], [1.0, 0.25])
COLORS = array([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
STYLE = {"linewidth": 2.0}
DECOMPOSITION = {
    "loss": array(0.0, 1.0, 3.0),
    "f": array(0.0, 1.5, 3.0),
    "g": array(0.0, -0.5, 0.0),
    "exact": True,
}
listed(
    "plots.DecompositionDisplay",
    lambda display: display.plot() and closed(display),
    **DECOMPOSITION,
)
method(
    "plots.DecompositionDisplay.from_function",
    lambda: plots.DecompositionDisplay,
    closed,
    function=functions.Table([0.0, 1.0, 1.0, 3.0]),
    order=array(1, 0),
    ax=None,
)
method(
    "plots.DecompositionDisplay.from_loss",
    lambda: plots.DecompositionDisplay,
    closed,
    loss="exponential",
    p=4,
    ax=None,
)
method(
    "plots.DecompositionDisplay.plot",
    lambda: plots.DecompositionDisplay(**DECOMPOSITION),
    closed,
    ax=None,
)
LIST = {
    "labelings": array([[0, 1], [1, 2]], [[0, 0], [0, 0]]),
    "values": array(0.5, 1.0),
    "image": IMAGE,
    "n_labels": 3,
    "colors": COLORS,
}
DIVERSE = sw.diverse(FIELD, 2, sw.diversities.DivMBest(0.75))
listed("plots.DiverseDisplay", lambda display: display.plot() and closed(display), **LIST)
method(
    "plots.DiverseDisplay.from_result",
    lambda: plots.DiverseDisplay,
    closed,
    result=DIVERSE,
    shape=None,
    image=IMAGE,
    superpixels=array([0, 1], [2, 3]),
    n_labels=3,
    colors=COLORS,
    ax=None,
)
method(
    "plots.DiverseDisplay.plot",
    lambda: plots.DiverseDisplay(**LIST),
    closed,
    ax=None,
    n_columns=2,
    alpha=0.5,
    outline_kw=STYLE,
)
MARGINALS = {
    "labels": array([0, 1], [1, 2]),
    "entropy": array([0.5, 0.25], [0.0, 1.0]),
    "n_labels": 3,
    "image": IMAGE,
    "regions": array([0, 0], [1, -1]),
    "quantile": 0.5,
    "colors": COLORS,
}
listed("plots.MarginalsDisplay", lambda display: display.plot() and closed(display), **MARGINALS)
method(
    "plots.MarginalsDisplay.from_result",
    lambda: plots.MarginalsDisplay,
    closed,
    result=sw.marginals(FIELD),
    shape=array(2, 2),
    image=IMAGE,
    labels=array([0, 1], [1, 2]),
    regions=array([0, 0], [1, -1]),
    colors=COLORS,
    quantile=0.5,
    ax=None,
)
method(
    "plots.MarginalsDisplay.plot",
    lambda: plots.MarginalsDisplay(**MARGINALS),
    closed,
    ax=None,
    panels=("labels", "entropy"),
    n_regions=1,
    colorbar=True,
    outline_kw=STYLE,
)
RELIABILITY = {
    "prob_true": array(np.nan, 0.5, 1.0),
    "prob_pred": array(np.nan, 0.6, 0.9),
    "bin_weights": array(0.0, 0.25, 0.75),
    "ece": 0.1,
    "name": "ours",
}
listed(
    "plots.ReliabilityDisplay", lambda display: display.plot() and closed(display), **RELIABILITY
)
method(
    "plots.ReliabilityDisplay.from_probabilities",
    lambda: plots.ReliabilityDisplay,
    closed,
    y_true=array(0, 1, 1, -1),
    y_prob=array([0.75, 0.25], [0.5, 0.5], [0.25, 0.75], [1.0, 0.0]),
    n_bins=5,
    strategy="uniform",
    sample_weight=array(1.0, 0.5, 2.0, 1.0),
    ignore=-1,
    name="ours",
    ax=None,
)
method(
    "plots.ReliabilityDisplay.from_reliability",
    lambda: plots.ReliabilityDisplay,
    closed,
    reliability=sw.inference.reliability([0, 1], [0.25, 0.75]),
    name="ours",
    ax=None,
)
method(
    "plots.ReliabilityDisplay.plot",
    lambda: plots.ReliabilityDisplay(**RELIABILITY),
    closed,
    ax=None,
    ref_line=True,
    bars_kw=STYLE,
)
SURFACE = {
    "s": array(-1.0, 0.0, 1.0),
    "values": np.arange(9.0).reshape(3, 3),
    "corners": array([0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]),
    "losses": array(0.0, 1.0, 1.0, 1.5),
}
listed("plots.SurrogateDisplay", lambda display: display.plot() and closed(display), **SURFACE)
method(
    "plots.SurrogateDisplay.from_surrogate",
    lambda: plots.SurrogateDisplay,
    closed,
    surrogate=surrogates.LovaszHinge(losses.Jaccard()),
    y=array(1, 0),
    limits=array(-1.0, 2.0),
    n_points=5,
    ax=None,
    kind="contour",
)
method(
    "plots.SurrogateDisplay.plot",
    lambda: plots.SurrogateDisplay(**SURFACE),
    closed,
    ax=None,
    kind="contour",
    colorbar=True,
    dots_kw={"s": 20.0},
)

# ------------------------------------------------------------------------------------ decisions

listed(
    "decide",
    decided,
    probabilities=array(0.75, 0.5, 0.25),
    loss="jaccard",
    classes="separate",
    offsets=None,
    groups=None,
    sets="auto",
    weights=array(1.0, 2.0, 1.0),
    presence=None,
    ignore=None,
    label=1,
    temperature=1.0,
    n_jobs=1,
)
listed(
    "decide_at_k",
    decided,
    probabilities=array([0.75, 0.5, 0.25], [0.5, 0.25, 0.125]),
    loss="jaccard",
    k=1,
    weights=array(1.0, 2.0, 1.0),
    at_most=True,
    n_jobs=1,
)
