"""Decisions for networks: the mask of least expected loss for each set of a batch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, overload

import torch
from torch import Tensor

from setwise._foundation._arguments import as_choice, did_you_mean
from setwise._foundation._base_classes import Record
from setwise.losses import get
from setwise.torch._inputs._labels import comparable, voids
from setwise.torch._inputs._margins import are_classes
from setwise.torch._inputs._presence import as_presence, independent
from setwise.torch._inputs._sets import FLOATS, HALVES, ScoreOptions, as_rows, check_dense
from setwise.torch._inputs._weights import read_weight
from setwise.torch._operators._library import with_doubles

if TYPE_CHECKING:
    from setwise.losses import Loss

_ACTIVATIONS = ("sigmoid", "softmax", "none")


@dataclass(frozen=True, eq=False, repr=False)
class MaskDecision(Record):
    """The masks of least expected loss, for independent pixels.

    Attributes
    ----------
    mask : boolean tensor
        In the shape of the input.
    expected : tensor of float64
        The expected loss of each set: (), (B,), (C,) or (B, C).
    bound : tensor of float64
        No set has an expected loss below this.
    exact : bool
        Whether every mask is proved to be optimal, up to rounding.
    method : str
        As in ``sw.decide``.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> decision = sw.torch.decide(torch.tensor([2.0, -0.2, -0.4, -2.0]), "dice")
    >>> decision.mask.tolist(), decision.exact
    ([True, True, True, False], True)
    """

    mask: Tensor
    expected: Tensor
    bound: Tensor
    exact: bool
    method: str

    @property
    def value(self) -> Tensor:
        """``expected``, under the name that all results share."""
        return self.expected

    @property
    def gap(self) -> Tensor:
        """``regret_bound``, under the name that all results share."""
        return self.regret_bound

    @property
    def regret_bound(self) -> Tensor:
        """The difference ``expected - bound``: no set has an expected loss lower by more."""
        return (self.expected - self.bound).clamp(min=0)


@dataclass(frozen=True, eq=False, repr=False)
class LabelMapDecision(Record):
    """The label map of least expected loss that was found, for independent pixels.

    Attributes
    ----------
    labels : tensor of int64
        The class of each pixel, (B, ...); ``ignore_index`` where the target has it.
    expected : tensor of float64
        The weighted mean over the classes of the expected loss: (), or (B,) with ``per_image``.
    of_classes : tensor of float64
        The expected loss of each class: (C,) or (B, C).
    bound : tensor of float64
        No label map has an expected loss below this.
    exact : bool
        Whether every map is proved to be optimal, up to rounding.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> logits = torch.tensor([[[0.4, 0.4, 0.4, 2.0, 2.0], [0.0] * 5]])  # (B, C, pixels)
    >>> sw.torch.decide(logits, "jaccard", classes="exclusive").labels.tolist()
    [[1, 1, 0, 0, 0]]
    """

    labels: Tensor
    expected: Tensor
    of_classes: Tensor
    bound: Tensor
    exact: bool

    @property
    def value(self) -> Tensor:
        """``expected``, under the name that all results share."""
        return self.expected

    @property
    def gap(self) -> Tensor:
        """``regret_bound``, under the name that all results share."""
        return self.regret_bound

    @property
    def regret_bound(self) -> Tensor:
        """The difference ``expected - bound``: no map has an expected loss lower by more."""
        return (self.expected - self.bound).clamp(min=0)


@overload
def decide(
    input: Tensor,
    loss: str | Loss,
    *,
    classes: Literal["separate"] = "separate",
    activation: str | None = None,
    per_image: bool = False,
    per_class: bool = False,
    target: Tensor | None = None,
    ignore_index: int | None = None,
    presence: Tensor | None = None,
) -> MaskDecision: ...


@overload
def decide(
    input: Tensor,
    loss: str | Loss,
    *,
    classes: Literal["exclusive", "present"],
    activation: str | None = None,
    per_image: bool = False,
    target: Tensor | None = None,
    ignore_index: int | None = None,
    presence: Tensor | None = None,
    weight: Tensor | None = None,
) -> LabelMapDecision: ...


@torch.no_grad()
@with_doubles
def decide(
    input: Tensor,
    loss: str | Loss,
    *,
    classes: str = "separate",
    activation: str | None = None,
    per_image: bool = False,
    per_class: bool = False,
    target: Tensor | None = None,
    ignore_index: int | None = None,
    presence: Tensor | None = None,
    weight: Tensor | None = None,
) -> MaskDecision | LabelMapDecision:
    """Return the masks of least expected loss for the scores of a trained network.

    Sets are chosen as for the losses: all elements form one set, or the elements of each image, of
    each class, or of each class of each image. The pixels are assumed to be independent and their
    probabilities to be calibrated. If a class may be absent from an image, its pixels are not
    independent, and the empty mask would never be chosen: pass the probability that the class
    occurs as ``presence``. The guide on decisions shows how to learn it from validation images.

    With ``classes="exclusive"`` each pixel gets one class, and the answer is a label map. It has
    the least mean over the classes of the expected loss that was found, and comes with a bound (see
    ``sw.decide``). It is computed on the host.

    Parameters
    ----------
    input : tensor
        Scores, or probabilities with ``activation="none"``; any shape, any floating type. For
        exclusive classes, the shape is (B, C, ...).
    loss : str or Loss
        Jaccard, Dice and F-beta are decided on the device, other losses on the host. Exclusive
        classes take only these three.
    classes : {"separate", "exclusive", "present"}
        Whether each set is decided separately, or every pixel has one class. In the latter case all
        classes count ("exclusive"), or those that occur in the truth ("present"), which needs
        ``presence``.
    activation : {"sigmoid", "softmax", "none"}, optional
        How the input becomes probabilities: "sigmoid" for separate masks, which is their default,
        "softmax" over dimension 1 if each pixel has one class, which is the default for exclusive
        classes. With "sigmoid", a target of classes (numbers above 1 without the dimension of
        classes) is refused.
    per_image, per_class : bool
        Whether each index of dimension 0, or of dimension 1, is a set of its own. The masks of the
        classes are decided separately, with "softmax" too: they may overlap and may leave pixels
        without a class. Exclusive classes take ``per_image`` alone.
    target, ignore_index : tensor and int, optional
        Pixels with the target ``ignore_index`` belong to no set and to no mask. The target has the
        shape of the input, or that shape without the dimension of classes.
    presence : tensor, optional
        The probability that each set is not empty, in the shape of ``expected``; for exclusive
        classes, that each class occurs, in the shape of ``of_classes``. The distribution is that of
        ``sw.decide``.
    weight : tensor of shape (C,), optional
        The weights of exclusive classes in the mean.

    Returns
    -------
    MaskDecision or LabelMapDecision

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> logits = torch.tensor([[[[1.0, -0.5], [-0.3, -3.0]]]])  # (B, C, H, W)
    >>> sw.torch.decide(logits, "jaccard", per_image=True).mask.int().tolist()
    [[[[1, 1], [1, 0]]]]
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"input must be a tensor, got {type(input).__name__}")
    check_dense("input", input)
    if input.dtype not in FLOATS:
        raise TypeError(f"input must be float16, bfloat16, float32 or float64, got {input.dtype}")
    exclusive = as_choice(classes, "classes", ("separate", "exclusive", "present")) != "separate"
    if activation is None:
        activation = "softmax" if exclusive else "sigmoid"
    if activation not in _ACTIVATIONS:
        near = did_you_mean(activation, _ACTIVATIONS)
        words = ", ".join(_ACTIVATIONS)
        raise ValueError(f"activation must be one of {words}, got {activation!r}{near}")
    options = ScoreOptions(per_image=per_image, per_class=per_class, ignore_index=ignore_index)
    set_loss = get(loss)
    if exclusive:
        if activation == "sigmoid":
            raise ValueError(
                "activation must be 'softmax' or 'none' for exclusive classes, got 'sigmoid'"
            )
        if per_class:
            raise ValueError("per_class must be False for exclusive classes, got True")
        present = classes == "present"
        return _label_maps(
            input, set_loss, activation, per_image, target, ignore_index, presence, present, weight
        )
    if weight is not None:
        raise ValueError("weight must be None for separate classes")
    p = _probabilities(input, activation)
    valid = _valid(input, target, ignore_index)
    if activation == "sigmoid" and target is not None:
        _refuse_classes(input, target, ignore_index)
    if valid is not None:
        p = torch.where(valid, p, 0.0)
    rows = as_rows(p, options)
    kept = None if valid is None else as_rows(valid, options)
    shape: tuple[int, ...] = ()
    if per_image or per_class:
        shape = tuple(input.shape[k] for k, own in enumerate((per_image, per_class)) if own)
    there = None if presence is None else as_presence(presence, shape, input.device)
    mask, expected, bound, exact, method = _decided(rows, kept, set_loss, there)
    return MaskDecision(
        _as_input(mask, input.shape, options),
        expected.view(shape),
        bound.view(shape),
        exact,
        method,
    )


