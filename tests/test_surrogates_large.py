"""Compiled kernels at sizes that matter, against plain NumPy; special values; float32."""

import warnings

import numpy as np
import pytest

from setwise import _core, functions, losses
from setwise.surrogates import DecomposedHinge, LovaszHinge, MarginRescaling, SlackRescaling

# -------------------------------------------------------------------------------------- plain NumPy


def margins_of(positive, scores):
    return np.where(positive, scores, -scores).astype(np.float64)


def by_margin(margins):
    """Increasing margins; -0.0 before 0.0, and equal ones in the order of their indices."""
    return np.lexsort((np.arange(len(margins)), ~np.signbit(margins), margins))


def plain_hinge(positive, scores, formula, case):
    """Definition 6 by a sort and differences of l along the chain, in extended precision."""
    margins = margins_of(positive, scores)
    order = by_margin(margins)
    hits = positive[order]
    n = np.cumsum(hits).astype(np.longdouble)
    chain = formula(n, np.arange(1, len(order) + 1) - n)
    gains = np.diff(chain, prepend=np.longdouble(0))
    s = 1 - margins[order].astype(np.longdouble)
    if case == 1:
        s, gains = np.maximum(s, 0), np.where(s > 0, gains, 0)
    value = float(s @ gains)
    if case == 2 and value <= 0:
        value, gains = 0.0, np.zeros_like(gains)
    gradient = np.empty(len(order))
    gradient[order] = np.where(hits, -gains, gains)
    return value, gradient


def plain_rescaling(positive, scores, formula, *, slack):
    """Every pair of counts at once, n down and q across: the best n and q smallest margins."""
    margins = margins_of(positive, scores)
    sums = [np.cumsum([0.0, *np.sort(margins[side])]) for side in (positive, ~positive)]
    n, q = (np.arange(len(side), dtype=float) for side in sums)
    total = 2 * (sums[0][:, None] + sums[1][None, :])
    loss = formula(n[:, None], q[None, :])
    objective = loss * (1 - total) if slack else loss - total
    return objective.max()


def jaccard(m):
    return lambda n, q: (n + q) / (m + q)


def f_beta(beta, m):
    b = beta * beta
    return lambda n, q: (b * n + q) / ((1 + b) * m - n + q)


def f_of_dice(m):
    """l(n, q) - G(n), the submodular part, with G(n) = l(n, 0) - n l(1, 0)."""
    dice = f_beta(1, m)
    return lambda n, q: dice(n, q) - (dice(n, 0) - n * dice(1, 0))


def drawn(p, seed=0, positives=0.3, quality=0.7, dtype=np.float64):
    """Labels, and scores that are right more often than not."""
    rng = np.random.default_rng(seed)
    positive = rng.random(p) < positives
    scores = quality * np.where(positive, 1.0, -1.0) + rng.normal(size=p)
    return positive, scores.astype(dtype)


# --------------------------------------------------------------------------------- the Lovász hinge

# Gains are near 1 / p: in extended precision their differences keep more than ten digits at 1e5.
CLOSE = {"rtol": 1e-9, "atol": 1e-15}


def assert_same(got, expected):
    assert got[0] == pytest.approx(expected[0], rel=1e-11)
    np.testing.assert_allclose(got[1], expected[1], **CLOSE)


@pytest.mark.parametrize("case", [1, 2])
@pytest.mark.parametrize("p", [1000, 100_000])
def test_jaccard(p, case):
    positive, scores = drawn(p)
    got = LovaszHinge("jaccard", case=case).value_and_gradient(positive, scores)
    assert_same(got, plain_hinge(positive, scores, jaccard(positive.sum()), case))


def test_jaccard_without_positives():
    positive, scores = drawn(100_000, positives=0.0)
    got = LovaszHinge("jaccard").value_and_gradient(positive, scores)
    assert_same(got, plain_hinge(positive, scores, lambda n, q: np.minimum(q, 1), 1))
    assert np.count_nonzero(got[1]) == 1


def test_the_submodular_part_of_dice():
    """Case 2: at this size the part falls somewhere."""
    positive, scores = drawn(100_000)
    half = DecomposedHinge("dice").submodular_part
    expected = plain_hinge(positive, scores, f_of_dice(positive.sum()), 2)
    got = half.value_and_gradient(positive, scores)
    assert got[0] == pytest.approx(expected[0], rel=1e-11)
    # A difference of two steps that nearly cancel: as good as the steps, which are near 1 / p.
    np.testing.assert_allclose(got[1], expected[1], rtol=1e-9, atol=1e-17 * len(scores))


