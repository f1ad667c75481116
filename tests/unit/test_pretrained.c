/* Models from transformers and torchvision continue training as PyTorch trains them:
 * tests/vectors/pretrained/README.md. */
#include "repops/op_softmax.h"
#include "models/models.h"
#include "verde/exec/exec.h"
#include "verde/job/config.h"
#include "verde/weights/weights.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VECTORS "tests/vectors/pretrained/"

enum {
    STEPS = 10,
    BATCH = 3,
    LENGTH = 12,
    VOCAB = 64,
    MASK = 63,
    SEED = 5,
    CLASSES = 3,
    IMAGE = 32
};
enum {
    RECORD = 1 + 3 * IMAGE * IMAGE,
    IMAGE_BATCH = 8,
    BYTES_MAX = IMAGE_BATCH * RECORD,
    DATA_MAX = 128
};

/* PyTorch computes in double precision. f32 differs by less than this after ten steps. */
static const double tolerance = 1e-4;

/* ---- the generator's formula for data: common.py ---- */

static uint32_t mix(uint32_t n) {
    n = (n ^ n >> 16) * UINT32_C(0x85ebca6b);
    n = (n ^ n >> 13) * UINT32_C(0xc2b2ae35);
    return n ^ n >> 16;
}

static uint8_t token(uint32_t i, uint32_t limit) {
    return (uint8_t)(mix(1000 * UINT32_C(1000003) + i) % limit);
}

/* ---- cases ---- */

typedef enum { NEXT_TOKENS, HIDDEN_TOKENS, RECORDS, IMAGES } data_kind;

typedef struct {
    const char *name;
    data_kind data;
    const char *target[3]; /* the layers that have adapters */
    float eps;             /* AdamW's, as in the generator; 0: 1e-3 */
} pretrained_case;

static const pretrained_case cases[] = {
    {"gpt2", NEXT_TOKENS, {NULL}},
    {"llama", NEXT_TOKENS, {NULL}},
    {"llama-tied", NEXT_TOKENS, {NULL}},
    {"llama3", NEXT_TOKENS, {NULL}},
    {"llama-bf16", NEXT_TOKENS, {NULL}},
    {"llama-lora", NEXT_TOKENS, {"attn.q", "attn.v", "mlp.down"}},
    {"llama-lora-bf16", NEXT_TOKENS, {"attn.q", "attn.v", "mlp.down"}, 1e-2f},
    {"gpt2-lora", NEXT_TOKENS, {"attn.qkv"}},
    {"qwen2", NEXT_TOKENS, {NULL}},
    {"qwen3", NEXT_TOKENS, {NULL}},
    {"mistral", NEXT_TOKENS, {NULL}},
    {"qwen2-window", NEXT_TOKENS, {NULL}},
    {"bert", HIDDEN_TOKENS, {NULL}},
    {"bert-classes", RECORDS, {NULL}},
    {"resnet", IMAGES, {NULL}},
};
enum { CASES = sizeof cases / sizeof cases[0] };

typedef struct {
    const pretrained_case *c;
    vd_training training;
    vd_weights weights;
    vd_file_tensor *file;
    vd_program program;
    const void *data[DATA_MAX];
    uint8_t bytes[BYTES_MAX];
    vd_exec exec;
    vd_state state;
} session;

/* ---- data ---- */

static void fill(session *s, int64_t count, uint32_t limit) {
    s->training.data_count = count;
    for (uint32_t i = 0; i < count; i++)
        s->bytes[i] = token(i, limit);
}

/* All records but the first end with padding. */
static void fill_records(session *s) {
    fill(s, BATCH * (1 + LENGTH) + 1, VOCAB);
    for (int r = 0; r < BATCH; r++) {
        uint8_t *record = s->bytes + r * (1 + LENGTH);
        record[0] %= CLASSES;
        memset(record + 1 + LENGTH - 2 * r, 0, (size_t)(2 * r));
    }
}

static void fill_images(session *s) {
    fill(s, IMAGE_BATCH * RECORD, 256);
    for (int r = 0; r < IMAGE_BATCH; r++)
        s->bytes[r * RECORD] %= CLASSES;
}

