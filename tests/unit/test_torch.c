/* Loss and gradients of small models against PyTorch in double precision:
 * tests/vectors/torch/README.md. */
#include "repops/op_optimizer.h"
#include "models/models.h"
#include "verde/exec/exec.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 97, TOKENS_TENSOR = 1000 };

/* Results in f32 differ from PyTorch's by about 6e-7. */
static const double tolerance = 1e-5;

/* ---- the formula of common.py ---- */

static uint32_t mix(uint32_t n) {
    n = (n ^ n >> 16) * UINT32_C(0x85ebca6b);
    n = (n ^ n >> 13) * UINT32_C(0xc2b2ae35);
    return n ^ n >> 16;
}

static float fraction(uint32_t tensor, uint32_t element) {
    return (float)((int32_t)(mix(tensor * 1000003 + element) >> 16) - 32768) / 32768;
}

/* ---- the same models as programs ---- */

typedef struct {
    vd_program program;
    vd_exec exec;
    vd_state state;
    uint8_t tokens[TOKENS];
    const void *data[1]; /* tokens */
    uint32_t parameters;
} model;

/* The data has as many windows as the batch, so the step reads each one once. */
static vd_training recipe(vd_model_kind kind, int64_t micro_batches) {
    const bool gpt2 = kind == VD_MODEL_GPT2;
    return (vd_training){
        .model = {kind, .vocab = 64, .context = gpt2 ? 16 : 48, .layers = 2, .heads = 2,
                  .channels = 32, .mask_rate = 0.25f, .pad = 5},
        .optimizer = {.lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f},
        .seed = 5,
        .batch = gpt2 ? 4 : 2,
        .micro_batches = micro_batches,
        .sequence = gpt2 ? 16 : 48,
        .steps = 1,
        .checkpoint_interval = 1,
        .data_dtype = RO_U8,
        .data_count = gpt2 ? 65 : 97,
    };
}

static FILE *open_layout(vd_model_kind kind) {
    FILE *layout = fopen(kind == VD_MODEL_GPT2 ? "tests/vectors/torch/gpt2.txt"
                                               : "tests/vectors/torch/bert.txt",
                         "r");
    cr_assert(layout, "run from the root of the repository");
    return layout;
}

/* Checks that the program's layout is that of the vectors, and sets the optimizer's state to
 * zero. */
static void set_state(model *m, FILE *layout) {
    m->state.count = m->program.leaf_count;
    m->state.tensor = calloc(m->state.count, sizeof *m->state.tensor);
    for (uint32_t i = 0; i < m->state.count; i++) {
        const vd_leaf *leaf = &m->program.leaf[i];
        m->state.tensor[i] = calloc(vd_shape_bytes(&leaf->shape), 1);
        char name[VD_NAME_SIZE];
        long long count;
        float offset, scale;
        if (fscanf(layout, "%63s %lld %f %f", name, &count, &offset, &scale) != 4)
            continue;
        cr_assert_str_eq(leaf->name, name);
        cr_assert(ro_shape_numel(&leaf->shape) == count, "%s", name);
        m->parameters++;
        for (uint32_t e = 0; e < count; e++)
            ((float *)m->state.tensor[i])[e] = offset + scale * fraction(i, e);
    }
    cr_assert(m->state.count == 3 * m->parameters + 2);
}

static void open_model(model *m, vd_model_kind kind, int64_t micro_batches) {
    *m = (model){0};
    vd_err err;
    const vd_training training = recipe(kind, micro_batches);
    cr_assert(vd_training_program(&training, &m->program, &err) == VD_OK, "%s", err.text);
    FILE *layout = open_layout(kind);
    const uint32_t limit = kind == VD_MODEL_BERT ? 63 : 64; /* BERT's last token is the mask */
    for (uint32_t i = 0; i < TOKENS; i++)
        m->tokens[i] = (uint8_t)(mix(TOKENS_TENSOR * 1000003u + i) % limit);
    set_state(m, layout);
    fclose(layout);
    m->data[0] = m->tokens;
    m->exec = (vd_exec){.program = &m->program, .data = m->data};
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &m->exec.ro) ==
              RO_OK);
}

static void close_model(model *m) {
    vd_state_free(&m->state);
    ro_ctx_destroy(m->exec.ro);
    vd_program_free(&m->program);
}

/* ---- comparison ---- */

typedef struct {
    const model *m;
    float loss;
    float *gradient; /* of all parameters, in order */
    size_t at;
} reference;