def _label_maps(
    input: Tensor,
    loss: Loss,
    activation: str,
    per_image: bool,
    target: Tensor | None,
    ignore_index: int | None,
    presence: Tensor | None,
    present: bool,
    weight: Tensor | None,
) -> LabelMapDecision:
    """Decide exclusive classes on the host."""
    from setwise.decisions._label_maps._search import find_label_maps

    if input.ndim < 2 or not input.shape[1]:
        raise ValueError(
            f"input must have shape (B, C, ...) for exclusive classes, got {tuple(input.shape)}"
        )
    n_images, n_classes = input.shape[:2]
    shape = (n_images, *input.shape[2:])
    if per_image and input.ndim == 2:
        raise ValueError("per_image must be False for input of shape (n, C), got True")
    if target is not None and tuple(target.shape) != shape and ignore_index is not None:
        raise ValueError(
            f"target must have shape {shape} for exclusive classes, got {tuple(target.shape)}"
        )
    p = _probabilities(input, activation)
    valid = _valid(input, target, ignore_index)
    ignored = None if valid is None else ~valid[:, 0]
    # Elements (n, C) are the pixels of one image.
    planes = p.t()[None] if p.ndim == 2 else p.flatten(2)
    there = None
    if present and presence is None:
        raise ValueError("presence must be given for classes='present', got None")
    if presence is not None:
        wanted = (n_images, n_classes) if per_image else (n_classes,)
        there = as_presence(presence, wanted, input.device).view(wanted).cpu().numpy()
    share = read_weight(weight)
    if share is not None and tuple(share.shape) != (n_classes,):
        raise ValueError(f"weight must have shape ({n_classes},), got {tuple(share.shape)}")
    if share is not None and not bool(share.any()):
        raise ValueError("weight must not be 0 for all classes")
    # Only given probabilities in half precision have rounding errors of that size.
    coarse = activation == "none" and input.dtype in HALVES
    found = find_label_maps(
        planes.contiguous().cpu().numpy(),
        loss,
        per_image=per_image,
        weights=None if share is None else share.double().cpu().numpy(),
        presence=there,
        present=present,
        ignore=None if ignored is None else ignored.cpu().numpy(),
        law="",
        threads=torch.get_num_threads(),
        slack=3e-2 if coarse else 1e-4,
    )
    labels = torch.from_numpy(found.labels).view(shape).to(input.device)
    if ignored is not None and ignore_index is not None:
        labels = torch.where(ignored, ignore_index, labels)
    values = [found.expected, found.of_classes, found.bound]
    expected, of_classes, bound = (
        torch.as_tensor(x, dtype=torch.float64).to(input.device) for x in values
    )
    exact = bool(torch.as_tensor(found.exact).all())
    return LabelMapDecision(labels, expected, of_classes, bound, exact)


