/* Disputes over long folds in runs with rounding logs: each part hands a value and its bound to the
 * next. */
#include "forged_parts.h"

enum { STEPS = 2, ROWS = 5000, COLUMNS = 4, AT = 1, ELEMENT = 1, TRAINER = 0, AUDITOR = 1 };

static const char *const free_nodes[] = {"product", "table", "filter"};

typedef struct {
    test_job job;
    test_provider side[2];
    vd_fault fault;
    forger forger; /* the forger of the provider that has the fault */
} bench;

static void open_side(bench *b, uint32_t p, const vd_fault *fault) {
    vd_public_key key;
    vd_err err = {0};
    if (p == AUDITOR)
        vd_key_public(b->side[TRAINER].key, &key);
    const test_party party = {.profile = p == AUDITOR ? "sim-plain" : "sim-wide",
                              .trainer = p == AUDITOR ? &b->side[TRAINER] : NULL,
                              .trainer_key = p == AUDITOR ? &key : NULL,
                              .contest = p == AUDITOR};
    cr_assert(test_party_open(&b->side[p], &b->job, (uint8_t)(p + 1), &party, fault, &err) == VD_OK,
              "%s", err.text);
}

/* `fault` is that of provider `whose`. With NULL, both are honest. */
static void bench_open(bench *b, const char *fault, uint32_t whose) {
    *b = (bench){.forger = {.what = HONEST_PARTS}};
    test_job_open_folds(&b->job, STEPS, ROWS, COLUMNS);
    test_job_round(&b->job, 32, VD_LOG_CALLS);
    if (fault)
        b->fault = test_fault(&b->job, fault);
    b->fault.element = ELEMENT;
    b->fault.bit = 22;
    for (uint32_t p = 0; p < 2; p++)
        open_side(b, p, fault && p == whose ? &b->fault : NULL);
    if (fault)
        parts_forge(&b->forger, &b->side[whose], &b->job, b->fault.node);
}

static void bench_close(bench *b) {
    parts_forget(&b->forger);
    test_provider_close(&b->side[AUDITOR]);
    test_provider_close(&b->side[TRAINER]);
    test_job_close(&b->job);
}

static test_dispute settle(const bench *b) {
    test_dispute d = {.job = &b->job, .side = {&b->side[TRAINER].side, &b->side[AUDITOR].side}};
    test_settle(&d);
    cr_assert(d.status == VD_OK, "%s", d.err.text);
    return d;
}

static void expect(const bench *b, uint32_t whose, vd_grade grade, int64_t part, const char *what) {
    test_dispute d = settle(b);
    test_expect_convicted(&d, whose, grade, what);
    test_expect_place(&d, AT, b->fault.node, what);
    cr_expect(d.outcome.place.part == part, "%s: part %lld, expected %lld", what,
              (long long)d.outcome.place.part, (long long)part);
    test_dispute_close(&d);
}

Test(folds_rounding, an_honest_pair_agrees) {
    bench b;
    bench_open(&b, NULL, 0);
    cr_expect(!b.side[AUDITOR].logged.difference.found, "%s",
              b.side[AUDITOR].logged.difference.text);
    test_dispute d = settle(&b);
    cr_expect(d.outcome.result == VD_RESULT_AGREED);
    test_dispute_close(&d);
    bench_close(&b);
}

static void try_parts(const char *node, uint32_t whose) {
    static const uint64_t at[] = {0, 1, 4};
    char fault[64];
    bench b;
    snprintf(fault, sizeof fault, "element@%d:%s", AT, node);
    bench_open(&b, fault, whose);
    expect(&b, whose, VD_GRADE_WRONG_OUTPUT, -1, fault);
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        b.forger.at = at[i];
        b.forger.what = FROM_ONE_ON;
        expect(&b, whose, VD_GRADE_WRONG_OUTPUT, (int64_t)at[i], fault);
        b.forger.what = ONE_AND_LAST;
        expect(&b, whose, VD_GRADE_WRONG_OUTPUT, (int64_t)at[i], fault);
    }
    b.forger.what = WIDE_PARTS;
    expect(&b, whose, VD_GRADE_BAD_PROOF, -1, fault);
    bench_close(&b);
}

Test(folds_rounding, a_wrong_element_of_the_trainer_and_its_parts_convict_it) {
    for (size_t i = 0; i < sizeof free_nodes / sizeof free_nodes[0]; i++)
        try_parts(free_nodes[i], TRAINER);
    try_parts("argmax", TRAINER);
}

Test(folds_rounding, a_wrong_element_of_the_auditor_and_its_parts_convict_it) {
    for (size_t i = 0; i < sizeof free_nodes / sizeof free_nodes[0]; i++)
        try_parts(free_nodes[i], AUDITOR);
    try_parts("argmax", AUDITOR);
}

/* Bytes 0x7f make a bound so large that any element is possible, so the dispute reaches the
 * parts. */
Test(folds_rounding, parts_of_any_bytes_convict_whoever_states_them) {
    static const struct {
        uint8_t byte;
        int64_t part;
    } states[] = {{0x00, -1}, {0x7f, 2}, {0x80, -1}, {0xff, -1}};
    for (uint32_t whose = 0; whose < 2; whose++)
        for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
            bench b;
            bench_open(&b, "element@1:product", whose);
            b.forger.what = ANY_PARTS;
            b.forger.at = 2;
            b.forger.byte = states[i].byte;
            expect(&b, whose, VD_GRADE_WRONG_OUTPUT, states[i].part, "any bytes");
            bench_close(&b);
        }
}

/* A provider whose element is possible is still wrong if its parts are not the reference's. */
Test(folds_rounding, wrong_parts_under_a_possible_element_convict) {
    bench b;
    bench_open(&b, "drop-record@1:cancelling", TRAINER);
    expect(&b, TRAINER, VD_GRADE_LOG_INCOMPLETE, -1, "honest parts");
    b.forger.what = FROM_ONE_ON;
    b.forger.at = 30;
    expect(&b, TRAINER, VD_GRADE_WRONG_OUTPUT, 30, "forged parts");
    bench_close(&b);
}

/* Equal parts allow several members of V. The log decides between them, as for a short sum. */
Test(folds_rounding, what_the_log_says_of_a_long_sum_is_judged) {
    static const struct {
        const char *fault;
        vd_grade grade;
    } faults[] = {{"drop-record@1:cancelling", VD_GRADE_LOG_INCOMPLETE},
                  {"forge-record@1:cancelling", VD_GRADE_CONTRADICTION},
                  {"forge-both@1:cancelling", VD_GRADE_WRONG_OUTPUT}};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        bench b;
        bench_open(&b, faults[i].fault, TRAINER);
        expect(&b, TRAINER, faults[i].grade, -1, faults[i].fault);
        test_dispute d = settle(&b);
        cr_expect(d.outcome.place.rounded && d.outcome.place.computed);
        test_dispute_close(&d);
        bench_close(&b);
    }
}
