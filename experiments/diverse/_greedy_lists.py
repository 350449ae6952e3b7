"""Lists of labellings by each diversity, for a grid of its parameters, and by other methods.

All lists are kept in the cache, under ``lists``. Delete them after a change of the library.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

import setwise as sw
from experiments.diverse._list_scores import Case, ListScores, score_list, shares_of
from experiments.diverse._restarts import restarted_list
from experiments.diverse._tuning import Setting
from experiments.shared.cache import cache_folder, keep
from experiments.shared.report import parallel
from setwise.inference._diverse._baseline_lists import perturbed_list, sampled_list

Diversity = sw.diversities.Diversity
SEED = 0  # seed of the lists that are drawn at random
Make = Callable[[Case, int, Setting], np.ndarray]
"""A function that returns a list (m, S) for a case, a length and a setting."""


@dataclass(frozen=True)
class Method:
    """A way to make lists, and the settings to choose from."""

    make: Make
    settings: tuple[Setting, ...]
    nested: bool = True
    """Whether a shorter list is a prefix of a longer one."""


def greedy(diversity: Callable[..., Diversity], method: str = "auto") -> Make:
    """Return a method that makes greedy lists under a diversity, given a case and a setting."""

    def make(case: Case, m: int, setting: Setting) -> np.ndarray:
        made = diversity(case, *setting)
        return sw.diverse(case.field, m, made, method=method, n_jobs=1).labelings

    return make


def with_path(diversity: Callable[..., Diversity]) -> Make:
    """Return a method whose greedy steps may also take the labellings of the path of biases."""

    def make(case: Case, m: int, setting: Setting) -> np.ndarray:
        path = sw.inference.bias_path(case.field, max_cuts=20)
        pieces = path.pieces(np.arange(path.n_pieces))
        made = diversity(*setting)
        return sw.diverse(
            case.field, m, made, method="multipliers", candidates=pieces, n_jobs=1
        ).labelings

    return make


def concatenated(
    case: Case, methods: Sequence[Method], settings: Sequence[Setting], m: int
) -> np.ndarray:
    """Concatenate the lists of several methods to one list of m, with the MAP labelling once."""
    shares = shares_of(m, len(methods))
    lists = [
        method.make(case, 1 + share, setting)
        for method, setting, share in zip(methods, settings, shares, strict=True)
    ]
    return np.concatenate([lists[0][:1], *(one[1:] for one in lists)])


def equal_biases(case: Case, m: int, setting: Setting) -> np.ndarray:
    """Return the MAP labellings under m equally spaced biases."""
    (spacing,) = setting
    biases = spacing * (np.arange(m) - 0.5 * (m - 1))
    unary = case.field.unary
    fields = [case.field.with_unary(unary + np.array([0.0, bias])) for bias in biases]
    return np.array([sw.solve_map(field, n_jobs=1).labels for field in fields])


def equal_prices(case: Case, m: int, setting: Setting) -> np.ndarray:
    """Return MAP labellings under m equally spaced prices of the labels that MAP uses."""
    (spacing,) = setting
    best = sw.solve_map(case.field, n_jobs=1).labels
    everyone, labelings = np.arange(len(best)), [best]
    for k in range(1, m):
        unary = case.field.unary.copy()
        unary[everyone, best] += k * spacing
        labelings.append(sw.solve_map(case.field.with_unary(unary), n_jobs=1).labels)
    return np.array(labelings)


def regions_diversity(case: Case, h: str, weight: float, consistency: float) -> Diversity:
    """Return a diversity of new labels for superpixels, with a price per larger region split."""
    return sw.diversities.VariableCoverage(
        h, weight, regions=case.segments, consistency=consistency
    )


def alternatives(case: Case, m: int, setting: Setting) -> np.ndarray:
    """Return the list of ``diverse`` without a diversity.

    A setting holds the arguments of ``Alternatives``.
    """
    wanted = sw.diversities.Alternatives(*setting) if setting else None
    return sw.diverse(case.field, m, wanted, n_jobs=1).labelings


def perturbed(case: Case, m: int, setting: Setting) -> np.ndarray:
    """Return the MAP labellings of fields with Gumbel noise of a given scale on the unaries."""
    (scale,) = setting
    return perturbed_list(case.field, m, temperature=scale, n_jobs=1, rng=SEED)


def restarted(case: Case, m: int, setting: Setting) -> np.ndarray:
    """Return local minima reached from labels drawn from the unaries at a temperature."""
    (temperature,) = setting
    return restarted_list(case.field, m, temperature, np.random.default_rng(SEED))


def sampled(case: Case, m: int, setting: Setting) -> np.ndarray:
    """Return labels drawn independently from the marginals at a temperature."""
    (temperature,) = setting
    return sampled_list(case.field, m, temperature=temperature, n_jobs=1, rng=SEED)


@dataclass(frozen=True, eq=False)
class Lists:
    """All lists of all cases: their scores, and the seconds per list.

    ``scores[name][setting]`` has an entry per case. ``seconds[name]`` is the mean processor time
    over cases and settings.
    """

    scores: Mapping[str, Mapping[Setting, Sequence[ListScores]]]
    seconds: Mapping[str, float]


def make_lists(
    cases: Sequence[Case], methods: Mapping[str, Method], m: int, label: str, jobs: int
) -> Lists:
    """Make every list of m labellings."""
    task = partial(_lists_of_case, methods=dict(methods), m=m)
    made = [answer for _, answer in parallel(task, cases, label, jobs)]
    scores = {
        name: {s: [one[0][name][s] for one in made] for s in method.settings}
        for name, method in methods.items()
    }
    seconds = {
        name: float(np.mean([one[1][name] for one in made])) / len(method.settings)
        for name, method in methods.items()
    }
    return Lists(scores, seconds)


def _lists_of_case(
    case: Case, methods: Mapping[str, Method], m: int
) -> tuple[dict[str, dict[Setting, ListScores]], dict[str, float]]:
    scores: dict[str, dict[Setting, ListScores]] = {name: {} for name in methods}
    seconds = dict.fromkeys(methods, 0.0)
    for name, method in methods.items():
        for setting in method.settings:
            labelings, spent = _kept(case, name, method, m, setting)
            scores[name][setting] = score_list(case, labelings)
            seconds[name] += spent
    return scores, seconds


def _kept(
    case: Case, name: str, method: Method, m: int, setting: Setting
) -> tuple[np.ndarray, float]:
    """Return a list and its seconds, from the cache if it is there."""
    words = [name.replace(" ", "-"), str(m), *map(str, setting)]
    unaries = f"{zlib.crc32(case.field.unary.tobytes()):08x}"  # the key changes with the field
    path = cache_folder() / "lists" / f"{case.name}-{unaries}" / f"{'_'.join(words)}.npz"
    if not path.exists():
        start = time.process_time()
        labelings = method.make(case, m, setting)
        keep(path, labelings=labelings, seconds=time.process_time() - start)
    with np.load(path) as stored:
        return stored["labelings"], float(stored["seconds"])
