/* Prompts continued by small decoders: prints the commitment of every state for single prompts, and
 * checks that prompts run together have the same states. */
#include "models/models.h"
#include "portable.h"
#include "repops/tools/op_data.h"
#include "verde/exec/batch.h"

#include <stdlib.h>
#include <string.h>

enum { PROMPTS = 4, PROMPT_MAX = 70, TOKENS = 4, VOCAB = 1000, TENSORS_MAX = 64 };

static vd_err err;

#define TRY(call) CHECK((call) == VD_OK, "%s", err.text)

typedef struct {
    vd_training training;
    vd_file_tensor start[TENSORS_MAX];
    char name[TENSORS_MAX][VD_NAME_SIZE];
    float *weight[TENSORS_MAX];
    uint32_t count;
} decoder;

typedef struct {
    int32_t prompt[PROMPT_MAX], key[2];
    vd_program program;
    const void *data[2 + TENSORS_MAX];
    vd_hash state[TOKENS + 1];
} item;

static const vd_model models[] = {
    {.kind = VD_MODEL_GPT2,
     .vocab = VOCAB,
     .context = 128,
     .layers = 2,
     .heads = 2,
     .channels = 32},
    {.kind = VD_MODEL_LLAMA,
     .vocab = VOCAB,
     .layers = 2,
     .heads = 4,
     .kv_heads = 2,
     .channels = 32,
     .hidden = 48,
     .rope_base = 10000,
     .window = 40,
     .window_from = 1,
     .tied = true},
};

/* ---- a decoder, and its programs ---- */

/* Returns multiples of 2^-26 below 0.5 in magnitude. */
static float *numbers(int64_t count, uint32_t tensor) {
    float *x = malloc((size_t)count * sizeof *x);
    for (int64_t e = 0; x && e < count; e++)
        x[e] = (float)((int32_t)case_word(tensor, 8, e) >> 6) / 67108864.0f;
    return x;
}

/* Takes a decoder's parameters from the program of a training with SGD, whose state has nothing
 * else. */
static void open_decoder(decoder *d, const vd_model *model) {
    vd_program p;
    *d = (decoder){.training = {.model = *model,
                                .optimizer = {.kind = VD_OPTIMIZER_SGD, .lr = 1},
                                .batch = 1,
                                .micro_batches = 1,
                                .sequence = 8,
                                .steps = 1,
                                .checkpoint_interval = 1,
                                .data_dtype = RO_U16,
                                .data_count = 64}};
    TRY(vd_training_program(&d->training, &p, &err));
    CHECK(p.leaf_count <= TENSORS_MAX, "%u leaves", p.leaf_count);
    for (uint32_t i = 0; i < p.leaf_count && !portable_failures; i++) {
        const size_t length = strlen(p.leaf[i].name);
        if (length > 2 && strcmp(p.leaf[i].name + length - 2, ".m") == 0)
            continue;
        strcpy(d->name[d->count], p.leaf[i].name);
        d->start[d->count] = (vd_file_tensor){d->name[d->count], p.leaf[i].shape, {0}};
        d->weight[d->count] = numbers(ro_shape_numel(&p.leaf[i].shape), i);
        d->count++;
    }
    d->training = (vd_training){.model = *model,
                                .evaluates = 1,
                                .batch = 1,
                                .micro_batches = 1,
                                .start = d->start,
                                .start_count = d->count};
    vd_program_free(&p);
}

static void close_decoder(decoder *d) {
    for (uint32_t i = 0; i < d->count; i++)
        free(d->weight[i]);
}

static void open_item(item *x, const decoder *d, uint32_t number) {
    static const int64_t lengths[PROMPTS] = {1, 2, PROMPT_MAX, 33};
    const vd_generation how = {.max_tokens = TOKENS,
                               .temperature = 1,
                               .top_k = 50,
                               .top_p = VD_TOP_P_ONE / 20 * 19,
                               .seed = 7,
                               .repetition_penalty = 1.25f,
                               .best = 1};
    const vd_prompt_form form = {.count = lengths[number]};
    *x = (item){.key = {(int32_t)number, 1}, .data = {x->prompt, x->key}};
    for (int64_t i = 0; i < form.count; i++)
        x->prompt[i] = (int32_t)(case_word(number, 3, i) % VOCAB);
    TRY(vd_generation_program(&d->training, &how, &form, &x->program, &err));
    CHECK(x->program.data_count == 2 + d->count, "%u data tensors", x->program.data_count);
    for (uint32_t i = 0; i < d->count; i++)
        x->data[2 + i] = d->weight[i];
}

