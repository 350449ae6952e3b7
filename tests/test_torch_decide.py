"""Masks of least expected loss: tensors on every device give what arrays give."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_cases import DEVICES

import setwise as sw
from setwise.decisions._presence import believed
from setwise.torch._inputs._presence import independent

RATIOS = ["jaccard", "dice", sw.losses.FBeta(2.0), sw.losses.FBeta(0.5), 3.0 * sw.losses.Jaccard()]


def probabilities(shape, seed, dtype=torch.float64):
    """Of all sizes, certain ones and ties among them."""
    rng = np.random.default_rng(seed)
    p = rng.random(shape) ** rng.choice([0.2, 1.0, 3.0, 12.0], size=(shape[0], 1))
    p[rng.random(shape) < 0.1] = 0.0
    p[rng.random(shape) < 0.05] = 1.0
    p[:, 0] = p[:, -1]
    return torch.tensor(p, dtype=dtype)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("loss", RATIOS, ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equals_arrays(device, loss, dtype):
    for n in (1, 2, 7, 100, 5000):
        p = probabilities((6, n), n, dtype)
        found = sw.torch.decide(p.to(device), loss, activation="none", per_image=True)
        known = sw.decide(p.double().numpy(), loss)
        assert found.exact
        assert found.expected.cpu().numpy() == pytest.approx(known.expected, abs=1e-9)
        assert found.mask.device.type == device
        # Masks may differ where scores are equal up to rounding; what they cost may not.
        hits = [torch.as_tensor(m).sum(1) for m in (found.mask.cpu(), known.mask)]
        for k in torch.nonzero(hits[0] != hits[1]).flatten().tolist():
            assert abs(found.expected[k].item() - known.expected[k]) <= 1e-11
        assert (found.regret_bound.cpu() <= 1e-9 * 3).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("loss", [*RATIOS[:3], "hamming"], ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_presence_equals_arrays(device, loss, dtype):
    for n in (1, 2, 7, 100, 5000):
        p = probabilities((6, n), n, dtype)
        presence = torch.tensor([0.0, 0.1, 0.5, 0.9, 0.999, 1.0], dtype=dtype)
        given = {"activation": "none", "per_image": True, "presence": presence.to(device)}
        found = sw.torch.decide(p.to(device), loss, **given)
        known = sw.decide(p.double().numpy(), loss, presence=presence.double().numpy())
        allowed = 1e-6 if dtype == torch.float32 else 1e-9
        assert found.exact
        assert found.expected.cpu().numpy() == pytest.approx(known.expected, abs=allowed)
        assert not found.mask[0].any()


def test_the_equation_of_presence_equals_that_of_arrays():
    p = probabilities((7, 40), 3)
    p[6] *= 0.01
    presence = torch.tensor([0.0, 0.1, 0.5, 0.9, 0.999, 1.0, 1.0], dtype=torch.float64)
    chances, scale, there = independent(p, presence)
    flat, known, believes = believed(
        p.numpy().ravel(), np.repeat(np.arange(7), 40), presence.numpy()
    )
    assert scale.numpy() == pytest.approx(known, rel=1e-12)
    assert there.numpy() == pytest.approx(believes)
    assert chances.numpy().ravel() == pytest.approx(flat * np.repeat(known, 40), rel=1e-12)


def test_the_least_numbers_there_are_have_a_presence():
    """Logits of -745: the sum of their probabilities has no reciprocal."""
    tiny = torch.full((2, 4), 5e-324, dtype=torch.float64)
    presence = torch.tensor([1.0, 5e-324], dtype=torch.float64)
    found = sw.torch.decide(tiny, "jaccard", activation="none", per_image=True, presence=presence)
    known = sw.decide(tiny.numpy(), "jaccard", presence=presence.numpy())
    assert found.expected.numpy() == pytest.approx(known.expected, abs=1e-9)
    assert found.mask.tolist() == known.mask.tolist()


def test_a_class_of_each_image_is_there_or_not():
    logits = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(4)) - 2
    there = torch.tensor([[0.02, 0.99, 0.5], [0.99, 0.02, 0.3]])
    both = sw.torch.decide(logits, "dice", per_image=True, per_class=True, presence=there)
    assert not both.mask[0, 0].any()
    assert both.mask[0, 1].any()
    for i in range(2):
        for c in range(3):
            cell = sw.torch.decide(logits[i, c], "dice", presence=there[i, c])
            assert torch.equal(both.mask[i, c], cell.mask)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("loss", ["hamming", "exponential", "face_track_2"])
def test_other_losses_by_the_host(device, loss):
    p = probabilities((3, 9), 1)
    found = sw.torch.decide(p.to(device), loss, activation="none", per_image=True)
    known = sw.decide(p.numpy(), loss)
    assert np.array_equal(found.mask.cpu().numpy(), known.mask)
    assert found.expected.cpu().numpy() == pytest.approx(known.expected)
    assert found.method == known.method


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_sets_and_shapes(device, dtype):
    logits = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0)).to(dtype)
    p = torch.sigmoid(logits.double() if dtype == torch.float64 else logits.float()).double()
    whole = sw.torch.decide(logits.to(device), "dice")
    assert whole.mask.shape == logits.shape
    assert whole.expected.shape == ()
    assert whole.expected.item() == pytest.approx(
        sw.decide(p.numpy().ravel(), "dice").expected, abs=1e-6
    )
    images = sw.torch.decide(logits.to(device), "dice", per_image=True)
    classes = sw.torch.decide(logits.to(device), "dice", per_class=True)
    both = sw.torch.decide(logits.to(device), "dice", per_image=True, per_class=True)
    assert images.expected.shape == (2,)
    assert classes.expected.shape == (3,)
    assert both.expected.shape == (2, 3)
    for i in range(2):
        one = sw.torch.decide(logits[i].to(device), "dice")
        assert torch.equal(images.mask[i], one.mask)
        for c in range(3):
            cell = sw.torch.decide(logits[i, c].to(device), "dice")
            assert torch.equal(both.mask[i, c], cell.mask)
            assert both.expected[i, c].item() == pytest.approx(cell.expected.item(), abs=1e-6)
    for c in range(3):
        assert torch.equal(
            classes.mask[:, c], sw.torch.decide(logits[:, c].to(device), "dice").mask
        )


@pytest.mark.parametrize("device", DEVICES)
def test_softmax_of_classes(device):
    logits = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(1))
    soft = sw.torch.decide(logits.to(device), "jaccard", activation="softmax", per_class=True)
    given = sw.torch.decide(
        torch.softmax(logits, 1).to(device), "jaccard", activation="none", per_class=True
    )
    assert torch.equal(soft.mask, given.mask)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("loss", ["jaccard", "hamming"])
def test_void_pixels_are_not_there(device, loss):
    logits = torch.randn(2, 3, 10, generator=torch.Generator().manual_seed(2)).to(device)
    target = torch.zeros(2, 10, dtype=torch.int64, device=device)
    target[0, 3:6] = 255
    found = sw.torch.decide(logits, loss, per_image=True, target=target, ignore_index=255)
    assert not found.mask[0, :, 3:6].any()
    left = torch.cat([logits[0, :, :3], logits[0, :, 6:]], 1)
    alone = sw.torch.decide(left, loss)
    assert found.expected[0].item() == pytest.approx(alone.expected.item(), abs=1e-12)
    everything = torch.full_like(target, 255)
    nothing = sw.torch.decide(logits, loss, target=everything, ignore_index=255)
    assert not nothing.mask.any()
    assert nothing.expected.item() == 0


def test_nothing_at_all():
    empty = sw.torch.decide(torch.zeros(0, 3), "dice", per_image=True)
    assert empty.mask.shape == (0, 3)
    assert empty.expected.shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"activation": "relu"}, "activation must be one of"),
        ({"activation": "none"}, r"input must hold probabilities in \[0, 1\]"),
        ({"activation": "softmax"}, "input must have a dimension of classes"),
        ({"target": torch.zeros(3)}, "target must be None unless"),
        ({"target": torch.zeros(2), "ignore_index": 1}, "target must have shape"),
        ({"per_class": True}, "input must have a dimension of classes"),
        ({"presence": torch.zeros(2)}, "presence must have a number for each set"),
        ({"presence": torch.tensor(1.5)}, r"presence must lie in \[0, 1\]"),
        ({"presence": torch.tensor(float("nan"))}, r"presence must lie in \[0, 1\]"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(arguments, words):
    with pytest.raises(ValueError, match=words):
        sw.torch.decide(**{"input": torch.tensor([2.0, -1.0, 0.0]), "loss": "dice"} | arguments)


def test_a_batch_of_no_images_has_no_presence_to_solve_for():
    none = torch.zeros(0, dtype=torch.float64)
    chances, scale, there = independent(torch.zeros(0, 4), none)
    assert chances.shape == (0, 4)
    assert len(scale) == len(there) == 0
    found = sw.torch.decide(torch.zeros(0, 1, 2, 2), "jaccard", per_image=True, presence=none)
    assert found.mask.shape == (0, 1, 2, 2)


def test_classes_are_refused_with_a_sigmoid():
    """Class logits of exclusive classes are no logits of masks; void maps of masks are taken."""
    logits = torch.randn(2, 3, 10, generator=torch.Generator().manual_seed(5))
    classes = logits.argmax(1)
    classes[0, :2] = 255
    told = r"activation must be 'softmax' where target holds classes, .*, got 'sigmoid' and the cl"
    for dtype in (torch.uint8, torch.int64, torch.uint16):
        given = {"target": classes.to(dtype), "ignore_index": 255}
        with pytest.raises(ValueError, match=told):
            sw.torch.decide(logits, "dice", **given)
        found = sw.torch.decide(logits, "dice", activation="softmax", per_class=True, **given)
        assert not found.mask[0, :, :2].any()
    void = torch.where(classes == 255, 255, 0)
    assert not sw.torch.decide(logits, "dice", target=void, ignore_index=255).mask[0, :, :2].any()
    of_masks = torch.where(classes == 255, 255, 7)[:, None].expand(logits.shape)
    sw.torch.decide(logits, "dice", target=of_masks, ignore_index=255)  # no classes: it has masks
