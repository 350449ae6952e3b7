"""One certificate: what value, bound, gap, relative gap and exact say, over every result."""

import re
from dataclasses import is_dataclass
from math import inf
from pathlib import Path

import numpy as np
import pytest
from public_api import interface

import setwise as sw
from setwise._foundation._certificate import Certificate, Measured, gap_over_value, relative_gap
from setwise._foundation._progress import Progress, stops
from setwise.learning import StumpSearch, one_slack, struct_boost

rng = np.random.default_rng(0)
EDGES = sw.fields.grid_edges((3, 4))
FIELD = sw.fields.Field(rng.normal(size=(12, 3))) + sw.fields.Potts(EDGES, 0.4)
PAIR = sw.fields.Field(rng.normal(size=(12, 2))) + sw.fields.Potts(EDGES, 0.4)
CUT = sw.functions.Cut(EDGES, rng.random(len(EDGES)), n=12) + sw.functions.Modular(
    rng.normal(size=12)
)
COVER = sw.functions.Coverage([[0, 1], [1, 2, 3], [3], [0, 4]])
ROWS, SIGNS = rng.normal(size=(20, 3)), rng.choice([-1.0, 1.0], 20)


def hinges(w):
    margins = 1 - SIGNS * (ROWS @ w)
    return np.maximum(margins, 0).mean(), -(SIGNS * (margins > 0)) @ ROWS / 20


class Hinge:
    offsets = np.array([0, 20])

    def __call__(self, f):
        margins = 1 - SIGNS * f
        return np.maximum(margins, 0).mean(), -(SIGNS * (margins > 0)) / 20


def fitted(tol, callback=None):
    return one_slack(hinges, 3, tol=tol, callback=callback)


def boosted(tol, callback=None):
    return struct_boost(Hinge(), StumpSearch(ROWS), C=9.0, tol=tol, callback=callback)


# By name: a search with a tolerance and a callback.
SEARCHES = {
    "minimize": lambda tol, call=None: sw.functions.minimize(CUT, tol=tol, callback=call),
    "cut": lambda tol, call=None: sw.solve_map(PAIR, "cut", tol=tol, callback=call),
    "messages": lambda tol, call=None: sw.solve_map(FIELD, "messages", tol=tol, callback=call),
    "convex": lambda tol, call=None: sw.solve_map(FIELD, "convex", tol=tol, callback=call),
    "projection": lambda tol, call=None: sw.marginals(FIELD, "projection", tol=tol, callback=call),
    "frank_wolfe": lambda tol, call=None: sw.marginals(
        FIELD, "frank_wolfe", tol=tol, callback=call
    ),
    "mean_field": lambda tol, call=None: sw.marginals(FIELD, "mean_field", tol=tol, callback=call),
    "one_slack": fitted,
    "struct_boost": boosted,
}
RESULTS = SEARCHES | {
    "maximize": lambda tol: sw.functions.maximize(COVER, 2),
    "expansion": lambda tol: sw.solve_map(FIELD, "expansion", tol=tol),
}


@pytest.mark.parametrize("tol", [0.5, 1e-2, 1e-4])
@pytest.mark.parametrize("name", RESULTS)
def test_every_result_is_a_certificate(name, tol):
    found = RESULTS[name](tol)
    assert isinstance(found, Certificate)
    assert found.gap >= 0.0
    assert found.gap == inf or found.gap == pytest.approx(abs(found.value - found.bound), abs=1e-12)
    assert 0.0 <= found.relative_gap <= 1.0 or found.relative_gap == found.gap == inf
    if name not in ("mean_field", "expansion", "maximize"):
        assert (found.relative_gap <= tol) == found.converged
    if isinstance(found, Measured):
        off, gap_scale, rounding = found._measures()
        assert off <= found.gap + 1e-12
        assert found.relative_gap == relative_gap(off, gap_scale, rounding)
        assert found.exact == (found.certified and off <= rounding)
    if getattr(found, "exact", False):
        assert found.relative_gap <= 1e-9


