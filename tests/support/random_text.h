/* Texts that a small random model generates, one at a time and node by node. */
#ifndef TEST_RANDOM_TEXT_H
#define TEST_RANDOM_TEXT_H

#include "tests/support/random_model.h"
#include "verde/exec/exec.h"

enum { TEST_TEXT_PROMPT_MAX = 150, TEST_TEXT_TOKENS = 9, TEST_TEXT_LEAVES_MAX = 128 };

typedef struct {
    int32_t prompt[TEST_TEXT_PROMPT_MAX], key[2];
    vd_program program;
    const void *data[TEST_MODEL_DATA_MAX];
    vd_hash hash, state[TEST_TEXT_TOKENS + 1];
    void *last[TEST_TEXT_LEAVES_MAX]; /* of the last state */
} test_text;

/* Opens a prompt of `count` random tokens; tokens and key depend on `number`. */
void test_text_open(test_text *out, const test_model *m, const vd_generation *how, int64_t number,
                    int64_t count);
void test_text_run(test_text *a, ro_ctx *ro);
void test_text_close(test_text *a);

/* Returns settings; all: with penalties, stops, minimum length, top-k and the best tokens, too. */
vd_generation test_text_how(bool greedy, bool all);

#endif
