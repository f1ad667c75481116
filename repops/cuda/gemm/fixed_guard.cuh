/* A fixed product whose sums are checked: what fixed_guard.cu needs from the kernels that compute
 * it, those of fixed.cuh or of wgmma.cuh. */
#ifndef REPOPS_CUDA_FIXED_GUARD_CUH
#define REPOPS_CUDA_FIXED_GUARD_CUH

#include "repops/cuda/gemm/fixed_check.cuh"
#include "repops/cuda/gemm/fixed_run.cuh"

/* A part of packed numbers that a test may alter. */
struct fixed_part {
    ro_guard_place place;
    void *data;
    size_t size;
};
enum { FIXED_PARTS = 3 };

struct fixed_way {
    fixed_problem p;
    int64_t lines_a, lines_b;    /* packed lines, in whole groups */
    int places;                  /* sums per element */
    const float *seen;           /* the result, to find changed columns, or NULL; its strides: */
    int64_t seen_row, seen_next; /* of rows, and of products */
    int64_t first_row; /* the product's first row in a larger one, of which it is a slab */

    virtual ro_status pack(ro_cuda *d) = 0;
    /* Adds up columns of b, and multiplies rows of a by their sum. Both arrays are zero before. */
    virtual ro_status add_up(ro_cuda *d, uint32_t *columns, uint32_t *rows) = 0;
    /* Adds up scales of a and of b, in arrays that are zero before. */
    virtual ro_status add_scales(ro_cuda *d, uint32_t *a, uint32_t *b) = 0;
    virtual ro_status multiply(ro_cuda *d, const fixed_check &check) = 0;
    virtual void parts(fixed_part *out) const = 0;

  protected:
    ~fixed_way() = default;
};

/* Computes the product, and once more if its sums are wrong. Reports what was found. */
ro_status ro_fixed_guarded(ro_cuda *d, fixed_way *way);

/* Returns whether to check a product. Without steps of k there are no sums. */
static inline bool fixed_guards(const ro_cuda *d, const fixed_problem &p) {
    return d->guard.size != 0 && p.batch <= INT32_MAX && p.k > 0 && p.k <= INT32_MAX;
}

static inline void fixed_seen(fixed_way *way, const gemm_out &out) {
    way->seen = out.c, way->seen_row = out.row, way->seen_next = out.next;
}

/* ---- launches ---- */

template <class A, class B>
static ro_status fixed_add_up(ro_cuda *d, const fixed_problem &p, const A &a, int64_t lines_a,
                              const B &b, int64_t lines_b, uint32_t *columns, uint32_t *rows) {
    const fixed_share of_a = fixed_share::of(p.batch, p.k, lines_a);
    const fixed_share of_b = fixed_share::of(p.batch, p.k, lines_b);
    const int64_t each = FIXED_SUM_THREADS / 32;
    const int64_t down = of_a.slices() * of_a.batch * of_a.chunks;
    const int64_t across = of_b.slices() * of_b.batch * of_b.blocks;
    RO_LAUNCH((fixed_columns_kernel<B>), ro_grid(ceil_div(across, each)), dim3(FIXED_SUM_THREADS),
              0, d->stream, b, of_b, columns, across);
    const ro_status status = ro_cuda_launched(d, p.what);
    if (status != RO_OK)
        return status;
    RO_LAUNCH((fixed_rows_kernel<A>), ro_grid(ceil_div(down, each)), dim3(FIXED_SUM_THREADS), 0,
              d->stream, a, of_a, columns, rows, down);
    return ro_cuda_launched(d, p.what);
}

template <class Reader>
static ro_status fixed_add_scales(ro_cuda *d, const fixed_problem &p, const Reader &x,
                                  int64_t lines, uint32_t *to) {
    const fixed_share s = fixed_share::of(p.batch, p.k, lines);
    const int64_t warps = s.slices() * s.batch * s.chunks;
    RO_LAUNCH((fixed_scales_kernel<Reader>), ro_grid(ceil_div(warps, FIXED_SUM_THREADS / 32)),
              dim3(FIXED_SUM_THREADS), 0, d->stream, x, s, to, warps);
    return ro_cuda_launched(d, p.what);
}

/* ---- by the kernels of fixed.cuh ---- */

template <int digits, class A, class B, class Out> struct mma_way final : fixed_way {
    A x;
    B y;
    fixed_memory w;
    fixed_checked<Out> out;

    mma_way(const fixed_problem &problem, const A &a, const B &b, const fixed_memory &memory,
            const Out &to)
        : fixed_way(), x(a), y(b), w(memory), out{to, {}} {
        p = problem;
        lines_a = w.a.groups * FIXED_LINES, lines_b = w.b.groups * FIXED_LINES;
        places = 2 * fixed_places<digits> - 1;
    }
    ro_status pack(ro_cuda *d) override {
        const ro_status status = fixed_pack<digits>(d, p, x, w.a);
        return status == RO_OK ? fixed_pack<digits>(d, p, y, w.b) : status;
    }
    ro_status add_up(ro_cuda *d, uint32_t *columns, uint32_t *rows) override {
        return fixed_add_up(d, p, fixed_reader<digits>{w.a}, lines_a, fixed_reader<digits>{w.b},
                            lines_b, columns, rows);
    }
    ro_status add_scales(ro_cuda *d, uint32_t *a, uint32_t *b) override {
        const ro_status status = fixed_add_scales(d, p, fixed_reader<digits>{w.a}, lines_a, a);
        return status == RO_OK ? fixed_add_scales(d, p, fixed_reader<digits>{w.b}, lines_b, b)
                               : status;
    }
    ro_status multiply(ro_cuda *d, const fixed_check &check) override {
        out.check = check;
        return fixed_multiply<digits>(d, p, w.a, w.b, out);
    }
    void parts(fixed_part *part) const override {
        const int64_t last = (w.a.blocks < FIXED_BLOCKS ? w.a.blocks : (int)FIXED_BLOCKS) - 1;
        part[0] = {RO_GUARD_AT_A, w.a.data, bytes(w.a)};
        part[1] = {RO_GUARD_AT_B, w.b.data, bytes(w.b)};
        part[2] = {RO_GUARD_AT_SCALE, w.a.data + last * w.a.block + fixed_places<digits> * 32,
                   FIXED_LINES * sizeof(int)};
    }
    size_t bytes(const fixed_packed &of) const {
        return (size_t)(p.batch * of.blocks * of.block) * sizeof *of.data;
    }
};

#endif
