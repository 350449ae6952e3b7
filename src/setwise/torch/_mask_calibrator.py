"""Inner and outer masks of a network with guaranteed risks, from logits in batches."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from setwise._foundation._arguments import as_number, did_you_mean
from setwise._foundation._base_classes import printed
from setwise._foundation._keywords import hints_at_names
from setwise.torch._inputs._labels import read_target
from setwise.torch._inputs._module import Module
from setwise.torch._inputs._sets import FLOATS
from setwise.torch._operators._gather import gathered

if TYPE_CHECKING:
    from setwise.decisions._risk_control import RiskControl

_RISKS = {
    "outer": ("false_negative_rate", "miss"),
    "inner": ("false_positive_rate", "excess"),
}
# The thresholds are _STEPS logits from -_LARGEST to _LARGEST, which do not depend on data. From one
# to the next, a probability changes by less than 0.3 %. Not tuned.
_LARGEST, _STEPS = 12.0, 2048


class MaskBounds(NamedTuple):
    """The inner and the outer masks of images, boolean, in the shape of the logits.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> logits = torch.linspace(-3, 3, 60).reshape(20, 1, 3)
    >>> calibrator = sw.torch.MaskCalibrator(alpha=0.2)
    >>> calibrator.update(logits, (logits > 0).long())
    >>> controls = calibrator.compute()
    >>> bounds = calibrator(logits)
    >>> bool((bounds.inner <= bounds.outer).all())
    True
    """

    inner: Tensor
    outer: Tensor

    def __repr__(self) -> str:
        return printed(self, self._fields)


class MaskCalibrator(Module):
    r"""A calibrator of thresholds for inner and outer masks of logits with guaranteed risks.

    The guarantees are those of ``sw.conformal.ConformalMasks``: on average over calibration sets
    and new images, at most alpha of the object lies outside the outer mask, and at most alpha of
    the background inside the inner one, if all images are exchangeable. ``update`` counts pixels
    at fixed thresholds on the device of the logits, ``compute`` chooses the thresholds from the
    counts of all batches and ranks, and a call returns the masks of new logits. The thresholds are
    buffers, so that ``state_dict`` stores them with a network.

    Parameters
    ----------
    alpha : float
        The risk to guarantee for each of the two masks.
    outer : {"false_negative_rate", "miss"}
        "miss": the outer mask contains the whole object with probability 1 - alpha.
    inner : {"false_positive_rate", "excess"}
        "excess": the inner mask lies within the object with probability 1 - alpha.
    delta : float, optional
        The probability with which each guarantee may fail. With it, they hold in probability, and
        the images must be independent. None: they hold on average.
    nonempty : bool
        Whether images without object (outer) or without background (inner) are left out. They have
        a risk of 0 otherwise.
    ignore_index : int, optional
        The label of pixels that do not count.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> generator = torch.Generator().manual_seed(0)
    >>> target = torch.rand(60, 1, 8, 8, generator=generator) < 0.5
    >>> logits = 4.0 * target - 2.0 + torch.randn(target.shape, generator=generator)
    >>> calibrator = sw.torch.MaskCalibrator(alpha=0.1)
    >>> for part in range(0, 60, 20):
    ...     calibrator.update(logits[part : part + 20], target[part : part + 20])
    >>> controls = calibrator.compute()
    >>> controls["outer"].bound <= 0.1, controls["inner"].bound <= 0.1
    (True, True)
    >>> bounds = calibrator(logits[:1])
    >>> bool((bounds.inner <= bounds.outer).all())
    True
    """

    outer_level: Tensor
    inner_level: Tensor

    @hints_at_names
    def __init__(
        self,
        alpha: float = 0.1,
        *,
        outer: str = "false_negative_rate",
        inner: str = "false_positive_rate",
        delta: float | None = None,
        nonempty: bool = False,
        ignore_index: int | None = None,
    ) -> None:
        super().__init__()
        for name, value in (("alpha", alpha), ("delta", delta)):
            if value is not None and as_number(value, name, positive=True) >= 1:
                raise ValueError(f"{name} must be below 1, got {value:g}")
        for name, risk in (("outer", outer), ("inner", inner)):
            if risk not in _RISKS[name]:
                words = " or ".join(map(repr, _RISKS[name]))
                raise ValueError(
                    f"{name} must be {words}, got {risk!r}{did_you_mean(risk, _RISKS[name])}"
                )
        if not isinstance(nonempty, bool):
            raise TypeError(f"nonempty must be True or False, got {nonempty!r}")
        if ignore_index is not None and not isinstance(ignore_index, int):
            raise TypeError(f"ignore_index must be an integer or None, got {ignore_index!r}")
        self.alpha, self.delta, self.nonempty = float(alpha), delta, nonempty
        self.outer, self.inner, self.ignore_index = outer, inner, ignore_index
        # NaN until they are calibrated.
        self.register_buffer("outer_level", torch.tensor(math.nan))
        self.register_buffer("inner_level", torch.tensor(math.nan))
        self.reset()

    def reset(self) -> None:
        """Discard the counts of all batches. Computed thresholds are kept."""
        self._counts: list[Tensor] = []

    @torch.no_grad()
    def update(self, input: Tensor, target: Tensor) -> None:
        """Count the pixels of a batch at all thresholds.

        Parameters
        ----------
        input : tensor of shape (B, ...)
            Logits of the object; each index of dimension 0 is an image.
        target : tensor of the same shape, or (B, H, W) for logits (B, 1, H, W)
            Masks of bool, {0, 1} or {-1, 1}, with ``ignore_index`` for pixels that do not count.
        """
        logits = _as_logits(input)
        if not isinstance(target, Tensor):
            raise TypeError(f"target must be a tensor, got {type(target).__name__}")
        if target.shape != input.shape and tuple(target.shape) != (len(input), *input.shape[2:]):
            raise ValueError(
                f"target must have shape {tuple(input.shape)}, got {tuple(target.shape)}"
            )
        void = math.nan if self.ignore_index is None else float(self.ignore_index)
        truth, valid = read_target(target, void)
        flat, inside = logits.reshape(len(logits), -1), truth.reshape(len(logits), -1)
        # The number of thresholds that each logit reaches, and a number for its image and its
        # truth.
        reached = torch.bucketize(flat, _thresholds(flat.device), right=True)
        kinds = _STEPS + 2
        image = torch.arange(len(flat), device=flat.device)[:, None]
        place = (2 * image + inside.long()) * kinds + reached
        if valid is not None:
            place = place[valid.reshape(inside.shape)]
        counts = torch.bincount(place.reshape(-1), minlength=2 * len(flat) * kinds)
        self._counts.append(counts.view(len(flat), 2, kinds))

    def compute(self) -> dict[str, RiskControl]:
        """Choose the thresholds from all batches of all ranks since the last reset.

        Returns
        -------
        dict
            The ``RiskControl`` of "outer", whose level is the threshold, and of "inner", whose
            level is the negative threshold, because it is a threshold for the background.

        Raises
        ------
        ValueError
            If there are too few images for alpha (n >= 1 / alpha - 1).
        """
        from setwise.decisions._risk_control import control_of, passes, require_examples

        several = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
        if not self._counts and not several:
            raise ValueError("update must be called before compute, got no batch")
        where = "cuda" if several and dist.get_backend() == "nccl" else "cpu"
        nothing = torch.zeros(0, 2, _STEPS + 2, dtype=torch.int64, device=where)
        counts = gathered(torch.cat(self._counts or [nothing])).cpu()
        finite = _thresholds(torch.device("cpu")).double()
        found: dict[str, RiskControl] = {}
        for part, own in (("outer", counts[:, 1]), ("inner", counts[:, 0].flip(1))):
            # Below threshold k lie the logits that reach at most k thresholds. For the inner mask
            # the scores are negative logits, and the background takes the place of the object.
            missed = torch.cat([torch.zeros(len(own), 1), own[:, :-1].cumsum(1)], 1).double()
            total = own.sum(1, keepdim=True)
            losses = missed / total.clamp(min=1)
            if getattr(self, part) in ("miss", "excess"):
                losses = (missed > 0).double()
            if self.nonempty:
                losses = losses[total[:, 0] > 0]
            require_examples(len(losses), self.alpha, self.delta, "input")
            sums = losses.sum(0).numpy()
            lowest = torch.tensor([-math.inf], dtype=torch.float64)
            order = finite if part == "outer" else -finite.flip(0)
            levels = torch.cat([lowest, order]).numpy()
            good = passes(sums, len(losses), self.alpha, self.delta).nonzero()[0]
            found[part] = control_of(
                sums[None],
                len(losses),
                (self.alpha,),
                self.delta,
                levels,
                good,
                True,
                int(good[-1]) if good.size else None,
            )
        for part, sign in (("outer", 1.0), ("inner", -1.0)):
            level = found[part].level
            # There is always a level, because the full and the empty mask have a risk of 0.
            assert level is not None
            getattr(self, f"{part}_level").fill_(sign * level)
        return found

    @torch.no_grad()
    def forward(self, input: Tensor) -> MaskBounds:
        """Return the inner and the outer masks of logits.

        If ``alpha`` is so large that the outer mask would lie within the inner one, the two are
        exchanged, which preserves both guarantees.
        """
        logits = _as_logits(input)
        if bool(torch.isnan(self.outer_level)):
            raise ValueError("compute must be called before masks are asked for")
        outer = logits >= self.outer_level.to(logits.device)
        inner = logits >= self.inner_level.to(logits.device)
        return MaskBounds(inner & outer, inner | outer)

    def extra_repr(self) -> str:
        """Return the settings."""
        words = [f"alpha={self.alpha:g}", f"outer={self.outer!r}", f"inner={self.inner!r}"]
        return ", ".join([*words, *([f"delta={self.delta:g}"] if self.delta else [])])


def _thresholds(device: torch.device) -> Tensor:
    return torch.linspace(-_LARGEST, _LARGEST, _STEPS + 1, device=device)


def _as_logits(input: Tensor) -> Tensor:
    """Return logits as float32, the type of the thresholds."""
    if not isinstance(input, Tensor):
        raise TypeError(f"input must be a tensor, got {type(input).__name__}")
    if input.dtype not in FLOATS:
        raise TypeError(f"input must be float16, bfloat16, float32 or float64, got {input.dtype}")
    if input.ndim < 2:
        raise ValueError(f"input must have shape (B, ...), got {tuple(input.shape)}")
    logits = input.detach().float()
    if bool(torch.isnan(logits).any()):
        raise ValueError("input must hold logits, got NaN")
    return logits
