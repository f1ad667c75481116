/* Verdicts of the grades and results that those of test_verdict_kinds.c lack, and about fixed
 * products of every width. VERDICTS=DIR saves them for tests/kept. */
#include "repops/op_image.h"
#include "repops/op_optimizer.h"
#include "repops/op_product.h"
#include "tests/support/audit.h"

#include <criterion/criterion.h>
#include <string.h>

#include "keep_verdict.h"

/* ---- between an honest provider and a liar ---- */

/* The liar is wrong at one element of a late node of step 1, and does what makes it worse. */
typedef struct {
    test_job job;
    test_provider honest, liar;
    vd_fault fault;
    uint32_t concedes; /* in this round; 0: never */
    bool withholds;    /* inputs that either provider gives do not arrive */
} bench;

static void bench_open(bench *b) {
    *b = (bench){0};
    test_job_open(&b->job, VD_MODEL_MLP, 4, 2);
    b->fault = (vd_fault){VD_FAULT_ELEMENT, 1, test_node(&b->job, 1, RO_OP_ADAMW_M), 5, 20};
    test_provider_open(&b->honest, &b->job, 1, NULL);
    test_provider_open(&b->liar, &b->job, 2, &b->fault);
}

static void bench_close(bench *b) {
    test_provider_close(&b->honest);
    test_provider_close(&b->liar);
    test_job_close(&b->job);
}

static void transit(test_dispute *d, uint32_t party, const vd_outgoing *question, vd_buf *note) {
    const bench *b = d->user;
    char output[64];
    const uint32_t value = vd_source_count(&b->job.program, &b->job.program.step) + b->fault.node;
    snprintf(output, sizeof output, "tensor %u ", value);
    if (b->withholds && strstr(question->text, "tensor") && !strstr(question->text, output))
        note->size = 0;
    if (party == 1 && b->concedes == d->rounds)
        test_resign(d, party, question, json_pack("{sb}", "concede", 1), note);
}

static test_dispute settle(bench *b, const char *name) {
    test_dispute d = {
        .job = &b->job, .side = {&b->honest.side, &b->liar.side}, .transit = transit, .user = b};
    test_settle(&d);
    cr_assert(d.status == VD_OK, "%s: %s", name, d.err.text);
    keep(&d.verdict, name);
    return d;
}

Test(verdict_grades, conceded, .timeout = 60) {
    bench b;
    bench_open(&b);
    b.concedes = 4;
    test_dispute d = settle(&b, "conceded");
    test_expect_convicted(&d, 1, VD_GRADE_CONCEDED, "conceded");
    test_dispute_close(&d);
    bench_close(&b);
}

Test(verdict_grades, inconclusive, .timeout = 60) {
    bench b;
    bench_open(&b);
    b.withholds = true;
    test_dispute d = settle(&b, "inconclusive");
    cr_expect(d.outcome.result == VD_RESULT_INCONCLUSIVE && !d.outcome.accepted);
    test_dispute_close(&d);
    bench_close(&b);
}

/* ---- records whose inputs are not what was there ---- */

static vd_source forged; /* the source whose record is changed */
static uint32_t forged_node, forged_input;

static vd_status forge_trace(void *user, int64_t step, const vd_records **out, vd_err *err) {
    const vd_status status = forged.trace(user, step, out, err);
    size_t size;
    if (status == VD_OK && step == 1) {
        uint8_t *record = (uint8_t *)vd_records_at(*out, forged_node, &size);
        memset(record + VD_HASH_SIZE + 4 + VD_HASH_SIZE * forged_input, 0x11, VD_HASH_SIZE);
    }
    return status;
}

static void forge(test_provider *p) {
    forged = p->side.source;
    p->side.source.trace = forge_trace;
    p->side.source.dishonest = true;
}

/* Finds the first input of a node before the liar's that comes from there. */
static void find_input(const bench *b, bool node, vd_source_kind from) {
    const vd_program *p = &b->job.program;
    const uint32_t sources = vd_source_count(p, &p->step);
    uint32_t index;
    for (uint32_t i = 0; i < b->fault.node; i++)
        for (int k = 0; k < vd_node_stored(&p->step, i)->input_count; k++) {
            const uint32_t value = vd_node_input(&p->step, i, k);
            if (node ? value >= sources
                     : value < sources && vd_source_of(p, &p->step, value, &index) == from) {
                forged_node = i, forged_input = (uint32_t)k;
                return;
            }
        }
    cr_assert(false, "no such input");
}

Test(verdict_grades, wrong_input, .timeout = 60) {
    bench b;
    bench_open(&b);
    forge(&b.liar);
    find_input(&b, true, VD_SOURCE_STATE);
    test_dispute d = settle(&b, "input");
    test_expect_convicted(&d, 1, VD_GRADE_WRONG_INPUT, "input");
    test_expect_place(&d, 1, forged_node, "input");
    test_dispute_close(&d);
    bench_close(&b);
}

static void accuse(const test_provider *p, const vd_crumb *place, vd_grade grade,
                   const char *name) {
    test_audit a = {.side = &p->side};
    cr_assert_eq(test_audit_place(&a, place), VD_RESULT_CONVICTED, "%s", name);
    cr_expect_eq(a.outcome.party[0].grade, grade, "%s: %s", name, a.outcome.party[0].reason);
    cr_expect(a.outcome.place.step == place->step && a.outcome.place.node == place->node, "%s",
              name);
    keep(&a.proof, name);
    test_audit_close(&a);
}

