/* Attention's operators, SPEC.md section 8. */
#include "repops/cuda/rows/rows.cuh"
#include "repops/op_attention.h"

static const float *floats(const void *p) {
    return static_cast<const float *>(p);
}

/* Scores have the shape [..., T, S]. */
static int64_t keys_of(const ro_call *call) {
    return call->input[0].dim[call->input[0].ndim - 1];
}

static int64_t queries_of(const ro_call *call) {
    return call->input[0].dim[call->input[0].ndim - 2];
}

static int64_t key_blocks(int64_t keys) {
    return ceil_div(keys, RO_ATTN_BLOCK);
}

/* ---- scores, element by element ---- */

/* The keys that a row of scores admits: from max(0, first) up to `end`. */
struct key_range {
    int64_t first, end;

    RO_DEVICE bool has(int64_t key) const {
        return key >= first && key < end;
    }
};

struct admitted_keys {
    ro_divider tokens;
    int64_t keys, window; /* window: most keys of a query */
    int causal;

    __host__ explicit admitted_keys(const ro_call *call)
        : tokens(queries_of(call)), keys(keys_of(call)),
          window(call->attr[RO_MASKED_WINDOW] ? call->attr[RO_MASKED_WINDOW] : keys),
          causal(call->attr[RO_MASKED_CAUSAL] != 0) {}
    RO_DEVICE key_range of(int64_t row) const {
        const int64_t end = causal ? tokens.remainder(row) + 1 : keys;
        return {end - window, end};
    }
};

/* The keys that a row admits if the first query stands at key *first. */
struct placed_keys {
    ro_divider tokens;
    int64_t keys, window;
    const int32_t *first;

    __host__ placed_keys(const ro_call *call, const void *place)
        : tokens(queries_of(call)), keys(keys_of(call)), window(call->attr[RO_PLACED_WINDOW]),
          first(static_cast<const int32_t *>(place)) {}
    RO_DEVICE key_range of(int64_t row) const {
        const int64_t end = tokens.remainder(row) + *first + 1;
        return {window > 0 ? end - window : 0, end};
    }
};

RO_DEVICE bool is_minus_infinity(float x) {
    return ro_to_bits(x) == RO_MINUS_INFINITY_BITS;
}

static ro_status attn_max(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    row_view view(ro_shape_numel(&call->output), keys_of(call), RO_ATTN_BLOCK,
                  call->attr[RO_MASKED_CAUSAL] ? queries_of(call) : 0);
    view.window = call->attr[RO_MASKED_WINDOW];
    /* With a causal mask a row may end anywhere. */
    return reduce_rows(d, call, out, view,
                       !call->attr[RO_MASKED_CAUSAL] && ro_packable(keys_of(call), floats(in[0])),
                       max_terms{floats(in[0])});
}
RO_CUDA_KERNEL(attn_max, attn_max)

/* Blocks of rows of scores, without keys that the row does not admit; some have none left. */
struct placed_view {
    int64_t items, block;
    ro_divider blocks;
    placed_keys admitted;

    RO_DEVICE row_block of(int64_t item) const {
        const int64_t row = blocks.quotient(item), start = (item - row * blocks.divisor) * block;
        const key_range keys = admitted.of(row);
        const int64_t all = start + block < admitted.keys ? start + block : admitted.keys;
        const int64_t at = start > keys.first ? start : keys.first;
        const int64_t left = (keys.end < all ? keys.end : all) - at;
        return {row, at, row * admitted.keys + at, (int)(left > 0 ? left : 0)};
    }
};

/* Terms of rows that may start and end at any element. */
struct placed_max : max_terms {
    static constexpr bool FOURS = false;
};

static ro_status attn_max_at(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const placed_view view = {ro_shape_numel(&call->output), RO_ATTN_BLOCK,
                              ro_divider(key_blocks(keys_of(call))), placed_keys(call, in[1])};
    return reduce_rows(d, call, out, view, false, placed_max{{floats(in[0])}});
}
RO_CUDA_KERNEL(attn_max_at, attn_max_at)

