// The step before the sort: a 32-bit key for each error |[target = c] - p_c|, set by set. The step
// after it converts slopes in the probabilities, in the order of the keys, to slopes in the logits.

struct Arguments {
    const T* logits;
    const L* target;
    u32* keys;     // (groups, CLASSES, images of a group, pixels)
    float* slopes; // in the order of the keys
    u32* found;  // (groups + blocks, CLASSES): pixels of each class in each block's part of a group
    float* gradient;
    i64 images, pixels, groups, ignore;
    i64 image_stride, class_stride, pixel_stride;

    // Return the position of the key of a pixel's first class. The next class is one group of
    // pixels further.
    __device__ i64 place(i64 image, i64 i) const {
        const i64 together = images / groups;
        return (image / together * C * together + image % together) * pixels + i;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, 1) keys(const __grid_constant__ Arguments p) {
    __shared__ u32 found[C];
    const i64 tiles = (p.pixels + THREADS - 1) / THREADS;
    const i64 together = p.images / p.groups, far = together * p.pixels;
    const Share share(p.images * tiles);
    for (i64 item = share.first; item < share.last;) {
        const i64 group = item / (together * tiles);
        const i64 end = min(share.last, (group + 1) * together * tiles);
        for (int c = threadIdx.x; c < C; c += THREADS) found[c] = 0;
        __syncthreads();
        for (; item < end; ++item) {
            const i64 image = item / tiles, i = (item % tiles) * THREADS + threadIdx.x;
            if (i >= p.pixels) continue;
            const Pixel pixel(p.logits + image * p.image_stride + i * p.pixel_stride, p.class_stride);
            const L label = p.target[image * p.pixels + i];
            const bool counts = !is_void(label, p.ignore);
            const float2 normalizer = FROM_LOGITS ? pixel.normalizer() : make_float2(0.0f, 1.0f);
            if (counts) atomicAdd(found + static_cast<int>(label), 1u);
            const i64 at = p.place(image, i);
#pragma unroll UNROLL
            for (int c = 0; c < C; ++c) {
                const bool positive = static_cast<i64>(label) == c;
                const float y = probability(pixel.logit(c), normalizer);
                const float error = positive ? 1.0f - y : y;
                // An error of 0 contributes nothing and has no slope. By rounding an error may even
                // be negative.
                p.keys[at + c * far] = key_of(error, positive, counts && !(error <= 0.0f));
            }
        }
        __syncthreads();
        for (int c = threadIdx.x; c < C; c += THREADS) p.found[(group + blockIdx.x) * C + c] = found[c];
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gradient(const __grid_constant__ Arguments p) {
    const i64 tiles = (p.pixels + THREADS - 1) / THREADS, far = p.images / p.groups * p.pixels;
    const Share share(p.images * tiles);
    for (i64 item = share.first; item < share.last; ++item) {
        const i64 image = item / tiles, i = (item % tiles) * THREADS + threadIdx.x;
        if (i >= p.pixels) continue;
        const i64 to = image * p.image_stride + i * p.pixel_stride, at = p.place(image, i);
        const L label = p.target[image * p.pixels + i];
        const bool counts = !is_void(label, p.ignore);
        const Pixel pixel(p.logits + to, p.class_stride);
        const float2 normalizer = FROM_LOGITS ? pixel.normalizer() : make_float2(0.0f, 1.0f);
        float slopes[IN_REGISTERS ? C : 1], mean = 0;
#pragma unroll UNROLL
        for (int c = 0; c < C; ++c) {
            const float slope = p.slopes[at + c * far];
            if (IN_REGISTERS) slopes[IN_REGISTERS ? c : 0] = slope;
            mean += probability(pixel.logit(c), normalizer) * slope;
        }
#pragma unroll UNROLL
        for (int c = 0; c < C; ++c) {
            const float slope = IN_REGISTERS ? slopes[IN_REGISTERS ? c : 0] : p.slopes[at + c * far];
            const float y = probability(pixel.logit(c), normalizer);
            p.gradient[to + c * p.class_stride] =
                !counts ? 0.0f : FROM_LOGITS ? y * (slope - mean) : slope;
        }
    }
}
