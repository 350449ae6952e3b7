"""Two-fold tuning: parameters chosen on one half of the images, figures for the other half."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from experiments.diverse._list_scores import Case, ListScores, joined, shares_of
from experiments.shared.report import Estimate, Table, estimate

Setting = tuple[float | str, ...]
Measure = Callable[[Sequence[ListScores]], float]
Scored = Mapping[Setting, Sequence[ListScores]]
"""The list of every image under each setting of a diversity."""


def halves(cases: Sequence[Case], seed: int) -> np.ndarray:
    """Return the half (0 or 1) of each case, (n,). Groups stay together and are split evenly."""
    groups, of_case = np.unique([case.group for case in cases], return_inverse=True)
    return (np.random.default_rng(seed).permutation(len(groups)) % 2)[of_case]


def choose(scored: Scored, rows: np.ndarray, m: int, measure: Measure) -> Setting:
    """Return the setting whose lists of m are best on the given images; the first of ties."""
    return max(scored, key=lambda setting: measure([scored[setting][k].first(m) for k in rows]))


def held_out(
    parts: Sequence[Scored], half: np.ndarray, m: int, measure: Measure
) -> tuple[list[ListScores], list[list[Setting]]]:
    """Return for each image its list by the other half's settings, and those settings.

    With several parts (the rows that are circled in the paper) each part makes a share of the list,
    as in ``sw.diversities.Concatenated``, with a setting chosen for a list of that length. The
    settings are those of each half's images, one for each part.
    """
    lengths = [1 + share for share in shares_of(m, len(parts))]
    settings = [
        [
            choose(part, np.flatnonzero(half != side), length, measure)
            for part, length in zip(parts, lengths, strict=True)
        ]
        for side in (0, 1)
    ]
    lists = [
        joined(
            [
                part[setting][k].first(length)
                for part, setting, length in zip(parts, settings[side], lengths, strict=True)
            ]
        )
        for k, side in enumerate(half)
    ]
    return lists, settings


def by_group(values: np.ndarray, cases: Sequence[Case]) -> Estimate:
    """Return mean and standard error over the groups of the cases."""
    groups, of_case = np.unique([case.group for case in cases], return_inverse=True)
    return estimate(np.bincount(of_case, values) / np.bincount(of_case, minlength=len(groups)))


def settings_table(title: str, chosen: Mapping[str, Mapping[int, list[list[Setting]]]]) -> Table:
    """Return a table of chosen settings: a row per method, a column per M.

    A cell has the settings of both halves, part by part.
    """
    lengths = next(iter(chosen.values()))
    made = Table(title, ["", *(f"M = {m}" for m in lengths)])
    for row, settings in chosen.items():
        cells = ["; ".join(" ⊗ ".join(map(_show, side)) for side in settings[m]) for m in lengths]
        made.rows.append([row, *cells])
    return made


def _show(setting: Setting) -> str:
    return ", ".join(x if isinstance(x, str) else f"{x:g}" for x in setting)