template <class A> struct attn_exp_of {
    const float *s, *mc;
    A admitted;
    int64_t blocks;

    template <int N> RO_DEVICE ro_pack<N> of(int64_t row, int64_t j, int64_t e) const {
        ro_pack<N> v = ro_load<N>(s + e);
        const float m = mc[row * blocks + j / RO_ATTN_BLOCK];
        const key_range keys = is_minus_infinity(m) ? key_range{0, 0} : admitted.of(row);
#pragma unroll
        for (int k = 0; k < N; k++)
            v.at[k] = keys.has(j + k) ? ro_exp(v.at[k] - m) : 0.0f;
        return v;
    }
};

struct attn_prob_of {
    const float *s, *m, *l;
    admitted_keys admitted;

    template <int N> RO_DEVICE ro_pack<N> of(int64_t row, int64_t j, int64_t e) const {
        ro_pack<N> v = ro_load<N>(s + e);
        const float most = m[row], r = 1.0f / l[row];
        const key_range keys = is_minus_infinity(most) ? key_range{0, 0} : admitted.of(row);
#pragma unroll
        for (int k = 0; k < N; k++)
            v.at[k] = keys.has(j + k) ? ro_canon(ro_exp(v.at[k] - most) * r) : 0.0f;
        return v;
    }
};

struct attn_dscore_of {
    const float *p, *dp, *delta;
    admitted_keys admitted;

    template <int N> RO_DEVICE ro_pack<N> of(int64_t row, int64_t j, int64_t e) const {
        ro_pack<N> v = ro_load<N>(p + e);
        const ro_pack<N> w = ro_load<N>(dp + e);
        const float sum = delta[row];
        const key_range keys = admitted.of(row);
#pragma unroll
        for (int k = 0; k < N; k++)
            v.at[k] = keys.has(j + k) ? ro_canon(v.at[k] * (w.at[k] - sum)) : 0.0f;
        return v;
    }
};

template <class A>
static ro_status attn_exp_as(ro_cuda *d, const ro_call *call, const void *const *in, void *out,
                             const A &admitted) {
    const int64_t keys = keys_of(call);
    const attn_exp_of<A> f = {floats(in[0]), floats(in[1]), admitted, key_blocks(keys)};
    return map_rows(d, call, out, in_numel(call, 0), keys, ro_packable(keys, f.s), f);
}

static ro_status attn_exp(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return attn_exp_as(d, call, in, out, admitted_keys(call));
}
RO_CUDA_KERNEL(attn_exp, attn_exp)

static ro_status attn_exp_at(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return attn_exp_as(d, call, in, out, placed_keys(call, in[2]));
}
RO_CUDA_KERNEL(attn_exp_at, attn_exp_at)

static ro_status attn_prob(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const int64_t keys = keys_of(call);
    const attn_prob_of f = {floats(in[0]), floats(in[1]), floats(in[2]), admitted_keys(call)};
    return map_rows(d, call, out, in_numel(call, 0), keys, ro_packable(keys, f.s), f);
}
RO_CUDA_KERNEL(attn_prob, attn_prob)

static ro_status attn_dscore(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const int64_t keys = keys_of(call);
    const attn_dscore_of f = {floats(in[0]), floats(in[1]), floats(in[2]), admitted_keys(call)};
    return map_rows(d, call, out, in_numel(call, 0), keys, ro_packable(keys, f.p, f.dp), f);
}
RO_CUDA_KERNEL(attn_dscore, attn_dscore)

/* ---- attn_av and attn_av_at: a tile of queries and columns for one block of keys ---- */

enum { AV_TILE = 64, AV_STEP = 16, AV_EACH = 4, AV_THREADS = 256, AV_ROW = AV_TILE + 4 };

