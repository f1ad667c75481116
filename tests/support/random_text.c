#include "tests/support/random_text.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/support/dispute.h"

void test_text_open(test_text *a, const test_model *m, const vd_generation *how, int64_t number,
                    int64_t count) {
    const vd_prompt_form form = {.count = count};
    uint64_t random = (uint64_t)number;
    vd_err err = {0};
    *a = (test_text){.key = {(int32_t)number, 3}};
    for (int64_t i = 0; i < count; i++)
        a->prompt[i] = (int32_t)(test_random(&random) % (uint64_t)m->training.model.vocab);
    cr_assert(vd_generation_program(&m->training, how, &form, &a->program, &err) == VD_OK, "%s",
              err.text);
    cr_assert(vd_program_hash(&a->program, &a->hash, &err) == VD_OK);
    const uint32_t own = how->greedy ? 1 : 2;
    cr_assert(a->program.data_count == own + m->count);
    a->data[0] = a->prompt, a->data[1] = a->key;
    for (uint32_t i = 0; i < m->count; i++)
        a->data[own + i] = m->weight[i];
}

void test_text_run(test_text *a, ro_ctx *ro) {
    const vd_exec exec = {.program = &a->program, .ro = ro, .data = a->data, .unfused = true};
    vd_state state;
    vd_err err = {0};
    cr_assert(vd_exec_init(&exec, NULL, &state, &err) == VD_OK, "%s", err.text);
    for (int64_t s = 0; s <= a->program.steps; s++) {
        if (s > 0)
            cr_assert(vd_exec_step(&exec, NULL, &state, NULL, &err) == VD_OK, "%s", err.text);
        cr_assert(vd_state_hash(NULL, &a->program, &a->hash, &state, NULL, &a->state[s], NULL) ==
                  VD_OK);
    }
    for (uint32_t i = 0; i < state.count; i++)
        a->last[i] = state.tensor[i];
    free(state.tensor);
}

void test_text_close(test_text *a) {
    for (uint32_t i = 0; i < a->program.leaf_count; i++)
        free(a->last[i]);
    vd_program_free(&a->program);
}

vd_generation test_text_how(bool greedy, bool all) {
    vd_generation how = {.max_tokens = TEST_TEXT_TOKENS,
                         .greedy = greedy,
                         .temperature = 1,
                         .top_p = VD_TOP_P_ONE,
                         .repetition_penalty = 1,
                         .best = -1};
    if (greedy && !all)
        return how;
    how.seed = 5;
    how.best = all ? 3 : 0;
    how.min_tokens = all ? 2 : 0;
    how.repetition_penalty = all ? 1.3f : 1;
    for (how.stop_count = 0; how.stop_count < 16; how.stop_count++)
        how.stop[how.stop_count] = 60 * how.stop_count;
    if (greedy)
        return how;
    how.temperature = 2.5f;
    how.top_k = all ? 700 : 0;
    how.top_p = VD_TOP_P_ONE / 10 * 9;
    return how;
}
