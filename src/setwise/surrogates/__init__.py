"""Convex surrogates of set losses: value and gradient with respect to the scores."""

from setwise.surrogates._base import Properties, Surrogate
from setwise.surrogates._decomposed import DecomposedHinge
from setwise.surrogates._lovasz import LovaszHinge
from setwise.surrogates._margin import MarginRescaling
from setwise.surrogates._registry import get, names
from setwise.surrogates._slack import SlackRescaling

__all__ = [
    "DecomposedHinge",
    "LovaszHinge",
    "MarginRescaling",
    "Properties",
    "SlackRescaling",
    "Surrogate",
    "get",
    "names",
]
