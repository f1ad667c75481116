/* Programs run together have the same states in every setting: all pairs of values of
 * any two of batch, chunk of prompts, threads and instruction set occur. BATCH_MATRIX in the
 * environment: full (64 prompts of up to 500 tokens, 256 new ones each), or 124m (a GPT-2). */
#include "tests/support/random_model.h"
#include "verde/exec/batch.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* ---- sizes ---- */

typedef struct {
    uint32_t prompts;
    int64_t longest, tokens; /* longest: of a prompt; tokens: generated */
} matrix_size;

static bool asked_for(const char *name) {
    const char *value = getenv("BATCH_MATRIX");
    return value && strcmp(value, name) == 0;
}

static matrix_size size_of_matrix(void) {
    return asked_for("full")   ? (matrix_size){64, 500, 256}
           : asked_for("124m") ? (matrix_size){3, 70, 5}
                               : (matrix_size){8, 70, 6};
}

/* ---- prompts ---- */

typedef struct {
    int32_t *prompt, key[2];
    vd_program program;
    const void *data[TEST_MODEL_DATA_MAX];
    vd_hash *state; /* tokens + 1 states of the first setting */
} matrix_item;

typedef struct {
    matrix_size size;
    matrix_item *item;
    bool first; /* is this the first setting? */
    uint64_t states, differ;
} matrix;

static void open_matrix_item(matrix_item *m, const test_model *model, const matrix_size *size,
                             uint32_t number) {
    const vd_generation how = {.max_tokens = size->tokens,
                               .temperature = 1,
                               .top_k = 50,
                               .top_p = VD_TOP_P_ONE / 20 * 19,
                               .seed = 7,
                               .repetition_penalty = 1,
                               .best = 1};
    /* 1, the longest, and lengths in between */
    const vd_prompt_form form = {.count = 1 + number * 37 % size->prompts * (size->longest - 1) /
                                                  (size->prompts - 1)};
    vd_err err = {0};
    m->prompt = malloc((size_t)form.count * sizeof *m->prompt);
    m->state = calloc((size_t)size->tokens + 1, sizeof *m->state);
    m->key[0] = (int32_t)number;
    for (int64_t i = 0; i < form.count; i++)
        m->prompt[i] = (int32_t)((number * 31 + i * i) % model->training.model.vocab);
    cr_assert(vd_generation_program(&model->training, &how, &form, &m->program, &err) == VD_OK,
              "%s", err.text);
    m->data[0] = m->prompt, m->data[1] = m->key;
    for (uint32_t i = 0; i < model->count; i++)
        m->data[2 + i] = model->weight[i];
}

static void close_matrix_item(matrix_item *m) {
    vd_program_free(&m->program);
    free(m->prompt);
    free(m->state);
}

static vd_status compare_state(void *user, const vd_batch_state *s, vd_err *err) {
    matrix *m = user;
    vd_hash *kept = &m->item[s->item].state[s->state->step];
    (void)err;
    m->states++;
    if (m->first)
        *kept = *s->commitment;
    m->differ += !vd_hash_equal(kept, s->commitment);
    return VD_OK;
}

/* ---- settings ---- */

typedef struct {
    uint32_t batch;
    int64_t chunk;
    int threads;
    const char *isa;
} matrix_setting;

/* Returns setting i of 12: for any two of the four, all pairs of values occur. */
static matrix_setting setting_of(int i) {
    static const uint32_t batch[] = {1, 2, 7, 64};
    static const int64_t chunk[] = {VD_BATCH_ROWS_MAX, 1, 64};
    static const char *const isa[] = {"avx512", "scalar", "avx2"};
    const int b = i / 3, c = i % 3;
    return (matrix_setting){batch[b], chunk[c], 1 + (b + c) % 3, isa[(b + 2 * c) % 3]};
}

static void run_setting(matrix *m, const matrix_setting *s) {
    const vd_program *program = &m->item[0].program;
    const ro_options own = {.size = sizeof own, .threads = s->threads};
    const ro_options options = {.size = sizeof options, .threads = s->threads, .backend = s->isa};
    const vd_batch_options how = {2, s->chunk, compare_state, m};
    vd_exec exec = {.program = program, .data = m->item[0].data};
    vd_batch *b;
    vd_err err = {0};
    m->states = m->differ = 0;
    if (ro_ctx_create(&options, &exec.ro) != RO_OK) /* this machine lacks the instruction set */
        cr_assert(ro_ctx_create(&own, &exec.ro) == RO_OK);
    cr_assert(vd_batch_create(&exec, &how, &b, &err) == VD_OK, "%s", err.text);
    for (uint32_t next = 0; next < m->size.prompts || vd_batch_count(b) > 0;) {
        for (; next < m->size.prompts && vd_batch_count(b) < s->batch; next++)
            cr_assert(vd_batch_add(b, next, &m->item[next].program, m->item[next].data, NULL,
                                   &err) == VD_OK,
                      "%s", err.text);
        cr_assert(vd_batch_pass(b, &err) == VD_OK, "%s", err.text);
    }
    vd_batch_destroy(b);
    ro_ctx_destroy(exec.ro);
    cr_expect(m->states == m->size.prompts * (uint64_t)(m->size.tokens + 1));
    cr_expect(m->differ == 0, "batch %u, chunk %d, %d threads, %s: %llu of %llu states differ",
              s->batch, (int)s->chunk, s->threads, s->isa, (unsigned long long)m->differ,
              (unsigned long long)m->states);
}

static void check_matrix(const vd_model *model, int settings) {
    test_model *weights = malloc(sizeof *weights);
    matrix m = {.size = size_of_matrix()};
    test_model_open(weights, model);
    m.item = calloc(m.size.prompts, sizeof *m.item);
    for (uint32_t i = 0; i < m.size.prompts; i++)
        open_matrix_item(&m.item[i], weights, &m.size, i);
    for (int i = 0; i < settings; i++) {
        const matrix_setting s = setting_of(i * 12 / settings);
        m.first = i == 0;
        run_setting(&m, &s);
    }
    for (uint32_t i = 0; i < m.size.prompts; i++)
        close_matrix_item(&m.item[i]);
    test_model_close(weights);
    free(weights);
    free(m.item);
}

static const vd_model wide_gpt2 = {.kind = VD_MODEL_GPT2,
                                   .vocab = 1000,
                                   .context = 1024,
                                   .layers = 2,
                                   .heads = 4,
                                   .channels = 128};
static const vd_model large_gpt2 = {.kind = VD_MODEL_GPT2,
                                    .vocab = 50257,
                                    .context = 1024,
                                    .layers = 12,
                                    .heads = 12,
                                    .channels = 768};

Test(batch_matrix, every_setting_gives_the_same_states, .timeout = 2400) {
    if (asked_for("124m")) {
        check_matrix(&large_gpt2, 2);
        return;
    }
    check_matrix(&wide_gpt2, 12);
    check_matrix(&test_models[1], 12);
}
