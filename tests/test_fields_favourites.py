"""What every variable would choose alone, by one pass and by NumPy's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from setwise.fields._favourites import Favourites
from setwise.fields._field import Field

ENTRIES = st.sampled_from([0.0, -0.0, 1.0, -3.5, 1e9, 1e9 + 1.0, 5e-324, np.inf])
SHAPES = array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=7)


@given(arrays(np.float64, SHAPES, elements=ENTRIES))
def test_one_pass_finds_what_numpy_finds(unary):
    unary[np.isinf(unary).all(axis=1), 0] = 2.0
    found = Favourites.of(unary)
    assert (found.least == unary.min(axis=1)).all()
    assert (found.labels == unary.argmin(axis=1)).all()
    above = (unary - unary.min(axis=1, keepdims=True))[np.isfinite(unary)]
    assert found.largest == above.max()
    grounded = Favourites.of(unary - found.least[:, None])
    for ours, theirs in zip(found.grounded(), grounded, strict=True):
        assert np.array_equal(ours, theirs)


def test_a_field_remembers_them_and_nobody_writes_to_them():
    field = Field([[2.0, 1.0], [0.0, np.inf]])
    assert field._favourites() is field._favourites()
    assert not any(part.flags.writeable for part in field._favourites()[:2])


def test_no_variables():
    least, labels, largest = Favourites.of(np.zeros((0, 3)))
    assert (len(least), len(labels), largest) == (0, 0, 0.0)
