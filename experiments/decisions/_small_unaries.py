"""Class probabilities of MSRC-21 images by a smaller version of the classifier of ``msrc21``.

The full classifier takes eleven minutes; this one takes about two, and its answers are cached.
"""

from __future__ import annotations

import numpy as np

from experiments.msrc21._two_classifiers import Effort, Unaries
from experiments.shared.msrc import cached, image, names, recall, store
from experiments.shared.report import progress

TRAINED_ON = 92  # every third of the 276 training images


def effort(seed: int, *, quick: bool) -> Effort:
    """Return an effort between the quick run and the full run of ``msrc21/unaries.py``.

    With ``quick`` it is much less.
    """
    if quick:
        return Effort(images=18, textons=20, points=100, epochs=3, trees=4, seed=seed, jobs=1)
    return Effort(images=TRAINED_ON, textons=60, points=300, epochs=8, trees=15, seed=seed, jobs=1)


def probabilities(wanted: list[str], seed: int, *, quick: bool) -> dict[str, np.ndarray]:
    """Return probabilities (rows, columns, 21) at cells of 2 x 2 pixels, for unseen images."""
    kind = f"small_unaries_{seed}"
    if not quick and all(cached(kind, name).exists() for name in wanted):
        return {name: recall(kind, name).astype(np.float64) for name in wanted}
    spent = effort(seed, quick=quick)
    train = names("train")
    model = Unaries(train[:: len(train) // spent.images][: spent.images], spent)
    found = {}
    for name in progress(wanted, "prediction"):
        found[name] = model.predict(image(name))[1].astype(np.float16).astype(np.float64)
        if not quick:
            store(kind, name, found[name].astype(np.float16))
    return found
