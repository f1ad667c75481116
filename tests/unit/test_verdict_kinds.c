/* Verdicts of every kind, all of which hold. VERDICTS=DIR saves them for
 * tests/independent/altered.py, which changes them and compares two verifiers. A key's seed is 32
 * equal bytes: p + 1 for provider p, 0xee for the referee. */
#include "repops/op_movement.h"
#include "repops/op_product.h"
#include "repops/op_reduce.h"
#include "tests/support/audit.h"
#include "tests/support/tournament.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "keep_verdict.h"
#include "many_programs.h"

/* ---- two providers ---- */

typedef struct {
    const char *name;
    const char *first, *second; /* faults; NULL: honest */
    vd_lie lie;                 /* of the second provider */
    bool challenge, runs_again; /* the first provider contests, with a second run */
    const char *again;          /* fault of the second run */
} duel;

static const duel duels[] = {
    {.name = "agreed"},
    {.name = "output", .second = "poison@1"},
    {.name = "element", .second = "element@2:adamw.layer.1.bias.m"},
    {.name = "graph", .second = "lr@1"},
    {.name = "skip", .second = "skip@1"},
    {.name = "weights", .second = "weights"},
    {.name = "history", .second = "history@1"},
    {.name = "proof", .second = "poison@1", .lie = VD_LIE_PROOF},
    {.name = "withheld", .second = "element@1", .lie = VD_LIE_WITHHOLD},
    {.name = "silence", .second = "poison@1", .lie = VD_LIE_SILENCE},
    {.name = "two-wrong", .first = "poison@2", .second = "element@2"},
    {.name = "declined", .first = "poison@1", .challenge = true},
    {.name = "upheld", "poison@0", "poison@2", VD_LIE_NONE, true, true, NULL},
    {.name = "failed", "poison@0", NULL, VD_LIE_NONE, true, true, "lr@2"},
    {.name = "confirmed", "poison@0", NULL, VD_LIE_NONE, true, true, NULL},
};

static void open_one(test_provider *p, const test_job *job, uint8_t name, const char *text) {
    vd_fault fault = {0};
    if (text)
        fault = test_fault(job, text);
    test_provider_open(p, job, name, text ? &fault : NULL);
}

static void fight(const test_job *job, const duel *how) {
    test_provider first, second;
    open_one(&first, job, 1, how->first);
    open_one(&second, job, 2, how->second);
    second.side.lie = how->lie;
    vd_fault again = {0};
    if (how->again)
        again = test_fault(job, how->again);
    if (how->runs_again)
        test_provider_runs_again(&first, how->again ? &again : NULL);
    test_dispute d = {.job = job, .side = {&first.side, &second.side}, .challenge = how->challenge};
    test_settle(&d);
    cr_assert(d.status == VD_OK, "%s: %s", how->name, d.err.text);
    keep(&d.verdict, how->name);
    test_dispute_close(&d);
    test_provider_close(&second);
    test_provider_close(&first);
}

Test(verdict_kinds, of_two_hold, .timeout = 120) {
    test_job job;
    test_job_open(&job, VD_MODEL_MLP, 4, 2);
    for (size_t i = 0; i < sizeof duels / sizeof *duels; i++)
        fight(&job, &duels[i]);
    test_job_close(&job);
}

/* Flips a bit at a node in step 1, and saves the verdict. */
static void flip_at(const test_job *job, uint32_t node, const char *name) {
    test_provider honest, liar;
    test_dispute d;
    const vd_fault fault = {VD_FAULT_ELEMENT, 1, node, 5, 20};
    test_provider_open(&honest, job, 1, NULL);
    test_provider_open(&liar, job, 2, &fault);
    test_duel(&d, job, &honest.side, &liar.side, 1);
    cr_assert(d.status == VD_OK, "%s: %s", name, d.err.text);
    keep(&d.verdict, name);
    test_dispute_close(&d);
    test_provider_close(&liar);
    test_provider_close(&honest);
}

/* Flips a bit at the first node of an operator. */
static void flip(const test_job *job, int op, const char *name) {
    flip_at(job, test_node(job, 1, op), name);
}

/* Names every node outside repeats with markup. Names must be printable ASCII, and nothing else is
 * required of them. */
