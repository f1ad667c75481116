/* The divisor of BERT's loss: the number of hidden tokens of a step, without padding, over all its
 * micro-batches. */
#include "repops/op_optimizer.h"
#include "models/models.h"
#include "verde/exec/exec.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEQUENCE = 24, BATCH = 4, TOKENS = BATCH * SEQUENCE + 1, VOCAB = 20, PAD = 3 };

typedef struct {
    vd_program program;
    uint8_t tokens[TOKENS];
    double loss, losses;    /* as reported; summed over all tokens */
    int64_t hidden, padded; /* labels that name a token; padding tokens */
    bool zero_gradients;
} step;

static void open_step(step *s, int64_t micro_batches, float mask_rate) {
    const vd_training training = {
        .model = {VD_MODEL_BERT, .vocab = VOCAB, .context = SEQUENCE, .layers = 1, .heads = 2,
                  .channels = 8, .dropout = 0.1f, .mask_rate = mask_rate, .pad = PAD},
        .optimizer = {.lr = 1e-2f, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-8f, .clip_norm = 1},
        .seed = 6,
        .batch = BATCH,
        .micro_batches = micro_batches,
        .sequence = SEQUENCE,
        .steps = 1,
        .checkpoint_interval = 1,
        .data_dtype = RO_U8,
        .data_count = TOKENS,
    };
    vd_err err;
    *s = (step){.zero_gradients = true};
    cr_assert(vd_training_program(&training, &s->program, &err) == VD_OK, "%s", err.text);
    /* A third of the tokens is padding, unevenly over the windows. */
    for (int i = 0; i < TOKENS; i++)
        s->tokens[i] = i % SEQUENCE < 4 * (i / SEQUENCE) ? PAD : (uint8_t)(i * 7 % (VOCAB - 1));
}

static bool ends_with(const char *name, const char *end) {
    const size_t length = strlen(name), wanted = strlen(end);
    return length >= wanted && strcmp(name + length - wanted, end) == 0;
}

static void see_gradient(step *s, const float *gradient, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        s->zero_gradients &= gradient[i] == 0;
}

static bool see_node(void *user, uint32_t node, const void *const *input, const void *output) {
    step *s = user;
    const vd_node *n = vd_node_stored(&s->program.step, node);
    const int64_t count = ro_shape_numel(&n->shape);
    const float *values = output;
    const int32_t *labels = output;
    if (ends_with(vd_node_name(&s->program.step, node).text, ".mask.labels"))
        for (int64_t i = 0; i < count; i++)
            s->hidden += labels[i] >= 0;
    if (ends_with(vd_node_name(&s->program.step, node).text, ".mask.real"))
        for (int64_t i = 0; i < count; i++)
            s->padded += values[i] == 0;
    if (ends_with(vd_node_name(&s->program.step, node).text, ".loss.xent"))
        for (int64_t i = 0; i < count; i++)
            s->losses += (double)values[i];
    if (n->op == RO_OP_ADAMW_M)
        see_gradient(s, input[1], count);
    return true;
}

/* Is every element of the state after the step a number? */
static bool run_step(step *s) {
    vd_exec exec = {.program = &s->program, .data = (const void *[]){s->tokens}, .unfused = true};
    const vd_observer observer = {see_node, s};
    vd_state state;
    vd_err err;
    float loss;
    bool numbers = true;
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &exec.ro) ==
              RO_OK);
    cr_assert(vd_exec_init(&exec, NULL, &state, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_exec_step(&exec, &observer, &state, &loss, &err) == VD_OK, "%s", err.text);
    s->loss = (double)loss;
    for (uint32_t i = 0; i < state.count; i++)
        for (int64_t e = 0; e < ro_shape_numel(&s->program.leaf[i].shape); e++)
            numbers &= isfinite((double)((const float *)state.tensor[i])[e]) != 0;
    vd_state_free(&state);
    ro_ctx_destroy(exec.ro);
    return numbers;
}

Test(bert, loss_is_the_mean_over_hidden_tokens_of_all_micro_batches) {
    for (int64_t micro_batches = 1; micro_batches <= BATCH; micro_batches *= 2) {
        step s;
        open_step(&s, micro_batches, 0.3f);
        cr_expect(run_step(&s));
        cr_assert(s.padded > TOKENS / 5 && s.hidden > 4, "%lld hidden, %lld padding",
                  (long long)s.hidden, (long long)s.padded);
        const double mean = s.losses / (double)s.hidden;
        cr_expect(fabs(s.loss - mean) < 1e-6 * mean, "%lld micro-batches: %g, the mean is %g",
                  (long long)micro_batches, s.loss, mean);
        cr_expect(!s.zero_gradients);
        vd_program_free(&s.program);
    }
}

Test(bert, step_that_hides_nothing_has_loss_0_and_gradients_0) {
    for (int64_t micro_batches = 1; micro_batches <= BATCH; micro_batches *= 2) {
        step s;
        open_step(&s, micro_batches, 0.001f);
        cr_expect(run_step(&s), "a weight is no number");
        cr_assert(s.hidden == 0, "%lld hidden: choose another seed", (long long)s.hidden);
        cr_expect(s.loss == 0, "loss %g", s.loss);
        cr_expect(s.zero_gradients);
        vd_program_free(&s.program);
    }
}
