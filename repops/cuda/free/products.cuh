/* Matrix products and convolutions, SPEC.md sections 3.1, 8 and 12.1. A block computes one tile of
 * the result over one piece of k. Partial sums, and squares of the operands' elements for the
 * bound, go to temporary memory; another kernel adds the pieces in order and stores each result. */
#ifndef REPOPS_CUDA_FREE_PRODUCTS_CUH
#define REPOPS_CUDA_FREE_PRODUCTS_CUH

#include "repops/cuda/free/free.cuh"
#include "repops/free/functions.h"
#include "repops/src/conv.h"
#include "repops/op_attention.h"
#include "repops/src/matmul.h"

namespace FREE_SPACE {

/* LINE: stride of a tile's lines in shared memory, odd, so that columns are on different banks. */
enum { TILE = 64, STEP = 16, EACH = 4, TILE_THREADS = 256, LINE = TILE + 1 };

/* Blocks that keep a large device busy, and terms that are worth another piece. */
enum { BLOCKS_WANTED = 528, PIECE_TERMS = 256 };

/* `products` products of m x k by k x n. A product's number divided by `inner` is its index in the
 * outer dimensions; the remainder counts key blocks. */
struct plan {
    int64_t products, m, n, k;
    ro_divider inner;
    int absent;                    /* terms may be absent: outside an image, or by the mask */
    int mask;                      /* of a as a matrix: SPEC 3.1 */
    int64_t mask_first, mask_step; /* added to row numbers: mask_first + mask_step * inner index */
    int64_t window;                /* most terms that the mask admits in a row */
    real alpha;
    int norms;                           /* whether bounds are wanted */
    int64_t down, across, pieces, terms; /* tiles of a product; pieces of k, and their terms */
};

struct part {
    int64_t outer, inner, product;

    RO_DEVICE part(const plan &p, int64_t i)
        : outer(p.inner.quotient(i)), inner(i - outer * p.inner.divisor), product(i) {}
};

/* ---- operands: element(lane_of(part, i), step_of(part, k)); NULL: absent ---- */

/* A matrix in which one of the two strides is 1. */
struct strided {
    const float *data;
    int64_t lane_step, k_step, outer, inner;

    typedef const float *lane;
    typedef int64_t step;
    bool along_k() const {
        return k_step == 1;
    }
    RO_DEVICE lane lane_of(const part &p, int64_t i) const {
        return data + p.outer * outer + p.inner * inner + i * lane_step;
    }
    RO_DEVICE step step_of(const part &, int64_t k) const {
        return k * k_step;
    }
    RO_DEVICE static const float *element(lane l, step s) {
        return l + s;
    }
};

/* A pair of numbers, for rows and columns of an image. */
struct twice {
    int64_t h, w;
};

/* Positions and taps of an image. Position (n, i, j) and tap (p, q) meet at row i * step.h +
 * first.h + p * next.h, and at a column likewise, if that is in the image. Convolutions use all
 * taps; their gradients to images use the taps that pixels with one remainder modulo the stride
 * meet. */
struct gather {
    const float *image; /* [batch, size.h, size.w, pixel] */
    twice size, step, first, next;
    int64_t pixel;
    ro_divider depth; /* channels of a group */
    ro_divider taps_w, count_h, count_w;

