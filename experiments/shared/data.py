"""Readers of the data sets that the experiments use.

The data sets are not part of the project. They are read from the folder that the environment
variable ``SETWISE_DATA`` names, by default ``../shared/data`` as seen from the repository. A script
whose data set is missing ends with one line that says so.
"""

from __future__ import annotations

import gzip
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from scipy.sparse import csr_matrix, issparse

REPOSITORY = Path(__file__).resolve().parents[2]

# An attribute's name may be quoted, and a quote inside it has a backslash before it.
_ATTRIBUTE = re.compile(r"@attribute\s+(?:'((?:[^'\\]|\\.)*)'|\"([^\"]*)\"|(\S+))", re.IGNORECASE)


def folder() -> Path:
    """Return the folder of the data sets, whether it exists or not."""
    return Path(os.environ.get("SETWISE_DATA", REPOSITORY.parent / "shared" / "data"))


def require(*parts: str) -> Path:
    """Return the path of a data file. End the script with one line if the file is missing."""
    path = folder().joinpath(*parts)
    if not path.exists():
        what = "/".join(parts)
        print(f"missing data: {what} (set SETWISE_DATA to its folder)", file=sys.stderr)
        raise SystemExit(77)  # exit status 77 means "skipped", as in automake
    return path


@dataclass(frozen=True, eq=False)
class Sample:
    """Features (n, d), an array or CSR, and targets: labels (n, p) in {0, 1}, or classes (n,)."""

    X: Any
    y: np.ndarray

    def __len__(self) -> int:
        return self.X.shape[0]

    def take(self, rows: np.ndarray) -> Sample:
        """Return the given examples, in the given order."""
        return Sample(self.X[rows], self.y[rows])


@dataclass(frozen=True, eq=False)
class Dataset:
    """An official split into training and test; ``labels`` names the columns or classes."""

    name: str
    train: Sample
    test: Sample
    labels: tuple[str, ...]

    def pooled(self) -> Sample:
        """Return training and test examples together, in that order."""
        parts = (self.train.X, self.test.X)
        if issparse(parts[0]):
            from scipy.sparse import vstack

            X = vstack(parts, format="csr")
        else:
            X = np.vstack(parts)
        return Sample(X, np.concatenate([self.train.y, self.test.y]))


def multilabel(name: str) -> Dataset:
    """Read a Mulan data set: corel5k, emotions, enron, medical, scene or yeast."""
    where = ("multilabel", name)
    tree = ElementTree.parse(require(*where, f"{name}.xml"))
    labels = tuple(node.attrib["name"] for node in tree.iter() if node.tag.endswith("label"))
    parts = []
    for part in ("train", "test"):
        names, values = read_arff(require(*where, f"{name}-{part}.arff.gz"))
        column = {attribute: j for j, attribute in enumerate(names)}
        of_labels = np.array([column[label] for label in labels])
        of_features = np.setdiff1d(np.arange(len(names)), of_labels)
        targets = values[:, of_labels]
        Y = np.asarray(targets.todense() if issparse(targets) else targets)
        parts.append(Sample(values[:, of_features], Y.astype(np.int64)))
    return Dataset(name, *parts, labels)


def usps() -> Dataset:
    """Read USPS: images of the digits 0 to 9, 16 x 16 pixels in [0, 1]; targets have shape (n,)."""
    with np.load(require("multiclass", "usps.npz")) as arrays:
        parts = [
            Sample(arrays[f"X_{part}"] / 2000.0, arrays[f"y_{part}"].astype(np.int64))
            for part in ("train", "test")
        ]
    return Dataset("usps", *parts, tuple("0123456789"))


def svmlight(train: str, test: str) -> Dataset:
    """Read LIBSVM text files of ``multiclass/``, named without .gz, such as pendigits.scale."""
    from sklearn.datasets import load_svmlight_files

    paths = [str(require("multiclass", f"{part}.gz")) for part in (train, test)]
    X, y, X_test, y_test = load_svmlight_files(paths, dtype=np.float64)
    parts = [Sample(a.toarray(), b.astype(np.int64)) for a, b in ((X, y), (X_test, y_test))]
    classes = tuple(str(c) for c in np.unique(parts[0].y))
    return Dataset(train.split(".")[0], *parts, classes)


def standardized(train: Any, *others: Any) -> list[np.ndarray]:
    """Standardise dense features by the means and deviations of the training part."""
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    return [(part - mean) / deviation for part in (train, *others)]


def read_arff(path: Path) -> tuple[list[str], Any]:
    """Return attribute names and values of a gzipped ARFF file: an array if dense, CSR if sparse.

    Every attribute must be numeric, or nominal with numbers for values.
    """
    names: list[str] = []
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            text = line.strip()
            if text.lower().startswith("@attribute"):
                names.append(_attribute_name(text))
            elif text.lower().startswith("@data"):
                break
        rows = [text for line in lines if (text := line.strip()) and not text.startswith("%")]
    if rows and rows[0].startswith("{"):
        return names, _sparse(rows, len(names))
    return names, np.array([row.split(",") for row in rows], dtype=np.float64)


def _attribute_name(line: str) -> str:
    found = _ATTRIBUTE.match(line)
    if found is None:
        raise ValueError(f"not an attribute line: {line!r}")
    quoted = found[1] if found[1] is not None else found[2]
    return found[3] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)


def _sparse(rows: list[str], columns: int) -> Any:
    starts, indices, values = [0], [], []
    for row in rows:
        for index, value in _entries(row):
            indices.append(index)
            values.append(value)
        starts.append(len(indices))
    return csr_matrix((values, indices, starts), shape=(len(rows), columns), dtype=np.float64)


def _entries(row: str) -> Iterator[tuple[int, float]]:
    for entry in row.strip("{} ").split(","):
        if entry.strip():
            index, value = entry.split()
            yield int(index), float(value)
