"""Losses: ground truth -> a set function of the mistakes."""

from typing import Any

from setwise.losses._base import Loss
from setwise.losses._cardinality import CardinalityLoss, Exponential, FaceTrack
from setwise.losses._concave import ConcaveLoss, ItemsetLoss, TruncatedModular
from setwise.losses._counts import CountsLoss
from setwise.losses._early import EarlyDetection
from setwise.losses._modular import Hamming
from setwise.losses._ratio import Dice, FBeta, Jaccard
from setwise.losses._registry import get, names
from setwise.losses._scoring._scorer import scorer
from setwise.losses._set import SetLoss

__all__ = [
    "CardinalityLoss",
    "ConcaveLoss",
    "CountsLoss",
    "Dice",
    "EarlyDetection",
    "Exponential",
    "FBeta",
    "FaceTrack",
    "Hamming",
    "ItemsetLoss",
    "Jaccard",
    "Loss",
    "SetLoss",
    "TruncatedModular",
    "get",
    "names",
    "scorer",
]


def __getattr__(name: str) -> Any:
    from setwise._foundation._keywords import absent

    raise absent("setwise.losses", name, __all__)
