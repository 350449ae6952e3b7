"""Surrogates by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from setwise._foundation._arguments import did_you_mean
from setwise._foundation._base_classes import Immutable
from setwise.losses import Hamming, Loss
from setwise.losses import get as get_loss
from setwise.surrogates._base import Surrogate
from setwise.surrogates._decomposed import DecomposedHinge
from setwise.surrogates._lovasz import LovaszHinge
from setwise.surrogates._margin import MarginRescaling
from setwise.surrogates._slack import SlackRescaling


def _hinge(loss: Loss) -> LovaszHinge:
    """Return the sum of the hinge losses of the elements, for any loss."""
    return LovaszHinge(Hamming())


_SURROGATES: dict[str, Callable[..., Surrogate]] = {
    "lovasz": LovaszHinge,
    "margin": MarginRescaling,
    "slack": SlackRescaling,
    "decomposed": DecomposedHinge,
    "hinge": _hinge,
}


def names() -> list[str]:
    """Return the names of surrogates, which are accepted wherever a surrogate is.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.surrogates.names()
    ['decomposed', 'hinge', 'lovasz', 'margin', 'slack']
    """
    return sorted(_SURROGATES)


def get(surrogate: str | Surrogate, loss: Loss | str | None = None, **options: Any) -> Surrogate:
    """Return the surrogate of a name for a loss. A surrogate is returned unchanged.

    Parameters
    ----------
    surrogate : str or Surrogate
        One of ``names()``; "hinge" is the sum of the hinge losses of the elements, for any loss.
    loss : Loss or str, optional
        Required with a name. With a surrogate it may be omitted, or must be the surrogate's own.
    **options
        Options of the named surrogate: ``scale`` of "margin", ``case`` of "lovasz", ``maximizer``
        of "margin" and "slack".

    Examples
    --------
    >>> import setwise as sw
    >>> sw.surrogates.get("margin", "dice", scale=0.5)
    MarginRescaling(Dice(), scale=0.5)
    """
    if isinstance(surrogate, Surrogate):
        if options:
            raise TypeError(
                f"{next(iter(options))} must be left out with a surrogate that is made already, "
                f"got {surrogate!r}"
            )
        if loss is not None and not is_same(get_loss(loss), surrogate.loss):
            raise ValueError(
                f"loss must be left out or be that of the surrogate, {surrogate.loss!r}, "
                f"got {get_loss(loss)!r}"
            )
        return surrogate
    if not isinstance(surrogate, str):
        raise TypeError(f"surrogate must be a Surrogate or a name, got {type(surrogate).__name__}")
    if surrogate not in _SURROGATES:
        near = did_you_mean(surrogate, names())
        raise ValueError(f"surrogate must be one of {', '.join(names())}, got {surrogate!r}{near}")
    if loss is None:
        raise TypeError(f"loss must be given with the name of a surrogate, got None, {surrogate!r}")
    return _SURROGATES[surrogate](get_loss(loss), **options)


def is_same(one: object, other: object) -> bool:
    """Return whether two losses, or two of their parameters, have equal contents."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, Immutable) and isinstance(other, Immutable):
        return is_same(one._contents(), other._contents())
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(one[k], other[k]) for k in one)
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, partial) and isinstance(other, partial):  # ``partial`` compares by identity
        held = ((f.func, f.args, f.keywords) for f in (one, other))
        return is_same(*held)
    return bool(one == other)
