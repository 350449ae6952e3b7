// Common code of the kernels: vectors, 16-bit numbers, sums over a block, a barrier of the grid. It
// is written for NVRTC: no header is included, and macros specialise a kernel.

typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned long long u64;
typedef long long i64;

#ifndef THREADS
#define THREADS 1024  // threads per block
#endif

template <class A, int N>
struct alignas(sizeof(A) * N < 16 ? sizeof(A) * N : 16) Vector {
    A v[N];
};

struct Half {
    u16 bits;
    __device__ operator float() const {
        float x;
        asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
        return x;
    }
};

struct Bfloat16 {
    u16 bits;
    __device__ operator float() const { return __uint_as_float(static_cast<u32>(bits) << 16); }
};

// Return the sum over the block, in thread 0 only. `scratch` holds one element per warp.
template <class A>
__device__ A block_sum(A x, A* scratch) {
    for (int step = 16; step; step >>= 1) x += __shfl_down_sync(~0u, x, step);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = x;
    __syncthreads();
    x = threadIdx.x < THREADS / 32 ? scratch[threadIdx.x] : A(0);
    if (threadIdx.x < 32)
        for (int step = 16; step; step >>= 1) x += __shfl_down_sync(~0u, x, step);
    return x;
}

// Return the sums over the threads before this one.
__device__ inline u64 block_exclusive_sum(u64 x, u64* scratch) {
    const u32 lane = threadIdx.x & 31;
    u64 sum = x;
    for (u32 step = 1; step < 32; step <<= 1) {
        const u64 before = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += before;
    }
    __syncthreads();
    if (lane == 31) scratch[threadIdx.x >> 5] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        u64 warps = lane < THREADS / 32 ? scratch[lane] : 0;
        for (u32 step = 1; step < 32; step <<= 1) {
            const u64 before = __shfl_up_sync(~0u, warps, step);
            if (lane >= step) warps += before;
        }
        if (lane < THREADS / 32) scratch[lane] = warps;
    }
    __syncthreads();
    return sum - x + (threadIdx.x < 32 ? 0 : scratch[(threadIdx.x >> 5) - 1]);
}

// Return the key of an error. Keys are sorted as signed numbers, largest first: the bits of a
// nonnegative float have its order and leave one bit for the label. Zero with its highest bit
// flipped is the key of elements that do not count. A NaN comes first.
__device__ inline u32 key_of(float error, bool positive, bool counts) {
    return (counts ? (__float_as_uint(error) << 1 | positive) : 0u) ^ 0x80000000u;
}

// Record which labels were found among the elements that count: 1 stands for -1, and 2 for 0. Any
// other label except 1 ends the launch with an error, and so does finding both.
template <class L>
__device__ inline u32 met_by(L label) {
    if (label == L(1)) return 0u;
    if (label == L(0)) return 2u;
    if (!(L(-1) < L(0) && label == L(-1))) __trap();
    return 1u;
}

// Merge the labels found by the threads of a block into those of all blocks.
__device__ inline void note_met(u32* all, u32 met) {
    const int minus = __syncthreads_or(met & 1u), zero = __syncthreads_or(met & 2u);
    if (threadIdx.x == 0 && (minus || zero)) atomicOr(all, (minus ? 1u : 0u) | (zero ? 2u : 0u));
}

// Return the sum of the numbers that those of blocks 0, ..., last - 1 that have tiles of a row have
// written for it. Blocks take rows in order, so row + block is a unique position for each pair.
// This is called by a whole warp.
template <class A>
__device__ A sum_over_blocks(const A* x, i64 stride, i64 rows, i64 tiles, i64 row, i64 last, i64 blocks) {
    A sum = 0;
    for (i64 block = threadIdx.x & 31; block < last; block += 32) {
        const i64 begin = tiles * rows * block / blocks, end = tiles * rows * (block + 1) / blocks;
        if (begin < min(end, (row + 1) * tiles) && end > row * tiles)
            sum += __ldcg(x + (row + block) * stride);
    }
    for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(~0u, sum, step);
    return sum;
}

