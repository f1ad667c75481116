/* Prints what an audit proves, what the run states of itself, and what was not examined. */
#include <string.h>

#include "verde/audit/recheck.h"
#include "verde/exec/run_log_found.h"

enum { QUIET_SECONDS = 2 };

void vd_recheck_tell_progress(void *user, int64_t steps) {
    vd_rechecking *a = user;
    a->steps += steps;
    if (vd_tick(&a->ticker, QUIET_SECONDS, false))
        vd_tell_meanwhile(false, "executed %lld steps again", (long long)a->steps);
}

static uint32_t count_of(const vd_rechecking *a, vd_stretch_result result) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < a->stretches; i++)
        count += a->result[i] == result;
    return count;
}

static const char *stretch_text(const vd_rechecking *a, uint32_t stretch, char text[64]) {
    const vd_run_log *log = &a->run.log;
    const vd_stretch s = vd_recheck_stretch(log, stretch);
    if (stretch == 0)
        return "initialisation";
    snprintf(text, 64, "steps %lld..%lld", (long long)log->step[s.from],
             (long long)log->step[s.last] - 1);
    return text;
}

/* ---- statements of the run ---- */

static void print_machine(vd_buf *out, const vd_machine *m, const vd_ran *stated) {
    vd_printf(out, "stated       host %s, backend %s", m->host, m->backend);
    if (m->uuid[0])
        vd_printf(out, ", device %s, %s", m->device, m->uuid);
    vd_printf(out, ", %d thread%s, verde %s", (int)m->threads, vd_plural((uint64_t)m->threads),
              m->version);
    if (stated)
        vd_printf(out, ", %.3f s", (double)stated->microseconds / 1e6);
    vd_printf(out, "\n");
}

static json_t *machine_json(const vd_machine *m, const vd_ran *stated) {
    json_t *out =
        json_pack("{ss ss ss ss si ss}", "host", m->host, "device", m->device, "uuid", m->uuid,
                  "backend", m->backend, "threads", (int)m->threads, "version", m->version);
    if (stated)
        json_object_set_new(out, "microseconds", json_integer(stated->microseconds));
    return out;
}

/* ---- a difference ---- */

static bool comes_again(const vd_recheck_difference *d) {
    return d->place.kind != VD_DIVERGE_STORED;
}

static void print_again(vd_buf *out, const vd_recheck_difference *d) {
    if (d->place.kind == VD_DIVERGE_COMMITMENT)
        vd_printf(out, "again        the run holds the right state, and run.json names another\n");
    else if (comes_again(d))
        vd_printf(out, "again        yes: backend %s computes the wrong value again%s\n",
                  d->own_backend,
                  d->same_machine ? "" : ", here, which is not the machine that the run states");
    else
        vd_printf(out, "again        no: backend %s gives the right state%s\n", d->own_backend,
                  d->same_machine ? " now: an error that came once, or another build"
                                  : " here, which is not the machine that the run states");
}

static void print_difference(vd_buf *out, const vd_rechecking *a, const vd_recheck_difference *d) {
    const vd_run_log *log = &a->run.log;
    const vd_diff_run both[2] = {a->run, a->run};
    const vd_machine *m = vd_recheck_machine(a, d->checkpoint);
    /* equal inputs and the operator's definition prove it */
    const bool proven = d->place.kind == VD_DIVERGE_NODE && d->place.tensor.has_reference;
    vd_printf(out, "\n%s       %sa is the run, executed again on %s; b is this audit, on %s\n",
              proven ? "proven" : "shown ",
              proven ? "by the operator's definition: " : "by execution: ", d->own_backend,
              ro_ctx_backend(a->run.loaded.ro));
    vd_divergence_print_place(out, both, &d->place);
    print_again(out, d);
    if (m)
        print_machine(out, m, &log->stated[d->checkpoint]);
    else
        vd_printf(out, "stated       nothing, of these steps\n");
    if (d->last > d->checkpoint)
        vd_printf(out, "not checked  steps %lld..%lld, which go on from the wrong state\n",
                  (long long)log->step[d->checkpoint], (long long)log->step[d->last] - 1);
}

static json_t *difference_json(const vd_rechecking *a, const vd_recheck_difference *d) {
    const vd_diff_run both[2] = {a->run, a->run};
    const vd_machine *m = vd_recheck_machine(a, d->checkpoint);
    return json_pack("{sI sI so sb ss sb so}", "checkpoint",
                     (json_int_t)a->run.log.step[d->checkpoint], "not_checked_up_to",
                     (json_int_t)a->run.log.step[d->last], "proven",
                     vd_divergence_json(both, &d->place, NULL), "again", comes_again(d),
                     "own_backend", d->own_backend, "same_machine", d->same_machine, "stated",
                     m ? machine_json(m, &a->run.log.stated[d->checkpoint]) : json_null());
}

/* ---- all of it ---- */

