"""The CUDA kernels against the same losses in float64 on the CPU. Skipped where no GPU is."""

import subprocess
import sys
import threading

import pytest

torch = pytest.importorskip("torch")

import setwise as sw  # noqa: E402
from setwise.torch import _cuda  # noqa: E402
from setwise.torch._cuda import _hinge, _softmax, _sorted  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

t = sw.torch
LABELS = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
LABELS += [torch.float16, torch.bfloat16, torch.float32, torch.float64]
SIZES = [1, 5, 4096, 4099, 100_003]
NAN = float("nan")


def draw(rows, n, dtype=torch.float32, labels=torch.bool, seed=0):
    generator = torch.Generator("cuda").manual_seed(seed)
    x = 2 * torch.randn(rows, n, device="cuda", generator=generator)
    y = torch.rand(rows, n, device="cuda", generator=generator) < 0.3
    return x.to(dtype), y.to(labels)


def value_and_gradient(loss, x, y):
    x = x.detach().requires_grad_()
    value = loss(x, y)
    value.sum().backward()
    return value.detach(), x.grad


def exact(x, y, **options):
    """On the CPU, in float64."""
    loss = t.LovaszHingeLoss(**options)
    value, gradient = value_and_gradient(loss, x.detach().cpu().double(), y.cpu())
    return value.cuda(), gradient.cuda()


