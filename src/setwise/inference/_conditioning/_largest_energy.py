"""How large a field's energies are, and the temperatures at which they do not overflow."""

from __future__ import annotations

import numpy as np

from setwise._foundation._certificate import EPS
from setwise.fields._field import Field

_ROOM = 1e-8  # of the largest number: sums and differences of a few energies still fit


def check_magnitude(field: Field, temperature: float, dtype: str, name: str = "field") -> None:
    """Refuse energies, or a temperature, whose quotients or sums are beyond the numbers of dtype.

    A ``ValueError`` names the field where its energies sum to too much, else the temperature.
    """
    limit = float(np.finfo(dtype).max) * _ROOM
    with np.errstate(over="ignore"):
        largest = largest_energy(field)
    if not largest <= limit:
        raise ValueError(
            f"{name} must have energies that sum to at most {limit:.1e} in {dtype}, "
            f"got {largest:.1e}"
        )
    least = max(largest, 1.0) / limit
    if temperature < least:
        raise ValueError(
            f"temperature must be at least {least:.1e} in {dtype} "
            f"for energies up to {largest:.1e}, got {temperature}"
        )
    most = limit / (1.0 + field.unary.size)
    if temperature > most:
        raise ValueError(f"temperature must be at most {most:.1e} in {dtype}, got {temperature}")


def largest_energy(field: Field) -> float:
    """At least abs(E(x)) for every x without a forbidden label: the terms' largest values summed.

    Unaries count with the largest of each row; ``inf`` where the sum overflows.
    """
    return field._remember("largest energy", lambda: _largest_energy(field))


def _largest_energy(field: Field) -> float:
    finite = np.where(np.isfinite(field.unary), np.abs(field.unary), 0.0)
    return float(finite.max(axis=1).sum()) + largest_of_terms(field)


def largest_of_terms(field: Field) -> float:
    """At least the size of what all terms but the unaries cost together."""
    return sum(term._most(field.n_labels) for _, term in field._terms())


def rounding_of_logs(field: Field, temperature: float) -> float:
    """Return an upper bound on the rounding error of sums of logarithms over a field, in nats.

    Each logarithm is that of a sum over the labels; sums over the variables are compensated.
    """
    roundings = 8.0 + field.n_labels
    return roundings * EPS * (field.n_variables + largest_energy(field) / temperature)
