/* This file keeps the plan of a program's steps: only its counts change while a step runs. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/kept_weights_internal.h"

/* Returns NULL without memory. */
static uint32_t *copy_of(const uint32_t *list, size_t count) {
    uint32_t *copy = malloc((count + 1) * sizeof *copy);
    if (copy)
        memcpy(copy, list, count * sizeof *copy);
    return copy;
}

/* Lends a plan, with copies of its counts. False: out of memory. */
static bool lend(const vd_plan *plan, uint32_t values, vd_plan *out) {
    *out = *plan;
    out->lent = true;
    out->uses = copy_of(plan->uses, values);
    out->ran = calloc((size_t)plan->group_count + 1, sizeof *out->ran);
    if (out->uses && out->ran)
        return true;
    vd_plan_free(out);
    return false;
}

bool vd_kept_plan(const vd_kept_weights *kept, const vd_graph *graph, vd_fuses fuses, vd_plan *plan,
                  uint32_t **root, vd_status *status, vd_err *err) {
    if (kept->graph != graph || kept->fuses != fuses)
        return false;
    if (lend(&kept->plan, kept->values, plan))
        *root = kept->root;
    else
        *status = vd_fail(err, VD_ERR_LOCAL, "out of memory for the plan of a step");
    return true;
}

void vd_kept_plan_put(vd_kept_weights *kept, const vd_graph *graph, vd_fuses fuses, uint32_t values,
                      vd_plan *plan, uint32_t *root) {
    vd_plan own = {0};
    if (kept->graph || !lend(plan, values, &own))
        return;
    kept->plan = *plan, kept->root = root;
    kept->graph = graph, kept->fuses = fuses, kept->values = values;
    *plan = own;
}

void vd_kept_plan_drop(vd_kept_weights *kept) {
    vd_plan_free(&kept->plan);
    free(kept->root);
    kept->graph = NULL, kept->root = NULL;
}
