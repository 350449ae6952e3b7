"""Boosting on dask: the stumps, and the model, of one process, to the last bit."""

import dask.array as da
import numpy as np
import pytest
from boost_options import boost_options
from dask_cluster import (  # noqa: F401
    Here,
    _time_limit,
    kill_a_worker,
    locally,
    lose_all_workers,
)
from scipy.sparse import csr_matrix

import setwise as sw
from setwise.dask import DaskStructBoostClassifier, DaskStructBoostRanker
from setwise.dask._column_blocks import ColumnTable

# Few weak learners: what is compared is how they are found.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 6)).round(1)
X[:, 4] = RNG.integers(0, 3, 90)
X[RNG.random(X.shape) < 0.05] = np.nan
X[40:50] = X[30:40]  # repeated rows
Y = (np.nan_to_num(X[:, 0] + X[:, 1]) > 0).astype(int) + (X[:, 4] == 2)
Y[40:50] = Y[30:40]
CHUNKS = (31, 0, 1, 58)
WEIGHT = RNG.integers(0, 3, 90)
GROUPS = RNG.integers(0, 5, 90)
CLASSIFIER, RANKER = locally(DaskStructBoostClassifier), locally(DaskStructBoostRanker)


def spread(values, columns=-1):
    chunks = (CHUNKS, columns) if values.ndim == 2 else (CHUNKS,)
    return da.from_array(values, chunks=chunks)


def same(a, b):
    assert a.estimators_ == b.estimators_
    assert np.array_equal(a.estimator_weights_, b.estimator_weights_)
    assert np.array_equal(a.history_.primal, b.history_.primal)
    assert a.gap_ == b.gap_


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"columns": "class", "columns_per_round": 3},
        {"categorical_features": [4], "class_weight": "balanced"},
        {"taxonomy": [[0], [1, 2]]},
    ],
)
def test_a_classifier_is_the_local_one_to_the_last_bit(options):
    one = sw.StructBoostClassifier(
        n_estimators=12,
        C=10.0,
        early_stopping=False,
        tol=0.3,
        **boost_options(slack="one", **options),
    ).fit(X, Y, sample_weight=WEIGHT)
    here = CLASSIFIER(n_estimators=12, C=10.0, tol=0.3, **boost_options(**options)).fit(
        spread(X, 4), spread(Y), sample_weight=spread(WEIGHT)
    )
    same(here, one)
    found = here.predict(spread(X)).compute()
    assert np.array_equal(found, one.predict(X))
    assert np.array_equal(here.decision_function(spread(X)).compute(), one.decision_function(X))
    assert here.score(spread(X), spread(Y)) == pytest.approx(one.score(X, Y), abs=1e-12)
    assert np.array_equal(here.feature_importances_, one.feature_importances_)


@pytest.mark.parametrize("loss", ["auc", "average_precision", "ndcg"])
def test_a_ranker_is_the_local_one_whatever_the_chunks_of_its_groups(loss):
    y = (Y > 0).astype(int)
    one = sw.StructBoostRanker(n_estimators=10, C=10.0, early_stopping=False, loss=loss, tol=0.3)
    one.fit(X, y, groups=GROUPS)
    here = RANKER(n_estimators=10, C=10.0, loss=loss, tol=0.3)
    here.fit(spread(X), spread(y), groups=spread(GROUPS))
    same(here, one)
    assert np.array_equal(here.cut_points_, one.cut_points_)
    assert np.array_equal(here.predict(spread(X)).compute(), one.predict(X))
    scored = here.score(spread(X), spread(y), groups=spread(GROUPS))
    assert scored == one.score(X, y, groups=GROUPS)


