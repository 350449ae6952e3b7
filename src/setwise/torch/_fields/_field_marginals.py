"""The marginals of a field as a layer."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

from setwise.torch._fields._eager import eager
from setwise.torch._fields._layer import FieldLayer
from setwise.torch._fields._log_partition import log_partition
from setwise.torch._fields._read import check_logits


class FieldPosterior(NamedTuple):
    """Marginals of a batch of fields, and bounds that the log Z of each lies between.

    Attributes
    ----------
    probabilities : tensor
        In the shape of the logits.
    log_partition_upper : tensor of shape (B,), float64
        Differentiable: its gradient in the logits are the probabilities.
    log_partition_lower : tensor of shape (B,), float64
        Without derivative.
    gap : tensor of shape (B,), float64
        The least upper bound of the method is at most this far below.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> post = sw.torch.FieldMarginals(bounds=True)(torch.zeros(1, 2, 2, 2))
    >>> bool(post.log_partition_lower <= post.log_partition_upper)
    True
    """

    probabilities: Tensor
    log_partition_upper: Tensor
    log_partition_lower: Tensor
    gap: Tensor


class FieldMarginals(FieldLayer):
    r"""The marginals of a random field over the pixels of a batch, differentiable in all it is of.

    With logits :math:`\theta` (higher is better) the field of an image has the energy

    .. math:: E(x) = -\sum_i \theta_{i x_i} + \sum_{e = (i, k)} w_e [x_i \ne x_k]
       + \sum_S w_S \Bigl[ \sum_j |\{i \in S: x_i \ne j\}|^\alpha - (L - 1) |S|^\alpha \Bigr]

    over pairs of neighbours and regions S. ``projection`` and ``trees`` are the methods of
    ``sw.marginals``: marginals p that minimise an upper bound U on log Z. With weights of 0 they
    are the softmax.

    Parameters
    ----------
    weight : float
        Of pairs, not negative.
    learn : bool
        Whether ``weight`` and ``region_weight`` are parameters, kept positive by a softplus.
    connectivity : int or list of offsets, optional
        As in ``sw.fields.grid_edges``: 4 in an image, 6 in a volume by default.
    beta : float, optional
        Of the contrast of an image, :math:`\exp(-\beta \|I_i - I_k\|^2)`; by default one over twice
        the mean over the image's pairs.
    region_weight : float or sequence of float, optional
        For all layers of regions, or one a layer. A layer that has one must be called with regions.
    alpha : float
        The power of regions, above 0 and at most 1.
    method : {"projection", "trees"}
        "projection" is convex in logits and weights, and two labels are solved exactly, by cuts
        (where the squares of the regions' sizes sum to 200,000 at most: beyond, passes to ``tol``
        are quicker); "trees" keeps pairs, so that its bound is lower, and its derivative smooth.
    tol : float
        The relative gap of the solution.
    backward_tol : float
        Of the two solutions whose difference quotient is the derivative (not with two labels by
        cuts on the host, where it is exact): the logits move by its root, and the
        relative gap is a ten-thousandth of it. On a CUDA device both are 1e-5 at least, with
        regions 3e-5, by ``trees`` 1e-6.
    max_iter : int, optional
        The most passes.
    bounds : bool
        Whether a call returns a ``FieldPosterior`` with both bounds on log Z; the lower one takes
        about as long again as the marginals.

    Notes
    -----
    Memory for the backward pass does not depend on the number of passes: the logits, the marginals,
    and what the solver starts again from. CUDA tensors are solved on their device where the field
    is a grid, with regions of 22,528 pixels at most (``projection``), or an image with pairs of
    four neighbours (``trees``); else, and for lower bounds, on the host by the compiled solvers, as
    CPU tensors are. ``torch.compile`` breaks its graph at the solver. Half precision is computed
    in single precision.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> logits = torch.tensor([[[[2.0, -0.5, 2.0]], [[0.0, 0.0, 0.0]]]], requires_grad=True)
    >>> field = sw.torch.FieldMarginals(weight=1.0)
    >>> [round(p, 3) for p in field(logits)[0, 0, 0].tolist()]  # the weak pixel follows the others
    [0.763, 0.763, 0.763]
    >>> field(logits)[0, 0, 0, 1].backward()
    >>> [round(slope, 3) for slope in logits.grad[0, 0, 0].tolist()]  # all three are one block
    [0.06, 0.06, 0.06]
    """

    @eager
    def forward(
        self,
        logits: Tensor,
        *,
        image: Tensor | None = None,
        regions: Any = None,
        weights: Tensor | None = None,
        region_weights: Tensor | None = None,
        edges: Any = None,
    ) -> Tensor | FieldPosterior:
        """Marginals in the shape of the logits.

        Parameters
        ----------
        logits : tensor of shape (B, L, H, W), (B, L, D, H, W), or (N, L) with ``edges``
            ``-inf`` forbids a label.
        image : tensor of shape (B, channels, H, W), optional
            Pairs are weighted by its contrast.
        regions : tensor of shape (B, H, W) or a list of them, optional
            Label maps, one a layer: the number of each pixel's region, -1 for none.
        weights : tensor of shape (B, K, H, W), optional
            Factors of ``weight``, not negative: for each direction that of the pair of each pixel
            with its neighbour there (right and down in an image). With ``edges``: (E,).
        region_weights : tensor of shape (B, layers, R), optional
            Factors of ``region_weight``, not negative, by the number of the region.
        edges : tensor or array of shape (E, 2), optional
            Pairs of variables.
        """
        # Sweeps on a device end whatever they are of, and the host need not hold them up: there it
        # is while they run that logits are looked at.
        swept = self.method == "projection" and regions is None and not self.bounds
        late = swept and getattr(logits, "is_cuda", False)
        call = self._read(logits, image, regions, weights, region_weights, edges, check=not late)
        p, upper, lower, gap = log_partition(*call.tensors, call.problem, lower=self.bounds)
        if late:
            check_logits(call.batch.logits)
        p = call.batch.in_shape(p)
        return FieldPosterior(p, upper, lower, gap) if self.bounds else p
