/* What providers state about their pace, and how it is used: a long prompt is read before the first
 * step. */
#include "models/models.h"
#include "verde/exec/estimate.h"
#include "verde/exec/run.h"
#include "verde/exec/source.h"
#include "verde/job/config.h"
#include "verde/protocol/pace.h"
#include "verde/weights/weights.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define MODEL "tests/vectors/pretrained/llama"

enum { DATA_MAX = 64, PROMPT_MAX = 6000 };

TestSuite(pace, .timeout = 120);

typedef struct {
    vd_weights weights;
    vd_training training;
    vd_program program;
    vd_exec exec;
    const void *data[DATA_MAX];
    int32_t prompt[PROMPT_MAX], key[2];
} bench;

static bench b;

static void open_model(int64_t positions) {
    const vd_config_choice choice = {.dropout = -1, .pad = -1};
    vd_err err = {0};
    b.training = (vd_training){.evaluates = 1, .batch = 1, .micro_batches = 1};
    cr_assert(vd_weights_open(MODEL, &b.weights, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_config_read(b.weights.config.data, b.weights.config.size, MODEL, &choice,
                             &b.training.model, &err) == VD_OK,
              "%s", err.text);
    b.training.model.context = positions;
}

static void build_program(int64_t prompt) {
    static vd_file_tensor file[DATA_MAX];
    const vd_prompt_form form = {.count = prompt};
    const vd_generation how = {.max_tokens = 4,
                               .greedy = 1,
                               .temperature = 1,
                               .top_p = VD_TOP_P_ONE,
                               .repetition_penalty = 1,
                               .best = 0};
    vd_err err = {0};
    open_model(prompt + how.max_tokens);
    cr_assert(b.weights.count <= DATA_MAX - 2);
    for (uint32_t i = 0; i < b.weights.count; i++) {
        file[i].name = b.weights.tensor[i].form.name;
        file[i].shape = b.weights.tensor[i].shape;
    }
    b.training.file = file;
    b.training.file_count = b.weights.count;
    cr_assert(vd_generation_program(&b.training, &how, &form, &b.program, &err) == VD_OK, "%s",
              err.text);
}

static void close_model(void) {
    vd_program_free(&b.program);
    vd_weights_close(&b.weights);
}

/* A step makes one token. The time to read the prompt has a cap of its own, and does not raise a
 * step's. */
Test(pace, a_long_prompt_has_its_own_cap) {
    build_program(PROMPT_MAX);
    const vd_program *p = &b.program;
    const vd_pace_caps caps = vd_pace_caps_of(p, 0), given = vd_pace_caps_of(p, 7000000);
    const vd_pace pace = {VD_PACE_US_LIMIT, VD_PACE_US_LIMIT, VD_PACE_US_LIMIT, 1};
    cr_expect(caps.step == VD_STEP_US_LEAST);
    cr_expect(caps.trace == (int64_t)(vd_estimate_terms(p, &p->init) / VD_TERMS_PER_US));
    cr_expect(caps.trace > 8 * caps.step, "%lld us", (long long)caps.trace);
    cr_expect(given.step == 7000000 && given.trace == caps.trace);
    const double trace = (double)caps.trace / 1e6, states = 1.0 + p->checkpoint_interval;
    cr_expect(vd_work_seconds(VD_WORK_STATES, p, &pace, &caps) == states);
    cr_expect(vd_work_seconds(VD_WORK_STEP, p, &pace, &caps) == states + 2 * trace);
    cr_expect(vd_work_seconds(VD_WORK_COMMIT, p, &pace, &caps) == 2 + trace);
    cr_expect(vd_work_seconds(VD_WORK_RUN, p, &pace, &caps) == (double)p->steps + trace);
    close_model();
}

Test(pace, nobody_knows_a_program) {
    const vd_pace_caps caps = vd_pace_caps_of(NULL, 0), given = vd_pace_caps_of(NULL, 5000000);
    cr_expect(caps.step == VD_STEP_US_LEAST && caps.trace == VD_STEP_US_LEAST);
    cr_expect(given.step == 5000000 && given.trace == 5000000);
}

/* A busy machine may take long for a step now and then, but not each time. */
Test(pace, reading_the_prompt_is_measured) {
    char dir[] = "/tmp/verde-pace-XXXXXX", command[64];
    vd_run_result result;
    vd_replay *replay;
    vd_pace pace;
    vd_err err = {0};
    bool seen = false;
    cr_assert(mkdtemp(dir));
    build_program(600);
    for (uint32_t i = 0; i < b.program.data_count; i++) {
        const vd_weight *w = vd_weights_find(&b.weights, b.program.data[i].tensor.name);
        b.data[i] = w ? w->data : i == 0 ? b.prompt : b.key;
    }
    b.exec = (vd_exec){.program = &b.program, .data = b.data};
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &b.exec.ro) ==
              RO_OK);
    const vd_run_options options = {.exec = &b.exec, .dir = dir};
    cr_assert(vd_run(&options, &result, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_replay_create(dir, &b.exec, &replay, &err) == VD_OK, "%s", err.text);
    for (int i = 0; i < 10 && !seen; i++) {
        cr_assert(vd_replay_measure(replay, &pace, &err) == VD_OK, "%s", err.text);
        seen = pace.traced_us > 20 * pace.committed_us;
    }
    cr_expect(seen, "%lld us, and %lld us a step", (long long)pace.traced_us,
              (long long)pace.committed_us);
    vd_replay_destroy(replay);
    ro_ctx_destroy(b.exec.ro);
    close_model();
    snprintf(command, sizeof command, "rm -rf %s", dir);
    cr_expect(system(command) == 0);
}

Test(pace, a_machine_slower_than_the_caps_knows_what_to_ask_for) {
    const vd_pace_caps caps = {2000000, 5000000};
    const struct {
        vd_pace pace;
        long wants;
    } of[] = {{{0}, 0},
              {{.plain_us = 2000000, .committed_us = 2000000, .traced_us = 5000000}, 0},
              {{.plain_us = 1, .committed_us = 2000001, .traced_us = 1}, 3},
              {{.plain_us = 7000000, .committed_us = 6000000, .traced_us = 5000000}, 7},
              {{.plain_us = 1, .committed_us = 1, .traced_us = 5000001}, 6},
              {{.plain_us = 3000000, .committed_us = 3000000, .traced_us = 9500000}, 10}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        const long wants = vd_pace_wants(&of[i].pace, &caps);
        cr_expect(wants == of[i].wants, "%zu: %ld", i, wants);
        if (wants == 0) /* the pace is within its caps */
            continue;
        const vd_pace_caps wider = {wants * 1000000, wants * 1000000};
        cr_expect(vd_pace_wants(&of[i].pace, &wider) == 0);
    }
}
