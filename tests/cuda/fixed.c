/* Kept elements of fixed products, of linear layers of such products and of fixed convolutions, on
 * a device: rational numbers gave them (tests/vectors/fixed). Random cases meet the CPU alone.
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
#include "repops/tools/case_run.h"
#include "tests/cuda/options.h"
#include "tests/unit/fixed_convolutions.h"

typedef struct {
    ro_ctx *ctx;
    int products, layers, convolutions, differ;
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

/* ---- linear layers: what a gradient reads of one with an activation is the product ---- */

static int is_layer(const fixed_case *x) {
    return x->batch == 1 && !(x->trans & 1) && x->alpha == (uint32_t)ro_attr_f32(1.0f);
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

static void run_layer(tally *t, const fixed_case *x, fixed_run *r) {
    const ro_linear_layer l = {.size = sizeof l,
                               .rows = x->m,
                               .in = x->k,
                               .out = x->n,
                               .transposed = (int)(x->trans >> 1),
                               .activation = RO_ACTIVATION_GELU,
                               .fixed_bits = (int)x->bits};
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
        if (is_layer(&x))
            run_layer(t, &x, &r);
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
    const int few = t->products < 150 || t->layers < 50 || t->convolutions < 120;
    printf("%s: %d fixed products, %d linear layers and %d convolutions; %d lack kept elements%s\n",
           ro_ctx_device(t->ctx), t->products, t->layers, t->convolutions, t->differ,
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
