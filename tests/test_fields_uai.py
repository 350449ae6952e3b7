"""Model files: what is read is the product of the factors, what is written is read again."""

import gzip
import math
import tracemalloc
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import reference
from field_registry import FIELDS, of_seed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setwise import fields

Factor = tuple[list[int], list[float]]


def text_of(cards: list[int], factors: list[Factor], kind: str = "MARKOV") -> str:
    lines = [kind, str(len(cards)), " ".join(map(str, cards)), str(len(factors))]
    lines += [" ".join(map(str, [len(scope), *scope])) for scope, _ in factors]
    lines += [f"{len(table)}\n {' '.join(map(repr, table))}" for _, table in factors]
    return "\n".join(lines)


def plain_energy(cards: list[int], factors: list[Factor], x: tuple[int, ...]) -> float:
    """Minus the logarithms of the entries, found by counting with the last variable fastest."""
    total = 0.0
    for scope, table in factors:
        labelings = list(product(*(range(cards[v]) for v in scope)))
        value = table[labelings.index(tuple(x[v] for v in scope))]
        total += math.inf if value == 0 else -math.log(value)
    return total


@pytest.fixture
def read(tmp_path: Path):
    def read_text(text: str | bytes, name: str = "model.uai") -> fields.Field:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return fields.read_uai(path)

    return read_text


def agrees(field: fields.Field, cards: list[int], factors: list[Factor]) -> None:
    assert (field.n_variables, field.n_labels) == (len(cards), max(cards))
    for x in product(range(max(cards)), repeat=len(cards)):
        inside = all(label < card for label, card in zip(x, cards, strict=True))
        expected = plain_energy(cards, factors, x) if inside else math.inf
        assert field.energy(list(x)) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@st.composite
def models(draw: st.DrawFn) -> tuple[list[int], list[Factor]]:
    cards = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    values = st.floats(1e-3, 1e3)
    factors: list[Factor] = []
    for _ in range(draw(st.integers(0, 6))):
        most = len(cards)
        size = draw(st.integers(0, most))
        scope = draw(st.permutations(range(len(cards))))[:size]
        length = math.prod(cards[v] for v in scope)
        factors.append((scope, draw(st.lists(values, min_size=length, max_size=length))))
    return cards, factors


SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@SHARED
@given(models(), st.sampled_from(["MARKOV", "bayes"]))
def test_energy_is_minus_the_logarithm_of_the_product(read, model, kind: str) -> None:
    agrees(read(text_of(*model, kind)), *model)


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "no-variables"])
def test_what_is_written_is_read_again(name: str, tmp_path: Path) -> None:
    field, path = of_seed(name, 1), tmp_path / "model.uai"
    n, n_labels = field.n_variables, field.n_labels
    kinds = (fields.Potts, fields.Pairwise, fields.CliquePotential)
    kinds += (fields.TruncatedLinear, fields.TruncatedQuadratic)
    if any(not isinstance(p, kinds) and p.terms(n, n_labels) for p in field.potentials):
        with pytest.raises(ValueError, match="Pairwise and clique potentials only, got"):
            fields.write_uai(field, path)
        assert not path.exists()
        return
    fields.write_uai(field, path)
    labelings = reference.all_labelings(n, n_labels)
    again = fields.read_uai(path)
    np.testing.assert_allclose(
        again.energy(labelings), field.energy(labelings), rtol=1e-12, atol=1e-11
    )
    assert again.is_submodular == field.is_submodular


def test_large_energies_are_written_as_several_factors(tmp_path: Path) -> None:
    field = fields.Field([[0.0, 5000.0], [-3000.0, np.inf], [1.0, 2.0]])
    field += fields.Potts([[0, 2]], 1500.0)
    fields.write_uai(field, tmp_path / "model.uai.gz")
    again = fields.read_uai(tmp_path / "model.uai.gz")
    labelings = reference.all_labelings(3, 2)
    np.testing.assert_allclose(again.energy(labelings), field.energy(labelings), rtol=1e-12)
    with pytest.raises(ValueError, match=r"within 70000 of 0.*got 80000"):
        fields.write_uai(field.with_unary([[0.0, 8e4], [0.0, 0.0], [0.0, 0.0]]), tmp_path / "x")


def test_forbidden_last_labels_are_fewer_labels(tmp_path: Path) -> None:
    path = tmp_path / "model.uai"
    field = fields.Field([[0.0, np.inf, np.inf], [1.0, 2.0, np.inf], [np.inf, 1.0, 3.0]])
    field += fields.Potts([[0, 1], [1, 2], [2, 0]], 1.0)
    fields.write_uai(field, path)
    assert path.read_text().splitlines()[2] == "3 2 3"
    again = fields.read_uai(path)
    labelings = reference.all_labelings(3, 3)
    np.testing.assert_allclose(again.energy(labelings), field.energy(labelings), rtol=1e-12)