def distance(ours, theirs):
    """In the 1-norm, relative."""
    return float((ours.double() - theirs).abs().sum() / theirs.abs().sum().clamp(min=1e-300))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_exact_hinge(n, labels):
    x, y = draw(3, n, labels=labels)
    options = {"per_image": True, "reduction": "none"}
    value, gradient = value_and_gradient(t.LovaszHingeLoss(**options), x, y)
    expected, slopes = exact(x, y, **options)
    assert value.dtype == gradient.dtype == torch.float32
    assert distance(value, expected) <= 1e-6
    assert distance(gradient, slopes) <= 1e-5


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_buckets_are_below_the_exact_value_by_at_most_their_width(n, labels):
    x, y = draw(3, n, labels=labels, seed=1)
    y[2] = 0
    options = {"per_image": True, "reduction": "none"}
    value, gradient = value_and_gradient(t.LovaszHingeLoss(buckets=8192, **options), x, y)
    expected, _ = exact(x, y, **options)
    slack = 1e-6 * expected
    assert torch.all(value <= expected + slack)
    assert torch.all(value >= expected - (expected + 1) / 1024 - slack)
    # A subgradient at the rounded errors: gains that sum to the loss of everything that is wrong.
    violates = torch.where(y > 0, x, -x) < 1
    m = (y > 0).sum(1)
    missed = (violates & (y > 0)).sum(1)
    added = (violates & ~(y > 0)).sum(1)
    wrong = torch.where(m > 0, (missed + added) / (m + added).clamp(min=1), added.clamp(max=1))
    assert torch.allclose(gradient.double().abs().sum(1), wrong.double(), rtol=1e-5)
    assert torch.all(gradient[~violates] == 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("buckets", [None, 8192])
@pytest.mark.parametrize("n", SIZES)
def test_scores_of_16_bits_are_exact_sorted_and_counted(dtype, buckets, n):
    x, y = draw(2, n, dtype)
    value, gradient = value_and_gradient(t.LovaszHingeLoss(buckets=buckets), x, y)
    expected, _ = exact(x, y)
    assert value.dtype == torch.float32
    assert gradient.dtype == dtype
    assert distance(value, expected) <= 1e-6


@pytest.mark.parametrize("buckets", [None, 8192])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_void_elements_belong_to_no_set(buckets, dtype):
    x, y = draw(2, 10_001, dtype, torch.uint8)
    y[:, ::7] = 255
    x[:, ::7] = NAN
    loss = t.LovaszHingeLoss(buckets=buckets, ignore_index=255)
    value, gradient = value_and_gradient(loss, x, y)
    keep = y[0] != 255
    expected, slopes = exact(x[:, keep], y[:, keep])
    assert distance(value, expected) <= 1e-6
    assert torch.all(gradient[:, ~keep] == 0)
    assert distance(gradient[:, keep].abs().sum(), slopes.abs().sum()) <= 1e-2
    y[:] = 255
    value, gradient = value_and_gradient(loss, x, y)
    assert value == 0
    assert torch.all(gradient == 0)


@pytest.mark.parametrize("buckets", [None, 8192])
def test_extremes(buckets):
    loss = t.LovaszHingeLoss(buckets=buckets)
    x, y = draw(1, 5000)
    x[0, 17] = NAN
    assert loss(x, y).isnan()
    x[0, 17] = float("inf") if y[0, 17] else float("-inf")  # far on the right side
    assert loss(x, y).isfinite()
    x[0, 17] = -x[0, 17]
    assert loss(x, y) == float("inf")
    x[0, 17] = 3e38 * (-1 if y[0, 17] else 1)
    expected, _ = exact(x, y)
    assert distance(loss(x, y), expected) <= 1e-6
    # Labels that are all equal, scores that are all equal.
    for label in (False, True):
        same = torch.full_like(y, label)
        value, gradient = value_and_gradient(loss, torch.zeros_like(x), same)
        assert distance(value, torch.ones_like(value, dtype=torch.float64)) <= 1e-6
        assert float(gradient.abs().sum()) == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("buckets", [None, 8192])
def test_views_that_are_not_aligned(buckets):
    x, y = draw(1, 10_003)
    for start in range(4):
        part = slice(start, None)
        value, _ = value_and_gradient(t.LovaszHingeLoss(buckets=buckets), x[0, part], y[0, part])
        assert distance(value, exact(x[0, part], y[0, part])[0]) <= 1e-6


@pytest.mark.parametrize("n", [4_000_000, 20_000_003])
def test_large_sets(n):
    """Gradients in float32 as good as in float64, of which the usual code loses percents."""
    x, y = draw(1, n)
    value, gradient = value_and_gradient(t.LovaszHingeLoss(), x, y)
    with torch.no_grad():
        errors = 1 - torch.where(y, x, -x).double()
        errors, order = torch.sort(errors[0], descending=True)
        hit = y[0][order].double()
        n_before, m = torch.cumsum(hit, 0) - hit, hit.sum()
        q_before = torch.arange(n, device="cuda") - n_before
        below = m + q_before
        gains = torch.where(hit > 0, 1 / below, (m - n_before) / (below * (below + 1)))
        gains = torch.where(errors > 0, gains, 0.0)
        ours = gradient[0].abs()[order]
    assert distance(value, (errors * gains).sum()) <= 1e-7
    off = ((ours - gains).abs() / gains)[errors > 0]
    assert off.median() <= 1e-5


@pytest.mark.parametrize("buckets", [None, 8192])
@pytest.mark.parametrize("from_logits", [True, False])
@pytest.mark.parametrize(
    ("images", "classes", "pixels"),
    [(1, 1, 1), (2, 2, 1000), (3, 5, 77), (2, 21, 20_001), (2, 40, 1500), (1, 150, 900)],
)
@pytest.mark.parametrize("per_image", [False, True])
@pytest.mark.parametrize("which", ["present", "all", "list"])
def test_softmax(buckets, from_logits, images, classes, pixels, per_image, which):
    generator = torch.Generator().manual_seed(0)
    x = 2 * torch.randn(images, classes, pixels, generator=generator)
    y = torch.randint(0, max(classes - 1, 1), (images, pixels), generator=generator)
    y[torch.rand(images, pixels, generator=generator) < 0.1] = 255
    if not from_logits:
        x = x.softmax(1)
    options = {
        "classes": [classes // 2] if which == "list" else which,
        "per_image": per_image,
        "ignore_index": 255,
        "from_logits": from_logits,
        "weight": torch.rand(classes, generator=generator),
    }
    expected, slopes = value_and_gradient(t.LovaszSoftmaxLoss(**options), x.double(), y)
    loss = t.LovaszSoftmaxLoss(buckets=buckets, **options).cuda()
    value, gradient = value_and_gradient(loss, x.cuda(), y.cuda())
    if buckets is None:
        assert torch.allclose(value.cpu().double(), expected, rtol=1e-6)
        # Where one class alone counts, p (1 - p) is a small difference in single precision.
        assert distance(gradient.cpu(), slopes) <= (1e-3 if which == "list" else 1e-5)
    else:
        assert -1e-6 <= float(expected - value) <= 1 / 8192 + 1e-6
        assert gradient.isfinite().all()


@pytest.mark.parametrize("buckets", [None, 8192])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("labels", [torch.uint8, torch.int32], ids=str)
def test_softmax_of_other_types(buckets, dtype, labels):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 6, 30, 40, generator=generator).to(dtype)
    y = torch.randint(0, 6, (2, 30, 40), generator=generator).to(labels)
    expected, slopes = value_and_gradient(t.LovaszSoftmaxLoss(), x.double(), y)
    for z in (x, x.to(memory_format=torch.channels_last)):
        value, gradient = value_and_gradient(
            t.LovaszSoftmaxLoss(buckets=buckets), z.cuda(), y.cuda()
        )
        assert gradient.dtype == dtype
        assert abs(float(value) - float(expected)) <= (1e-6 if buckets is None else 1 / 8192)
        assert distance(gradient.cpu(), slopes) <= 2e-2


def test_channels_last_strides_are_kept_by_the_kernels():
    x = torch.randn(2, 50, 6, device="cuda").permute(0, 2, 1)
    y = torch.randint(0, 6, (2, 50), device="cuda")
    for buckets in (0, 8192):
        rest = (None, [], True, None, False, 1.0, 1.0, 0.0, buckets, True)
        total, gradient = _cuda.lovasz_softmax(x, y, *rest)
        same, plain = _cuda.lovasz_softmax(x.contiguous(), y, *rest)
        assert gradient.stride() == x.stride()
        assert torch.equal(total, same)
        assert torch.equal(gradient, plain)


def test_answers_are_the_same_every_time():
    x, y = draw(2, 300_000)
    z, labels = torch.randn(2, 19, 9000, device="cuda"), torch.randint(0, 19, (2, 9000)).cuda()
    for buckets in (None, 8192):
        first = value_and_gradient(t.LovaszHingeLoss(buckets=buckets), x, y)
        second = value_and_gradient(t.LovaszHingeLoss(buckets=buckets), x, y)
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
        first = value_and_gradient(t.LovaszSoftmaxLoss(buckets=buckets), z, labels)
        second = value_and_gradient(t.LovaszSoftmaxLoss(buckets=buckets), z, labels)
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_streams_and_threads():
    x, y = draw(1, 200_000)
    losses = [t.LovaszHingeLoss(buckets=8192), t.LovaszHingeLoss()]
    expected = [loss(x, y) for loss in losses]
    torch.cuda.synchronize()
    wrong = []

    def work(same_stream):
        stream = torch.cuda.current_stream() if same_stream else torch.cuda.Stream()
        with torch.cuda.stream(stream):
            found = [losses[k % 2](x, y) for k in range(40)]
            wrong.extend(k for k in range(40) if not torch.equal(found[k], expected[k % 2]))

    threads = [threading.Thread(target=work, args=(k % 2 == 0,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_in_a_cuda_graph():
    x, y = draw(1, 50_000)
    expected = t.lovasz_hinge(x, y, buckets=8192)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value = t.lovasz_hinge(x, y, buckets=8192)
    for _ in range(3):
        graph.replay()
        assert torch.equal(value, expected)
    assert torch.equal(t.lovasz_hinge(x, y, buckets=8192), expected)


@pytest.mark.parametrize("buckets", [None, 8192])
def test_at_most_8_bytes_a_pixel_are_kept(buckets):
    x, y = draw(1, 1_000_000)
    x.requires_grad_()
    loss = t.LovaszHingeLoss(buckets=buckets)
    loss(x, y)  # workspaces stay
    before = torch.cuda.memory_allocated()
    value = loss(x, y)
    assert torch.cuda.memory_allocated() - before <= 8.1e6
    del value


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("n", [1, 7, 4096, 50_003])
def test_scaled(dtype, n):
    gradient = torch.randn(3, n, device="cuda")
    slopes = torch.tensor([0.5, -2.0, 3.7], device="cuda")
    assert torch.equal(
        _cuda.scaled(gradient, slopes, dtype), (gradient * slopes[:, None]).to(dtype)
    )
    one = slopes[2]
    assert torch.equal(_cuda.scaled(gradient, one, dtype), (gradient * one).to(dtype))


@pytest.mark.parametrize("buckets", [None, 8192])
def test_the_last_backward_pass_gives_its_gradient_away(buckets):
    """Passes that keep the graph copy it; nobody sees a gradient change that was handed out."""
    x, y = draw(1, 50_000)
    z, labels = torch.randn(2, 5, 700, device="cuda"), torch.randint(0, 5, (2, 700)).cuda()
    kept = []
    for loss, scores, target in (
        (t.LovaszHingeLoss(buckets=buckets), x, y),
        (t.LovaszHingeLoss(buckets=buckets, per_image=True), torch.cat([x, -x]), torch.cat([y, y])),
        (t.LovaszSoftmaxLoss(buckets=buckets), z, labels),
    ):
        leaf = scores.clone().requires_grad_()
        value = loss(leaf, target)
        (tripled,) = torch.autograd.grad(3 * value, leaf, retain_graph=True)
        (first,) = torch.autograd.grad(value, leaf, retain_graph=True)
        (last,) = torch.autograd.grad(2 * value, leaf)
        torch.testing.assert_close(tripled, 3 * first)
        torch.testing.assert_close(last, 2 * first)
        for _ in range(2):
            loss(leaf, target).backward()
        torch.testing.assert_close(leaf.grad, 2 * first)
        kept.clear()
        with torch.autograd.graph.saved_tensors_hooks(lambda a: kept.append(a) or a, lambda a: a):
            value = loss(leaf, target)
        before = [tensor.clone() for tensor in kept]
        (5 * value).backward()
        assert all(torch.equal(a, b) for a, b in zip(kept, before, strict=True))


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("n", [2048, 6144, 6145, 300_001])
def test_our_sort(rows, n):
    """Decreasing, stable, and without what does not count."""
    generator = torch.Generator("cuda").manual_seed(n)
    errors = torch.randn(rows, n, device="cuda", generator=generator).relu()
    errors[:, ::5] = errors[:, :1].abs() + 0.5  # many equal ones
    errors[-1] = 0 if rows > 1 else errors[-1]
    keys = (errors.view(torch.int32) << 1) ^ -(2**31)
    spare = torch.empty(rows * n, dtype=torch.int64, device="cuda")
    expected, places = torch.sort(keys, dim=1, descending=True, stable=True)
    found, order, live = _sorted.sorted_rows(keys.clone(), spare)
    assert torch.equal(live.long(), (errors > 0).sum(1))
    for row, number in enumerate(live.tolist()):
        assert torch.equal(found[row, :number], expected[row, :number])
        assert torch.equal(order[row, :number].long(), places[row, :number])


def test_the_exact_path_takes_less_than_24_bytes_a_pixel():
    """Beside scores and labels: keys, places and the gradient, and as much again for the sort."""
    x, y = draw(1, 4_000_000)
    loss = t.LovaszHingeLoss()
    value_and_gradient(loss, x, y)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    loss(x.requires_grad_(), y)
    assert torch.cuda.max_memory_allocated() - before <= 24 * x.numel()


OVERLAPS = {
    "dice": t.SoftDiceLoss,
    "tversky": lambda **options: t.TverskyLoss(
        alpha=0.3, beta=0.7, gamma=0.75, smooth=1.0, **options
    ),
    "jaccard metric": t.JaccardMetricLoss,
    "dice semimetric": t.DiceSemimetricLoss,
}


@pytest.mark.parametrize("name", OVERLAPS)
@pytest.mark.parametrize("activation", ["softmax", "sigmoid", "none"])
@pytest.mark.parametrize("soft", [False, True])
def test_overlaps(name, activation, soft):
    """The kernels against plain torch, which answers float64."""
    generator = torch.Generator("cuda").manual_seed(0)
    x = 2 * torch.randn(3, 5, 700, device="cuda", generator=generator)
    y = torch.randint(0, 4, (3, 700), device="cuda", generator=generator)
    y[torch.rand(3, 700, device="cuda", generator=generator) < 0.1] = 255
    if soft:
        y = torch.rand(3, 5, 700, device="cuda", generator=generator)
        y[:, :, ::7] = 255
    if activation == "none":
        x = x.softmax(1)
    weight = torch.rand(5, device="cuda", generator=generator)
    for options in (
        {},
        {"per_image": True},
        {"classes": "all", "weight": weight},
        {"classes": [2, 4], "per_image": True},
    ):
        loss = OVERLAPS[name](activation=activation, ignore_index=255, **options).cuda()
        value, gradient = value_and_gradient(loss, x, y)
        expected, slopes = value_and_gradient(loss, x.double(), y.double() if soft else y)
        assert abs(float(value) - float(expected)) <= 1e-6
        assert distance(gradient, slopes) <= 1e-5
    whole = OVERLAPS[name](activation=activation, ignore_index=255)
    half, slopes_of_half = value_and_gradient(whole, x.half(), y)
    expected, slopes = value_and_gradient(whole, x.half().double(), y.double() if soft else y)
    assert slopes_of_half.dtype == torch.float16
    assert abs(float(half) - float(expected)) <= 1e-5
    assert distance(slopes_of_half, slopes) <= 2e-2


def test_overlaps_of_other_layouts_and_a_second_derivative():
    x = torch.randn(2, 4, 6, 5, device="cuda")
    y = torch.randint(0, 4, (2, 6, 5), device="cuda")
    loss = t.SoftDiceLoss()
    expected, slopes = value_and_gradient(loss, x.double(), y)
    for z in (x, x.to(memory_format=torch.channels_last), x.transpose(2, 3).clone().mT):
        for target in (y, y[:, None], y.to(torch.uint8)):
            value, gradient = value_and_gradient(loss, z, target)
            assert abs(float(value) - float(expected)) <= 1e-6
            assert distance(gradient, slopes) <= 1e-5
    leaf, wide = x.requires_grad_(), x.detach().double().requires_grad_()
    seconds = []
    for z in (leaf, wide):
        (slope,) = torch.autograd.grad(loss(z, y), z, create_graph=True)
        seconds.append(torch.autograd.grad(slope.pow(2).sum(), z)[0])
    assert distance(*seconds) <= 1e-4


def test_a_second_derivative():
    x, y = draw(1, 100)
    x.requires_grad_()
    (slope,) = torch.autograd.grad(t.lovasz_hinge(x, y) ** 2, x, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), x)
    # Piecewise linear: the Hessian of the square is twice the outer product of the gradient.
    gradient = torch.autograd.grad(t.lovasz_hinge(x, y), x)[0]
    assert torch.allclose(second, 2 * gradient * gradient.sum(), rtol=1e-4)


def test_without_nvrtc(monkeypatch):
    """Plain torch answers where no kernel can be compiled."""
    for module in (_hinge, _softmax, _sorted):
        monkeypatch.setattr(module, "kernel", lambda *_, **__: None)
    x, y = draw(2, 5000)
    value, gradient = value_and_gradient(t.LovaszHingeLoss(), x, y)
    expected, slopes = exact(x, y)
    assert distance(value, expected) <= 1e-6
    assert distance(gradient, slopes) <= 1e-5
    z, labels = torch.randn(2, 5, 700), torch.randint(0, 5, (2, 700))
    expected, slopes = value_and_gradient(t.LovaszSoftmaxLoss(), z.double(), labels)
    value, gradient = value_and_gradient(t.LovaszSoftmaxLoss(), z.cuda(), labels.cuda())
    assert distance(value.cpu(), expected) <= 1e-6
    assert distance(gradient.cpu(), slopes) <= 1e-5


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("buckets", [None, 8192])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_a_list_of_classes_in_any_order(reduction, buckets, dtype):
    """Against float64 on the CPU; buckets against the same classes in their order."""
    generator = torch.Generator().manual_seed(0)
    for classes in ([2, 0, 1], [3, 1, 0, 2], [1, 3], [3]):
        n_classes = max(classes) + 1
        x = torch.randn(2, n_classes, 50, generator=generator).to(dtype)
        y = torch.randint(0, n_classes, (2, 50), generator=generator)
        weight = torch.rand(n_classes, generator=generator)
        for per_image in (False, True):
            options = {"reduction": reduction, "buckets": buckets, "per_image": per_image}
            loss = t.LovaszSoftmaxLoss(classes=classes, weight=weight, **options).cuda()
            value, gradient = value_and_gradient(loss, x.cuda(), y.cuda())
            if buckets is None:
                loss = t.LovaszSoftmaxLoss(classes=classes, weight=weight, **options)
                expected, slopes = value_and_gradient(loss, x.double(), y)
            else:
                loss = t.LovaszSoftmaxLoss(classes=sorted(classes), weight=weight, **options).cuda()
                expected, slopes = value_and_gradient(loss, x.cuda(), y.cuda())
                order = torch.tensor(classes).argsort().cuda()
                value = value[..., order] if reduction == "none" else value
            bound = 2e-2 if dtype == torch.bfloat16 else 1e-3 if len(classes) == 1 else 1e-4
            torch.testing.assert_close(
                value.double().cpu(), expected.double().cpu(), rtol=1e-5, atol=1e-6
            )
            assert distance(gradient.cpu(), slopes.double().cpu()) <= bound


@pytest.mark.parametrize("buckets", [None, 8192])
@pytest.mark.parametrize("per_image", [False, True])
def test_transforms_of_the_kernels(buckets, per_image):
    """torch.func and forward mode in single precision: the gradient of the backward pass."""
    from torch.autograd import forward_ad

    x, y = draw(2, 3000)
    z, labels = torch.randn(2, 5, 700, device="cuda"), torch.randint(0, 5, (2, 700)).cuda()
    for loss, scores, target in (
        (t.LovaszHingeLoss(buckets=buckets, per_image=per_image), x, y),
        (t.LovaszSoftmaxLoss(buckets=buckets, per_image=per_image), z, labels),
    ):
        value, gradient = value_and_gradient(loss, scores, target)

        def call(scores, loss=loss, target=target):
            return loss(scores, target)

        bound = 1e-4 if buckets is None else 2e-2  # the buckets of plain torch are others
        assert distance(torch.func.grad(call)(scores), gradient.double()) <= bound
        v = torch.randn_like(scores)
        along = float((gradient.double() * v).sum())
        primal, tangent = torch.func.jvp(call, (scores,), (v,))
        assert float(primal) == pytest.approx(float(value), rel=1e-3)
        assert float(tangent) == pytest.approx(along, rel=bound, abs=bound)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(scores, v)
            tangent = forward_ad.unpack_dual(call(dual)).tangent
        assert float(tangent) == pytest.approx(along, rel=bound, abs=bound)
        batch = torch.stack([scores, -scores])
        slopes = torch.func.vmap(torch.func.grad(call))(batch)
        assert distance(slopes[0], gradient.double()) <= bound


def test_weights_of_the_host_are_copied_and_those_of_a_function_asserted():
    x, y = torch.randn(2, 3, 50, device="cuda"), torch.randint(0, 3, (2, 50), device="cuda")
    weight = torch.tensor([1.0, 2.0, 4.0])
    expected = t.lovasz_softmax(x, y, weight=weight.cuda())
    for given in (weight, weight.tolist(), weight.double(), weight.numpy()):
        assert torch.equal(t.lovasz_softmax(x, y, weight=given), expected)
    with pytest.raises(ValueError, match="weight must be on the device of input"):
        t.lovasz_softmax(x.cpu(), y.cpu(), weight=weight.cuda())
    for wrong in ([1.0, NAN, 1.0], [1.0, -1.0, 1.0], [1.0, float("inf"), 1.0]):
        with pytest.raises(ValueError, match="weight must be finite"):
            t.lovasz_softmax(x, y, weight=wrong)


HOSTILE = {
    "mixed": "t.lovasz_hinge(x, torch.tensor([-1, 0, 1, 1] * 5000).cuda(), buckets=MANY)",
    "mixed floats": "t.lovasz_hinge(x, torch.tensor([-1.0, 0, 1, 1] * 5000).cuda(), buckets=MANY)",
    "other": "t.lovasz_hinge(x, torch.tensor([0, 0, 1, 2] * 5000).cuda(), buckets=MANY)",
    "void": "t.lovasz_hinge(x, torch.tensor([0, 0, 1, 255] * 5000).byte().cuda(), buckets=MANY)",
    "dice": "t.decomposed_hinge(x, torch.tensor([-1, 0, 1, 1] * 5000).cuda())",
    "overlap": "t.SoftDiceLoss()(x.view(1, 2, -1), torch.tensor([[0, 2] * 5000]).cuda())",
    "degree": "t.SoftDiceLoss()(x.view(1, 2, -1), 2 * torch.ones(1, 2, 10000).cuda())",
    "weight": "t.lovasz_hinge(x.view(1, 2, -1), (x > 0).view(1, 2, -1), per_class=True, "
    "weight=torch.tensor([1.0, -1.0]).cuda(), buckets=MANY)",
}


@pytest.mark.parametrize("buckets", [None, 8192])
@pytest.mark.parametrize("name", HOSTILE)
def test_the_device_refuses_labels_and_weights(name, buckets):
    """Nobody waits for it, so that it ends the process's use of the device: another process."""
    script = f"""
import torch, setwise as sw
t, MANY = sw.torch, {buckets!r}
x = torch.randn(20000, device="cuda")
good = torch.tensor([-1, 7, 1, 1] * 5000).cuda()
assert t.lovasz_hinge(x, good, ignore_index=7, buckets=MANY).isfinite()
assert t.lovasz_hinge(x, torch.where(good == 7, 1, good), buckets=MANY).isfinite()
try:
    {HOSTILE[name]}
    torch.cuda.synchronize()
except RuntimeError:
    print("refused")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False
    )
    assert "refused" in done.stdout, done.stderr[-2000:]


@pytest.mark.parametrize(
    "criterion",
    [
        t.LovaszHingeLoss(),
        t.LovaszHingeLoss(buckets=8192),
        t.LovaszSoftmaxLoss(),
        t.LovaszSoftmaxLoss("dice", buckets=8192),
        t.LovaszSigmoidLoss(buckets=8192),
        t.SoftDiceLoss(),
        t.JaccardMetricLoss(per_image=True, average="classes", worst=0.5),
        t.WithCrossEntropy(t.TverskyLoss()),
    ],
    ids=str,
)
def test_a_cuda_graph_captures_forward_and_backward(criterion):
    """Replayed on other logits, the graph gives what a plain call gives."""
    generator = torch.Generator("cuda").manual_seed(0)
    x = torch.randn(2, 3, 500, device="cuda", generator=generator)
    y = torch.randint(0, 3, (2, 500), device="cuda", generator=generator)
    if isinstance(criterion, (t.LovaszHingeLoss, t.LovaszSigmoidLoss)):
        y = torch.stack([y == c for c in range(3)], 1)
    held = x.clone().requires_grad_()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            held.grad = None
            criterion(held, y).backward()
    torch.cuda.current_stream().wait_stream(side)
    held.grad = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value = criterion(held, y)
        value.backward()
    with torch.no_grad():
        held.copy_(x.flip(0))
    graph.replay()
    plain = x.flip(0).clone().requires_grad_()
    expected = criterion(plain, y)
    expected.backward()
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(held.grad, plain.grad)
