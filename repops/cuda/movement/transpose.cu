/* transpose, SPEC.md section 5. The input is read along its last dimension and the output written
 * along its own, through tiles in shared memory. If the two are the same, rows are copied. */
#include "repops/cuda/cuda.cuh"
#include "repops/op_movement.h"

enum { TILE = 32, ROWS = 8, DIMS = RO_MAX_DIMS };

/* The output's dimensions except the tile's two, last one first, with their strides. */
struct others {
    ro_divider size[DIMS];
    int64_t x_step[DIMS], y_step[DIMS];
    int count;

    others()
        : size{ro_divider(1), ro_divider(1), ro_divider(1), ro_divider(1),
               ro_divider(1), ro_divider(1), ro_divider(1), ro_divider(1)},
          count(0) {
        static_assert(DIMS == 8, "a divider for each dimension: it has no default");
    }

    void add(int64_t n, int64_t x, int64_t y) {
        size[count] = ro_divider(n);
        x_step[count] = x;
        y_step[count++] = y;
    }
    RO_DEVICE void place(int64_t i, int64_t *x, int64_t *y) const {
        *x = *y = 0;
        for (int k = 0; k < count; k++) {
            const int64_t left = size[k].quotient(i), at = i - left * size[k].divisor;
            *x += at * x_step[k];
            *y += at * y_step[k];
            i = left;
        }
    }
};

/* Tiles of dimensions `a` (the input's last one) and `b` (the output's last one): sizes, the
 * input's stride along b, and the output's along a. */
struct tile_plan {
    int64_t a, b, x_step, y_step;
    ro_divider a_tiles, b_tiles;
};

/* The tile in shared memory has one more column, so that a column's elements are on separate
 * banks. */
template <class T>
__global__ void __launch_bounds__(TILE *ROWS)
    transpose_kernel(const T *in, T *out, tile_plan p, others o) {
    RO_SMEM(T, tile);
    int64_t x, y;
    const int64_t line = p.a_tiles.quotient(blockIdx.x), i = p.b_tiles.quotient(line);
    const int64_t a0 = (blockIdx.x - line * p.a_tiles.divisor) * TILE;
    const int64_t b0 = (line - i * p.b_tiles.divisor) * TILE;
    o.place(i, &x, &y);
#pragma unroll
    for (int u = 0; u < TILE; u += ROWS) {
        const int r = (int)threadIdx.y + u;
        const int64_t a = a0 + threadIdx.x, b = b0 + r;
        if (a < p.a && b < p.b)
            tile[r * (TILE + 1) + threadIdx.x] = in[x + b * p.x_step + a];
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < TILE; u += ROWS) {
        const int r = (int)threadIdx.y + u;
        const int64_t a = a0 + r, b = b0 + threadIdx.x;
        if (a < p.a && b < p.b)
            out[y + a * p.y_step + b] = tile[threadIdx.x * (TILE + 1) + r];
    }
}

/* Computes the strides of a tensor's dimensions. */
static void steps_of(const ro_shape *s, int64_t step[DIMS]) {
    int64_t next = 1;
    for (int i = s->ndim - 1; i >= 0; i--) {
        step[i] = next;
        next *= s->dim[i];
    }
}

template <class T>
ro_status tiles(ro_cuda *d, const ro_call *call, const void *in, void *out, int across) {
    const ro_shape *x = &call->input[0], *y = &call->output;
    const int last = y->ndim - 1;
    int64_t x_step[DIMS], y_step[DIMS], blocks = 1;
    others o;
    steps_of(x, x_step);
    steps_of(y, y_step);
    const int64_t a = y->dim[across], b = y->dim[last];
    const tile_plan p = {a,
                         b,
                         x_step[call->attr[RO_TRANSPOSE_D0 + last]],
                         y_step[across],
                         ro_divider(ceil_div(a, TILE)),
                         ro_divider(ceil_div(b, TILE))};
    for (int i = last - 1; i >= 0; i--) {
        if (i == across)
            continue;
        o.add(y->dim[i], x_step[call->attr[RO_TRANSPOSE_D0 + i]], y_step[i]);
        blocks *= y->dim[i];
    }
    RO_LAUNCH(transpose_kernel<T>, ro_grid(blocks * p.a_tiles.divisor * p.b_tiles.divisor),
              dim3(TILE, ROWS), TILE * (TILE + 1) * sizeof(T), d->stream,
              static_cast<const T *>(in), static_cast<T *>(out), p, o);
    return ro_cuda_launched(d, "transpose");
}

/* Copies rows, if the last dimension stays last. */
template <class T> ro_status rows(ro_cuda *d, const ro_call *call, const void *in, void *out) {
    const ro_shape *x = &call->input[0], *y = &call->output;
    const int last = y->ndim - 1;
    int64_t x_step[DIMS], y_step[DIMS];
    others o;
    steps_of(x, x_step);
    steps_of(y, y_step);
    for (int i = last; i >= 0; i--)
        o.add(y->dim[i], x_step[call->attr[RO_TRANSPOSE_D0 + i]], y_step[i]);
    const T *from = static_cast<const T *>(in);
    return map<T>(d, call, out, [=] __device__(int64_t e) {
        int64_t at, same;
        o.place(e, &at, &same);
        return from[at];
    });
}

template <class T>
ro_status transpose_as(ro_cuda *d, const ro_call *call, const void *in, void *out) {
    const int last = call->output.ndim - 1;
    int across = 0; /* the output dimension that is the input's last one */
    while (across < last && call->attr[RO_TRANSPOSE_D0 + across] != last)
        across++;
    return across == last ? rows<T>(d, call, in, out) : tiles<T>(d, call, in, out, across);
}

static ro_status transpose(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    switch (ro_dtype_size(call->output.dtype)) {
    case 4: return transpose_as<uint32_t>(d, call, in[0], out);
    case 2: return transpose_as<uint16_t>(d, call, in[0], out);
    default: return transpose_as<uint8_t>(d, call, in[0], out);
    }
}
RO_CUDA_KERNEL(transpose, transpose)