static void make_data(session *s) {
    vd_training *t = &s->training;
    t->batch = s->c->data == HIDDEN_TOKENS ? 1 : BATCH;
    t->sequence = s->c->data == IMAGES ? 1 : LENGTH;
    switch (s->c->data) {
    case NEXT_TOKENS: fill(s, BATCH * LENGTH + 1, VOCAB); break;
    case HIDDEN_TOKENS: fill(s, LENGTH + 1, MASK); break;
    case RECORDS: fill_records(s); break;
    case IMAGES: fill_images(s); break;
    }
    if (s->c->data == IMAGES) { /* as in the generator, which says why */
        t->batch = IMAGE_BATCH;
        t->optimizer.lr = 0.1f, t->optimizer.eps = 1;
    }
}

/* ---- from the folder to a program ---- */

static void open_folder(session *s) {
    char path[128];
    vd_err err;
    const vd_config_choice choice = {.dropout = -1, .pad = -1};
    snprintf(path, sizeof path, VECTORS "%s", s->c->name);
    cr_assert(vd_weights_open(path, &s->weights, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_config_read(s->weights.config.data, s->weights.config.size, path, &choice,
                             &s->training.model, &err) == VD_OK,
              "%s", err.text);
    s->file = calloc(s->weights.count, sizeof *s->file);
    for (uint32_t i = 0; i < s->weights.count; i++) {
        s->file[i].name = s->weights.tensor[i].form.name;
        s->file[i].shape = s->weights.tensor[i].shape;
    }
    s->training.file = s->file;
    s->training.file_count = s->weights.count;
}

static void add_adapters(session *s) {
    vd_lora *lora = &s->training.model.lora;
    for (int i = 0; i < 3 && s->c->target[i]; i++) {
        *lora = (vd_lora){.rank = 3, .alpha = 6, .target_count = i + 1};
        for (int k = 0; k <= i; k++)
            strcpy(lora->target[k], s->c->target[k]);
    }
}

static void make_program(session *s) {
    vd_err err;
    cr_assert(vd_training_program(&s->training, &s->program, &err) == VD_OK, "%s: %s", s->c->name,
              err.text);
    cr_assert(s->program.data_count <= DATA_MAX);
    s->data[0] = s->bytes;
    for (uint32_t i = 1; i < s->program.data_count; i++) {
        const vd_weight *w = vd_weights_find(&s->weights, s->program.data[i].tensor.name);
        cr_assert(w, "%s", s->program.data[i].tensor.name);
        s->data[i] = w->data;
    }
}

static void open_session(session *s, const pretrained_case *c, int64_t micro_batches) {
    vd_err err;
    *s = (session){.c = c};
    s->training = (vd_training){
        .optimizer =
            {.lr = 1e-2f, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-3f, .weight_decay = 0.1f},
        .seed = SEED,
        .micro_batches = micro_batches,
        .steps = STEPS,
        .checkpoint_interval = STEPS,
        .data_dtype = RO_U8,
    };
    if (c->eps != 0)
        s->training.optimizer.eps = c->eps;
    make_data(s);
    open_folder(s);
    s->training.model.mask_rate = 0.3f;
    s->training.model.mask = MASK;
    s->training.model.image = IMAGE;
    add_adapters(s);
    make_program(s);
    s->exec = (vd_exec){.program = &s->program, .data = s->data};
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &s->exec.ro) ==
              RO_OK);
    cr_assert(vd_exec_init(&s->exec, NULL, &s->state, &err) == VD_OK, "%s", err.text);
}

static void close_session(session *s) {
    vd_state_free(&s->state);
    ro_ctx_destroy(s->exec.ro);
    vd_program_free(&s->program);
    free(s->file);
    vd_weights_close(&s->weights);
}

/* ---- comparison ---- */

static uint32_t leaf_named(const session *s, const char *name) {
    for (uint32_t i = 0; i < s->program.leaf_count; i++)
        if (strcmp(s->program.leaf[i].name, name) == 0)
            return i;
    cr_assert(false, "no leaf %s", name);
    return 0;
}

