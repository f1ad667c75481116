/* This file logs a trainer's roundings, and compares an auditor's with the log. */
#include "verde/log/rounded.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verde/log/program.h"

struct vd_rounded {
    vd_rounded_options options;
    vd_free_kernels free;
    vd_log_node *node; /* free nodes of a step, then those of initialisation; owned */
    uint32_t nodes[2]; /* their numbers: of a step, of initialisation */
    vd_log_writer *writer;
    vd_log_file *file;
    vd_log_done followed;   /* auditor: of the last step that ended */
    vd_log_section section; /* auditor: of the current node */
    ro_close_call *call;    /* copy of a node's calls that a fault alters; owned */
    bool altered;           /* whether a fault altered the log in this step */
    uint64_t refused;
    vd_difference difference;
    vd_rounded_count count[RO_OP_END];
};

static const vd_graph *graph_of(const vd_rounded *r, int64_t step) {
    return step < 0 ? &r->options.program->init : &r->options.program->step;
}

/* ---- the free nodes ---- */

static vd_status open_nodes(vd_rounded *r, vd_err *err) {
    const vd_graph *step = graph_of(r, 0), *init = graph_of(r, -1);
    r->node = calloc((size_t)step->node_count + init->node_count + 1, sizeof *r->node);
    if (!r->node)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    r->nodes[0] = vd_free_nodes(step, r->node);
    r->nodes[1] = vd_free_nodes(init, r->node + r->nodes[0]);
    return VD_OK;
}

const vd_log_node *vd_rounded_nodes(const vd_rounded *r, int64_t step, uint32_t *count) {
    *count = r->nodes[step < 0];
    return step < 0 ? r->node + r->nodes[0] : r->node;
}

/* ---- what the executor calls ---- */

static void count(vd_rounded *r, const vd_free_node *n) {
    vd_rounded_count *c = &r->count[vd_node_stored(graph_of(r, n->step), n->node)->op];
    const bool calls = r->options.log.encoding == VD_LOG_CALLS;
    const bool trains = r->options.role == VD_TRAINER;
    c->elements += (uint64_t)ro_shape_numel(n->shape);
    c->decided += !calls   ? (uint64_t)n->report->decided
                  : trains ? (uint64_t)n->report->call_count
                           : (uint64_t)n->rounding->call_count;
    c->escapes += (uint64_t)n->report->escapes;
    c->corrected += (uint64_t)n->report->corrected;
}

static double threshold_of(const vd_rounded *r, const vd_free_node *n) {
    const int op = vd_node_stored(graph_of(r, n->step), n->node)->op;
    return vd_threshold_at(r->options.program->rounding.threshold[op], r->options.log.bits,
                           n->rounding->bits);
}

static vd_status logged(void *user, const vd_free_node *n, vd_err *err) {
    vd_rounded *r = user;
    const ro_close_call *call = n->report->call;
    int64_t calls = n->report->call_count;
    count(r, n);
    if (vd_fault_is_emitted(r->options.fault)) {
        free(r->call);
        r->call = malloc(((size_t)calls + 1) * sizeof *r->call);
        if (!r->call)
            return vd_fail(err, VD_ERR_LOCAL, "out of memory");
        if (calls)
            memcpy(r->call, call, (size_t)calls * sizeof *call);
        vd_fault_log(r->options.fault, n, r->call, &calls, n->rounding->symbol, &r->altered);
        call = r->call;
    }
    if (r->options.again)
        return VD_OK;
    if (r->options.log.encoding == VD_LOG_SYMBOLS)
        return vd_log_symbols(r->writer, n->ro, n->node, n->rounding->symbol, n->output, err);
    return vd_log_calls(r->writer, n->ro, n->node, call, calls, n->output, err);
}

/* ---- an auditor ---- */

/* Reports a difference, which ends the run; a contesting auditor remembers the first instead. */
static vd_status differ(vd_rounded *r, int64_t step, const char *text, vd_err *err) {
    if (!r->options.contest)
        return vd_fail(err, VD_ERR_PEER, "%s", text);
    if (!r->difference.found) {
        r->difference = (vd_difference){.found = true, .step = step};
        snprintf(r->difference.text, sizeof r->difference.text, "%s", text);
    }
    return VD_OK;
}

