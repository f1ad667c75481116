/* Programs that continue prompts or score texts: compared with transformers
 * (tests/vectors/generated), with a longer prompt, and with a training step. */
#include "models/models.h"
#include "tests/support/random_model.h"
#include "verde/commit/json.h"
#include "verde/exec/batch.h"
#include "verde/exec/exec.h"
#include "verde/job/config.h"
#include "verde/weights/weights.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MODELS "tests/vectors/pretrained/"
#define CASES  "tests/vectors/generated/cases.json"

enum {
    DATA_MAX = 64,
    PROMPT_MAX = 32,
    TOKENS = 6,
    BEST = 3,
    VOCAB = 64,
    CASES_BYTES_MAX = 1 << 20
};

/* ---- a model, and programs of it ---- */

typedef struct {
    vd_weights weights;
    vd_file_tensor *file;
    vd_training training;
} given_model;

static void open_model(given_model *m, const char *name) {
    char path[128];
    vd_err err = {0};
    const vd_config_choice choice = {.dropout = -1, .pad = -1};
    *m = (given_model){.training = {.evaluates = 1, .batch = 1, .micro_batches = 1}};
    snprintf(path, sizeof path, MODELS "%s", name);
    cr_assert(vd_weights_open(path, &m->weights, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_config_read(m->weights.config.data, m->weights.config.size, path, &choice,
                             &m->training.model, &err) == VD_OK,
              "%s", err.text);
    m->file = calloc(m->weights.count, sizeof *m->file);
    cr_assert(m->file);
    for (uint32_t i = 0; i < m->weights.count; i++) {
        m->file[i].name = m->weights.tensor[i].form.name;
        m->file[i].shape = m->weights.tensor[i].shape;
    }
    m->training.file = m->file;
    m->training.file_count = m->weights.count;
}

static void close_model(given_model *m) {
    vd_weights_close(&m->weights);
    free(m->file);
}

typedef struct {
    vd_program program;
    const void *data[DATA_MAX];
    int32_t prompt[PROMPT_MAX], key[2];
    vd_exec exec;
    vd_state state;
} token_run;

static void bind_data(token_run *r, const given_model *m) {
    cr_assert(r->program.data_count <= DATA_MAX);
    for (uint32_t i = 0; i < r->program.data_count; i++) {
        const vd_weight *w = vd_weights_find(&m->weights, r->program.data[i].tensor.name);
        r->data[i] = w ? w->data : i == 0 ? r->prompt : r->key;
    }
}

static void open_run(token_run *r, const given_model *m, const ro_options *options) {
    bind_data(r, m);
    r->exec = (vd_exec){.program = &r->program, .data = r->data};
    cr_assert(ro_ctx_create(options, &r->exec.ro) == RO_OK);
}

static void close_run(token_run *r) {
    vd_state_free(&r->state);
    ro_ctx_destroy(r->exec.ro);
    vd_program_free(&r->program);
}

static void start_on(token_run *r, const given_model *m, const vd_generation *how, int64_t key,
                     const int32_t *prompt, int64_t count, const ro_options *options) {
    const vd_prompt_form form = {.count = count};
    vd_err err = {0};
    *r = (token_run){.key = {(int32_t)(uint32_t)key, (int32_t)(uint32_t)(key >> 32)}};
    cr_assert(count <= PROMPT_MAX);
    memcpy(r->prompt, prompt, (size_t)count * sizeof *prompt);
    cr_assert(vd_generation_program(&m->training, how, &form, &r->program, &err) == VD_OK, "%s",
              err.text);
    open_run(r, m, options);
    cr_assert(vd_exec_init(&r->exec, NULL, &r->state, &err) == VD_OK, "%s", err.text);
}

static const ro_options one_thread = {.size = sizeof one_thread, .threads = 1};

static void start(token_run *r, const given_model *m, const vd_generation *how, int64_t key,
                  const int32_t *prompt, int64_t count) {
    start_on(r, m, how, key, prompt, count, &one_thread);
}

static void step_run(token_run *r) {
    vd_err err = {0};
    cr_assert(vd_exec_step(&r->exec, NULL, &r->state, NULL, &err) == VD_OK, "%s", err.text);
}

static uint32_t leaf_of(const token_run *r, const char *name) {
    for (uint32_t i = 0; i < r->program.leaf_count; i++)
        if (strcmp(r->program.leaf[i].name, name) == 0)
            return i;
    cr_assert_fail("no leaf %s", name);
    return 0;
}

static const int32_t *words_of(const token_run *r, const char *name) {
    return r->state.tensor[leaf_of(r, name)];
}

static const float *reals_of(const token_run *r, const char *name) {
    return r->state.tensor[leaf_of(r, name)];
}

static vd_generation greedy(int64_t tokens) {
    return (vd_generation){.max_tokens = tokens,
                           .greedy = 1,
                           .temperature = 1,
                           .top_p = VD_TOP_P_ONE,
                           .repetition_penalty = 1,
                           .best = 0};
}

/* ---- against transformers ---- */

static double number_or(const json_t *how, const char *name, double otherwise) {
    const json_t *value = json_object_get(how, name);
    return value ? json_number_value(value) : otherwise;
}

static vd_generation how_of(const json_t *how) {
    const json_t *stop = json_object_get(how, "stop");
    vd_generation g = greedy(TOKENS);
    g.greedy = json_object_get(how, "seed") == NULL;
    g.seed = (uint64_t)json_integer_value(json_object_get(how, "seed"));
    g.temperature = (float)number_or(how, "temperature", 1);
    g.top_k = (int64_t)number_or(how, "top_k", 0);
    g.top_p = (int64_t)(number_or(how, "top_p", 1) * VD_TOP_P_ONE);
    g.repetition_penalty = (float)number_or(how, "repetition_penalty", 1);
    g.min_tokens = (int64_t)number_or(how, "min_tokens", 0);
    g.best = BEST;
    for (size_t i = 0; i < json_array_size(stop); i++)
        g.stop[g.stop_count++] = json_integer_value(json_array_get(stop, i));
    return g;
}

static int64_t take_words(const json_t *list, int32_t *out) {
    for (size_t i = 0; i < json_array_size(list); i++)
        out[i] = (int32_t)json_integer_value(json_array_get(list, i));
    return (int64_t)json_array_size(list);
}

/* The weights of the tokens that may be drawn, from the last step that ran: the output of node
 * "draw.kept". */
typedef struct {
    const token_run *run;
    int32_t weight[VOCAB];
    bool seen;
} drawn;

static bool see_node(void *user, uint32_t node, const void *const *input, const void *output) {
    drawn *d = user;
    const vd_node *n = vd_node_stored(&d->run->program.step, node);
    (void)input;
    if (strcmp(vd_node_name(&d->run->program.step, node).text, "draw.kept") == 0) {
        cr_assert(ro_shape_numel(&n->shape) == VOCAB);
        memcpy(d->weight, output, sizeof d->weight);
        d->seen = true;
    }
    return true;
}

static void compare_kept(const json_t *expected, const drawn *d) {
    bool may[VOCAB] = {false};
    cr_assert(d->seen);
    for (size_t i = 0; i < json_array_size(expected); i++)
        may[json_integer_value(json_array_get(expected, i))] = true;
    for (int i = 0; i < VOCAB; i++)
        cr_expect(may[i] == (d->weight[i] > 0), "token %d: %d", i, d->weight[i]);
}

static void compare_near(const json_t *expected, float x, const char *what) {
    cr_expect(fabs(json_number_value(expected) - (double)x) < 1e-4, "%s: %.9g, transformers %.9g",
              what, (double)x, json_number_value(expected));
}

static void compare_step(const json_t *c, const token_run *r, size_t i) {
    const json_t *best = json_array_get(json_object_get(c, "best"), i);
    const json_t *of_best = json_array_get(json_object_get(c, "of_best"), i);
    cr_expect_eq(words_of(r, "text")[i],
                 json_integer_value(json_array_get(json_object_get(c, "ids"), i)));
    compare_near(json_array_get(json_object_get(c, "log_probabilities"), i),
                 reals_of(r, "log_probability")[i], "log_probability");
    for (size_t k = 0; k < BEST; k++) {
        if (!json_object_get(c, "kept")) /* with top_k or top_p, ties are too close to compare */
            cr_expect_eq(words_of(r, "best")[BEST * i + k],
                         json_integer_value(json_array_get(best, k)));
        compare_near(json_array_get(of_best, k), reals_of(r, "best_log_probability")[BEST * i + k],
                     "best");
    }
}

static void run_case(const json_t *c, const given_model *m) {
    const vd_generation how = how_of(json_object_get(c, "how"));
    const json_t *kept = json_object_get(c, "kept");
    const size_t made = json_array_size(json_object_get(c, "ids"));
    int32_t prompt[PROMPT_MAX];
    token_run r;
    vd_err err = {0};
    const int64_t count = take_words(json_object_get(c, "prompt"), prompt);
    start(&r, m, &how, json_integer_value(json_object_get(c, "key")), prompt, count);
    for (size_t i = 0; i < TOKENS; i++) {
        drawn d = {.run = &r};
        const vd_observer observer = {see_node, &d};
        if (kept && i < made)
            cr_assert(vd_exec_observe(&r.exec, &observer, &r.state, &err) == VD_OK);
        step_run(&r);
        if (kept && i < made)
            compare_kept(json_array_get(kept, i), &d);
    }
    for (size_t i = 0; i < made; i++)
        compare_step(c, &r, i);
    cr_expect_eq(*words_of(&r, "count"), (int32_t)made);
    cr_expect_eq(*words_of(&r, "stopped"), json_is_true(json_object_get(c, "stopped")));
    close_run(&r);
}

static json_t *read_cases(void) {
    vd_buf text = {0};
    vd_err err = {0};
    cr_assert(vd_read_file(CASES, CASES_BYTES_MAX, &text, &err) == VD_OK, "%s", err.text);
    json_t *cases = json_loadb((const char *)text.data, text.size, 0, NULL);
    vd_buf_free(&text);
    cr_assert(json_array_size(cases) > 50);
    return cases;
}

Test(generate, tokens_and_log_probabilities_are_those_of_transformers) {
    json_t *cases = read_cases(), *c;
    given_model m = {0};
    const char *open = "";
    size_t i;
    json_array_foreach(cases, i, c) {
        const char *name = json_string_value(json_object_get(c, "model"));
        if (strcmp(name, open) != 0) {
            close_model(&m);
            open_model(&m, name);
            open = name;
        }
        run_case(c, &m);
    }
    close_model(&m);
    json_decref(cases);
}

/* ---- against a longer prompt ---- */

static const char *const decoders[] = {"gpt2",    "llama", "llama-bf16",   "llama-tied", "llama3",
                                       "mistral", "qwen2", "qwen2-window", "qwen3"};
enum { DECODERS = sizeof decoders / sizeof *decoders };

static const int32_t some_prompt[] = {9, 60, 9, 2, 31, 7};
enum { SOME = sizeof some_prompt / sizeof *some_prompt };

static void expect_same_leaf(const token_run *a, const token_run *b, const char *name) {
    const uint32_t i = leaf_of(a, name), k = leaf_of(b, name);
    const size_t size = vd_shape_bytes(&a->program.leaf[i].shape);
    cr_assert(ro_shape_equal(&a->program.leaf[i].shape, &b->program.leaf[k].shape));
    cr_expect(memcmp(a->state.tensor[i], b->state.tensor[k], size) == 0, "%s", name);
}

/* After some tokens, the caches equal those of a prompt that ends with these tokens, and everything
 * that follows is the same. */
static void compare_with_prefill(const given_model *m) {
    enum { MADE = 4, MORE = 4 };
    const vd_generation whole = greedy(MADE + MORE), rest = greedy(MORE);
    int32_t longer[SOME + MADE];
    token_run a, b;
    start(&a, m, &whole, 0, some_prompt, SOME);
    for (int i = 0; i < MADE; i++)
        step_run(&a);
    memcpy(longer, some_prompt, sizeof some_prompt);
    memcpy(longer + SOME, words_of(&a, "text"), MADE * sizeof *longer);
    start(&b, m, &rest, 0, longer, SOME + MADE);
    for (int step = 0;; step++) {
        for (uint32_t i = 0; i < 2 * (uint32_t)m->training.model.layers; i++)
            expect_same_leaf(&a, &b, a.program.leaf[i].name);
        expect_same_leaf(&a, &b, "token");
        if (step == MORE)
            break;
        step_run(&a);
        step_run(&b);
    }
    const float *made = reals_of(&a, "log_probability"), *again = reals_of(&b, "log_probability");
    cr_expect(memcmp(made + MADE, again, MORE * sizeof *made) == 0);
    close_run(&a);
    close_run(&b);
}

Test(generate, a_token_that_is_made_is_kept_as_one_of_the_prompt) {
    for (int i = 0; i < DECODERS; i++) {
        given_model m;
        open_model(&m, decoders[i]);
        compare_with_prefill(&m);
        close_model(&m);
    }
}

/* ---- against training ---- */

enum { LOSSES_MAX = 256 };

typedef struct {
    const vd_program *program;
    float loss[LOSSES_MAX];
    int64_t count;
} losses_seen;

static bool see_losses(void *user, uint32_t node, const void *const *input, const void *output) {
    losses_seen *l = user;
    const vd_node *n = vd_node_stored(&l->program->step, node);
    (void)input;
    if (strcmp(vd_node_name(&l->program->step, node).text, "m0.loss.xent") == 0) {
        l->count = ro_shape_numel(&n->shape);
        cr_assert(l->count <= LOSSES_MAX);
        memcpy(l->loss, output, (size_t)l->count * sizeof *l->loss);
    }
    return true;
}

/* Gives the losses of one window of a training step over `count` tokens. */
static void train_on(const given_model *m, const int32_t *text, int64_t count, losses_seen *out) {
    vd_training t = m->training;
    token_run r = {0};
    const vd_observer observer = {see_losses, out};
    vd_err err = {0};
    t.evaluates = 0;
    t.sequence = count - 1;
    t.steps = t.checkpoint_interval = 1;
    t.data_dtype = RO_I32;
    t.data_count = count;
    t.optimizer = (vd_optimizer){.lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.9f, .eps = 1e-8f};
    cr_assert(vd_training_program(&t, &r.program, &err) == VD_OK, "%s", err.text);
    memcpy(r.prompt, text, (size_t)count * sizeof *text);
    open_run(&r, m, &one_thread);
    out->program = &r.program;
    cr_assert(vd_exec_init(&r.exec, NULL, &r.state, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_exec_observe(&r.exec, &observer, &r.state, &err) == VD_OK, "%s", err.text);
    cr_assert_eq(out->count, count - 1);
    close_run(&r);
}

static void score_on(const given_model *m, const int32_t *text, int64_t count, float *out) {
    const vd_prompt_form form = {.count = count};
    token_run r = {0};
    vd_err err = {0};
    memcpy(r.prompt, text, (size_t)count * sizeof *text);
    cr_assert(vd_score_program(&m->training, &form, &r.program, &err) == VD_OK, "%s", err.text);
    open_run(&r, m, &one_thread);
    cr_assert(vd_exec_init(&r.exec, NULL, &r.state, &err) == VD_OK, "%s", err.text);
    step_run(&r);
    memcpy(out, reals_of(&r, "log_probability"), (size_t)(count - 1) * sizeof *out);
    close_run(&r);
}

static void compare_with_training(const given_model *m) {
    enum { MADE = 8, ALL = SOME + MADE };
    const vd_generation how = greedy(MADE);
    int32_t text[ALL];
    float scored[ALL - 1];
    losses_seen trained = {0};
    token_run r;
    start(&r, m, &how, 0, some_prompt, SOME);
    for (int i = 0; i < MADE; i++)
        step_run(&r);
    memcpy(text, some_prompt, sizeof some_prompt);
    memcpy(text + SOME, words_of(&r, "text"), MADE * sizeof *text);
    train_on(m, text, ALL, &trained);
    score_on(m, text, ALL, scored);
    for (int i = 0; i < ALL - 1; i++)
        trained.loss[i] = -trained.loss[i];
    cr_expect(memcmp(trained.loss, scored, sizeof scored) == 0);
    cr_expect(memcmp(reals_of(&r, "log_probability"), scored + SOME - 1, MADE * sizeof *scored) ==
              0);
    close_run(&r);
}

Test(generate, log_probabilities_are_those_of_a_training_step) {
    for (int i = 0; i < DECODERS; i++) {
        given_model m;
        open_model(&m, decoders[i]);
        compare_with_training(&m);
        close_model(&m);
    }
}

/* ---- a rollout, against its trainer ---- */

enum { ROLLOUTS = 3, ROLLOUT_TOKENS = 40, ROLLOUT_MOST = 200, STARTED_MAX = 128 };

typedef struct {
    int32_t text[ROLLOUT_MOST], key[2]; /* prompt and made tokens; the draws' key */
    int64_t prompt;
    vd_program program;
    const void *data[TEST_MODEL_DATA_MAX];
    float log_probability[ROLLOUT_TOKENS];
} rollout;

static const void *leaf_in(const vd_program *p, const vd_state *state, const char *name) {
    uint32_t i = 0;
    while (strcmp(p->leaf[i].name, name) != 0)
        i++;
    return state->tensor[i];
}

static vd_status take_rollout(void *user, const vd_batch_state *s, vd_err *err) {
    rollout *r = (rollout *)user + s->item;
    (void)err;
    if (!s->last)
        return VD_OK;
    memcpy(r->text + r->prompt, leaf_in(s->program, s->state, "text"),
           ROLLOUT_TOKENS * sizeof *r->text);
    memcpy(r->log_probability, leaf_in(s->program, s->state, "log_probability"),
           sizeof r->log_probability);
    return VD_OK;
}

static void open_rollout(rollout *r, const test_model *m, int number) {
    const vd_generation how = {.max_tokens = ROLLOUT_TOKENS,
                               .temperature = 1.5f,
                               .top_k = 300,
                               .top_p = VD_TOP_P_ONE / 10 * 9,
                               .seed = 3,
                               .repetition_penalty = 1,
                               .best = 0};
    vd_err err = {0};
    *r = (rollout){.key = {number, 0}, .prompt = 1 + 79 * number}; /* 1, 80 or 159 tokens */
    const vd_prompt_form form = {.count = r->prompt};
    for (int64_t i = 0; i < r->prompt; i++)
        r->text[i] = (int32_t)((i * i * 7 + i + number) % m->training.model.vocab);
    cr_assert(vd_generation_program(&m->training, &how, &form, &r->program, &err) == VD_OK, "%s",
              err.text);
    r->data[0] = r->text, r->data[1] = r->key;
    for (uint32_t i = 0; i < m->count; i++)
        r->data[2 + i] = m->weight[i];
}

/* Runs all rollouts in one batch: some read their prompts in chunks while others make tokens. */
static void roll_out(rollout *r) {
    const vd_batch_options how = {.own_data = 2, .chunk = 37, .reached = take_rollout, .user = r};
    vd_exec exec = {.program = &r[0].program, .data = r[0].data};
    vd_batch *b;
    vd_err err = {0};
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 2}, &exec.ro) ==
              RO_OK);
    cr_assert(vd_batch_create(&exec, &how, &b, &err) == VD_OK, "%s", err.text);
    for (uint32_t i = 0; i < ROLLOUTS; i++)
        cr_assert(vd_batch_add(b, i, &r[i].program, r[i].data, NULL, &err) == VD_OK, "%s",
                  err.text);
    while (vd_batch_count(b) > 0)
        cr_assert(vd_batch_pass(b, &err) == VD_OK, "%s", err.text);
    vd_batch_destroy(b);
    ro_ctx_destroy(exec.ro);
}

