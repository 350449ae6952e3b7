"""The minimum of SetClassifier is that of clarabel, over every plane of every set."""

import clarabel
import numpy as np
import pytest
import reference
import scipy.sparse as sp

from setwise import SetClassifier
from setwise.surrogates import DecomposedHinge, LovaszHinge, SlackRescaling, get

# Many samples of few features to few of many: every learner, and both in turn.
SHAPES = [(40, 4, 2), (24, 25, 3), (10, 60, 3)]
# With the losses: a modular one, submodular ones, and one that is neither.
SURROGATES = [
    ("hinge", "hamming"),
    ("lovasz", "jaccard"),
    ("margin", "jaccard"),
    ("slack", "jaccard"),
    ("decomposed", "dice"),
]


def draw(n, d, p):
    random = np.random.default_rng(n + d)
    X = random.standard_t(4, size=(n, d))
    return X, X @ random.normal(size=(d, p)) + np.sqrt(d) * random.normal(size=(n, p)) > 0


def planes_in_margins(surrogate, truth):
    """The surrogate of one truth: a sum of maxima of planes, offsets + slopes @ margins."""
    if isinstance(surrogate, DecomposedHinge):
        parts = surrogate.submodular_part, surrogate.supermodular_part
        return [planes for part in parts for planes in planes_in_margins(part, truth)]
    function = surrogate.loss.set_function(truth)
    values = reference.all_values(function)
    if isinstance(surrogate, LovaszHinge):
        return [reference.hinge_planes(values, case=1 if reference.is_increasing(values) else 2)]
    return [reference.rescaling_planes(values, slack=isinstance(surrogate, SlackRescaling))]


def least_objective(X, Y, surrogate, C):
    """min 1/2 |W|^2 + C sum of slacks, each above all planes of its maximum, by clarabel."""
    # Weights in the span of the samples: the same inner products with fewer features.
    X = np.linalg.qr(np.column_stack([X, np.ones(len(X))]).T)[1].T
    slopes, limits, sizes = [], [], []
    for x, truth in zip(X, Y, strict=True):
        for of_margins, offsets in planes_in_margins(surrogate, truth):
            slopes.append(np.kron(of_margins * np.where(truth, 1.0, -1.0), x))
            limits.append(-offsets)
            sizes.append(len(offsets))
    weights, slacks = slopes[0].shape[1], len(sizes)
    own = sp.csc_matrix(np.repeat(-np.eye(slacks), sizes, axis=0))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = 1e-10
    answer = clarabel.DefaultSolver(
        sp.diags(np.append(np.ones(weights), np.zeros(slacks))).tocsc(),
        np.append(np.zeros(weights), np.full(slacks, C)),
        sp.hstack([sp.csc_matrix(np.vstack(slopes)), own]).tocsc(),
        np.concatenate(limits),
        [clarabel.NonnegativeConeT(sum(sizes))],
        settings,
    ).solve()
    assert str(answer.status) == "Solved"
    return answer.obj_val


@pytest.mark.parametrize(("surrogate", "loss"), SURROGATES, ids=[s for s, _ in SURROGATES])
@pytest.mark.parametrize(("n", "d", "p"), SHAPES)
def test_the_minimum_of_an_interior_point_method(n, d, p, surrogate, loss):
    X, Y = draw(n, d, p)
    for C in (0.01, 1.0, 100.0):
        model = SetClassifier(loss, surrogate, C=C, tol=1e-4).fit(X, Y)
        value, bound = model.history_.primal[-1], model.history_.dual[-1]
        least = least_objective(X, Y, get(surrogate, loss), C)
        assert value - bound <= 1e-4 * value + 1e-12
        assert bound <= least * (1 + 1e-7) + 1e-9
        assert value >= least * (1 - 1e-7) - 1e-9
        assert value == pytest.approx(least, rel=1.1e-4)
