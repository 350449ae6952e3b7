"""Strings that stand for losses, which custom operators accept and compiled graphs can hold."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from setwise.losses import Loss, get
from setwise.torch._inputs._module import Module

F = TypeVar("F", bound=Callable[..., Any])

_by_word: dict[str, Loss] = {}
_others: WeakValueDictionary[str, Loss] = WeakValueDictionary()
_words: WeakKeyDictionary[Loss, str] = WeakKeyDictionary()
_numbers = count()


def constant(function: F) -> F:
    """Mark a function of losses and strings whose result a compiled graph may keep.

    It does the same as torch.compiler.assume_constant_result without loading the compiler.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


@constant
def word_of(loss: Loss | str) -> str:
    """Return a string for the loss, valid while the loss exists. A string is always valid.

    A string is returned unchanged.
    """
    if isinstance(loss, str):
        if loss not in _by_word and loss not in _others:
            _by_word[loss] = get(loss)
        return loss
    checked = get(loss)
    word = _words.get(checked)
    if word is None:
        word = f"{checked!r} #{next(_numbers)}"
        _words[checked] = word
        _others[word] = checked
    return word


def loss_of(word: str) -> Loss:
    """Return the loss of a string from ``word_of``."""
    loss = _by_word.get(word) or _others.get(word)
    return get(word) if loss is None else loss


class HoldsLoss(Module):
    """A module with a loss and its string; torch 2.11 compiles strings, but not objects."""

    def __init__(self, loss: Loss | str) -> None:
        super().__init__()
        self.loss = get(loss)
        self._word = word_of(self.loss)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A copy, and another process, have other strings.
        super().__setstate__(state)
        self._word = word_of(self.loss)
