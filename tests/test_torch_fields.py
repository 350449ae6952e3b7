"""Layers of fields: values against enumeration, derivatives against differences, their habits."""

import io
import math
from fractions import Fraction

import numpy as np
import pytest
from torch_cases import SinglePrecisionDevice, torch

import setwise as sw

t = sw.torch
METHODS = ("projection", "trees")
TIGHT = {"tol": 1e-15, "backward_tol": 1e-10}  # a gap is the square of an error of marginals


def draw(shape, seed=0, scale=2.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(*shape, dtype=dtype, generator=generator)


def uniform(shape, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return 0.1 + torch.rand(*shape, dtype=torch.float64, generator=generator)


def gradcheck(of, inputs, **options):
    """Along random directions: a few solutions in place of two for every number."""
    return torch.autograd.gradcheck(of, inputs, fast_mode=True, **options)


def labelings(n, n_labels):
    return np.stack(np.meshgrid(*[np.arange(n_labels)] * n, indexing="ij"), -1).reshape(-1, n)


def field_of(logits, weight, regions=None, region_weight=None, alpha=0.8):
    """The same field, in NumPy, of logits (L, H, W)."""
    unary = -logits.flatten(1).T.double().numpy()
    edges = sw.fields.grid_edges(tuple(logits.shape[1:]))
    field = sw.fields.Field(unary) + sw.fields.Potts(edges, weight)
    if regions is not None:
        field = field + sw.fields.RegionConsistency(regions.numpy(), region_weight, alpha)
    return field


def exact(field):
    """log Z by enumeration."""
    energies = field.energy(labelings(*field.unary.shape))
    return float(np.logaddexp.reduce(-energies))


def likelihood(field, labels):
    return field.energy(labels) + exact(field)


# ------------------------------------------------------------------------------------ marginals


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_labels", [2, 3])
def test_marginals_and_bounds_are_those_of_the_library(method, n_labels):
    logits = draw((2, n_labels, 2, 3))
    regions = torch.tensor([[0, 0, 1], [-1, 1, 1]]).expand(2, 2, 3)
    layer = t.FieldMarginals(0.7, region_weight=0.4, method=method, tol=1e-10, bounds=True)
    post = layer(logits, regions=regions)
    for b in range(2):
        field = field_of(logits[b], 0.7, regions[b], 0.4)
        log_z = exact(field)
        assert post.log_partition_lower[b] <= log_z <= post.log_partition_upper[b]
        if method == "projection":  # trees share edges out evenly here
            theirs = sw.marginals(field, method, tol=1e-10)
            found = post.probabilities[b].flatten(1).T.numpy()
            np.testing.assert_allclose(found, theirs.probabilities, atol=1e-5)
            upper = theirs.log_partition_upper
            np.testing.assert_allclose(float(post.log_partition_upper[b]), upper, atol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_without_weights_it_is_the_softmax(method):
    logits = draw((2, 3, 3, 4))
    p = t.FieldMarginals(0.0, method=method)(logits)
    torch.testing.assert_close(p, logits.softmax(1), rtol=1e-9, atol=1e-12)


def test_a_chain_by_trees_is_exact():
    logits = draw((1, 3, 5))
    post = t.FieldMarginals(0.9, method="trees", tol=1e-12, bounds=True)(logits)
    field = field_of(logits[0], 0.9)
    x = labelings(5, 3)
    mass = np.exp(-field.energy(x) - exact(field))
    p = np.stack([(mass[:, None] * (x == j)).sum(0) for j in range(3)])
    np.testing.assert_allclose(post.probabilities[0].numpy(), p, atol=1e-9)
    np.testing.assert_allclose(float(post.log_partition_upper[0]), exact(field), atol=1e-9)


def test_edges_volumes_images_and_predicted_weights_are_the_same_field():
    logits = draw((2, 3, 3, 4))
    layer = t.FieldMarginals(0.8, tol=1e-10)
    expected = layer(logits)
    edges = sw.fields.grid_edges((3, 4))
    rows = layer(logits[0].flatten(1).T, edges=torch.tensor(np.array(edges)))
    torch.testing.assert_close(rows.T.reshape(3, 3, 4), expected[0])
    volume = layer(logits[:, :, None])
    torch.testing.assert_close(volume[:, :, 0], expected)
    ones = torch.ones(2, 2, 3, 4, dtype=torch.float64)
    ones[:, 0, :, -1] = ones[:, 1, -1] = math.nan  # leads out of the image: does not count
    torch.testing.assert_close(layer(logits, weights=ones), expected)
    flat = torch.full((2, 3, 3, 4), 7)
    torch.testing.assert_close(layer(logits, image=flat), expected)


@pytest.mark.parametrize("unit", [2.0**-80, 2.0**80])
def test_contrast_has_no_unit(unit):
    logits, image = draw((2, 3, 3, 4)).float(), draw((2, 2, 3, 4), 5).float()
    layer = t.FieldMarginals(0.8)
    assert torch.equal(layer(logits, image=unit * image), layer(logits, image=image))


def test_contrast_is_that_of_the_library():
    logits, image = draw((1, 3, 3, 4)), draw((1, 2, 3, 4), 5)
    edges = sw.fields.grid_edges((3, 4))
    for beta in (None, 0.3):
        p = t.FieldMarginals(0.8, beta=beta, tol=1e-10)(logits, image=image)
        colors = image[0].permute(1, 2, 0).numpy()
        weights = 0.8 * sw.fields.contrast_weights(colors, edges, beta)
        post = sw.marginals(field_of(logits[0], weights), "projection", tol=1e-10)
        np.testing.assert_allclose(p[0].flatten(1).T.numpy(), post.probabilities, atol=1e-5)


def test_forbidden_labels_have_probability_zero():
    logits = draw((1, 3, 3, 3))
    logits[0, 1, 0, :] = -math.inf
    logits.requires_grad_()
    p = t.FieldMarginals(1.0)(logits)
    assert (p[0, 1, 0] == 0).all()
    p[0, 0, 1].sum().backward()
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("constant", [1e9, -1e12])
def test_bounds_hold_beside_a_large_constant(method, constant):
    """Of a chain, whose log Z trees know: what the sum of the constants loses, the bounds allow."""
    for seed in range(12):
        logits = draw((1, 3, 5), seed) + constant
        small = logits - constant  # exact
        post = t.FieldMarginals(0.3, method=method, tol=1e-12, bounds=True)(logits)
        log_z = 5 * Fraction(constant) + Fraction(exact(field_of(small[0], 0.3)))
        upper, lower = (Fraction(float(b)) for b in post[1:3])
        assert lower - Fraction(1e-12) <= log_z <= upper + Fraction(1e-12)


# ----------------------------------------------------------------------------------- derivatives

CASES = [
    pytest.param(2, "projection", (2, 3), True, id="two labels, regions"),
    pytest.param(2, "projection", (3, 4), False, id="two labels"),
    pytest.param(3, "projection", (2, 3), False, id="three labels"),
    pytest.param(3, "projection", (2, 2), True, id="three labels, regions"),
    pytest.param(3, "projection", (2, 1, 2), False, id="volume"),
    pytest.param(2, "trees", (2, 3), False, id="trees, two labels"),
    pytest.param(3, "trees", (2, 2), False, id="trees"),
]


@pytest.mark.parametrize(("n_labels", "method", "sides", "has_regions"), CASES)
def test_gradcheck(n_labels, method, sides, has_regions):
    layer = t.FieldMarginals(
        1.0, region_weight=1.0 if has_regions else None, method=method, **TIGHT
    )
    layer.bounds = True
    logits, weights = draw((1, n_labels, *sides)), uniform((1, len(sides), *sides))
    inputs, rest = [logits, weights], {}
    if has_regions:
        n = math.prod(sides)
        rest["regions"] = torch.tensor([0, 1, 0, 0, 1, -1][:n]).view(1, *sides)
        inputs.append(uniform((1, 1, 2), 3))
    for x in inputs:
        x.requires_grad_()

    def of(logits, weights, region_weights=None):
        post = layer(logits, weights=weights, region_weights=region_weights, **rest)
        return post.probabilities, post.log_partition_upper

    assert gradcheck(of, inputs, eps=1e-5, atol=1e-4, rtol=1e-3)


def test_gradcheck_of_trees_with_regions():
    layer = t.FieldMarginals(0.8, region_weight=0.5, method="trees", **TIGHT)
    regions = torch.tensor([[[0, 0, 1, 1]]])
    logits = draw((1, 2, 1, 4)).requires_grad_()
    along = draw((1, 2, 1, 4), 9)

    def of(x):
        return (layer(x, regions=regions) * along).sum()

    assert gradcheck(of, (logits,), eps=1e-5, atol=1e-3, rtol=1e-2)


@pytest.mark.parametrize("n_labels", [2, 4])
def test_a_quotient_of_default_tolerance_is_near_the_derivative(n_labels):
    logits, along = draw((1, n_labels, 8, 8)), draw((1, n_labels, 8, 8), 7)
    slopes = []
    for options in ({}, TIGHT):
        x = logits.clone().requires_grad_()
        (t.FieldMarginals(0.7, **options)(x) * along).sum().backward()
        slopes.append(x.grad)
    assert (slopes[0] - slopes[1]).norm() <= 0.05 * slopes[1].norm()


@pytest.mark.parametrize("method", ["projection", "trees"])
@pytest.mark.parametrize(("sides", "n_labels"), [((3, 3), 3), ((2, 4), 4), ((8, 8), 5)])
def test_defaults_have_the_derivative_of_what_they_return(method, sides, n_labels):
    """Differences of the layer's own answers, of small images, to a thousandth in norm."""
    layer = t.FieldMarginals(0.5, method=method)
    for seed in range(3):
        logits = draw((1, n_labels, *sides), seed, scale=1.0).requires_grad_()
        slopes = draw(logits.shape, seed + 10)
        (found,) = torch.autograd.grad((layer(logits) * slopes).sum(), logits)
        along = draw((12, *logits.shape[1:]), seed + 20, scale=1.0)
        with torch.no_grad():
            ahead, behind = (
                (layer(logits + move) * slopes).flatten(1).sum(1)
                for move in (1e-4 * along, -1e-4 * along)
            )
        expected = (ahead - behind) / 2e-4
        differences = (along * found).flatten(1).sum(1) - expected
        assert differences.norm() <= 1e-3 * expected.norm()


def test_no_tolerance_makes_the_step_vanish():
    slopes = []
    for tol in (1e-10, 1e-300):
        x = draw((1, 3, 3, 3)).requires_grad_()
        (
            t.FieldMarginals(0.7, tol=1e-12, backward_tol=tol)(x) * draw((1, 3, 3, 3), 7)
        ).sum().backward()
        slopes.append(x.grad)
    assert (slopes[0] - slopes[1]).norm() <= 0.02 * slopes[0].norm()


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_takes_no_digits_of_the_derivative(method):
    slopes = []
    for constant in (0.0, 2.0**30):
        x = (draw((1, 3, 3, 4)).bfloat16().double() + constant).requires_grad_()
        (t.FieldMarginals(0.7, method=method)(x) * draw((1, 3, 3, 4), 7)).sum().backward()
        slopes.append(x.grad)
    assert torch.equal(*slopes)


def test_second_derivatives_are_refused():
    y, criterion = torch.zeros(1, 2, 2, dtype=torch.int64), t.FieldLikelihoodLoss(0.5, learn=True)
    for of in (lambda x: criterion(x, y), lambda x: t.FieldMarginals(0.5)(x).square().sum()):
        x = draw((1, 3, 2, 2)).requires_grad_()
        (slope,) = torch.autograd.grad(of(x), x, create_graph=True)
        with pytest.raises(RuntimeError, match="first derivatives only"):
            slope.mul_(2.0).square().sum().backward()


def test_learnt_weights_have_derivatives_and_are_positive():
    layer = t.FieldMarginals(0.5, learn=True, region_weight=[0.2, 0.3])
    torch.testing.assert_close(layer.weight, torch.tensor([0.5]))
    torch.testing.assert_close(layer.region_weight, torch.tensor([0.2, 0.3]))
    regions = torch.zeros(1, 4, 4, dtype=torch.int32)
    p = layer(draw((1, 3, 4, 4), dtype=torch.float32), regions=[regions, regions + 1])
    (p**2).sum().backward()
    assert layer.raw_weight.grad.abs() > 0
    assert (layer.raw_region_weight.grad.abs() > 0).all()
    with torch.no_grad():
        layer.raw_weight.fill_(-100.0)
    assert layer.weight >= 0


# ------------------------------------------------------------------------------------ likelihood


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_likelihood_is_never_below_the_true_one(method, n_labels, seed):
    logits = draw((2, n_labels, 2, 3), seed)
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, n_labels, (2, 2, 3), generator=generator)
    regions = torch.randint(-1, 2, (2, 2, 3), generator=generator)
    options = {"region_weight": 0.6, "reduction": "none", "bounds": True, "method": method}
    found = t.FieldLikelihoodLoss(0.8, **options)(logits, y, regions=regions)
    for b in range(2):
        true = likelihood(field_of(logits[b], 0.8, regions[b], 0.6), y[b].flatten().numpy())
        assert found.lower[b] <= true <= found.loss[b]
    assert (found.slack >= 0).all()


@pytest.mark.parametrize("kind", [t.FieldLikelihoodLoss, t.FieldHingeLoss])
def test_bounds_in_single_precision_are_rounded_outwards(kind):
    for seed in range(20):
        logits, y = draw((1, 2, 3, 3), seed).float(), torch.zeros(1, 3, 3, dtype=torch.int64)
        narrow, wide = (kind(0.5, bounds=True)(x, y) for x in (logits, logits.double()))
        assert narrow.lower.dtype == narrow.upper.dtype == torch.float32
        assert narrow.lower.double() <= wide.lower
        assert wide.upper <= narrow.upper.double()
        assert narrow.slack <= wide.slack + 1e-5


@pytest.mark.parametrize("n_labels", [2, 3])
def test_a_forbidden_truth_is_infinitely_unlikely(n_labels):
    logits, y = draw((1, n_labels, 2, 3)), torch.zeros(1, 2, 3, dtype=torch.int64)
    logits[0, 0, 0, 0] = -math.inf
    for kind in (t.FieldLikelihoodLoss, t.FieldHingeLoss):
        x = logits.clone().requires_grad_()
        found = kind(0.5, bounds=True)(x, y)
        assert [part.item() for part in found] == [math.inf] * 3
        found.loss.backward()
        assert torch.isfinite(x.grad).all()


def test_likelihood_without_weights_is_cross_entropy():
    logits = draw((2, 3, 4, 4)).requires_grad_()
    y = torch.arange(32).view(2, 4, 4) % 3
    y[0, 0] = 255
    for reduction in ("mean", "sum"):
        ours = t.FieldLikelihoodLoss(0.0, ignore_index=255, reduction=reduction)(logits, y)
        theirs = torch.nn.functional.cross_entropy(logits, y, ignore_index=255, reduction=reduction)
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
        (mine,) = torch.autograd.grad(ours, logits)
        (others,) = torch.autograd.grad(theirs, logits)
        torch.testing.assert_close(mine, others, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_likelihood_is_convex_in_logits_and_weights(method):
    loss = t.FieldLikelihoodLoss(1.0, reduction="sum", tol=1e-9, method=method)
    y = torch.randint(0, 3, (1, 3, 3), generator=torch.Generator().manual_seed(4))
    for seed in range(4):
        a, b = draw((1, 3, 3, 3), seed), draw((1, 3, 3, 3), seed + 50)
        v, w = uniform((1, 2, 3, 3), seed), uniform((1, 2, 3, 3), seed + 50)
        ends = loss(a, y, weights=v) + loss(b, y, weights=w)
        middle = loss((a + b) / 2, y, weights=(v + w) / 2)
        assert middle <= ends / 2 + 1e-7


@pytest.mark.parametrize("method", METHODS)
def test_gradcheck_of_the_likelihood(method):
    loss = t.FieldLikelihoodLoss(
        1.0, region_weight=1.0, ignore_index=9, method=method, reduction="sum", tol=1e-12
    )
    y = torch.tensor([[[0, 1, 9], [1, 0, 0]]])
    regions = torch.tensor([[[0, 0, 0], [1, 1, -1]]])
    inputs = [draw((1, 2, 2, 3)), uniform((1, 2, 2, 3)), uniform((1, 1, 2), 5)]

    def of(logits, weights, region_weights):
        return loss(logits, y, weights=weights, region_weights=region_weights, regions=regions)

    for x in inputs:
        x.requires_grad_()
    assert gradcheck(of, inputs, eps=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_soft_labels_of_half_precision_sum_to_one(dtype):
    thirds = torch.full((1, 3, 2, 2), 1 / 3).to(dtype)
    for common in (0.0, 1000.0):
        loss = sw.torch.FieldLikelihoodLoss(weight=0.5)(torch.full((1, 3, 2, 2), common), thirds)
        assert loss.item() == pytest.approx(np.log(3), abs=1e-3)


def test_soft_labels_are_matched_where_the_loss_is_least():
    soft = draw((1, 3, 3, 3)).softmax(1)
    loss = t.FieldLikelihoodLoss(0.0, reduction="sum")
    x = soft.log().requires_grad_()
    loss(x, soft).backward()
    assert x.grad.abs().max() <= 1e-9
    hard = torch.nn.functional.one_hot(soft.argmax(1), 3).movedim(-1, 1).double()
    criterion = t.FieldLikelihoodLoss(0.9)
    a, b = (criterion(x.detach(), y) for y in (hard, soft.argmax(1)))
    torch.testing.assert_close(a, b, rtol=1e-12, atol=0)


def test_void_pixels_are_no_part_of_the_field():
    logits = draw((1, 3, 2, 4))
    y = torch.tensor([[[0, 1, 255, 255], [2, 1, 255, 255]]])
    loss = t.FieldLikelihoodLoss(0.7, ignore_index=255, tol=1e-10)
    small = t.FieldLikelihoodLoss(0.7, tol=1e-10)(logits[..., :2], y[..., :2])
    torch.testing.assert_close(loss(logits, y), small, rtol=1e-8, atol=1e-8)
    hinge = t.FieldHingeLoss(0.7, ignore_index=255)
    plain = t.FieldHingeLoss(0.7)(logits[..., :2], y[..., :2])
    torch.testing.assert_close(hinge(logits, y), plain)
    x = logits.clone().requires_grad_()
    (loss(x, y) + hinge(x, y)).backward()
    assert (x.grad[..., 2:] == 0).all()
    void = torch.full((1, 2, 4), 255)
    for criterion in (loss, hinge):
        assert criterion(logits, void).abs() <= 1e-12


# ----------------------------------------------------------------------------------------- hinge


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_hinge_by_enumeration(n_labels, seed):
    logits = draw((1, n_labels, 2, 3), seed)
    y = torch.randint(0, n_labels, (1, 2, 3), generator=torch.Generator().manual_seed(seed))
    found = t.FieldHingeLoss(0.6, margin=1.5, reduction="none", bounds=True)(logits, y)
    field = field_of(logits[0], 0.6)
    x = labelings(6, n_labels)
    truth = y.flatten().numpy()
    violations = 1.5 * (x != truth).sum(1) - field.energy(x) + field.energy(truth)
    assert found.lower <= violations.max() + 1e-9
    assert violations.max() <= found.upper + 1e-9
    if n_labels == 2:
        np.testing.assert_allclose(found.loss.numpy(), violations.max(), atol=1e-9)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_a_constant_is_no_part_of_the_hinge(n_labels):
    y = torch.randint(0, n_labels, (1, 3, 3), generator=torch.Generator().manual_seed(3))
    logits, loss = draw((1, n_labels, 3, 3)).bfloat16().double(), t.FieldHingeLoss(0.6, bounds=True)
    for part, other in zip(loss(logits, y), loss(logits + 2.0**30, y), strict=True):
        assert part == other
    found = loss(logits, y)
    assert found.lower < found.loss < found.upper  # by rounding, at least


def test_gradcheck_of_the_hinge():
    loss = t.FieldHingeLoss(1.0, reduction="sum")
    y = torch.randint(0, 2, (2, 3, 3), generator=torch.Generator().manual_seed(2))
    inputs = [draw((2, 2, 3, 3)).requires_grad_(), uniform((2, 2, 3, 3)).requires_grad_()]
    assert gradcheck(lambda a, w: loss(a, y, weights=w), inputs, eps=1e-6)


def test_best_labels_are_those_of_the_library():
    logits = draw((2, 4, 4, 5))
    found = t.FieldMAP(0.7, bounds=True, tol=1e-9)(logits)
    for b in range(2):
        field = field_of(logits[b], 0.7)
        best = sw.solve_map(field)
        labels = found.labels[b].flatten().numpy()
        np.testing.assert_allclose(float(found.value[b]), field.energy(labels), rtol=1e-12)
        np.testing.assert_allclose(float(found.value[b]), best.value, rtol=1e-9)
        assert found.bound[b] <= best.value + 1e-9


# ---------------------------------------------------------------------------------------- habits


def layers():
    yield t.FieldMarginals(0.5, learn=True), ()
    yield t.FieldLikelihoodLoss(0.5, learn=True), (torch.zeros(2, 4, 4, dtype=torch.int64),)
    yield t.FieldHingeLoss(0.5, learn=True), (torch.zeros(2, 4, 4, dtype=torch.int64),)


def test_half_precision_and_autocast():
    logits = draw((2, 3, 4, 4), dtype=torch.float32)
    for layer, rest in layers():
        expected = layer(logits.bfloat16().float(), *rest)
        x = logits.bfloat16().requires_grad_()
        for context in (
            torch.autocast("cpu", dtype=torch.bfloat16),
            torch.autocast("cpu", enabled=False),
        ):
            with context:
                found = layer(x, *rest)
            assert found.dtype == torch.float32
            torch.testing.assert_close(found, expected)
        found.sum().backward()
        assert x.grad.dtype == torch.bfloat16


def test_compiles_around_the_solver():
    for layer, rest in layers():
        compiled = torch.compile(layer, backend="eager")
        x = draw((2, 3, 4, 4), dtype=torch.float32).requires_grad_()
        compiled(x, *rest).square().sum().backward()
        y = x.detach().clone().requires_grad_()
        layer(y, *rest).square().sum().backward()
        torch.testing.assert_close(x.grad, y.grad)


def test_training_goes_on_after_inference_mode():
    logits, image = torch.randn(1, 3, 5, 7), torch.randn(1, 3, 5, 7)
    y = torch.zeros(1, 5, 7, dtype=torch.int64)
    loss = t.FieldLikelihoodLoss(0.5, learn=True)
    with torch.inference_mode():
        expected = loss(logits, y, image=image)
    found = loss(logits, y, image=image.requires_grad_())
    found.backward()
    torch.testing.assert_close(found, expected)
    assert image.grad.abs().max() > 0


def test_a_step_of_training_leaves_nothing_behind(monkeypatch):
    import gc
    import weakref

    from setwise.torch._fields import _log_partition

    left, solve = [], _log_partition.answer_of

    def watched(*arguments, **options):
        answer = solve(*arguments, **options)
        left.append(weakref.ref(answer))
        return answer

    monkeypatch.setattr(_log_partition, "answer_of", watched)
    x, y = draw((1, 3, 2, 2)).requires_grad_(), torch.zeros(1, 2, 2, dtype=torch.int64)
    gc.collect()
    gc.disable()
    try:
        (t.FieldMarginals(0.5)(x).square().sum() + t.FieldLikelihoodLoss(0.5)(x, y)).backward()
        assert left
        assert all(ref() is None for ref in left)
    finally:
        gc.enable()


def test_an_answer_may_be_written_to():
    for shape in ((1, 2, 1, 1), (1, 2, 2, 2)):
        slopes = []
        for in_place in (False, True):
            x = draw(shape).requires_grad_()
            p = t.FieldMarginals(0.5)(x)
            p = p.mul_(2.0) if in_place else p * 2.0
            p[:, 0].sum().backward()
            slopes.append(x.grad)
        torch.testing.assert_close(*slopes)


def test_slopes_that_overflowed_are_for_the_scaler_to_see():
    for n_labels in (2, 3):
        x = draw((1, n_labels, 3, 3)).requires_grad_()
        p = t.FieldMarginals(0.5)(x)
        p.backward(torch.where(p > p.median(), math.inf, 1.0))
        assert not torch.isfinite(x.grad).all()


def test_numbers_of_numpy_are_numbers():
    layer = t.FieldMarginals(
        np.float32(0.5), region_weight=np.array([0.25]), max_iter=np.int64(9), alpha=np.float16(0.5)
    )
    assert repr(layer) == "FieldMarginals(weight=0.5, region_weight=[0.25])"
    assert repr(t.FieldMarginals(0.5, learn=True).to("meta")) == "FieldMarginals(learn=True)"
    for many in (np.int64(8), [(np.int64(0), 1), np.array([1, 0]), [1, 1], [1, -1]]):
        p = t.FieldMarginals(0.5, connectivity=many)(X)
        torch.testing.assert_close(p, t.FieldMarginals(0.5, connectivity=8)(X))


def test_regions_may_have_any_numbers():
    logits, y = draw((2, 3, 2, 3)), torch.zeros(2, 2, 3, dtype=torch.int64)
    small = torch.tensor([[[0, 0, 1], [-1, 1, 1]], [[2, 2, 2], [0, 0, 2]]])
    large = torch.where(small < 0, -1, 10**12 - 3 * small)
    loss = t.FieldLikelihoodLoss(0.5, region_weight=0.4, reduction="none")
    torch.testing.assert_close(loss(logits, y, regions=large), loss(logits, y, regions=small))


def test_is_saved_and_pickled():
    layer = t.FieldLikelihoodLoss(0.5, learn=True, region_weight=0.3)
    other = t.FieldLikelihoodLoss(2.0, learn=True, region_weight=1.0)
    other.load_state_dict(layer.state_dict())
    torch.testing.assert_close(other.weight, layer.weight)
    buffer = io.BytesIO()
    torch.save(layer, buffer)
    buffer.seek(0)
    again = torch.load(buffer, weights_only=False)
    assert (
        repr(again)
        == repr(layer)
        == "FieldLikelihoodLoss(weight=0.5, learn=True, region_weight=[0.3])"
    )


def test_empty_batches_one_label_and_one_pixel():
    layer = t.FieldMarginals(1.0)
    assert layer(torch.zeros(0, 3, 4, 4)).shape == (0, 3, 4, 4)
    assert layer(torch.zeros(0, 3, 4, 4), image=torch.zeros(0, 2, 4, 4)).shape == (0, 3, 4, 4)
    assert (layer(torch.randn(1, 1, 3, 3)) == 1).all()
    x = torch.randn(1, 3, 1, 1)
    torch.testing.assert_close(layer(x), x.softmax(1))
    y = torch.zeros(0, 4, 4, dtype=torch.int64)
    assert t.FieldLikelihoodLoss()(torch.zeros(0, 3, 4, 4), y) == 0
    assert t.FieldHingeLoss()(torch.zeros(0, 3, 4, 4), y) == 0


X, Y = torch.zeros(1, 2, 3, 3), torch.zeros(1, 3, 3, dtype=torch.int64)
REFUSED = [
    (ValueError, "weight must be at least 0", lambda: t.FieldMarginals(-1.0)),
    (TypeError, "weight must be a number", lambda: t.FieldMarginals("much")),
    (ValueError, "weight must be positive", lambda: t.FieldMarginals(0.0, learn=True)),
    (ValueError, "alpha must be at most 1", lambda: t.FieldMarginals(alpha=2.0)),
    (ValueError, "method must be one of", lambda: t.FieldMarginals(method="magic")),
    (TypeError, "learn must be a bool", lambda: t.FieldMarginals(learn=1)),
    (ValueError, "max_iter must be at least 1", lambda: t.FieldMarginals(max_iter=0)),
    (TypeError, "logits must be a tensor", lambda: t.FieldMarginals()([[1.0]])),
    (TypeError, "logits must be float16", lambda: t.FieldMarginals()(X.long())),
    (ValueError, "logits must have shape", lambda: t.FieldMarginals()(X[0, 0])),
    (ValueError, "logits must be numbers", lambda: t.FieldMarginals()(X * math.nan)),
    (ValueError, "logits must be numbers", lambda: t.FieldMarginals()(X - math.inf)),
    (ValueError, "logits must hold numbers", lambda: t.FieldMarginals()(X.to("meta"))),
    (ValueError, "logits and weights must", lambda: t.FieldMarginals()(X.double() + 1e305)),
    (ValueError, "logits and weights must", lambda: t.FieldMarginals()(X.double() + 1e308)),
    (ValueError, "weights must be finite, got inf", lambda: t.FieldMarginals(1e39)(X)),
    (ValueError, "weights must have one entry", lambda: t.FieldMarginals()(X, weights=X[0])),
    (ValueError, "weights must be finite", lambda: t.FieldMarginals()(X, weights=X - 1)),
    (ValueError, "image must have shape", lambda: t.FieldMarginals()(X, image=X[..., :2])),
    (ValueError, "region_weight must be given", lambda: t.FieldMarginals()(X, regions=Y)),
    (ValueError, "regions must be given", lambda: t.FieldMarginals(region_weight=1.0)(X)),
    (TypeError, "regions must hold integers", lambda: t.FieldMarginals()(X, regions=X[:, 0])),
    (ValueError, "regions must be numbered", lambda: t.FieldMarginals()(X, regions=Y - 2)),
    (ValueError, "edges must join", lambda: t.FieldMarginals()(X[0, 0], edges=[[0, 7]])),
    (ValueError, "target must hold classes", lambda: t.FieldLikelihoodLoss()(X, Y + 2)),
    (ValueError, "target must hold labels", lambda: t.FieldLikelihoodLoss()(X, Y[0])),
    (ValueError, "target must hold degrees whose", lambda: t.FieldLikelihoodLoss()(X, X + 0.9)),
    (TypeError, "target must hold integers", lambda: t.FieldHingeLoss()(X, X)),
    (ValueError, "margin must be at least 0", lambda: t.FieldHingeLoss(margin=-1)),
]


@pytest.mark.parametrize(("kind", "told", "call"), REFUSED, ids=[told for _, told, _ in REFUSED])
def test_bad_input_gets_a_sentence(kind, told, call):
    with pytest.raises(kind, match=told):
        call()


# ------------------------------------------------------------------------ devices without float64


LAYERS = {
    "marginals": (t.FieldMarginals, {"bounds": True}, 3),
    "two labels": (t.FieldMarginals, {"learn": True}, 2),
    "trees": (t.FieldMarginals, {"method": "trees", "bounds": True}, 3),
    "regions": (t.FieldMarginals, {"region_weight": 0.3, "learn": True}, 2),
    "likelihood": (t.FieldLikelihoodLoss, {"bounds": True, "learn": True}, 3),
    "hinge": (t.FieldHingeLoss, {"bounds": True, "region_weight": 0.3}, 3),
    "best labels": (t.FieldMAP, {"bounds": True}, 3),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_need_no_float64_on_a_device(name):
    kind, options, n_labels = LAYERS[name]
    layer = kind(0.4, **options)
    x = draw((2, n_labels, 3, 4), dtype=torch.float32)
    given = {"image": uniform((2, 1, 3, 4)).float()}
    if "region_weight" in options:
        given["regions"] = [torch.arange(24).view(2, 3, 4) // 3]
    target = (x.argmax(1),) if isinstance(layer, t.FieldLikelihoodLoss | t.FieldHingeLoss) else ()

    def solved(layer, x, *target, **given):
        x = x.detach().requires_grad_()
        found = layer(x, *target, **given)
        parts = list(found) if isinstance(found, tuple) else [found]
        differentiable = [part for part in parts if part.requires_grad]
        if not differentiable:
            return parts
        sum(part.float().square().sum().to(x.device) for part in differentiable).backward()
        return [*parts, x.grad, *(weight.grad for weight in layer.parameters())]

    expected = solved(layer, x, *target, **given)
    with SinglePrecisionDevice():
        away = {
            k: v.to("lazy") if torch.is_tensor(v) else [v[0].to("lazy")] for k, v in given.items()
        }
        for held, weight in list(layer.named_parameters()):
            setattr(layer, held, torch.nn.Parameter(weight.detach().to("lazy")))
        ours = solved(layer, x.to("lazy"), *(y.to("lazy") for y in target), **away)
        assert all(part.dtype == torch.float64 or part.device.type == "lazy" for part in ours)
        ours = [part.cpu() for part in ours]
    for part, known in zip(ours, expected, strict=True):
        torch.testing.assert_close(part, known, rtol=1e-6, atol=1e-6)