/* Proofs of fraud, which are smaller than verdicts. */
Test(verdict_grades, wrong_input_of_one, .timeout = 60) {
    static const struct {
        bool node;
        vd_source_kind from;
        const char *name;
    } inputs[] = {{true, VD_SOURCE_STATE, "fraud-input"},
                  {false, VD_SOURCE_STATE, "fraud-input-of-state"},
                  {false, VD_SOURCE_DATA, "fraud-input-of-data"}};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        bench b;
        bench_open(&b);
        forge(&b.liar);
        find_input(&b, inputs[i].node, inputs[i].from);
        const vd_crumb place = {.step = 1, .node = forged_node, .count = 1, .part = -1};
        accuse(&b.liar, &place, VD_GRADE_WRONG_INPUT, inputs[i].name);
        bench_close(&b);
    }
}

/* ---- rounding logs: the trainer is provider 0, its auditor provider 1 ---- */

/* Flips bit 22, which no later rounding hides. */
static vd_fault fault_of(const test_job *job, const char *text) {
    vd_fault fault = test_fault(job, text);
    fault.bit = 22;
    return fault;
}

static void round_wrongly(vd_model_kind kind, const char *trains, const char *audits,
                          vd_grade grade, const char *name) {
    test_job job;
    test_provider trainer, auditor;
    vd_public_key key;
    vd_err err = {0};
    test_job_open(&job, kind, 4, 2);
    test_job_round(&job, 32, VD_LOG_CALLS);
    const vd_fault first = trains ? fault_of(&job, trains) : (vd_fault){0};
    const vd_fault second = audits ? fault_of(&job, audits) : (vd_fault){0};
    test_party party = {.profile = "sim-wide"};
    vd_status status = test_party_open(&trainer, &job, 1, &party, trains ? &first : NULL, &err);
    cr_assert(status == VD_OK, "%s: %s", name, err.text);
    vd_key_public(trainer.key, &key);
    party = (test_party){"sim-deep", &trainer, &key, .contest = true};
    status = test_party_open(&auditor, &job, 2, &party, audits ? &second : NULL, &err);
    cr_assert(status == VD_OK, "%s: %s", name, err.text);
    test_dispute d = {.job = &job, .side = {&trainer.side, &auditor.side}};
    test_settle(&d);
    cr_assert(d.status == VD_OK, "%s: %s", name, d.err.text);
    cr_expect_eq(d.outcome.party[audits != NULL].grade, grade, "%s: %s", name,
                 vd_grade_name(d.outcome.party[audits != NULL].grade));
    cr_expect_eq(d.outcome.result,
                 grade == VD_GRADE_DISMISSED ? VD_RESULT_DISMISSED : VD_RESULT_CONVICTED);
    keep(&d.verdict, name);
    test_dispute_close(&d);
    test_provider_close(&auditor);
    test_provider_close(&trainer);
    test_job_close(&job);
}

Test(verdict_grades, over_rounding_logs, .timeout = 120) {
    const vd_model_kind mlp = VD_MODEL_MLP, gpt2 = VD_MODEL_GPT2;
    round_wrongly(gpt2, "drop-record@0", NULL, VD_GRADE_LOG_INCOMPLETE, "log-incomplete");
    round_wrongly(mlp, "element@1", NULL, VD_GRADE_WRONG_OUTPUT, "log-trainer");
    round_wrongly(mlp, NULL, "element@2", VD_GRADE_WRONG_OUTPUT, "log-auditor");
    round_wrongly(gpt2, NULL, "steer@2", VD_GRADE_DISMISSED, "log-dismissed");
    round_wrongly(gpt2, "forge-record@0", NULL, VD_GRADE_CONTRADICTION, "log-forge-record");
    round_wrongly(mlp, "two-logs@2", NULL, VD_GRADE_CONTRADICTION, "log-two-logs");
}

/* ---- fixed products ---- */

static void flip(vd_model_kind kind, int32_t bits, int op, const char *name) {
    test_job job;
    test_provider liar;
    test_job_open_fixed(&job, kind, 3, bits);
    const vd_fault fault = {VD_FAULT_ELEMENT, 1, test_node(&job, 1, op), 5, 20};
    const vd_crumb place = {.step = 1, .node = fault.node, .element = 5, .count = 1, .part = -1};
    test_provider_open(&liar, &job, 1, &fault);
    accuse(&liar, &place, VD_GRADE_WRONG_OUTPUT, name);
    test_provider_close(&liar);
    test_job_close(&job);
}

Test(verdict_grades, about_fixed_products, .timeout = 120) {
    flip(VD_MODEL_MLP, RO_FIXED_8, RO_OP_MATMUL_FIXED, "fraud-fixed-8");
    flip(VD_MODEL_MLP, RO_FIXED_24, RO_OP_MATMUL_FIXED, "fraud-fixed-24");
    flip(VD_MODEL_RESNET, RO_FIXED_8, RO_OP_CONV2D_FIXED, "fraud-fixed-conv2d");
    flip(VD_MODEL_RESNET, RO_FIXED_16, RO_OP_CONV2D_FIXED_DX, "fraud-fixed-conv2d-dx");
    flip(VD_MODEL_RESNET, RO_FIXED_24, RO_OP_CONV2D_FIXED_DW, "fraud-fixed-conv2d-dw");
}
