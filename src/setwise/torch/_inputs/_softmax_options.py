"""The options of the losses of classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Literal

from setwise._foundation._arguments import did_you_mean
from setwise.torch._inputs._averages import Average, check_average
from setwise.torch._inputs._sets import (
    Reduction,
    check_buckets,
    check_flags,
    check_ignore,
    check_reduction,
)

Classes = Literal["present", "all"] | Sequence[int]


def read_classes(classes: object) -> Classes:
    """Return "present", "all", or a list of distinct classes."""
    if isinstance(classes, str):
        if classes not in ("present", "all"):
            raise ValueError(
                f"classes must be 'present', 'all' or a list of classes, got {classes!r}"
                f"{did_you_mean(classes, ('present', 'all'))}"
            )
        return classes  # type: ignore[return-value]
    as_list = getattr(classes, "tolist", None)
    plain = classes if as_list is None else as_list()
    if isinstance(plain, Mapping) or not isinstance(plain, Iterable):
        raise TypeError(
            f"classes must be 'present', 'all' or a list of classes, got {type(classes).__name__}"
        )
    given = list(plain)
    for c in given:
        if isinstance(c, bool) or not isinstance(c, Integral):
            raise TypeError(f"classes must be integers, got {c!r}")
    named = [int(c) for c in given]
    if not named or min(named) < 0 or len(set(named)) < len(named):
        raise ValueError(f"classes must be distinct and not negative, got {named}")
    return named


@dataclass(frozen=True)
class SoftmaxOptions:
    """The classes that count, how images form sets, and how the values combine."""

    classes: Classes = "present"
    per_image: bool = False
    ignore_index: int | None = None
    reduction: Reduction = "mean"
    from_logits: bool = True
    buckets: int | None = None
    average: Average = "images"
    worst: float | None = None

    def __post_init__(self) -> None:
        check_flags(per_image=self.per_image, from_logits=self.from_logits)
        check_average(self.average, self.worst, self.per_image)
        check_ignore(self.ignore_index)
        check_reduction(self.reduction)
        check_buckets(self.buckets)

    @property
    def counted(self) -> int:
        """The number of buckets; 0 means sorting."""
        return self.buckets or 0

    @property
    def is_plain(self) -> bool:
        """Whether the fused operator computes the mean: over sets, of the mean over classes."""
        return self.reduction == "mean" and self.average == "images" and self.worst is None

    def named(self, n_classes: int) -> list[int]:
        """Return the indices of the classes that may be part of the mean."""
        if isinstance(self.classes, str):
            return list(range(n_classes))
        if max(self.classes) >= n_classes:
            raise ValueError(
                f"classes must lie in 0..{n_classes - 1}, the classes of input, "
                f"got {max(self.classes)}"
            )
        return list(self.classes)
