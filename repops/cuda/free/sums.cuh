/* Operators that are sums, but no matrix products: over rows, columns, windows, blocks and
 * positions, SPEC.md sections 3.2 to 3.4, 8, 12.2 and 12.3. */
#ifndef REPOPS_CUDA_FREE_SUMS_CUH
#define REPOPS_CUDA_FREE_SUMS_CUH

#include "repops/cuda/rows/columns.cuh"
#include "repops/cuda/movement/embedding.cuh"
#include "repops/cuda/free/free.cuh"
#include "repops/cuda/image/pooling.cuh"
#include "repops/free/probabilities.h"
#include "repops/op_reduce.h"
#include "repops/op_movement.h"
#include "repops/op_image.h"
#include "repops/op_attention.h"

namespace FREE_SPACE {

/* ---- blocks of a row, one warp each ---- */

/* F: at(block, i) returns the product that place i of the block adds. */
template <class F>
__global__ void __launch_bounds__(ROW_THREADS, 1)
    rows_kernel(values out, row_view view, double roundings, F f) {
    const int64_t item = (int64_t)blockIdx.x * ROW_WARPS + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (item >= view.items)
        return;
    const row_block b = view.of(item);
    const int mine = b.count > lane ? (b.count - lane + 31) / 32 : 0;
    partial sum = sum_of(mine, [&](int64_t k) { return f.at(b, lane + 32 * (int)k); });
#pragma unroll
    for (int w = 16; w > 0; w /= 2) {
        const real other = __shfl_xor_sync(RO_ALL_LANES, sum.sum, w);
        const double size = __shfl_xor_sync(RO_ALL_LANES, sum.size, w);
        sum.add(partial{other, size});
    }
    if (lane == 0)
        out.store(item, sum.value(b.count, roundings));
}

template <class F>
static ro_status rows(ro_cuda *d, const ro_call *call, const values &out, double roundings,
                      const F &f) {
    const row_view view(ro_shape_numel(&call->output), call->attr[RO_ROWS_COLS],
                        call->attr[RO_ROWS_BLOCK], 0);
    RO_LAUNCH((rows_kernel<F>), ro_grid(ceil_div(view.items, ROW_WARPS)), dim3(ROW_THREADS), 0,
              d->stream, out, view, roundings, f);
    return ro_cuda_launched(d, ro_op_describe(call->op)->name);
}

struct row_terms {
    const float *x;

    RO_DEVICE product at(const row_block &b, int i) const {
        return {(real)x[b.e + i], 1};
    }
};

struct dot_terms {
    const float *a, *b;
    ro_divider period;

    RO_DEVICE product at(const row_block &at, int i) const {
        return {(real)a[at.e + i], (real)b[period.remainder(at.e + i)]};
    }
};

struct sqdev_terms {
    const float *x, *mean;

    RO_DEVICE product at(const row_block &b, int i) const {
        const real deviation = (real)x[b.e + i] - (real)mean[b.row];
        return {deviation, deviation};
    }
};

/* An argument's rounding changes the result by |argument| roundings. */
struct expsum_terms {
    const float *x, *m;

    RO_DEVICE product at(const row_block &b, int i) const {
        const real v = (real)x[b.e + i] - (real)m[b.row];
        return {free_exp(v, how()), 1, ap_abs(v) / (real)(b.count + 1)};
    }
};

/* mean: NULL for RMS norm. */
struct norm_terms {
    const float *dy, *gamma, *x, *mean, *rstd;

