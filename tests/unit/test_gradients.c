/* The gradients of every layer against central differences of a forward pass in double precision,
 * written here; and the bits of every gradient, in tests/golden/gradients.txt (GOLDEN_UPDATE=1 adds
 * missing lines). */
#include "gradient_case.h"
#include "repops/operators.h"
#include "verde/commit/commit.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 150 };

static const double tolerance = 1e-5; /* relative to the largest element of the gradient */
static const char golden[] = "tests/golden/gradients.txt";

typedef void visit(void *user, const gradient_case *c);

/* Calls `check` for each operator whose gradient is a single operator. */
static void for_each_function(visit *check, void *user) {
    for (int op = 1; op < RO_OP_END; op++) {
        const ro_op_info *info = ro_op_describe(op);
        if (!info || !info->gradient)
            continue;
        const gradient_case c = function_case(op);
        check(user, &c);
    }
}

static void for_each_case(visit *check, void *user) {
    const gradient_family families[] = {elements_family, attention_family, rows_family,
                                        images_family};
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++)
        for (size_t i = 0; i < families[f].count; i++)
            check(user, &families[f].cases[i]);
    for_each_function(check, user);
}

/* ---- opening and closing ---- */

static example open_example(const gradient_case *c) {
    example x = {.c = c, .step = 3};
    fill_leaves(&x);
    build_graph(&x);
    run_graph(&x);
    for (int j = 0; j < c->layer_count; j++)
        x.exact[OUT(j)] = calloc((size_t)ro_shape_numel(&x.shape[OUT(j)]), sizeof(double));
    return x;
}

static void close_example(example *x) {
    const uint32_t sources = vd_source_count(&x->program, &x->program.step);
    for (uint32_t i = sources; i < x->value_count; i++)
        free(x->value[i]);
    for (int i = 0; i < LEAVES + LAYERS; i++)
        free(x->exact[i]);
    for (int i = 0; i < LEAVES; i++)
        free(x->leaf[i]);
    for (int i = 0; i < IDS; i++)
        free(x->ids[i]);
    free(x->value);
    vd_program_free(&x->program);
}

/* ---- comparison ---- */

static double difference(const example *x, int leaf, int64_t e) {
    const double h = 1e-4, at = x->exact[leaf][e];
    x->exact[leaf][e] = at + h;
    const double above = exact_loss(x);
    x->exact[leaf][e] = at - h;
    const double below = exact_loss(x);
    x->exact[leaf][e] = at;
    return (above - below) / (2 * h);
}

/* Checks all elements of a small leaf, a sample of a large one. */
static void expect_gradient(const example *x, int leaf) {
    const int64_t count = ro_shape_numel(&x->shape[leaf]),
                  samples = count < SAMPLES ? count : SAMPLES;
    const char *name = x->c->leaf[leaf].name;
    const bool read = x->c->leaf[leaf].scale != 0;
    cr_assert((x->gradient[leaf] != VD_NONE) == read, "%s: gradient of %s", x->c->name, name);
    if (!read)
        return;
    cr_assert(ro_shape_equal(vd_value_shape(&x->program, &x->program.step, x->gradient[leaf]),
                             &x->shape[leaf]));
    const float *got = x->value[x->gradient[leaf]];
    double most = 0, worst = 0;
    for (int64_t i = 0; i < samples; i++) {
        const int64_t e = count <= SAMPLES ? i : (int64_t)mix((uint32_t)i) % count;
        const double want = difference(x, leaf, e), error = fabs((double)got[e] - want);
        most = fmax(most, fabs(want));
        worst = error > worst || isnan(error) ? error : worst;
    }
    cr_expect(most > 1e-3, "%s: the gradient of %s is all zero: not a test", x->c->name, name);
    cr_expect(worst <= tolerance * most, "%s: gradient of %s is off by %g of its largest element",
              x->c->name, name, worst / most);
}

static void expect_loss(const example *x) {
    const int64_t rows = ro_shape_numel(&x->shape[OUT(x->c->layer_count - 1)]);
    const double want = exact_loss(x);
    double got = 0;
    for (int64_t r = 0; r < rows; r++)
        got += (double)((const float *)x->value[x->loss])[r];
    cr_expect(fabs(got - want) <= 1e-5 * fabs(want), "%s: loss %g, expected %g", x->c->name, got,
              want);
}

static void check_case(void *user, const gradient_case *c) {
    example x = open_example(c);
    (void)user;
    expect_loss(&x);
    for (int k = 0; k < c->leaf_count; k++)
        expect_gradient(&x, k);
    close_example(&x);
}

Test(gradients, those_of_every_layer_agree_with_differences) {
    for_each_case(check_case, NULL);
}