    struct spot {
        int64_t h, w, at; /* at: of a position, the number of its image; of a tap, its channel */
    };
    RO_DEVICE spot position(int64_t i) const {
        const int64_t line = count_w.quotient(i), n = count_h.quotient(line);
        return {(line - n * count_h.divisor) * step.h, (i - line * count_w.divisor) * step.w, n};
    }
    RO_DEVICE spot tap(int64_t i) const {
        const int64_t number = depth.quotient(i), p = taps_w.quotient(number);
        return {first.h + p * next.h, first.w + (number - p * taps_w.divisor) * next.w,
                i - number * depth.divisor};
    }
    RO_DEVICE const float *meet(const spot &pixel_at, const spot &tap_at, int64_t channel) const {
        const int64_t h = pixel_at.h + tap_at.h, w = pixel_at.w + tap_at.w;
        if (h < 0 || h >= size.h || w < 0 || w >= size.w)
            return nullptr;
        return image + ((pixel_at.at * size.h + h) * size.w + w) * pixel + channel + tap_at.at;
    }
};

/* Rows are positions, k is (tap, channel). */
struct positions : gather {
    struct lane {
        spot at;
        int64_t channel;
    };
    typedef spot step;
    bool along_k() const {
        return true;
    }
    RO_DEVICE lane lane_of(const part &p, int64_t i) const {
        return {position(i), p.product * depth.divisor};
    }
    RO_DEVICE step step_of(const part &, int64_t k) const {
        return tap(k);
    }
    RO_DEVICE const float *element(const lane &l, const step &s) const {
        return meet(l.at, s, l.channel);
    }
};

/* Rows are (tap, channel), k is positions. */
struct windows : gather {
    struct lane {
        spot at;
        int64_t channel;
    };
    typedef spot step;
    bool along_k() const {
        return false;
    }
    RO_DEVICE lane lane_of(const part &p, int64_t i) const {
        return {tap(i), p.product * depth.divisor};
    }
    RO_DEVICE step step_of(const part &, int64_t k) const {
        return position(k);
    }
    RO_DEVICE const float *element(const lane &l, const step &s) const {
        return meet(s, l.at, l.channel);
    }
};

/* The filters of conv2d_dx. Column ci of step (tap, f) is w[tap, ci, f]; taps are first + p *
 * next. */
struct filters {
    const float *weights;
    int64_t channels, all, kernel_w; /* channels of a group; filters of all groups */
    ro_divider width, taps_w;        /* filters of a group */
    twice first, next;

    typedef const float *lane;
    typedef int64_t step;
    bool along_k() const {
        return true;
    }
    RO_DEVICE lane lane_of(const part &p, int64_t i) const {
        return weights + i * all + p.product * width.divisor;
    }
    RO_DEVICE step step_of(const part &, int64_t k) const {
        const int64_t number = width.quotient(k), p = taps_w.quotient(number);
        const int64_t q = number - p * taps_w.divisor;
        const int64_t tap = (first.h + p * next.h) * kernel_w + first.w + q * next.w;
        return tap * channels * all + (k - number * width.divisor);
    }
    RO_DEVICE static const float *element(lane l, step s) {
        return l + s;
    }
};

/* ---- where results are stored ---- */

struct rows_place {
    int64_t first, outer, inner, row;

    RO_DEVICE int64_t of(const part &p, int64_t i) const {
        return first + p.outer * outer + p.inner * inner + i * row;
    }
};

/* Results of positions: spread.h rows or spread.w pixels apart, from pixel `first` on. */
struct pixels_place {
    ro_divider count_h, count_w;
    twice first, spread, size;
    int64_t pixel, width; /* channels of a pixel, and of a group */

