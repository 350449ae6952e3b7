"""The recipes for MONAI and nnU-Net run in stubs of their training loops."""

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
PAGES = Path(__file__).parent.parent / "docs" / "coming_from"


def blocks(page: str) -> list[str]:
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def batches(count: int, n_classes: int, void: int):
    """Images (2, 1, 12, 12) whose class is a step of their value, and labels (2, 1, 12, 12)."""
    rng = torch.Generator().manual_seed(0)
    for _ in range(count):
        image = torch.rand(2, 1, 12, 12, generator=rng)
        label = (image * n_classes).long().clamp(max=n_classes - 1)
        label[:, :, :2] = void
        yield {"image": image, "label": label, "data": image, "target": label}


def network(n_classes: int) -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 1), torch.nn.ReLU(), torch.nn.Conv2d(8, n_classes, 1)
    )


def test_dice_and_cross_entropy_have_the_values_of_monai() -> None:
    known: dict[str, object] = {}
    exec(blocks("monai")[0], known)
    rng = torch.Generator().manual_seed(1)
    logits = torch.randn(3, 4, 6, 7, generator=rng, dtype=torch.float64, requires_grad=True)
    target = torch.randint(0, 3, (3, 1, 6, 7), generator=rng)  # class 3 is absent
    p, y = torch.softmax(logits, 1), torch.nn.functional.one_hot(target[:, 0], 4).movedim(-1, 1)
    both, total = (p * y).sum((2, 3)), p.sum((2, 3)) + y.sum((2, 3))
    dice = (1 - (2 * both + 1e-5) / (total + 1e-5)).mean()
    expected = dice + torch.nn.functional.cross_entropy(logits, target[:, 0])
    loss = known["DiceCE"]()(logits, target)  # type: ignore[operator]
    torch.testing.assert_close(loss, expected)
    (ours,), (theirs,) = (
        torch.autograd.grad(x, logits, retain_graph=True) for x in (loss, expected)
    )
    torch.testing.assert_close(ours, theirs)


def test_the_loop_of_monai_learns() -> None:
    model = network(3)
    losses: list[float] = []

    class Batches:
        def __iter__(self):
            return batches(60, 3, 255)

    known = {
        "network": model,
        "loader": Batches(),
        "optimizer": torch.optim.Adam(model.parameters(), 0.03),
    }
    module, loop = blocks("monai")
    exec(module, known)
    exec(
        loop.replace("    optimizer.step()", "    optimizer.step(); losses.append(loss.item())"),
        {**known, "losses": losses},
    )
    assert np.mean(losses[-5:]) < 0.7 * np.mean(losses[:5])


class StubTrainer:
    """What the recipe uses of nnU-Net's trainer, and one of its steps."""

    def __init__(self, n_classes: int, void: int | None, supervised: bool) -> None:
        self.label_manager = SimpleNamespace(ignore_label=void, has_regions=False)
        self.enable_deep_supervision = supervised
        self.network = network(n_classes)
        self.optimizer = torch.optim.SGD(self.network.parameters(), 0.5)
        self.loss = self._build_loss()

    def _build_loss(self):
        class Weighted(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.loss = torch.nn.Identity()
                self.weights = (2 / 3, 1 / 3)

            def forward(self, outputs, targets):
                pairs = zip(self.weights, outputs, targets, strict=True)
                return sum(w * self.loss(x, y) for w, x, y in pairs)

        return Weighted()

    def train_step(self, batch: dict) -> float:
        self.optimizer.zero_grad(set_to_none=True)
        output, target = self.network(batch["data"]), batch["target"].float()
        if self.enable_deep_supervision:
            output, target = [output, output[..., ::2, ::2]], [target, target[..., ::2, ::2]]
        loss = self.loss(output, target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 12)
        self.optimizer.step()
        return loss.item()


@pytest.mark.parametrize("supervised", [False, True])
@pytest.mark.parametrize("void", [None, 3])
def test_the_trainer_of_nnunet_learns(void, supervised, monkeypatch) -> None:
    for name in ("nnunetv2", "nnunetv2.training", "nnunetv2.training.nnUNetTrainer"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    stub = ModuleType("nnunetv2.training.nnUNetTrainer.nnUNetTrainer")
    stub.nnUNetTrainer = StubTrainer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, stub.__name__, stub)
    known: dict[str, object] = {}
    exec(blocks("nnunet")[0], known)
    trainer = known["nnUNetTrainerJaccardCE"](3, void, supervised)  # type: ignore[operator]
    losses = [trainer.train_step(batch) for batch in batches(60, 3, 0 if void is None else void)]
    assert np.mean(losses[-5:]) < 0.9 * np.mean(losses[:5])
