/* A provider executes its own run again: every fault that changes a committed state is found in its
 * stretch, and nothing else is. */
#include "tests/support/dispute.h"
#include "verde/exec/recheck.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 6, INTERVAL = 2, FAULTS = 500 };

typedef struct {
    test_job job;
    ro_ctx *ro; /* uses another instruction set than the runs */
    vd_exec fresh;
} bench;

static void bench_open(bench *b, vd_model_kind kind) {
    if (access("/dev/shm", W_OK) == 0) /* hundreds of runs, each of which would wait for the disk */
        setenv("TMPDIR", "/dev/shm", 0);
    test_job_open(&b->job, kind, STEPS, INTERVAL);
    const ro_options options = {.size = sizeof options, .threads = 1};
    cr_assert(ro_ctx_create(&options, &b->ro) == RO_OK);
    b->fresh = (vd_exec){.program = &b->job.program, .data = b->job.data, .ro = b->ro};
}

static void bench_close(bench *b) {
    ro_ctx_destroy(b->ro);
    test_job_close(&b->job);
}

static vd_run_log log_of(const test_provider *p) {
    vd_run_log log = {0};
    vd_err err = {0};
    cr_assert(vd_store_load_log(p->dir, &log, &err) == VD_OK, "%s", err.text);
    return log;
}

/* Returns the checkpoints that differ, as a bit mask. */
static uint32_t audit_all(const bench *b, const test_provider *p, const vd_run_log *log) {
    const vd_recheck audit = {.dir = p->dir, .log = log, .own = &p->exec, .fresh = &b->fresh};
    uint32_t found = 0, differs;
    vd_err err = {0};
    for (uint32_t i = 0; i < vd_recheck_stretches(log); i++) {
        cr_assert(vd_recheck_execute(&audit, i, &differs, &err) == VD_OK, "%s", err.text);
        found |= differs < log->count ? 1u << differs : 0;
    }
    return found;
}

/* ---- faults as hardware causes them ---- */

static vd_fault field(const test_job *job, uint64_t seed) {
    char text[64];
    snprintf(text, sizeof text, "field@%llu", (unsigned long long)seed);
    return test_fault(job, text);
}

Test(recheck, faults_are_drawn_in_their_shares) {
    enum { DRAWS = 20000 };
    test_job job;
    uint32_t count[VD_FIELDS] = {0};
    test_job_open(&job, VD_MODEL_GPT2, STEPS, INTERVAL);
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        const vd_fault f = field(&job, seed);
        const vd_graph *g = f.step < 0 ? &job.program.init : &job.program.step;
        cr_assert(f.kind == VD_FAULT_FIELD && f.step >= -1 && f.step < STEPS &&
                  f.node < g->node_count && f.seed == seed);
        count[f.field]++;
    }
    cr_expect(count[VD_FIELD_BIT] > DRAWS / 3 - DRAWS / 50 && count[VD_FIELD_BIT] < DRAWS * 2 / 5,
              "%u flip one bit", count[VD_FIELD_BIT]);
    cr_expect(count[VD_FIELD_NOT_FINITE] > DRAWS / 200 && count[VD_FIELD_NOT_FINITE] < DRAWS / 66,
              "%u are not finite", count[VD_FIELD_NOT_FINITE]);
    for (int i = 0; i < VD_FIELDS; i++)
        cr_expect_gt(count[i], 0, "%s", vd_field_name((vd_field)i));
    test_job_close(&job);
}

Test(recheck, a_seed_is_written_as_it_is_read) {
    static const char *const wrong[] = {"field", "field@", "field@-1", "field@x", "field@1:2"};
    test_job job;
    vd_fault f;
    vd_err err = {0};
    char text[64];
    test_job_open(&job, VD_MODEL_MLP, STEPS, INTERVAL);
    f = field(&job, UINT64_C(18446744073709551615));
    vd_fault_print(&f, &job.program, text, sizeof text);
    cr_expect_str_eq(text, "field@18446744073709551615");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_expect_eq(vd_fault_parse(wrong[i], &job.program, &f, &err), VD_ERR_USAGE, "%s",
                     wrong[i]);
        cr_expect(strstr(err.text, "field@SEED"), "%s", err.text);
    }
    test_job_close(&job);
}

/* A fault in a step changes the state at the end of its interval, or no committed state. Later
 * states follow from that state, so they are not found again. */
Test(recheck, each_of_500_faults_is_found_that_changes_a_committed_state) {
    bench b;
    test_provider honest;
    uint32_t found = 0, of[VD_FIELDS] = {0};
    bench_open(&b, VD_MODEL_GPT2);
    test_provider_open(&honest, &b.job, 1, NULL);
    vd_run_log right = log_of(&honest);
    cr_expect_eq(audit_all(&b, &honest, &right), 0, "an honest run");
    for (uint64_t seed = 0; seed < FAULTS; seed++) {
        test_provider run;
        const vd_fault f = field(&b.job, seed);
        test_provider_open(&run, &b.job, 2, &f);
        vd_run_log log = log_of(&run);
        uint32_t at = 0;
        while (log.step[at] <= f.step)
            at++;
        const bool changed = !vd_hash_equal(&log.state[at], &right.state[at]);
        const uint32_t differs = audit_all(&b, &run, &log);
        cr_expect_eq(differs, changed ? 1u << at : 0, "seed %d, %s: %x, expected checkpoint %u",
                     (int)seed, vd_field_name(f.field), differs, at);
        found += changed;
        of[f.field] += changed;
        vd_run_log_free(&log);
        test_provider_close(&run);
    }
    cr_expect(found > FAULTS / 2, "%u of %d change a state", found, FAULTS);
    for (int i = 0; i < VD_FIELDS; i++)
        cr_expect_gt(of[i], 0, "%s", vd_field_name((vd_field)i));
    fprintf(stderr, "%u of %d faults change a committed state, and are found\n", found, FAULTS);
    vd_run_log_free(&right);
    test_provider_close(&honest);
    bench_close(&b);
}

