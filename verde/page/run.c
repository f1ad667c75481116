/* The page of a run: its losses, checkpoints and program, and the time that it took. */
#include <string.h>

#include "verde/exec/losses_svg.h"
#include "verde/exec/check.h"
#include "verde/exec/run.h"
#include "verde/exec/run_log_found.h"
#include "verde/page/internal.h"

static json_t *checkpoints_json(const vd_run_log *log) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < log->count; i++)
        json_array_append_new(list, json_pack("{sI so}", "step", (json_int_t)log->step[i], "state",
                                              vd_hash_text(&log->state[i])));
    return list;
}

static json_t *graph_json(const char *name, const vd_graph *graph) {
    return json_pack("{ss sI sI}", "graph", name, "nodes", (json_int_t)graph->node_count, "stored",
                     (json_int_t)graph->stored_count);
}

static json_t *program_json(const vd_program *p) {
    return json_pack("{sI sI sI sI s[o, o]}", "state_tensors", (json_int_t)p->leaf_count,
                     "state_bytes", (json_int_t)vd_state_bytes(p), "data_tensors",
                     (json_int_t)p->data_count, "checkpoint_interval",
                     (json_int_t)p->checkpoint_interval, "graphs",
                     graph_json("initialisation", &p->init), graph_json("a step", &p->step));
}

/* Lists what the machines of the run state of themselves. */
static json_t *machines_json(const vd_run_log *log) {
    json_t *list = json_array();
    for (uint32_t m = 0; m < log->machine_count; m++) {
        double seconds = 0;
        for (uint32_t i = 0; log->stated && i < log->count; i++)
            if (log->stated[i].machine == (int32_t)m)
                seconds += 1e-6 * (double)log->stated[i].microseconds;
        json_array_append_new(list, json_pack("{ss ss ss sI ss sf}", "host", log->machine[m].host,
                                              "device", log->machine[m].device, "backend",
                                              log->machine[m].backend, "threads",
                                              (json_int_t)log->machine[m].threads, "version",
                                              log->machine[m].version, "seconds", seconds));
    }
    return list;
}

/* Returns the values of a run of which nothing else is known. */
static json_t *basic_json(const vd_program *program, const vd_run_log *log) {
    const bool whole = log->count == vd_run_leaves(program);
    vd_hash root;
    json_t *out =
        json_pack("{sb so sI sI}", "finished", whole, "program", vd_hash_text(&log->program),
                  "steps", (json_int_t)program->steps, "checkpoints", (json_int_t)log->count);
    if (whole && vd_run_log_root(log, &root, NULL) == VD_OK)
        json_object_set_new(out, "run_root", vd_hash_text(&root));
    return out;
}

vd_status vd_page_of_run(const char *dir, const vd_program *program, const vd_run_log *log,
                         json_t *given, uint64_t losses, vd_buf *out, vd_err *err) {
    json_t *values = given ? given : basic_json(program, log);
    const bool whole = json_is_true(json_object_get(values, "finished"));
    vd_buf picture = {0};
    vd_page_report report = {.kind = "A run",
                             .name = vd_page_base_name(dir),
                             .headline = whole ? "A finished run" : "An unfinished run",
                             .mood = log->fault[0] ? "bad"
                                     : whole       ? "good"
                                                   : "wait",
                             .sentence = log->fault[0] ? "It errs on purpose."
                                         : given       ? "What was compared stands below, under "
                                                         "\"checked\"; \"verde check\" compares all."
                                                 : "This page says what the run's folder says.",
                             .values = values,
                             .picture = &picture,
                             .picture_title = "Losses"};
    json_object_set_new(values, "computed_by", machines_json(log));
    if (log->found_count)
        json_object_set_new(values, "guard", vd_found_json(log->found, log->found_count));
    json_object_set_new(values, "its_program", program_json(program));
    json_object_set_new(values, "committed_states", checkpoints_json(log));
    if (vd_losses_svg(dir, losses, &picture, NULL) != VD_OK)
        picture.size = 0; /* no picture */
    vd_status status = vd_page_of_report(&report, out, err);
    vd_buf_free(&picture);
    json_decref(values);
    return status;
}