    RO_DEVICE int64_t of(const part &p, int64_t i) const {
        const int64_t line = count_w.quotient(i), n = count_h.quotient(line);
        const int64_t h = first.h + (line - n * count_h.divisor) * spread.h;
        const int64_t w = first.w + (i - line * count_w.divisor) * spread.w;
        return ((n * size.h + h) * size.w + w) * pixel + p.product * width;
    }
};

/* ---- partial sums ---- */

struct partials {
    real *sum;         /* [pieces, products, m, n] */
    double *row, *col; /* sums of squares: [pieces, products, m], [pieces, products, n] */
};

/* The steps of k that any of rows [row, row + rows) admits. */
struct range {
    int64_t from, to;
};
RO_DEVICE range admitted(const plan &p, const part &at, int64_t row, int64_t rows) {
    const int64_t shifted = row + p.mask_first + p.mask_step * at.inner;
    if (p.mask == RO_MASK_NONE)
        return {0, p.k};
    const bool from_row = p.mask == RO_MASK_FROM_ROW;
    const int64_t from = from_row ? shifted : shifted - p.window + 1;
    const int64_t to = from_row ? shifted + rows - 1 + p.window : shifted + rows;
    return {from > 0 ? from : 0, to < 0 ? 0 : to < p.k ? to : p.k};
}

RO_DEVICE bool is_finite(real x) {
    return x - x == 0;
}

/* Returns the sum of squares of a line of a tile, without numbers that are not finite: a result
 * that involves these is not finite either. */
RO_DEVICE double squares(const real *tile, int i) {
    double sum = 0;
#pragma unroll 4
    for (int k = 0; k < STEP; k++) {
        const real x = tile[k * LINE + i];
        sum = is_finite(x) ? __builtin_fma((double)x, (double)x, sum) : sum;
    }
    return sum;
}

/* Stands for an absent element where 0 would not do, because b is not finite: a NaN that no element
 * has. */
RO_DEVICE real absent() {
    return real_of(sizeof(real) == 4 ? (real_word)0x7fc5a5a5 : (real_word)0x7ff8000000000001);
}

RO_DEVICE real number_at(const float *x) {
    return (real)(sizeof(real) == 4 ? ro_canon(*x) : *x);
}

/* Adds one step's terms; if `exact`, only those that are not absent. */
template <bool exact>
RO_DEVICE void add_step(const real *left, const real *right, real sum[EACH][EACH]) {
    real x[EACH], y[EACH];
#pragma unroll
    for (int u = 0; u < EACH; u++) {
        x[u] = left[16 * u];
        y[u] = right[16 * u];
    }
#pragma unroll
    for (int r = 0; r < EACH; r++)
        if (!exact || word_of(x[r]) != word_of(absent()))
#pragma unroll
            for (int c = 0; c < EACH; c++)
                sum[r][c] = free_mul_add(x[r], y[c], sum[r][c], 1);
}

template <class A, class B>
__global__ void __launch_bounds__(TILE_THREADS, 1)
    tiles_kernel(plan p, A a, bool a_along_k, B b, bool b_along_k, ro_divider across,
                 ro_divider down, ro_divider pieces, partials out) {
    RO_SMEM(real, left);
    real *right = left + STEP * LINE;
    const int t = threadIdx.x, low = t % 16, high = t / 16;
    const int64_t tile = across.quotient(blockIdx.x), piece_tile = down.quotient(tile);
    const int64_t col0 = (blockIdx.x - tile * across.divisor) * TILE;
    const int64_t row0 = (tile - piece_tile * down.divisor) * TILE;
    const int64_t number = pieces.quotient(piece_tile);
    const int64_t piece = piece_tile - number * pieces.divisor;
    const part at(p, number);
    range k = admitted(p, at, row0, TILE);
    const int64_t end = (piece + 1) * p.terms;
    k.to = k.to < end ? k.to : end;
    k.from = k.from > piece * p.terms ? k.from / STEP * STEP : piece * p.terms;
    /* This thread copies, for each operand, four lanes that are 16 apart, at one step. */
    const int a_k = a_along_k ? low : high, a_i = a_along_k ? high : low;
    const int b_k = b_along_k ? low : high, b_i = b_along_k ? high : low;
    typename A::lane a_lane[EACH];
    typename B::lane b_lane[EACH];
#pragma unroll
    for (int u = 0; u < EACH; u++) {
        const int64_t row = row0 + a_i + 16 * u, col = col0 + b_i + 16 * u;
        a_lane[u] = a.lane_of(at, row < p.m ? row : 0);
        b_lane[u] = b.lane_of(at, col < p.n ? col : 0);
    }
    real sum[EACH][EACH] = {};
    double square = 0;
    for (int64_t k0 = k.from; k0 < k.to; k0 += STEP) {
        bool infinite = false;
        unsigned gone = 0;
        const bool a_in = k0 + a_k < k.to, b_in = k0 + b_k < k.to;
        const auto a_step = a.step_of(at, a_in ? k0 + a_k : k0);
        const auto b_step = b.step_of(at, b_in ? k0 + b_k : k0);
#pragma unroll
        for (int u = 0; u < EACH; u++) {
            const int64_t row = row0 + a_i + 16 * u, shifted = row + p.mask_first;
            const float *x = a_in && row < p.m ? a.element(a_lane[u], a_step) : nullptr;
            if (p.mask != RO_MASK_NONE) {
                const int64_t edge = shifted + p.mask_step * at.inner;
                const int64_t back =
                    p.mask == RO_MASK_UPTO_ROW ? edge - (k0 + a_k) : k0 + a_k - edge;
                x = back >= 0 && back < p.window ? x : nullptr;
            }
            const bool b_here = b_in && col0 + b_i + 16 * u < p.n;
            const real y = b_here ? number_at(b.element(b_lane[u], b_step)) : 0;
            left[a_k * LINE + a_i + 16 * u] = x ? number_at(x) : 0;
            gone |= x ? 0 : 1u << u;
            right[b_k * LINE + b_i + 16 * u] = y;
            infinite = infinite || !is_finite(y);
        }
        if (__syncthreads_or(infinite && p.absent)) {
#pragma unroll
            for (int u = 0; u < EACH; u++)
                if (gone >> u & 1)
                    left[a_k * LINE + a_i + 16 * u] = absent();
            __syncthreads();
#pragma unroll 1
            for (int s = 0; s < STEP; s++)
                add_step<true>(left + s * LINE + high, right + s * LINE + low, sum);
        } else {
#pragma unroll 4
            for (int s = 0; s < STEP; s++)
                add_step<false>(left + s * LINE + high, right + s * LINE + low, sum);
        }
        if (p.norms && t < 2 * TILE)
            square += squares(t < TILE ? left : right, t % TILE);
        __syncthreads();
    }
    const int64_t line = piece * p.products + number;
#pragma unroll
    for (int r = 0; r < EACH; r++)
#pragma unroll
        for (int c = 0; c < EACH; c++) {
            const int64_t row = row0 + high + 16 * r, col = col0 + low + 16 * c;
            if (row < p.m && col < p.n)
                out.sum[(line * p.m + row) * p.n + col] = sum[r][c];
        }
    if (p.norms && t < TILE && col0 == 0 && row0 + t < p.m)
        out.row[line * p.m + row0 + t] = square;
    /* Tiles in different rows may admit different steps, so each has its own norms of columns. */
    if (p.norms && t >= TILE && t < 2 * TILE && col0 + t - TILE < p.n)
        out.col[(line * p.down + row0 / TILE) * p.n + col0 + t - TILE] = square;
}

/* |sum - exact| <= K u |a| |b| (Higham, 2002, section 3.1: any order), plus u for alpha. Even if
 * alpha is 0, the sign of the result may depend on the order: SPEC 14.3. */
template <class P>
__global__ void __launch_bounds__(FREE_THREADS, 1)
    finish_kernel(values out, plan p, ro_divider columns, ro_divider rows, partials in, P place) {
    const int64_t i = (int64_t)blockIdx.x * FREE_THREADS + threadIdx.x;
    const int64_t all = p.products * p.m * p.n;
    if (i >= all)
        return;
    const int64_t line = columns.quotient(i), col = i - line * p.n;
    const int64_t number = rows.quotient(line), row = line - number * p.m;
    real sum = 0;
    double row_square = 0, col_square = 0;
    for (int64_t piece = 0; piece < p.pieces; piece++) {
        sum = sum + in.sum[piece * all + i];
        if (!p.norms)
            continue;
        const int64_t product = piece * p.products + number;
        row_square += in.row[product * p.m + row];
        col_square += in.col[(product * p.down + row / TILE) * p.n + col];
    }
    const double length = __builtin_sqrt(row_square) * __builtin_sqrt(col_square);
    const double of_sum = ((double)p.k + 2) * 0x1p-53 * length;
    approx y = {sum * p.alpha, of_sum * __builtin_fabs((double)p.alpha)};
    if (p.alpha == 0 && __builtin_fabs((double)sum) <= 2 * free_bound(of_sum))
        y.e = 0x1p-1000;
    out.store(place.of(part(p, number), row) + col, y);
}

/* Cuts k into pieces of whole steps; only the last one may have fewer terms. */
static void cut(plan *p) {
    p->down = ceil_div(p->m, TILE), p->across = ceil_div(p->n, TILE);
    const int64_t blocks = p->products * p->down * p->across;
    const int64_t wanted = ceil_div(BLOCKS_WANTED, blocks), most = ceil_div(p->k, PIECE_TERMS);
    p->pieces = wanted < most ? wanted : most;
    p->pieces = p->pieces > 0 ? p->pieces : 1;
    p->terms = ceil_div(ceil_div(p->k, p->pieces), STEP) * STEP;
    p->pieces = p->k > 0 ? ceil_div(p->k, p->terms) : 1;
}

template <class A, class B, class P>
static ro_status multiply(ro_cuda *d, const values &out, plan p, const A &a, const B &b,
                          const P &place, const char *what) {
    if (p.products * p.m * p.n == 0)
        return RO_OK;
    p.norms = out.bound != nullptr;
    cut(&p);
    const int64_t lines = p.pieces * p.products, sums = lines * p.m * p.n;
    const int64_t norms = p.norms ? lines * (p.m + p.down * p.n) : 0;
    void *memory;
    ro_status status =
        ro_cuda_alloc(d, (size_t)norms * sizeof(double) + (size_t)sums * sizeof(real), &memory);
    if (status != RO_OK)
        return status;
    double *row = static_cast<double *>(memory), *col = row + lines * p.m;
    const partials parts = {reinterpret_cast<real *>(row + norms), row, col};
    const ro_divider across(p.across), down(p.down), pieces(p.pieces), columns(p.n), rows(p.m);
    const bool a_along_k = a.along_k(), b_along_k = b.along_k();
    RO_LAUNCH((tiles_kernel<A, B>), ro_grid(lines * p.down * p.across), dim3(TILE_THREADS),
              2 * STEP * LINE * sizeof(real), d->stream, p, a, a_along_k, b, b_along_k, across,
              down, pieces, parts);
    RO_LAUNCH((finish_kernel<P>), ro_grid(ceil_div(p.products * p.m * p.n, FREE_THREADS)),
              dim3(FREE_THREADS), 0, d->stream, out, p, columns, rows, parts, place);
    status = ro_cuda_launched(d, what);
    ro_cuda_free(d, memory);
    return status;
}

static plan plan_of(int64_t products, int64_t m, int64_t n, int64_t k, int64_t inner) {
    return {products, m, n, k, ro_divider(inner), 0, RO_MASK_NONE, 0, 0, INT64_MAX / 2, 1, 0,
            0,        0, 0, 0};
}

/* ---- matmul and attn_av ---- */

static ro_status matmul(ro_cuda *d, const ro_call *call, const void *const *in, const values &out) {
    const ro_matmul v = ro_matmul_of(call);
    plan p = plan_of(v.batch, v.m, v.n, v.k, 1);
    p.alpha = (real)v.alpha;
    p.mask = v.mask;
    p.window = v.window ? v.window : p.window;
    p.absent = v.mask != RO_MASK_NONE;
    const strided a = {f32(in[0]), v.trans_a ? 1 : v.k, v.trans_a ? v.m : 1, v.m * v.k, 0};
    const strided b = {f32(in[1]), v.trans_b ? v.k : 1, v.trans_b ? 1 : v.n, v.k * v.n, 0};
    return multiply(d, out, p, a, b, rows_place{0, v.m * v.n, 0, v.n}, "matmul");
}
RO_CUDA_FREE(matmul, matmul)

/* Multiplies key blocks [first, first + count), of `terms` keys each. */
static ro_status multiply_blocks(ro_cuda *d, const ro_call *call, const void *const *in,
                                 const values &out, int64_t first, int64_t count, int64_t terms) {
    const ro_shape *e = &call->input[0], *y = &call->output;
    const int64_t keys = e->dim[e->ndim - 1], queries = e->dim[e->ndim - 2];
    const int64_t width = y->dim[y->ndim - 1], blocks = y->dim[y->ndim - 2];
    const int64_t heads = ro_rows_of(e) / queries, key = first * RO_ATTN_BLOCK;
    plan p = plan_of(heads * count, queries, width, terms, count);
    if (call->attr[RO_MASKED_CAUSAL]) {
        p.absent = 1, p.mask = RO_MASK_UPTO_ROW;
        p.window = call->attr[RO_ATTN_AV_WINDOW] ? call->attr[RO_ATTN_AV_WINDOW] : p.window;
        p.mask_first = -key, p.mask_step = -RO_ATTN_BLOCK;
    }
    const strided a = {f32(in[0]) + key, keys, 1, queries * keys, RO_ATTN_BLOCK};
    const strided b = {f32(in[1]) + key * width, 1, width, keys * width, RO_ATTN_BLOCK * width};
    const rows_place place = {first * width, queries * blocks * width, width, blocks * width};
    return multiply(d, out, p, a, b, place, "attn_av");
}

static ro_status attn_av(ro_cuda *d, const ro_call *call, const void *const *in,
                         const values &out) {
    const int64_t keys = width_of(call), whole = keys / RO_ATTN_BLOCK;
    const int64_t rest = keys - whole * RO_ATTN_BLOCK;
    ro_status status = RO_OK;
    if (whole > 0)
        status = multiply_blocks(d, call, in, out, 0, whole, RO_ATTN_BLOCK);
    if (status == RO_OK && rest > 0)
        status = multiply_blocks(d, call, in, out, whole, 1, rest);
    return status;
}
RO_CUDA_FREE(attn_av, attn_av)

/* ---- convolutions ---- */

static twice twice_of(const int64_t v[2]) {
    return {v[0], v[1]};
}

/* Returns the image x with all taps of its kernel. */
static gather windows_of(const ro_conv &v, const float *x) {
    return {x,
            twice_of(v.in),
            twice_of(v.stride),
            {-v.pad[0], -v.pad[1]},
            twice_of(v.dilation),
            v.channels,
            ro_divider(v.depth),
            ro_divider(v.kernel[1]),
            ro_divider(v.out[0]),
            ro_divider(v.out[1])};
}

static int pads(const ro_conv &v) {
    return v.pad[0] > 0 || v.pad[1] > 0;
}

static ro_status conv2d(ro_cuda *d, const ro_call *call, const void *const *in, const values &out) {
    const ro_conv v = ro_conv_of(call);
    const int64_t k = v.kernel[0] * v.kernel[1] * v.depth;
    plan p = plan_of(v.groups, v.batch * v.out[0] * v.out[1], v.width, k, 1);
    p.absent = pads(v);
    const positions a = {windows_of(v, f32(in[0]))};
    const strided b = {f32(in[1]), 1, v.filters, v.width, 0};
    const rows_place place = {0, v.width, 0, v.filters};
    return multiply(d, out, p, a, b, place, "conv2d");
}
RO_CUDA_FREE(conv2d, conv2d)

static ro_status conv2d_dw(ro_cuda *d, const ro_call *call, const void *const *in,
                           const values &out) {
    const ro_conv v = ro_conv_of(call);
    const int64_t m = v.kernel[0] * v.kernel[1] * v.depth;
    plan p = plan_of(v.groups, m, v.width, v.batch * v.out[0] * v.out[1], 1);
    p.absent = pads(v);
    const windows a = {windows_of(v, f32(in[0]))};
    const strided b = {f32(in[1]), 1, v.filters, v.width, 0};
    const rows_place place = {0, v.width, 0, v.filters};
    return multiply(d, out, p, a, b, place, "conv2d_dw");
}
RO_CUDA_FREE(conv2d_dw, conv2d_dw)

/* The taps in one dimension that pixels of remainder r modulo the stride meet: first, first + next,
 * ...; and which window position 0 meets with the first tap, and by how much that changes with the
 * next one. */
struct phase {
    int64_t count, first, next, window, change;
};

static phase phase_of(const ro_conv &v, int d, int64_t r) {
    phase f = {0, 0, 1, 0, 0};
    int64_t tap[2] = {0, 0}, window[2] = {0, 0};
    for (int64_t i = 0; i < v.kernel[d]; i++) {
        const int64_t from = r + v.pad[d] - i * v.dilation[d];
        if (from % v.stride[d] != 0)
            continue;
        if (f.count < 2)
            tap[f.count] = i, window[f.count] = from / v.stride[d];
        f.count++;
    }
    f.first = tap[0], f.window = window[0];
    if (f.count > 1)
        f.next = tap[1] - tap[0], f.change = window[1] - window[0];
    return f;
}

static ro_status multiply_phase(ro_cuda *d, const ro_conv &v, const void *const *in,
                                const values &out, int64_t h, int64_t w) {
    const phase a = phase_of(v, 0, h), b = phase_of(v, 1, w);
    const twice count = {ceil_div(v.in[0] - h, v.stride[0]), ceil_div(v.in[1] - w, v.stride[1])};
    plan p =
        plan_of(v.groups, v.batch * count.h * count.w, v.depth, a.count * b.count * v.width, 1);
    p.absent = 1;
    const positions dy = {{f32(in[0]),
                           twice_of(v.out),
                           {1, 1},
                           {a.window, b.window},
                           {a.change, b.change},
                           v.filters,
                           ro_divider(v.width),
                           ro_divider(b.count),
                           ro_divider(count.h),
                           ro_divider(count.w)}};
    const filters weights = {f32(in[1]),          v.depth,
                             v.filters,           v.kernel[1],
                             ro_divider(v.width), ro_divider(b.count),
                             {a.first, b.first},  {a.next, b.next}};
    const pixels_place place = {
        ro_divider(count.h), ro_divider(count.w), {h, w}, twice_of(v.stride),
        twice_of(v.in),      v.channels,          v.depth};
    return multiply(d, out, p, dy, weights, place, "conv2d_dx");
}

/* Pixels with the same remainders modulo the strides meet the same taps. */
static ro_status conv2d_dx(ro_cuda *d, const ro_call *call, const void *const *in,
                           const values &out) {
    const ro_conv v = ro_conv_of(call);
    ro_status status = RO_OK;
    for (int64_t h = 0; h < v.stride[0] && h < v.in[0]; h++)
        for (int64_t w = 0; w < v.stride[1] && w < v.in[1] && status == RO_OK; w++)
            status = multiply_phase(d, v, in, out, h, w);
    return status;
}
RO_CUDA_FREE(conv2d_dx, conv2d_dx)

} // namespace FREE_SPACE

#endif