@pytest.mark.parametrize("name", SEARCHES)
def test_every_search_tells_one_record(name):
    told = []
    found = SEARCHES[name](1e-3, told.append)
    assert told
    assert [now.n_iter for now in told] == sorted({now.n_iter for now in told})
    for now in told:
        assert isinstance(now, Certificate)
        assert now.gap >= 0.0
        assert 0.0 <= now.relative_gap <= 1.0 or now.relative_gap == now.gap == inf
    if isinstance(told[0], Progress):
        seconds = [now.seconds for now in told]
        assert seconds == sorted(seconds)
        assert seconds[0] >= 0.0
    if name in ("cut", "messages", "convex", "projection", "one_slack", "struct_boost"):
        # nothing that was told on the way is denied at the end
        assert max(now.bound for now in told) <= found.bound + 1e-9
        assert found.value <= min(now.value for now in told) + 1e-9


@pytest.mark.parametrize("answer", [True, 1, "enough", [0], np.True_])
@pytest.mark.parametrize("name", SEARCHES)
def test_any_true_answer_ends_a_search(name, answer):
    told = []
    SEARCHES[name](0.0, lambda now: told.append(now) or answer)
    assert len(told) == 1


@pytest.mark.parametrize("answer", [None, False, 0, "", [], np.False_])
def test_any_other_answer_does_not(answer):
    assert stops(lambda now: answer, None) is False
    assert stops(None, None) is False
    with pytest.raises(ValueError, match="ambiguous"):
        stops(lambda now: np.ones(2), None)


def test_a_list_and_a_grid_tell_it_too():
    told = []
    pair = sw.diverse(PAIR, 3, sw.diversities.DivMBest(0.5), callback=told.append)
    assert [now.n_iter for now in told] == [now.n_items for now in told] == [1, 2, 3]
    assert np.array_equal([now.bound for now in told], pair.bounds)
    assert np.array_equal([now.relative_gap for now in told], pair.relative_gaps)
    assert np.array_equal([now.gap for now in told], pair.gaps)
    told = []
    grid = {"weight": [0.1, 0.5]}
    sw.inference.tune_diversity(
        [PAIR], [pair.labelings[0]], sw.diversities.DivMBest, grid, m=2, callback=told.append
    )
    assert [(now.n_iter, now.value) for now in told] == [(now.n_done, now.score) for now in told]
    assert all(now.gap == now.relative_gap == inf for now in told)


@pytest.mark.parametrize(
    ("gap", "gap_scale", "rounding", "share"),
    [
        (0.0, 0.0, 0.0, 0.0),
        (1.0, 4.0, 0.0, 0.25),
        (4.0, 1.0, 0.0, 1.0),  # no share is above 1, however small the gap_scale
        (1.0, 4.0, 1.0, 0.0),
        (inf, 4.0, 0.0, inf),
        (inf, inf, 0.0, inf),
        (1.0, inf, 0.0, 0.0),
    ],
)
def test_the_share_that_is_left(gap, gap_scale, rounding, share):
    assert relative_gap(gap, gap_scale, rounding) == share


def test_a_gap_beside_the_size_of_a_value():
    assert gap_over_value(1.0, -4.0) == gap_over_value(1.0, 4.0, 2.0) == 0.25
    assert gap_over_value(1.0, 0.5) == 1.0  # no value is smaller than the unit
    assert gap_over_value(inf, 4.0) == inf


WORDS = [
    *("value", "bound", "gap", "relative_gap", "exact"),
    *("certified", "converged", "interrupted", "reason", "timings"),
]


def members(cls: type) -> set[str]:
    """The fields and properties of a record."""
    return {*dir(cls), *getattr(cls, "__annotations__", {})}


def test_the_page_tells_which_result_has_which_words():
    """The table holds of the classes, and no record with two words or more is left out."""
    page = Path(__file__).parents[1].joinpath("docs/guide/certificates.md").read_text()
    head, table = page.split("## Which result has which words")[1].split("| --- ", 1)
    assert re.findall(r"`(\w+)`", head) == WORDS
    known = {cls.__name__: cls for _, cls in interface() if isinstance(cls, type)}
    told = {}
    for line in table.split("\n\n")[0].splitlines()[1:]:
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        cls = known[name.strip("`")]
        told[cls] = cells
        for word, cell in zip(WORDS, cells, strict=True):
            assert (word in members(cls)) == (cell == "yes"), (name, word)
            assert cell in ("yes", "–") or cell.strip("`") in members(cls), (name, cell)
    for name, cls in interface():
        is_record = isinstance(cls, type) and (is_dataclass(cls) or hasattr(cls, "_fields"))
        if is_record and not issubclass(cls, Progress):
            assert cls in told or len(members(cls) & set(WORDS)) < 2, name
