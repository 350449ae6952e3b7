"""The master problem of cutting planes: its bound, its pulled optimum, and Ctrl-C in its midst."""

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from strategies import arrays, masks

from setwise.learning import one_slack
from setwise.learning._cutting_planes import _bundle
from setwise.learning._cutting_planes._bundle import Bundle

# What the reference knows its minimum to, and how far the solver stops above that: its weights may
# be off by its own tolerance where planes are parallel.
TOLERANCE, SOLVER = 2e-6, 1e-4
pulls = st.sampled_from([0.0, 1e-3, 1.0, 30.0, 1e4])
prices = st.sampled_from([0.1, 1.0, 10.0])


@st.composite
def models(draw):
    """Slopes (k, d), offsets (k,) and which coordinates may not be negative."""
    k, d = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    slopes = draw(arrays(k * d, -2.0, 2.0)).reshape(k, d)
    return slopes, draw(arrays(k, -2.0, 2.0)), draw(masks(d))


def bundle_of(slopes, offsets, nonnegative):
    bundle = Bundle(slopes.shape[1], np.flatnonzero(nonnegative))
    first = len(offsets) // 2
    bundle.add(slopes[:first], offsets[:first])
    bundle.add(slopes[first:], offsets[first:])
    return bundle


def objective(model, C, w):
    slopes, offsets, _ = model
    return 0.5 * w @ w + C * (offsets + slopes @ w).max()


@given(models(), prices)
def test_the_bound_is_the_least_objective_under_the_planes(model, C):
    slopes, offsets, nonnegative = model
    least = reference.least_objective([(slopes, offsets)], C, np.flatnonzero(nonnegative))
    bound = bundle_of(*model).bound(C).value
    assert bound <= least + TOLERANCE * max(1.0, abs(least))
    assert bound >= least - SOLVER * max(1.0, abs(least))


class Unsettled:
    """A program that takes too many steps: all weight stays on the first plane until it forgets."""

    def __init__(self, program, *, for_good):
        self._program, self._for_good, self.asked, self.forgets = program, for_good, 0, 0

    def forget(self):
        self.forgets += 1
        self._program.forget()

    def solve(self, vectors, cone, g, x, total):
        self.asked += 1
        if self.forgets and not self._for_good:
            return self._program.solve(vectors, cone, g, x, total)
        x[:] = np.arange(len(x)) == cone
        total[:] = vectors[cone]
        return False


@pytest.mark.parametrize("for_good", [False, True])
def test_a_program_that_takes_too_many_steps_is_asked_once_more(for_good):
    """With a new factorisation it finds the optimum; and what it leaves if not is still a bound."""
    draw = np.random.default_rng(0)
    slopes, offsets, none = draw.normal(size=(6, 3)), draw.normal(size=6), np.zeros(3, bool)
    expected = bundle_of(slopes, offsets, none).bound(1.0).value
    bundle = bundle_of(slopes, offsets, none)
    program, pulled = bundle._programs
    bundle._programs = Unsettled(program, for_good=for_good), pulled
    bound = bundle.bound(1.0).value
    assert (bundle._programs[0].asked, bundle._programs[0].forgets) == (2, 1)
    assert bound < expected if for_good else bound == expected


@given(models(), prices, pulls, st.data())
def test_the_pulled_optimum_is_one(model, C, pull, data):
    """No other weights, and no bound for them by duality, are lower."""
    d = model[0].shape[1]
    center = data.draw(arrays(d, -2.0, 2.0))
    center[model[2]] = np.abs(center[model[2]])
    bundle = bundle_of(*model)
    w, height = bundle.near(C, center, pull)
    assert np.all(w[model[2]] >= 0)
    assert height == pytest.approx(objective(model, C, w), rel=1e-12, abs=1e-12)
    assert height >= bundle.bound(C).value - 1e-9 * max(1.0, abs(height))

    def pulled(v):
        return objective(model, C, v) + 0.5 * pull * np.sum((v - center) ** 2)

    slack = SOLVER * max(1.0, abs(pulled(w)))
    for step in (1.0, 1e-2, 1e-4):
        other = w + step * data.draw(arrays(d, -1.0, 1.0))
        other[model[2]] = np.maximum(other[model[2]], 0.0)
        assert pulled(w) <= pulled(other) + slack


@given(models(), prices, pulls, st.data())
def test_the_pulled_optimum_is_that_of_shifted_planes(model, C, pull, data):
    """With s = pull / (1 + pull) center and v = w - s, the pull goes into offsets and C."""
    slopes, offsets, _ = model
    center = data.draw(arrays(slopes.shape[1], -2.0, 2.0))
    w, height = bundle_of(slopes, offsets, np.zeros(slopes.shape[1], bool)).near(C, center, pull)
    shift = pull / (1 + pull) * center
    least = reference.least_objective([(slopes, offsets + slopes @ shift)], C / (1 + pull))
    constant = 0.5 * pull / (1 + pull) * center @ center
    ours = height + 0.5 * pull * np.sum((w - center) ** 2)
    expected = (1 + pull) * least + constant
    assert ours == pytest.approx(expected, rel=SOLVER, abs=SOLVER)


@pytest.mark.parametrize("function", ["_coordinates", "_stacked"])
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_control_c_while_a_plane_is_added(monkeypatch, function, rounds):
    """The bundle has the plane or not, and every plane that is there lies below the risk."""
    target = np.array([3.0, -1.0, 0.5])
    done = []

    def risk(w):
        return float(np.abs(w - target).sum()), np.sign(w - target)

    plain = getattr(_bundle, function)

    def interrupted(*args):
        if len(done) == rounds:
            raise KeyboardInterrupt
        return plain(*args)

    with monkeypatch.context() as patch:
        patch.setattr(_bundle, function, interrupted)
        fit = one_slack(risk, 3, C=2.0, tol=0.0, callback=done.append)
    assert fit.interrupted
    assert fit.n_iter == rounds
    assert len(fit.planes.slopes) == len(fit.planes.offsets) == rounds + 1
    for w in (fit.w, target, np.zeros(3)):
        assert np.all(fit.planes.offsets + fit.planes.slopes @ w <= risk(w)[0] + 1e-9)
    assert one_slack(risk, 3, C=2.0, init=fit).converged


@pytest.mark.parametrize("seed", range(20))
def test_planes_that_nearly_cancel(seed):
    """C |a| is 1e4 where |w| is about 1: what is left of the sum is below the ridge's own size."""
    rng = np.random.default_rng(seed)
    d, k, C, scale = 5, 12, 100.0, 100.0
    slopes, offsets = scale * rng.normal(size=(k, d)), scale * rng.random(k)
    slopes, offsets = np.vstack([slopes, np.zeros(d)]), np.append(offsets, 0.0)
    bundle = Bundle(d, np.array([3, 4]))
    bundle.add(slopes, offsets)
    # Without 1/2 |w|^2, which is next to nothing here, this is a linear program.
    program = linprog(
        np.append(np.zeros(d), C),
        np.hstack([slopes, -np.ones((k + 1, 1))]),
        -offsets,
        bounds=[(None, None)] * 3 + [(0, None)] * 2 + [(None, None)],
    )
    w = program.x[:d]
    most = program.fun + 0.5 * w @ w
    assert bundle.bound(C).value <= most * (1 + 1e-9) + 1e-6
    assert bundle.bound(C).value >= program.fun - 1e-4 * max(1.0, program.fun)