static void rename_nodes(vd_graph *graph) {
    static const char markup[] = "</text></script><script>hostile()</script><img src=x "
                                 "onerror='hostile()' x=\"\">";
    const size_t at = graph->names_size;
    graph->names = realloc(graph->names, at + sizeof markup);
    cr_assert(graph->names);
    memcpy(graph->names + at, markup, sizeof markup);
    graph->names_size = graph->names_capacity = at + sizeof markup;
    for (uint32_t i = 0; i < graph->stored_count; i++)
        if (!vd_repeat_of(graph, i))
            graph->stored[i].name = (uint32_t)at;
}

Test(verdict_kinds, with_markup_in_names_hold, .timeout = 120) {
    test_job job;
    vd_err err = {0};
    test_job_open(&job, VD_MODEL_MLP, 4, 2);
    rename_nodes(&job.program.init);
    rename_nodes(&job.program.step);
    for (uint32_t i = 0; i < job.program.leaf_count; i++)
        snprintf(job.program.leaf[i].name, VD_NAME_SIZE, "<script>hostile()</script>%u", i);
    cr_assert(vd_program_hash(&job.program, &job.hash, &err) == VD_OK, "%s", err.text);
    flip_at(&job, job.program.step.node_count - 1, "markup");
    test_job_close(&job);
}

Test(verdict_kinds, of_long_sums_and_fixed_products_hold, .timeout = 120) {
    test_job job;
    test_job_open_folds(&job, 2, 5000, 2);
    flip(&job, RO_OP_MATMUL, "fold");
    flip(&job, RO_OP_ARGMAX, "fold-argmax");
    test_job_close(&job);
    test_job_open_fixed(&job, VD_MODEL_MLP, 3, 16);
    flip(&job, RO_OP_MATMUL_FIXED, "fixed");
    test_job_close(&job);
    test_job_open_stored(&job, VD_MODEL_MLP, 3, 0);
    flip(&job, RO_OP_MATMUL, "bf16");
    test_job_close(&job);
}

/* Records of many inputs come in pieces. The state has one leaf. */
Test(verdict_kinds, of_wide_nodes_hold) {
    test_job job;
    const duel skip = {.name = "one-leaf", .second = "skip@0"};
    test_job_open_inputs(&job, 258);
    flip(&job, RO_OP_CONCAT, "pieces");
    fight(&job, &skip);
    test_job_close(&job);
}

Test(verdict_kinds, over_rounding_logs_hold, .timeout = 120) {
    test_job job;
    test_provider trainer, auditor;
    vd_public_key key;
    vd_err err = {0};
    test_job_open(&job, VD_MODEL_MLP, 4, 2);
    test_job_round(&job, 32, VD_LOG_CALLS);
    const vd_fault fault = test_fault(&job, "drop-record@1");
    test_party party = {.profile = "sim-wide"};
    cr_assert(test_party_open(&trainer, &job, 1, &party, &fault, &err) == VD_OK, "%s", err.text);
    vd_key_public(trainer.key, &key);
    party = (test_party){"sim-deep", &trainer, &key, .contest = true};
    cr_assert(test_party_open(&auditor, &job, 2, &party, NULL, &err) == VD_OK, "%s", err.text);
    test_dispute d = {.job = &job, .side = {&trainer.side, &auditor.side}};
    test_settle(&d);
    cr_assert(d.status == VD_OK, "%s", d.err.text);
    keep(&d.verdict, "rounding");
    test_dispute_close(&d);
    test_provider_close(&auditor);
    test_provider_close(&trainer);
    test_job_close(&job);
}

/* ---- many programs ---- */

Test(verdict_kinds, about_many_programs_hold, .timeout = 120) {
    static many m;
    many_open(&m, 2, "poison@1");
    test_dispute d = {.collection = &m.collection, .side = {&m.side[0].side, &m.side[1].side}};
    test_settle(&d);
    cr_assert(d.status == VD_OK, "%s", d.err.text);
    keep(&d.verdict, "collection");
    test_dispute_close(&d);
    many_close(&m);
}

/* ---- many providers ---- */

static void hold(const char *name, const char *const *faults, bool challenge, bool silent) {
    test_job job;
    test_provider side[5];
    uint32_t count = 0;
    test_job_open(&job, VD_MODEL_MLP, 4, 2);
    test_tournament t = {.job = &job, .challenge = challenge};
    const vd_fault again = test_fault(&job, "lr@3");
    for (; faults[count]; count++) {
        open_one(&side[count], &job, (uint8_t)(count + 1), faults[count][0] ? faults[count] : NULL);
        if (challenge && count < 2)
            test_provider_runs_again(&side[count], count ? &again : NULL);
        t.side[count] = &side[count].side;
    }
    t.count = count;
    if (silent)
        side[0].side.lie = VD_LIE_SILENCE;
    test_hold(&t);
    cr_assert(t.status == VD_OK, "%s: %s", name, t.err.text);
    keep(&t.verdict, name);
    test_tournament_close(&t);
    for (uint32_t p = 0; p < count; p++)
        test_provider_close(&side[p]);
    test_job_close(&job);
}

