"""Three layers of superpixels for MSRC-21, by mean shift with the paper's parameters.

    python experiments/msrc21/superpixels.py [--quick]

The script writes label maps to the cache, for the validation images and for the four test images
that have TextonBoost's unaries. It reports the sizes of the regions and how well they agree with
the true labels.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.msrc21._mean_shift import superpixels
from experiments.shared.msrc import FEW, LABELS, image, names, store, truth
from experiments.shared.regions import label_counts
from experiments.shared.report import Table, arguments, parallel, report

# Spatial bandwidth, range bandwidth and smallest size, as in Section 7 of the paper.
LAYERS = ((7, 4.0, 500), (7, 7.0, 300), (7, 10.0, 100))


def layers_of(name: str) -> tuple[np.ndarray, float]:
    """Return the layers (3, h, w) of an image, uint16, and the seconds they took."""
    start, pixels = time.process_time(), image(name)
    maps = [superpixels(pixels, *layer) for layer in LAYERS]
    return np.stack(maps).astype(np.uint16), time.process_time() - start


def best_hits(regions: np.ndarray, labels: np.ndarray) -> int:
    """Count correct pixels if each region had its most frequent true label; void is left out."""
    counts = label_counts(regions, labels, (int(regions.max()) + 1, LABELS))
    return int(counts.max(axis=1).sum())


def main() -> None:
    given = arguments("Superpixels for MSRC-21", repeats=1)
    chosen = [*names("validation"), *names("textonboost")]
    chosen = chosen[:FEW] if given.quick else chosen
    regions, hits = np.zeros((len(chosen), len(LAYERS))), np.zeros(len(LAYERS))
    pixels = labeled = 0
    seconds = []
    for k, (name, (layers, spent)) in enumerate(parallel(layers_of, chosen, "images", given.jobs)):
        labels = truth(name)
        regions[k] = [layer.max() + 1 for layer in layers]
        hits += [best_hits(layer, labels) for layer in layers]
        pixels, labeled = pixels + labels.size, labeled + int(np.sum(labels >= 0))
        seconds.append(spent)
        store("superpixels", name, layers)
    head = ["(s_p, s_r, m_r)", "regions an image", "least", "most", "mean size", "best accuracy"]
    table = Table("Layers of superpixels", head)
    for k, (spatial, color, least) in enumerate(LAYERS):
        count = regions[:, k]
        numbers = [f"{count.mean():.0f}", f"{count.min():.0f}", f"{count.max():.0f}"]
        numbers += [f"{pixels / count.sum():.0f}", f"{hits[k] / labeled:.3f}"]
        table.rows.append([f"({spatial}, {color:g}, {least})", *numbers])
    report(
        __file__,
        "MSRC-21: layers of superpixels",
        [table],
        choices={
            "data": f"{len(chosen)} images, validation and the four with TextonBoost's unaries",
            "method": "mean shift in place and L*u*v*, flat kernel, at most 20 moves; neighbours "
            "whose modes are within 1 are one region; then the smallest join the neighbour of the "
            "nearest colour until all have m_r pixels. The paper names no program and no colours",
            "chosen": "to join at 1, and no further fusing, with the best accuracy of four of "
            "these images in view",
            "best accuracy": "of the labelled pixels, if each region took its most frequent label",
        },
        notes=[f"{np.mean(seconds):.1f} s of processor time an image for the three layers"],
        data={"regions": regions, "best accuracy": hits / labeled, "seconds": seconds},
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
