"""The parser of evidence files in the UAI format: observed variables and their labels."""

from __future__ import annotations

from array import array
from pathlib import Path

import numpy as np

from setwise._foundation._arguments import IntArray
from setwise._foundation._files import quoted
from setwise.fields._uai._model import extend, pieces


def parse_evidence(path: Path, cards: IntArray) -> tuple[IntArray, IntArray]:
    """Return observed variables and their labels, given the number of labels of each variable (N,).

    The file has the number of observed variables, then each with its label. Older files have the
    number of samples before that, which must be 1 (or 0 in an otherwise empty file).
    """

    def error(what: str) -> ValueError:
        return ValueError(f"{path.name}: {what}")

    values = array("d")
    rest = b""
    for piece in pieces(path):
        words = (rest + piece).split()
        rest = words.pop() if words and not piece[-1:].isspace() else b""
        bad = extend(values, words)
        if bad is not None:
            raise error(f"evidence must hold numbers, got {quoted(bad)}")
        if len(values) > 2 * len(cards) + 2:
            raise error(f"evidence must be about {len(cards)} variables at most, got more numbers")
    bad = extend(values, [rest] if rest else [])
    if bad is not None:
        raise error(f"evidence must hold numbers, got {quoted(bad)}")
    numbers = np.frombuffer(values, np.float64)
    if len(numbers) == 0:
        raise error("evidence must begin with the number of observed variables, got an empty file")
    if not ((numbers >= 0) & (numbers < 2**31) & (numbers == np.floor(numbers))).all():
        wrong = numbers[~((numbers >= 0) & (numbers < 2**31) & (numbers == np.floor(numbers)))][0]
        raise error(f"evidence must hold integers from 0 on, got {wrong:.15g}")
    whole = numbers.astype(np.int64)
    if len(whole) % 2 == 0:  # the number of samples comes first
        if whole[0] != 1:
            raise error(f"evidence must be of one sample, got {whole[0]}")
        whole = whole[1:]
    pairs = whole[1:].reshape(-1, 2)
    if len(pairs) != whole[0]:
        raise error(f"{whole[0]} variables must be observed with a label each, got {len(pairs)}")
    variables, labels = pairs.T
    for variable, label in pairs.tolist():
        if variable >= len(cards):
            raise error(f"a variable must be below {len(cards)}, got {variable}")
        if label >= cards[variable]:
            raise error(f"variable {variable} has {cards[variable]} labels, got {label}")
    numbers_of, counts = np.unique(variables, return_counts=True)
    if (counts > 1).any():
        raise error(f"each variable must be observed once, got {numbers_of[counts > 1][0]} again")
    return variables, labels
