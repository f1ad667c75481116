/* Given answers are computed in one pass, with the bits of token-by-token generation. */
#include "tests/support/random_text.h"
#include "verde/exec/batch.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPTS = 9, AGAIN = 4, TOKENS = TEST_TEXT_TOKENS };

static const int64_t lengths[PROMPTS] = {1, 2, 150, 3, 64, 65, 1, 33, 129};

typedef struct {
    const test_text *text; /* answer i belongs to text i % PROMPTS */
    uint32_t first;        /* number of answer 0 */
    int64_t wrong;         /* position of a changed token in each answer; -1: none */
    uint32_t told;
    const char *what;
} checking;

static const void *leaf_named(const test_text *t, void *const *tensor, const char *name,
                              ro_shape *shape) {
    for (uint32_t i = 0; i < t->program.leaf_count; i++)
        if (strcmp(t->program.leaf[i].name, name) == 0) {
            *shape = t->program.leaf[i].shape;
            return tensor[i];
        }
    return NULL;
}

static int32_t word(const test_text *t, const char *name) {
    ro_shape shape;
    return *(const int32_t *)leaf_named(t, t->last, name, &shape);
}

/* Compares up to a changed token, including the token that would be right there. */
static void compare(const checking *c, uint32_t i, const vd_state *state, const char *name) {
    const test_text *t = &c->text[(c->first + i) % PROMPTS];
    ro_shape shape;
    const void *right = leaf_named(t, t->last, name, &shape);
    if (!right)
        return;
    const int64_t made = word(t, "count");
    const int64_t rows = c->wrong < 0 || c->wrong >= made ? made : c->wrong + 1;
    const size_t row = vd_shape_bytes(&shape) / TOKENS;
    cr_assert(memcmp(right, leaf_named(t, state->tensor, name, &shape), (size_t)rows * row) == 0,
              "%s: prompt %u of %d tokens: %s", c->what, c->first + i,
              (int)lengths[(c->first + i) % PROMPTS], name);
}

static vd_status answered(void *user, uint32_t i, const vd_state *state, int64_t stop,
                          vd_err *err) {
    checking *c = user;
    const test_text *t = &c->text[(c->first + i) % PROMPTS];
    (void)err;
    cr_assert(i == c->told++);
    compare(c, i, state, "text");
    compare(c, i, state, "log_probability");
    compare(c, i, state, "best");
    compare(c, i, state, "best_log_probability");
    if (c->wrong < 0)
        cr_expect(stop == (word(t, "stopped") ? word(t, "count") - 1 : -1), "%s: prompt %u: %d",
                  c->what, i, (int)stop);
    return VD_OK;
}

typedef struct {
    uint32_t together;
    int64_t chunk;
    int threads;
    const char *isa;
} batch_case;

static const batch_case cases[] = {
    {1, 4096, 1, NULL},  {2, 1, 2, NULL},     {PROMPTS * AGAIN, 4096, 3, NULL},
    {9, 7, 2, "scalar"}, {4, 100, 1, "avx2"}, {9, 160, 2, "avx512"}};

static void check(const test_text *t, uint32_t own_data, const batch_case *c, int64_t wrong) {
    char what[80];
    int32_t changed[PROMPTS][TOKENS];
    vd_batch_answer answer[PROMPTS * AGAIN];
    ro_ctx *ro;
    vd_batch *b;
    vd_err err = {0};
    snprintf(what, sizeof what, "%u together, chunk %d, %d threads, %s, wrong %d", c->together,
             (int)c->chunk, c->threads, c->isa ? c->isa : "own", (int)wrong);
    if (ro_ctx_create(
            &(ro_options){.size = sizeof(ro_options), .threads = c->threads, .backend = c->isa},
            &ro) != RO_OK)
        return; /* this machine lacks the instruction set */
    for (uint32_t i = 0; i < PROMPTS; i++) {
        ro_shape shape;
        memcpy(changed[i], leaf_named(&t[i], t[i].last, "text", &shape), sizeof changed[i]);
        if (wrong >= 0)
            changed[i][wrong] = (changed[i][wrong] + 1) % 1000;
    }
    for (uint32_t a = 0; a < PROMPTS * AGAIN; a++) {
        const uint32_t i = a % PROMPTS;
        answer[a] = (vd_batch_answer){&t[i].program, t[i].data, changed[i],
                                      wrong < 0 ? word(&t[i], "count") : TOKENS};
    }
    const vd_exec exec = {.program = &t[0].program, .ro = ro, .data = t[0].data};
    const vd_batch_options options = {.own_data = own_data, .chunk = c->chunk};
    cr_assert(vd_batch_create(&exec, &options, &b, &err) == VD_OK, "%s", err.text);
    const uint32_t answers = c->together > PROMPTS ? PROMPTS * AGAIN : PROMPTS;
    for (uint32_t i = 0; i < answers; i += c->together) {
        const uint32_t left = answers - i, count = c->together < left ? c->together : left;
        checking k = {t, i, wrong, 0, what};
        cr_assert(vd_batch_answers(b, &answer[i], count, answered, &k, &err) == VD_OK, "%s: %s",
                  what, err.text);
        cr_assert(k.told == count && vd_batch_count(b) == 0);
    }
    vd_batch_destroy(b);
    ro_ctx_destroy(ro);
}