def test_padding_keeps_submodular_tables_submodular(read) -> None:
    """Two labels among three: a Potts table and one with unaries inside."""
    factors = [([0, 1], [1.0, 0.5, 0.5, 1.0]), ([1, 0], [4.0, 0.5, 1.0, 2.0])]
    field = read(text_of([2, 2, 3], factors))
    agrees(field, [2, 2, 3], factors)
    assert field.is_submodular


def test_zeros_that_are_forbidden_labels_are_taken(read) -> None:
    # Label 0 of variable 0 meets zeros only; then label 1 of variable 1 does, at variable 2.
    factors = [
        ([0], [1.0, 2.0]),
        ([0, 1], [0.0, 0.0, 3.0, 4.0]),
        ([1, 2], [1.0, 2.0, 0.0, 3.0]),
        ([2], [1.0, 0.0]),
        ([], [0.25]),
    ]
    field = read(text_of([2, 2, 2], factors))
    agrees(field, [2, 2, 2], factors)
    assert np.isinf(field.unary).tolist() == [[True, False], [False, True], [False, True]]


def plain_forbidden(cards: list[int], factors: list[Factor]) -> list[set[int]]:
    """Passes over all factors until no label more is found to meet zeros only."""
    possible = [set(range(card)) for card in cards]
    # of three and more variables those of one label say nothing
    factors = [
        ([v for v in scope if len(scope) < 3 or cards[v] > 1], table) for scope, table in factors
    ]
    for scope, table in factors:
        if len(scope) == 1:
            possible[scope[0]] &= {label for label, value in enumerate(table) if value}
    pairs = [(i, j, np.reshape(t, (cards[i], cards[j]))) for (i, j), t in
             (factor for factor in factors if len(factor[0]) == 2)]  # fmt: skip
    before = None
    while before != possible:
        before = [set(labels) for labels in possible]
        for i, j, table in pairs:
            possible[i] = {a for a in possible[i] if any(table[a, b] for b in possible[j])}
            possible[j] = {b for b in possible[j] if any(table[a, b] for a in possible[i])}
    return [set(range(max(cards))) - labels for labels in possible]


@SHARED
@given(models(), st.data())
def test_forbidden_labels_are_those_of_repeated_passes(read, model, data: st.DataObject) -> None:
    cards, factors = model
    keep = st.sampled_from([0.0, 0.0, 1.0])
    factors = [
        (scope, [value * data.draw(keep) for value in table] if scope else table)
        for scope, table in factors
    ]
    expected = plain_forbidden(cards, factors)
    text = text_of(cards, factors)
    empty = any(not any(table) for _, table in factors)
    if empty or any(len(labels) == max(cards) for labels in expected):
        with pytest.raises(ValueError, match=r"must have a (possible label|positive entry)"):
            read(text)
        return
    field = read(text)
    assert [set(np.flatnonzero(row)) for row in np.isinf(field.unary)] == expected
    agrees(field, cards, factors)


def test_a_forced_end_forces_the_whole_chain(read) -> None:
    """In both directions along the numbers; one pass over all factors for each edge would hang."""
    n = 20000
    for end in (0, n - 1):
        factors: list[Factor] = [([i, i + 1], [1.0, 0.0, 0.0, 1.0]) for i in range(n - 1)]
        field = read(text_of([2] * n, [*factors, ([end], [0.0, 1.0])]))
        assert np.isinf(field.unary).tolist() == [[True, False]] * n


def test_a_packed_file_is_not_unpacked_without_end(read, monkeypatch) -> None:
    monkeypatch.setattr("setwise._foundation._files.MOST_UNPACKED", 1000)
    text = text_of([2], [([0], [1.0, 3.0])])
    assert read(gzip.compress((text + " " * 900).encode()), "model.uai.gz").n_variables == 1
    packed = gzip.compress((text + " " * 10**7).encode())
    tracemalloc.start()
    try:
        with pytest.raises(
            ValueError, match=r"model.uai.gz: a packed file of .* must hold at most"
        ):
            read(packed, "model.uai.gz")
        assert tracemalloc.get_traced_memory()[1] < 2 * 10**6
    finally:
        tracemalloc.stop()