def test_dice_is_its_two_parts():
    """B_D: the hinge of f, and a scan of G over the positives with every wrong negative added."""
    positive, scores = drawn(100_000)
    margins = margins_of(positive, scores)
    m = int(positive.sum())
    n = np.arange(m + 1.0)
    dice = f_beta(1, m)
    convex = dice(n, 0) - n * dice(1, 0)
    wrong = np.minimum(margins[~positive], 0.0).sum()
    sums = np.cumsum([0.0, *np.sort(margins[positive])]) + wrong
    slack = (convex * (1 - 2 * sums)).max()
    hinge = plain_hinge(positive, scores, f_of_dice(m), 2)[0]
    assert DecomposedHinge("dice")(positive, scores) == pytest.approx(hinge + slack, rel=1e-11)


def root(k, p):
    return np.sqrt(k / p)


def test_losses_of_the_size():
    p = 100_000
    positive, scores = drawn(p)
    got = LovaszHinge(losses.CardinalityLoss(root)).value_and_gradient(positive, scores)
    expected = plain_hinge(positive, scores, lambda n, q: np.sqrt((n + q) / p), 1)
    assert got[0] == pytest.approx(expected[0], rel=1e-11)
    # A table in double precision: gains near 1e-6 are differences of values near 1.
    np.testing.assert_allclose(got[1], expected[1], rtol=1e-9, atol=1e-15)


def roots(n, q, m, r):
    return np.sqrt(n) + np.sqrt(q)


def test_losses_of_counts_by_their_table():
    positive, scores = drawn(3000)
    got = LovaszHinge(losses.CountsLoss(roots)).value_and_gradient(positive, scores)
    expected = plain_hinge(positive, scores, lambda n, q: np.sqrt(n) + np.sqrt(q), 1)
    assert got[0] == pytest.approx(expected[0], rel=1e-11)
    np.testing.assert_allclose(got[1], expected[1], rtol=1e-9, atol=1e-13)


def test_losses_of_counts_beyond_a_table():
    positive, scores = drawn(100_000)
    got = LovaszHinge(losses.CountsLoss(roots), case=1).value_and_gradient(positive, scores)
    expected = plain_hinge(positive, scores, lambda n, q: np.sqrt(n) + np.sqrt(q), 1)
    assert got[0] == pytest.approx(expected[0], rel=1e-11)
    np.testing.assert_allclose(got[1], expected[1], rtol=1e-9, atol=1e-12)


def test_concave_of_a_sum():
    positive, scores = drawn(100_000)
    weights = np.random.default_rng(1).random(len(scores))
    got = LovaszHinge(losses.ConcaveLoss(np.sqrt, weights)).value_and_gradient(positive, scores)
    margins = margins_of(positive, scores)
    order = by_margin(margins)
    gains = np.diff(np.sqrt(np.cumsum(weights[order].astype(np.longdouble))), prepend=0)
    s = np.maximum(1 - margins[order], 0)
    assert got[0] == pytest.approx(float(s @ gains), rel=1e-11)
    gradient = np.empty(len(order))
    gradient[order] = np.where(positive[order], -gains, gains) * (s > 0)
    # Values near 200 in double precision.
    np.testing.assert_allclose(got[1], gradient, rtol=1e-9, atol=1e-12)


def test_hamming():
    positive, scores = drawn(100_000)
    weights = np.random.default_rng(1).random(len(scores))
    s = np.maximum(1 - margins_of(positive, scores), 0)
    got = LovaszHinge(losses.Hamming(weights)).value_and_gradient(positive, scores)
    assert got[0] == pytest.approx(s @ weights, rel=1e-11)
    np.testing.assert_array_equal(got[1], np.where(positive, -weights, weights) * (s > 0))


def test_ten_thousand_rows_of_twenty():
    rng = np.random.default_rng(0)
    y, scores = rng.random((10_000, 20)) < 0.3, rng.normal(size=(10_000, 20))
    for surrogate in (LovaszHinge("jaccard"), DecomposedHinge("dice"), SlackRescaling("dice")):
        values, gradients = surrogate.value_and_gradient(y, scores)
        for i in range(0, 10_000, 499):
            value, gradient = surrogate.value_and_gradient(y[i], scores[i])
            assert values[i] == value
            np.testing.assert_array_equal(gradients[i], gradient)


# ------------------------------------------------------------------------------------------ float32