/* Returns which element of the file's tensor is element e of the leaf. */
static int64_t place_of(vd_file_layout layout, const ro_shape *leaf, int64_t e) {
    if (layout == VD_FILE_SAME)
        return e;
    const int64_t f = leaf->dim[3], c = leaf->dim[2], window = leaf->dim[0] * leaf->dim[1];
    return ((e % f) * c + e / f % c) * window + e / f / c;
}

typedef void each_weight(session *s, uint32_t leaf, const vd_file_name *name,
                         const vd_weight *file);

/* Calls `each` for every leaf that has a tensor in the files, with the tensor of that name in
 * `file_name`. */
static void for_weights(session *s, const char *file_name, each_weight *each) {
    char path[128];
    vd_err err;
    vd_weights file = {0};
    vd_file_name *names;
    uint32_t count;
    snprintf(path, sizeof path, VECTORS "%s/%s", s->c->name, file_name);
    cr_assert(vd_weights_open(path, &file, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_training_names(&s->training, &names, &count, &err) == VD_OK, "%s", err.text);
    for (uint32_t i = 0; i < count; i++) {
        const vd_weight *w = vd_weights_find(&file, names[i].tensor);
        cr_assert(w, "%s: no %s", path, names[i].tensor);
        each(s, leaf_named(s, names[i].leaf), &names[i], w);
    }
    free(names);
    vd_weights_close(&file);
}

/* A file's tensors are aligned only to their elements. bf16 is the upper half of an f32. */
static float element(const vd_weight *w, int64_t e) {
    uint32_t bits = 0;
    float x;
    if (w->form.type == VD_WEIGHT_BF16) {
        uint16_t half;
        memcpy(&half, (const uint8_t *)w->data + 2 * e, sizeof half);
        bits = (uint32_t)half << 16;
    } else {
        memcpy(&bits, (const uint8_t *)w->data + 4 * e, sizeof bits);
    }
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void put_weight(session *s, uint32_t leaf, const vd_file_name *name, const vd_weight *file) {
    const ro_shape *shape = &s->program.leaf[leaf].shape;
    for (int64_t e = 0; e < ro_shape_numel(shape); e++)
        ((float *)s->state.tensor[leaf])[e] = element(file, place_of(name->layout, shape, e));
}

static void compare_weight(session *s, uint32_t leaf, const vd_file_name *name,
                           const vd_weight *file) {
    const ro_shape *shape = &s->program.leaf[leaf].shape;
    double most = 0, worst = 0;
    for (int64_t e = 0; e < ro_shape_numel(shape); e++) {
        const double wanted = (double)element(file, place_of(name->layout, shape, e));
        const double off = fabs((double)((float *)s->state.tensor[leaf])[e] - wanted);
        most = fmax(most, fabs(wanted));
        worst = isnan(off) ? INFINITY : fmax(worst, off);
    }
    cr_expect(worst <= tolerance * most, "%s: %s is off by %g of %g", s->c->name, name->tensor,
              worst, most);
}

static void expect_same_bits(session *s, uint32_t leaf, const vd_file_name *name,
                             const vd_weight *file) {
    const ro_shape *shape = &s->program.leaf[leaf].shape;
    int64_t other = 0;
    for (int64_t e = 0; e < ro_shape_numel(shape); e++) {
        const float is = ((float *)s->state.tensor[leaf])[e];
        const float wanted = element(file, place_of(name->layout, shape, e));
        other += memcmp(&is, &wanted, sizeof is) != 0;
    }
    cr_expect(other == 0, "%s: %s starts with %lld other numbers", s->c->name, name->tensor,
              (long long)other);
}

/* ---- logits ---- */

typedef struct {
    const session *s;
    float *logits; /* all rows that the first node of losses reads; owned */
    int64_t count;
} watched;

/* Keeps the first input of the node that computes losses, which is the logits. */
static bool keep_logits(void *user, uint32_t node, const void *const *input, const void *output) {
    watched *w = user;
    const vd_program *p = &w->s->program;
    const vd_node *n = vd_node_stored(&p->step, node);
    (void)output;
    if (w->logits || (n->op != RO_OP_XENT && n->op != RO_OP_XENT_IGNORE))
        return true;
    w->count = ro_shape_numel(vd_value_shape(p, &p->step, vd_node_input(&p->step, node, 0)));
    w->logits = malloc((size_t)w->count * sizeof *w->logits);
    memcpy(w->logits, input[0], (size_t)w->count * sizeof *w->logits);
    return true;
}

/* Returns the largest difference between `count` numbers and those of the file from `at` on. */
static double distance(const float *is, const vd_weight *file, int64_t at, int64_t count) {
    double worst = 0;
    for (int64_t i = 0; i < count; i++)
        worst = fmax(worst, fabs((double)is[i] - (double)element(file, at + i)));
    return worst;
}

/* The program reads windows in its own order, so each must match one of PyTorch's. */
static void compare_logits(const session *s, const watched *w, const vd_weight *file) {
    const int64_t all = ro_shape_numel(&file->shape);
    const int64_t each = all / s->training.batch;
    double most = 0;
    cr_assert(w->count == all, "%s: %lld logits, PyTorch has %lld", s->c->name, (long long)w->count,
              (long long)all);
    for (int64_t i = 0; i < all; i++)
        most = fmax(most, fabs((double)element(file, i)));
    for (int64_t at = 0; at < all; at += each) {
        double least = INFINITY;
        for (int64_t other = 0; other < all; other += each)
            least = fmin(least, distance(w->logits + at, file, other, each));
        cr_expect(least <= tolerance * most, "%s: logits are off by %g of %g", s->c->name, least,
                  most);
    }
}

static void check_logits(const session *s) {
    char path[128];
    vd_err err;
    vd_weights file = {0};
    watched w = {.s = s};
    const vd_observer observer = {keep_logits, &w};
    snprintf(path, sizeof path, VECTORS "%s/logits.safetensors", s->c->name);
    cr_assert(vd_weights_open(path, &file, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_exec_observe(&s->exec, &observer, &s->state, &err) == VD_OK, "%s", err.text);
    const vd_weight *logits = vd_weights_find(&file, "logits");
    cr_assert(logits && w.logits, "%s: no logits", s->c->name);
    compare_logits(s, &w, logits);
    free(w.logits);
    vd_weights_close(&file);
}

/* ---- tests ---- */

static void train(session *s) {
    char path[128];
    vd_err err;
    snprintf(path, sizeof path, VECTORS "%s/losses.txt", s->c->name);
    FILE *losses = fopen(path, "r");
    cr_assert(losses, "run from the root of the repository");
    double wanted;
    for (int step = 0; fscanf(losses, "%lf", &wanted) == 1; step++) {
        float loss;
        cr_assert(vd_exec_step(&s->exec, NULL, &s->state, &loss, &err) == VD_OK, "%s", err.text);
        cr_expect(fabs((double)loss - wanted) <= tolerance * fabs(wanted),
                  "%s, step %d: loss %.9g, PyTorch %.9g", s->c->name, step, (double)loss, wanted);
    }
    fclose(losses);
}

static void follow(const pretrained_case *c, int64_t micro_batches) {
    session *s = malloc(sizeof *s);
    open_session(s, c, micro_batches);
    if (c->target[0])
        for_weights(s, "before.safetensors", put_weight);
    else
        for_weights(s, "model.safetensors", expect_same_bits);
    if (micro_batches == 1)
        check_logits(s);
    train(s);
    for_weights(s, "after.safetensors", compare_weight);
    close_session(s);
    free(s);
}

static const pretrained_case *case_named(const char *name) {
    for (int i = 0; i < CASES; i++)
        if (strcmp(cases[i].name, name) == 0)
            return &cases[i];
    cr_assert(false, "no case %s", name);
    return NULL;
}

Test(pretrained, trains_on_as_pytorch_does) {
    for (int i = 0; i < CASES; i++)
        follow(&cases[i], 1);
}

Test(pretrained, micro_batches_train_the_same) {
    follow(case_named("llama"), BATCH);
    follow(case_named("bert-classes"), BATCH);
}

/* ---- images ---- */

typedef struct {
    const session *s;
    uint8_t *bytes; /* [images, height, width, planes]; owned, and `scaled` too */
    float *scaled;
    int64_t count;
} seen_images;

/* All nodes of the reading's scope have one name. The first gives bytes, the last the scaled
 * images. */
static bool keep_images(void *user, uint32_t node, const void *const *input, const void *output) {
    seen_images *seen = user;
    const vd_program *p = &seen->s->program;
    (void)input;
    if (strcmp(vd_node_name(&p->step, node).text, "m0.batch.images") != 0)
        return true;
    seen->count = ro_shape_numel(&vd_node_stored(&p->step, node)->shape);
    if (!seen->scaled) {
        seen->scaled = malloc((size_t)seen->count * sizeof *seen->scaled);
        seen->bytes = malloc((size_t)seen->count);
        for (int64_t i = 0; i < seen->count; i++)
            seen->bytes[i] = (uint8_t)((const float *)output)[i];
    }
    memcpy(seen->scaled, output, (size_t)seen->count * sizeof *seen->scaled);
    return true;
}

static int64_t count_other_bits(const seen_images *seen, const vd_weight *table) {
    int64_t other = 0;
    for (int64_t i = 0; i < seen->count; i++) {
        const float wanted = element(table, i % VD_IMAGE_PLANES * 256 + seen->bytes[i]);
        other += memcmp(&seen->scaled[i], &wanted, sizeof wanted) != 0;
    }
    return other;
}

Test(pretrained, images_are_scaled_to_the_bits_of_torchvision) {
    vd_err err;
    vd_weights file = {0};
    session *s = malloc(sizeof *s);
    open_session(s, case_named("resnet"), 1);
    seen_images seen = {.s = s};
    const vd_observer observer = {keep_images, &seen};
    cr_assert(vd_weights_open(VECTORS "resnet/scaled.safetensors", &file, &err) == VD_OK, "%s",
              err.text);
    cr_assert(vd_exec_observe(&s->exec, &observer, &s->state, &err) == VD_OK, "%s", err.text);
    cr_expect_eq(seen.count, IMAGE_BATCH * IMAGE * IMAGE * VD_IMAGE_PLANES);
    cr_expect_eq(count_other_bits(&seen, vd_weights_find(&file, "scaled")), 0);
    free(seen.bytes);
    free(seen.scaled);
    vd_weights_close(&file);
    close_session(s);
    free(s);
}

/* ---- evaluation ---- */

/* Opens the same model and data, of which a step reads half if there is more than one record. */
static void open_evaluation(session *s, const pretrained_case *c) {
    vd_err err;
    open_session(s, c, 1);
    vd_state_free(&s->state);
    vd_program_free(&s->program);
    s->training.evaluates = 1;
    if (c->data == IMAGES)
        s->training.batch = IMAGE_BATCH / 2;
    s->training.steps = vd_evaluation_steps(&s->training);
    cr_assert_eq(s->training.steps, c->data == IMAGES ? 2 : 1);
    s->training.checkpoint_interval = 1;
    make_program(s);
    cr_assert(vd_exec_init(&s->exec, NULL, &s->state, &err) == VD_OK, "%s", err.text);
}

/* Without dropout and batch norm, PyTorch's first loss is that of an evaluation. Models that tell
 * classes have a file for it. */
static void read_wanted(const session *s, double *loss, double *accuracy) {
    char path[128];
    const bool tells_classes = vd_tells_classes(&s->training.model);
    snprintf(path, sizeof path, VECTORS "%s/%s.txt", s->c->name,
             tells_classes ? "evaluation" : "losses");
    FILE *file = fopen(path, "r");
    cr_assert(file, "%s", path);
    cr_assert(fscanf(file, "%lf", loss) == 1);
    cr_assert(!tells_classes || fscanf(file, "%lf", accuracy) == 1);
    fclose(file);
}

static void evaluate(const pretrained_case *c) {
    vd_err err;
    double loss, accuracy = -1;
    session *s = malloc(sizeof *s);
    open_evaluation(s, c);
    read_wanted(s, &loss, &accuracy);
    while (s->state.step < s->training.steps)
        cr_assert(vd_exec_step(&s->exec, NULL, &s->state, NULL, &err) == VD_OK, "%s", err.text);
    const double got = (double)*(float *)s->state.tensor[0];
    cr_expect(fabs(got - loss) <= tolerance * fabs(loss), "%s: loss %.9g, PyTorch %.9g", c->name,
              got, loss);
    cr_expect_eq(s->state.count, accuracy < 0 ? 1 : 2);
    if (s->state.count > 1) {
        const double right = (double)*(float *)s->state.tensor[1];
        cr_expect(fabs(right - accuracy) < 1e-6, "%s: accuracy %.9g, PyTorch %.9g", c->name, right,
                  accuracy);
    }
    close_session(s);
    free(s);
}

Test(pretrained, is_evaluated_as_by_pytorch) {
    for (int i = 0; i < CASES; i++)
        if (!cases[i].target[0])
            evaluate(&cases[i]);
}

/* Only adapters are trained: the state holds them, their moments, and two numbers. */
Test(pretrained, state_of_adapters_holds_nothing_frozen) {
    session *s = malloc(sizeof *s);
    open_session(s, case_named("llama-lora"), 1);
    cr_expect(s->program.leaf_count == 3 * 12 + 2, "%u leaves", s->program.leaf_count);
    cr_expect(s->program.data_count == 1 + s->weights.count);
    for (uint32_t i = 0; i < s->program.leaf_count; i++)
        cr_expect(strstr(s->program.leaf[i].name, "lora_") ||
                      strncmp(s->program.leaf[i].name, "adamw.", 6) == 0,
                  "%s", s->program.leaf[i].name);
    close_session(s);
    free(s);
}

/* ---- micro-batches are stored once as a repeat ---- */

static void unroll(const vd_program *p, vd_program *out) {
    vd_buf bytes = {0};
    vd_err err = {0};
    vd_program_encode(p, &bytes);
    cr_assert(vd_buf_ok(&bytes));
    cr_assert(vd_program_decode(bytes.data, bytes.size, out, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_graph_unroll(&out->step, &err) == VD_OK, "%s", err.text);
    cr_assert(p->step.repeat_count > 0 && out->step.repeat_count == 0);
    cr_assert(p->step.node_count == out->step.node_count);
    vd_buf_free(&bytes);
}

static void expect_same_descriptors(const vd_program *p, const vd_program *q, const char *name) {
    for (uint32_t i = 0; i < p->step.node_count; i++) {
        vd_buf a = {0}, b = {0};
        vd_node_encode(p, &p->step, i, &a);
        vd_node_encode(q, &q->step, i, &b);
        cr_assert(a.size == b.size && memcmp(a.data, b.data, a.size) == 0, "%s, node %u", name, i);
        vd_buf_free(&a);
        vd_buf_free(&b);
    }
}

/* Compares steps of the program with steps of the unrolled one, node by node. */
static void expect_same_steps(session *s, const vd_program *unrolled) {
    vd_exec plain = {.program = unrolled, .ro = s->exec.ro, .data = s->data, .unfused = true};
    vd_state state;
    vd_err err = {0};
    cr_assert(vd_exec_init(&plain, NULL, &state, &err) == VD_OK, "%s", err.text);
    for (int i = 0; i < 3; i++) {
        cr_assert(vd_exec_step(&plain, NULL, &state, NULL, &err) == VD_OK, "%s", err.text);
        cr_assert(vd_exec_step(&s->exec, NULL, &s->state, NULL, &err) == VD_OK, "%s", err.text);
    }
    for (uint32_t i = 0; i < s->program.leaf_count; i++)
        cr_assert(memcmp(state.tensor[i], s->state.tensor[i],
                         vd_shape_bytes(&s->program.leaf[i].shape)) == 0,
                  "%s: %s", s->c->name, s->program.leaf[i].name);
    vd_state_free(&state);
}

Test(pretrained, micro_batches_with_adapters_or_files_mean_their_unrolled_nodes) {
    for (int i = 0; i < CASES; i++) {
        if (cases[i].data == HIDDEN_TOKENS || cases[i].data == IMAGES)
            continue; /* three micro-batches do not divide their batches */
        session *s = malloc(sizeof *s);
        vd_program unrolled;
        open_session(s, &cases[i], BATCH);
        unroll(&s->program, &unrolled);
        expect_same_descriptors(&s->program, &unrolled, cases[i].name);
        expect_same_steps(s, &unrolled);
        vd_program_free(&unrolled);
        close_session(s);
        free(s);
    }
}
