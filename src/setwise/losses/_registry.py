"""Losses by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from setwise._foundation._arguments import did_you_mean
from setwise.losses._base import Loss
from setwise.losses._cardinality import Exponential, FaceTrack
from setwise.losses._concave import TruncatedModular
from setwise.losses._early import EarlyDetection
from setwise.losses._modular import Hamming
from setwise.losses._ratio import Dice, FBeta, Jaccard

_LOSSES: dict[str, Callable[[], Loss]] = {
    "dice": Dice,
    "early_detection": EarlyDetection,
    "exponential": Exponential,
    "f1": Dice,
    "f_beta": FBeta,
    "face_track_1": partial(FaceTrack, 1),
    "face_track_2": partial(FaceTrack, 2),
    "face_track_3": partial(FaceTrack, 3),
    "face_track_4": partial(FaceTrack, 4),
    "hamming": Hamming,
    "iou": Jaccard,
    "jaccard": Jaccard,
    "truncated_modular": TruncatedModular,
}


def names() -> list[str]:
    """Return the names of losses, which are accepted wherever a loss is.

    Examples
    --------
    >>> import setwise as sw
    >>> "jaccard" in sw.losses.names()
    True
    """
    return sorted(_LOSSES)


def get(loss: str | Loss) -> Loss:
    """Return the loss of a name, with its default parameters. A loss is returned unchanged.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.losses.get("f_beta")
    FBeta(beta=1)
    """
    if isinstance(loss, Loss):
        return loss
    given: object = loss
    if isinstance(given, type) and issubclass(given, Loss):
        raise TypeError(
            f"loss must be a Loss or a name, got a class: did you mean {given.__name__}()?"
        )
    if not isinstance(loss, str):
        raise TypeError(f"loss must be a Loss or a name, got {type(loss).__name__}")
    if loss not in _LOSSES:
        near = did_you_mean(loss, names())
        raise ValueError(f"loss must be one of {', '.join(names())}, got {loss!r}{near}")
    return _LOSSES[loss]()
