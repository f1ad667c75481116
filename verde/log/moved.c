/* Decides what an auditor does with elements that a log moved. PROTOCOL.md section 12.2. */
#include "repops/ref.h"
#include "verde/log/rounded.h"

vd_possible vd_free_possible(const vd_free_node *node, int64_t element) {
    ro_ref_memory memory = {node->call, node->input};
    const ro_access in = {ro_ref_load_memory, &memory};
    return vd_possible_of(ro_ref_bounded(node->call, element, &in), node->rounding->bits);
}

static void moved_check(const vd_free_node *node, const vd_log_section *section, double threshold,
                        const ro_close_call *moved, vd_refused *refused) {
    const vd_possible p = vd_free_possible(node, moved->element);
    const vd_told told = vd_possible_told(&p, section, threshold, moved->element);
    const uint32_t word = vd_float_word(node->output[moved->element]);
    float *out = &node->output[moved->element];
    if (told.recorded && !told.missing && told.low == told.high) {
        *out = vd_word_float(vd_possible_word(&p, told.low));
        return;
    }
    if (vd_possible_has(&p, word))
        return;
    if (refused->count++ == 0)
        *refused = (vd_refused){1, moved->element, word, vd_possible_word(&p, p.low),
                                vd_possible_word(&p, p.high)};
    *out = vd_word_float(vd_possible_word(&p, (int32_t)moved->place));
}

void vd_check_moved(const vd_free_node *node, const vd_log_section *section, double threshold,
                    vd_refused *refused) {
    *refused = (vd_refused){0};
    for (int64_t i = 0; i < node->report->call_count; i++)
        moved_check(node, section, threshold, &node->report->call[i], refused);
}
