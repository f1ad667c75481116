/* ro_layer_norm, ro_softmax, ro_log_softmax, the gradients of the latter two, and ro_rms_norm. One
 * launch reads a row and keeps it in registers, where the operators of SPEC.md sections 7.1 and 7.2
 * would read it several times. */
#include "repops/cuda/rows/held_rows.cuh"

/* ---- layer norm ---- */

struct norm_row {
    ro_row_job j;

    template <class R> RO_DEVICE void operator()(const R &row, int64_t r) const {
        const float n = (float)j.cols;
        const auto x = row.hold(row.in(j.x + r * j.cols));
        const float mean = ro_canon(row.sum([](float lane, float v) { return lane + v; }, x) / n);
        const auto add_square = [=](float lane, float v) {
            const float d = v - mean;
            return ro_fma(d, d, lane);
        };
        const float rstd = ro_rstd(row.sum(add_square, x), n, j.eps);
        const auto norm = [=](float v, float gamma, float beta) {
            return ro_fma((v - mean) * rstd, gamma, beta);
        };
        row.store(j.y + r * j.cols, row.of(norm, x, row.in(j.gamma), row.in(j.beta)));
        if (row.once())
            j.statistic[0][r] = mean, j.statistic[1][r] = rstd;
    }
};

struct rms_row {
    ro_row_job j;

    template <class R> RO_DEVICE void operator()(const R &row, int64_t r) const {
        const auto x = row.hold(row.in(j.x + r * j.cols));
        const auto add_square = [](float lane, float v) { return ro_fma(v, v, lane); };
        const float rstd = ro_rstd(row.sum(add_square, x), (float)j.cols, j.eps);
        const auto norm = [=](float v, float gamma) { return (v * rstd) * gamma; };
        row.store(j.y + r * j.cols, row.of(norm, x, row.in(j.gamma)));
        if (row.once())
            j.statistic[0][r] = rstd;
    }
};
/* ---- softmax and its logarithm ---- */

template <bool logarithm> struct softmax_row {
    ro_row_job j;

    template <class R> RO_DEVICE void operator()(const R &row, int64_t r) const {
        float *y = j.y + r * j.cols;
        const auto x = row.hold(row.in(j.x + r * j.cols));
        const float m = row.largest(x);
        const auto e = row.hold(row.of([=](float v) { return ro_exp(v - m); }, x));
        const float l = row.sum([](float lane, float v) { return lane + v; }, e);
        if constexpr (logarithm) {
            const float log_l = ro_log(l);
            row.store(y, row.of([=](float v) { return (v - m) - log_l; }, x));
        } else {
            const float scale = 1.0f / l;
            row.store(y, row.of([=](float v) { return v * scale; }, e));
        }
        if (row.once())
            j.statistic[0][r] = m, j.statistic[1][r] = l;
    }
};

template <bool logarithm> struct softmax_row_grad {
    ro_row_grad_job j;

    template <class R> RO_DEVICE void operator()(const R &row, int64_t r) const {
        const auto y = row.hold(row.in(j.x + r * j.cols));
        const auto dy = row.hold(row.in(j.dy + r * j.cols));
        const auto add = [](float lane, float d, float v) {
            return logarithm ? lane + d : ro_fma(d, v, lane);
        };
        const float s = row.sum(add, dy, y);
        const auto dx = [=](float d, float v) {
            return logarithm ? ro_fma(-ro_exp(v), s, d) : v * (d - s);
        };
        row.store(j.dx + r * j.cols, row.of(dx, dy, y));
    }
};
/* ---- the functions ---- */

/* Runs RMS norm if there is no beta. */
ro_status ro_cuda_layer_norm(ro_cuda *d, const ro_row_job *j) {
    return j->beta ? run_rows(d, "layer_norm", *j, norm_row{*j})
                   : run_rows(d, "rms_norm", *j, rms_row{*j});
}

ro_status ro_cuda_softmax(ro_cuda *d, const ro_row_job *j) {
    return run_rows(d, "softmax", *j, softmax_row<false>{*j});
}

ro_status ro_cuda_softmax_backward(ro_cuda *d, const ro_row_grad_job *j) {
    return run_rows(d, "softmax_backward", *j, softmax_row_grad<false>{*j});
}

ro_status ro_cuda_log_softmax(ro_cuda *d, const ro_row_job *j) {
    return run_rows(d, "log_softmax", *j, softmax_row<true>{*j});
}

ro_status ro_cuda_log_softmax_backward(ro_cuda *d, const ro_row_grad_job *j) {
    return run_rows(d, "log_softmax_backward", *j, softmax_row_grad<true>{*j});
}
