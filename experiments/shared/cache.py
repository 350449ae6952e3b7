"""The cache of results that take long to compute, in a folder that git ignores.

The environment variable ``SETWISE_CACHE`` names the folder, by default ``experiments/cache``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np


def cache_folder() -> Path:
    """Return the folder of the cache."""
    default = Path(__file__).resolve().parents[1] / "cache"
    return Path(os.environ.get("SETWISE_CACHE", default))


def keep(path: Path, **arrays: Any) -> None:
    """Write arrays to a .npz file, which never exists in part, even if the run is interrupted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part.npz")
    np.savez_compressed(part, **arrays)
    part.rename(path)
