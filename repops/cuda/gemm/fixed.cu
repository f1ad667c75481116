/* matmul_fixed, SPEC.md section 3.5, by 32-bit multiplications: a first version, for every device.
 *
 * A block has SIDE x SIDE elements. For each chunk it loads that many lines of both operands, each
 * warp finds the powers of its lines and turns them into integers where they lie, and each thread
 * adds up an element's products. */
#include "repops/cuda/cuda.cuh"
#include "repops/src/fixed.h"

enum {
    SIDE = 16,
    FIXED_THREADS = SIDE * SIDE,
    FIXED_WARPS = FIXED_THREADS / 32,
    LINE = RO_DOT_CHUNK + 2, /* words of a line: lanes of neighbouring lines meet no bank twice */
    FIXED_SHARED = (2 * SIDE * LINE + 2 * SIDE) * 4,
};
static_assert((int)FIXED_THREADS == (int)RO_DOT_CHUNK, "a thread loads a step of each line");

/* Lines of an operand, one per row or column of the output. */
struct fixed_operand {
    const float *x;
    int64_t line, step, next; /* from a line, a k, a product to the next */
    int64_t lines;
};

struct fixed_product {
    fixed_operand a, b;
    int64_t k;
    int bits;
    float alpha;
    float *c;
};

/* Neighbouring threads load neighbouring elements. What is not there is 0. */
RO_DEVICE void fixed_load(uint32_t *shared, const fixed_operand &o, int64_t product, int64_t first,
                          int64_t k, int64_t steps) {
    const float *x = o.x + product * o.next;
#pragma unroll 4
    for (int u = 0; u < SIDE; u++) {
        const int t = (int)threadIdx.x, line = o.step == 1 ? u : t % SIDE;
        const int at = o.step == 1 ? t : t / SIDE + u * SIDE;
        const bool there = first + line < o.lines && at < steps;
        const float value = there ? x[(first + line) * o.line + (k + at) * o.step] : 0.0f;
        shared[line * LINE + at] = ro_to_bits(value);
    }
}

/* Lines of both operands in turn: a warp has every FIXED_WARPS-th. */
RO_DEVICE void fixed_round(uint32_t *shared, int *exponent, int bits) {
    const int lane = (int)threadIdx.x % 32;
    for (int line = (int)threadIdx.x / 32; line < 2 * SIDE; line += FIXED_WARPS) {
        uint32_t *x = shared + line * LINE, most = 0;
        for (int k = lane; k < RO_DOT_CHUNK; k += 32) {
            const uint32_t size = x[k] & 0x7fffffffu;
            most = size > most ? size : most;
        }
        for (int w = 16; w > 0; w /= 2) {
            const uint32_t other = __shfl_xor_sync(RO_ALL_LANES, most, w);
            most = other > most ? other : most;
        }
        const int e = ro_fixed_exponent(most);
        for (int k = lane; k < RO_DOT_CHUNK; k += 32)
            x[k] = e == RO_FIXED_NONE ? 0 : (uint32_t)ro_fixed_integer(ro_from_bits(x[k]), bits, e);
        if (lane == 0)
            exponent[line] = e;
    }
}

RO_DEVICE int64_t fixed_sum(const uint32_t *a, const uint32_t *b) {
    int64_t sum = 0;
#pragma unroll 8
    for (int k = 0; k < RO_DOT_CHUNK; k++)
        sum += (int64_t)(int32_t)a[k] * (int32_t)b[k];
    return sum;
}

__global__ void __launch_bounds__(FIXED_THREADS) fixed_kernel(fixed_product p, ro_divider across) {
    RO_SMEM(uint32_t, shared);
    int *exponent = (int *)(shared + 2 * SIDE * LINE);
    const int row = (int)threadIdx.x / SIDE, col = (int)threadIdx.x % SIDE;
    const int64_t down = across.quotient(blockIdx.x), product = blockIdx.y;
    const int64_t m = down * SIDE, n = (blockIdx.x - down * across.divisor) * SIDE;
    float total = 0;
    for (int64_t k = 0; k < p.k; k += RO_DOT_CHUNK) {
        const int64_t steps = p.k - k < RO_DOT_CHUNK ? p.k - k : RO_DOT_CHUNK;
        fixed_load(shared, p.a, product, m, k, steps);
        fixed_load(shared + SIDE * LINE, p.b, product, n, k, steps);
        __syncthreads();
        fixed_round(shared, exponent, p.bits);
        __syncthreads();
        const int64_t sum = fixed_sum(shared + row * LINE, shared + (SIDE + col) * LINE);
        total += ro_fixed_term(sum, p.bits, exponent[row], exponent[SIDE + col]);
        __syncthreads();
    }
    if (m + row < p.a.lines && n + col < p.b.lines)
        p.c[(product * p.a.lines + m + row) * p.b.lines + n + col] = ro_canon(total * p.alpha);
}

/* A grid has so many products at most; the next ones have a launch of their own. */
enum { FIXED_PRODUCTS = 65535 };

static ro_status matmul_fixed(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const ro_matmul v = ro_matmul_of(call);
    const int64_t across = ceil_div(v.n, SIDE), down = ceil_div(v.m, SIDE);
    fixed_product p = {};
    p.a = {static_cast<const float *>(in[0]), v.trans_a ? 1 : v.k, v.trans_a ? v.m : 1, v.m * v.k,
           v.m};
    p.b = {static_cast<const float *>(in[1]), v.trans_b ? v.k : 1, v.trans_b ? 1 : v.n, v.k * v.n,
           v.n};
    p.k = v.k, p.bits = v.bits, p.alpha = v.alpha;
    p.c = static_cast<float *>(out);
    for (int64_t done = 0; done < v.batch; done += FIXED_PRODUCTS) {
        const int64_t count = v.batch - done < FIXED_PRODUCTS ? v.batch - done : FIXED_PRODUCTS;
        RO_LAUNCH(fixed_kernel, ro_grid(across * down, (unsigned)count), dim3(FIXED_THREADS),
                  FIXED_SHARED, d->stream, p, ro_divider(across));
        p.a.x += count * p.a.next, p.b.x += count * p.b.next, p.c += count * v.m * v.n;
    }
    return ro_cuda_launched(d, "matmul_fixed");
}

void ro_cuda_add_fixed(ro_cuda_operator **table) {
    table[RO_OP_MATMUL_FIXED] = matmul_fixed;
}
