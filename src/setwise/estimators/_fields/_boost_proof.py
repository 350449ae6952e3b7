"""An upper bound on the objective of a boosted field whose labels come from moves."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._clock import Deadline
from setwise._foundation._search import attempt
from setwise.estimators._fields._field_risk import FieldRisk
from setwise.inference._conditioning._magnitude import NEGLIGIBLE
from setwise.learning._boosting._boost_fit import BoostFit


class Thorough:
    """A risk that always uses full searches for the labels."""

    def __init__(self, risk: FieldRisk) -> None:
        self._risk = risk

    @property
    def offsets(self) -> IntArray:
        """The offsets of the risk."""
        return self._risk.offsets

    def __call__(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the risk at the labels found, and their plane."""
        value, slope, _ = self._risk.prove(scores)
        return value, slope


class BoostProof(NamedTuple):
    """A fit whose value is an upper bound of its objective, and how the proof ended.

    ``missed`` is true if a full search found more violated labels than the fit had. ``ended`` is
    true if Ctrl-C or the time limit interrupted it.
    """

    fit: BoostFit
    missed: bool
    ended: bool


def prove(fit: BoostFit, risk: FieldRisk, C: float, deadline: Deadline) -> BoostProof:
    """Make a full search for the labels of the final weights, unless cuts were exact.

    A fit that was interrupted gets the bound that holds without a search.
    """
    if risk.exact:
        return BoostProof(fit, False, False)
    price, ended = float(fit.w.sum()), fit.interrupted
    proof = None
    if not ended:  # after Ctrl-C or a time limit there is no proof
        proof, ended = attempt(deadline.run, risk.prove, fit.scores)
    found, _, most = (0.0, 0.0, risk.at_most(fit.scores)) if proof is None else proof
    rounding = NEGLIGIBLE * fit.zero
    missed = price + C * found > fit.value + rounding
    known = C * (most - found) <= rounding
    value = max(price + C * most, fit.bound)
    proved = replace(fit, value=value, certified=fit.certified and known)
    return BoostProof(proved, missed, ended or deadline.expired)
