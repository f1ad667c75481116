/* Packs operands of fixed products for sm_90a: digits as wgmma reads them from shared memory, and a
 * power of two for each line of a chunk. */
#ifndef REPOPS_CUDA_WGMMA_PACK_CUH
#define REPOPS_CUDA_WGMMA_PACK_CUH

#include "repops/cuda/gemm/fixed_check.cuh"
#include "repops/cuda/gemm/wgmma_ptx.cuh"

enum {
    WGMMA_LINES = 64,                               /* rows per group of four warps */
    WGMMA_STEPS = WGMMA_ROW,                        /* steps of k in a stage */
    WGMMA_STAGES = (int)RO_DOT_CHUNK / WGMMA_STEPS, /* stages of a chunk */
    WGMMA_THREADS = 3 * 128,
    WGMMA_FEW = 40,  /* registers per thread in the group that copies */
    WGMMA_MANY = 232 /* and in those that multiply */
};

/* One operand, packed, in panels of lines. */
struct wgmma_operand {
    unsigned char *digits; /* [panel, stage, digit, line, WGMMA_ROW] */
    float *scales;         /* [panel, chunk, line] */
    unsigned *seconds;     /* [panel, chunk]: whether lines have a second digit of 8 bits */
    int64_t panels;        /* panels of a product; those of a batch are contiguous */
    int stages, chunks;
};

/* Returns the scale of a line of digits: 2^(exponent - (bits - 1)), perhaps subnormal. NaN for a
 * line that is not finite; 1 if all integers are 0, whatever the exponent. */
RO_DEVICE float wgmma_scale(fixed_scale s, bool any) {
    const int power = s.exponent - (s.bits - 1);
    if (s.exponent == RO_FIXED_NONE)
        return RO_F32_NAN;
    if (!any)
        return 1.0f;
    return ro_from_bits(power >= -126 ? (uint32_t)(power + 127) << 23 : 1u << (power + 149));
}

/* Packs sixteen steps of a line, from k on. Returns whether any integer is not 0. */
template <int digits, class Lines>
RO_DEVICE uint32_t wgmma_pack_steps(const Lines &x, int64_t batch, int64_t line, int64_t k,
                                    fixed_scale s, unsigned char *to, int plane) {
    uint32_t word[4][fixed_places<digits>], any = 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
        fixed_digits<digits>(x.load(batch, line, k + 4 * i), s, word[i]);
#pragma unroll
    for (int d = 0; d < fixed_places<digits>; d++) {
        *reinterpret_cast<uint4 *>(to + d * plane) =
            make_uint4(word[0][d], word[1][d], word[2][d], word[3][d]);
        any |= word[0][d] | word[1][d] | word[2][d] | word[3][d];
    }
    return any;
}

/* Reads packed operands as fixed_reader does. */
template <int form, int lines> struct wgmma_reader {
    static constexpr int PLACES = fixed_places<form>, GROUPS = lines / FIXED_LINES;
    wgmma_operand x;

    RO_DEVICE int64_t panel(int64_t batch, int64_t group) const {
        return batch * x.panels + group / GROUPS;
    }
    RO_DEVICE uint4 digits(int64_t batch, int64_t group, int64_t block, int place, int lane) const {
        constexpr int plane = lines * WGMMA_ROW, half = FIXED_STEPS / 2, in_stage = 2;
        static_assert(in_stage * FIXED_STEPS == WGMMA_STEPS, "a stage has two blocks");
        const int64_t stage = panel(batch, group) * x.stages + block / in_stage;
        const unsigned char *const from = x.digits + (stage * PLACES + place) * plane;
        const int line = (int)(group % GROUPS) * FIXED_LINES + lane / 4;
        const int k = (int)(block % in_stage) * FIXED_STEPS + lane % 4 * 4;
        const auto word = [&](int l, int step) {
            return *reinterpret_cast<const uint32_t *>(from + wgmma_place(l, step));
        };
        return make_uint4(word(line, k), word(line, k + half), word(line + 8, k),
                          word(line + 8, k + half));
    }
    RO_DEVICE uint32_t scales(int64_t batch, int64_t group, int64_t chunk, int lane) const {
        const int64_t at = panel(batch, group) * x.chunks + chunk;
        if (lane < FIXED_LINES)
            return ro_to_bits(x.scales[at * lines + group % GROUPS * FIXED_LINES + lane]);
        return lane == FIXED_LINES ? x.seconds[at] : 0;
    }
};

/* `lines` is the number in a panel. Four lanes share a line, with sixteen steps of a stage each; a
 * thread packs two lines one after the other, as registers would spill otherwise. */
template <int digits, int lines, class Lines>
__global__ void __launch_bounds__(FIXED_PACK_THREADS, FIXED_PACK_BLOCKS)
    wgmma_pack_kernel(const __grid_constant__ Lines x, const __grid_constant__ wgmma_operand to,
                      int64_t warps) {
    constexpr int plane = lines * WGMMA_ROW, groups = lines / FIXED_LINES;
    const int lane = (int)threadIdx.x % 32, quarter = lane % 4;
    const int64_t warp = (int64_t)blockIdx.x * (FIXED_PACK_THREADS / 32) + (int)threadIdx.x / 32;
    if (warp >= warps)
        return;
    const int64_t chunk = warp % to.chunks, group = warp / to.chunks;
    const int64_t panel = group / groups, batch = panel / to.panels;
    const int64_t k = chunk * RO_DOT_CHUNK, stage = panel * to.stages + chunk * WGMMA_STAGES;
    const int left = to.stages - (int)chunk * WGMMA_STAGES;
    const int stages = left < WGMMA_STAGES ? left : (int)WGMMA_STAGES;
#pragma unroll 1
    for (int half = 0; half < 2; half++) {
        const int in_panel = (int)(group % groups) * FIXED_LINES + half * 8 + lane / 4;
        const int64_t line = panel % to.panels * lines + in_panel;
        const fixed_scale scale = fixed_line_scale<digits>(x, batch, line, k + quarter * 4,
                                                           stages * WGMMA_STEPS - quarter * 4);
        unsigned char *out = to.digits + stage * (fixed_places<digits> * plane) +
                             wgmma_place(in_panel, quarter * 16);
        uint32_t any = 0;
#pragma unroll 1
        for (int i = 0; i < stages; i++, out += fixed_places<digits> * plane)
            any |= wgmma_pack_steps<digits>(x, batch, line, k + i * WGMMA_STEPS + quarter * 16,
                                            scale, out, plane);
#pragma unroll
        for (int lanes = 1; lanes < 4; lanes *= 2)
            any |= __shfl_xor_sync(RO_ALL_LANES, any, lanes);
        if (quarter == 0)
            to.scales[(panel * to.chunks + chunk) * lines + in_panel] =
                wgmma_scale(scale, any != 0);
        if (digits == 1 && scale.bits != RO_FIXED_8)
            atomicMax(to.seconds + panel * to.chunks + chunk, 1u);
    }
}

#endif