@pytest.mark.parametrize("surrogate", [LovaszHinge("jaccard"), DecomposedHinge("dice")])
def test_float32_gradients_at_a_million(surrogate):
    """Within 1e-5 (median, relative) of float64: the usual code is 2 % off."""
    positive, scores = drawn(1_000_000, dtype=np.float32)
    value, gradient = surrogate.value_and_gradient(positive, scores)
    exact, slopes = surrogate.value_and_gradient(positive, scores.astype(np.float64))
    assert gradient.dtype == np.float32
    moved = slopes != 0
    assert np.count_nonzero(moved) > 100_000
    errors = np.abs(gradient[moved] / slopes[moved] - 1)
    assert np.median(errors) < 1e-5
    # Beyond the figure: every entry is its double rounded to float32, twice for B_D.
    assert errors.max() < 1e-5
    assert value == pytest.approx(exact, rel=1e-9)


def test_float64_gradients_of_jaccard_at_a_million_are_exact_to_rounding():
    positive, scores = drawn(1_000_000)
    _, gradient = LovaszHinge("jaccard").value_and_gradient(positive, scores)
    margins = margins_of(positive, scores)
    order = by_margin(margins)
    order = order[margins[order] < 1]
    hits = positive[order]
    m, n = int(positive.sum()), np.cumsum(hits) - hits
    q = np.arange(len(order)) - n
    # A false negative more adds 1 / (m + q), a false positive (m - n) / ((m + q) (m + q + 1)).
    gains = np.where(hits, 1 / (m + q), (m - n) / ((m + q) * (m + q + 1.0)))
    np.testing.assert_allclose(np.abs(gradient[order]), gains, rtol=1e-14)
    assert np.count_nonzero(gradient) == len(order)


# --------------------------------------------------------------------------------------- rescalings

SCANNED = {
    "jaccard": (losses.Jaccard(), jaccard),
    "dice": (losses.Dice(), lambda m: f_beta(1, m)),
    "f-2": (losses.FBeta(2.0), lambda m: f_beta(2, m)),
    "f-1/2": (losses.FBeta(0.5), lambda m: f_beta(0.5, m)),
}


@pytest.mark.parametrize("slack", [False, True], ids=["margin", "slack"])
@pytest.mark.parametrize("name", SCANNED)
@pytest.mark.parametrize("p", [40, 400, 3000])
def test_binary_search_finds_the_best_of_all_counts(name, slack, p):
    loss, formula = SCANNED[name]
    surrogate = SlackRescaling(loss) if slack else MarginRescaling(loss)
    for seed, positives in enumerate([0.02, 0.3, 0.95]):
        # Small scores: as many mistakes as the loss is worth are a matter of balance.
        positive, scores = drawn(p, seed=seed, positives=positives, quality=0.2)
        positive[0] = True
        for scale in (1.0, 0.1, 1 / p):
            value, gradient = surrogate.value_and_gradient(positive, scale * scores)
            best = plain_rescaling(
                positive, scale * scores, formula(int(positive.sum())), slack=slack
            )
            assert value == pytest.approx(best, rel=1e-11)
            assert_attained(loss, positive, scale * scores, value, gradient, slack)


def assert_attained(loss, positive, scores, value, gradient, slack):
    """The gradient belongs to a set of mistakes whose objective is the value."""
    chosen = gradient != 0
    cost = loss(positive, positive ^ chosen)
    total = 2 * margins_of(positive, scores)[chosen].sum()
    assert value == pytest.approx(cost * (1 - total) if slack else cost - total, rel=1e-11)
    slope = -2 * cost if slack else -2.0
    signs = np.where(positive, 1.0, -1.0)
    np.testing.assert_allclose(gradient[chosen], slope * signs[chosen], rtol=1e-12)


@pytest.mark.parametrize("slack", [False, True], ids=["margin", "slack"])
def test_binary_search_at_a_hundred_thousand(slack):
    rng = np.random.default_rng(0)
    positive = np.zeros(100_000, bool)
    positive[rng.choice(len(positive), 60, replace=False)] = True
    scores = np.where(positive, 1e-5, -1e-5) + 1e-5 * rng.normal(size=len(positive))
    surrogate = SlackRescaling("jaccard") if slack else MarginRescaling("jaccard")
    value, gradient = surrogate.value_and_gradient(positive, scores)
    best = plain_rescaling(positive, scores, jaccard(60), slack=slack)
    assert value == pytest.approx(best, rel=1e-10)
    assert_attained(losses.Jaccard(), positive, scores, value, gradient, slack)