    RO_DEVICE product at(const row_block &b, int i) const {
        const real m = mean ? (real)mean[b.row] : 0;
        return {(real)dy[b.e + i] * (real)gamma[b.at + i],
                ((real)x[b.e + i] - m) * (real)rstd[b.row]};
    }
};

static ro_status reduce_sum(ro_cuda *d, const ro_call *call, const void *const *in,
                            const values &out) {
    return rows(d, call, out, 0, row_terms{f32(in[0])});
}
RO_CUDA_FREE(reduce_sum, reduce_sum)

static ro_status reduce_dot(ro_cuda *d, const ro_call *call, const void *const *in,
                            const values &out) {
    return rows(d, call, out, 0, dot_terms{f32(in[0]), f32(in[1]), ro_divider(in_numel(call, 1))});
}
RO_CUDA_FREE(reduce_dot, reduce_dot)

static ro_status reduce_sqdev(ro_cuda *d, const ro_call *call, const void *const *in,
                              const values &out) {
    return rows(d, call, out, 2, sqdev_terms{f32(in[0]), f32(in[1])});
}
RO_CUDA_FREE(reduce_sqdev, reduce_sqdev)

static ro_status reduce_expsum(ro_cuda *d, const ro_call *call, const void *const *in,
                               const values &out) {
    return rows(d, call, out, RO_EXP_ROUNDINGS, expsum_terms{f32(in[0]), f32(in[1])});
}
RO_CUDA_FREE(reduce_expsum, reduce_expsum)

static ro_status reduce_ln_gx(ro_cuda *d, const ro_call *call, const void *const *in,
                              const values &out) {
    return rows(d, call, out, 2,
                norm_terms{f32(in[0]), f32(in[1]), f32(in[2]), f32(in[3]), f32(in[4])});
}
RO_CUDA_FREE(reduce_ln_gx, reduce_ln_gx)

static ro_status reduce_rms_gx(ro_cuda *d, const ro_call *call, const void *const *in,
                               const values &out) {
    return rows(d, call, out, 1,
                norm_terms{f32(in[0]), f32(in[1]), f32(in[2]), nullptr, f32(in[3])});
}
RO_CUDA_FREE(reduce_rms_gx, reduce_rms_gx)

/* ---- groups of 64 rows, a column each ---- */

static column_view columns_of(const ro_call *call) {
    const int64_t cols = call->attr[RO_COLUMNS_COLS];
    return column_view({1, in_numel(call, 0) / cols, cols});
}

static ro_status sum_columns(ro_cuda *d, const ro_call *call, const float *x,
                             const column_view &view, const values &out) {
    return elements(d, call, out, [=] __device__(int64_t i) {
        const column_group g = view.of(i);
        return sum_of(g.rows,
                      [&](int64_t k) {
                          return product{(real)x[g.e + k * view.inner.divisor], 1};
                      })
            .value(g.rows, 0);
    });
}

static ro_status sum_rows(ro_cuda *d, const ro_call *call, const void *const *in,
                          const values &out) {
    return sum_columns(d, call, f32(in[0]), columns_of(call), out);
}
RO_CUDA_FREE(sum_rows, sum_rows)

static ro_status sum_axis(ro_cuda *d, const ro_call *call, const void *const *in,
                          const values &out) {
    const column_view view(ro_axis_of(&call->input[0], call->attr[RO_SUM_AXIS_AXIS]));
    return sum_columns(d, call, f32(in[0]), view, out);
}
RO_CUDA_FREE(sum_axis, sum_axis)

/* mean and rstd have one number per row; mean is NULL for RMS norm. */
static ro_status sum_dgamma(ro_cuda *d, const ro_call *call, const float *dy, const float *x,
                            const float *mean, const float *rstd, const values &out) {
    const column_view view = columns_of(call);
    const double roundings = mean ? 3 : 2;
    return elements(d, call, out, [=] __device__(int64_t i) {
        const column_group g = view.of(i);
        const auto term = [&](int64_t k) {
            const int64_t e = g.e + k * view.inner.divisor, row = g.row + k;
            const real m = mean ? (real)mean[row] : 0;
            return product{(real)dy[e], ((real)x[e] - m) * (real)rstd[row]};
        };
        return sum_of(g.rows, term).value(g.rows, roundings);
    });
}

static ro_status ln_dgamma(ro_cuda *d, const ro_call *call, const void *const *in,
                           const values &out) {
    return sum_dgamma(d, call, f32(in[0]), f32(in[1]), f32(in[2]), f32(in[3]), out);
}
RO_CUDA_FREE(ln_dgamma, ln_dgamma)

static ro_status rms_dgamma(ro_cuda *d, const ro_call *call, const void *const *in,
                            const values &out) {
    return sum_dgamma(d, call, f32(in[0]), f32(in[1]), nullptr, f32(in[2]), out);
}
RO_CUDA_FREE(rms_dgamma, rms_dgamma)

/* ---- batch norm ---- */

static ro_status bn_mean(ro_cuda *d, const ro_call *call, const void *const *in,
                         const values &out) {
    const float *x = f32(in[0]);
    const column_view view = columns_of(call);
    return elements(d, call, out, [=] __device__(int64_t i) {
        const column_group g = view.of(i);
        const auto term = [&](int64_t k) {
            return product{(real)x[g.e + k * view.inner.divisor], 1};
        };
        return ap_div_exact(sum_of(g.rows, term).value(g.rows, 0), (real)g.rows);
    });
}
RO_CUDA_FREE(bn_mean, bn_mean)

static ro_status bn_sqdev(ro_cuda *d, const ro_call *call, const void *const *in,
                          const values &out) {
    const float *x = f32(in[0]), *mean = f32(in[1]);
    const column_view view = columns_of(call);
    return elements(d, call, out, [=] __device__(int64_t i) {
        const column_group g = view.of(i);
        const auto term = [&](int64_t k) {
            const real deviation = (real)x[g.e + k * view.inner.divisor] - (real)mean[i];
            return product{deviation, deviation};
        };
        return sum_of(g.rows, term).value(g.rows, 3);
    });
}
RO_CUDA_FREE(bn_sqdev, bn_sqdev)

static ro_status bn_dgamma(ro_cuda *d, const ro_call *call, const void *const *in,
                           const values &out) {
    const float *dy = f32(in[0]), *x = f32(in[1]), *mean = f32(in[2]), *rstd = f32(in[3]);
    const column_view view = columns_of(call);
    return elements(d, call, out, [=] __device__(int64_t i) {
        const column_group g = view.of(i);
        const int64_t c = view.inner.remainder(i);
        const auto term = [&](int64_t k) {
            const int64_t e = g.e + k * view.inner.divisor;
            return product{(real)dy[e], ((real)x[e] - (real)mean[c]) * (real)rstd[c]};
        };
        return sum_of(g.rows, term).value(g.rows, 3);
    });
}
RO_CUDA_FREE(bn_dgamma, bn_dgamma)

/* Over the reals, the walk of SPEC 12.3 gives the mean M of all rows, and the sum of s_i + b_i (m_i
 * - M)^2, where entry i stands for b_i rows. */
struct entries {
    const float *mean;
    column_view view;
    int64_t rows, per;

