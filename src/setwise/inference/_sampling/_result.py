"""The record of samples of a field, with their diagnostics."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._base_classes import Record
from setwise._foundation._clock import Timings
from setwise._foundation._display import Row, as_html, heat_picture
from setwise.fields._pixels._in_image import in_image


@dataclass(frozen=True, eq=False, repr=False)
class Samples(Record):
    r"""Labellings drawn from :math:`P(x) \propto \exp(-E(x) / t)`.

    Attributes
    ----------
    labelings : array of int of shape (n, N)
        The samples. Sample k is from chain k mod ``n_chains``, in the order of the chain.
    energies : array of shape (n,)
        The energy E of each sample.
    exact : bool
        Whether the samples are independent draws from P. If not, the distribution of the chains
        converges to P from any start; ``r_hat``, ``effective_sample_size`` and ``warning`` may show
        problems, but prove nothing.
    effective_sample_size : float
        The number of independent samples that are as accurate: the minimum over the energy and the
        share of each label. It is n if ``exact``. It is NaN for fewer than 4 samples per chain, and
        if no chain ever moved and ``warning`` says so.
    r_hat : float
        The maximum of R-hat over the energy, the share of each label, and the labels of all
        variables together. It is near 1 if the halves of all chains agree; above 1.05 ``warning``
        reports it. It is 1 if ``exact``, and NaN if ``effective_sample_size`` is NaN.
    acceptance : float
        The share of Metropolis proposals that were accepted; 1 if there were none.
    moved : float
        The share of variables whose label changes from one sample of a chain to the next. Chains
        hardly move if it is near 0. It is 1 if ``exact``, and NaN for one sample per chain.
    warning : str
        Why the samples should not be trusted, in words: chains disagree; or they stay at labellings
        whose probability is small by a bound on log Z; or they never moved although independent
        samples might have. It is empty if nothing was found, which proves nothing.
    reason : str
        How the samples were drawn, and why, in a sentence.
    n_labels : int
        L.
    n_chains, burn_in, thin : int
        The numbers of chains, of sweeps before the first sample of a chain, and of sweeps between
        two samples.
    temperature : float
        t.
    interrupted : bool
        Whether Ctrl-C ended sampling, so that there are fewer samples.
    timings : mapping of str to float
        The times of the stages in seconds. They are not part of the answer.
    shape : tuple of int, or None
        The sides of the image, if the field has them.

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

    _printed = (
        "labelings energies exact effective_sample_size r_hat moved "
        "warning n_chains interrupted reason timings"
    )

    labelings: IntArray
    energies: FloatArray
    exact: bool
    effective_sample_size: float
    r_hat: float
    acceptance: float
    moved: float
    warning: str
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
        """The relative frequencies of labels, (N, L)."""
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
            ("warning", self.warning or "none was found"),
            ("reason", self.reason),
        ]
        pictures = []
        if self.shape is not None and self.labelings.size:
            rare = 1.0 - self.probabilities.max(axis=1)
            shown = in_image(rare, self.shape)
            pictures = [("share of other labels than the commonest", heat_picture(shown, 1.0))]
        return as_html("Samples", rows, pictures)