def test_gzip_is_read(read) -> None:
    text = text_of([2], [([0], [1.0, 3.0])])
    assert read(gzip.compress(text.encode()), "model.uai.gz").energy([1]) == -math.log(3.0)
    for bad in (text.encode(), b"", gzip.compress(text.encode())[:-9]):
        with pytest.raises(ValueError, match=r"model.uai.gz: .*(gzip|MARKOV)"):
            read(bad, "model.uai.gz")


PAIR = "MARKOV 2 2 2 1 2 0 1 4 "

REFUSED = {
    "": "must begin with MARKOV or BAYES, got an empty file",
    "GRAPH 1 2 0": "must begin with MARKOV or BAYES, got 'GRAPH'",
    "MARKOV": "the file ends before the number of variables",
    "MARKOV 0 0": "the number of variables must be an integer from 1",
    "MARKOV 1.5 2 0": "the number of variables must be .*, got 1.5",
    "MARKOV nan": "the number of variables must be .*, got nan",
    "MARKOV -1": "the number of variables must be .*, got -1",
    "MARKOV 3 2 2": "the file ends before the number of labels of a variable",
    "MARKOV 2 2 0 0": "the number of labels of a variable must be .* from 1 .*, got 0",
    "MARKOV 1 2": "the file ends before the number of factors",
    "MARKOV 1 2 1": "the file ends before 1 factors",
    "MARKOV 1 2 one": "a model must hold numbers, got 'one'",
    "MARKOV 1 2 1 1": "the file ends before the variables of 1 factors",
    "MARKOV 1 2 1 1 1 2 1 1": "a variable of a factor must be an integer from 0 to 0, got 1",
    "MARKOV 1 2 1 1 -1 2 1 1": "a variable of a factor must be .*, got -1",
    "MARKOV 1 2 1 -1 0 2 1 1": "the number of variables of factor 0 must be .*, got -1",
    "MARKOV 1 2 1 0.5 0 2 1 1": "the number of variables of factor 0 must be .*, got 0.5",
    "MARKOV 3 2 2 2 1 4 0 1 2 0 8 " + "1 " * 8: "factor 0 must be an integer from 0 to 3, got 4",
    "MARKOV 3 2 2 2 1 3 0 2 0 8 " + "1 " * 8: "factor 0 has the variable 0 twice",
    "MARKOV 3 2 2 2 1 3 0 1 2 8 " + "0 " * 8: "every factor must have a positive entry, 0 has none",
    "MARKOV 2 2 2 1 2 1 1 4 1 1 1 1": "factor 0 has the variable 1 twice",
    "MARKOV 2 2 2 1 2 0 1 3 1 1 1": "table of factor 0 must have 4 entries, got 3",
    PAIR + "1 1 1": "the file ends before the tables of 1 factors",
    PAIR + "1 1 1 1 1": "nothing must follow the last table, got 1 more numbers",
    PAIR + "1 1 -1 1": "finite numbers, none negative, that of factor 0 has -1",
    PAIR + "1 1 nan 1": "that of factor 0 has nan",
    PAIR + "1 1 inf 1": "that of factor 0 has inf",
    PAIR + "0 0 0 0": "every variable must have a possible label, 0 has none",
    "MARKOV 1 2 1 1 0 2 0 0": "every variable must have a possible label, 0 has none",
    "MARKOV 1 2 1 0 1 0": "every variable must have a possible label, 0 has none",
}


@pytest.mark.parametrize("text", REFUSED)
def test_wrong_files_are_refused_in_one_sentence(read, text: str) -> None:
    with pytest.raises(ValueError, match=REFUSED[text]) as caught:
        read(text)
    assert str(caught.value).startswith("model.uai: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "MARKOV 2000000000 2 2 1 1",
        "MARKOV 1 2000000000 0",
        "MARKOV 1 1e300 0",
        "MARKOV 2 2000000000 2000000000 1 2 0 1 4000000000000000000 1",
        "MARKOV 2 2000000000 2000000000 3 2 0 1 2 0 1 2 0 1 1 1 1 1 1 1",
        "MARKOV 1 2 2000000000 1 0",
        "MARKOV 1 2 1 2000000000 0",
        # A few thousand numbers that padding would turn into billions.
        f"MARKOV 3000 {'2 ' * 2999} 6000 1 1 2999 6000 {'1 ' * 6000}",
    ],
    ids=["variables", "labels", "1e300", "table", "sum", "factors", "scope", "unaries"],
)
def test_no_header_takes_memory_that_the_file_does_not_have(read, text: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"model\.uai: "):
            read(text)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


WRONG = ["MARKOV", "-1", "0.5", "1e9", "1e400", "nan", "inf", "x"]
TOKENS = st.integers(0, 5).map(str) | st.sampled_from([*WRONG, "0", "1", "2"])