struct av_shape {
    int64_t queries, keys, size, blocks, row_tiles, col_tiles;
    int causal;
    int64_t window;       /* most keys of a query, if causal */
    const int32_t *first; /* the key at which the first query stands; NULL: 0 */
};

template <bool placed>
__global__ void __launch_bounds__(AV_THREADS)
    attn_av_kernel(float *out, const float *e, const float *v, av_shape a) {
    RO_SMEM(float, smem);
    float *left = smem, *right = smem + AV_STEP * AV_ROW;
    const int64_t tile = blockIdx.x / a.col_tiles, col0 = blockIdx.x % a.col_tiles * AV_TILE;
    const int64_t block = tile / a.row_tiles, row0 = tile % a.row_tiles * AV_TILE;
    const int64_t head = block / a.blocks, from = block % a.blocks * RO_ATTN_BLOCK;
    const int t = threadIdx.x, tx = t % 16, ty = t / 16;
    const int64_t place0 = placed ? row0 + *a.first : row0;
    const int64_t left_keys = a.keys - from, ahead = place0 + AV_TILE - from;
    int count = left_keys < RO_ATTN_BLOCK ? (int)left_keys : RO_ATTN_BLOCK;
    if (placed) /* no query of the tile admits more keys */
        count = ahead < 0 ? 0 : ahead < count ? (int)ahead : count;
    float sum[AV_EACH][AV_EACH] = {};
    e += (head * a.queries + row0) * a.keys + from;
    v += (head * a.keys + from) * a.size + col0;
    for (int k0 = 0; k0 < count; k0 += AV_STEP) {
        for (int i = t; i < AV_TILE * AV_STEP; i += AV_THREADS) {
            const int row = i / AV_STEP, k = i % AV_STEP, col = i % AV_TILE, key = i / AV_TILE;
            left[k * AV_ROW + row] =
                row0 + row < a.queries && k0 + k < count ? e[row * a.keys + k0 + k] : 0.0f;
            right[key * AV_ROW + col] =
                k0 + key < count && col0 + col < a.size ? v[(k0 + key) * a.size + col] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < AV_STEP; k++)
#pragma unroll
            for (int r = 0; r < AV_EACH; r++) {
                const int row = ty * AV_EACH + r;
                const int64_t back = place0 + row - (from + k0 + k);
                const bool within = back >= 0 && back < a.window;
                if (placed ? within && k0 + k < count : a.causal ? within : k0 + k < count)
#pragma unroll
                    for (int c = 0; c < AV_EACH; c++)
                        sum[r][c] = ro_fma(left[k * AV_ROW + row],
                                           right[k * AV_ROW + tx * AV_EACH + c], sum[r][c]);
            }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < AV_EACH; r++)
#pragma unroll
        for (int c = 0; c < AV_EACH; c++) {
            const int64_t row = row0 + ty * AV_EACH + r, col = col0 + tx * AV_EACH + c;
            if (row < a.queries && col < a.size)
                out[((head * a.queries + row) * a.blocks + block % a.blocks) * a.size + col] =
                    ro_canon(0.0f + sum[r][c]);
        }
}

/* first: NULL for attn_av. */
template <bool placed>
static ro_status attn_av_as(ro_cuda *d, const ro_call *call, const void *const *in, void *out,
                            const void *first) {
    const int64_t size = call->output.dim[call->output.ndim - 1];
    const int64_t window = call->attr[placed ? RO_PLACED_WINDOW : RO_MASKED_WINDOW];
    av_shape a = {queries_of(call),
                  keys_of(call),
                  size,
                  0,
                  0,
                  0,
                  placed || call->attr[RO_MASKED_CAUSAL] != 0,
                  window ? window : INT64_MAX,
                  static_cast<const int32_t *>(first)};
    a.blocks = key_blocks(a.keys);
    a.row_tiles = ceil_div(a.queries, AV_TILE), a.col_tiles = ceil_div(size, AV_TILE);
    const int64_t heads = in_numel(call, 0) / (a.queries * a.keys);
    RO_LAUNCH(attn_av_kernel<placed>, ro_grid(heads * a.blocks * a.row_tiles * a.col_tiles),
              dim3(AV_THREADS), 2 * AV_STEP * AV_ROW * sizeof(float), d->stream,
              static_cast<float *>(out), floats(in[0]), floats(in[1]), a);
    return ro_cuda_launched(d, ro_op_describe(call->op)->name);
}

