"""Masks from pixel probabilities by several rules, with settings chosen on other pictures.

A picture has one set of pixels per class. The rules are: the most probable class, one threshold for
all classes, ``decide`` with the measure's own loss, and ``decide`` after a calibration. Where there
are several classes, a further rule is ``decide`` with a probability that the class is present. Each
rule is applied to the probabilities as they are and to the marginals of a field.
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
LEAST = 1e-6  # probabilities are clipped to [LEAST, 1 - LEAST] before a logit is taken

Decide = Callable[[np.ndarray, str], np.ndarray]


@dataclass(frozen=True, eq=False)
class Picture:
    """Probabilities (K, n) per strength of the field, truth (K, n), and which pixels count (n,).

    Strength 0 stands for the probabilities without a field.
    """

    probabilities: Mapping[float, np.ndarray]
    truth: np.ndarray
    valid: np.ndarray


@dataclass(frozen=True)
class Setting:
    """The chosen settings of a row: the field's strength, and the threshold if there is one."""

    strength: float
    threshold: float | None = None


@dataclass(frozen=True, eq=False)
class Verdict:
    """A row's scores (pictures, K), for each measure and policy, and the settings behind them."""

    scores: dict[tuple[str, str], np.ndarray]
    settings: dict[tuple[str, str], Setting]


def decide_columns(p: np.ndarray, loss: str) -> np.ndarray:
    """Return the best set of each class, (K, n), by the library's decision for NumPy."""
    return sw.decide(p, loss, sets="rows", n_jobs=1).mask


def field_of(p: np.ndarray, image: np.ndarray, strength: float) -> np.ndarray:
    """Return marginals (K, n) of a contrast-weighted Potts field over the pixels of an image."""
    edges = sw.fields.grid_edges(image.shape[:2])
    weights = strength * sw.fields.contrast_weights(image.astype(np.float64), edges)
    energy = -np.log(np.maximum(p.T, 1e-3))
    field = sw.fields.Field(energy) + sw.fields.Potts(edges, weights)
    return sw.marginals(field, "projection", tol=1e-3, max_iter=100, n_jobs=1).probabilities.T


def score(mask: np.ndarray, picture: Picture, measure: str) -> np.ndarray:
    """Return IoU or Dice per class, (K,), on the pixels that count; 1 if both sets are empty."""
    predicted, truth = mask[:, picture.valid], picture.truth[:, picture.valid]
    both = np.count_nonzero(predicted & truth, axis=1)
    sizes = np.count_nonzero(predicted, axis=1) + np.count_nonzero(truth, axis=1)
    whole = sizes - both if measure == "IoU" else sizes / 2
    return np.where(whole > 0, both / np.maximum(whole, 0.5), 1.0)


def counted(pictures: Sequence[Picture], policy: str) -> np.ndarray:
    """Return the mask of pairs (picture, class) to average: classes in the truth, or all."""
    there = np.array([p.truth[:, p.valid].any(axis=1) for p in pictures])
    return there if policy == "there" else np.ones_like(there)


def mean(scores: np.ndarray, counts: np.ndarray) -> Estimate:
    """Return the mean score of the counted pairs, with its standard error over pictures.

    The classes of a picture are not independent, so the error treats a picture as one draw. It is
    that of the linearised ratio of two sums over pictures.
    """
    value = float(scores[counts].mean())
    off = np.where(counts, scores - value, 0.0).sum(axis=1)
    n = len(scores)
    return Estimate(value, float(np.sqrt(n / (n - 1) * np.sum(off**2)) / counts.sum()))


def calibration(pictures: Sequence[Picture], strength: float) -> tuple[float, float]:
    """Return (a, b) such that sigmoid(a logit p + b) has the least log loss on counted pixels.

    Every picture has the same weight.
    """
    parts, hits, weights = [], [], []
    for picture in pictures:
        # A seventh of the pixels is enough, because neighbours are alike.
        some = np.flatnonzero(picture.valid)[::7]
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
    """Return features (K, 2) for the presence of a class: logits of its mean and largest p."""
    return np.column_stack([_logit(p.mean(axis=1)), _logit(p.max(axis=1))])


def presence(pictures: Sequence[Picture], strength: float) -> LogisticRegression:
    """Fit the probability that a class is present in a picture, one model for all classes."""
    X = np.vstack([_signs(picture.probabilities[strength]) for picture in pictures])
    return LogisticRegression().fit(X, counted(pictures, "there").ravel())


def decide_with_presence(p: np.ndarray, loss: str, q: np.ndarray, policy: str) -> np.ndarray:
    """Return the best sets (K, n) if a class is present with probability q.

    Under the policy "there" only present classes are counted. The decision then uses the
    conditional distribution given presence: pixel i has probability p_i / q, and the class is
    present.
    """
    if policy == "there":
        p, q = np.minimum(p / q[:, None], 1.0), np.ones(len(q))
    return sw.decide(p, loss, sets="rows", presence=q, n_jobs=1).mask


def evaluate(
    fit: tuple[Picture, ...], asked: tuple[Picture, ...], decide: Decide = decide_columns
) -> dict[tuple[str, str], Verdict]:
    """Return scores of each (probabilities, rule) on ``asked``; ``fit`` chooses the settings."""
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
                    law = policy if rule == PRESENCE else "there"  # the other rules ignore it
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
    """Return the scores (pictures, K) of a rule at a setting."""
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
