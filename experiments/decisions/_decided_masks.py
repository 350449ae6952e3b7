"""Masks from probabilities of pixels by several rules, settings chosen on other pictures.

A picture has one set of pixels for each class. The rules: the most probable class, one threshold
for all classes, ``decide`` with the measure's own loss, ``decide`` after a calibration, and where
there are several classes ``decide`` with a probability that the class is there at all; each on the
probabilities as they are and on a field's marginals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

import setwise as sw
from experiments.shared.report import Estimate

MEASURES = {"IoU": "jaccard", "Dice": "dice"}
POLICIES = ("there", "all")
THRESHOLDS = tuple(np.arange(0.05, 0.96, 0.05).round(2).tolist())
RULES = ("argmax", "tuned threshold", "decide", "decide, calibrated")
PRESENCE = "decide, presence"
LEAST = 1e-6  # probabilities are kept this far from 0 and 1 before a logit is taken

Decide = Callable[[np.ndarray, str], np.ndarray]


@dataclass(frozen=True, eq=False)
class Picture:
    """Probabilities (K, n) by the strength of the field, 0 for none; truth (K, n); judged (n,)."""

    probabilities: Mapping[float, np.ndarray]
    truth: np.ndarray
    judged: np.ndarray


@dataclass(frozen=True)
class Setting:
    """What was chosen for a row: the field's strength, and a threshold where there is one."""

    strength: float
    threshold: float | None = None


@dataclass(frozen=True, eq=False)
class Verdict:
    """A row's scores (pictures, K), for each measure and policy, and the settings behind them."""

    scores: dict[tuple[str, str], np.ndarray]
    settings: dict[tuple[str, str], Setting]


def decide_columns(p: np.ndarray, loss: str) -> np.ndarray:
    """The best set of each class, (K, n), with the library's decision for NumPy."""
    return sw.decide(p, loss, sets="rows", n_jobs=1).mask


def field_of(p: np.ndarray, image: np.ndarray, strength: float) -> np.ndarray:
    """Marginals (K, n) of a Potts field over the pixels of an image, contrast weighted."""
    edges = sw.fields.grid_edges(image.shape[:2])
    weights = strength * sw.fields.contrast_weights(image.astype(np.float64), edges)
    energy = -np.log(np.maximum(p.T, 1e-3))
    field = sw.fields.Field(energy) + sw.fields.Potts(edges, weights)
    return sw.marginals(field, "projection", tol=1e-3, max_iter=100, n_jobs=1).probabilities.T


def score(mask: np.ndarray, picture: Picture, measure: str) -> np.ndarray:
    """IoU or Dice of each class, (K,), on the judged pixels; 1 where both sets are empty."""
    predicted, truth = mask[:, picture.judged], picture.truth[:, picture.judged]
    both = np.count_nonzero(predicted & truth, axis=1)
    sizes = np.count_nonzero(predicted, axis=1) + np.count_nonzero(truth, axis=1)
    whole = sizes - both if measure == "IoU" else sizes / 2
    return np.where(whole > 0, both / np.maximum(whole, 0.5), 1.0)


def counted(pictures: Sequence[Picture], policy: str) -> np.ndarray:
    """Which pairs (picture, class) a mean is over: classes in the truth, or all of them."""
    there = np.array([p.truth[:, p.judged].any(axis=1) for p in pictures])
    return there if policy == "there" else np.ones_like(there)


def mean(scores: np.ndarray, counts: np.ndarray) -> Estimate:
    """Over the counted pairs; the error takes a picture as one draw, for its classes hang together.

    Of the ratio of two sums over pictures, linearised.
    """
    value = float(scores[counts].mean())
    off = np.where(counts, scores - value, 0.0).sum(axis=1)
    n = len(scores)
    return Estimate(value, float(np.sqrt(n / (n - 1) * np.sum(off**2)) / counts.sum()))


