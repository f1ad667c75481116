/* This file says how the job of a run on disk differs from the current one. */
#include "verde/exec/other_job.h"

#include <stdarg.h>
#include <string.h>

typedef struct {
    char *text;
    size_t size;
} sentence;

static void add(sentence *s, const char *format, ...) VD_PRINTF(2, 3);
static void add(sentence *s, const char *format, ...) {
    const size_t length = strlen(s->text);
    va_list args;
    va_start(args, format);
    const int put = snprintf(s->text + length, s->size - length, "%s", length ? "; " : "");
    if (put >= 0 && length + (size_t)put < s->size)
        vsnprintf(s->text + length + put, s->size - length - (size_t)put, format, args);
    va_end(args);
}

static void compare_numbers(sentence *s, const char *name, int64_t there, int64_t here) {
    if (there != here)
        add(s, "%s: %lld there, %lld here", name, (long long)there, (long long)here);
}

static void compare_data(sentence *s, const vd_program *there, const vd_program *here) {
    for (uint32_t i = 0; i < there->data_count && i < here->data_count; i++)
        if (memcmp(there->data[i].root, here->data[i].root, sizeof here->data[i].root) != 0) {
            add(s, "data: other bytes there");
            return;
        } else if (!vd_range_equal(&there->data[i].range, &here->data[i].range)) {
            add(s, "data: another range of %s there", here->data[i].tensor.name);
            return;
        }
}

static bool same_shape(const ro_shape *a, const ro_shape *b) {
    bool same = a->dtype == b->dtype && a->ndim == b->ndim;
    for (int32_t i = 0; same && i < a->ndim; i++)
        same = a->dim[i] == b->dim[i];
    return same;
}

static void compare_model(sentence *s, const vd_program *there, const vd_program *here) {
    for (uint32_t i = 0; i < there->leaf_count && i < here->leaf_count; i++)
        if (strcmp(there->leaf[i].name, here->leaf[i].name) != 0 ||
            !same_shape(&there->leaf[i].shape, &here->leaf[i].shape)) {
            add(s, "model: %s there, %s here, or of other sizes", there->leaf[i].name,
                here->leaf[i].name);
            return;
        }
    if (there->leaf_count != here->leaf_count)
        add(s, "model or optimizer: %u tensors there, %u here", there->leaf_count,
            here->leaf_count);
}

static bool same_node(const vd_graph *there, const vd_graph *here, uint32_t node) {
    const vd_node *a = vd_node_stored(there, node), *b = vd_node_stored(here, node);
    bool same = a->op == b->op && a->input_count == b->input_count;
    for (int i = 0; i < RO_MAX_ATTRS; i++)
        same &= vd_node_attr(there, node, i) == vd_node_attr(here, node, i);
    return same && same_shape(&a->shape, &b->shape);
}

static void compare_graphs(sentence *s, const char *name, const vd_graph *there,
                           const vd_graph *here) {
    for (uint32_t i = 0; i < there->node_count && i < here->node_count; i++)
        if (!same_node(there, here, i)) {
            add(s, "%s, from node %u on: %s there, %s here, or with other numbers", name, i,
                vd_node_name(there, i).text, vd_node_name(here, i).text);
            return;
        }
    compare_numbers(s, name, there->node_count, here->node_count);
}

void vd_program_differences(const vd_program *there, const vd_program *here, char *text,
                            size_t size) {
    sentence s = {text, size};
    text[0] = 0;
    compare_numbers(&s, "steps", there->steps, here->steps);
    compare_numbers(&s, "checkpoint_interval", there->checkpoint_interval,
                    here->checkpoint_interval);
    compare_numbers(&s, "seed", (int64_t)there->seed, (int64_t)here->seed);
    compare_numbers(&s, "rounding.bits", there->rounding.bits, here->rounding.bits);
    compare_data(&s, there, here);
    compare_model(&s, there, here);
    if (!text[0])
        compare_graphs(&s, "nodes of initialisation", &there->init, &here->init);
    if (!text[0])
        compare_graphs(&s, "nodes of a step", &there->step, &here->step);
}

/* Fails because of another job. A run's length is part of its job: a longer run starts anew. */
vd_status vd_fail_other_job(const char *dir, const vd_program *here, const char *advice,
                            vd_err *err) {
    char differences[256] = "";
    vd_program there = {0};
    vd_err unread = {0};
    if (vd_store_program(dir, &there, &unread) == VD_OK)
        vd_program_differences(&there, here, differences, sizeof differences);
    vd_program_free(&there);
    return vd_fail(err, VD_ERR_USAGE, "%s: holds a run of another job%s%s; %s", dir,
                   differences[0] ? ": " : "", differences, advice);
}