    RO_DEVICE real weight(int64_t entry) const {
        const int64_t left = rows - entry * per;
        return (real)(left < per ? left : per);
    }
    /* Returns how many rows a group stands for. */
    RO_DEVICE real all(const column_group &g) const {
        const int64_t left = rows - g.row * per;
        return (real)(left < g.rows * per ? left : g.rows * per);
    }
    RO_DEVICE real of(const column_group &g, int64_t k) const {
        return (real)mean[g.e + k * view.inner.divisor];
    }
    /* A single entry is its own mean. */
    RO_DEVICE approx merged(const column_group &g) const {
        if (g.rows == 1)
            return ap_exact(of(g, 0));
        const partial sum = sum_of(g.rows, [&](int64_t k) {
            return product{weight(g.row + k), of(g, k)};
        });
        return ap_div_exact(sum.value(g.rows, 1), all(g));
    }
};

static ro_status bn_merge_mean(ro_cuda *d, const ro_call *call, const void *const *in,
                               const values &out) {
    const entries x = {f32(in[0]), columns_of(call), call->attr[RO_MERGE_ROWS],
                       call->attr[RO_MERGE_PER]};
    return elements(d, call, out, [=] __device__(int64_t i) { return x.merged(x.view.of(i)); });
}
RO_CUDA_FREE(bn_merge_mean, bn_merge_mean)

/* If M is off by d, the sum of b_i (m_i - M)^2 grows by (sum of b_i) d^2: the rest cancels. */
static ro_status bn_merge_sqdev(ro_cuda *d, const ro_call *call, const void *const *in,
                                const values &out) {
    const entries x = {f32(in[0]), columns_of(call), call->attr[RO_MERGE_ROWS],
                       call->attr[RO_MERGE_PER]};
    const float *s = f32(in[1]);
    return elements(d, call, out, [=] __device__(int64_t i) {
        const column_group g = x.view.of(i);
        const approx mean = x.merged(g);
        const auto deviation = [&](int64_t k) {
            return product{(real)s[g.e + k * x.view.inner.divisor], 1};
        };
        const auto square = [&](int64_t k) {
            const real delta = g.rows == 1 ? 0 : x.of(g, k) - mean.v;
            return product{x.weight(g.row + k) * delta, delta};
        };
        partial sum = sum_of(g.rows, deviation);
        sum.add(sum_of(g.rows, square));
        approx r = sum.value(2 * g.rows, 4);
        r.e += (double)x.all(g) * ap_error(mean) * ap_error(mean);
        return r;
    });
}
RO_CUDA_FREE(bn_merge_sqdev, bn_merge_sqdev)

/* ---- attention over blocks of keys: a sum with weights exp(mc - max) ---- */

struct weights {
    const float *mc; /* maxima of the blocks of one query */
    int64_t blocks, count = 0;
    float greatest = 0;

