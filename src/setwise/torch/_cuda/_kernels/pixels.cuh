// Common code of the kernels of the softmax: the logits of a pixel and its probabilities.

typedef SCORE T;
typedef LABEL L;

constexpr int C = CLASSES;
constexpr bool IN_REGISTERS = C <= 32;  // an array in registers needs unrolled loops
constexpr int UNROLL = IN_REGISTERS ? C : 4;

__device__ inline float power_of_e(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.4426950408889634f));
    return y;
}

// The logits of one pixel (or its probabilities, unless FROM_LOGITS).
struct Pixel {
    const T* x;
    i64 stride;
    float kept[IN_REGISTERS ? C : 1];

    __device__ Pixel(const T* x, i64 stride) : x(x), stride(stride) {
        if (IN_REGISTERS)
#pragma unroll UNROLL
            for (int c = 0; c < C; ++c) kept[IN_REGISTERS ? c : 0] = x[c * stride];
    }

    __device__ float logit(int c) const {
        return IN_REGISTERS ? kept[c] : static_cast<float>(x[c * stride]);
    }

    // Return the largest logit, and 1 / the sum of the exponentials of all logits minus the
    // largest.
    __device__ float2 normalizer() const {
        float most = __int_as_float(0xff800000), sum = 0;
#pragma unroll UNROLL
        for (int c = 0; c < C; ++c) most = fmaxf(most, logit(c));
#pragma unroll UNROLL
        for (int c = 0; c < C; ++c) sum += power_of_e(logit(c) - most);
        return make_float2(most, 1.0f / sum);
    }
};

__device__ inline float probability(float logit, float2 normalizer) {
    return FROM_LOGITS ? power_of_e(logit - normalizer.x) * normalizer.y : logit;
}

// Return whether a pixel is void. A label that is neither void nor a class ends the launch with an
// error.
__device__ inline bool is_void(L label, i64 ignore) {
    if (HAS_IGNORE && label == static_cast<L>(ignore)) return true;
    if (label < L(0) || static_cast<i64>(label) >= C) __trap();
    return false;
}

// This block's share of some pieces of work.
struct Share {
    i64 first, last;
    __device__ explicit Share(i64 items)
        : first(items * blockIdx.x / gridDim.x), last(items * (blockIdx.x + 1) / gridDim.x) {}
};