@pytest.mark.parametrize("slack", [False, True], ids=["margin", "slack"])
def test_losses_of_the_size_by_one_scan(slack):
    p = 100_000
    positive, scores = drawn(p, quality=0.2)
    scores = scores * 1e-3
    loss = losses.FaceTrack(1)
    surrogate = SlackRescaling(loss) if slack else MarginRescaling(loss)
    value, gradient = surrogate.value_and_gradient(positive, scores)
    total = 2 * np.cumsum([0.0, *np.sort(margins_of(positive, scores))])
    k, t = np.arange(p + 1.0), p / 3
    cost = np.maximum(np.minimum(k, t), k - t) / t
    assert value == pytest.approx((cost * (1 - total) if slack else cost - total).max(), rel=1e-11)
    assert_attained(loss, positive, scores, value, gradient, slack)


@pytest.mark.parametrize("slack", [False, True], ids=["margin", "slack"])
def test_any_loss_of_counts_by_the_whole_grid(slack):
    loss = losses.CountsLoss(roots)
    positive, scores = drawn(400, quality=0.2)
    scores = scores * 0.1
    surrogate = SlackRescaling(loss) if slack else MarginRescaling(loss)
    value, gradient = surrogate.value_and_gradient(positive, scores)
    formula = lambda n, q: np.sqrt(n) + np.sqrt(q)  # noqa: E731
    best = plain_rescaling(positive, scores, formula, slack=slack)
    assert value == pytest.approx(best, rel=1e-11)
    assert_attained(loss, positive, scores, value, gradient, slack)


def test_early_detection_by_dynamic_programming():
    """best[k]: the most that k mistakes among the first i elements can give; O(p^2) NumPy."""
    p = 300
    positive, scores = drawn(p, quality=0.2)
    scores = scores * 0.05
    loss = losses.EarlyDetection(0.02, 0.3)
    value, gradient = MarginRescaling(loss).value_and_gradient(positive, scores)
    k = np.arange(p + 1.0)
    best = np.where(k == 0, 0.0, -np.inf)
    for i, margin in enumerate(margins_of(positive, scores), start=1):
        best[1:] = np.maximum(best[1:], best[:-1] - 2 * margin)
        best += np.exp(-0.02 * i) * np.minimum(k, 0.3 * i)
    assert value == pytest.approx(best.max(), rel=1e-11)
    assert_attained(loss, positive, scores, value, gradient, slack=False)


# -------------------------------------------------------------------- decompositions at large sizes


@pytest.mark.parametrize("p", [120, 1200, 12_000, 120_000])
def test_face_tracks_of_any_length(p):
    """(33) and (34): g = max(0, k - 2t) / t with t a third or a quarter of the track.

    f is min(k, t) / t, which increases (case 1), less max(0, k - 3t) / t for (34), which ends at 0
    and is not negative: no warning.
    """
    positive, scores = drawn(p, quality=0.2)
    margins = margins_of(positive, scores)
    k = np.arange(p + 1.0)
    total = 2 * np.cumsum([0.0, *np.sort(margins)])
    for kind, t in ((1, p / 3), (2, p / 4)):
        g = np.maximum(0, k - 2 * t) / t
        slack = (g * (1 - total)).max()

        def f(n, q, kind=kind, t=t):
            falls = np.maximum(0, n + q - 3 * t) if kind == 2 else 0
            return (np.minimum(n + q, t) - falls) / t

        hinge = plain_hinge(positive, scores, f, kind)[0]
        surrogate = DecomposedHinge(losses.FaceTrack(kind))
        assert surrogate(positive, scores) == pytest.approx(hinge + slack, rel=1e-9)
        assert surrogate.properties(positive).is_extension is True


# ----------------------------------------------------------------------------------- special values

# The sizes at which the sort changes its method, and their neighbours.
SIZES = [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 200, 1023, 1024, 1025, 4097, 20_000]


def collapsed(rng, p):
    """Doubles that are one number in float32."""
    return 0.5 + 1e-12 * rng.permutation(p)


def runs(rng, p):
    """Many short runs of doubles with the same float32, interleaved."""
    return rng.integers(-3, 3, size=p) / 4 + 1e-13 * rng.integers(-p, p, size=p)


def neighbors(rng, p):
    """Doubles one unit apart around a number where float32 rounds up and down."""
    half = 1.0 + 2.0**-24
    return half + np.finfo(float).eps * rng.integers(-4, 5, size=p)


def tiny(rng, p):
    """Denormal doubles and zeros of both signs: all of them are zero in float32."""
    return rng.integers(-5, 6, size=p) * 5e-324 * rng.choice([1, 2**40], size=p)


