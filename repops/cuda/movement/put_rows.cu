/* put_rows, SPEC.md section 5: rows that replace others. If the output is x, only these are
 * written. */
#include "repops/cuda/cuda.cuh"
#include "repops/op_movement.h"

enum { PUT_THREADS = 256, PUT_EACH = 4 };

/* Moves elements of the rows. Rows whose place is outside x are dropped. */
template <class T>
__global__ void __launch_bounds__(PUT_THREADS)
    put_kernel(T *out, const T *rows, const int32_t *at, int64_t count, int64_t n, ro_divider inner,
               ro_divider length) {
    const int64_t first = (int64_t)blockIdx.x * (PUT_THREADS * PUT_EACH) + threadIdx.x;
    const int64_t start = *at;
#pragma unroll
    for (int u = 0; u < PUT_EACH; u++) {
        const int64_t i = first + u * PUT_THREADS, run = inner.quotient(i);
        const int64_t outer = length.quotient(run), place = run - outer * length.divisor + start;
        if (i < count && place >= 0 && place < n)
            out[(outer * n + place) * inner.divisor + (i - run * inner.divisor)] = rows[i];
    }
}

template <class T>
static ro_status put_as(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const int64_t axis = call->attr[RO_PUT_ROWS_AXIS], count = in_numel(call, 1);
    const ro_axis x = ro_axis_of(&call->input[0], axis);
    const ro_divider inner(x.inner), length(call->input[1].dim[axis]);
    if (count == 0)
        return RO_OK;
    RO_LAUNCH((put_kernel<T>), ro_grid(ceil_div(count, PUT_THREADS * PUT_EACH)), dim3(PUT_THREADS),
              0, d->stream, static_cast<T *>(out), static_cast<const T *>(in[1]),
              static_cast<const int32_t *>(in[2]), count, x.n, inner, length);
    return ro_cuda_launched(d, "put_rows");
}

static ro_status put_rows(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const size_t element = ro_dtype_size(call->output.dtype);
    const size_t size = (size_t)ro_shape_numel(&call->output) * element;
    ro_status status = RO_OK;
    if (out != in[0])
        status = ro_cuda_check(
            d, cudaMemcpyAsync(out, in[0], size, cudaMemcpyDeviceToDevice, d->stream), "put_rows");
    if (status != RO_OK)
        return status;
    switch (element) {
    case 4: return put_as<uint32_t>(d, call, in, out);
    case 2: return put_as<uint16_t>(d, call, in, out);
    default: return put_as<uint8_t>(d, call, in, out);
    }
}
RO_CUDA_KERNEL(put_rows, put_rows)