/* The training starts from given values of all its leaves: weights, and moments of 0. */
static uint32_t start_training(const test_model *m, vd_training *t, vd_file_tensor *start,
                               char name[][VD_NAME_SIZE], const void **data) {
    static const float zeros[1 << 18];
    vd_program fresh;
    vd_err err = {0};
    t->start = NULL, t->start_count = 0;
    cr_assert(vd_training_program(t, &fresh, &err) == VD_OK, "%s", err.text);
    cr_assert(fresh.leaf_count <= STARTED_MAX);
    for (uint32_t i = 0; i < fresh.leaf_count; i++) {
        strcpy(name[i], fresh.leaf[i].name);
        start[i] = (vd_file_tensor){.name = name[i], .shape = fresh.leaf[i].shape};
        cr_assert(vd_shape_bytes(&start[i].shape) <= sizeof zeros);
        data[i] = zeros;
        for (uint32_t k = 0; k < m->count; k++)
            if (strcmp(name[i], m->name[k]) == 0)
                data[i] = m->weight[k];
    }
    t->start = start, t->start_count = fresh.leaf_count;
    vd_program_free(&fresh);
    return t->start_count;
}

/* Gives the losses that a training step from the same weights computes on the text. */
static void train_on_rollout(const test_model *m, const rollout *r, losses_seen *out) {
    static vd_file_tensor start[STARTED_MAX];
    static char name[STARTED_MAX][VD_NAME_SIZE];
    vd_training t = m->training;
    vd_program program;
    const void *data[1 + STARTED_MAX] = {r->text};
    const vd_observer observer = {see_losses, out};
    vd_exec exec = {.program = &program, .data = data};
    vd_state state;
    vd_err err = {0};
    t.evaluates = 0;
    t.data_count = r->prompt + ROLLOUT_TOKENS;
    t.sequence = t.data_count - 1;
    t.steps = t.checkpoint_interval = 1;
    t.data_dtype = RO_I32;
    t.optimizer = (vd_optimizer){.kind = VD_OPTIMIZER_SGD, .lr = 1};
    const uint32_t started = start_training(m, &t, start, name, data + 1);
    cr_assert(vd_training_program(&t, &program, &err) == VD_OK, "%s", err.text);
    cr_assert(program.data_count == 1 + started);
    cr_assert(ro_ctx_create(&one_thread, &exec.ro) == RO_OK);
    out->program = &program;
    cr_assert(vd_exec_init(&exec, NULL, &state, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_exec_observe(&exec, &observer, &state, &err) == VD_OK, "%s", err.text);
    vd_state_free(&state);
    ro_ctx_destroy(exec.ro);
    vd_program_free(&program);
}

/* The trainer computes for each token, bit by bit, the log probability with which it was drawn,
 * even over several blocks of keys. Reinforcement learning relies on this. */
Test(generate, a_rollout_has_the_log_probabilities_of_its_trainer) {
    for (int model = 0; model < TEST_MODELS; model++) {
        test_model *m = malloc(sizeof *m);
        rollout *r = calloc(ROLLOUTS, sizeof *r);
        int differ = 0;
        test_model_open(m, &test_models[model]);
        for (int i = 0; i < ROLLOUTS; i++)
            open_rollout(&r[i], m, i);
        roll_out(r);
        for (int i = 0; i < ROLLOUTS; i++) {
            losses_seen seen = {0};
            train_on_rollout(m, &r[i], &seen);
            cr_assert_eq(seen.count, r[i].prompt + ROLLOUT_TOKENS - 1);
            for (int k = 0; k < ROLLOUT_TOKENS; k++) {
                const float trained = -seen.loss[r[i].prompt - 1 + k];
                differ += memcmp(&trained, &r[i].log_probability[k], sizeof trained) != 0;
            }
            vd_program_free(&r[i].program);
        }
        cr_expect(differ == 0, "%d of %d differ", differ, ROLLOUTS * ROLLOUT_TOKENS);
        test_model_close(m);
        free(r);
        free(m);
    }
}

/* ---- classes, against an evaluation ---- */

enum { RECORD_MAX = 4096, CLASSES = 3, SEQUENCE = 9 };

/* The record holds a label and an image or a sequence, with one more token behind a sequence. */
static int64_t make_record(const given_model *m, uint8_t *record, int32_t *given) {
    const bool image = m->training.model.kind == VD_MODEL_RESNET;
    const int64_t count = image ? VD_IMAGE_PLANES * 32 * 32 : SEQUENCE;
    for (int64_t i = 0; i < count; i++) {
        given[i] = (int32_t)((i * i + 7 * i + 3) % (image ? 256 : 63));
        record[1 + i] = (uint8_t)given[i];
    }
    record[1 + count] = 0;
    return count;
}

static float evaluated(const given_model *m, const uint8_t *record, int64_t count) {
    vd_training t = m->training;
    token_run r = {0};
    losses_seen seen = {.program = &r.program};
    const vd_observer observer = {see_losses, &seen};
    vd_err err = {0};
    const bool image = t.model.kind == VD_MODEL_RESNET;
    t.sequence = image ? 1 : count;
    t.steps = t.checkpoint_interval = 1;
    t.data_dtype = RO_U8;
    t.data_count = 1 + count + !image;
    cr_assert(vd_training_program(&t, &r.program, &err) == VD_OK, "%s", err.text);
    open_run(&r, m, &one_thread);
    r.data[0] = record;
    cr_assert(vd_exec_init(&r.exec, NULL, &r.state, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_exec_observe(&r.exec, &observer, &r.state, &err) == VD_OK, "%s", err.text);
    cr_assert_eq(seen.count, 1);
    close_run(&r);
    return seen.loss[0];
}

static void score_classes(const given_model *m, const int32_t *given, int64_t count, float *out) {
    const vd_prompt_form form = {.count = count};
    token_run r = {0};
    vd_err err = {0};
    cr_assert(vd_score_program(&m->training, &form, &r.program, &err) == VD_OK, "%s", err.text);
    open_run(&r, m, &one_thread);
    r.data[0] = given;
    cr_assert(vd_exec_init(&r.exec, NULL, &r.state, &err) == VD_OK, "%s", err.text);
    step_run(&r);
    memcpy(out, reals_of(&r, VD_CLASSES_LEAF), CLASSES * sizeof *out);
    close_run(&r);
}

Test(generate, classes_are_scored_as_an_evaluation_sees_them) {
    static const char *const names[] = {"bert-classes", "resnet"};
    static uint8_t record[RECORD_MAX];
    static int32_t given[RECORD_MAX];
    for (int i = 0; i < 2; i++) {
        given_model m;
        float each[CLASSES];
        open_model(&m, names[i]);
        m.training.model.image = 32;
        const int64_t count = make_record(&m, record, given);
        score_classes(&m, given, count, each);
        for (uint8_t label = 0; label < CLASSES; label++) {
            record[0] = label;
            cr_expect_eq(-each[label], evaluated(&m, record, count), "%s: class %d", names[i],
                         label);
        }
        close_model(&m);
    }
}

/* ---- stops ---- */

static void expect_same_state(const token_run *a, const vd_state *b) {
    for (uint32_t i = 0; i < a->program.leaf_count; i++)
        cr_expect(memcmp(a->state.tensor[i], b->tensor[i],
                         vd_shape_bytes(&a->program.leaf[i].shape)) == 0,
                  "%s", a->program.leaf[i].name);
}

/* The third token of a free run becomes the stop token of another run, which must then keep its
 * state. */
static void stop_at_third(const given_model *m, vd_generation how) {
    enum { STOP = 3 };
    token_run free_run, r;
    vd_state then;
    vd_err err = {0};
    start(&free_run, m, &how, 77, some_prompt, SOME);
    for (int i = 0; i < TOKENS; i++)
        step_run(&free_run);
    const int32_t *text = words_of(&free_run, "text");
    cr_assert(text[STOP - 1] != text[0] && text[STOP - 1] != text[1]);
    how.stop[how.stop_count++] = text[STOP - 1] == 0 ? 1 : 0;
    how.stop[how.stop_count++] = text[STOP - 1];
    start(&r, m, &how, 77, some_prompt, SOME);
    for (int i = 0; i < STOP; i++)
        step_run(&r);
    cr_expect(memcmp(words_of(&r, "text"), text, STOP * sizeof *text) == 0);
    cr_expect(*words_of(&r, "stopped") == 1 && *words_of(&r, "count") == STOP);
    then = r.state;
    r.state = (vd_state){0};
    token_run again = r;
    again.state = (vd_state){0};
    cr_assert(vd_exec_init(&again.exec, NULL, &again.state, &err) == VD_OK);
    for (int i = 0; i < TOKENS; i++)
        step_run(&again);
    expect_same_state(&again, &then);
    vd_state_free(&then);
    close_run(&free_run);
    close_run(&again);
}

Test(generate, after_a_stop_nothing_changes) {
    given_model m;
    vd_generation how = greedy(TOKENS);
    open_model(&m, "llama");
    how.greedy = 0;
    how.seed = 5;
    how.temperature = 2;
    how.best = 2;
    how.repetition_penalty = 1.25f;
    stop_at_third(&m, how);
    close_model(&m);
}

/* ---- the same bytes however it is run ---- */

static void run_all(token_run *r) {
    for (int i = 0; i < TOKENS; i++)
        step_run(r);
}

Test(generate, threads_paths_and_fusion_change_nothing) {
    static const ro_options options[] = {
        {.size = sizeof(ro_options), .threads = 2},
        {.size = sizeof(ro_options), .threads = 3},
        {.size = sizeof(ro_options), .threads = 1, .backend = "scalar"},
        {.size = sizeof(ro_options), .threads = 1, .backend = "avx2"},
        {.size = sizeof(ro_options), .threads = 1, .backend = "avx512"},
        {.size = sizeof(ro_options), .threads = 1, .backend = "neon"}};
    given_model m;
    token_run first, r;
    vd_err err = {0};
    vd_generation how = greedy(TOKENS);
    how.greedy = 0;
    how.top_k = 20;
    open_model(&m, "qwen2");
    start(&first, &m, &how, 7, some_prompt, SOME);
    run_all(&first);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        ro_ctx *there = NULL;
        if (ro_ctx_create(&options[i], &there) != RO_OK)
            continue; /* this machine lacks the backend */
        ro_ctx_destroy(there);
        start_on(&r, &m, &how, 7, some_prompt, SOME, &options[i]);
        run_all(&r);
        expect_same_state(&r, &first.state);
        close_run(&r);
    }
    start(&r, &m, &how, 7, some_prompt, SOME);
    vd_state_free(&r.state);
    r.exec.unfused = true;
    cr_assert(vd_exec_init(&r.exec, NULL, &r.state, &err) == VD_OK);
    run_all(&r);
    expect_same_state(&r, &first.state);
    close_run(&r);
    close_run(&first);
    close_model(&m);
}

/* ---- what cannot be ---- */

static void refuse_program(const given_model *m, const vd_generation *how, int64_t count,
                           const char *why) {
    const vd_prompt_form form = {.count = count};
    vd_program program;
    vd_err err = {0};
    cr_expect_eq(vd_generation_program(&m->training, how, &form, &program, &err), VD_ERR_USAGE);
    cr_expect_str_eq(err.text, why);
}

Test(generate, programs_that_cannot_be_are_refused) {
    given_model m;
    vd_generation how = greedy(6);
    vd_program program;
    vd_err err = {0};
    open_model(&m, "gpt2");
    refuse_program(&m, &how, 12,
                   "a prompt of 12 tokens and max_tokens (6) take 17 positions, and the model has "
                   "16");
    how.stop[how.stop_count++] = VOCAB;
    refuse_program(&m, &how, 3, "stop: 64 is no token of a vocabulary of 64");
    cr_expect_eq(vd_score_program(&m.training, &(vd_prompt_form){.count = 18}, &program, &err),
                 VD_ERR_USAGE);
    cr_expect_str_eq(err.text, "a text that is scored must have at most 17 tokens, one more than "
                               "the model's context, got 18");
    m.training.model.kind = VD_MODEL_MLP;
    refuse_program(&m, &how, 3, "the model makes no text: only gpt2 and the models like llama do");
    close_model(&m);
}