/* ---- the place of a fault ---- */

static vd_divergence narrow(const bench *b, const test_provider *p, const vd_exec *own,
                            uint32_t checkpoint) {
    vd_run_log log = log_of(p);
    vd_divergence d;
    vd_err err = {0};
    const vd_recheck audit = {.dir = p->dir, .log = &log, .own = own, .fresh = &b->fresh};
    cr_assert(vd_recheck_narrow(&audit, checkpoint, &d, &err) == VD_OK, "%s", err.text);
    vd_run_log_free(&log);
    return d;
}

Test(recheck, what_comes_again_is_narrowed_to_an_element) {
    bench b;
    bench_open(&b, VD_MODEL_GPT2);
    for (int64_t step = -1; step < STEPS; step++) {
        test_provider run;
        char text[32];
        snprintf(text, sizeof text, "element@%lld%s", (long long)step, step < 0 ? ":1" : "");
        const vd_fault f = test_fault(&b.job, text);
        test_provider_open(&run, &b.job, 2, &f);
        const vd_divergence d =
            narrow(&b, &run, &run.exec, step < 0 ? 0 : (uint32_t)(step / INTERVAL) + 1);
        cr_expect(d.kind == VD_DIVERGE_NODE && d.step == step && d.node[0] == f.node &&
                      d.tensor.count == 1 && d.tensor.bits[1] == d.tensor.reference &&
                      d.tensor.bits[0] != d.tensor.reference,
                  "step %lld: kind %d, step %lld, node %u", (long long)step, (int)d.kind,
                  (long long)d.step, d.node[0]);
        test_provider_close(&run);
    }
    bench_close(&b);
}

Test(recheck, what_came_once_is_told_by_the_state_that_it_led_to) {
    bench b;
    test_provider run;
    bench_open(&b, VD_MODEL_GPT2);
    const vd_fault f = test_fault(&b.job, "element@2");
    test_provider_open(&run, &b.job, 2, &f);
    vd_exec own = run.exec;
    own.fault = (vd_fault){0};
    const vd_divergence d = narrow(&b, &run, &own, 2);
    cr_expect(d.kind == VD_DIVERGE_STORED && d.broken[0] && !d.broken[1] && d.of_leaf &&
              d.tensor.known && d.equal_at == 2 && d.differs_at == 4);
    test_provider_close(&run);
    bench_close(&b);
}

Test(recheck, a_commitment_that_the_run_does_not_hold_is_told_as_such) {
    bench b;
    test_provider run;
    bench_open(&b, VD_MODEL_MLP);
    const vd_fault f = test_fault(&b.job, "history");
    test_provider_open(&run, &b.job, 2, &f);
    vd_run_log log = log_of(&run);
    cr_expect_neq(audit_all(&b, &run, &log), 0);
    const vd_divergence d = narrow(&b, &run, &run.exec, 2);
    cr_expect(d.kind == VD_DIVERGE_COMMITMENT && d.broken[0] && !d.broken[1]);
    vd_run_log_free(&log);
    test_provider_close(&run);
    bench_close(&b);
}

/* ---- stretches ---- */

Test(recheck, stretches_lead_from_one_kept_state_to_the_next) {
    vd_run_log log = {.count = 12};
    cr_expect_eq(vd_recheck_stretches(&log), 12, "each checkpoint");
    for (int32_t every = 1; every <= 12; every++) {
        uint32_t next = 0;
        log.keep = VD_KEEP_MIN;
        log.kept_every = every;
        for (uint32_t i = 0; i < vd_recheck_stretches(&log); i++) {
            const vd_stretch s = vd_recheck_stretch(&log, i);
            cr_expect(s.first == next && s.last >= s.first, "every %d: stretch %u", (int)every, i);
            cr_expect(vd_run_log_kept(&log, s.from) == s.from && (i == 0 || s.from + 1 == s.first));
            cr_expect_eq(vd_run_log_kept(&log, s.last), s.last);
            next = s.last + 1;
        }
        cr_expect_eq(next, log.count);
    }
}

Test(recheck, draws_are_different_and_of_a_seed_alone) {
    enum { ALL = 50, SOME = 20 };
    uint32_t seen[ALL] = {0}, first[SOME], second[SOME];
    for (uint64_t seed = 0; seed < 500; seed++) {
        vd_recheck_draw(seed, ALL, SOME, first);
        vd_recheck_draw(seed, ALL, SOME, second);
        cr_assert(memcmp(first, second, sizeof first) == 0);
        for (int i = 0; i < SOME; i++) {
            cr_assert(first[i] < ALL && (i == 0 || first[i] > first[i - 1]));
            seen[first[i]]++;
        }
    }
    for (int i = 0; i < ALL; i++) /* 200 times each is expected */
        cr_expect(seen[i] > 140 && seen[i] < 260, "%d: %u", i, seen[i]);
}
