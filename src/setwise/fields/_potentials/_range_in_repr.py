"""How many numbers read in a repr: as the one they all are, or as their range."""

from __future__ import annotations

from setwise._foundation._arguments import FloatArray


def range_in_repr(values: FloatArray) -> str:
    """``"2"``, ``"1..3"``, or ``"[]"`` for none."""
    if values.size == 0:
        return "[]"
    low, high = values.min(), values.max()
    return f"{low:.6g}" if low == high else f"{low:.6g}..{high:.6g}"