def _probabilities(input: Tensor, activation: str) -> Tensor:
    wide = input if input.dtype == torch.float64 else input.float()
    if activation == "sigmoid":
        return torch.sigmoid(wide)
    if activation == "softmax":
        if input.ndim < 2:
            raise ValueError(
                "input must have a dimension of classes for softmax, "
                f"got shape {tuple(input.shape)}"
            )
        return torch.softmax(wide, 1)
    if wide.numel():
        low, high = (float(x) for x in torch.aminmax(wide))
        if not (low >= 0 and high <= 1):
            raise ValueError(
                "input must hold probabilities in [0, 1] with activation='none', "
                f"got {low if not low >= 0 else high}"
            )
    return wide


def _valid(input: Tensor, target: Tensor | None, ignore_index: int | None) -> Tensor | None:
    """Return a mask of the elements that count, in the shape of the input; None for all."""
    if ignore_index is None:
        if target is not None:
            raise ValueError("target must be None unless ignore_index is given: it marks the void")
        return None
    if not isinstance(target, Tensor):
        raise TypeError(
            f"target must be a tensor when ignore_index is given, got {type(target).__name__}"
        )
    if target.device != input.device:
        raise ValueError(
            f"target must be on the device of input, {input.device}, got {target.device}"
        )
    if target.shape != input.shape:
        without = (*input.shape[:1], *input.shape[2:])
        if tuple(target.shape) != without:
            raise ValueError(
                f"target must have shape {tuple(input.shape)} or {without}, "
                f"got {tuple(target.shape)}"
            )
        target = target.unsqueeze(1)
    void = voids(target, ignore_index)
    return None if void is None else (~void).expand(input.shape)


