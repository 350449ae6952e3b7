"""Conformal prediction: masks, label sets and lists whose expected error on new data is bounded."""

import os
from typing import Any

from setwise.conformal._calibrated import Conformal, read_file
from setwise.conformal._labels import ConformalLabels
from setwise.conformal._lists import ConformalLists
from setwise.conformal._masks import ConformalMasks
from setwise.decisions._risk_control import control_risk

__all__ = [
    "ConformalLabels",
    "ConformalLists",
    "ConformalMasks",
    "control_risk",
    "load",
]

_KINDS: dict[str, type[Conformal]] = {
    kind.__name__: kind for kind in (ConformalLabels, ConformalLists, ConformalMasks)
}


def load(path: str | os.PathLike[str], estimator: Any = None) -> Any:
    """Return a calibrated predictor from the JSON file that its ``save`` wrote.

    Parameters
    ----------
    path : str or path
        The file. It holds only numbers and words, so a file from an unknown source cannot run code.
    estimator : object, optional
        The function or fitted classifier of the predictor, which is not in the file. It must be the
        one that was calibrated, because the guarantee holds for its predictions only.

    Returns
    -------
    ConformalMasks, ConformalLabels or ConformalLists

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import setwise as sw
    >>> maps = np.linspace(0.0, 1.0, 60).reshape(20, 3)
    >>> model = sw.conformal.ConformalMasks(alpha=0.2).conformalize(maps, maps > 0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "masks.json")
    ...     model.save(file)
    ...     again = sw.conformal.load(file)
    >>> again.controls_["outer"].level == model.controls_["outer"].level
    True
    """
    return read_file(path, _KINDS, estimator)
