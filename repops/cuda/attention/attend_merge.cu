/* The walk over blocks of keys that were computed separately, SPEC.md section 8. Only its additions
 * are sequential: a warp finds the maximum before each block, all threads compute factors, and then
 * each thread adds up one column. */
#include "repops/cuda/attention/attend_merge.cuh"
#include "repops/cuda/rows/rows.cuh"

enum { MERGE_AHEAD = 16 };

/* Three arrays in shared memory, with one element for each block: its maximum, and its factors. */
struct merge_steps {
    float *mc, *a, *b;
};

/* Sets a[c] to the maximum of all blocks before c. Returns the key of the maximum of all. */
RO_DEVICE int32_t scan_maxima(const merge_steps &s, int blocks) {
    int32_t before = RO_KEY_LEAST;
    for (int from = 0; from < blocks; from += 32) {
        const int c = from + (int)threadIdx.x;
        int32_t key = c < blocks ? ro_key(s.mc[c]) : RO_KEY_LEAST;
#pragma unroll
        for (int w = 1; w < 32; w *= 2) {
            const int32_t left = __shfl_up_sync(RO_ALL_LANES, key, w);
            key = (int)threadIdx.x >= w ? ro_larger(key, left) : key;
        }
        const int32_t left = __shfl_up_sync(RO_ALL_LANES, key, 1);
        if (c < blocks)
            s.a[c] = ro_of_key(threadIdx.x > 0 ? ro_larger(before, left) : before);
        before = ro_larger(before, __shfl_sync(RO_ALL_LANES, key, 31));
    }
    return before;
}

/* Returns the walk's sum over blocks of numbers that are `step` apart. */
RO_DEVICE float walk_steps(const merge_steps &s, const float *from, int blocks, int64_t step) {
    float sum = 0.0f;
    for (int c0 = 0; c0 < blocks; c0 += MERGE_AHEAD) {
        float v[MERGE_AHEAD];
#pragma unroll
        for (int u = 0; u < MERGE_AHEAD; u++)
            if (c0 + u < blocks)
                v[u] = from[(c0 + u) * step];
#pragma unroll
        for (int u = 0; u < MERGE_AHEAD; u++)
            if (c0 + u < blocks && ro_to_bits(s.mc[c0 + u]) != RO_MINUS_INFINITY_BITS)
                sum = ro_fma(sum, s.a[c0 + u], s.b[c0 + u] * v[u]);
    }
    return sum;
}

__global__ void attend_merge_kernel(attend_blocks from, attend_merged to) {
    RO_SMEM(float, smem);
    const int blocks = (int)from.blocks, t = threadIdx.x;
    const merge_steps s = {smem + 2, smem + 2 + blocks, smem + 2 + 2 * blocks};
    const int64_t row = blockIdx.x, size = to.size;
    for (int c = t; c < blocks; c += blockDim.x)
        s.mc[c] = from.mc[row * blocks + c];
    __syncthreads();
    if (t < 32) {
        const int32_t last = scan_maxima(s, blocks);
        if (t == 0)
            smem[0] = ro_of_key(last);
    }
    __syncthreads();
    for (int c = t; c < blocks; c += blockDim.x) {
        const float before = s.a[c], after = ro_of_key(ro_larger(ro_key(before), ro_key(s.mc[c])));
        s.a[c] = ro_exp(before - after);
        s.b[c] = ro_exp(s.mc[c] - after);
    }
    __syncthreads();
    float sum = 0.0f;
    if (t < size)
        sum = walk_steps(s, from.ac + row * blocks * size + t, blocks, size);
    if (t == size)
        smem[1] = ro_canon(walk_steps(s, from.lc + row * blocks, blocks, 1));
    __syncthreads();
    const bool none = ro_to_bits(smem[0]) == RO_MINUS_INFINITY_BITS;
    if (t < size)
        to.out[to.out_rows.line(0, to.tokens, row) + t] =
            none ? 0.0f : ro_canon(sum * (1.0f / smem[1]));
    if (t == 0 && to.m)
        to.m[row] = smem[0];
    if (t == 0 && to.l)
        to.l[row] = smem[1];
}

ro_status ro_cuda_attend_merge(ro_cuda *d, const attend_blocks &from, const attend_merged &to) {
    const unsigned threads = (unsigned)ceil_div(to.size + 1, 32) * 32;
    const size_t smem = (size_t)(2 + 3 * from.blocks) * sizeof(float);
    RO_LAUNCH(attend_merge_kernel, ro_grid(to.rows), dim3(threads), smem, d->stream, from, to);
    return ro_cuda_launched(d, "attention");
}
