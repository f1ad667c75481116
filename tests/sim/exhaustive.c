/* The exhaustive liar, for a job of 8 steps, 8 nodes and 8 elements. One bit is wrong at every
 * element of every node of every step in turn, or a step is skipped, so that traces are equal but
 * states are not. The liar answers in every way, either from each question on or at that question
 * only. It must always be convicted or forfeit, and its honest rival never. Usage: exhaustive
 * [EVERY]: plays every EVERYth game; by default all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/keys.h"
#include "tests/sim/memo.h"
#include "tests/sim/party.h"

enum { REFEREE = 100, QUESTIONS_MAX = 64 };

typedef struct {
    toy_job job;
    toy_run honest;
    vd_key *referee;
    uint64_t every, number; /* every: only games whose number it divides are played */
    uint64_t games, agreed, convicted[VD_GRADE_DISMISSED + 1], forfeits, failures, questions;
    uint64_t ways[SIM_WAYS];
} trial;

/* One dispute. */
typedef struct {
    trial *t;
    sim_party party[2];
    uint32_t liar; /* the liar's seat, 0 or 1 */
    vd_buf payload, note;
    const vd_outcome *outcome;
} bout;

static void assign(bout *b) {
    vd_assignment a = {.program = b->t->job.hash, .nonce = {42}, .provider_count = 2};
    vd_key_public(b->t->referee, &a.referee);
    for (int p = 0; p < 2; p++)
        vd_key_public(b->party[p].key, &a.provider[p]);
    sim_need(vd_assignment_write(&a, &b->payload, NULL) == VD_OK &&
                 vd_note_sign(b->t->referee, VD_TYPE_ASSIGNMENT, b->payload.data, b->payload.size,
                              &b->note, NULL) == VD_OK,
             "the assignment");
}

static void open_bout(bout *b, trial *t, toy_run *wrong, uint32_t liar) {
    *b = (bout){.t = t, .liar = liar};
    sim_party_open(&b->party[liar], &t->job, wrong, &t->honest, 1 + liar);
    sim_party_open(&b->party[1 - liar], &t->job, &t->honest, NULL, 2 - liar);
    b->party[liar].rivals = &b->party[1 - liar].last;
    assign(b);
}

static void close_bout(bout *b) {
    for (int p = 0; p < 2; p++)
        sim_party_close(&b->party[p]);
    vd_buf_free(&b->payload);
    vd_buf_free(&b->note);
}

static void put_question(bout *b, vd_referee *referee, const vd_outgoing *q) {
    vd_buf request = {0};
    sim_need(vd_request_write(&b->note, q->note, &request, NULL) == VD_OK, "a request");
    vd_buf note = sim_party_answer(&b->party[q->party], &request, &q->question, q->text);
    if (note.size)
        vd_referee_answer(referee, q->party, note.data, note.size);
    else
        vd_referee_no_answer(referee, q->party, "did not answer in time");
    b->t->questions++;
    vd_buf_free(&request);
    vd_buf_free(&note);
}

/* Returns what is wrong with the outcome, or NULL. */
static const char *objection(const bout *b, const vd_outcome *o) {
    const struct vd_party_outcome *liar = &o->party[b->liar], *honest = &o->party[1 - b->liar];
    const bool same_claim = liar->claimed && vd_hash_equal(&liar->run_root, &b->t->honest.root);
    if (honest->standing == VD_CONVICTED)
        return "the honest one is convicted";
    if (honest->standing != VD_STANDS)
        return "the honest one forfeits";
    if (!o->accepted || !vd_hash_equal(&o->run_root, &b->t->honest.root))
        return "the honest claim is not accepted";
    if (liar->standing == VD_STANDS && !same_claim)
        return "the liar stands";
    return NULL;
}

static void count(trial *t, const bout *b, const vd_outcome *o) {
    const struct vd_party_outcome *liar = &o->party[b->liar];
    t->games++;
    t->ways[b->party[b->liar].way]++;
    if (liar->standing == VD_CONVICTED)
        t->convicted[liar->grade]++;
    t->forfeits += liar->standing == VD_FORFEITED;
    t->agreed += liar->standing == VD_STANDS;
}

static void complain(const bout *b, const vd_outcome *o, const char *what) {
    const sim_party *liar = &b->party[b->liar];
    const vd_fault *fault = &((const toy_run *)liar->side[0].source.user)->exec.fault;
    b->t->failures++;
    printf("%s: step %lld, node %u, element %u; %s at questions %u to %u, as provider %u. The "
           "liar: %s. The honest one: %s.\n",
           what, (long long)fault->step, fault->node, fault->element, sim_way_name(liar->way),
           liar->from, liar->to, b->liar + 1, o->party[b->liar].reason,
           o->party[1 - b->liar].reason);
}