def _refuse_classes(input: Tensor, target: Tensor, ignore_index: int | None) -> None:
    """Raise a ``ValueError`` if the target gives each pixel one of several classes."""
    if not are_classes(input, target) or target.dtype == torch.bool:
        return
    target = comparable(target)
    void = voids(target, ignore_index)
    found = (target > 1) if void is None else (target > 1) & ~void
    if bool(found.any()):
        raise ValueError(
            "activation must be 'softmax' where target holds classes, one for each pixel of input "
            f"{tuple(input.shape)}, got 'sigmoid' and the class {int(target[found][0])}"
        )


def _decided(
    p: Tensor, valid: Tensor | None, loss: Loss, presence: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, bool, str]:
    """Return masks (S, n), expected losses and bounds (S,), whether all are exact, the method."""
    plain, scale = loss._unscaled()
    ratio = plain._fraction
    if ratio is not None and p.device.type == "cuda":
        from setwise.torch._cuda._decide import decide_ratio

        b = 1.0 if ratio.beta is None else ratio.beta**2
        chances, none, c = p, None, torch.ones((), dtype=torch.float64, device=p.device)
        if presence is not None:
            chances, c, there = independent(p, presence)
            none = c * (1 - there)
        # An element of probability 0 does not affect the expectation of a ratio and is in no best
        # set.
        answer = decide_ratio(chances, ratio.beta is None, b, none)
        if answer is not NotImplemented:
            mask, score = answer
            expected = (scale * (1 - score / c)).clamp(min=0)
            error = scale * (1e-12 + 8 * 2.2e-16 * (p.shape[1] + 8))
            proved = bool(torch.isfinite(expected).all())  # False if a score was not a number
            return mask & (p > 0), expected, expected - error, proved, "integrals"
    from setwise.decisions._decide import decide as on_host

    counts = torch.full((len(p),), p.shape[1]) if valid is None else valid.sum(1).cpu()
    flat = (p if valid is None else p[valid]).cpu().double().numpy().reshape(-1)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)]).numpy()
    gate = None if presence is None else presence.cpu().numpy()
    found = on_host(flat, loss, offsets=offsets, presence=gate)
    mask = torch.from_numpy(found.mask)
    if valid is None:
        mask = mask.view(p.shape).to(p.device)
    else:
        placed = torch.zeros(p.shape, dtype=torch.bool, device=p.device)
        placed[valid] = mask.to(p.device)
        mask = placed
    values = [torch.as_tensor(x, dtype=torch.float64) for x in (found.expected, found.bound)]
    exact = bool(torch.as_tensor(found.exact).all())
    return mask, values[0].to(p.device), values[1].to(p.device), exact, found.method


def _as_input(mask: Tensor, shape: torch.Size, options: ScoreOptions) -> Tensor:
    """Return the rows of sets in the shape of the input."""
    if options.per_class and not options.per_image:
        turned = (shape[1], shape[0], *shape[2:])
        return mask.view(turned).transpose(0, 1).contiguous()
    return mask.view(shape) if math.prod(shape) else mask.new_empty(shape)
