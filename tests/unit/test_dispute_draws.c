/* Disputes over a token drawn from the largest vocabulary in use: the folds of top_k, top_p and
 * draw are decided at one of their parts, within the limits of a referee. */
#include "forged_parts.h"
#include "repops/op_movement.h"
#include "repops/op_sampling.h"
#include "verde/graph/build.h"

enum { TOKEN, CUT_K, CUT_P, LEAVES, STEPS = 2, AT = 1, VOCABULARY = 151936 };

static const ro_shape leaf_shape[LEAVES] = {
    {RO_I32, 2, {1, 1}}, {RO_I32, 2, {1, 2}}, {RO_I32, 2, {1, 2}}};

static void build_init(vd_builder *b) {
    static const char *const name[LEAVES] = {"token", "cut_k", "cut_p"};
    for (int i = 0; i < LEAVES; i++) {
        ro_shape shape = leaf_shape[i];
        vd_add_leaf(b, name[i], &shape);
        shape.dtype = RO_F32;
        const vd_op zero = {RO_OP_FILL, {0}, &shape}, cast = {RO_OP_CAST, {RO_I32}, NULL};
        b->graph->output[i] = VD_EMIT(b, name[i], cast, vd_emit(b, name[i], zero, 0, NULL));
    }
}

static void build_step(vd_builder *b) {
    const ro_shape logits = VD_SHAPE(RO_F32, 1, VOCABULARY);
    const vd_op normal = {RO_OP_NORMAL, {7, 1, 0, ro_attr_f32(3)}, &logits};
    const vd_value x = vd_emit(b, "logits", normal, 0, NULL);
    const vd_value m = vd_max_axis(b, x, 1);
    const vd_value q = vd_weight(b, "weight", x, m);
    b->graph->output[CUT_K] = vd_top_k(b, "cut_k", q, 50);
    const vd_value kept = vd_keep_top(b, "kept", q, b->graph->output[CUT_K]);
    b->graph->output[CUT_P] = vd_top_p(b, "cut_p", q, 15 << 20);
    const vd_value key = vd_reshape(b, "key", vd_iota(b, "key", 2), VD_SHAPE(RO_I32, 1, 2));
    const vd_value words = vd_random_words(b, "words", key, vd_step_value(b), 7, 2);
    b->graph->output[TOKEN] = vd_draw(b, "token", kept, words);
}

static void open_draws(test_job *job) {
    vd_program *p = &job->program;
    vd_err err;
    *p = (vd_program){.seed = 7, .steps = STEPS, .checkpoint_interval = STEPS};
    vd_builder init = vd_builder_of(p, &p->init), step = vd_builder_of(p, &p->step);
    p->init.output = calloc(LEAVES, sizeof *p->init.output);
    p->step.output = calloc(LEAVES, sizeof *p->step.output);
    cr_assert(p->init.output && p->step.output);
    build_init(&init);
    build_step(&step);
    cr_assert(init.status == VD_OK && step.status == VD_OK, "%s%s", init.err.text, step.err.text);
    cr_assert(vd_program_validate(p, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_program_hash(p, &job->hash, &err) == VD_OK, "%s", err.text);
    vd_builder_free(&init);
    vd_builder_free(&step);
}

/* ---- the bench: a run that is wrong at one element of the operator's node ---- */

enum { MOST_ROUNDS = 25, MOST_BYTES = 1 << 20 };

typedef struct {
    test_job job;
    test_provider honest, liar;
    vd_fault fault;
    forger forger;
    uint64_t parts;
} bench;

static void bench_open(bench *b, int op, uint32_t element) {
    vd_fold fold;
    open_draws(&b->job);
    b->fault = (vd_fault){VD_FAULT_ELEMENT, AT, test_node(&b->job, AT, op), element, 3};
    test_provider_open(&b->honest, &b->job, 1, NULL);
    test_provider_open(&b->liar, &b->job, 2, &b->fault);
    parts_forge(&b->forger, &b->liar, &b->job, b->fault.node);
    cr_assert(vd_fold_open(&fold, &b->job.program, &b->job.program.step, b->fault.node, element));
    b->parts = fold.parts;
}

static void bench_close(bench *b) {
    test_provider_close(&b->honest);
    parts_forget(&b->forger);
    test_provider_close(&b->liar);
    test_job_close(&b->job);
}

/* Expects a conviction at this part, within the rounds and bytes that a referee allows for a run of
 * this size. */
static void expect(bench *b, uint64_t part, const char *what) {
    test_dispute d;
    test_duel(&d, &b->job, &b->honest.side, &b->liar.side, part % 2);
    test_expect_convicted(&d, part % 2, VD_GRADE_WRONG_OUTPUT, what);
    test_expect_place(&d, AT, b->fault.node, what);
    cr_expect(d.outcome.place.part == (int64_t)part, "%s: part %lld, expected part %llu", what,
              (long long)d.outcome.place.part, (unsigned long long)part);
    cr_expect(d.rounds <= MOST_ROUNDS, "%s: %u rounds", what, d.rounds);
    cr_expect(d.verdict.size <= MOST_BYTES, "%s: %zu bytes", what, d.verdict.size);
    test_dispute_close(&d);
}

static void dispute_parts(int op, uint32_t element, uint64_t parts) {
    const char *name = ro_op_describe(op)->name;
    bench b;
    bench_open(&b, op, element);
    cr_expect(b.parts == parts, "%s: %llu parts", name, (unsigned long long)b.parts);
    const uint64_t at[] = {0, 1, parts / 7, parts / 2, parts - 1};
    for (size_t k = 0; k < sizeof at / sizeof at[0]; k++) {
        b.forger.at = at[k];
        b.forger.what = FROM_ONE_ON;
        expect(&b, at[k], name);
        b.forger.what = ONE_AND_LAST;
        expect(&b, at[k], name);
    }
    bench_close(&b);
}

enum { PASS = (VOCABULARY + 511) / 512 };

Test(draws, top_k_is_decided_at_one_part) {
    dispute_parts(RO_OP_TOP_K, 0, 7 * PASS);
    dispute_parts(RO_OP_TOP_K, 1, 7 * PASS);
}

Test(draws, top_p_is_decided_at_one_part) {
    dispute_parts(RO_OP_TOP_P, 0, 7 * PASS);
    dispute_parts(RO_OP_TOP_P, 1, 7 * PASS);
}

Test(draws, a_token_is_decided_at_one_part) {
    dispute_parts(RO_OP_DRAW, 0, 1 + 2 * PASS);
}
