/* Transposed matrices of all small sizes, whose edges take partial vectors: every element's bits
 * arrive, and no byte beside the tensors is touched. */
#include "repops/repops.h"
#include "repops/op_movement.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>

static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
enum {
    BACKENDS = sizeof backends / sizeof backends[0],
    MOST = 37,
    MEMORY = 1 << 18,
    FENCE = 1 << 16
};

/* MEMORY bytes between two fences of FENCE bytes that must not be touched. Both are whole pages on
 * every machine. */
typedef struct {
    char *map, *first;
} fenced;

static fenced fenced_create(void) {
    fenced f;
    f.map = mmap(NULL, MEMORY + 2 * FENCE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(f.map != MAP_FAILED);
    f.first = f.map + FENCE;
    cr_assert(mprotect(f.first, MEMORY, PROT_READ | PROT_WRITE) == 0);
    return f;
}

static void fenced_destroy(fenced *f) {
    munmap(f->map, MEMORY + 2 * FENCE);
}

/* Returns room for so many elements, at the end or the beginning of the memory. */
static uint32_t *fenced_at(const fenced *f, int64_t count, int end) {
    const size_t bytes = (size_t)count * sizeof(uint32_t);
    cr_assert(bytes <= MEMORY);
    return (uint32_t *)(void *)(f->first + (end ? MEMORY - bytes : 0));
}

/* Bits that differ between neighbours, including signalling NaNs. */
static uint32_t bits_of(int64_t i) {
    return (uint32_t)(i + 1) * 2654435761u;
}

typedef struct {
    ro_shape in;
    int d[4];
} permutation;

static int64_t source_of(const permutation *p, const ro_shape *out, int64_t e) {
    int64_t index[RO_MAX_DIMS] = {0}, at = 0;
    for (int i = out->ndim - 1; i >= 0; e /= out->dim[i--])
        index[p->d[i]] = e % out->dim[i];
    for (int i = 0; i < p->in.ndim; i++)
        at = at * p->in.dim[i] + index[i];
    return at;
}

static void check_permutation(ro_ctx *ctx, const permutation *p, const fenced *from,
                              const fenced *to) {
    ro_call call = {RO_OP_TRANSPOSE, 1, .input = &p->in};
    for (int i = 0; i < p->in.ndim; i++)
        call.attr[RO_TRANSPOSE_D0 + i] = p->d[i];
    char why[200];
    cr_assert(ro_infer(&call, why, sizeof why) == RO_OK, "%s", why);
    const int64_t count = ro_shape_numel(&p->in);
    for (int end = 0; end < 2; end++) {
        uint32_t *x = fenced_at(from, count, end), *y = fenced_at(to, count, end);
        for (int64_t i = 0; i < count; i++)
            x[i] = bits_of(i);
        memset(y, 0, (size_t)count * sizeof *y);
        cr_assert(ro_run(ctx, &call, (const void *[]){x}, y) == RO_OK, "%s", ro_ctx_error(ctx));
        int64_t e = 0;
        while (e < count && y[e] == bits_of(source_of(p, &call.output, e)))
            e++;
        cr_assert(e == count, "%s, %d x %d x %d, element %d", ro_ctx_backend(ctx),
                  (int)p->in.dim[0], (int)p->in.dim[1], (int)p->in.dim[2], (int)e);
    }
}

typedef void (*transpose_test)(ro_ctx *ctx, const fenced *from, const fenced *to);

static void on_each_backend(transpose_test test) {
    fenced from = fenced_create(), to = fenced_create();
    for (int b = 0; b < BACKENDS; b++) {
        ro_ctx *ctx = NULL;
        if (ro_ctx_create(
                &(ro_options){.size = sizeof(ro_options), .backend = backends[b], .threads = 1},
                &ctx) == RO_OK)
            test(ctx, &from, &to);
        ro_ctx_destroy(ctx);
    }
    fenced_destroy(&from);
    fenced_destroy(&to);
}

static void matrices(ro_ctx *ctx, const fenced *from, const fenced *to) {
    for (int rows = 1; rows <= MOST; rows++)
        for (int cols = 1; cols <= MOST; cols++)
            check_permutation(ctx, &(permutation){{RO_F32, 3, {3, rows, cols}}, {0, 2, 1}}, from,
                              to);
}

Test(transpose, matrices_of_all_small_sizes) {
    on_each_backend(matrices);
}

/* Converts PyTorch's weights, [F, C, KH, KW], to those of SPEC.md 12.1 and back. */
static void weights(ro_ctx *ctx, const fenced *from, const fenced *to) {
    static const int kernels[][2] = {{1, 1}, {3, 3}, {5, 3}, {1, 7}};
    for (int k = 0; k < 4; k++)
        for (int f = 1; f <= 33; f += 16)
            for (int c = 1; c <= 19; c += 3) {
                const int h = kernels[k][0], w = kernels[k][1];
                check_permutation(ctx, &(permutation){{RO_F32, 4, {f, c, h, w}}, {2, 3, 1, 0}},
                                  from, to);
                check_permutation(ctx, &(permutation){{RO_F32, 4, {h, w, c, f}}, {3, 2, 0, 1}},
                                  from, to);
            }
}

Test(transpose, weights_of_convolutions) {
    on_each_backend(weights);
}
