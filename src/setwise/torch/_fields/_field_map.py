"""The best labels of a field: as a layer, and for the hinge."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from setwise._foundation._base_classes import printed
from setwise.torch._fields._layer import Call, FieldLayer, eager


class FieldLabels(NamedTuple):
    """The best labels of a batch of fields.

    Attributes
    ----------
    labels : tensor of int64
        In the shape of the logits without the dimension of labels.
    value : tensor of shape (B,), float64
        The energy of the labels.
    bound : tensor of shape (B,), float64
        No labels have a lower energy.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> found = sw.torch.FieldMAP(bounds=True)(torch.tensor([[[[1.0, -0.5]], [[0.0, 0.0]]]]))
    >>> found.labels.tolist(), found.value.tolist() == found.bound.tolist()
    ([[[0, 0]]], True)
    """

    labels: Tensor
    value: Tensor
    bound: Tensor

    def __repr__(self) -> str:
        return printed(self, self._fields)


@torch.no_grad()
def best_labels(call: Call) -> FieldLabels:
    """Return labels (B, N) of least energy, found on the host, with values and bounds (B,)."""
    from setwise._foundation._imports import load

    found = load("setwise.torch._fields._host_solver").best_labels(call.problem, *call.tensors)
    device = call.batch.logits.device
    return FieldLabels(*(part.to(device) for part in found))


class FieldMAP(FieldLayer):
    """The labels of least energy of a field over the pixels of a batch.

    The field and its arguments are those of ``FieldMarginals``. With two labels the answer is
    exact; with more labels the bound shows how good it is. Labels have no derivative.

    Parameters
    ----------
    tol : float
        Stop when the relative gap is at most this.
    bounds : bool
        Whether a call returns a ``FieldLabels``.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> logits = torch.tensor([[[[2.0, -0.5, 2.0]], [[0.0, 0.0, 0.0]]]])
    >>> sw.torch.FieldMAP(weight=1.0)(logits).tolist()
    [[[0, 0, 0]]]
    """

    def __init__(
        self,
        weight: float = 1.0,
        *,
        learn: bool = False,
        connectivity: Any = None,
        beta: float | None = None,
        region_weight: Any = None,
        alpha: float = 0.8,
        tol: float = 1e-3,
        bounds: bool = False,
    ) -> None:
        super().__init__(
            weight,
            learn=learn,
            connectivity=connectivity,
            beta=beta,
            region_weight=region_weight,
            alpha=alpha,
            tol=tol,
            bounds=bounds,
        )

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
    ) -> Tensor | FieldLabels:
        """Return the labels of logits; other arguments are those of ``FieldMarginals``."""
        call = self._read(logits, image, regions, weights, region_weights, edges)
        found = best_labels(call)
        labels = call.batch.labels_in_shape(found.labels)
        return found._replace(labels=labels) if self.bounds else labels
