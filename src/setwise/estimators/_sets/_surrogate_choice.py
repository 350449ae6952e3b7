"""The choice of the surrogate that a fit minimises."""

from __future__ import annotations

from setwise._foundation._arguments import did_you_mean
from setwise.losses import Loss, get
from setwise.losses._parts import decomposition
from setwise.losses._scoring._layout import Arrangement
from setwise.surrogates import DecomposedHinge, LovaszHinge, Surrogate, names
from setwise.surrogates import get as get_surrogate


def own_loss(surrogate: str | Surrogate, loss: Loss | str) -> Loss:
    """Return the loss of a fit: that of a surrogate object, otherwise the given one.

    The default "jaccard" is ignored if the surrogate has its own loss.
    """
    if isinstance(surrogate, Surrogate):
        left = isinstance(loss, str) and loss == "jaccard"
        return get_surrogate(surrogate, None if left else loss).loss
    return get(loss)


def first_surrogate(surrogate: str | Surrogate, loss: Loss | str) -> Surrogate:
    """Return the surrogate before the sets are known; "auto" may change it later (``settled``)."""
    meant = own_loss(surrogate, loss)
    if isinstance(surrogate, str) and surrogate == "auto":
        return LovaszHinge(meant) if meant.is_submodular else DecomposedHinge(meant)
    if isinstance(surrogate, str) and surrogate not in names():
        raise ValueError(
            f"surrogate must be 'auto' or one of {', '.join(names())}, got {surrogate!r}"
            f"{did_you_mean(surrogate, ['auto', *names()])}"
        )
    if isinstance(surrogate, str) and surrogate == "lovasz" and meant.is_submodular is False:
        raise _not_submodular(meant)
    return get_surrogate(surrogate, meant)


def settled(surrogate: Surrogate, named: str | Surrogate, sets: Arrangement) -> Surrogate:
    """Return the surrogate for these sets, whose set functions may have further properties.

    Parameters
    ----------
    surrogate : Surrogate
        The result of ``first_surrogate``.
    named : str or Surrogate
        The argument of the user.
    sets : Arrangement
    """
    loss = surrogate.loss
    if not isinstance(named, str) or named not in ("auto", "lovasz"):
        return surrogate
    if loss.is_submodular is None:
        functions = map(loss.function_of, sets.distinct(loss._key))
        known = {function.is_submodular for function in functions}
        if named == "lovasz" and False in known:
            raise _not_submodular(loss)
        if known == {True}:
            return LovaszHinge(loss)
    if isinstance(surrogate, DecomposedHinge):
        _require_parts(loss, sets)
    return surrogate


def _require_parts(loss: Loss, sets: Arrangement) -> None:
    """Raise an error unless the loss can be decomposed on the largest set."""
    plain = loss._unscaled()[0]
    if plain._traits.has_closed_parts:
        return
    truth = max(sets.distinct(loss._key), key=len)
    plain.function_of(truth)  # this raises an error for sets that the loss does not support
    try:
        decomposition(plain, truth)
    except ValueError as error:
        raise ValueError(
            f"surrogate must be named for {loss!r}, which is not known to be submodular and cannot "
            f"be decomposed for {len(truth)} elements, got 'auto': give 'lovasz' if it is "
            "submodular, else 'slack', 'margin' or 'hinge'"
        ) from error


def _not_submodular(loss: Loss) -> ValueError:
    return ValueError(
        f"surrogate must be 'auto', 'decomposed', 'slack', 'margin' or 'hinge' for {loss!r}, which "
        "is not submodular, got 'lovasz'"
    )
