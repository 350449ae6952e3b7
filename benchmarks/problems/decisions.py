"""Decisions: every loss with a suitable method, in all layouts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import setwise as sw
from benchmarks.problems import Problem


def answer(*args: Any, **options: Any) -> Any:
    """Return the values on which two builds must agree; empty for builds without decisions."""
    if not hasattr(sw, "decide"):
        return []
    found = sw.decide(*args, **options)
    return [found.mask, found.expected, found.bound, found.exact, found.method]


def label_maps(p: np.ndarray, **options: Any) -> Any:
    """Return the answer for exclusive classes; empty for builds without them."""
    if not hasattr(getattr(sw, "decisions", None), "LabelDecision"):
        return []
    found = sw.decide(p, "jaccard", classes="exclusive", n_jobs=1, **options)
    return [found.labels, found.expected, found.bound, found.of_classes]


def budgets(p: np.ndarray, loss: str, **options: Any) -> Any:
    """Return k labels for each row; empty for builds without them."""
    if not hasattr(sw, "decide_at_k"):
        return []
    found = sw.decide_at_k(p, loss, 2, n_jobs=1, **options)
    return [found.mask, found.expected, found.bound]


def timed() -> Iterator[Problem]:
    """Yield large sets and many small ones."""
    rng = np.random.default_rng(0)
    large, rows = rng.random(1_000_000), rng.random((20_000, 14))
    for loss in ("jaccard", "dice"):
        yield f"{loss}, 1e6", partial(answer, large, loss, n_jobs=1)
        yield f"{loss}, 20000 x 14", partial(answer, rows, loss, n_jobs=1)


def wide() -> Iterator[Problem]:
    """Yield every named loss, sizes, weights and ragged sets."""
    rng = np.random.default_rng(0)
    for loss in sw.losses.names():
        for n in (1, 5, 30):
            yield f"{loss}, {n}", partial(answer, rng.random((3, n)), loss, n_jobs=1)
    p, weights = rng.random(12), rng.random(12)
    yield "weighted", partial(answer, p, "jaccard", weights=weights)
    yield "ragged", partial(answer, p, "dice", offsets=np.array([0, 3, 3, 12]))
    yield from guarantees()
    classes = rng.dirichlet(np.ones(4), (2, 60)).transpose(0, 2, 1)
    yield "label maps", partial(label_maps, classes)
    yield "label maps of images", partial(label_maps, classes, sets="rows")
    for loss in ("jaccard", "dice", "coverage"):
        yield f"{loss} at 2", partial(budgets, rng.random((20, 6)), loss)
        yield f"{loss} at most 2", partial(budgets, rng.random((20, 6)), loss, at_most=True)
    yield "grouped", partial(answer, p, "dice", groups=rng.integers(0, 4, 12))


def guarantees() -> Iterator[Problem]:
    """Yield the levels of guaranteed masks, label sets and risks; none for builds without them."""
    if not hasattr(sw, "conformal"):
        return
    rng = np.random.default_rng(0)
    maps = rng.random((40, 30))
    truths = rng.random((40, 30)) < maps
    losses = np.sort(rng.random((40, 9)), axis=1)[:, ::-1]
    for kind in ("ConformalMasks", "ConformalLabels"):
        yield kind, partial(levels_of, getattr(sw.conformal, kind)(alpha=0.2), maps, truths)
    yield "load", partial(stored, sw.conformal.ConformalLabels(alpha=0.2), maps, truths)
    edges = sw.fields.Potts(sw.fields.grid_edges((5, 6)), 0.4)
    fields = [sw.fields.Field(np.stack([0 * p, 1 - 2 * p], axis=1)) + edges for p in maps]
    lists = [sw.diverse(field, 4) for field in fields]
    model = sw.conformal.ConformalLists(alpha=0.5, tau=0.2, length=4)
    yield "ConformalLists", partial(levels_of, model, lists, truths)
    for delta in (None, 0.3):
        control = sw.conformal.control_risk(losses, 0.4, delta=delta)
        yield f"control_risk {delta}", lambda control=control: [control.level, control.bound]


def levels_of(model: Any, X: Any, y: Any) -> Any:
    controls = model.conformalize(X, list(y) if isinstance(X, list) else y).controls_
    return [(control.level, control.risk) for control in controls.values()]


def stored(model: Any, X: Any, y: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        model.conformalize(X, y).save(path)
        return sw.conformal.load(path).predict_set(X)
