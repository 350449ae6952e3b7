"""Label maps of exclusive classes: argmax, prior correction, RankSEG and the decided map.

    python experiments/no_paper/label_maps.py [--quick]

The probabilities are those of the networks that ``class_losses.py`` trains with cross-entropy, on
scenes with 5 and 12 classes, and those of a pixel classifier on MSRC-21 (needs msrc21/). All rules
get the same calibrated probabilities. Temperature, prior correction, RankSEG's pruning and the
presence of classes are learnt on other images than those of the figures. RankSEG is the package
``rankseg``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.special import logit, softmax
from sklearn.linear_model import LogisticRegression

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.decisions._small_unaries import probabilities
from experiments.no_paper._scenes import VOID
from experiments.shared.cache import cache_folder
from experiments.shared.msrc import FEW, names, truth
from experiments.shared.report import Estimate, Table, arguments, estimate, progress, report
from experiments.shared.texture import CELL

try:
    from rankseg import RankSEG
except ModuleNotFoundError:
    sys.exit("rankseg is not installed: pip install --no-deps rankseg")

POWERS = (0.25, 0.5, 0.75, 1.0)
PRUNINGS = (0.0, 0.1, 0.25, 0.5)
MEASURES = {"IoU": "jaccard", "Dice": "dice"}
# How the scores of classes are averaged, and whether a rule gets one image at a time.
MEANS = {
    "each class over all images": False,
    "images, classes in the truth": True,
    "images, all classes": True,
}


@dataclass(frozen=True, eq=False)
class Image:
    """Probabilities (C, P), and labels (P,) of which -1 is void."""

    p: np.ndarray
    y: np.ndarray


Rule = Callable[[np.ndarray], np.ndarray]


def counts(labels: np.ndarray, image: Image) -> np.ndarray:
    """Return the true positives, predicted and true pixels (3, C)."""
    n, valid = len(image.p), image.y >= 0
    x, y = labels[valid], image.y[valid]
    return np.array([np.bincount(values, minlength=n) for values in (x[x == y], x, y)])


def mean_score(found: np.ndarray, measure: str, mean: str) -> float:
    """Return the mean score for counts (N, 3, C); 1 where a class is neither true nor predicted."""
    if not MEANS[mean]:
        found = found.sum(0, keepdims=True)
    hit, predicted, true = found.transpose(1, 0, 2).astype(float)
    below = predicted + true - hit if measure == "IoU" else (predicted + true) / 2
    scores = np.where(below > 0, hit / np.maximum(below, 0.5), 1.0)
    return float(scores[true > 0].mean() if "truth" in mean else scores.mean())


def apply(rule: Rule, images: Sequence[Image], each: bool) -> np.ndarray:
    """Return the counts (N, 3, C) of a rule for each image, or for all images at once."""
    if each:
        return np.stack([counts(rule(image.p), image) for image in images])
    labels = rule(np.concatenate([image.p for image in images], 1))
    ends = np.cumsum([len(image.y) for image in images])[:-1]
    return np.stack(
        [counts(x, image) for x, image in zip(np.split(labels, ends), images, strict=True)]
    )


def signs(p: np.ndarray) -> np.ndarray:
    """Return features (C, 2) for the presence of a class: logits of its mean and largest p."""
    both = np.column_stack([p.mean(1), p.max(1)])
    return logit(np.clip(both, 1e-6, 1 - 1e-6))


def calibrated(images: Sequence[Image], temperature: float) -> list[Image]:
    return [
        Image(softmax(np.log(np.maximum(i.p, 1e-12)) / temperature, axis=0), i.y) for i in images
    ]


def temperature_of(images: Sequence[Image]) -> float:
    """Return the temperature of the least log loss."""
    logs = np.concatenate([np.log(np.maximum(i.p[:, i.y >= 0][:, ::5], 1e-12)) for i in images], 1)
    y = np.concatenate([i.y[i.y >= 0][::5] for i in images])

    def loss(t: float) -> float:
        z = logs / np.exp(t)
        return float(np.mean(np.logaddexp.reduce(z, 0) - z[y, np.arange(len(y))]))

    return float(np.exp(minimize_scalar(loss, bounds=(-1.5, 1.5), method="bounded").x))


def evaluate(
    fit: list[Image], asked: list[Image], spent: dict[str, list[float]]
) -> tuple[dict[tuple[str, str, str], np.ndarray], dict[str, object]]:
    """Return the counts of each (rule, measure, mean), and the settings that were chosen."""
    temperature = temperature_of(fit)
    fit, asked = calibrated(fit, temperature), calibrated(asked, temperature)
    priors = np.concatenate([image.p for image in fit], 1).mean(1)
    there = np.array([np.bincount(i.y[i.y >= 0], minlength=len(i.p)) > 0 for i in fit])
    known = LogisticRegression().fit(np.vstack([signs(i.p) for i in fit]), there.ravel())

    def corrected(power: float) -> Rule:
        return lambda p: (p / priors[:, None] ** power).argmax(0)

    def rank(measure: str, pruning: float) -> Rule:
        ranked = RankSEG(metric=measure, pruning_prob=pruning)
        return lambda p: ranked.predict(torch.from_numpy(p)[None])[0].numpy()

    def decided(measure: str, classes: str, gated: bool) -> Rule:
        def rule(p: np.ndarray) -> np.ndarray:
            q = known.predict_proba(signs(p))[:, 1] if gated else None
            found = sw.decide(p[None], MEASURES[measure], classes=classes, presence=q, n_jobs=1)
            return found.labels[0]

        return rule

    found, settings = {}, {"temperature": temperature}
    for mean, each in MEANS.items():
        for measure in MEASURES:
            options: dict[str, list[tuple[object, Rule]]] = {
                "argmax": [(None, lambda p: p.argmax(0))],
                "prior-corrected argmax": [(t, corrected(t)) for t in POWERS],
                "RankSEG": [(t, rank(measure, t)) for t in PRUNINGS],
                "decide": [(None, decided(measure, "exclusive", False))],
            }
            if each:
                classes = "present" if "truth" in mean else "exclusive"
                options["decide, presence"] = [(None, decided(measure, classes, True))]
            for name, tried in options.items():
                best = tried[0]
                if len(tried) > 1:
                    best = max(
                        tried, key=lambda o: mean_score(apply(o[1], fit, each), measure, mean)
                    )
                    settings[f"{name}, {measure}, {mean}"] = best[0]
                start = time.process_time()
                found[name, measure, mean] = apply(best[1], asked, each)
                seconds = (time.process_time() - start) / len(asked)
                if measure == "IoU":
                    spent.setdefault(f"{name} | {mean}", []).append(1e3 * seconds)
    return found, settings


def networks(n_classes: int, seed: int, quick: bool) -> tuple[list[Image], list[Image]]:
    """Return the images that choose, and those that test, of a network of ``class_losses.py``."""
    folder = cache_folder() / "class_losses" / "runs" / "logits"
    path = folder / f"{n_classes}-classes-{seed}.npz"
    if not path.exists():
        sys.exit("run experiments/no_paper/class_losses.py first: its first trainings suffice")
    parts = []
    with np.load(path) as arrays:
        for part in ("choose", "test"):
            logits, labels = arrays[f"{part}_logits"], arrays[f"{part}_labels"]
            p = softmax(logits.reshape(*logits.shape[:2], -1).astype(np.float64), axis=1)
            y = labels.reshape(len(labels), -1).astype(np.int64)
            y[y == VOID] = -1
            parts.append([Image(*pair) for pair in zip(p, y, strict=True)][: 8 if quick else None])
    return parts[0], parts[1]


def photographs(quick: bool) -> list[Image]:
    """Return the validation images of MSRC-21, at cells of 2 x 2 pixels."""
    every = names("validation")[: FEW if quick else None]
    p = probabilities(every, 0, quick=quick)
    return [
        Image(
            np.ascontiguousarray(p[name].reshape(-1, p[name].shape[2]).T),
            truth(name)[::CELL, ::CELL].ravel().astype(np.int64),
        )
        for name in every
    ]


def compared(runs: list[dict[tuple[str, str, str], np.ndarray]]) -> dict[str, dict[str, Estimate]]:
    """Return each rule's scores, and how far they are above argmax and RankSEG.

    Errors are over the runs. For a single run, they are over its images.
    """
    out: dict[str, dict[str, Estimate]] = {}
    for rule, measure, mean in runs[0]:
        row = out.setdefault(f"{mean} | {rule}", {})
        row[measure] = _estimate([(run[rule, measure, mean], None) for run in runs], measure, mean)
        for other in ("argmax", "RankSEG"):
            if other != rule:
                pairs = [(run[rule, measure, mean], run[other, measure, mean]) for run in runs]
                row[f"{measure} above {other}"] = _estimate(pairs, measure, mean)
    return out


def _estimate(
    pairs: list[tuple[np.ndarray, np.ndarray | None]], measure: str, mean: str
) -> Estimate:
    """Return the mean score of counts, or of their difference to other counts."""

    def value(of: np.ndarray, other: np.ndarray | None, keep: np.ndarray | slice) -> float:
        score = mean_score(of[keep], measure, mean)
        return score if other is None else score - mean_score(other[keep], measure, mean)

    if len(pairs) > 1:
        return estimate([value(*pair, slice(None)) for pair in pairs])
    n = len(pairs[0][0])
    parts = np.array([value(*pairs[0], np.arange(n) != k) for k in range(n)])
    error = np.sqrt((n - 1) / n * np.sum((parts - parts.mean()) ** 2))  # the jackknife
    return Estimate(value(*pairs[0], slice(None)), float(error))


def main() -> None:
    given = arguments(__doc__.splitlines()[0], repeats=5)
    torch.set_num_threads(1)
    tables, data, settings = [], {}, {}
    sources: dict[str, list[tuple[list[Image], list[Image]]]] = {}
    for n in (5, 12):
        seeds = range(given.repeats)
        sources[f"scenes of {n} classes"] = [networks(n, seed, given.quick) for seed in seeds]
    images = photographs(given.quick)
    sources["MSRC-21"] = [(images[1::2], images[::2]), (images[::2], images[1::2])]
    for source, pairs in sources.items():
        spent: dict[str, list[float]] = {}
        runs = []
        for k, (fit, asked) in enumerate(progress(pairs, source)):
            found, settings[f"{source}, {k}"] = evaluate(fit, asked, spent)
            runs.append(found)
        if source == "MSRC-21":  # two halves of the same images
            runs = [{key: np.concatenate([run[key] for run in runs]) for key in runs[0]}]
        found = compared(runs)
        columns = ["IoU", "IoU above argmax", "IoU above RankSEG"]
        columns += [name.replace("IoU", "Dice") for name in columns]
        table = Table(source, ["mean over", "rule", *columns, "ms"])
        for key, row in found.items():
            mean, rule = key.split(" | ")
            cells = [row[c].show() if c in row else "" for c in columns]
            ms = float(np.mean(spent[f"{rule} | {mean}"]))
            table.rows.append([mean, rule, *cells, f"{ms:.1f}"])
            data[f"{source} | {key}"] = {**row, "milliseconds": ms}
        tables.append(table)
    report(
        __file__,
        "Label maps of exclusive classes",
        tables,
        choices={
            "scenes": "the networks trained with cross-entropy and the images of class_losses.py; "
            "± is a standard error over seeds, of the paired differences too",
            "MSRC-21": "59 validation images at every second row and column, by the classifier of "
            "segmentation.py; settings from the other half; ± by the jackknife over images",
            "calibration": "one temperature, for all rules",
            "prior-corrected argmax": f"p / prior^t, t of {', '.join(map(str, POWERS))}",
            "RankSEG": "rankseg's RMA with output_mode='multiclass', its pruning of "
            f"{', '.join(map(str, PRUNINGS))}",
            "presence": "logistic regression on the logits of the mean and the largest p; "
            "classes='present' for the classes in the truth",
            "settings": "by the measure and mean of the figure, on other images",
            "void": "left out of the scores, but not of the rules",
            "ms": "processor time per image on one thread, for IoU",
        },
        data={"tables": data, "settings": settings},
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
