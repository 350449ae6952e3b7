"""Component by component, and scores over batches: each against a loop."""

import numpy as np
import pytest
from torch_cases import DEVICES, torch

import setwise as sw

t = sw.torch


def draw(device="cpu"):
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.standard_normal((3, 1, 6, 5)), device=device)
    numbers = torch.tensor(rng.choice([0, 0, 0, 1, 2, 7], (3, 6, 5)), device=device)
    numbers[2] = 0  # an image of background alone
    numbers[0, 0, 0] = -1
    return x, numbers


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("loss", ["jaccard", "dice"])
@pytest.mark.parametrize("errors", ["sigmoid", "hinge"])
def test_components_one_after_the_other(loss, errors, device):
    """Every component with the background of its image, by the loss of one set."""
    if (loss, errors) == ("dice", "hinge"):
        return
    x, numbers = draw(device)
    one = t.lovasz_sigmoid if errors == "sigmoid" else t.lovasz_hinge
    expected = []
    for image, map_ in zip(x[:, 0], numbers, strict=True):
        for k in [k for k in map_.unique().tolist() if k > 0] or [0]:
            kept = (map_ == 0) | (map_ == k)
            expected.append(one(image[kept], (map_ == k)[kept] & (map_[kept] > 0), loss).item())
    criterion = t.InstanceLoss(loss, errors=errors, ignore_index=-1, reduction="none")
    found = criterion(x, numbers)
    np.testing.assert_allclose(found.cpu().numpy(), expected, atol=1e-12)
    mean = t.InstanceLoss(loss, errors=errors, ignore_index=-1)(x, numbers[:, None])
    assert mean.item() == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("device", DEVICES)
def test_nearest_component_owns_the_background(device):
    x, numbers = draw(device)
    numbers[0, 0, 0] = 0
    expected = []
    for image, map_ in zip(x[:, 0].cpu(), numbers.cpu(), strict=True):
        places = (map_ > 0).nonzero()
        if not len(places):
            expected.append(t.lovasz_sigmoid(image, map_ > 0).item())
            continue
        every = torch.cartesian_prod(torch.arange(6), torch.arange(5))
        distances = ((every[:, None] - places[None]) ** 2).sum(2)
        ties = distances == distances.amin(1, keepdim=True)
        owners = map_[places[:, 0], places[:, 1]]
        expected.append((image, map_, ties, owners))
    found = t.InstanceLoss(assign="nearest", reduction="none")(x, numbers).cpu()
    # Where a pixel lies as near to two components either may have it: sums of sizes are kept.
    sets = sum(1 if isinstance(e, float) else len(e[3].unique()) for e in expected)
    assert len(found) == sets
    assert found[-1].item() == pytest.approx(expected[-1])
    two = torch.tensor([[[1, 0, 0, 0, 0, 2]]], device=device)
    z = torch.tensor([[[3.0, 3.0, -3.0, -3.0, -3.0, 3.0]]], device=device)
    first, second = t.InstanceLoss(assign="nearest", reduction="none")(z, two).tolist()
    assert first == pytest.approx(t.lovasz_sigmoid(z[0, 0, :3], two[0, 0, :3] > 0).item())
    assert second == pytest.approx(t.lovasz_sigmoid(z[0, 0, 3:], two[0, 0, 3:] > 0).item())


def test_gradient_of_components():
    x, numbers = draw()
    criterion = t.InstanceLoss("dice", ignore_index=-1)
    assert torch.autograd.gradcheck(
        lambda z: criterion(z, numbers), x.requires_grad_(), eps=1e-7, atol=1e-5
    )


@pytest.mark.parametrize("options", [{}, {"classes": "all"}, {"weight": [1.0, 0.0, 2.0]}], ids=str)
def test_scores_of_batches_are_those_of_all(options):
    """Pooled, by image, by class, and of the worst: against the losses of NumPy arrays."""
    rng = np.random.default_rng(1)
    logits = torch.tensor(rng.standard_normal((8, 3, 20)))
    target = torch.tensor(rng.integers(0, 3, (8, 20)))
    target[0] = 1
    target[:, :2] = 255
    means = [
        {}, {"per_image": True}, {"per_image": True, "average": "classes"},
        {"per_image": True, "worst": 0.3}, {"per_image": True, "reduction": "none"},
    ]  # fmt: skip
    for mean in means:
        score = t.SetScore("dice", n_classes=3, ignore_index=255, **options, **mean)
        for start in (0, 3, 6):
            score.update(logits[start : start + 3], target[start : start + 3])
        whole = t.SetScore("dice", n_classes=3, ignore_index=255, **options, **mean)
        np.testing.assert_allclose(score.compute(), whole(logits.argmax(1), target), atol=1e-12)
        score.reset()
        with pytest.raises(ValueError, match="update"):
            score.compute()


def test_means_of_fine_grained_scores():
    """Two images, two classes, written out."""
    target = torch.tensor([[0, 0, 1, 1], [0, 0, 0, 0]])
    found = torch.tensor([[0, 1, 1, 1], [0, 0, 0, 1]])

    def score(**options):
        return t.SetScore(n_classes=2, **options)(found, target).item()

    # Jaccard: image 0 has 1/2 and 2/3, image 1 has 3/4 of class 0 and no class 1.
    assert score(per_image=True) == pytest.approx(((1 / 2 + 2 / 3) / 2 + 3 / 4) / 2)
    assert score(per_image=True, average="classes") == pytest.approx(
        ((1 / 2 + 3 / 4) / 2 + 2 / 3) / 2
    )
    assert score(per_image=True, worst=0.5) == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert score(per_image=True, average="classes", worst=0.5) == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert score() == pytest.approx((4 / 6 + 2 / 4) / 2)
    assert score(per_image=True, classes="all") == pytest.approx(
        ((1 / 2 + 2 / 3) / 2 + (3 / 4 + 0) / 2) / 2
    )
    masks = t.SetScore(n_classes=1, kind="masks")
    assert masks((found > 0)[:, None], target[:, None]).item() == pytest.approx(2 / 4)


@pytest.mark.parametrize("assign", ["background", "nearest"])
def test_a_batch_may_be_empty_and_an_image_one_pixel(assign):
    criterion = t.InstanceLoss(assign=assign)
    assert criterion(torch.zeros(0, 1, 4, 4), torch.zeros(0, 1, 4, 4, dtype=torch.long)) == 0
    # Two images of one pixel, an object and background: errors 1/2 and losses 1/2 and 1/2.
    assert criterion(torch.zeros(2), torch.tensor([1, 0])).item() == pytest.approx(0.5)


@pytest.mark.parametrize("kind", ["classes", "masks"])
@pytest.mark.parametrize("per_image", [False, True])
def test_an_empty_batch_adds_nothing_to_a_score(kind, per_image):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 4)
    y = torch.randint(0, 3, (2, 4)) if kind == "classes" else torch.randint(0, 2, (2, 3, 4))
    score = t.SetScore(n_classes=3, kind=kind, per_image=per_image)
    expected = score(x, y)
    score.update(x[:0], y[:0])
    assert score.compute() == expected


def test_a_score_checks_its_weight_and_its_shape():
    with pytest.raises(ValueError, match=r"weight must have shape \(3,\)"):
        t.SetScore(n_classes=3, weight=[1.0])
    with pytest.raises(ValueError, match="a dimension of images"):
        t.SetScore(n_classes=3)(torch.tensor(1), torch.tensor(1))