static void see_operators(void *user, const gradient_case *c) {
    bool *seen = user;
    example x = {.c = c};
    fill_leaves(&x);
    build_graph(&x);
    for (uint32_t n = x.loss - vd_source_count(&x.program, &x.program.step) + 1;
         n < x.program.step.node_count; n++)
        seen[vd_node_stored(&x.program.step, n)->op] = true;
    close_example(&x);
}

static bool is_backward(const char *name) {
    static const char *const ends[] = {"_grad", "_dx", "_dw", "_dgamma", "_gx", "_dscore"};
    const size_t length = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (length > strlen(ends[i]) && strcmp(name + length - strlen(ends[i]), ends[i]) == 0)
            return true;
    return false;
}

/* Most operators of a backward pass have names that show it; `others` also occur in forward passes.
 * test_gradients_axes.c covers gather_grad. */
Test(gradients, the_cases_use_every_operator_of_a_backward_pass) {
    static const int others[] = {
        RO_OP_FILL,    RO_OP_ADD,        RO_OP_MATMUL,   RO_OP_JOIN_HEADS, RO_OP_SPLIT_HEADS,
        RO_OP_DROPOUT, RO_OP_REDUCE_DOT, RO_OP_SUM_ROWS, RO_OP_ATTN_PROB,  RO_OP_SCALE,
        RO_OP_MUL,     RO_OP_DIV,        RO_OP_EXPAND,   RO_OP_ARGMAX};
    bool seen[RO_OP_END] = {[RO_OP_GATHER_GRAD] = true};
    for_each_case(see_operators, seen);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        cr_expect(seen[others[i]], "%s", ro_op_describe(others[i])->name);
    for (int op = 1; op < RO_OP_END; op++)
        cr_expect(seen[op] || !ro_op_describe(op) || !is_backward(ro_op_describe(op)->name),
                  "%s: no case has it", ro_op_describe(op)->name);
}

/* ---- bits ---- */

typedef struct {
    vd_buf file, added;
    size_t lines; /* number of cases */
} on_file;

static bool has(const vd_buf *file, const char *text) {
    return file->size && memmem(file->data, file->size, text, strlen(text));
}

/* `end` is " case leaf", the end of a line of the file. */
static void check_line(on_file *f, const char *hash, const char *end) {
    char line[200];
    snprintf(line, sizeof line, "%s%s", hash, end);
    f->lines++;
    if (has(&f->file, line))
        return;
    cr_expect(!has(&f->file, end), "%s has another hash for%s: now it is %s", golden, end, hash);
    cr_expect(has(&f->file, end) || getenv("GOLDEN_UPDATE"),
              "%s has no line for%s: GOLDEN_UPDATE=1 adds it", golden, end);
    if (!has(&f->file, end))
        vd_printf(&f->added, "%s", line);
}

static void check_bits(void *user, const gradient_case *c) {
    example x = open_example(c);
    for (int i = 0; i < c->leaf_count; i++) {
        if (x.gradient[i] == VD_NONE)
            continue;
        vd_hash hash;
        char text[2 * VD_HASH_SIZE + 1], end[100];
        const size_t size = (size_t)ro_shape_numel(&x.shape[i]) * sizeof(float);
        cr_assert(vd_hash_tagged(NULL, x.value[x.gradient[i]], size, &hash));
        vd_hex(hash.b, VD_HASH_SIZE, text);
        snprintf(end, sizeof end, " %s %s\n", c->name, c->leaf[i].name);
        check_line(user, text, end);
    }
    close_example(&x);
}

static size_t lines_of(const vd_buf *text) {
    size_t lines = 0;
    for (size_t i = 0; i < text->size; i++)
        lines += text->data[i] == '\n';
    return lines;
}

Test(gradients, bits_are_those_on_file) {
    on_file f = {0};
    vd_err err;
    cr_assert(vd_read_file(golden, 1 << 20, &f.file, &err) == VD_OK, "%s", err.text);
    for_each_case(check_bits, &f);
    vd_put(&f.file, f.added.data, f.added.size);
    cr_assert(vd_buf_ok(&f.added) && vd_buf_ok(&f.file));
    cr_expect(lines_of(&f.file) == f.lines, "%s has %zu lines, %zu of them are of cases", golden,
              lines_of(&f.file), f.lines);
    if (f.added.size && getenv("GOLDEN_UPDATE"))
        cr_assert(vd_write_file(golden, f.file.data, f.file.size, 0644, &err) == VD_OK, "%s",
                  err.text);
    vd_buf_free(&f.file);
    vd_buf_free(&f.added);
}
