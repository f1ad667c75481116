/* ro_adamw_bf16, SPEC.md sections 5 and 9: AdamW of a parameter that is stored as bf16, by one
 * launch. A thread has the eight elements that share a block of Philox. */
#include "repops/cuda/elements/adamw.cuh"
#include "repops/src/half.h"
#include "repops/src/philox.h"

enum { BF16_THREADS = 256, BF16_EACH = 8 };

/* Reads eight neighbours: all and aligned if `packed`, else the first `count`. */
template <bool packed> RO_DEVICE void read_bf16(const uint16_t *p, int count, float x[BF16_EACH]) {
    if constexpr (packed) {
        const uint4 w = *reinterpret_cast<const uint4 *>(p);
        const uint32_t word[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
        for (int i = 0; i < BF16_EACH; i++)
            x[i] = ro_from_bf16((uint16_t)(word[i / 2] >> 16 * (i % 2)));
    } else {
#pragma unroll
        for (int i = 0; i < BF16_EACH; i++)
            x[i] = i < count ? ro_from_bf16(p[i]) : 0.0f;
    }
}

template <bool packed> RO_DEVICE void read_f32(const float *p, int count, float x[BF16_EACH]) {
#pragma unroll
    for (int i = 0; i < BF16_EACH; i += 4)
        if constexpr (packed) {
            const float4 w = *reinterpret_cast<const float4 *>(p + i);
            x[i] = w.x, x[i + 1] = w.y, x[i + 2] = w.z, x[i + 3] = w.w;
        } else {
            for (int k = i; k < i + 4; k++)
                x[k] = k < count ? p[k] : 0.0f;
        }
}

/* Stores eight elements, rounded as cast_stochastic does from element 8 * block on, with
 * `stream`. */
template <bool packed>
RO_DEVICE void write_bf16(const ro_adamw_rounding &r, int stream, int64_t block,
                          const float x[BF16_EACH], uint16_t *p, int count) {
    uint32_t word[4];
    ro_philox_block(r.seed, (uint64_t)block, (uint32_t)*r.step, r.stream[stream], word);
    if constexpr (packed) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            word[i] = ro_to_bf16_at_random(x[2 * i], word[i] & 0xffff) |
                      (uint32_t)ro_to_bf16_at_random(x[2 * i + 1], word[i] >> 16) << 16;
        *reinterpret_cast<uint4 *>(p) = make_uint4(word[0], word[1], word[2], word[3]);
    } else {
#pragma unroll
        for (int i = 0; i < BF16_EACH; i++)
            if (i < count)
                p[i] = ro_to_bf16_at_random(x[i], word[i / 2] >> 16 * (i % 2) & 0xffff);
    }
}

/* Reads everything before the first store, as outputs may be inputs. */
template <bool packed>
__global__ void __launch_bounds__(BF16_THREADS)
    adamw_bf16_kernel(const __grid_constant__ ro_adamw_bf16_job j) {
    const ro_adamw_step &s = j.step;
    const int64_t block = (int64_t)blockIdx.x * BF16_THREADS + threadIdx.x;
    const int64_t first = BF16_EACH * block, left = s.count - first;
    const int count = left < BF16_EACH ? (int)left : (int)BF16_EACH;
    float w[BF16_EACH], m[BF16_EACH], v[BF16_EACH], g[BF16_EACH];
    if (left <= 0)
        return;
    read_bf16<packed>(j.w + first, count, w);
    read_bf16<packed>(j.m + first, count, m);
    read_bf16<packed>(j.v + first, count, v);
    read_f32<packed>(j.gradient + first, count, g);
    const ro_adamw_scalars u = {1.0f / *s.c1, 1.0f / *s.c2, *s.rate, s.eps, s.decay};
    const float clip = *s.clip;
#pragma unroll
    for (int i = 0; i < BF16_EACH; i++) {
        m[i] = ro_next_m(m[i], g[i], clip, s.beta1);
        v[i] = ro_next_v(v[i], g[i], clip, s.beta2);
        w[i] = ro_adamw_w(w[i], m[i], v[i], u);
    }
    write_bf16<packed>(j.rounding, 0, block, w, j.w_out + first, count);
    write_bf16<packed>(j.rounding, 1, block, m, j.m_out + first, count);
    write_bf16<packed>(j.rounding, 2, block, v, j.v_out + first, count);
}

static bool is_packed(const ro_adamw_bf16_job *j) {
    const uintptr_t all =
        reinterpret_cast<uintptr_t>(j->w) | reinterpret_cast<uintptr_t>(j->m) |
        reinterpret_cast<uintptr_t>(j->v) | reinterpret_cast<uintptr_t>(j->gradient) |
        reinterpret_cast<uintptr_t>(j->w_out) | reinterpret_cast<uintptr_t>(j->m_out) |
        reinterpret_cast<uintptr_t>(j->v_out);
    return j->step.count % BF16_EACH == 0 && all % 16 == 0;
}

ro_status ro_cuda_adamw_bf16(ro_cuda *d, const ro_adamw_bf16_job *j) {
    const dim3 grid = ro_grid(ceil_div(j->step.count, BF16_EACH * BF16_THREADS));
    if (is_packed(j))
        RO_LAUNCH(adamw_bf16_kernel<true>, grid, dim3(BF16_THREADS), 0, d->stream, *j);
    else
        RO_LAUNCH(adamw_bf16_kernel<false>, grid, dim3(BF16_THREADS), 0, d->stream, *j);
    return ro_cuda_launched(d, "adamw_bf16");
}
