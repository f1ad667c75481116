/* matmul_fixed, SPEC.md section 3.5, and linear layers of such products. */
#include "repops/cuda/gemm/fixed_guard.cuh"
#include "repops/cuda/gemm/linear.cuh"
#include "repops/cuda/gemm/wgmma_run.cuh"
#include "repops/src/matmul.h"

ro_status ro_fixed_multiply(ro_cuda *d, const fixed_problem &p, const fixed_memory &w,
                            const gemm_out &out) {
    return p.bits == RO_FIXED_24   ? fixed_multiply<3>(d, p, w.a, w.b, out)
           : p.bits == RO_FIXED_16 ? fixed_multiply<2>(d, p, w.a, w.b, out)
                                   : fixed_multiply<1>(d, p, w.a, w.b, out);
}

static bool in_fours(const fixed_lines &x) {
    return x.step == 1 && ((uintptr_t)x.data % 16 | (uint64_t)(x.line | x.next | x.steps) % 4) == 0;
}

/* ---- products whose sums are checked ---- */

template <int digits>
static ro_status run_checked(ro_cuda *d, const fixed_problem &p, const fixed_lines &a,
                             const fixed_lines &b, const gemm_out &out) {
    void *memory;
    ro_status status = ro_cuda_alloc(d, fixed_memory_of(p, nullptr).bytes, &memory);
    if (status != RO_OK)
        return status;
    mma_way<digits, fixed_lines, fixed_lines, gemm_out> way(
        p, a, b, fixed_memory_of(p, static_cast<char *>(memory)), out);
    fixed_seen(&way, out);
    status = ro_fixed_guarded(d, &way);
    ro_cuda_free(d, memory);
    return status;
}

static ro_status run(ro_cuda *d, const fixed_problem &p, const fixed_lines &a, const fixed_lines &b,
                     const fixed_kept &kept, const linear_out &out) {
    return fixed_run(d, p, a, b, kept, out);
}

static ro_status run(ro_cuda *d, const fixed_problem &p, const fixed_lines &a, const fixed_lines &b,
                     const fixed_kept &kept, const gemm_out &out) {
    if (!fixed_guards(d, p))
        return fixed_run(d, p, a, b, kept, out);
    return p.bits == RO_FIXED_24   ? run_checked<3>(d, p, a, b, out)
           : p.bits == RO_FIXED_16 ? run_checked<2>(d, p, a, b, out)
                                   : run_checked<1>(d, p, a, b, out);
}

/* ---- products ---- */

static fixed_lines lines_of_a(const ro_matmul &v, const float *x) {
    fixed_lines a = {x, v.trans_a ? 1 : v.k, v.trans_a ? v.m : 1, v.m * v.k, v.m, v.k, false};
    a.fours = in_fours(a);
    return a;
}

static fixed_lines lines_of_b(const ro_matmul &v, const float *y) {
    fixed_lines b = {y, v.trans_b ? v.k : 1, v.trans_b ? 1 : v.n, v.k * v.n, v.n, v.k, false};
    b.fours = in_fours(b);
    return b;
}

static fixed_problem problem_of(const ro_matmul &v, const char *what) {
    return {v.m, v.n, v.k, v.batch, v.bits, what};
}

template <class Out>
static ro_status product(ro_cuda *d, const ro_matmul &v, const float *x, const float *y,
                         const fixed_kept &kept, const Out &out, const char *what) {
    const fixed_problem p = problem_of(v, what);
    const fixed_lines a = lines_of_a(v, x), b = lines_of_b(v, y);
    return d->has_wgmma ? ro_wgmma_run(d, p, a, b, kept, out) : run(d, p, a, b, kept, out);
}

static ro_status matmul_fixed(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const ro_matmul v = ro_matmul_of(call);
    const gemm_out to = {static_cast<float *>(out), v.n, 1, v.m * v.n, v.alpha, 0.0f, false};
    return product(d, v, static_cast<const float *>(in[0]), static_cast<const float *>(in[1]), {},
                   to, "matmul_fixed");
}
RO_CUDA_KERNEL(matmul_fixed, matmul_fixed)

/* ---- linear layers ---- */

static ro_matmul matmul_of(const ro_linear_layer *l, bool transposed_x) {
    ro_matmul v = {};
    v.batch = 1, v.m = l->rows, v.n = l->out, v.k = l->in;
    v.trans_a = transposed_x, v.trans_b = l->transposed, v.bits = l->fixed_bits;
    return v;
}

static ro_status linear(ro_cuda *d, const ro_linear_job *job, const ro_matmul &v,
                        const fixed_kept &kept) {
    if (d->guard.size == 0)
        return product(d, v, job->x, job->w, kept, linear_out::of(job), "linear");
    if (kept.a || kept.b)
        return ro_cuda_fail(d, RO_ERR_UNSUPPORTED,
                            "cuda: packed operands of a linear layer while products are checked");
    /* Kernels that check sums have no registers left for the layer's epilogue. */
    const gemm_out to = {job->y, v.n, 1, 0, 1.0f, 0.0f, false};
    const ro_status status = product(d, v, job->x, job->w, {}, to, "linear");
    return status == RO_OK ? ro_linear_end(d, job) : status;
}

ro_status ro_fixed_linear(ro_cuda *d, const ro_linear_job *job) {
    return linear(d, job, matmul_of(&job->layer, false), {});
}

/* Returns 0 while products are checked, because a check may have to pack operands again; otherwise
 * at least 1, so that empty packings have an address, too. */
size_t ro_fixed_packed_size(ro_cuda *d, const ro_linear_layer *layer, ro_packed_operand side) {
    if (d->guard.size != 0)
        return 0;
    const fixed_problem p = problem_of(matmul_of(layer, false), "linear");
    const size_t size = d->has_wgmma
                            ? ro_wgmma_packed_size(p, side)
                            : fixed_bytes(fixed_packed_of(p, side == RO_PACKED_X ? p.m : p.n), p);
    return size > 0 ? size : 1;
}

ro_status ro_fixed_linear_pack(ro_cuda *d, const ro_pack_job *job) {
    const ro_matmul v = matmul_of(&job->layer, job->transposed_x != 0);
    const fixed_problem p = problem_of(v, "linear");
    const bool is_x = job->side == RO_PACKED_X;
    const fixed_lines lines = is_x ? lines_of_a(v, job->from) : lines_of_b(v, job->from);
    if (d->has_wgmma)
        return ro_wgmma_pack(d, p, job->side, lines, job->to);
    fixed_packed to = fixed_packed_of(p, is_x ? p.m : p.n);
    to.data = static_cast<uint4 *>(job->to);
    const ro_status status = fixed_fits(d, p);
    return status == RO_OK ? fixed_pack_of(d, p, lines, to) : status;
}

ro_status ro_fixed_linear_of_packed(ro_cuda *d, const ro_linear_job *job,
                                    const ro_linear_operands *in) {
    return linear(d, job, matmul_of(&job->layer, in->transposed_x != 0),
                  {in->packed_x, in->packed_w});
}
