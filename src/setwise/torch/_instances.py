"""The mean of the set losses of the components of a mask: all objects count the same."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from setwise._foundation._arguments import did_you_mean
from setwise.losses import Loss, get
from setwise.torch._inputs._labels import comparable, voids
from setwise.torch._inputs._module import Module
from setwise.torch._inputs._sets import (
    INTEGERS,
    Reduction,
    check_ignore,
    check_input,
    check_reduction,
    same_shape,
)
from setwise.torch._operators._library import compiled_with_operators

Assign = Literal["background", "nearest"]


class InstanceLoss(Module):
    r"""The mean of a set loss over the components of a mask.

    The set of a component has its pixels as positives and a part of the background as negatives.
    With ``assign="background"`` the negatives are the whole background of the image without the
    other components (blob loss, Kofler et al. 2023). With "nearest" they are the background pixels
    that lie nearest to the component: each pixel is then in one set, and a false positive counts
    for the nearest component. The value of a set is the Lovász extension of the loss at the errors
    :math:`(1 - g_i y_i)_+` of the logits ("hinge") or :math:`|p_i - [y_i = 1]|` of their sigmoid.
    All sets are computed as one ragged batch.

    An image without a component is one set of background alone. The number of sets depends on the
    values of the target, so ``torch.compile(fullgraph=True)`` and ``torch.func.vmap`` do not work.

    Parameters
    ----------
    loss : Loss or str
        A ratio of counts: Jaccard; with "sigmoid" also Dice and F-beta.
    errors : {"sigmoid", "hinge"}
        The errors at which the Lovász extension is taken.
    assign : {"background", "nearest"}
        The background pixels in the set of a component. The cost of "background" grows with the
        number of components times the number of pixels, that of "nearest" with the number of
        pixels; SciPy finds the nearest component on the host.
    ignore_index : int, optional
        Pixels with this number belong to no set.
    reduction : {"mean", "sum", "none"}
        The reduction over the components of the batch; "none" returns their values in the order of
        images and component numbers.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> instances = torch.tensor([[[1, 1, 1, 0, 0, 2]]])  # three pixels, and one
    >>> logits = torch.tensor([[[9.0, 9.0, 9.0, -9.0, -9.0, -9.0]]])
    >>> round(sw.torch.InstanceLoss()(logits, instances).item(), 3)
    0.5
    >>> round(sw.torch.lovasz_sigmoid(logits, instances > 0).item(), 3)
    0.25
    """

    def __init__(
        self,
        loss: Loss | str = "jaccard",
        *,
        errors: Literal["sigmoid", "hinge"] = "sigmoid",
        assign: Assign = "background",
        ignore_index: int | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        self.loss = get(loss)
        bare, self._factor = self.loss._unscaled()
        if bare._fraction is None:
            raise ValueError(
                f"loss must be a ratio of counts such as 'jaccard' or 'dice', got {self.loss!r}"
            )
        self._constants = bare._fraction._constants
        if errors not in ("sigmoid", "hinge"):
            near = did_you_mean(errors, ("sigmoid", "hinge"))
            raise ValueError(f"errors must be 'sigmoid' or 'hinge', got {errors!r}{near}")
        if errors == "hinge" and self.loss.is_submodular is False:
            raise ValueError(
                f"errors must be 'sigmoid' for a loss that is not submodular, {self.loss!r}, "
                "got 'hinge'"
            )
        if assign not in ("background", "nearest"):
            near = did_you_mean(assign, ("background", "nearest"))
            raise ValueError(f"assign must be 'background' or 'nearest', got {assign!r}{near}")
        check_ignore(ignore_index)
        check_reduction(reduction)
        self.errors, self.assign = errors, assign
        self.ignore_index, self.reduction = ignore_index, reduction

    @compiled_with_operators
    def forward(self, input: Tensor, instances: Tensor) -> Tensor:
        """Return the loss of logits (N, ...) or (N, 1, ...) for component numbers, 0 for none."""
        check_input(input, instances)
        if instances.dtype not in INTEGERS:
            raise TypeError(f"target must hold integers, component numbers, got {instances.dtype}")
        if input.ndim < 1:
            raise ValueError("input must have a dimension of images, got a scalar")
        numbers = same_shape(input, instances)
        void = voids(numbers, self.ignore_index)
        numbers = comparable(numbers).long()
        if void is not None:
            numbers = torch.where(void, -1, numbers)
        elif bool((numbers < 0).any()):
            raise ValueError(
                "target must hold component numbers that are not negative, got "
                f"{int(numbers.min())}: is it the number of void pixels, which is ignore_index?"
            )
        wide = torch.float64 if input.dtype == torch.float64 else torch.float32
        logits = input.reshape(-1).to(wide)
        pixels, positive, sets, n_sets = self._elements(numbers)
        g = logits[pixels]
        if self.errors == "hinge":
            errors = 1 - torch.where(positive, g, -g)
        else:
            errors = torch.sigmoid(torch.where(positive, -g, g))
        values = self._factor * _ragged_lovasz(errors, positive, sets, n_sets, self._constants)
        values = values.to(wide)
        if self.reduction == "none":
            return values
        return values.sum() if self.reduction == "sum" else values.sum() / max(n_sets, 1)

    def _elements(self, numbers: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
        """Return pixels (R,), whether they are positive, their sets and the number of sets."""
        images = len(numbers)
        rows = numbers.reshape(images, math.prod(numbers.shape[1:]))
        n_pixels = rows.shape[1]
        # The pairs (image, component), and one pair for the background of an image without
        # components.
        owners = torch.arange(images, device=rows.device)[:, None].expand_as(rows)
        is_object = rows > 0
        pairs = torch.stack([owners[is_object], rows[is_object]], 1)
        bare = (~is_object.any(1)).nonzero()
        pairs = torch.cat([pairs, torch.cat([bare, torch.zeros_like(bare)], 1)])
        distinct, which = torch.unique(pairs, dim=0, return_inverse=True)
        n_sets = len(distinct)
        inside = is_object.reshape(-1).nonzero()[:, 0]
        own = which[: len(inside)]
        if self.assign == "nearest":
            sets_of = self._nearest(numbers, rows, inside, own, distinct)
            outside = ((rows == 0).reshape(-1) & (sets_of >= 0)).nonzero()[:, 0]
            negative_sets = sets_of[outside]
        else:
            # Every set contains all background pixels of its image.
            background = (rows == 0)[distinct[:, 0]]
            found = background.nonzero()
            negative_sets = found[:, 0]
            outside = distinct[negative_sets, 0] * n_pixels + found[:, 1]
        pixels = torch.cat([inside, outside])
        positive = torch.zeros(len(pixels), dtype=torch.bool, device=rows.device)
        positive[: len(inside)] = True
        return pixels, positive, torch.cat([own, negative_sets]), n_sets

    def _nearest(
        self, numbers: Tensor, rows: Tensor, inside: Tensor, own: Tensor, distinct: Tensor
    ) -> Tensor:
        """Return the set of each pixel (N P,), which is that of the nearest component."""
        from scipy.ndimage import distance_transform_edt

        sets_of = torch.full((rows.numel(),), -1, dtype=torch.int64, device=rows.device)
        sets_of[inside] = own
        alone = distinct[:, 1] == 0
        of_image = torch.full((len(rows),), -1, dtype=torch.int64, device=rows.device)
        of_image[distinct[alone, 0]] = alone.nonzero()[:, 0]
        grids = (numbers.cpu() > 0).numpy()
        if numbers.ndim == 1:
            grids = grids[:, None]
        elif numbers.ndim > 2 and numbers.shape[1] == 1:
            grids = grids[:, 0]
        nearest = torch.empty_like(rows, device="cpu")
        for k, grid in enumerate(grids):
            if not grid.any():
                nearest[k] = 0
                continue
            index = distance_transform_edt(~grid, return_distances=False, return_indices=True)
            flat = torch.from_numpy(index).long().reshape(grid.ndim, -1)
            place = torch.zeros(grid.size, dtype=torch.int64)
            for size, coordinate in zip(grid.shape, flat, strict=True):
                place = place * size + coordinate
            nearest[k] = place
        nearest = nearest.to(rows.device)
        starts = torch.arange(len(rows), device=rows.device)[:, None] * rows.shape[1]
        found = sets_of[(starts + nearest).reshape(-1)].reshape(rows.shape)
        return torch.where(of_image[:, None] >= 0, of_image[:, None], found).reshape(-1)

    def extra_repr(self) -> str:
        """Return the loss, the errors and the assignment of the background."""
        return f"{self.loss!r}, errors={self.errors!r}, assign={self.assign!r}"


def _ragged_lovasz(
    errors: Tensor,
    positive: Tensor,
    sets: Tensor,
    n_sets: int,
    constants: tuple[float, float, float],
) -> Tensor:
    r"""Return values (S,) of :math:`l(n, q) = (a n + q) / (c m - d n + q)`.

    Here n is the number of false negatives and q that of false positives. ``sets`` is the set of
    each element (R,); errors that are not positive contribute nothing. The values are linear in the
    errors, and autograd differentiates them. The cost is O(R log R) for any number of sets.
    """
    with torch.no_grad():
        # Sort by set, and by decreasing error within a set: the second sort is stable.
        first = torch.sort(errors.detach(), descending=True).indices
        second = torch.sort(sets[first], stable=True).indices
        order = first[second]
        owner = sets[order]
        hit = positive[order].double()
        sizes = torch.zeros(n_sets, dtype=torch.int64, device=sets.device)
        sizes = sizes.scatter_add(0, owner, torch.ones_like(owner))
        starts = torch.cumsum(sizes, 0) - sizes
        m = torch.zeros(n_sets, dtype=torch.float64, device=sets.device).scatter_add(0, owner, hit)
        before = torch.cumsum(hit, 0) - hit
        n = before - before[starts[owner]] if len(owner) else before
        q = torch.arange(len(owner), device=sets.device) - starts[owner] - n
        gains = _chain_gains(n, q, m[owner], hit > 0, constants)
        gains = torch.zeros_like(gains).scatter(0, order, gains)
    counted = torch.where(errors > 0, errors * gains, torch.where(errors.isnan(), errors, 0.0))
    total = torch.zeros(n_sets, dtype=counted.dtype, device=counted.device)
    return total.scatter_add(0, sets, counted)


def _chain_gains(
    n: Tensor, q: Tensor, m: Tensor, hit: Tensor, constants: tuple[float, float, float]
) -> Tensor:
    """Return the gain in l of an element that follows n false negatives and q false positives."""
    a, c, d = constants
    below, above = c * m - d * n + q, a * n + q
    safe = torch.where(m > 0, below, 1.0)
    of_hit = (a * below + d * above) / (safe * torch.where(m > 0, below - d, 1.0))
    of_miss = (below - above) / (safe * (safe + 1))
    return torch.where(m > 0, torch.where(hit, of_hit, of_miss), ((q == 0) & ~hit).double())