static void print_drawn(vd_buf *out, const vd_rechecking *a) {
    char text[64];
    vd_printf(out, "stretches    %u of %u", a->drawn_count, a->stretches);
    if (a->drawn_count == a->stretches)
        vd_printf(out, ": all of the run%s\n", a->finished ? "" : " so far");
    else {
        vd_printf(out, ", by --seed %llu:", (unsigned long long)a->o->seed);
        for (uint32_t i = 0; i < a->drawn_count && i < 4; i++)
            vd_printf(out, "%s %s", i ? "," : "", stretch_text(a, a->drawn[i], text));
        vd_printf(out, "%s\n", a->drawn_count > 4 ? ", ..." : "");
    }
}

void vd_recheck_print(const vd_rechecking *a) {
    vd_buf told = {0}, *out = &told;
    const vd_run_log *log = &a->run.log;
    const uint32_t unseen = count_of(a, VD_UNSEEN), differ = count_of(a, VD_DIFFERS);
    char text[64];
    vd_printf(out, "run          %s%s%s\n", a->o->dir, log->fault[0] ? ", with fault " : "",
              log->fault);
    vd_put_hex(out, "program", log->program.b);
    if (a->finished)
        vd_put_hex(out, "run root", a->run_root.b);
    else
        vd_printf(out, "unfinished   %u of %llu checkpoints so far\n", log->count,
                  (unsigned long long)vd_run_leaves(&a->run.loaded.program));
    for (uint32_t i = 0; i < log->machine_count; i++)
        print_machine(out, &log->machine[i], NULL);
    if (log->machine_count == 0)
        vd_printf(out, "stated       nothing: it is a run of an older version, or of prompts\n");
    print_drawn(out, a);
    vd_printf(out, "executed     %lld step%s, on host %s, backend %s, %d thread%s\n",
              (long long)a->steps, vd_plural((uint64_t)a->steps), a->here.host, a->here.backend,
              (int)a->here.threads, vd_plural((uint64_t)a->here.threads));
    for (uint32_t i = 0; i < a->difference_count; i++)
        print_difference(out, a, &a->difference[i]);
    if (a->difference_count)
        vd_printf(out, "\n");
    for (uint32_t i = 0; i < a->damage_count; i++)
        vd_printf(out, "damaged      %s\n             from there nothing was executed: %s\n",
                  a->damage[i].why, stretch_text(a, a->damage[i].stretch, text));
    if (unseen)
        vd_printf(out, "not checked  %u stretch%s, in which anything may be wrong\n", unseen,
                  unseen == 1 ? "" : "es");
    vd_printf(
        out,
        "not checked  files of states that no stretch began from: `verde check %s` reads all\n",
        a->o->dir);
    if (differ)
        vd_printf(out, "equal        no: %u stretch%s\n", differ,
                  differ == 1 ? " does not give what the run commits to"
                              : "es do not give what the run commits to");
    else if (a->damage_count)
        vd_printf(
            out,
            "equal        no: %u state%s damaged; what was executed gives what the run commits "
            "to\n",
            a->damage_count, a->damage_count == 1 ? " is" : "s are");
    else
        vd_printf(
            out, "equal        yes: what was executed gives what the run commits to, to the bit\n");
    vd_result_text(out);
}

static json_t *damaged_json(const vd_rechecking *a) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < a->damage_count; i++) {
        const vd_stretch s = vd_recheck_stretch(&a->run.log, a->damage[i].stretch);
        json_array_append_new(
            list, json_pack("{sI sI ss}", "checkpoint", (json_int_t)a->run.log.step[s.from],
                            "not_checked_up_to", (json_int_t)a->run.log.step[s.last], "reason",
                            a->damage[i].why));
    }
    return list;
}

void vd_recheck_print_json(const vd_rechecking *a) {
    json_t *list = json_array(), *machines = json_array();
    for (uint32_t i = 0; i < a->difference_count; i++)
        json_array_append_new(list, difference_json(a, &a->difference[i]));
    for (uint32_t i = 0; i < a->run.log.machine_count; i++)
        json_array_append_new(machines, machine_json(&a->run.log.machine[i], NULL));
    json_t *out =
        json_pack("{sb sb so so sI sI sI sI so sI so so so}", "equal",
                  a->difference_count == 0 && a->damage_count == 0, "finished", a->finished,
                  "program", vd_hash_text(&a->run.log.program), "run_root",
                  a->finished ? vd_hash_text(&a->run_root) : json_null(), "stretches",
                  (json_int_t)a->stretches, "drawn", (json_int_t)a->drawn_count, "not_checked",
                  (json_int_t)count_of(a, VD_UNSEEN), "seed", (json_int_t)a->o->seed, "executed_on",
                  machine_json(&a->here, NULL), "steps", (json_int_t)a->steps, "stated", machines,
                  "differences", list, "damaged", damaged_json(a));
    if (a->run.log.found_count) /* findings of `verde run --guard`, as in run.json */
        json_object_set_new(out, "guard", vd_found_json(a->run.log.found, a->run.log.found_count));
    vd_result_json(out);
}