def test_sparse_blocks_find_the_stumps_of_dense_ones():
    dense = np.where(np.isnan(X) | (np.abs(X) < 0.5), 0.0, X)
    blocks = spread(dense).map_blocks(csr_matrix)
    a = CLASSIFIER(n_estimators=8, C=10.0, tol=0.3).fit(spread(dense), spread(Y))
    b = CLASSIFIER(n_estimators=8, C=10.0, tol=0.3).fit(blocks, spread(Y))
    assert a.estimators_ == b.estimators_
    assert b.estimator_weights_ == pytest.approx(a.estimator_weights_, abs=1e-9)
    assert np.array_equal(b.predict(blocks).compute(), b.to_local().predict(dense))


def test_blocks_of_columns_have_the_gains_of_the_whole_table():
    search = sw.learning.StumpSearch(X, 4)
    table = ColumnTable(Here(), spread(X), y=spread(Y))
    many = table.searched(None, 4, np.zeros(6, np.bool_), np.zeros(6, np.int8))
    for seed in range(5):
        weights = np.random.default_rng(seed).normal(size=3 * 90).round(seed % 3)
        for a, b in zip(search(weights), many(weights), strict=True):
            assert a.learner == b.learner
            assert a.segment == b.segment
            assert np.array_equal(a.response, b.response)


def test_kill_9_changes_no_bit(client):
    options = {"n_estimators": 6, "C": 10.0, "tol": 0.3}
    one = sw.StructBoostClassifier(
        early_stopping=False, options=sw.learning.BoostOptions(slack="one"), **options
    ).fit(X, Y)

    def kill(progress):
        if progress.n_iter == 2:
            kill_a_worker(client)

    many = DaskStructBoostClassifier(**options).fit(spread(X), spread(Y), callback=kill)
    assert many.n_iter_ > 2
    same(many, one)


@pytest.mark.parametrize("how", ["killed", "restarted", "none for a time"])
def test_the_loss_of_all_workers_changes_no_bit(client, cluster, how, monkeypatch):
    """Rows are tied to workers, and so are the columns that are made of them."""
    monkeypatch.setattr("setwise.dask._worker_watch._INTERVAL", 0.1)
    lost = []

    def lose(progress):
        if progress.n_iter == 2:
            lose_all_workers(how, client, cluster)
            lost.append(how)

    given = {"n_estimators": 4, "C": 10.0, "tol": 0.3}
    far = DaskStructBoostClassifier(**given, client=client)
    far.fit(spread(X), spread(Y), callback=lose)
    same(far, CLASSIFIER(**given).fit(spread(X), spread(Y)))
    assert lost


def test_c_auto_is_a_multiple_of_the_least_that_pays():
    here = CLASSIFIER(n_estimators=3, tol=0.9).fit(spread(X), spread(Y))
    assert here.C_ > 0
    assert here.C_scores_ == {}


def test_bad_input_gets_a_sentence():
    with pytest.raises(ValueError, match="C must be a number or 'auto', got 'best'"):
        CLASSIFIER(C="best").fit(spread(X), spread(Y))
    with pytest.raises(ValueError, match="categorical_features must be 'from_dtype', None, a mask"):
        CLASSIFIER(**boost_options(categorical_features="names")).fit(spread(X), spread(Y))
    with pytest.raises(ValueError, match=r"options\.slack must be 'auto' for \w+, got 'example'"):
        CLASSIFIER(**boost_options(slack="example")).fit(spread(X), spread(Y))
    with pytest.raises(ValueError, match="monotonic_cst must be None for more than one score"):
        CLASSIFIER(**boost_options(monotonic_cst=[1, 0, 0, 0, 0, 0])).fit(spread(X), spread(Y))
    with pytest.raises(ValueError, match="y must hold two classes"):
        CLASSIFIER().fit(spread(X), spread(0 * Y))
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        RANKER().fit(spread(X), spread(Y))
    with pytest.raises(ValueError, match="loss must be one of"):
        RANKER(loss="map").fit(spread(X), spread(Y))
    with pytest.raises(TypeError, match="X must be a dask array"):
        RANKER().fit(X, spread(Y))