/* Replaces a section that breaks the rules by an empty one. */
static vd_status empty_section(vd_rounded *r, int64_t step, uint32_t node, vd_err *err) {
    vd_err why = *err;
    uint32_t count;
    const vd_log_node *list = vd_rounded_nodes(r, step, &count);
    vd_status status = differ(r, step, why.text, err);
    vd_log_section_free(&r->section);
    for (uint32_t i = 0; i < count; i++)
        if (list[i].node == node)
            r->section.elements = list[i].elements;
    if (status != VD_OK || r->options.log.encoding == VD_LOG_CALLS)
        return status;
    r->section.symbol = malloc((size_t)r->section.elements + 1);
    if (!r->section.symbol)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    memset(r->section.symbol, 1, (size_t)r->section.elements);
    return VD_OK;
}

static vd_status read_section(void *user, int64_t step, uint32_t node, ro_rounding *rounding,
                              vd_err *err) {
    vd_rounded *r = user;
    vd_err local = {0};
    vd_status status = vd_log_read(r->file, node, &r->section, &local);
    if (status == VD_ERR_PEER)
        status = empty_section(r, step, node, &local);
    if (status != VD_OK)
        return vd_fail(err, status, "%s", local.text);
    rounding->call = r->section.call;
    rounding->call_count = r->section.call ? r->section.count : 0;
    rounding->symbol = r->section.symbol;
    return VD_OK;
}

static vd_status fail_compare(vd_rounded *r, const vd_free_node *n, const vd_log_difference *d,
                              vd_err *err) {
    char text[sizeof r->difference.text];
    const vd_name name = vd_node_name(graph_of(r, n->step), n->node);
    uint32_t own = 0;
    char here[VD_F32_TEXT], there[VD_F32_TEXT];
    if (d->single)
        memcpy(&own, &n->output[d->element], sizeof own);
    vd_f32_text(own, here);
    vd_f32_text(d->word, there);
    if (d->single)
        snprintf(text, sizeof text,
                 "step %" PRId64 ", node %" PRIu32 " (%s): the log does not lead to its own "
                 "result; element %" PRId64 " is %s here and %s there",
                 n->step, n->node, name.text, d->element, here, there);
    else
        snprintf(text, sizeof text,
                 "step %" PRId64 ", node %" PRIu32 " (%s): the log does not lead to its own "
                 "result in several of the elements %" PRId64 " to %" PRId64,
                 n->step, n->node, name.text, d->element, d->end - 1);
    return differ(r, n->step, text, err);
}

static vd_status fail_moved(vd_rounded *r, const vd_free_node *n, const vd_refused *refused,
                            vd_err *err) {
    char text[sizeof r->difference.text];
    char logged[VD_F32_TEXT], least[VD_F32_TEXT], greatest[VD_F32_TEXT];
    r->refused += (uint64_t)refused->count;
    vd_f32_text(refused->word, logged);
    vd_f32_text(refused->low, least);
    vd_f32_text(refused->high, greatest);
    snprintf(text, sizeof text,
             "step %" PRId64 ", node %" PRIu32
             " (%s): no device could have rounded element %" PRId64
             " to %s, as the log says; only values from %s to %s are possible",
             n->step, n->node, vd_node_name(graph_of(r, n->step), n->node).text, refused->element,
             logged, least, greatest);
    return differ(r, n->step, text, err);
}

static vd_status compared(void *user, const vd_free_node *n, vd_err *err) {
    vd_rounded *r = user;
    vd_log_difference d;
    vd_refused refused;
    count(r, n);
    vd_check_moved(n, &r->section, threshold_of(r, n), &refused);
    vd_status status = refused.count ? fail_moved(r, n, &refused, err) : VD_OK;
    if (vd_fault_is_emitted(r->options.fault)) { /* an auditor may be dishonest too */
        int64_t calls = r->section.call ? r->section.count : 0;
        vd_fault_log(r->options.fault, n, r->section.call, &calls, r->section.symbol, &r->altered);
    }
    if (status != VD_OK || r->difference.found)
        return status;
    return vd_log_compare(n->ro, &r->section, n->output, &d) ? VD_OK : fail_compare(r, n, &d, err);
}

/* ---- life ---- */

