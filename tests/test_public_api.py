"""A change of the interface shows in a diff, and every public name shows how it is used."""

import ast
import contextlib
import dataclasses
import difflib
import inspect
import re
import typing
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from public_api import (
    DESCRIBED_WITH,
    LISTING,
    described_objects,
    interface,
    listing,
    public_objects,
)

import setwise as sw
from setwise.dask._maps._field_results import FieldRow

NAMES = [pytest.param(value, id=name) for name, value in interface() if callable(value)]


def test_interface_is_the_listed_one() -> None:
    before, now = LISTING.read_text(encoding="utf-8"), listing()
    diff = difflib.unified_diff(
        before.splitlines(), now.splitlines(), "tests/public_api.txt", "the code", lineterm="", n=1
    )
    assert before == now, "if this is meant, run `make api`:\n" + "\n".join(diff)


@pytest.mark.parametrize("value", NAMES)
def test_public_name_has_a_docstring_with_an_example(value: object) -> None:
    assert ">>>" in (inspect.getdoc(value) or ""), "the docstring needs an Examples section"


RECORDS = [
    pytest.param(value, id=name)
    for name, value in interface()
    if dataclasses.is_dataclass(value) or (isinstance(value, type) and issubclass(value, tuple))
]


def large(annotation: str) -> object:
    """A value of the annotated type, large where the type has no bound."""
    simple = {"bool": True, "int": 10**9, "float": 1234.56789, "str": "a word " * 90}
    for name, value in simple.items():
        if re.match(rf"{name}\b", annotation):
            return value
    if "Tensor" in annotation:
        return torch.zeros(300, 400)
    if "Array" in annotation:
        return np.zeros(120_000)
    if "FieldRow" in annotation:
        return [FieldRow.failed(3, "3", ValueError("no pixels"), 0.5)] * 300
    if re.match(r"(tuple|list|Sequence)\b", annotation):
        return ["an item of many"] * 300
    field = sw.fields.Field(np.zeros((1000, 3)))
    known = {
        "Field": field,
        "MapResult": sw.solve_map(field),
        "Timings": sw.solve_map(field).timings,
    }
    return known.get(annotation.partition(" ")[0])


@pytest.mark.parametrize("kind", RECORDS)
def test_records_print_in_one_short_line(kind: type) -> None:
    annotations = {
        name: str(annotation)
        for base in reversed(kind.__mro__)
        for name, annotation in vars(base).get("__annotations__", {}).items()
    }
    if issubclass(kind, tuple):
        record = kind(*(torch.zeros(300, 400) for _ in kind._fields))
    else:
        record = object.__new__(kind)
        for own in dataclasses.fields(kind):
            object.__setattr__(record, own.name, large(annotations[own.name]))
    text = repr(record)
    assert text.startswith(f"{kind.__name__}(")
    assert "\n" not in text
    assert len(text) <= 800, text


def test_results_show_their_numbers_and_sizes() -> None:
    field = sw.fields.Field(np.zeros((6, 2)), shape=(2, 3))
    assert repr(sw.solve_map(field)).startswith(
        "MapResult(labels=<ndarray of int64, 6>, value=0.0, bound=0.0, method='cut', reason='at "
    )
    image = np.zeros((20, 30), np.uint8)
    image[5:15, 8:22] = 200
    found = sw.images.segment(image, boxes=[3, 4, 18, 26])
    assert re.fullmatch(
        r"Segmentation\(shape=\(20, 30\), value=\S+, bound=\S+, gap=\S+, exact=True, "
        r"labels=<ndarray of int64, 600>, interrupted=False\)",
        repr(found),
    )
    assert found._repr_html_().startswith("<div")


ESTIMATOR = r"setwise\.(estimators\.|dask\.|plots\.)?[A-Z]\w*"
"""Who says in scikit-learn's words."""