    RO_DEVICE weights(const float *of, int64_t n) : mc(of), blocks(n) {
        for (int64_t c = 0; c < blocks; c++)
            if (counts(c)) {
                greatest = count == 0 ? mc[c] : ro_max(greatest, mc[c]);
                count++;
            }
    }
    RO_DEVICE bool counts(int64_t c) const {
        return ro_to_bits(mc[c]) != RO_MINUS_INFINITY_BITS;
    }
    /* Returns the argument of the exponential for a block that counts. */
    RO_DEVICE real distance(int64_t c) const {
        return count == 1 ? 0 : (real)mc[c] - (real)greatest;
    }
};

static ro_status attn_l(ro_cuda *d, const ro_call *call, const void *const *in, const values &out) {
    const float *mc = f32(in[0]), *lc = f32(in[1]);
    const int64_t blocks = width_of(call);
    return elements(d, call, out, [=] __device__(int64_t row) {
        const weights w(mc + row * blocks, blocks);
        partial sum;
        for (int64_t c = 0; c < blocks; c++) {
            if (!w.counts(c))
                continue;
            const real distance = w.distance(c);
            sum.add(product{free_exp(distance, how()), (real)lc[row * blocks + c],
                            ap_abs(distance) / (real)w.count});
        }
        return sum.value(w.count, RO_EXP_ROUNDINGS + 1);
    });
}
RO_CUDA_FREE(attn_l, attn_l)

static ro_status attn_out(ro_cuda *d, const ro_call *call, const void *const *in,
                          const values &out) {
    const float *mc = f32(in[0]), *ac = f32(in[1]), *l = f32(in[2]);
    const int64_t blocks = width_of(call), size = call->input[1].dim[call->input[1].ndim - 1];
    const ro_divider width(size);
    return elements(d, call, out, [=] __device__(int64_t i) {
        const int64_t row = width.quotient(i), col = i - row * width.divisor;
        const weights w(mc + row * blocks, blocks);
        const float *from = ac + row * blocks * width.divisor + col;
        partial sum;
        double worst = 0; /* largest |mc - max| of a weight above 0 */
        for (int64_t c = 0; c < blocks; c++) {
            if (!w.counts(c))
                continue;
            const real distance = w.distance(c), weight = free_exp(distance, how());
            worst = weight > 0 && ap_size(distance) > worst ? ap_size(distance) : worst;
            sum.add(product{weight, (real)from[c * width.divisor]});
        }
        const approx y = sum.value(w.count, RO_EXP_ROUNDINGS + 1 + worst);
        const approx over = inverse(at(l, row));
        return w.count ? ap_either_sign(ap_mul(y, over), y, over) : ap_exact(0);
    });
}
RO_CUDA_FREE(attn_out, attn_out)

/* The output has the shape [..., T, key blocks, D]. */
static ro_status attn_av_at(ro_cuda *d, const ro_call *call, const void *const *in,
                            const values &out) {
    const float *e = f32(in[0]), *v = f32(in[1]);
    const scores view(call, in[2]);
    const int64_t keys = view.keys.divisor;
    const ro_divider width(call->output.dim[call->output.ndim - 1]);
    const ro_divider blocks(ceil_div(keys, RO_ATTN_BLOCK));
    return elements(d, call, out, [=] __device__(int64_t i) {
        const int64_t of_block = width.quotient(i), row = blocks.quotient(of_block);
        const int64_t block = (of_block - row * blocks.divisor) * RO_ATTN_BLOCK;
        const int64_t at = view.place_of(row), oldest = view.window ? at - view.window + 1 : 0;
        const int64_t from = block > oldest ? block : oldest;
        const int64_t all = block + RO_ATTN_BLOCK < keys ? block + RO_ATTN_BLOCK : keys;
        const int64_t count = (at + 1 < all ? at + 1 : all) - from;
        const float *weight = e + row * keys + from;
        const float *value = v + (view.queries.quotient(row) * keys + from) * width.divisor +
                             (i - of_block * width.divisor);
        return sum_of(count > 0 ? count : 0,
                      [&](int64_t k) {
                          return product{(real)weight[k], (real)value[k * width.divisor]};
                      })
            .value(count > 0 ? count : 0, 0);
    });
}
RO_CUDA_FREE(attn_av_at, attn_av_at)

/* Treats the output as [key-value heads, rows and columns of a head]. */
static ro_status repeat_heads_grad(ro_cuda *d, const ro_call *call, const void *const *in,
                                   const values &out) {
    const float *dy = f32(in[0]);
    const int64_t times = call->attr[RO_REPEAT_HEADS_GRAD_TIMES];
    const ro_divider one(call->output.dim[2] * call->output.dim[3]);
    return elements(d, call, out, [=] __device__(int64_t i) {
        const int64_t head = one.quotient(i);
        const float *from = dy + head * times * one.divisor + (i - head * one.divisor);
        return sum_of(times,
                      [&](int64_t k) {
                          return product{(real)from[k * one.divisor], 1};
                      })
            .value(times, 0);
    });
}
RO_CUDA_FREE(repeat_heads_grad, repeat_heads_grad)

/* ---- pooling ---- */

static ro_status avg_pool(ro_cuda *d, const ro_call *call, const void *const *in,
                          const values &out) {
    const float *x = f32(in[0]);
    const ro_pooling v = ro_pooling_of(call);
    const pixels y(v.out, v.channels);
    return elements(d, call, out, [=] __device__(int64_t e) {
        const place p = y.of(e);
        partial sum;
        int64_t n = 0;
        each_tap(v, p, [&](int64_t, int64_t from) {
            sum.add(product{(real)x[from], 1});
            n++;
        });
        return ap_div_exact(sum.value(n, 1), (real)ro_pool_count(&v, p.h, p.w));
    });
}
RO_CUDA_FREE(avg_pool2d, avg_pool)

static ro_status max_pool_grad(ro_cuda *d, const ro_call *call, const void *const *in,
                               const values &out) {
    const float *dy = f32(in[0]);
    const int32_t *index = static_cast<const int32_t *>(in[1]);
    const ro_pooling v = ro_pooling_of(call);
    const pixels x(v.in, v.channels);
    return elements(d, call, out, [=] __device__(int64_t e) {
        partial sum;
        int64_t n = 0;
        each_window(v, x.of(e), [&](int64_t tap, int64_t from, const place &) {
            if (index[from] == tap)
                sum.add(product{(real)dy[from], 1});
            n++;
        });
        return ap_div_exact(sum.value(n, 1), 1);
    });
}
RO_CUDA_FREE(max_pool2d_grad, max_pool_grad)

static ro_status avg_pool_grad(ro_cuda *d, const ro_call *call, const void *const *in,
                               const values &out) {
    const float *dy = f32(in[0]);
    const ro_pooling v = ro_pooling_of(call);
    const pixels x(v.in, v.channels);
    return elements(d, call, out, [=] __device__(int64_t e) {
        partial sum;
        int64_t n = 0;
        each_window(v, x.of(e), [&](int64_t, int64_t from, const place &w) {
            sum.add(product{(real)dy[from] / (real)ro_pool_count(&v, w.h, w.w), 1});
            n++;
        });
        return ap_div_exact(sum.value(n, 1), 1);
    });
}
RO_CUDA_FREE(avg_pool2d_grad, avg_pool_grad)

/* ---- positions that carry one id ---- */

/* Returns the first position in the list whose id is at least `id`. */
RO_DEVICE int64_t first_of(const keyed *list, int64_t count, int64_t id) {
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (list[middle].key < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* dy is [outer, positions, inner], the output [outer, n, inner]. */
static ro_status scatter(ro_cuda *d, const ro_call *call, const void *const *in, const values &out,
                         int64_t axis) {
    const float *dy = f32(in[0]);
    const ro_axis a = ro_axis_of(&call->output, axis);
    const ro_divider cols(a.inner), table(a.n);
    const int64_t positions = in_numel(call, 1);
    ro_sorted_ids ids = {nullptr, 0, nullptr};
    ro_status status = RO_OK;
    if (positions > 0)
        status = ro_cuda_sort_ids(d, static_cast<const int32_t *>(in[1]), positions, a.n, &ids);
    if (status != RO_OK)
        return status;
    const keyed *list = ids.list;
    const int64_t limit = ids.rows;
    status = elements(d, call, out, [=] __device__(int64_t i) {
        const int64_t row = cols.quotient(i), col = i - row * cols.divisor;
        const int64_t outer = table.quotient(row), id = row - outer * table.divisor;
        if (id >= limit)
            return ap_exact(0);
        const int64_t from = first_of(list, positions, id), to = first_of(list, positions, id + 1);
        const float *x = dy + outer * positions * cols.divisor + col;
        const auto term = [&](int64_t k) {
            return product{(real)x[(int64_t)list[from + k].position * cols.divisor], 1};
        };
        return sum_of(to - from, term).value(to - from, 0);
    });
    ro_cuda_free(d, ids.memory);
    return status;
}

static ro_status embedding_grad(ro_cuda *d, const ro_call *call, const void *const *in,
                                const values &out) {
    return scatter(d, call, in, out, 0);
}
RO_CUDA_FREE(embedding_grad, embedding_grad)

static ro_status gather_grad(ro_cuda *d, const ro_call *call, const void *const *in,
                             const values &out) {
    return scatter(d, call, in, out, call->attr[RO_GATHER_GRAD_AXIS]);
}
RO_CUDA_FREE(gather_grad, gather_grad)

} // namespace FREE_SPACE

#endif
