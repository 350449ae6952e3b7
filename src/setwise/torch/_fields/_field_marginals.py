"""The marginals of a field as a layer."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

from setwise._foundation._base_classes import printed
from setwise.torch._fields._arguments import check_logits
from setwise.torch._fields._layer import FieldLayer, eager
from setwise.torch._fields._log_partition import log_partition


class FieldPosterior(NamedTuple):
    """The marginals of a batch of fields, and two bounds on log Z of each.

    Attributes
    ----------
    probabilities : tensor
        In the shape of the logits.
    log_partition_upper : tensor of shape (B,), float64
        An upper bound on log Z. Its gradient in the logits is ``probabilities``.
    log_partition_lower : tensor of shape (B,), float64
        A lower bound on log Z, without derivative.
    gap : tensor of shape (B,), float64
        The least upper bound of the method is lower by at most this.

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

    def __repr__(self) -> str:
        return printed(self, self._fields)


class FieldMarginals(FieldLayer):
    r"""The marginals of a random field over the pixels of a batch, with derivatives.

    With logits :math:`\theta` (higher is better) the field of an image has the energy

    .. math:: E(x) = -\sum_i \theta_{i x_i} + \sum_{e = (i, k)} w_e [x_i \ne x_k]
       + \sum_S w_S \Bigl[ \sum_j |\{i \in S: x_i \ne j\}|^\alpha - (L - 1) |S|^\alpha \Bigr]

    over pairs of neighbours and regions S. The methods ``projection`` and ``trees`` are those of
    ``sw.marginals``: they return the marginals p that minimise an upper bound U on log Z. With
    weights of 0 these are the softmax. Marginals have derivatives in logits and weights.

    Parameters
    ----------
    weight : float
        The weight of pairs, not negative.
    learn : bool
        Whether ``weight`` and ``region_weight`` are parameters, kept positive by a softplus.
    connectivity : int or list of offsets, optional
        As in ``sw.fields.grid_edges``: 4 in an image, 6 in a volume by default.
    beta : float, optional
        The factor of the contrast :math:`\exp(-\beta \|I_i - I_k\|^2)` of an image; by default one
        over twice the mean of :math:`\|I_i - I_k\|^2` over the pairs of the image.
    region_weight : float or sequence of float, optional
        The weight of regions: one number for all layers of regions, or one per layer. If it is
        given, calls need ``regions``.
    alpha : float
        The power :math:`\alpha` of regions, above 0 and at most 1.
    method : {"projection", "trees"}
        "projection" is convex in logits and weights. Two labels are solved exactly, by cuts, if the
        sum of the squared sizes of the regions is at most 200,000; beyond that, passes to ``tol``
        are faster. "trees" models pairs: its bound is lower and its derivative is smooth.
    tol : float, optional
        The relative gap at which the solver stops. None means 1e-10 if an image has at most 1,024
        logits (pixels times labels), else 1e-3. Solvers on a CUDA device raise it to the limits
        that ``backward_tol`` describes. The derivative is that of the exact solution, so finite
        differences of the marginals differ from it by the error of the solution. For small images
        the relative difference in norm is below 1e-6 with ``trees``. With ``projection`` it is
        below 1e-3, unless a kink of the bound is within the steps (2 of 84 trials, up to 9 %). At
        ``tol=1e-3`` it is 0.2 % with ``trees``, and 1 % to 50 % with ``projection``, which has then
        not found all pixels that share a block. Two labels by cuts are exact.
    backward_tol : float, optional
        The derivative is a difference quotient of two solutions (two labels by cuts on the host
        have an exact derivative instead). The logits move by the root of ``backward_tol``, and the
        relative gap of the solutions is a ten-thousandth of it, or of ``tol`` if that is less. None
        means 1e-8 for the small images above, else 1e-6. If a CUDA device solves the field, all
        tolerances are at least 1e-5, or 3e-5 with regions, or 1e-6 with ``trees``.
    max_iter : int, optional
        The maximum number of passes.
    bounds : bool
        Whether a call returns a ``FieldPosterior`` with both bounds on log Z; the lower bound takes
        about as long as the marginals.

    Notes
    -----
    The memory kept for the backward pass does not depend on the number of passes: it holds the
    logits, the marginals and the state of the solver. CUDA tensors are solved on their device if
    the field is a grid with regions of at most 22,528 pixels (``projection``), or an image with
    four neighbours per pixel (``trees``). Other fields, and lower bounds, are solved on the host by
    the compiled solvers, as CPU tensors are. ``torch.compile`` breaks its graph at the solver. Half
    precision is computed in single precision. There are no second derivatives: asking for them
    raises an error.

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
        """Return marginals in the shape of the logits.

        Parameters
        ----------
        logits : tensor of shape (B, L, H, W), (B, L, D, H, W), or (N, L) with ``edges``
            ``-inf`` forbids a label.
        image : tensor of shape (B, channels, H, W), optional
            An image whose contrast weights the pairs.
        regions : tensor of shape (B, H, W) or a list of them, optional
            Label maps, one per layer: the number of the region of each pixel, -1 for none.
        weights : tensor of shape (B, K, H, W), optional
            Factors of ``weight``, not negative, for each pair of a pixel with its neighbour in one
            of K directions (right and down in an image). With ``edges`` the shape is (E,).
        region_weights : tensor of shape (B, layers, R), optional
            Factors of ``region_weight``, not negative, indexed by the number of the region.
        edges : tensor or array of shape (E, 2), optional
            The pairs of variables.
        """
        # Sweeps on a device end for any logits. So the logits are checked while the sweeps run, and
        # the check does not delay them.
        swept = self.method == "projection" and regions is None and not self.bounds
        late = swept and getattr(logits, "is_cuda", False)
        call = self._read(logits, image, regions, weights, region_weights, edges, check=not late)
        p, upper, lower, gap = log_partition(*call.tensors, call.problem, lower=self.bounds)
        if late:
            check_logits(call.batch.logits)
        p = call.batch.in_shape(p)
        return FieldPosterior(p, upper, lower, gap) if self.bounds else p
