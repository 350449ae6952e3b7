"""Losses as words: what a custom operator can take and a compiled graph can hold."""

from __future__ import annotations

from itertools import count
from weakref import WeakKeyDictionary, WeakValueDictionary

from setwise.losses import Loss, get

_by_word: dict[str, Loss] = {}
_others: WeakValueDictionary[str, Loss] = WeakValueDictionary()
_words: WeakKeyDictionary[Loss, str] = WeakKeyDictionary()
_numbers = count()


def word_of(loss: Loss | str) -> str:
    """A word that stands for the loss as long as somebody holds it; for a name, for ever."""
    if isinstance(loss, str):
        if loss not in _by_word:
            _by_word[loss] = get(loss)
        return loss
    checked = get(loss)
    word = _words.get(checked)
    if word is None:
        word = f"{checked!r} #{next(_numbers)}"
        _words[checked] = word
        _others[word] = checked
    return word


# What torch.compiler.assume_constant_result does, without loading the compiler with the library.
word_of._dynamo_marked_constant = True  # type: ignore[attr-defined]


def loss_of(word: str) -> Loss:
    """The loss that a word stands for."""
    return _by_word[word] if word in _by_word else _others[word]
