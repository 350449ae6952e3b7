"""Calibration on logits: what counts of batches give is what arrays give, and what is refused."""

import numpy as np
import pytest
import torch
from torch_cases import DEVICES

import setwise as sw


def drawn(n, seed=0, side=6):
    rng = np.random.default_rng(seed)
    target = rng.random((n, 1, side, side)) < rng.random((n, 1, 1, 1))
    logits = 3.0 * target - 1.5 + 2.0 * rng.normal(size=target.shape)
    # On the thresholds, which are exact in float32, so that arrays have the same family.
    grid = np.linspace(-12, 12, 2049)
    logits = grid[np.clip(np.round((logits + 12) / 24 * 2048).astype(int), 0, 2048)]
    return torch.tensor(logits, dtype=torch.float32), torch.tensor(target)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("delta", [None, 0.2])
@pytest.mark.parametrize(
    "risks", [("false_negative_rate", "false_positive_rate"), ("miss", "excess")]
)
def test_equals_arrays(device, delta, risks):
    logits, target = drawn(80)
    options = {"outer": risks[0], "inner": risks[1], "delta": delta}
    ours = sw.torch.MaskCalibrator(0.2, **options)
    for part in range(0, 80, 16):
        ours.update(logits[part : part + 16].to(device), target[part : part + 16].to(device))
    found = ours.compute()
    chances = torch.sigmoid(logits.double()).numpy()[:, 0]
    model = sw.conformal.ConformalMasks(alpha=0.2, **options)
    model.conformalize(list(chances), list(target.numpy()[:, 0]))
    for part in ("outer", "inner"):
        known = model.controls_[part]
        assert found[part].risk == pytest.approx(known.risk, abs=1e-12)
        assert found[part].bound == pytest.approx(known.bound, abs=1e-9)
    masks = ours(logits.to(device))
    for k, known in enumerate(model.predict_set(list(chances))):
        np.testing.assert_array_equal(masks.outer[k, 0].cpu(), known.outer)
        np.testing.assert_array_equal(masks.inner[k, 0].cpu(), known.inner)


def test_the_mean_risks_are_at_most_alpha():
    n, alpha, repeats = 20, 0.2, 60
    seen = np.zeros((repeats, 2))
    for k in range(repeats):
        logits, target = drawn(n + 20, seed=k, side=3)
        ours = sw.torch.MaskCalibrator(alpha)
        ours.update(logits[:n], target[:n])
        ours.compute()
        masks = ours(logits[n:])
        for column, (wrong, whole) in enumerate(
            ((target[n:] & ~masks.outer, target[n:]), (~target[n:] & masks.inner, ~target[n:]))
        ):
            lost, size = wrong.flatten(1).sum(1), whole.flatten(1).sum(1).clamp(min=1)
            seen[k, column] = (lost / size).mean()
    assert (seen.mean(axis=0) <= alpha + 2.5 * seen.std(axis=0) / np.sqrt(repeats)).all()


def test_void_pixels_do_not_count_and_empty_images_can_be_left_out():
    logits, target = drawn(40)
    spoilt = target.long()
    spoilt[:, :, 0] = 255
    ours = sw.torch.MaskCalibrator(0.2, ignore_index=255)
    ours.update(logits, spoilt)
    plain = sw.torch.MaskCalibrator(0.2)
    plain.update(logits[:, :, 1:].contiguous(), target[:, :, 1:].contiguous())
    assert ours.compute()["outer"].level == plain.compute()["outer"].level
    empty = torch.zeros_like(target)
    ours = sw.torch.MaskCalibrator(0.2, nonempty=True)
    ours.update(logits, target)
    level = ours.compute()["outer"].level
    ours.update(logits, empty)
    assert ours.compute()["outer"].level == level
    ours.reset()
    ours.update(logits, empty)
    with pytest.raises(ValueError, match=r"input must hold at least 4 examples for alpha=0\.2"):
        ours.compute()


def test_thresholds_are_stored_with_the_network():
    logits, target = drawn(40)
    ours = sw.torch.MaskCalibrator(0.2)
    ours.update(logits.half(), target[:, 0])  # (B, H, W) for (B, 1, H, W)
    ours.compute()
    again = sw.torch.MaskCalibrator(0.2)
    with pytest.raises(ValueError, match="compute must be called"):
        again(logits)
    again.load_state_dict(ours.state_dict())
    assert torch.equal(again(logits).outer, ours(logits).outer)
    assert repr(ours).startswith("MaskCalibrator(alpha=0.2, outer='false_negative_rate'")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x, y: sw.torch.MaskCalibrator(1.5), ValueError, "alpha must be below 1"),
        (lambda x, y: sw.torch.MaskCalibrator(outer="mis"), ValueError, "did you mean 'miss'"),
        (lambda x, y: sw.torch.MaskCalibrator(nonempty=1), TypeError, "nonempty must be"),
        (lambda x, y: sw.torch.MaskCalibrator(ignore_index=0.5), TypeError, "ignore_index must"),
        (lambda x, y: sw.torch.MaskCalibrator().compute(), ValueError, "update must be called"),
        (lambda x, y: sw.torch.MaskCalibrator().update(x, y[:3]), ValueError, "target must have"),
        (lambda x, y: sw.torch.MaskCalibrator().update(x[0, 0, 0], y), ValueError, "input must"),
        (lambda x, y: sw.torch.MaskCalibrator().update(x.long(), y), TypeError, "input must be"),
        (lambda x, y: sw.torch.MaskCalibrator().update(x / 0 * 0, y), ValueError, "got NaN"),
        (lambda x, y: sw.torch.MaskCalibrator().update(x, 0), TypeError, "target must be a"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(call, error, words):
    with pytest.raises(error, match=words):
        call(*drawn(6))
