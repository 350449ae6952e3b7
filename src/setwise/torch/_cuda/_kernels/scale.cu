// The backward pass: each row of a gradient times a number, in the type of the scores. It works in
// place if nothing else needs the gradient, so that a slope of 1 costs nothing.

typedef SCORE T;

struct Arguments {
    const float* gradient;
    const float* slopes;
    T* out;  // the gradient itself, or another array
    i64 rows, n;
    int aligned;
};

__device__ inline void convert(float x, float& out) { out = x; }
__device__ inline void convert(float x, Half& out) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
}
__device__ inline void convert(float x, Bfloat16& out) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
}

constexpr int AHEAD = 4;
constexpr i64 TILE = THREADS * 4;

extern "C" __global__ void __launch_bounds__(THREADS, 1) scale(const __grid_constant__ Arguments p) {
    const i64 tiles = (p.n + TILE - 1) / TILE, mine = threadIdx.x * 4;
    i64 tile = tiles * p.rows * blockIdx.x / gridDim.x;
    const i64 last = tiles * p.rows * (blockIdx.x + 1) / gridDim.x;
    while (tile < last) {
        const i64 row = tile / tiles, end = min(last, (row + 1) * tiles);
        const float slope = p.slopes[row];
        const float* x = p.gradient + row * p.n + mine;
        T* y = p.out + row * p.n + mine;
        i64 t = tile - row * tiles;
        tile = end;
        if (slope == 1.0f && static_cast<const void*>(p.out) == p.gradient) continue;
        const i64 full = p.aligned ? min(end - row * tiles, p.n / TILE) : t;
        const auto write = [&](float4 g, i64 t) {
            Vector<T, 4> out;
            convert(g.x * slope, out.v[0]);
            convert(g.y * slope, out.v[1]);
            convert(g.z * slope, out.v[2]);
            convert(g.w * slope, out.v[3]);
            *reinterpret_cast<Vector<T, 4>*>(y + t * TILE) = out;
        };
        for (; t + AHEAD <= full; t += AHEAD) {
            float4 g[AHEAD];
#pragma unroll
            for (int u = 0; u < AHEAD; ++u) g[u] = *reinterpret_cast<const float4*>(x + (t + u) * TILE);
#pragma unroll
            for (int u = 0; u < AHEAD; ++u) write(g[u], t + u);
        }
        for (; t < full; ++t) write(*reinterpret_cast<const float4*>(x + t * TILE), t);
        for (; t < end - row * tiles; ++t)
            for (int e = 0; e < 4; ++e)
                if (t * TILE + mine + e < p.n) convert(x[t * TILE + e] * slope, y[t * TILE + e]);
    }
}
