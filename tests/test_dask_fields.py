"""Fields learned on dask: the bits of one process, the optimum of a local fit."""

from itertools import pairwise

import dask
import dask.bag as db
import numpy as np
import pytest
from dask_cluster import _time_limit, kill_a_worker, locally  # noqa: F401

import setwise as sw
from setwise.dask import DaskFieldSVM

HERE = locally(DaskFieldSVM)
SIZES = (3, 0, 1, 4)


def graphs(n_labels=2, *, regions=False, seed=0):
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(sum(SIZES)):
        n = int(rng.integers(3, 7))
        labels = np.repeat(rng.integers(n_labels, size=2), n)[:n]
        nodes = rng.normal(size=(n, 2)) + labels[:, None]
        edges = np.column_stack([np.arange(n - 1), np.arange(1, n)])
        graph = nodes, edges, np.ones((n - 1, 1))
        X.append((*graph, np.arange(n) // 3) if regions else graph)
        Y.append(labels)
    Y[0][:2] = 0, n_labels - 1
    return X, Y


def spread(values):
    ends = np.cumsum((0, *SIZES))
    return [dask.delayed(values[a:b]) for a, b in pairwise(ends.tolist())]


def same(a, b):
    for name in ("coef_", "intercept_", "edge_coef_", "region_coef_", "label_costs_"):
        assert np.array_equal(getattr(a, name), getattr(b, name))
    assert np.array_equal(a.history_.primal, b.history_.primal)
    assert a.gap_ == b.gap_


@pytest.mark.parametrize(
    ("n_labels", "options"),
    [(2, {}), (2, {"label_costs": True, "planes": 4}), (3, {}), (2, {"fit_intercept": False})],
)
def test_the_optimum_is_that_of_a_local_fit(n_labels, options):
    X, Y = graphs(n_labels, regions=n_labels == 2)
    here = HERE(tol=1e-5, **options).fit(spread(X), spread(Y))
    options.pop("planes", None)
    one = sw.FieldSVM(tol=1e-5, **options).fit(X, Y)
    assert here.gap_ <= 1e-5
    assert here.certified_
    assert here.history_.primal[-1] == pytest.approx(one.history_.primal[-1], rel=1e-4)
    assert here.score(spread(X), spread(Y)) == here.to_local().score(X, Y)
    lazy = dask.compute(*here.predict(spread(X)))
    for a, b in zip([z for part in lazy for z in part], here.to_local().predict(X), strict=True):
        assert np.array_equal(a, b)


def test_kill_9_changes_no_bit_and_bags_are_partitions(client):
    X, Y = graphs()
    here = HERE(C=0.1, tol=0.05).fit(spread(X), spread(Y))

    def kill(progress):
        if progress.n_iter == 2:
            kill_a_worker(client)

    many = DaskFieldSVM(C=0.1, tol=0.05)
    same(many.fit(spread(X), spread(Y), callback=kill), here)
    assert here.n_iter_ > 2
    bags = db.from_delayed(spread(X)), db.from_delayed(spread(Y))
    same(HERE(C=0.1, tol=0.05).fit(*bags), here)
    assert len(many.predict(bags[0]).compute()) == len(X)


def test_weights_of_nodes():
    X, Y = graphs()
    weights = [np.arange(1.0, len(labels) + 1) for labels in Y]
    here = HERE(tol=1e-5).fit(spread(X), spread(Y), spread(weights))
    one = sw.FieldSVM(tol=1e-5).fit(X, Y, weights)
    assert here.history_.primal[-1] == pytest.approx(one.history_.primal[-1], rel=1e-4)
    assert here.score(spread(X), spread(Y), spread(weights)) == pytest.approx(
        here.to_local().score(X, Y, weights)
    )


def test_bad_input_gets_a_sentence():
    X, Y = graphs()
    with pytest.raises(TypeError, match="X must be a dask Bag, or a list of Delayed objects"):
        HERE().fit(X, Y)
    with pytest.raises(ValueError, match="X and Y must have the same partitions"):
        HERE().fit(spread(X)[:2], spread(Y))
    with pytest.raises(ValueError, match="Y must hold at least two labels"):
        HERE().fit(spread(X), spread([0 * labels for labels in Y]))
    with pytest.raises(ValueError, match="X must hold at least one graph"):
        HERE().fit(spread([])[:1], spread([])[:1])
    with pytest.raises(ValueError, match="X must have graphs of the same numbers of features"):
        HERE().fit(spread([*X[:3], *graphs(regions=True)[0][3:]]), spread(Y))
    with pytest.raises(ValueError, match=r"truncation must be at most 0\.5"):
        HERE(truncation=0.7).fit(spread(X), spread(Y))
