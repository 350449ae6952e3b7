"""Samples of a field, and how much they say."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._html import Row, as_html
from setwise._foundation._pictures import heat_picture
from setwise._foundation._timings import Timings
from setwise.fields._pixels._in_image import in_image


@dataclass(frozen=True, eq=False)
class Samples:
    r"""Labellings drawn from :math:`P(x) \propto \exp(-E(x) / t)`.

    Attributes
    ----------
    labelings : array of int of shape (n, N)
        Sample k is of chain k mod ``n_chains``; within a chain one follows the other.
    energies : array of shape (n,)
        E of each.
    exact : bool
        Whether they are independent draws of P itself. If not, the chains' distribution comes near
        P as they go on, from any start; ``r_hat``, ``effective_sample_size`` and ``doubt`` tell of
        trouble, but prove nothing.
    effective_sample_size : float
        As many independent samples tell as much: the least over the energy and the share of each
        label. n where ``exact``; NaN below 4 samples a chain.
    r_hat : float
        Near 1 where the halves of all chains agree, above 1.05 in doubt: the largest over the
        energy, the share of each label, and the labels of all variables together. 1 where
        ``exact``; NaN below 4 samples a chain.
    acceptance : float
        The share of Metropolis proposals that were taken; 1 where there were none.
    moved : float
        The share of variables whose label changes from one sample of a chain to the next: near 0
        chains stand still. 1 where ``exact``, NaN of one sample a chain.
    doubt : str
        Why the samples should not be trusted, in words: chains disagree, or stand still where a
        bound on log Z leaves little of the probability. Empty where nothing was found, which proves
        nothing.
    reason : str
        How they were drawn, and why so, in a sentence.
    n_labels : int
        L.
    n_chains, burn_in, thin : int
        How many chains, sweeps of each before its first sample, and between two.
    temperature : float
        t.
    interrupted : bool
        Whether Ctrl-C ended it: there are fewer samples then.
    timings : mapping of str to float
        Where the time went, in seconds. No part of the answer.
    shape : tuple of int, or None
        The field's: the sides of the image, where they are known.

    Examples
    --------
    >>> import setwise as sw
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]]) + sw.fields.Potts([[0, 1]], 1.0)
    >>> drawn = sw.sample(field, 10_000, rng=0)
    >>> drawn.exact, drawn.labelings.shape
    (True, (10000, 2))
    >>> float(abs(drawn.probabilities - sw.marginals(field).probabilities).max()) < 0.02
    True
    """

    labelings: IntArray
    energies: FloatArray
    exact: bool
    effective_sample_size: float
    r_hat: float
    acceptance: float
    moved: float
    doubt: str
    reason: str
    n_labels: int
    n_chains: int
    burn_in: int
    thin: int
    temperature: float
    interrupted: bool = False
    timings: Timings = field(default_factory=Timings)
    shape: tuple[int, ...] | None = None

    @property
    def probabilities(self) -> FloatArray:
        """(N, L): how often each variable had each label."""
        counts = np.empty((self.labelings.shape[1], self.n_labels))
        for j in range(self.n_labels):
            counts[:, j] = np.count_nonzero(self.labelings == j, axis=0)
        counts /= max(len(self.labelings), 1)
        return counts

    @property
    def label_images(self) -> IntArray:
        """``labelings`` in the shape of the image, (n, H, W)."""
        images = [in_image(labels, self.shape) for labels in self.labelings]
        return np.stack(images)

    def _repr_html_(self) -> str:
        rows: list[Row] = [
            ("samples", len(self.labelings)),
            ("independent and exact", self.exact),
            ("effective sample size", self.effective_sample_size),
            ("R-hat", self.r_hat),
            ("variables that move", self.moved),
            ("doubt", self.doubt or "none was found"),
            ("reason", self.reason),
        ]
        pictures = []
        if self.shape is not None and self.labelings.size:
            rare = 1.0 - self.probabilities.max(axis=1)
            shown = in_image(rare, self.shape)
            pictures = [("share of other labels than the commonest", heat_picture(shown, 1.0))]
        return as_html("Samples", rows, pictures)