# A word of the interface: the only owners that may use it, as CONTRIBUTING.md says under "Words".
WORDS = {
    "random_state": ESTIMATOR,
    "rng": rf"(?!{ESTIMATOR}$).*",
    "ignore_index": r"setwise\.torch\..*",
    "ignore": r"(?!setwise\.torch\.).*",
    "n_iter_no_change": r".*\.BoostOptions",
    "patience": r".*\.StructBoostTracker",
    "measure": r".*\.(Dask)?Field(SVM|Boost)",
    "proved": r"setwise\.dask\..*|setwise\.inference\.Edit\w+",
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


MOST_PARAMETERS = {"an estimator": 14, "a function": 12}


def parameters() -> Iterator[tuple[str, int, int]]:
    """Each public callable, and each method of a public class: how many parameters, and the limit.

    The constructor of a record is left out: its fields are not for a caller to fill in.
    """
    records = [param.values[0] for param in RECORDS]
    for _, value in interface():
        if not callable(value):
            continue
        kind = "an estimator" if hasattr(value, "get_params") else "a function"
        if value not in records:
            count = len(inspect.signature(value).parameters)
            yield value.__name__, count, MOST_PARAMETERS[kind]
        for base in getattr(value, "__mro__", ()):
            own = vars(base).items() if base.__module__.startswith("setwise") else ()
            for name, method in own:
                if inspect.isfunction(method) and not name.startswith("_"):
                    count = len(inspect.signature(method).parameters) - 1  # without self
                    yield f"{base.__name__}.{name}", count, MOST_PARAMETERS["a function"]


def test_nothing_takes_more_parameters_than_a_reader_can_keep_in_mind() -> None:
    found = {name: (count, limit) for name, count, limit in parameters()}
    assert len(found) > 300
    long = {name for name, (count, limit) in found.items() if count > limit}
    assert not long, "leave some out, or put them into one record"


# Classes in annotations of the interface that no user meets.
INTERNAL = {
    "ConcaveCount",  # the form in which a diversity stores its parameter
    "PlaneShares",  # the state of a warm start
    "ScoredRows",  # what ``Surrogate.evaluate`` receives, and describes
    "Scorer",  # a callable, and described as one
    *("Placed", "Sliceable"),  # protocols of other libraries' arrays and futures
}


def named(annotation: object) -> Iterator[type]:
    """The classes of setwise in an annotation."""
    if typing.get_args(annotation):
        for part in typing.get_args(annotation):
            yield from named(part)
    elif isinstance(annotation, list | tuple):
        for part in annotation:
            yield from named(part)
    elif isinstance(annotation, type) and annotation.__module__.startswith("setwise"):
        yield annotation


def annotated(value: object) -> Iterator[type]:
    """The classes of setwise that the annotations of a function, or of a class, name."""
    of: list[object] = [value]
    for base in getattr(value, "__mro__", ()):
        if base.__module__.startswith("setwise"):
            for name, member in vars(base).items():
                if name == "__call__" or not name.startswith("_"):
                    of.append(member.fget if isinstance(member, property) else member)
    for one in of:
        one = getattr(one, "__func__", one)
        if not (inspect.isfunction(one) or one is value):
            continue
        # Only for mypy imported, hence not known when the code runs.
        with contextlib.suppress(NameError):
            for name, hint in typing.get_type_hints(one).items():
                if not name.startswith("_"):
                    yield from named(hint)


def test_every_class_that_a_user_meets_is_exported_or_described() -> None:
    known = {value for _, value in interface() if isinstance(value, type)}
    met = {cls for _, value in interface() if callable(value) for cls in annotated(value)}
    assert len(met & known) > 60
    # A subclass of a public class, such as a restricted set function, is documented by that.
    strangers = {
        cls.__name__ for cls in met - known if not any(base in known for base in cls.__mro__[1:])
    }
    assert strangers <= INTERNAL, "export it, or describe it in helpers/public_api.py"
    assert strangers >= INTERNAL, "an entry of INTERNAL has gone"


def test_a_class_that_is_only_described_is_not_exported() -> None:
    exported = [value for _, value in public_objects()]
    described = [value for _, value in described_objects()]
    assert len(described) == len(set(described))
    assert not set(described) & {value for value in exported if isinstance(value, type)}
    assert set(DESCRIBED_WITH) <= {name for name, _ in public_objects()}


SOURCES = Path(sw.__file__).parent


def test_the_name_of_a_class_is_that_of_one_class() -> None:
    places = defaultdict(list)
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path.relative_to(SOURCES).as_posix())
    several = {name: files for name, files in places.items() if len(files) > 1}
    assert not several, "one name for two things: rename one of them"
