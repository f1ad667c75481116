/* Golden elements of fixed products, of linear layers with them and of fixed convolutions, on a
 * device. They were computed with rational numbers (tests/vectors/fixed); random cases only compare
 * with the CPU.
 *
 * Usage: fixed [--device cuda:0], from the top of the repository.
 * Plain C and librepops alone: machines with a GPU may have nothing else. */
#include <stdio.h>
#include <stdlib.h>
#define FIXED_ASSERT(truth, ...)                                                                   \
    do {                                                                                           \
        if (!(truth)) {                                                                            \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#include "repops/fused.h"
#include "repops/packed.h"
#include "repops/tools/case_run.h"
#include "tests/cuda/options.h"
#include "tests/unit/fixed_convolutions.h"

typedef struct {
    ro_ctx *ctx;
    int products, layers, packed, convolutions, differ;
} tally;

static void check(tally *t, const fixed_case *x, const fixed_run *r, ro_status status,
                  const char *what) {
    int i = 0;
    while (status == RO_OK && i < x->kept_count && r->out[i * kept_step(r)] == x->kept[i])
        i++;
    if (i == x->kept_count)
        return;
    t->differ++;
    if (status != RO_OK)
        printf("  %s, %s: %s\n", what, x->name, ro_ctx_error(t->ctx));
    else
        printf("  %s, %s, seed %" PRIu64 ": element %d is %08x, not %08x\n", what, x->name, x->seed,
               (int)(i * kept_step(r)), r->out[i * kept_step(r)], x->kept[i]);
}

static void run_operator(tally *t, const fixed_case *x, fixed_run *r) {
    const op_case c = {.call = r->call,
                       .in = {r->in[0], r->in[1]},
                       .data = {r->data[0], r->data[1]},
                       .out = r->out};
    const ro_status status = case_run(t->ctx, &c);
    check(t, x, r, status, ro_op_describe(r->call.op)->name);
}

/* ---- linear layers: with an activation, the stored product is checked ---- */

static int is_layer(const fixed_case *x) {
    return x->batch == 1 && x->alpha == (uint32_t)ro_attr_f32(1.0f);
}

static ro_linear_layer layer_of(const fixed_case *x) {
    return (ro_linear_layer){.size = sizeof(ro_linear_layer),
                             .rows = x->m,
                             .in = x->k,
                             .out = x->n,
                             .transposed = (int)(x->trans >> 1),
                             .activation = RO_ACTIVATION_GELU,
                             .fixed_bits = (int)x->bits};
}

static ro_status run_layer_on(tally *t, const ro_linear_layer *l, const fixed_run *r,
                              float *const memory[4]) {
    const size_t size = (size_t)r->numel * sizeof(float);
    ro_status status = RO_ERR_MEMORY;
    if (!memory[0] || !memory[1] || !memory[2] || !memory[3])
        return status;
    memset(r->out, 0x5a, size);
    status = ro_linear(t->ctx, l, memory[0], memory[1], NULL, memory[2], memory[3]);
    return status == RO_OK ? ro_read(t->ctx, r->out, memory[2], size) : status;
}

/* ---- the same with packed operands: x, w, or both, in turn; x may be transposed ---- */

enum { PACKED_X = 1, PACKED_W = 2 };

static ro_status run_packed_on(tally *t, const ro_linear_layer *l, const fixed_run *r,
                               const ro_linear_operands *from, int which, float *const memory[6]) {
    const size_t size = (size_t)r->numel * sizeof(float);
    ro_linear_operands in = *from;
    ro_status status = memory[2] && memory[3] && memory[4] && memory[5] ? RO_OK : RO_ERR_MEMORY;
    if (status == RO_OK && which & PACKED_X)
        status = ro_linear_pack_x(t->ctx, l, from, memory[4]);
    if (status == RO_OK && which & PACKED_W)
        status = ro_linear_pack(t->ctx, l, from->w, memory[5]);
    if (which & PACKED_X)
        in.x = NULL, in.packed_x = memory[4];
    if (which & PACKED_W)
        in.w = NULL, in.packed_w = memory[5];
    memset(r->out, 0x5a, size);
    if (status == RO_OK)
        status = ro_linear_of_packed(t->ctx, l, &in, NULL, memory[2], memory[3]);
    return status == RO_OK ? ro_read(t->ctx, r->out, memory[2], size) : status;
}

static void run_packed(tally *t, const fixed_case *x, fixed_run *r) {
    const ro_linear_layer l = layer_of(x);
    const size_t size = (size_t)r->numel * sizeof(float);
    const int first = x->trans & 1 ? 0 : PACKED_X; /* with neither packed it is ro_linear */
    const int which = first + t->packed++ % ((PACKED_X | PACKED_W) + 1 - first);
    float *memory[6] = {NULL,
                        NULL,
                        ro_alloc(t->ctx, size),
                        ro_alloc(t->ctx, size),
                        ro_alloc(t->ctx, ro_linear_packed_x_size(t->ctx, &l)),
                        ro_alloc(t->ctx, ro_linear_packed_size(t->ctx, &l))};
    for (int i = 0; i < 2; i++)
        memory[i] =
            case_upload(t->ctx, r->data[i], (size_t)ro_shape_numel(&r->in[i]) * sizeof(float));
    const ro_linear_operands from = {
        .size = sizeof from, .transposed_x = x->trans & 1, .x = memory[0], .w = memory[1]};
    const ro_status status = run_packed_on(t, &l, r, &from, which, memory);
    check(t, x, r, status, "linear of packed operands");
    for (int i = 0; i < 6; i++)
        ro_free(t->ctx, memory[i]);
}

static void run_layer(tally *t, const fixed_case *x, fixed_run *r) {
    const ro_linear_layer l = layer_of(x);
    const size_t size = (size_t)r->numel * sizeof(float);
    float *memory[4] = {NULL, NULL, ro_alloc(t->ctx, size), ro_alloc(t->ctx, size)};
    for (int i = 0; i < 2; i++)
        memory[i] =
            case_upload(t->ctx, r->data[i], (size_t)ro_shape_numel(&r->in[i]) * sizeof(float));
    const ro_status status = run_layer_on(t, &l, r, memory);
    check(t, x, r, status, "linear");
    for (int i = 0; i < 4; i++)
        ro_free(t->ctx, memory[i]);
    t->layers++;
}

/* ---- the files ---- */

static void run_line(tally *t, const char *line) {
    static fixed_case x;
    fixed_run r;
    if (strncmp(line, "product ", 8) == 0) {
        read_product(&x, line);
        build(&x, &r);
        run_operator(t, &x, &r);
        t->products++;
        if (is_layer(&x) && !(x.trans & 1))
            run_layer(t, &x, &r);
        if (is_layer(&x))
            run_packed(t, &x, &r);
    } else {
        build_convolution(&x, line, &r);
        run_operator(t, &x, &r);
        t->convolutions++;
    }
    release(&r);
}

static void run_file(tally *t, const char *path) {
    static char line[1 << 14];
    FILE *file = fopen(path, "r");
    FIXED_ASSERT(file, "fixed: %s cannot be read", path);
    kinds = 0;
    memset(number_kind, 0, sizeof number_kind);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "numbers ", 8) == 0)
            read_numbers(line);
        else
            run_line(t, line);
    fclose(file);
}

static int run_all(tally *t) {
    run_file(t, "tests/vectors/fixed/products.txt");
    run_file(t, "tests/vectors/fixed/convolutions.txt");
    const int few = t->products < 150 || t->layers < 50 || t->packed < 150 || t->convolutions < 120;
    printf("%s: %d fixed products, %d linear layers, %d of packed operands and %d convolutions; "
           "%d lack kept elements%s\n",
           ro_ctx_device(t->ctx), t->products, t->layers, t->packed, t->convolutions, t->differ,
           few ? "; these are too few" : "");
    return t->differ || few ? 1 : 0;
}

int main(int argc, char **argv) {
    options o = {.device = "cuda:0"};
    tally t = {0};
    int code = 2;
    if (!parse_options(argc, argv, &o) || o.wanted_count > 0)
        fprintf(stderr, "usage: fixed [--device NAME]\n");
    else if (ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .backend = o.device},
                           &t.ctx) != RO_OK)
        fprintf(stderr, "fixed: %s\n", ro_ctx_error(NULL));
    else
        code = run_all(&t);
    ro_ctx_destroy(t.ctx);
    return code;
}