static void read_reference(reference *r, const model *m, const char *path) {
    vd_buf bytes = {0};
    vd_err err;
    cr_assert(vd_read_file(path, 1 << 20, &bytes, &err) == VD_OK, "%s", err.text);
    size_t count = 1;
    for (uint32_t i = 0; i < m->parameters; i++)
        count += (size_t)ro_shape_numel(&m->program.leaf[i].shape);
    cr_assert(bytes.size == 4 * count);
    *r = (reference){.m = m, .gradient = malloc(bytes.size)};
    memcpy(&r->loss, bytes.data, 4);
    memcpy(r->gradient, bytes.data + 4, bytes.size - 4);
    vd_buf_free(&bytes);
}

/* Limits the norm of the difference, and each element relative to the largest one. */
static void expect_close(const char *name, const float *got, const float *want, int64_t count) {
    double most = 0, square = 0, difference = 0, worst = 0;
    for (int64_t e = 0; e < count; e++) {
        const double d = fabs((double)got[e] - (double)want[e]);
        cr_assert(!isnan(d), "%s: element %lld is NaN", name, (long long)e);
        most = fmax(most, fabs((double)want[e]));
        worst = fmax(worst, d);
        square += (double)want[e] * (double)want[e];
        difference += d * d;
    }
    if (most < 1e-12 && strstr(name, "attn.k.bias")) { /* shifts all scores alike: 0 */
        cr_expect(worst <= 1e-6, "%s: %g instead of 0", name, worst);
        return;
    }
    cr_assert(most > 1e-12, "%s: the reference is zero", name);
    cr_expect(worst <= tolerance * most, "%s: an element is off by %g of the largest", name,
              worst / most);
    cr_expect(difference <= tolerance * tolerance * square, "%s: off by %g of its norm", name,
              sqrt(difference / square));
}

/* Compares the loss, and the gradients that AdamW reads, in the order of the parameters. */
static bool compare_node(void *user, uint32_t node, const void *const *input, const void *output) {
    reference *r = user;
    const vd_node *n = vd_node_stored(&r->m->program.step, node);
    if (strcmp(vd_node_name(&r->m->program.step, node).text, "mean.loss") == 0) {
        const double off = fabs((double)*(const float *)output / (double)r->loss - 1);
        cr_expect(off <= tolerance, "the loss is off by %g", off);
        return true;
    }
    if (n->op != RO_OP_ADAMW_M)
        return true;
    const uint32_t parameter = (uint32_t)r->at++;
    cr_assert(parameter < r->m->parameters);
    const vd_leaf *leaf = &r->m->program.leaf[parameter];
    cr_assert(strncmp(vd_node_name(&r->m->program.step, node).text, "adamw.", 6) == 0 &&
              strncmp(vd_node_name(&r->m->program.step, node).text + 6, leaf->name,
                      strlen(leaf->name)) == 0);
    const float *want = r->gradient;
    for (uint32_t i = 0; i < parameter; i++)
        want += ro_shape_numel(&r->m->program.leaf[i].shape);
    expect_close(leaf->name, input[1], want, ro_shape_numel(&leaf->shape));
    return true;
}

static void expect_pytorch(vd_model_kind kind, const char *path, int64_t micro_batches) {
    model m;
    reference r;
    vd_err err;
    open_model(&m, kind, micro_batches);
    read_reference(&r, &m, path);
    const vd_observer observer = {compare_node, &r};
    cr_assert(vd_exec_observe(&m.exec, &observer, &m.state, &err) == VD_OK, "%s", err.text);
    cr_expect(r.at == m.parameters, "%zu gradients seen", r.at);
    free(r.gradient);
    close_model(&m);
}

Test(torch, gpt2s_loss_and_all_gradients_agree) {
    expect_pytorch(VD_MODEL_GPT2, "tests/vectors/torch/gpt2.f32", 1);
}

Test(torch, gpt2s_agree_when_the_batch_is_cut_into_micro_batches) {
    expect_pytorch(VD_MODEL_GPT2, "tests/vectors/torch/gpt2.f32", 2);
    expect_pytorch(VD_MODEL_GPT2, "tests/vectors/torch/gpt2.f32", 4);
}

/* Five tokens are hidden in one micro-batch and twelve in the other, so a mean of the two means
 * would differ. */
Test(torch, berts_loss_is_the_mean_over_hidden_tokens_of_all_micro_batches) {
    expect_pytorch(VD_MODEL_BERT, "tests/vectors/torch/bert.f32", 2);
}
