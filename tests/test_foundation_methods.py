"""Methods as records: what is made from a registry of them."""

from __future__ import annotations

import pytest

from setwise._foundation._methods import Method, Methods, refused, taken


class Pebble:
    size = 1


class Rock:
    size = 9


class Pile:
    """A field of potentials "p0", "p1", ... with one term each."""

    def __init__(self, *terms):
        self.terms = terms

    def _terms(self):
        return [(f"p{k}", term) for k, term in enumerate(self.terms)]


def few(pile):
    return None if len(pile.terms) <= 2 else f"at most two terms, got {len(pile.terms)}"


METHODS = Methods(
    Method("hand", "by hand", "pebbles", "exact", {Pebble: taken}, few, auto=lambda _: True,
           because="light"),
    Method("never", "no", "anything", "nothing", {Pebble: taken, Rock: taken}, gives_bound=False),
    Method("crane", "by crane", "pebbles, and rocks that are not too heavy for it " * 2,
           "a heap, whose height is known from above and from below to the last digit",
           {Pebble: taken, Rock: refused("its rocks are too heavy")}, auto=lambda _: True,
           because="{hand}"),
)  # fmt: skip


def test_the_sentence_of_refusal():
    assert METHODS["hand"].obstacle(Pile(Pebble())) is None
    assert METHODS["hand"].obstacle(Pile(*[Pebble()] * 3)) == (
        "hand needs at most two terms, got 3"
    )
    assert METHODS["crane"].obstacle(Pile(Pebble(), Rock())) == (
        "crane cannot take 'p1': its rocks are too heavy"
    )
    with pytest.raises(ValueError, match="hand cannot take 'p0': it does not know terms of kind R"):
        METHODS["hand"].check(Pile(Rock()))


def test_auto_takes_the_first_that_fits_and_says_why():
    assert METHODS.choose(Pile(Pebble())) == ("hand", "light")
    assert METHODS.choose(Pile(*[Pebble()] * 3)) == ("crane", "hand needs at most two terms, got 3")
    with pytest.raises(ValueError, match=r"hand cannot .*; crane cannot take 'p0'"):
        METHODS.choose(Pile(Rock()))


def test_names_are_read():
    assert [METHODS.read(name) for name in ("auto", *METHODS)] == ["auto", "hand", "never", "crane"]
    with pytest.raises(ValueError, match="method must be one of 'auto', 'hand', 'never', 'crane'"):
        METHODS.read("foot")
    with pytest.raises(TypeError, match="method must be a string, got int"):
        METHODS.read(3)


def test_the_table_is_put_where_the_docstring_marks_it():
    def lift():
        """Lift.

            [methods]

        The end.
        """

    def stripped():  # as under -OO
        pass

    lines = METHODS.describe(lift).__doc__.split("\n")
    assert METHODS.describe(stripped).__doc__ is None
    start = next(k for k, line in enumerate(lines) if "===" in line)
    rows = METHODS.table()
    indent = lines[start][: lines[start].index("=")]
    assert lines[start : start + len(rows)] == [indent + row for row in rows]
    assert not any("[methods]" in line for line in lines)
    assert "The end." in "".join(lines)
    assert {row.split()[0] for row in rows if not row.startswith((" ", "="))} == {
        "method", *METHODS
    }  # fmt: skip
    assert max(map(len, rows)) <= 92
    assert rows[0] == rows[2] == rows[-1]
    words = " ".join(" ".join(rows).split())
    assert "whose height" in words
    assert words.count("pebbles") == 3


def test_a_method_is_tried_for_a_while():
    record = Method("foot", "by foot", "pebbles", "a kick", {Pebble: taken})
    with METHODS.tried(record):
        assert METHODS.read("foot") == "foot"
        assert list(METHODS) == ["hand", "never", "crane", "foot"]
    with pytest.raises(RuntimeError, match="a sprain"), METHODS.tried(record):
        raise RuntimeError("a sprain")
    with pytest.raises(ValueError, match="method must be one of"):
        METHODS.read("foot")