Test(verdict_kinds, of_many_hold, .timeout = 120) {
    static const char *const three[] = {"poison@1", "", "skip@2", NULL};
    static const char *const group[] = {"", "element@1", "element@1", "", NULL};
    static const char *const again[] = {"poison@3", "poison@0", "lr@1", "", NULL};
    hold("many", three, false, false);
    hold("many-group", group, false, true);
    hold("many-again", again, true, false);
}

/* ---- one provider: proofs of fraud ---- */

static void accuse(const test_job *job, const char *name, const char *text, vd_lie lie,
                   const vd_crumb *place) {
    test_provider p;
    open_one(&p, job, 1, text);
    p.side.lie = lie;
    test_audit a = {.side = &p.side, .steps = 5, .crumbs = 100};
    if (place)
        cr_assert_eq(test_audit_place(&a, place), VD_RESULT_CONVICTED, "%s", name);
    else
        test_audit_play(&a);
    keep(&a.proof, name);
    test_audit_close(&a);
    test_provider_close(&p);
}

Test(verdict_kinds, of_one_hold, .timeout = 120) {
    test_job job;
    test_job_open(&job, VD_MODEL_MLP, 4, 2);
    const vd_fault fault = test_fault(&job, "element@2:adamw.layer.1.bias.m");
    const vd_crumb several = {
        .step = 2, .node = fault.node, .element = 0, .count = 256, .part = -1};
    const vd_fault weights = test_fault(&job, "weights");
    const vd_crumb first = {.step = -1, .node = weights.node, .element = 0, .count = 1, .part = -1};
    const vd_crumb seam = {.step = 1, .node = -1, .part = -1, .leaf_count = job.program.leaf_count};
    accuse(&job, "fraud-element", "element@2:adamw.layer.1.bias.m", VD_LIE_NONE, &several);
    accuse(&job, "fraud-graph", "lr@1", VD_LIE_NONE, NULL);
    accuse(&job, "fraud-seam", "skip@1", VD_LIE_NONE, &seam);
    accuse(&job, "fraud-whole", "poison@1", VD_LIE_NONE, NULL);
    accuse(&job, "fraud-init", "weights", VD_LIE_NONE, &first);
    accuse(&job, "fraud-proof", NULL, VD_LIE_PROOF, NULL);
    test_job_close(&job);
}

/* The provider states parts of which part 1 does not follow from part 0. */
static vd_source parts_of;
static vd_status another_part(void *user, int64_t step, uint32_t node, int64_t element,
                              vd_records *out, vd_err *err) {
    const vd_status status = parts_of.fold(user, step, node, element, out, err);
    size_t size;
    const uint8_t *part = vd_records_at(out, 1, &size);
    ((uint8_t *)part)[0] ^= 1;
    return status;
}

Test(verdict_kinds, of_one_about_long_sums_hold, .timeout = 120) {
    test_job job;
    test_provider p;
    test_job_open_folds(&job, 2, 5000, 2);
    const vd_fault fault = {VD_FAULT_ELEMENT, 1, test_node(&job, 1, RO_OP_MATMUL), 5, 20};
    const vd_crumb place = {.step = 1, .node = fault.node, .element = 5, .count = 1, .part = 1};
    test_provider_open(&p, &job, 1, &fault);
    test_audit a = {.side = &p.side};
    cr_assert_eq(test_audit_place(&a, &place), VD_RESULT_CONVICTED);
    keep(&a.proof, "fraud-fold");
    test_audit_close(&a);
    test_provider_close(&p);
    test_provider_open(&p, &job, 1, NULL);
    parts_of = p.side.source;
    p.side.source.fold = another_part;
    p.side.source.dishonest = true;
    a = (test_audit){.side = &p.side};
    cr_assert_eq(test_audit_place(&a, &place), VD_RESULT_CONVICTED);
    cr_assert_eq(a.outcome.place.part, 1);
    keep(&a.proof, "fraud-part");
    test_audit_close(&a);
    test_provider_close(&p);
    test_job_close(&job);
}
