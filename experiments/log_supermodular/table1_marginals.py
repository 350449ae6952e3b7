"""Log-supermodular paper, Table 1: marginals and labellings on MSRC-21.

    python experiments/log_supermodular/table1_marginals.py [--quick]

The script needs the cache that msrc21/unaries.py and msrc21/superpixels.py fill. All inference is
cached too, so that an interrupted run can be resumed. The first tables are for the 59 validation
images with unaries trained here, the last for the four test images with TextonBoost's.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.model_selection import KFold

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.log_supermodular import _printed_table1
from experiments.log_supermodular._measures import evaluate, measure
from experiments.log_supermodular._models import (
    ALPHA,
    BETA_1,
    BETA_2,
    MODELS,
    PRICE,
    ROBUST_POWER,
    THETA,
    TRUNCATION,
    Setting,
    grid,
)
from experiments.log_supermodular._posterior import (
    LIMITS,
    SEARCH_TOLERANCE,
    TOLERANCE,
    search_scores,
)
from experiments.shared.msrc import BANDWIDTHS, FEW, names, scene
from experiments.shared.report import Estimate, Table, arguments, beside, parallel, report

FOLDS = 5
SEARCHED = 2  # every second image takes part in the choice of settings
STEPS = {"PAIR": 2}  # the other models are searched on images a quarter as wide and high
STRENGTHS = ((0.9, 5.0), (0.8, 25.0), (0.9, 25.0), (0.8, 50.0), (0.9, 50.0))
BORROWED = {"BP PAIR": "PAIR", "MF PAIR": "PAIR"}


def best_setting(scores: dict[Setting, np.ndarray], train: np.ndarray) -> Setting:
    """Return the setting with the highest mean accuracy over the training images, or the first tie.

    ``scores`` maps a setting to accuracies and cross entropies, shape (images, 2).
    """
    return max(scores, key=lambda setting: scores[setting][train, 0].mean())


def score_grid(
    name: str, settings: list[Setting], images: list[str], jobs: int
) -> dict[Setting, np.ndarray]:
    """Return accuracies and cross entropies, shape (images, 2), of every setting."""
    task = partial(search_scores, name=name, settings=settings, step=STEPS.get(name, 4))
    table = [scores for _, scores in parallel(task, images, f"search {name}", jobs)]
    return {setting: np.array([row[k] for row in table]) for k, setting in enumerate(settings)}


def choose(
    images: list[str], trains: list[np.ndarray], jobs: int
) -> tuple[dict[str, list[Setting]], dict[str, dict[Setting, np.ndarray]]]:
    """Choose the setting of each model for each fold; return it with all scores of the search."""
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


def tables(
    measures: dict[str, dict[str, object]], setting_of: dict[str, str], title: str, paper: bool
) -> list[Table]:
    """Return tables of areas, divergences, and accuracies with seconds."""
    head = ["model"]
    for bandwidth in BANDWIDTHS:
        head += [f"{bandwidth}, paper", f"{bandwidth}, ours"] if paper else [str(bandwidth)]
    made = []
    for key, numbers, words, digits in (
        (
            "area",
            _printed_table1.AREA,
            "area under the mean ROC curve, by bandwidth of the trimap",
            4,
        ),
        (
            "divergence",
            _printed_table1.DIVERGENCE,
            "mean KL divergence, by bandwidth of the trimap",
            2,
        ),
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
        accuracy, error, seconds = _printed_table1.ACCURACY[name]
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
        images = [image for image in images[:FEW] if scene(image).trimaps[0].any()][:2]
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
        made.append(by_strength(list(settings), given.jobs))
        content["textonboost"] = second
    report(
        __file__,
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
    """Return the pairwise rows, one group of images per chosen pairwise setting.

    The setting determines how confident the model is. Areas are computed from pooled pixels, so
    images whose settings differ are not comparable.
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


def by_strength(images: list[str], jobs: int) -> Table:
    """Return 3-LAYER with TextonBoost's unaries at the paper's own strengths."""
    table = Table(
        "Four test images, TextonBoost's unaries: 3-LAYER by alpha and beta_2, none chosen",
        [
            "setting",
            *(f"{words}, {h}" for words in ("area", "KL") for h in BANDWIDTHS),
            "mean of images",
            "more than UNARY",
        ],
    )
    tasks = [{image: {"3-LAYER": setting} for image in images} for setting in STRENGTHS]
    task = partial(measure, "3-LAYER", unaries="textonboost")
    for settings, values in parallel(task, tasks, "strengths", jobs):
        numbers = [f"{x:.4f}" for x in values["area"]] + [f"{x:.2f}" for x in values["divergence"]]
        numbers += [values["accuracy"].show(2), values["gain"].show(2)]
        table.rows.append([_show(settings[images[0]]["3-LAYER"]), *numbers])
    return table


def search_table(scored: dict[str, dict[Setting, np.ndarray]]) -> Table:
    """Return the mean accuracy of every setting over all images of the search, which are small."""
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
