"""Suggestions for misspelt names of arguments and of members of modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from setwise._foundation._arguments import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")

# Arguments of other libraries, with the equivalent or closest ones of this library.
_ELSEWHERE = {
    "class_weights": ("class_weight", "weight", "weights"),
    "group": ("groups", "sets"),
    "mode": ("sets", "activation", "kind", "per_class", "method"),
    "weight": ("share",),
}

# Names of losses in other libraries, with their equivalents here.
_LOSSES = {
    "Dice": "sw.losses.Dice(), in PyTorch sw.torch.SoftDiceLoss()",
    "FBeta": "sw.losses.FBeta(), in PyTorch sw.torch.TverskyLoss()",
    "Hamming": "sw.losses.Hamming()",
    "Jaccard": "sw.losses.Jaccard(), in PyTorch sw.torch.JaccardMetricLoss()",
    "Lovasz": "sw.surrogates.LovaszHinge('jaccard'), in PyTorch sw.torch.LovaszSoftmaxLoss()",
    "Tversky": "sw.losses.FBeta(), in PyTorch sw.torch.TverskyLoss()",
}
_LOSSES |= {"F1": _LOSSES["Dice"], "IoU": _LOSSES["Jaccard"]}


def absent(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """Return the error for an unknown member of a module, with a suggestion if one is near."""
    near = "" if name.startswith("_") else did_you_mean(name, known)
    spelt = {own.lower(): meant for own, meant in _LOSSES.items()}
    if (meant := spelt.get(name.lower().removesuffix("loss"))) is not None:
        near = f": did you mean {meant}?"
    # With the name given, the interpreter does not add its own hint.
    return AttributeError(f"module {module!r} has no attribute {name!r}{near}", name=name)


def hints_at_names(function: Callable[P, R]) -> Callable[P, R]:
    """Make the error of a function for an unknown argument suggest the nearest known one.

    The error names the called class, even if its constructor is that of a private base class.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            traceback = error.__traceback__
            if traceback is not None and traceback.tb_next is not None:
                raise  # the error comes from the function, not from the call
            known = [name for name in signature(function).parameters if name != "self"]
            unknown = [name for name in kwargs if name not in known]
            if not unknown:
                raise
            # A class may have its own message for an argument without an equivalent.
            own = getattr(args[0], "_meant", {}).get(unknown[0]) if args else None
            near = f": {own}" if own else _nearest(unknown[0], known)
            # From Python 3.13 on the interpreter adds its own hint.
            words = str(error).partition(". Did you mean")[0]
            owner, dot, name = function.__qualname__.rpartition(".")
            if dot and args and not owner.endswith("<locals>"):
                words = words.replace(f"{owner}.{name}(", f"{type(args[0]).__name__}.{name}(")
            raise TypeError(f"{words}{near}") from None

    return call


def _nearest(word: str, known: list[str]) -> str:
    """Return the end of the error message, which suggests an argument if one is near."""
    same = [name for name in _ELSEWHERE.get(word, ()) if name in known]
    return f": did you mean {same[0]!r}?" if same else did_you_mean(word, known)