static ro_status attn_av(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return attn_av_as<false>(d, call, in, out, nullptr);
}
RO_CUDA_KERNEL(attn_av, attn_av)

static ro_status attn_av_at(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return attn_av_as<true>(d, call, in, out, in[2]);
}
RO_CUDA_KERNEL(attn_av_at, attn_av_at)

/* ---- the walk over blocks ---- */

/* Computes o of attn_out, before its last product, from `blocks` values of mc and as many packs,
 * `step` apart. Returns whether any block had a key. */
template <int N>
RO_DEVICE bool walk_blocks(const float *mc, const float *ac, int64_t blocks, int64_t step,
                           ro_pack<N> *sum) {
    int32_t m = RO_KEY_LEAST;
    ro_pack<N> o = {};
    bool started = false;
    for (int64_t c = 0; c < blocks; c++) {
        const float now = mc[c];
        const ro_pack<N> v = ro_load<N>(ac + c * step);
        if (is_minus_infinity(now))
            continue;
        const float before = ro_of_key(m), next = ro_of_key(ro_larger(m, ro_key(now)));
        const float a = ro_exp(before - next), b = ro_exp(now - next);
#pragma unroll
        for (int k = 0; k < N; k++)
            o.at[k] = started ? ro_fma(o.at[k], a, b * v.at[k]) : v.at[k];
        started = true;
        m = ro_key(next);
    }
    *sum = o;
    return started;
}

static ro_status attn_l(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *mc = floats(in[0]), *lc = floats(in[1]);
    const int64_t blocks = keys_of(call);
    return map<float>(d, call, out, [=] __device__(int64_t row) {
        ro_pack<1> l;
        (void)walk_blocks<1>(mc + row * blocks, lc + row * blocks, blocks, 1, &l);
        return ro_canon(l.at[0]);
    });
}
RO_CUDA_KERNEL(attn_l, attn_l)

struct attn_out_of {
    const float *mc, *ac, *l;
    int64_t blocks, size;

    template <int N> RO_DEVICE ro_pack<N> of(int64_t row, int64_t c, int64_t) const {
        ro_pack<N> o;
        const float *from = ac + row * blocks * size + c;
        const float r = 1.0f / l[row];
        const bool any = walk_blocks<N>(mc + row * blocks, from, blocks, size, &o);
#pragma unroll
        for (int k = 0; k < N; k++)
            o.at[k] = any ? ro_canon(o.at[k] * r) : 0.0f;
        return o;
    }
};

static ro_status attn_out(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const int64_t size = call->output.dim[call->output.ndim - 1];
    const attn_out_of f = {floats(in[0]), floats(in[1]), floats(in[2]), keys_of(call), size};
    return map_rows(d, call, out, ro_shape_numel(&call->output), size, ro_packable(size, f.ac), f);
}
RO_CUDA_KERNEL(attn_out, attn_out)

/* ---- heads of a group ---- */

static ro_status repeat_heads_grad(ro_cuda *d, const ro_call *call, const void *const *in,
                                   void *out) {
    const float *dy = floats(in[0]);
    const int64_t one = call->output.dim[2] * call->output.dim[3],
                  times = call->attr[RO_REPEAT_TIMES];
    const ro_divider head(one);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        const int64_t h = head.quotient(i);
        const float *x = dy + h * times * one + (i - h * one);
        float sum = 0.0f;
        for (int64_t g = 0; g < times; g++)
            sum = sum + x[g * one];
        return ro_canon(sum);
    });
}
RO_CUDA_KERNEL(repeat_heads_grad, repeat_heads_grad)