/* Returns the number of questions that the liar was asked. */
static uint32_t play(bout *b, sim_way way, uint32_t from, uint32_t to) {
    const vd_referee_options options = {.program = &b->t->job.program,
                                        .assignment = &b->payload,
                                        .key = b->t->referee,
                                        .leaf = vd_leaf_element};
    sim_party *liar = &b->party[b->liar];
    vd_outgoing q[VD_PARTIES_MAX];
    vd_referee *referee;
    size_t n;
    vd_err err = {0};
    for (int p = 0; p < 2; p++)
        sim_party_renew(&b->party[p]);
    liar->way = way, liar->from = from, liar->to = to;
    liar->random = b->t->number;
    sim_need(vd_referee_create(&options, &referee, &err) == VD_OK, err.text);
    while (vd_referee_next(referee, q, &n, &err) == VD_OK && n > 0)
        for (size_t i = 0; i < n; i++)
            put_question(b, referee, &q[i]);
    sim_need(err.status == VD_OK, err.text);
    const vd_outcome *o = vd_referee_outcome(referee);
    const char *what = objection(b, o);
    count(b->t, b, o);
    if (what)
        complain(b, o, what);
    vd_referee_destroy(referee);
    return liar->asked;
}

static void try(bout *b, sim_way way, uint32_t from, uint32_t to) {
    if (b->t->number++ % b->t->every == 0)
        (void)play(b, way, from, to);
}

static void try_all_ways(bout *b) {
    const uint32_t questions = play(b, SIM_TELLS, 0, 0);
    sim_need(questions <= QUESTIONS_MAX, "too many questions");
    for (int way = SIM_TELLS + 1; way < SIM_WAYS; way++)
        for (uint32_t k = 0; k < questions; k++) {
            try(b, (sim_way)way, k, UINT32_MAX);
            try(b, (sim_way)way, k, k + 1);
        }
}

static void try_fault(trial *t, const vd_fault *fault) {
    toy_run wrong;
    toy_run_open(&wrong, &t->job, fault);
    for (uint32_t liar = 0; liar < 2; liar++) {
        bout b;
        open_bout(&b, t, &wrong, liar);
        try_all_ways(&b);
        close_bout(&b);
    }
    toy_run_close(&wrong);
}

static uint64_t try_all_places(trial *t) {
    uint64_t places = 0;
    for (int64_t step = -1; step < TOY_STEPS; step++)
        for (uint32_t node = 0; node < (step < 0 ? TOY_INIT_NODES : TOY_NODES); node++)
            for (uint32_t element = 0; element < TOY_ELEMENTS; element++, places++)
                try_fault(t, &(vd_fault){VD_FAULT_ELEMENT, step, node, element, 21});
    for (int64_t step = 0; step < TOY_STEPS; step++, places++)
        try_fault(t, &(vd_fault){.kind = VD_FAULT_SKIP, .step = step});
    return places;
}

static void report(const trial *t, uint64_t places) {
    printf("%llu places, %d ways to answer, %llu disputes, %llu questions\n",
           (unsigned long long)places, SIM_WAYS, (unsigned long long)t->games,
           (unsigned long long)t->questions);
    for (int way = 0; way < SIM_WAYS; way++)
        printf("  %-16s %8llu\n", sim_way_name((sim_way)way), (unsigned long long)t->ways[way]);
    printf("the liar:\n");
    for (int grade = 1; grade <= VD_GRADE_DISMISSED; grade++)
        if (t->convicted[grade])
            printf("  %-16s %8llu\n", vd_grade_name((vd_grade)grade),
                   (unsigned long long)t->convicted[grade]);
    printf("  %-16s %8llu\n  %-16s %8llu\n", "forfeits", (unsigned long long)t->forfeits,
           "has a right root", (unsigned long long)t->agreed);
}

int main(int argc, char **argv) {
    static trial t;
    t.every = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    if (t.every == 0 || argc > 2) {
        fprintf(stderr, "usage: exhaustive [EVERY], a number of at least 1\n");
        return 2;
    }
    toy_job_open(&t.job);
    toy_run_open(&t.honest, &t.job, NULL);
    t.referee = sim_key(REFEREE);
    report(&t, try_all_places(&t));
    vd_key_destroy(t.referee);
    toy_run_close(&t.honest);
    toy_job_close(&t.job);
    sim_memo_clear();
    printf(t.failures ? "FAILED: %llu disputes\n" : "the honest one lost none, the liar all\n",
           (unsigned long long)t.failures);
    return t.failures ? 1 : 0;
}
