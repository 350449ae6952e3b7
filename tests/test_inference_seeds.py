"""Fields with large finite unaries, as hard seeds: no move is missed, in exact rationals."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setwise import solve_map
from setwise.fields import Field, Potts


def exact_energy(unary, edges, weights, labels):
    energy = sum(Fraction(float(unary[i, x])) for i, x in enumerate(labels))
    cut = [w for (i, j), w in zip(edges, weights, strict=True) if labels[i] != labels[j]]
    return energy + sum(Fraction(float(w)) for w in cut)


@st.composite
def seeded_fields(draw, n_labels):
    n = draw(st.integers(2, 5))
    plain = st.floats(-4, 4).map(lambda x: round(x, 3))
    unary = np.array(draw(st.lists(plain, min_size=n * n_labels, max_size=n * n_labels)))
    unary = unary.reshape(n, n_labels)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, n - 1)), draw(st.integers(0, n_labels - 1))
        unary[at] = draw(st.sampled_from([1e17, -1e17, 1e20, -1e20]))
    edges = [(i, j) for i in range(n) for j in range(i) if draw(st.booleans())]
    weights = [draw(st.floats(0, 4).map(lambda x: round(x, 3))) for _ in edges]
    init = draw(
        st.one_of(st.none(), st.lists(st.integers(0, n_labels - 1), min_size=n, max_size=n))
    )
    return unary, edges, weights, init


@pytest.mark.parametrize(
    ("method", "n_labels"), [("cut", 2), ("expansion", 3), ("swap", 2), ("swap", 3)]
)
@given(data=st.data())
def test_no_move_beside_seeds_is_better(method, n_labels, data):
    unary, edges, weights, init = data.draw(seeded_fields(n_labels))
    field = Field(unary)
    if edges:
        field = field + Potts(np.array(edges), np.array(weights))
    result = solve_map(field, method, init=init)
    x = result.labels
    mine = exact_energy(unary, edges, weights, x)
    paid = mine - sum(Fraction(float(u)) for u in unary.min(axis=1))
    for y in product(range(n_labels), repeat=len(unary)):
        changed = np.flatnonzero(x != y)
        news, olds = {y[i] for i in changed}, {int(x[i]) for i in changed}
        reached = len(news) <= 1 if method == "expansion" else len(news | olds) <= 2
        if method == "cut" or reached:
            assert mine - exact_energy(unary, edges, weights, y) <= Fraction(2) ** -44 * paid