// Read the two counts that are packed in one number.
__device__ inline double high(u64 both) { return static_cast<double>(both >> 32); }
__device__ inline double low(u64 both) { return static_cast<double>(both & 0xffffffffu); }

// Wait until `all` blocks of a cooperative launch have arrived. The counter starts at 0.
__device__ inline void barrier(u32* counter, u32 all) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(counter, 1u);
        u32 seen;
        do {
            asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
        } while (seen < all);
    }
    __syncthreads();
}

// Wait for all blocks.
__device__ inline void grid_barrier(u32* counter, u32 round) { barrier(counter, round * gridDim.x); }

// Return in all threads of a block whether it is the last to arrive. The last block sees what the
// others wrote before.
__device__ inline bool is_last_block(u32* counter) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(counter, 1u) == gridDim.x - 1;
    __syncthreads();
    __threadfence();
    return last;
}

// l(n, q) = (a n + q) / (c m - d n + q); with m = 0 it is min(1, q).
struct Ratio {
    double a, c, d;

    // Return the mean gain of each of k positives and of each of j negatives that are added
    // together at (n, q): the mean of the two orders, positives first and negatives first.
    __device__ double2 gains(double m, double n, double q, double k, double j) const {
        if (m == 0) return make_double2(0.0, q == 0 && j > 0 ? 1.0 / j : 0.0);
        const double A = a * n + q, B = c * m - d * n + q;
        double positive = 0, negative = 0;
        if (k > 0)
            positive = 0.5 * ((a * B + d * A) / (B * (B - d * k)) +
                              (a * (B + j) + d * (A + j)) / ((B + j) * (B + j - d * k)));
        if (j > 0) {
            const double after = B - d * k;
            negative = 0.5 * ((B - A) / (B * (B + j)) + (after - A - a * k) / (after * (after + j)));
        }
        return make_double2(positive, negative);
    }

    // The same as `gains` for whole numbers below 2^32. The last steps are in single precision,
    // because nothing cancels there.
    __device__ float2 whole_gains(u32 m, u32 n, u32 q, u32 k, u32 j) const {
        if (m == 0) return make_float2(0.0f, q == 0 && j > 0 ? 1.0f / static_cast<float>(j) : 0.0f);
#if JACCARD
        const float one = __frcp_rn(static_cast<float>(m + q));
        const float other = __frcp_rn(static_cast<float>(static_cast<u64>(m) + q + j));
        const float left = static_cast<float>(2 * static_cast<u64>(m - n) - k);
        return make_float2(k ? 0.5f * (one + other) : 0.0f, j ? 0.5f * left * one * other : 0.0f);
#else
        if (!(k | j)) return make_float2(0.0f, 0.0f);
        const double2 both = gains(static_cast<double>(m), static_cast<double>(n),
                                   static_cast<double>(q), static_cast<double>(k),
                                   static_cast<double>(j));
        return make_float2(static_cast<float>(both.x), static_cast<float>(both.y));
#endif
    }

    // Return the gain of one more false negative or false positive at (n, q). The last steps are in
    // single precision, because nothing cancels there and double precision is slow on the device.
    __device__ float gain(u32 m, u32 n, u32 q, bool positive) const {
        if (m == 0) return q == 0 ? 1.0f : 0.0f;
#if JACCARD
        // a = c = 1, d = 0: all numbers are integers below 2^32
        const float B = static_cast<float>(m + q);
        return positive ? __frcp_rn(B) : __fdividef(static_cast<float>(m - n), B) * __frcp_rn(B + 1.0f);
#else
        const double A = a * n + q, B = c * m - d * n + q;
        const float top = static_cast<float>(positive ? a * B + d * A : B - A);
        const float one = static_cast<float>(B), other = static_cast<float>(positive ? B - d : B + 1.0);
        return __fdividef(top, one) * __frcp_rn(other);
#endif
    }
};
