"""The multi-class sets of StructBoost's tables, and their splits."""

from __future__ import annotations

import gzip

import numpy as np

from experiments.shared.data import Dataset, Sample, require, standardized, svmlight, usps

# Training and test files of multiclass/, or one file if only one part exists.
FILES = {
    "wine": ("wine.scale",),
    "glass": ("glass.scale",),
    "svmguide2": ("svmguide2.libsvm",),
    "svmguide4": ("svmguide4.libsvm",),
    "vowel": ("vowel", "vowel.t"),
    "dna": ("dna.scale", "dna.scale.t"),
    "segment": ("segment.scale",),
    "satimage": ("satimage.scale",),
    "pendigits": ("pendigits.scale", "pendigits.scale.t"),
    "mnist1000": ("mnist1000.scale",),
}


def multiclass(name: str) -> Sample:
    """Return all examples of a set, the official parts pooled: the paper splits at random."""
    if name == "usps":
        return usps().pooled()
    parts = FILES[name]
    dataset = svmlight(parts[0], parts[-1])
    return dataset.train if len(parts) == 1 else dataset.pooled()


def split(sample: Sample, seed: int) -> tuple[Sample, Sample, Sample]:
    """Split into half to train, a quarter to validate and a quarter to test, stratified by class.

    Features are standardised by the training part.
    """
    rng = np.random.default_rng(seed)
    part = np.empty(len(sample), np.int64)
    for c in np.unique(sample.y):
        rows = rng.permutation(np.flatnonzero(sample.y == c))
        bounds = np.floor((np.arange(len(rows)) + rng.random()) / len(rows) * 4 % 4)
        part[rows] = bounds
    train, validation, test = (
        sample.take(np.flatnonzero(chosen)) for chosen in (part < 2, part == 2, part == 3)
    )
    X = standardized(train.X, validation.X, test.X)
    return tuple(Sample(x, s.y) for x, s in zip(X, (train, validation, test), strict=True))


def hierarchical(name: str) -> tuple[Dataset, np.ndarray]:
    """Read ImCLEF07A or D: leaves as classes 0..k-1, and the parent of each node, leaves first.

    The root comes last, and its parent is -1.
    """
    parts, paths = [], set()
    for part in ("Train", "Test"):
        features, leaves = [], []
        with gzip.open(require("hierarchical", f"{name}_{part}.arff.gz"), "rt") as lines:
            for line in lines:
                if line.lower().startswith("@data"):
                    break
            for line in lines:
                if line.strip():
                    *values, path = line.strip().split(",")
                    features.append(values)
                    leaves.append(path.split("@")[-1])
        paths.update(leaves)
        parts.append((np.array(features, np.float64), leaves))
    classes = sorted(paths)
    inner = sorted({"/".join(p.split("/")[:k]) for p in classes for k in (1, 2)} - paths)
    nodes = [*classes, *inner]
    place = {node: k for k, node in enumerate(nodes)}
    parent = [place[n.rpartition("/")[0]] if "/" in n else len(nodes) for n in nodes]
    samples = [Sample(X, np.array([place[leaf] for leaf in y])) for X, y in parts]
    return Dataset(name, *samples, tuple(classes)), np.array([*parent, -1])
