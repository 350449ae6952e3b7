"""The law of bad input: what a call may do with a value that is written otherwise, or bad."""

from __future__ import annotations

import dataclasses
import functools
import re
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from bad_values import Trouble, alternatives, hostile
from example_registry import EXAMPLES, Example
from scipy.sparse import issparse

# A warning that NumPy or pandas gives, rather than this library in words of its own.
_NUMERIC = re.compile(
    r"encountered in|divide by zero|empty slice|Degrees of freedom|Casting|imaginary|deprecat|"
    r"ill-conditioned|non-writable|object dtype|convert",
    re.IGNORECASE,
)
# What a caller's own function says when it is called: it passes through.
_OWN = re.compile(
    r"of my own|truth value of an|no_arguments\(\)|int\(\) argument|argument (to|for) int|"
    r"Python scalars|scalar index"
)
SECONDS = 20


class Hang(BaseException):
    """The call went on for too long."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise ``Hang`` in what goes on for longer, where signals can."""
    able = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if not able:
        yield
        return

    def end(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclasses.dataclass(frozen=True)
class Case:
    """One argument of one call, in another form or spoilt."""

    name: str
    argument: str
    kind: str
    change: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.name, self.argument, self.change

    def __str__(self) -> str:
        return f"{self.name}({self.argument} = {self.change})"


# Counts that ask for so much work, and mean it: tried up to a few.
# Other names for an argument: what is summed over several of them, or read one by one.
ALSO_NAMED = {
    "source": ("capacities",),
    "sink": ("capacities",),
    "reverse": ("capacities",),
    "weights": ("capacities", "weight"),
    "counts": ("weight",),
    "offsets": ("y",),
    "grid": ("weight",),
    "Y": ("y",),
}
# Strange values that have a meaning: to stop at once, a constant stump, what a map is told to do.
TAKEN = {
    ("setwise.solve_map", "tol", "inf"),
    ("setwise.images.segment", "tol", "inf"),
    ("setwise.learning.Step", "threshold", "-inf"),
    ("setwise.learning.Stump", "threshold", "-inf"),
    ("setwise.learning.Serial.map", "function", "function of nan"),
    ("setwise.learning.Threads.map", "function", "function of nan"),
    ("setwise.learning.Serial.sums", "function", "function of nan"),
    ("setwise.learning.Threads.sums", "function", "function of nan"),
    ("setwise.learning.tree_sum", "add", "function of nan"),
}
# Names of classes and groups may be of any kind; matplotlib leaves out pixels that are NaN.
FREE = {
    "y": ("complex",),
    "groups": ("complex",),
    "qid": ("complex",),
    "prob_true": ("one nan", "all nan"),  # of a bin without rows
    "prob_pred": ("one nan", "all nan"),
    "image": ("one nan", "all nan", "polars with a gap", "pandas with a gap"),
}
# A feature that is NaN or None is missing there, which the weak learners take.
MISSING = ("one nan", "all nan", "one None")
TAKE_MISSING = re.compile(
    r"setwise\.(StructBoost(Classifier|Ranker)\.|learning\.((Category)?Stump|Step)"
    r"|learning\.(ClassifierSearch|WeakClassifier))"
)
# A frame of integers is one of 0 to 255, where one of floats is of 0 to 1.
OTHER_MEANING = {("frame", "integers")}
WORK = {
    ("setwise.plots.DecompositionDisplay.from_loss", "p"),
    ("setwise.sample", "n"),
    ("setwise.learning.n_slack", "n"),
}
_HUGE = ("2**31", "2**63", "10**400")


def cases(names: list[str] | None = None) -> Iterator[Case]:
    """Every case there is."""
    for name in EXAMPLES if names is None else names:
        for argument, value in EXAMPLES[name].arguments.items():
            for kind, makers in (("alternative", alternatives), ("hostile", hostile)):
                for change in makers(value):
                    if (name, argument) in WORK and change in _HUGE:
                        continue
                    yield Case(name, argument, kind, change)


def answer_of(example: Example, **changed: Any) -> tuple[Any, list[str]]:
    """What can be seen of the answer, and the warnings that are NumPy's."""
    with warnings.catch_warnings(record=True) as caught, time_limit(SECONDS):
        warnings.simplefilter("always")
        answer = example.look(example.run(**{**example.arguments, **changed}))
    said = [
        f"{w.category.__name__}: {w.message}" for w in caught if _NUMERIC.search(str(w.message))
    ]
    return answer, said


@functools.cache
def good_answer(name: str) -> Any:
    """What the example itself answers."""
    return answer_of(EXAMPLES[name])[0]


def verdict(case: Case) -> str | None:
    """What is wrong with how a call takes the case; None if nothing is."""
    example = EXAMPLES[case.name]
    good = example.arguments[case.argument]
    make = (alternatives if case.kind == "alternative" else hostile)(good)[case.change]
    value = make()
    before = snapshot([value, example.arguments])
    try:
        answer, said = answer_of(example, **{case.argument: value})
    except (TypeError, ValueError) as error:
        words = str(error)
        # Where two arguments do not fit one another, either may be named.
        at_fault = must_refuse(good, case.change, value, case.argument)
        told = [case.argument, *ALSO_NAMED.get(case.argument, ())]
        if not at_fault:
            owner = EXAMPLES.get(case.name.rpartition(".")[0])
            told += [*example.arguments, *(owner.arguments if owner else ())]
        if callable(value) and _OWN.search(words):
            return None
        if any(names(words, argument) for argument in told):
            return None
        return f"{type(error).__name__} without the argument's name: {words[:300]}"
    except Trouble:
        return None
    except OSError:
        return None if case.argument in ("path", "evidence") else "OSError"
    except Hang:
        return "hangs"
    except AttributeError as error:
        if case.argument.endswith("_kw") and "keyword" in str(error):
            return None  # matplotlib speaks for what it is handed
        return f"AttributeError: {str(error)[:300]}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    if said:
        return f"warns {said[0][:200]}"
    if snapshot([value, example.arguments]) != before:
        return "writes into its arguments"
    if case.kind == "alternative":
        if (case.argument, case.change) in OTHER_MEANING:
            return None
        expected = good_answer(case.name)
        coarse = case.change in ("f2", "f4", "float16", "float32")
        if not same(answer, expected, 1e-4 if coarse else 1e-9):
            return f"another answer: {str(answer)[:200]} for {str(expected)[:200]}"
        return None
    if case.key in TAKEN:
        return None
    if has_nan(answer):
        return f"nan: {str(answer)[:300]}"
    missing = case.argument == "X" and case.change in MISSING and TAKE_MISSING.match(case.name)
    if not missing and must_refuse(good, case.change, value, case.argument):
        return f"taken: {str(answer)[:200]}"
    return None


def names(words: str, argument: str) -> bool:
    return re.search(rf"(?<![A-Za-z]){re.escape(argument)}(?![a-z])", words) is not None


def must_refuse(good: Any, change: str, value: Any, argument: str) -> bool:
    """Whether no answer can be right."""
    if value is None:
        return False
    if isinstance(good, bool):
        return not isinstance(value, (bool, np.bool_))
    if isinstance(good, (int, float)):
        if isinstance(value, (str, bytes, bool, complex, list, dict, tuple, set, type)) or callable(
            value
        ):
            return True
        return isinstance(value, float) and not np.isfinite(value)
    if isinstance(good, np.ndarray):
        if argument in FREE and change in FREE[argument]:
            return False
        bad = ("nan", "complex", "masked", "structured", "date", "bytes", "one None", "one string")
        return any(word in change for word in bad) or change in ("no", "object", "type", "module")
    return False


def parts(answer: Any, depth: int = 0) -> Iterator[Any]:
    """The arrays and numbers of an answer."""
    if depth > 6 or answer is None or isinstance(answer, (str, bytes, bool)):
        return
    if issparse(answer):
        yield answer.toarray()
    elif isinstance(answer, (np.ndarray, np.generic, int, float)):
        yield np.asarray(answer)
    elif isinstance(answer, dict):
        for key in answer:
            yield from parts(answer[key], depth + 1)
    elif isinstance(answer, (list, tuple)):
        for part in answer:
            yield from parts(part, depth + 1)
    elif dataclasses.is_dataclass(answer):
        for item in dataclasses.fields(answer):
            if item.name not in ("seconds", "history", "state"):
                yield from parts(getattr(answer, item.name), depth + 1)


def has_nan(answer: Any) -> bool:
    return any(part.dtype.kind in "fc" and np.isnan(part).any() for part in parts(answer))


def same(answer: Any, expected: Any, tolerance: float) -> bool:
    """Whether two answers hold the same numbers."""
    if isinstance(expected, str):
        return answer == expected
    mine, theirs = list(parts(answer)), list(parts(expected))
    if len(mine) != len(theirs):
        return False
    for a, b in zip(mine, theirs, strict=True):
        if a.shape != b.shape:
            return False
        if b.dtype.kind in "fciub" and a.dtype.kind in "fciub":
            if not np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=False):
                return False
        elif not np.array_equal(a, b):
            return False
    return True


def snapshot(value: Any) -> list[bytes]:
    """The contents of the arrays in a value, to see later whether they changed."""
    found: list[bytes] = []
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, np.ndarray) and part.dtype.kind != "O":
            found.append(part.tobytes())
        elif isinstance(part, (list, tuple, dict)):
            found += snapshot(part)
    return found
