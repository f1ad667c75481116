/* Asks a provider about the data of a run of a small network: one large tensor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/trees.h"
#include "models/models.h"
#include "verde/exec/run.h"
#include "verde/protocol/provider.h"

enum { LEAVES = 1024, QUESTIONS = 4 };

typedef struct {
    vd_program program;
    const void *data[1];
    vd_exec exec;
    vd_key *key, *referee;
    vd_replay *replay;
    vd_provider side;
    uint32_t value; /* the data, among the step's values */
    char dir[64];
} served;

static void open_program(served *s, const uint8_t *bytes, int64_t size) {
    const ro_shape shape = {RO_U8, 1, {size}};
    vd_training t = {.model = {.kind = VD_MODEL_MLP, .vocab = 256, .channels = 8, .hidden = 16},
                     .optimizer = {.lr = 1e-3f,
                                   .min_lr = 1e-4f,
                                   .beta1 = 0.9f,
                                   .beta2 = 0.95f,
                                   .eps = 1e-8f,
                                   .weight_decay = 0.1f,
                                   .clip_norm = 1,
                                   .schedule = RO_LR_COSINE},
                     .seed = 1,
                     .batch = 2,
                     .micro_batches = 1,
                     .sequence = 8,
                     .steps = 2,
                     .checkpoint_interval = 2,
                     .data_dtype = RO_U8,
                     .data_count = size};
    vd_hash root, commitment;
    vd_err err = {0};
    check(vd_tensor_hash(s->exec.ro, &shape, bytes, &root, &commitment, &err), &err);
    memcpy(t.data_root, commitment.b, sizeof t.data_root);
    check(vd_training_program(&t, &s->program, &err), &err);
    s->data[0] = bytes;
    s->exec.program = &s->program;
    s->exec.data = s->data;
}

static void find_data(served *s) {
    uint32_t index;
    while (vd_source_of(&s->program, &s->program.step, s->value, &index) != VD_SOURCE_DATA)
        s->value++;
}

static void open_run(served *s) {
    const vd_run_options options = {.exec = &s->exec, .dir = s->dir};
    vd_run_result result;
    vd_err err = {0};
    snprintf(s->dir, sizeof s->dir, "/tmp/bench-trees-XXXXXX");
    if (!mkdtemp(s->dir))
        die("no folder for a run");
    check(vd_run(&options, &result, &err), &err);
    check(vd_replay_create(s->dir, &s->exec, &s->replay, &err), &err);
    check(vd_key_generate(&s->key, &err), &err);
    check(vd_key_generate(&s->referee, &err), &err);
    s->side =
        (vd_provider){.program = &s->program, .key = s->key, .source = vd_replay_source(s->replay)};
    check(vd_program_hash(&s->program, &s->side.program_hash, &err), &err);
}

static void close_run(served *s) {
    char command[96];
    vd_replay_destroy(s->replay);
    vd_key_destroy(s->key);
    vd_key_destroy(s->referee);
    vd_program_free(&s->program);
    snprintf(command, sizeof command, "rm -rf %s", s->dir);
    if (system(command) != 0)
        die("a folder stays behind");
}

static void sign(const served *s, const char *type, const vd_buf *payload, vd_buf *note) {
    vd_err err = {0};
    check(vd_note_sign(s->referee, type, payload->data, payload->size, note, &err), &err);
}

/* Writes a request for leaves at equal distances, from `first` on. */
static void write_request(const served *s, uint64_t first, vd_buf *request) {
    vd_question q = {.kind = VD_ASK_PROVE,
                     .tree = {.kind = VD_TREE_TENSOR, .step = 1, .value = s->value},
                     .leaf_count = LEAVES};
    const uint64_t count = vd_tree_leaves(&s->program, &q.tree);
    uint64_t leaf[LEAVES];
    vd_assignment a = {.program = s->side.program_hash, .provider_count = 2};
    vd_buf payload[2] = {{0}}, note[2] = {{0}};
    vd_hash hash;
    vd_err err = {0};
    for (uint64_t i = 0; i < LEAVES; i++)
        leaf[i] = first + count / LEAVES * i;
    q.leaf = leaf;
    vd_key_public(s->referee, &a.referee);
    vd_key_public(s->key, &a.provider[0]);
    a.provider[1] = a.referee; /* any other key will do */
    check(vd_assignment_write(&a, &payload[0], &err), &err);
    if (!vd_assignment_hash(payload[0].data, payload[0].size, &hash))
        die("out of memory");
    check(vd_question_write(&q, &hash, &payload[1], &err), &err);
    sign(s, VD_TYPE_ASSIGNMENT, &payload[0], &note[0]);
    sign(s, VD_TYPE_QUESTION, &payload[1], &note[1]);
    check(vd_request_write(&note[0], &note[1], request, &err), &err);
    for (int i = 0; i < 2; i++) {
        vd_buf_free(&payload[i]);
        vd_buf_free(&note[i]);
    }
}

typedef struct {
    double cpu, wall; /* ms */
} times;

static times time_question(const served *s, uint64_t first) {
    vd_buf request = {0}, answer = {0};
    vd_err err = {0};
    write_request(s, first, &request);
    const double cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID), wall = clock_s(CLOCK_MONOTONIC);
    check(vd_provider_answer(&s->side, request.data, request.size, &answer, &err), &err);
    const times out = {1e3 * (clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu),
                       1e3 * (clock_s(CLOCK_MONOTONIC) - wall)};
    vd_buf_free(&request);
    vd_buf_free(&answer);
    return out;
}

void print_questions(ro_ctx *ro, const uint8_t *bytes, int64_t size) {
    served s = {.exec = {.ro = ro}};
    open_program(&s, bytes, size);
    find_data(&s);
    open_run(&s);
    printf(
        "\na provider's answers about %d leaves each of a tensor of %lld MiB, ms\n%7s %12s %12s\n",
        LEAVES, (long long)(size >> 20), "answer", "CPU time", "wall");
    for (int i = 0; i < QUESTIONS; i++) {
        const times t = time_question(&s, (uint64_t)i);
        printf("%7d %12.1f %12.1f\n", i + 1, t.cpu, t.wall);
    }
    close_run(&s);
}
