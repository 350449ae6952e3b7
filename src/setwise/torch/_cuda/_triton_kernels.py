"""Triton kernels of the exact path: keys of 32 bits, then gains along the sorted keys.

An error is a float that is not negative, so that its bits without the sign are in its order; they
make room for the label in the lowest bit. Keys are compared as signed numbers, which is why their
highest bit is flipped. Zero stands for an element that does not count: void, or not violating.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def key_of(error, positive, counts):
    """The signed 32-bit key of an error; a NaN is above all."""
    bits = error.to(tl.int32, bitcast=True) & 0x7FFFFFFF
    return tl.where(counts, (bits << 1) | positive.to(tl.int32), 0) ^ -2147483648


@triton.jit
def hinge_keys(
    scores, target, keys, gradient, found, n, ignore, has_ignore: tl.constexpr, block: tl.constexpr
):
    """Keys of 1 - margin, a zero gradient, and how many positives each block of a row holds."""
    row = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = i < n
    score = tl.load(scores + row * n + i, mask=inside, other=0.0).to(tl.float32)
    label = tl.load(target + row * n + i, mask=inside, other=0)
    positive = label > 0
    if has_ignore:
        inside_set = inside & (label != ignore)
    else:
        inside_set = inside
    error = 1.0 - tl.where(positive, score, -score)
    # A NaN is not at most 0, so it counts and makes the value NaN.
    counts = inside_set & ((error <= 0.0) == 0)
    tl.store(keys + row * n + i, key_of(error, positive, counts), mask=inside)
    tl.store(gradient + row * n + i, tl.zeros([block], tl.float32), mask=inside)
    number = tl.sum((positive & inside_set).to(tl.int32), 0)
    tl.store(found + row * tl.num_programs(0) + tl.program_id(0), number)


@triton.jit
def softmax_keys(
    logits, target, keys, slopes, found, images, pixels, group, classes,
    image_stride, class_stride, pixel_stride, ignore,
    has_ignore: tl.constexpr, from_logits: tl.constexpr, padded: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Keys (group, class, image in group, pixel) of |[target = c] - p_c|; pixels of each class."""
    image = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    c = tl.arange(0, padded)
    inside = i < pixels
    mask = inside[None, :] & (c < classes)[:, None]
    label = tl.load(target + image * pixels + i, mask=inside, other=0).to(tl.int64)
    at = image * image_stride + i[None, :] * pixel_stride + c[:, None].to(tl.int64) * class_stride
    p = tl.load(logits + at, mask=mask, other=float("-inf")).to(tl.float32)
    if from_logits:
        p = tl.exp(p - tl.max(p, 0)[None, :])
        p = p / tl.sum(p, 0)[None, :]
    if has_ignore:
        valid = inside & (label != ignore)
    else:
        valid = inside
    positive = label[None, :] == c[:, None]
    error = tl.where(positive, 1.0 - p, p)
    # An error of 0 adds nothing and has no slope; rounding may even put it below.
    inside_set = mask & valid[None, :]
    counts = inside_set & ((error <= 0.0) == 0)
    set_ = (image // group) * classes + c[:, None]
    place = (set_ * group + image % group) * pixels + i[None, :]
    tl.store(keys + place, key_of(error, positive, counts), mask=mask)
    tl.store(slopes + place, tl.zeros([padded, block], tl.float32), mask=mask)
    number = tl.sum((positive & inside_set).to(tl.int32), 1)
    program = image * tl.num_programs(0) + tl.program_id(0)
    tl.store(found + program * classes + c, number, mask=c < classes)


@triton.jit
def count_positives(keys, counts, n, chunk: tl.constexpr, block: tl.constexpr):
    """How many keys of each chunk of a row are of positives."""
    row = tl.program_id(1).to(tl.int64)
    first = tl.program_id(0).to(tl.int64) * chunk
    number = tl.zeros([block], tl.int32)
    for start in range(0, chunk, block):
        i = first + start + tl.arange(0, block)
        number += tl.load(keys + row * n + i, mask=i < n, other=0) & 1
    tl.store(counts + row * tl.num_programs(0) + tl.program_id(0), tl.sum(number, 0))


@triton.jit
def scatter_gains(
    keys, order, positives, counts, scale, gradient, partial, n,
    a: tl.constexpr, c: tl.constexpr, d: tl.constexpr,
    chunk: tl.constexpr, chunks_padded: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Gains along the sorted keys in closed form, written to where the elements came from."""
    row = tl.program_id(1).to(tl.int64)
    first = tl.program_id(0).to(tl.int64) * chunk
    before = tl.arange(0, chunks_padded)
    chunks = tl.num_programs(0)
    found = tl.load(
        counts + row * chunks + before, mask=before < tl.program_id(0), other=0
    )  # chunks before this one
    base = tl.sum(found.to(tl.int64), 0)
    m = tl.load(positives + row).to(tl.float64)
    factor = tl.load(scale + row)
    total = tl.zeros([block], tl.float64)
    for start in range(0, chunk, block):
        i = first + start + tl.arange(0, block)
        inside = i < n
        key = tl.load(keys + row * n + i, mask=inside, other=-2147483648) ^ -2147483648
        live = inside & (key != 0)
        if tl.max(live.to(tl.int32), 0) > 0:
            positive = key & 1
            till = tl.cumsum(positive, 0)
            false_negatives = (base + till - positive).to(tl.float64)
            false_positives = i.to(tl.float64) - false_negatives
            below = c * m - d * false_negatives + false_positives
            above = a * false_negatives + false_positives
            top = tl.where(positive > 0, a * below + d * above, below - above)
            bottom = below * tl.where(positive > 0, below - d, below + 1.0)
            gain = tl.where(m > 0, top / bottom, (i == 0).to(tl.float64))
            gain = tl.where(live, gain, 0.0)
            error = ((key >> 1) & 0x7FFFFFFF).to(tl.float32, bitcast=True).to(tl.float64)
            total += tl.where((gain == 0.0) & (error == error), 0.0, gain * error)
            slope = tl.where(positive > 0, -gain, gain) * factor
            to = tl.load(order + row * n + i, mask=live, other=0)
            tl.store(gradient + row * n + to, slope.to(tl.float32), mask=live)
            base += tl.sum(positive, 0)
    tl.store(partial + row * chunks + tl.program_id(0), tl.sum(total, 0) * factor)


@triton.jit
def softmax_gradient(
    logits, target, slopes, gradient, pixels, group, classes,
    image_stride, class_stride, pixel_stride, ignore,
    has_ignore: tl.constexpr, from_logits: tl.constexpr, padded: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """From slopes with respect to the probabilities, in the order of the keys, to the logits."""
    image = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    c = tl.arange(0, padded)
    inside = i < pixels
    mask = inside[None, :] & (c < classes)[:, None]
    at = image * image_stride + i[None, :] * pixel_stride + c[:, None].to(tl.int64) * class_stride
    set_ = (image // group) * classes + c[:, None]
    place = (set_ * group + image % group) * pixels + i[None, :]
    slope = tl.load(slopes + place, mask=mask, other=0.0)
    if from_logits:
        p = tl.load(logits + at, mask=mask, other=float("-inf")).to(tl.float32)
        p = tl.exp(p - tl.max(p, 0)[None, :])
        p = p / tl.sum(p, 0)[None, :]
        slope = p * (slope - tl.sum(p * slope, 0)[None, :])
    if has_ignore:
        # The probabilities of a void pixel may be anything, NaN too.
        label = tl.load(target + image * pixels + i, mask=inside, other=0)
        slope = tl.where((label != ignore)[None, :], slope, 0.0)
    tl.store(gradient + at, slope, mask=mask)