static void set_free(vd_rounded *r) {
    const bool calls = r->options.log.encoding == VD_LOG_CALLS;
    const bool trains = r->options.role == VD_TRAINER;
    const vd_free f = {.profile = r->options.profile,
                       .mode = trains ? (calls ? RO_FREE_REPORT : RO_FREE_SYMBOLS)
                                      : (calls ? RO_FREE_REPLAY : RO_FREE_FOLLOW),
                       .bits = r->options.log.bits,
                       .threshold = r->options.thresholds ? r->options.thresholds->of : NULL,
                       .follow = read_section,
                       .ran = trains ? logged : compared,
                       .user = r,
                       .keep_inputs = !trains || vd_fault_is_emitted(r->options.fault)};
    vd_free_kernels_open(&r->free, &f);
}

static void destroy(vd_rounded *r) {
    vd_log_close(r->file);
    vd_log_section_free(&r->section);
    vd_free_kernels_close(&r->free);
    free(r->call);
    free(r->node);
    free(r);
}

vd_log_run vd_rounded_schedule(const vd_log_run *run, const vd_program *program) {
    vd_log_run log = *run;
    log.interval = program->checkpoint_interval;
    log.steps = program->steps;
    return log;
}

vd_status vd_rounded_create(const vd_rounded_options *options, vd_rounded **out, vd_err *err) {
    vd_rounded *r = *out = calloc(1, sizeof *r);
    if (!r)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    static const vd_fault none = {0};
    r->options = *options;
    if (!r->options.fault)
        r->options.fault = &none;
    set_free(r);
    vd_status status = open_nodes(r, err);
    if (status == VD_OK && options->role == VD_TRAINER && !options->again)
        status = vd_log_writer_create(&options->log, options->dir, options->memory_bytes,
                                      &r->writer, err);
    if (status == VD_OK)
        return VD_OK;
    destroy(r); /* a failed creation; the writer is created last */
    *out = NULL;
    return status;
}

const vd_kernels *vd_rounded_kernels(const vd_rounded *rounded) {
    return &rounded->free.kernels;
}

const vd_log_run *vd_rounded_log(const vd_rounded *r) {
    return &r->options.log;
}

vd_status vd_rounded_begin(vd_rounded *r, int64_t step, const vd_hash *root, vd_err *err) {
    uint32_t nodes;
    const vd_log_node *node = vd_rounded_nodes(r, step, &nodes);
    r->altered = false;
    if (r->options.role == VD_TRAINER && r->options.again)
        return VD_OK;
    if (r->options.role == VD_TRAINER)
        return vd_log_begin(r->writer, step, node, nodes, err);
    vd_log_close(r->file); /* left open by a step that was abandoned */
    r->file = NULL;
    return vd_log_open(r->options.dir, &r->options.log, step, node, nodes, root, &r->file, err);
}

vd_status vd_rounded_end(vd_rounded *r, vd_err *err) {
    if (r->options.role == VD_TRAINER)
        return vd_log_end(r->writer, err);
    vd_log_file_done(r->file, &r->followed);
    vd_log_close(r->file);
    r->file = NULL;
    return VD_OK;
}

vd_status vd_rounded_done(vd_rounded *r, int64_t step, vd_log_done *done, vd_err *err) {
    if (r->options.role == VD_TRAINER)
        return vd_log_wait(r->writer, step, done, err);
    *done = r->followed;
    return VD_OK;
}

vd_rounded_count vd_rounded_counted(const vd_rounded *r, int op) {
    if (op > 0 && op < RO_OP_END)
        return r->count[op];
    vd_rounded_count all = {0};
    for (int i = 0; i < RO_OP_END; i++) {
        all.elements += r->count[i].elements;
        all.decided += r->count[i].decided;
        all.escapes += r->count[i].escapes;
        all.corrected += r->count[i].corrected;
    }
    all.refused = r->refused;
    return all;
}

vd_difference *vd_rounded_difference(vd_rounded *r) {
    return &r->difference;
}

vd_status vd_rounded_close(vd_rounded *r, vd_err *err) {
    if (!r)
        return VD_OK;
    vd_status status = vd_log_writer_close(r->writer, err);
    destroy(r);
    return status;
}

void vd_rounded_drop(vd_rounded *r) {
    vd_err unread = {0};
    if (vd_rounded_close(r, &unread) != VD_OK)
        return;
}
