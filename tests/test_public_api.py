"""A change of the interface shows in a diff, and every public name shows how it is used."""

import difflib
import inspect
import re
from collections.abc import Iterator

import pytest
from public_api import LISTING, listing, public_objects

NAMES = [pytest.param(value, id=name) for name, value in public_objects() if callable(value)]


def test_interface_is_the_listed_one() -> None:
    before, now = LISTING.read_text(encoding="utf-8"), listing()
    diff = difflib.unified_diff(
        before.splitlines(), now.splitlines(), "tests/public_api.txt", "the code", lineterm="", n=1
    )
    assert before == now, "if this is meant, run `make api`:\n" + "\n".join(diff)


@pytest.mark.parametrize("value", NAMES)
def test_public_name_has_a_docstring_with_an_example(value: object) -> None:
    assert ">>>" in (inspect.getdoc(value) or ""), "the docstring needs an Examples section"


ESTIMATOR = r"setwise\.(estimators\.|dask\.|plots\.)?[A-Z]\w*"
"""Who says in scikit-learn's words."""

# A word of the interface: the only owners that may use it, as CONTRIBUTING.md says under "Words".
WORDS = {
    "random_state": ESTIMATOR,
    "rng": rf"(?!{ESTIMATOR}$).*",
    "ignore_index": r"setwise\.torch\..*",
    "ignore": r"(?!setwise\.torch\.).*",
    "n_iter_no_change": r".*\.(Dask)?StructBoost(Classifier|Ranker)",
    "patience": r".*\.StructBoostTracker",
    "measure": r".*\.(Dask)?Field(SVM|Boost)",
    "proved": r"setwise\.dask\..*",
    **dict.fromkeys(("metric", "seed", "n_threads"), r"(?!)"),
}


def uses() -> Iterator[tuple[str, str]]:
    """Every parameter and field of the listed interface, after the public name that has it."""
    owner = ""
    for line in LISTING.read_text(encoding="utf-8").splitlines():
        if not line.startswith(" "):
            owner = re.split(r"[ :(]", line.partition(" ")[2] or line)[0]
        for parameter in re.findall(r"[(,] ?\*{0,2}(\w+)", line):
            yield owner, parameter
        if field := re.match(r" +(\w+): (field|property)", line):
            yield owner, field[1]


def test_a_word_stands_where_it_is_the_word() -> None:
    found = sorted(set(uses()))
    assert {"random_state", "rng", "ignore_index", "ignore"} <= {word for _, word in found}
    strays = [
        f"{owner}: {word}"
        for owner, word in found
        if word in WORDS and not re.fullmatch(WORDS[word], owner)
    ]
    assert not strays, "see the words of CONTRIBUTING.md"