@SHARED
@given(st.lists(TOKENS, max_size=30))
def test_no_sequence_of_words_crashes_the_reader(read, words: list[str]) -> None:
    for text in (" ".join(words), "MARKOV " + " ".join(words), PAIR + " ".join(words)):
        try:
            field = read(text)
        except ValueError:
            continue
        assert isinstance(field, fields.Field)


@SHARED
@given(st.binary(max_size=60))
def test_no_bytes_crash_the_reader(read, data: bytes) -> None:
    for text, name in [
        (data, "a.uai"),
        (b"MARKOV 1 2 " + data, "a.uai"),
        (data, "a.uai.gz"),
        (gzip.compress(b"MARKOV 1 2 " + data), "a.uai.gz"),
    ]:
        try:
            field = read(text, name)
        except ValueError:
            continue
        assert isinstance(field, fields.Field)


@SHARED
@given(models(), st.data())
def test_no_cut_or_changed_model_crashes_the_reader(read, model, data: st.DataObject) -> None:
    words = text_of(*model).split()
    changed = list(words)
    changed[data.draw(st.integers(0, len(words) - 1))] = data.draw(TOKENS)
    for variant in (words[: data.draw(st.integers(0, len(words) - 1))], changed):
        try:
            field = read(" ".join(variant))
        except ValueError:
            continue
        assert isinstance(field, fields.Field)


def test_only_fields_with_variables_are_written(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="field must be a Field, got list"):
        fields.write_uai([[0.0]], tmp_path / "x")
    with pytest.raises(ValueError, match="at least one variable"):
        fields.write_uai(fields.Field(np.zeros((0, 2))), tmp_path / "x")
    with pytest.raises(TypeError, match="path must be a string or a path, got NoneType"):
        fields.write_uai(fields.Field([[0.0, 1.0]]), None)
    with pytest.raises(TypeError, match="path must be a string or a path, got int"):
        fields.read_uai(3)
    with pytest.raises(FileNotFoundError):
        fields.read_uai(tmp_path / "missing.uai")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(models(), st.data())
def test_evidence_leaves_the_labellings_that_agree_with_it(tmp_path, model, data):
    """Energies are those of the model where observed labels are taken, infinite elsewhere."""
    cards, factors = model
    path, seen = tmp_path / "model.uai", tmp_path / "model.uai.evid"
    path.write_text(text_of(cards, factors))
    observed = data.draw(st.lists(st.sampled_from(range(len(cards))), unique=True))
    labels = {v: data.draw(st.integers(0, cards[v] - 1)) for v in observed}
    words = [len(labels), *(number for pair in labels.items() for number in pair)]
    older = data.draw(st.booleans())
    end = data.draw(st.sampled_from(["", "\n"]))
    seen.write_text(" ".join(map(str, [1, *words] if older else words)) + end)
    field = fields.read_uai(path, evidence=seen)
    assert (field.n_variables, field.n_labels) == (len(cards), max(cards))
    for x in product(*map(range, cards)):
        agrees_with = all(x[v] == label for v, label in labels.items())
        expected = plain_energy(cards, factors, x) if agrees_with else math.inf
        assert field.energy(list(x)) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "must begin with the number of observed variables, got an empty file"),
        ("1 0 two", "must hold numbers, got 'two'"),
        ("1 0 0.5", "integers from 0 on, got 0.5"),
        ("1 2 0", "a variable must be below 2, got 2"),
        ("1 0 2", "variable 0 has 2 labels, got 2"),
        ("2 0 1", "2 variables must be observed with a label each, got 1"),
        ("2 0 1 0 0", "each variable must be observed once, got 0 again"),
        ("2 1 0 1", "evidence must be of one sample, got 2"),
        ("1 0 1 0 1 0 1 0 1 0", "about 2 variables at most, got more numbers"),
    ],
)
def test_bad_evidence_is_refused_in_a_sentence(tmp_path, text, match):
    path, seen = tmp_path / "model.uai", tmp_path / "model.evid"
    path.write_text(text_of([2, 2], [([0, 1], [1.0, 2.0, 3.0, 4.0])]))
    seen.write_text(text)
    with pytest.raises(ValueError, match=f"model.evid: .*{match}"):
        fields.read_uai(path, evidence=seen)
    with pytest.raises(TypeError, match="evidence must be a string or a path, got int"):
        fields.read_uai(path, evidence=3)
    seen.write_text("2 0 1 1 1")
    path.write_text(text_of([2, 2], [([0, 1], [1.0, 2.0, 3.0, 0.0])]))
    with pytest.raises(ValueError, match="every variable must have a possible label"):
        fields.read_uai(path, evidence=seen)
