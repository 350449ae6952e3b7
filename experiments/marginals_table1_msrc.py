"""Log-supermodular paper, Table 1: marginals and labellings on MSRC-21.

    python experiments/marginals_table1_msrc.py [--quick]

Needs the cache that msrc_unaries.py and msrc_superpixels.py fill. All inference is kept there too,
so that a run that was broken off goes on. The first tables are for the 59 validation images with
unaries trained here, the last for the four test images with TextonBoost's.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

import _printed
import numpy as np
from _models import (
    ALPHA,
    BETA_1,
    BETA_2,
    MODELS,
    PRICE,
    ROBUST_POWER,
    THETA,
    TRUNCATION,
    Setting,
    cross_entropy,
    grid,
)
from _msrc import BANDWIDTHS, names, scene
from _posterior import LIMITS, SEARCH_TOLERANCE, TOLERANCE, WIDEST, posterior, search_scores
from _report import Estimate, Table, arguments, beside, estimate, parallel, report
from _roc import mean_roc
from sklearn.model_selection import KFold

FOLDS = 5
SEARCHED = 2  # every second image takes part in the choice of settings
STEPS = {"PAIR": 2}  # the others are searched at a quarter of the size
BORROWED = {"BP PAIR": "PAIR", "MF PAIR": "PAIR"}


def best_setting(scores: dict[Setting, np.ndarray], train: np.ndarray) -> Setting:
    """The setting with the highest mean accuracy over the training images; the first of equals.

    ``scores`` maps a setting to accuracies and cross entropies, shape (images, 2).
    """
    return max(scores, key=lambda setting: scores[setting][train, 0].mean())


def score_grid(
    name: str, settings: list[Setting], images: list[str], jobs: int
) -> dict[Setting, np.ndarray]:
    """Accuracies and cross entropies, shape (images, 2), of every setting."""
    task = partial(search_scores, name=name, settings=settings, step=STEPS.get(name, 4))
    table = [scores for _, scores in parallel(task, images, f"search {name}", jobs)]
    return {setting: np.array([row[k] for row in table]) for k, setting in enumerate(settings)}


def choose(
    images: list[str], trains: list[np.ndarray], jobs: int
) -> tuple[dict[str, list[Setting]], dict[str, dict[Setting, np.ndarray]]]:
    """The setting of each model for each fold, and all scores of the search."""
    chosen: dict[str, list[Setting]] = {"UNARY": [()] * len(trains)}
    scored: dict[str, dict[Setting, np.ndarray]] = {}
    for name, model in MODELS.items():
        if name == "UNARY" or name in BORROWED:
            continue
        fixed = chosen["PAIR"] if model.pairwise and model.layers else [()] * len(trains)
        grids = [grid(name, pairwise) for pairwise in fixed]
        every = list(dict.fromkeys(setting for settings in grids for setting in settings))
        scores = scored[name] = score_grid(name, every, images, jobs)
        chosen[name] = [
            best_setting({setting: scores[setting] for setting in settings}, train)
            for settings, train in zip(grids, trains, strict=True)
        ]
    for name, source in BORROWED.items():
        chosen[name] = chosen[source]
    return chosen, scored


def all_models(task: tuple[str, dict[str, Setting]], unaries: str) -> None:
    """Inference by every model in one image; the cache holds what comes out."""
    image, settings = task
    for name in MODELS:
        posterior(image, unaries, name, settings[name])


def measure(name: str, settings: dict[str, dict[str, Setting]], unaries: str) -> dict[str, object]:
    """Areas, divergences, accuracies and seconds of one model over all images."""
    posts = [posterior(image, unaries, name, of[name]) for image, of in settings.items()]
    plain = [posterior(image, unaries, "UNARY", ()) for image in settings]
    scenes = [scene(image, unaries) for image in settings]
    known = [int((s.truth >= 0).sum()) for s in scenes]
    accuracies = [100 * post.accuracy for post in posts]
    gain = [100 * (a.accuracy - b.accuracy) for a, b in zip(posts, plain, strict=True)]
    result: dict[str, object] = {
        "accuracy": estimate(accuracies),
        "gain": estimate(gain),
        "pooled": float(np.average(accuracies, weights=known)),
        "accuracies": accuracies,
        "seconds": estimate([post.seconds for post in posts]),
        "iterations": float(np.mean([post.n_iter for post in posts])),
        "converged": sum(post.converged for post in posts),
    }
    if MODELS[name].robust:
        return result
    log_p = np.concatenate([post.log_p for post in posts])
    truth = np.concatenate([s.truth[s.trimaps[WIDEST]] for s in scenes])
    loss = cross_entropy(log_p, truth)
    rocs, losses = [], []
    for bandwidth in BANDWIDTHS:
        inside = np.concatenate([s.trimaps[bandwidth][s.trimaps[WIDEST]] for s in scenes])
        rocs.append(mean_roc(log_p[inside], truth[inside]))
        losses.append(float(loss[inside].mean()) if inside.any() else float("nan"))
    result["area"] = [roc.area for roc in rocs]
    result["curves"] = [roc.curve.round(5) for roc in rocs]
    result["labels"] = [roc.labels for roc in rocs]
    result["divergence"] = losses
    return result


def evaluate(
    settings: dict[str, dict[str, Setting]], unaries: str, jobs: int
) -> dict[str, dict[str, object]]:
    """Inference in all images, and the measures of every model."""
    for _ in parallel(partial(all_models, unaries=unaries), list(settings.items()), "images", jobs):
        pass
    task = partial(measure, settings=settings, unaries=unaries)
    return dict(parallel(task, list(MODELS), "measures", jobs))


def tables(
    measures: dict[str, dict[str, object]], setting_of: dict[str, str], title: str, paper: bool
) -> list[Table]:
    """Areas, divergences, and accuracies with seconds."""
    head = ["model"]
    for bandwidth in BANDWIDTHS:
        head += [f"{bandwidth}, paper", f"{bandwidth}, ours"] if paper else [str(bandwidth)]
    made = []
    for key, numbers, words, digits in (
        ("area", _printed.AREA, "area under the mean ROC curve, by bandwidth of the trimap", 4),
        ("divergence", _printed.DIVERGENCE, "mean KL divergence, by bandwidth of the trimap", 2),
    ):
        table = Table(f"{title}: {words}", head)
        for name, values in measures.items():
            if key not in values:
                continue
            row = [name]
            for printed, ours in zip(numbers[name], values[key], strict=True):
                cells = beside(Estimate(printed), Estimate(ours), digits)
                row += cells if paper else cells[1:]
            table.rows.append(row)
        made.append(table)
    head = ["model", "mean of images", "more than UNARY", "of all pixels", "CPU s", "settings"]
    if paper:
        head = [head[0], "paper", "mean of images", *head[2:4], "s, paper", "CPU s, ours"]
        head.append("settings (times chosen)")
    table = Table(f"{title}: pixel accuracy in per cent, and seconds an image", head)
    for name, values in measures.items():
        accuracy, error, seconds = _printed.ACCURACY[name]
        cells = beside(Estimate(accuracy, error), values["accuracy"], 2)
        gain = "–" if name == "UNARY" else values["gain"].show(2)
        times = ["–" if seconds is None else f"{seconds:.2f}", f"{values['seconds'].mean:.2f}"]
        skip = 0 if paper else 1
        pooled = f"{values['pooled']:.2f}"
        table.rows.append([name, *cells[skip:], gain, pooled, *times[skip:], setting_of[name]])
    made.append(table)
    return made


def main() -> None:
    given = arguments("Log-supermodular paper, Table 1", repeats=1)
    images = names("validation")
    if given.quick:
        images = [image for image in images if scene(image).trimaps[0].any()][:2]
    folds = KFold(min(FOLDS, len(images)), shuffle=True, random_state=given.seed)
    parts = list(folds.split(images))
    fold_of = {images[k]: fold for fold, (_, test) in enumerate(parts) for k in test}
    searched = images if given.quick else images[::SEARCHED]
    trains = [
        np.array([k for k, image in enumerate(searched) if fold_of[image] != fold])
        for fold in range(len(parts))
    ]
    chosen, scored = choose(searched, trains, given.jobs)
    setting_of_image = {
        image: {name: chosen[name][fold_of[image]] for name in MODELS} for image in images
    }
    measures = evaluate(setting_of_image, "trained", given.jobs)
    counts = {name: Counter(chosen[name]) for name in MODELS}
    times_chosen = {
        name: "; ".join(f"{_show(s)} ({n})" for s, n in count.most_common())
        for name, count in counts.items()
    }
    made = tables(measures, times_chosen, f"{len(images)} validation images", True)
    made.append(by_pairwise(setting_of_image, given.jobs))
    common = {name: count.most_common(1)[0][0] for name, count in counts.items()}
    content: dict[str, object] = {"validation": measures}
    if not given.quick:
        settings = dict.fromkeys(names("textonboost"), common)
        second = evaluate(settings, "textonboost", given.jobs)
        shown = {name: _show(setting) for name, setting in common.items()}
        made += tables(second, shown, "Four test images, TextonBoost's unaries", False)
        content["textonboost"] = second
    report(
        "marginals_table1_msrc",
        "Log-supermodular models, Table 1: MSRC-21",
        [*made, search_table(scored)],
        choices={
            "images": f"{len(images)} of the validation part; void pixels are in no measure",
            "seed": given.seed,
            "selection": f"{folds.n_splits} folds over the images; for each fold the "
            "setting with the highest mean pixel accuracy (full images, not trimaps) on the other "
            f"folds' images, of which every second is searched ({len(searched)} in all); the paper "
            "does not say by which quantity it chose",
            "grid": f"theta {THETA}, beta_1 {BETA_1}, alpha {ALPHA}, beta_2 {BETA_2}: a part of "
            "the paper's and, below 25, more than the paper's; pairwise settings of 2-LAYER-PAIR, "
            "BP, MF and ROBUST-PN are those chosen for PAIR in the same fold",
            "search": "on images half (PAIR) or a quarter (others) as wide and high, with beta_1 "
            f"and beta_2 scaled to match, float32, warm starts, tol {SEARCH_TOLERANCE:g}",
            "inference": f"whole images, tol {TOLERANCE:g}; projection in float32; belief "
            "propagation and mean field in float64; at most "
            + ", ".join(f"{limit} passes of {method}" for method, limit in LIMITS.items()),
            "ROBUST-PN": f"three layers and Potts, truncation {TRUNCATION} of a region's n pixels, "
            f"price {PRICE} times n^{ROBUST_POWER:g}; expansion moves without a bound",
            "area": "pixels of all images pooled, one label against all others, mean over the "
            "labels that occur in the trimap",
            "KL": "-log q(true label), mean over the pooled pixels, nothing cut off",
            "seconds": "processor time on one thread (the paper: four threads, wall clock), "
            "making the field not counted; with bounds on log Z from both sides",
        },
        notes=[
            f"{name}: {values['converged']} of {len(images)} images came to the end, "
            f"{values['iterations']:.1f} passes in the mean"
            for name, values in measures.items()
            if name != "UNARY"
        ],
        data={
            **content,
            "settings": {image: setting_of_image[image] for image in images},
            "common": common,
            "search": {
                name: [[list(s), *_finite(values.mean(axis=0))] for s, values in scores.items()]
                for name, scores in scored.items()
            },
        },
        quick=given.quick,
    )


def by_pairwise(settings: dict[str, dict[str, Setting]], jobs: int) -> Table:
    """The pairwise rows for the images of each pairwise setting: how sure they are depends on it.

    The area is of pooled pixels, and images of different settings are on different scales.
    """
    table = Table(
        "Pairwise rows apart by setting: area and KL on the trimap of bandwidth 5",
        ["setting", "images", "model", "area", "KL", "accuracy, mean of images"],
    )
    for setting in dict.fromkeys(of["PAIR"] for of in settings.values()):
        part = {image: of for image, of in settings.items() if of["PAIR"] == setting}
        task = partial(measure, settings=part, unaries="trained")
        rows = ["UNARY", "PAIR", "BP PAIR", "MF PAIR"]
        for name, values in parallel(task, rows, "measures", jobs):
            numbers = [f"{values['area'][1]:.4f}", f"{values['divergence'][1]:.2f}"]
            shown = values["accuracy"].show(2)
            table.rows.append([_show(setting), str(len(part)), name, *numbers, shown])
    return table


def search_table(scored: dict[str, dict[Setting, np.ndarray]]) -> Table:
    """The mean accuracy of every setting over all images, in the small images of the search."""
    title = "The search: mean pixel accuracy in per cent and mean KL over the images searched"
    table = Table(title, ["model", "setting", "accuracy", "KL"])
    for name, scores in scored.items():
        for setting, values in scores.items():
            accuracy, loss = values.mean(axis=0)
            cell = "–" if np.isnan(loss) else f"{loss:.3f}"
            table.rows.append([name, _show(setting), f"{100 * accuracy:.2f}", cell])
    return table


def _finite(values: np.ndarray) -> list[float | None]:
    return [float(x) if np.isfinite(x) else None for x in values]


def _show(setting: Setting) -> str:
    return ", ".join(f"{x:g}" for x in setting) or "–"


if __name__ == "__main__":
    main()
