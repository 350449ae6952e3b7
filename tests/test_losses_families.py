"""Losses answer for themselves: a family written here has the kernels, on arrays and tensors."""

import ast
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from torch_cases import torch

import setwise as sw
from setwise import losses
from setwise.functions import Counts, Ratio
from setwise.losses._base import LossTraits
from setwise.losses._families import Family
from setwise.losses._labels import read_labels
from setwise.losses._ratio import OfRatio
from setwise.surrogates import DecomposedHinge, LovaszHinge, MarginRescaling, SlackRescaling
from setwise.torch import _cpu
from setwise.torch._reference._gains import GAINS, Gains

SOURCE = Path(sw.__file__).parent


def asked_types(tree: ast.Module) -> set[str]:
    """Names that ``isinstance`` or ``issubclass`` is asked about."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) == 2)
    return {
        name.id
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id in ("isinstance", "issubclass")
        for name in ast.walk(call.args[1])
        if isinstance(name, ast.Name)
    }


def names_of_losses() -> set[str]:
    """Every class of a loss, public or not, but ``Loss`` itself."""
    found, new = set(), {losses.Loss}
    while new:
        new = {child for parent in new for child in parent.__subclasses__()}
        found |= {child.__name__ for child in new if child.__module__.startswith("setwise.")}
    return found


def test_nobody_outside_asks_a_loss_for_its_type():
    kinds = names_of_losses()
    assert {"OfRatio", "SumLoss", "Hamming"} <= kinds
    for path in sorted(SOURCE.rglob("*.py")):
        if "losses" not in path.relative_to(SOURCE).parts:
            asked = asked_types(ast.parse(path.read_text(encoding="utf-8"))) & kinds
            assert not asked, f"{path.name} asks for {asked}"


# ------------------------------------------------- a ratio of other constants, written outside


class Recallish(OfRatio):
    """F-beta of a beta that no class of the library has."""

    beta: float

    def __init__(self, beta):
        self._set(beta=beta)

    def _ratio(self, m):
        return Ratio(m, self.beta)

    @property
    def is_increasing(self):
        return True


class Overlap(OfRatio):
    """Jaccard under another name: submodular, so that the Lovász hinge takes it."""

    def _ratio(self, m):
        return Ratio(m)

    is_submodular = is_increasing = True


def plainly(ratio, *, submodular):
    """The same numbers from a callable: no kernel knows it, sets are enumerated or sorted."""

    def value(mistakes, positive):
        return float(Counts(ratio._ratio(int(positive.sum())), positive)(mistakes))

    return losses.SetLoss(value, submodular=submodular, increasing=True)


@pytest.fixture
def batch():
    rng = np.random.default_rng(8)
    return rng.random((5, 6)) < 0.5, rng.normal(size=(5, 6))


@pytest.mark.parametrize(
    ("make", "ratio"),
    [
        (LovaszHinge, Overlap()),
        *((make, Recallish(0.7)) for make in (MarginRescaling, SlackRescaling)),
        *((make, Recallish(1.3)) for make in (MarginRescaling, SlackRescaling, DecomposedHinge)),
    ],
)
def test_a_ratio_written_outside_runs_compiled(make, ratio, batch):
    y, scores = batch
    surrogate = make(ratio)
    values, gradients = surrogate.value_and_gradient(y, scores)
    plain = make(plainly(ratio, submodular=ratio.is_submodular))
    expected, slopes = plain.value_and_gradient(y, scores)
    np.testing.assert_allclose(values, expected, rtol=1e-9)
    np.testing.assert_allclose(gradients, slopes, rtol=1e-9, atol=1e-12)
    part = getattr(surrogate, "submodular_part", surrogate)
    arguments = () if part.evaluate.__func__ is LovaszHinge.evaluate else (np.ones(5),)
    kernel, *_ = part._call(part.loss, read_labels(y), *arguments)
    assert kernel.__name__ in ("lovasz_ratio", "rescale_ratio")
    assert surrogate.is_exact or make is LovaszHinge
    flat, offsets = y.ravel(), np.array([0, 4, 4, 13, 30])
    ragged = surrogate.value_and_gradient(flat, scores.ravel(), offsets=offsets)[0]
    for k in range(4):
        here = slice(offsets[k], offsets[k + 1])
        assert ragged[k] == surrogate(flat[here], scores.ravel()[here])


@pytest.mark.parametrize("compiled", [True, False])
def test_a_ratio_written_outside_runs_on_tensors(compiled, batch, monkeypatch, recwarn):
    if not compiled:
        monkeypatch.setattr(_cpu, "is_compiled", lambda: False)
    y, scores = batch
    x, target = torch.tensor(scores), torch.tensor(y)
    for function, twin, loss in (
        (sw.torch.lovasz_hinge, "jaccard", Overlap()),
        (sw.torch.decomposed_hinge, losses.FBeta(1.3), Recallish(1.3)),
        (sw.torch.margin_rescaling, losses.FBeta(0.7), Recallish(0.7)),
    ):
        options = {"per_image": True, "reduction": "none"}
        torch.testing.assert_close(
            function(x, target, loss, **options), function(x, target, twin, **options)
        )
    bucket = {"buckets": 64}
    assert sw.torch.lovasz_hinge(x.float(), target, Overlap(), **bucket) == sw.torch.lovasz_hinge(
        x.float(), target, "jaccard", **bucket
    )
    assert not recwarn.list, "nothing ran on the host"


# ----------------------------------------------- a family of its own: the file and one line


@dataclass(frozen=True)
class MissedRows(Family):
    """sqrt(false negatives), by a kernel of its own."""

    calls: list

    def lovasz(self, case, componentwise):
        return self.kernel, self.calls

    @staticmethod
    def kernel(positive, scores, offsets, calls, values, gradient):
        """sum_k s_(k) (sqrt(k) - sqrt(k - 1)) over the violating positives of each set."""
        calls.append(len(values))
        gradient[:] = 0.0
        for i in range(len(values)):
            hits = offsets[i] + np.flatnonzero(positive[offsets[i] : offsets[i + 1]])
            errors = 1.0 - scores[hits].astype(np.float64)
            order = np.argsort(-errors, kind="stable")
            order = order[errors[order] > 0]
            gains = np.diff(np.sqrt(np.arange(len(order) + 1.0)))
            values[i] = errors[order] @ gains
            gradient[hits[order]] = -gains


@dataclass(frozen=True)
class MissedForm:
    """What a device knows of it."""


def gains_of_missed(form, chain):
    return torch.where(chain.positive, (chain.missed + 1).sqrt() - chain.missed.sqrt(), 0.0)


class Missed(losses.Loss):
    is_submodular = is_increasing = True

    def function_of(self, positive):
        return Counts(lambda n, q: np.sqrt(n), positive)


class FastMissed(Missed):
    _traits = LossTraits(is_symmetric=True)
    _form = MissedForm()

    def __init__(self):
        self._set(calls=[])

    def _family(self, labels):
        return MissedRows(self.calls)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_new_family_has_its_kernel_in_batches(dtype, batch):
    y, scores = batch[0], batch[1].astype(dtype)
    fast, plain = LovaszHinge(FastMissed()), LovaszHinge(Missed())
    for answer, expected in zip(
        fast.value_and_gradient(y, scores), plain.value_and_gradient(y, scores), strict=True
    ):
        np.testing.assert_allclose(answer, expected, rtol=1e-6)
        assert answer.dtype == expected.dtype
    assert fast.loss.calls == [5], "all sets in one call"
    # What it has no kernel for goes the plain way: enumeration.
    for make in (MarginRescaling, SlackRescaling):
        np.testing.assert_allclose(make(FastMissed())(y, scores), make(Missed())(y, scores))


@pytest.mark.parametrize("compiled", [True, False])
def test_a_new_form_is_one_line_for_every_device(compiled, batch, monkeypatch):
    monkeypatch.setattr(_cpu, "is_compiled", lambda: compiled)
    y, scores = batch
    x, target = torch.tensor(scores), torch.tensor(y.astype("u1"))
    target[2, 3] = 255
    criterion = sw.torch.LovaszHingeLoss(
        FastMissed(), per_image=True, reduction="none", ignore_index=255
    )
    if compiled:
        with pytest.warns(UserWarning, match="in no family that the device knows"):
            criterion(x, target)
    monkeypatch.setitem(GAINS, MissedForm, Gains(gains_of_missed))
    values = criterion(x, target)
    for i in range(5):
        kept = target[i] != 255
        expected = LovaszHinge(Missed())(target[i][kept].numpy(), x[i][kept].numpy())
        assert values[i].item() == pytest.approx(expected, rel=1e-12)


# ------------------------------------------------------------- a family is made once for a batch


class Counted(losses.Exponential):
    def __init__(self):
        super().__init__()
        self._set(made=[])

    def _family(self, labels):
        self.made.append(labels.n)
        return super()._family(labels)


@pytest.mark.parametrize("surrogate", ["lovasz", "margin", "slack"])
def test_rounds_of_learning_make_the_family_once(surrogate):
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(60, 3)), np.repeat(np.arange(12), 5)
    y = X[:, 0] + rng.normal(scale=0.3, size=60) > 0
    loss = Counted()
    model = sw.SetClassifier(loss, surrogate).fit(X, y, groups=groups)
    assert model.n_iter_ > 3
    assert loss.made == [12]


def test_what_is_kept_with_labels_is_kept_for_its_owner():
    read, one, other = read_labels([1, 0, 1]), object(), object()
    labels = replace(read, kept={})
    assert labels.keep(one, "name", int, 1) == labels.keep(one, "name", int, 2) == 1
    assert labels.keep(other, "name", int, 3) == labels.keep(one, "other", int, 3) == 3
    assert read.keep(one, "name", int, 2) == 2, "nothing is kept unasked"
