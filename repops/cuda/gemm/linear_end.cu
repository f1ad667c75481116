/* Applies bias and activation to a complete product, in one pass. */
#include "repops/cuda/gemm/linear.cuh"

ro_status ro_linear_end(ro_cuda *d, const ro_linear_job *j) {
    const ro_linear_layer *l = &j->layer;
    if (!j->bias && !j->z && l->activation == RO_ACTIVATION_NONE)
        return RO_OK;
    const linear_out out = linear_out::of(j);
    const ro_divider columns(l->out);
    return map<float, 1>(
        d, j->y, l->rows * l->out,
        [=] __device__(int64_t i) {
            const int64_t row = columns.quotient(i);
            return out.element(row, i - row * columns.divisor, out.c[i]);
        },
        "linear");
}
