"""What a boosted field's objective is at most, where moves stand for cuts."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._deadline import Deadline
from setwise._foundation._search import attempt
from setwise.estimators._fields._field_risk import FieldRisk
from setwise.learning import BoostFit

_ROUNDING = 1e-9  # of the objective without learners


class Thorough:
    """A risk whose labels are always searched for in full."""

    def __init__(self, risk: FieldRisk) -> None:
        self._risk = risk

    @property
    def offsets(self) -> IntArray:
        """The offsets of the risk."""
        return self._risk.offsets

    def __call__(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the risk as far as it was found, and its plane."""
        value, slope, _ = self._risk.prove(scores)
        return value, slope


class BoostProof(NamedTuple):
    """A fit whose value is at least its objective; whether the fit saw less; what ended the search.

    ``missed`` tells that a full search finds more violated labels than the fit knew, ``ended`` that
    Ctrl-C or the time limit cut it short.
    """

    fit: BoostFit
    missed: bool
    ended: bool


def prove(fit: BoostFit, risk: FieldRisk, C: float, deadline: Deadline) -> BoostProof:
    """Search for the labels of the final weights in full; nothing is left to do after cuts.

    A fit that was interrupted has what holds without a search.
    """
    if risk.exact:
        return BoostProof(fit, False, False)
    price, ended = float(fit.w.sum()), fit.interrupted
    proof = None
    if not ended:  # whoever ends the fit does not wait for a proof
        proof, ended = attempt(deadline.run, risk.prove, fit.scores)
    found, _, most = (0.0, 0.0, risk.at_most(fit.scores)) if proof is None else proof
    rounding = _ROUNDING * fit.zero
    missed = price + C * found > fit.value + rounding
    known = C * (most - found) <= rounding
    value = max(price + C * most, fit.bound)
    proved = replace(fit, value=value, certified=fit.certified and known)
    return BoostProof(proved, missed, ended or deadline.expired)
