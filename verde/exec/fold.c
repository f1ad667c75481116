/* Long folds, run part by part; a part is a step of the fold in SPEC.md. PROTOCOL.md section
 * 5.5. */
#include "repops/free.h"
#include "repops/ref.h"
#include "verde/exec/source.h"

bool vd_fold_open(vd_fold *fold, const vd_program *program, const vd_graph *graph, uint32_t node,
                  int64_t element) {
    const vd_node *n = vd_node_stored(graph, node);
    if (n->input_count > VD_FOLD_INPUTS)
        return false;
    *fold = (vd_fold){.element = element};
    vd_node_call(program, graph, node, &fold->call, fold->input);
    fold->bounded = program->rounding.bits && ro_op_is_free(n->op);
    fold->parts = (uint64_t)ro_ref_steps(&fold->call);
    fold->size =
        fold->bounded ? ro_ref_bounded_state_size(&fold->call) : ro_ref_state_size(&fold->call);
    return fold->parts > 1;
}

static ro_acc acc_of(const vd_fold *fold, const uint8_t *bytes) {
    ro_acc acc;
    ro_ref_begin(&fold->call, fold->element, &acc);
    for (size_t i = 0; bytes && i < fold->size; i++)
        acc.word[i / 4] |= (uint32_t)bytes[i] << 8 * (i % 4);
    return acc;
}

void vd_fold_part(const vd_fold *fold, uint64_t part, const uint8_t *before, vd_load load,
                  void *user, uint8_t *after) {
    const ro_access in = {load, user};
    ro_acc acc = acc_of(fold, before);
    (fold->bounded ? ro_ref_bounded_step : ro_ref_step)(&fold->call, fold->element, (int64_t)part,
                                                        &acc, &in);
    for (size_t i = 0; i < fold->size; i++)
        after[i] = (uint8_t)(acc.word[i / 4] >> 8 * (i % 4));
}

/* For finishing a fold, which loads no inputs (SPEC.md). */
static uint32_t no_load(void *user, int input, int64_t index) {
    (void)user, (void)input, (void)index;
    return 0;
}

uint32_t vd_fold_element(const vd_fold *fold, const uint8_t *last) {
    const ro_access none = {no_load, NULL};
    const ro_acc acc = acc_of(fold, last);
    return ro_ref_finish(&fold->call, fold->element, &acc, &none);
}

ro_bounded vd_fold_bounded(const vd_fold *fold, const uint8_t *last) {
    const ro_acc acc = acc_of(fold, last);
    return ro_ref_bounded_finish(&fold->call, &acc);
}

vd_status vd_fold_run(const vd_fold *fold, const void *const *input, vd_records *out, vd_err *err) {
    ro_ref_memory memory = {&fold->call, input};
    uint8_t state[VD_PART_BYTES] = {0};
    bool ok = true;
    for (uint64_t i = 0; ok && i < fold->parts; i++) {
        vd_fold_part(fold, i, i ? state : NULL, ro_ref_load_memory, &memory, state);
        ok = vd_records_add(out, state, fold->size);
    }
    return ok ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "fold: out of memory");
}