static void check_model(const vd_model *model, int32_t fixed_bits, const vd_generation *how,
                        bool changes) {
    test_text *t = calloc(PROMPTS, sizeof *t);
    test_model *m = malloc(sizeof *m);
    ro_ctx *ro;
    test_model_open(m, model);
    m->training.products = vd_products_alike(fixed_bits);
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 2}, &ro) == RO_OK);
    for (int i = 0; i < PROMPTS; i++) {
        test_text_open(&t[i], m, how, i, lengths[i]);
        test_text_run(&t[i], ro);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(t, how->greedy ? 1 : 2, &cases[i], -1);
    for (int64_t wrong = 0; changes && wrong < TOKENS; wrong++)
        check(t, how->greedy ? 1 : 2, &cases[2], wrong);
    for (int i = 0; i < PROMPTS; i++)
        test_text_close(&t[i]);
    test_model_close(m);
    ro_ctx_destroy(ro);
    free(m);
    free(t);
}

Test(batch_answers, tokens_are_those_of_a_generation) {
    for (int i = 0; i < TEST_MODELS; i++)
        for (int greedy = 0; greedy < 2; greedy++) {
            const vd_generation how = test_text_how(greedy, false);
            check_model(&test_models[i], 0, &how, true);
        }
}

Test(batch_answers, so_they_are_with_stops_penalties_and_log_probabilities) {
    for (int i = 0; i < TEST_MODELS; i++)
        for (int greedy = 0; greedy < 2; greedy++) {
            vd_generation how = test_text_how(greedy, true);
            check_model(&test_models[i], 0, &how, false);
            how.stop_count = 0; /* each answer has all of its tokens, one of them changed */
            check_model(&test_models[i], 0, &how, true);
        }
}

/* Rows of logits so long that each is processed alone after the products. */
Test(batch_answers, so_they_are_of_a_large_vocabulary) {
    vd_model model = test_models[0];
    model.vocab = 20000;
    for (int greedy = 0; greedy < 2; greedy++) {
        const vd_generation how = test_text_how(greedy, true);
        check_model(&model, 0, &how, false);
    }
}

Test(batch_answers, so_they_are_of_products_with_integers) {
    const vd_generation how = test_text_how(false, true);
    check_model(&test_models[0], RO_FIXED_16, &how, false);
    check_model(&test_models[1], RO_FIXED_24, &how, false);
}

Test(batch_answers, rows_that_are_no_steps_of_the_program_are_refused) {
    const vd_generation how = test_text_how(true, false);
    test_text *t = calloc(1, sizeof *t);
    test_model *m = malloc(sizeof *m);
    ro_ctx *ro;
    vd_batch *b;
    vd_err err = {0};
    test_model_open(m, &test_models[0]);
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &ro) == RO_OK);
    test_text_open(t, m, &how, 0, 5);
    const vd_exec exec = {.program = &t->program, .ro = ro, .data = t->data};
    const vd_batch_options options = {.own_data = 1, .chunk = 1};
    cr_assert(vd_batch_create(&exec, &options, &b, &err) == VD_OK, "%s", err.text);
    const int32_t token[TOKENS + 1] = {0};
    for (int64_t rows = 0; rows <= TOKENS + 1; rows += TOKENS + 1) {
        const vd_batch_answer a = {&t->program, t->data, token, rows};
        cr_expect(vd_batch_answers(b, &a, 1, answered, NULL, &err) == VD_ERR_USAGE);
    }
    vd_batch_destroy(b);
    vd_program_free(&t->program);
    test_model_close(m);
    ro_ctx_destroy(ro);
    free(m);
    free(t);
}