def calibration(pictures: Sequence[Picture], strength: float) -> tuple[float, float]:
    """(a, b) of sigmoid(a logit p + b), least log loss on the judged pixels, pictures alike."""
    parts, hits, weights = [], [], []
    for picture in pictures:
        some = np.flatnonzero(picture.judged)[::7]  # neighbours say the same
        z = _logit(picture.probabilities[strength][:, some]).ravel()
        parts.append(z)
        hits.append(picture.truth[:, some].ravel())
        weights.append(np.full(len(z), 1 / len(z)))
    z, y, w = map(np.concatenate, (parts, hits, weights))

    def loss(ab: np.ndarray) -> tuple[float, np.ndarray]:
        s = ab[0] * z + ab[1]
        residual = w * (expit(s) - y)
        value = float(w @ (np.logaddexp(0, s) - y * s))
        return value, np.array([residual @ z, residual.sum()])

    a, b = minimize(loss, [1.0, 0.0], jac=True, method="L-BFGS-B").x
    return float(a), float(b)


def _signs(p: np.ndarray) -> np.ndarray:
    """What tells whether a class is in a picture, (K, 2): its expected share, its best pixel."""
    return np.column_stack([_logit(p.mean(axis=1)), _logit(p.max(axis=1))])


def presence(pictures: Sequence[Picture], strength: float) -> LogisticRegression:
    """The probability that a class is in a picture at all, one model for all classes."""
    X = np.vstack([_signs(picture.probabilities[strength]) for picture in pictures])
    return LogisticRegression().fit(X, counted(pictures, "there").ravel())


def decide_with_presence(p: np.ndarray, loss: str, q: np.ndarray, policy: str) -> np.ndarray:
    """The best sets (K, n) if a class is there with probability q.

    Where only classes that are there are counted, what is asked is the law given that they are:
    pixel i has probability p_i / q, and the class is there.
    """
    if policy == "there":
        p, q = np.minimum(p / q[:, None], 1.0), np.ones(len(q))
    return sw.decide(p, loss, sets="rows", presence=q, n_jobs=1).mask


def judge(
    fit: tuple[Picture, ...], asked: tuple[Picture, ...], decide: Decide = decide_columns
) -> dict[tuple[str, str], Verdict]:
    """The verdict of each (probabilities, rule) on ``asked``, all settings chosen on ``fit``."""
    strengths = sorted(fit[0].probabilities)
    several = len(fit[0].truth) > 1
    found = {}
    for source, tried in (("as they are", strengths[:1]), ("the field's", strengths[1:])):
        curves = {s: calibration(fit, s) for s in tried}
        models = {s: presence(fit, s) for s in tried} if several else {}
        for rule in (*RULES, PRESENCE) if several else RULES:
            scores, settings = {}, {}
            thresholds = THRESHOLDS if rule == "tuned threshold" else (None,)
            options = [Setting(s, t) for s in tried for t in thresholds]
            for measure in MEASURES:
                make = cache(partial(_table, rule, measure, decide, curves, models))
                for policy in POLICIES:
                    law = policy if rule == PRESENCE else "there"  # others do not look at it
                    counts, best = counted(fit, policy), options[0]
                    if len(options) > 1:
                        best = max(options, key=lambda o: make(fit, o, law)[counts].mean())
                    settings[measure, policy] = best
                    scores[measure, policy] = make(asked, best, law)
            found[source, rule] = Verdict(scores, settings)
    return found


def _table(
    rule: str,
    measure: str,
    decide: Decide,
    curves: Mapping[float, tuple[float, float]],
    models: Mapping[float, LogisticRegression],
    pictures: Sequence[Picture],
    setting: Setting,
    policy: str,
) -> np.ndarray:
    """Scores (pictures, K) of a rule at a setting."""
    loss, rows = MEASURES[measure], []
    for picture in pictures:
        p = picture.probabilities[setting.strength].astype(np.float64)
        if rule == "argmax":
            mask = p.argmax(axis=0) == np.arange(len(p))[:, None] if len(p) > 1 else p > 0.5
        elif rule == "tuned threshold":
            mask = p > setting.threshold
        elif rule == PRESENCE:
            q = models[setting.strength].predict_proba(_signs(p))[:, 1]
            mask = decide_with_presence(p, loss, q, policy)
        elif rule == "decide, calibrated":
            a, b = curves[setting.strength]
            mask = decide(expit(a * _logit(p) + b), loss)
        else:
            mask = decide(p, loss)
        rows.append(score(mask, picture, measure))
    return np.array(rows)


def _logit(p: np.ndarray) -> np.ndarray:
    return logit(np.clip(p.astype(np.float64), LEAST, 1 - LEAST))