/* ---- prompts run alone ---- */

static void run_alone(item *x, ro_ctx *ro) {
    const vd_exec exec = {.program = &x->program, .ro = ro, .data = x->data};
    vd_state state;
    vd_hash hash;
    char text[2 * VD_HASH_SIZE + 1];
    TRY(vd_program_hash(&x->program, &hash, &err));
    TRY(vd_exec_init(&exec, NULL, &state, &err));
    for (int s = 0; s <= TOKENS && !portable_failures; s++) {
        if (s > 0)
            TRY(vd_exec_step(&exec, NULL, &state, NULL, &err));
        TRY(vd_state_hash(ro, &x->program, &hash, &state, NULL, &x->state[s], &err));
        vd_hex(x->state[s].b, VD_HASH_SIZE, text);
        printf("prompt %d, state %d %s\n", x->key[0], s, text);
    }
    vd_state_free(&state);
}

/* ---- prompts run together ---- */

typedef struct {
    const item *item;
    int states, differ;
} comparison;

static vd_status compare(void *user, const vd_batch_state *s, vd_err *unused) {
    comparison *c = user;
    (void)unused;
    c->states++;
    c->differ += !vd_hash_equal(s->commitment, &c->item[s->item].state[s->state->step]);
    return VD_OK;
}

typedef struct {
    uint32_t batch;
    int64_t chunk;
    int threads;
    const char *isa; /* NULL: the best of this machine */
} setting;

static void run_together(const item *x, const setting *s) {
    comparison c = {.item = x};
    const vd_batch_options options = {2, s->chunk, compare, &c};
    vd_exec exec = {.program = &x[0].program, .data = x[0].data};
    vd_batch *b = NULL;
    CHECK(ro_ctx_create(
              &(ro_options){.size = sizeof(ro_options), .threads = s->threads, .backend = s->isa},
              &exec.ro) == RO_OK,
          "%s", ro_ctx_error(NULL));
    TRY(vd_batch_create(&exec, &options, &b, &err));
    for (uint32_t next = 0; !portable_failures && (next < PROMPTS || vd_batch_count(b) > 0);) {
        for (; next < PROMPTS && vd_batch_count(b) < s->batch; next++)
            TRY(vd_batch_add(b, next, &x[next].program, x[next].data, NULL, &err));
        TRY(vd_batch_pass(b, &err));
    }
    CHECK(c.states == PROMPTS * (TOKENS + 1) && c.differ == 0,
          "batch %u, chunk %d, %d threads, %s: %d of %d states differ", s->batch, (int)s->chunk,
          s->threads, ro_ctx_backend(exec.ro), c.differ, c.states);
    vd_batch_destroy(b);
    ro_ctx_destroy(exec.ro);
}

/* For any two of batch, chunk, threads and instruction set, all pairs of their values occur. */
static const setting settings[] = {
    {1, VD_BATCH_ROWS_MAX, 1, NULL},
    {1, 1, 3, "scalar"},
    {2, 1, 1, "scalar"},
    {2, VD_BATCH_ROWS_MAX, 3, NULL},
    {7, VD_BATCH_ROWS_MAX, 1, "scalar"},
    {7, 1, 3, NULL},
};

void check_generations(void) {
    ro_ctx *ro;
    decoder *d = calloc(1, sizeof *d);
    item *x = calloc(PROMPTS, sizeof *x);
    CHECK(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 2}, &ro) == RO_OK,
          "%s", ro_ctx_error(NULL));
    for (int m = 0; m < (int)(sizeof models / sizeof *models) && !portable_failures; m++) {
        printf("generation, model %d\n", m);
        open_decoder(d, &models[m]);
        for (uint32_t i = 0; i < PROMPTS; i++)
            open_item(&x[i], d, i);
        for (uint32_t i = 0; i < PROMPTS && !portable_failures; i++)
            run_alone(&x[i], ro);
        for (size_t s = 0; s < sizeof settings / sizeof *settings && !portable_failures; s++)
            run_together(x, &settings[s]);
        for (uint32_t i = 0; i < PROMPTS; i++)
            vd_program_free(&x[i].program);
        close_decoder(d);
    }
    ro_ctx_destroy(ro);
    free(x);
    free(d);
}