SPECIAL = {
    "ties": lambda rng, p: rng.integers(-2, 3, size=p) / 2,
    "all equal": lambda rng, p: np.full(p, 0.25),
    "all right": lambda rng, p: np.full(p, 1.0),
    "zeros of both signs": lambda rng, p: rng.choice([0.0, -0.0], size=p),
    "huge": lambda rng, p: rng.choice([1e300, -1e300, 1e299, 3.5e38, 3.3e38, 1.0], size=p),
    "huge and close": lambda rng, p: 1e300 * (1 + 1e-15 * rng.permutation(p)) / p,
    "denormal": tiny,
    "denormal in float32": lambda rng, p: 1e-45 * rng.integers(-9, 10, size=p),
    "one number in float32": collapsed,
    "runs": runs,
    "neighbours": neighbors,
    "sorted": lambda rng, p: np.linspace(-1, 1, p),
    "reversed": lambda rng, p: np.linspace(1, -1, p),
    "outside the key's range": lambda rng, p: rng.normal(size=p) * 10.0 ** rng.integers(-60, 60, p),
}

special = pytest.mark.parametrize("draw", SPECIAL.values(), ids=SPECIAL.keys())


@special
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_order_is_that_of_the_margins(draw, dtype):
    for p in SIZES:
        rng = np.random.default_rng(p)
        positive = rng.random(p) < 0.5
        with np.errstate(over="ignore", under="ignore"):
            scores = draw(rng, p).astype(dtype)
        scores[~np.isfinite(scores)] = np.finfo(dtype).max
        scores = np.where(rng.random(p) < 0.2, -scores, scores)
        order, chains = np.empty(p, np.int64), np.empty(2, np.int64)
        _core.order_rows(
            positive.view(np.uint8),
            scores,
            np.array([0, p]),
            np.zeros(1, np.uint8),
            order,
            chains,
        )
        assert chains.tolist() == [0, p]
        np.testing.assert_array_equal(order, by_margin(margins_of(positive, scores)))


@special
def test_surrogates_at_special_values(draw):
    """Jaccard's gains differ from place to place: the gradient shows the order that was used."""
    for p in (33, 65, 2000):
        rng = np.random.default_rng(p)
        positive = rng.random(p) < 0.5
        positive[0] = True
        scores = draw(rng, p)
        m = int(positive.sum())
        for case in (1, 2):
            got = LovaszHinge("jaccard", case=case).value_and_gradient(positive, scores)
            expected = plain_hinge(positive, scores, jaccard(m), case)
            assert got[0] == pytest.approx(expected[0], rel=1e-11, abs=1e-11)
            np.testing.assert_allclose(got[1], expected[1], rtol=1e-9, atol=1e-14)
        for slack, surrogate in ((False, MarginRescaling), (True, SlackRescaling)):
            value, gradient = surrogate("jaccard").value_and_gradient(positive, scores)
            best = plain_rescaling(positive, scores, jaccard(m), slack=slack)
            assert value == pytest.approx(best, rel=1e-11)
            assert np.isfinite(gradient).all()


@pytest.mark.parametrize(
    "surrogate",
    [
        LovaszHinge("jaccard"),
        LovaszHinge("hamming"),
        LovaszHinge("early_detection"),
        MarginRescaling("jaccard"),
        MarginRescaling("hamming"),
        MarginRescaling("early_detection"),
        SlackRescaling("jaccard"),
        SlackRescaling("hamming"),
        SlackRescaling("truncated_modular"),
        DecomposedHinge("dice"),
        DecomposedHinge("face_track_1"),
    ],
    ids=repr,
)
def test_far_scores_stay_finite(surrogate):
    """1e300 of both signs: large values, no infinity and no NaN."""
    rng = np.random.default_rng(0)
    y = rng.random((50, 9)) < 0.5
    scores = rng.choice([1e300, -1e300, 1.0, 0.0], size=y.shape)
    values, gradients = surrogate.value_and_gradient(y, scores)
    assert np.isfinite(values).all()
    assert np.isfinite(gradients).all()
    right = np.where(y, 1e300, -1e300)
    assert not surrogate(y, right).any()


@pytest.mark.parametrize("surrogate", [SlackRescaling, MarginRescaling])
def test_the_largest_numbers_are_no_nan(surrogate):
    """Sums of the largest doubles overflow; what is right by that much still costs nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy says that sums overflow
        for loss in ("truncated_modular", "jaccard", "face_track_1", "hamming", "face_track_3"):
            value = surrogate(loss)([1, 1, -1], [1e308, 1e308, -1e308])
            assert value == 0.0
        # A set that costs nothing, times an infinite factor, costs nothing.
        free = losses.SetLoss(functions.Table([0.0, 0.0, 1.0, 1.0]))
        assert surrogate(free)([1, 1], [1e308, 1e308]) == 0.0
