/* The table of phases, and the level that each one narrows. PROTOCOL.md section 5. */
#include "verde/protocol/dispute.h"

const vd_phase_rule vd_phase_rules[VD_PHASE_DONE] = {
    [VD_PHASE_COMMIT] = {vd_commit_ask, vd_commit_take},
    [VD_PHASE_REVEAL] = {vd_reveal_ask, vd_reveal_take},
    [VD_PHASE_ITEMS_OPEN] = {vd_descent_ask, vd_descent_take},
    [VD_PHASE_ITEMS_PROVE] = {vd_items_ask, vd_items_take},
    [VD_PHASE_RUN_OPEN] = {vd_descent_ask, vd_descent_take},
    [VD_PHASE_RUN_PROVE] = {vd_ends_ask, vd_ends_take},
    [VD_PHASE_SUBRUN] = {vd_subrun_ask, vd_subrun_take},
    [VD_PHASE_SUBRUN_OPEN] = {vd_descent_ask, vd_descent_take},
    [VD_PHASE_SUBRUN_PROVE] = {vd_ends_ask, vd_ends_take},
    [VD_PHASE_TRACE] = {vd_trace_ask, vd_trace_take},
    [VD_PHASE_NEXT_OPEN] = {vd_descent_ask, vd_descent_take},
    [VD_PHASE_NEXT_LEAF] = {vd_leaf_ask, vd_next_leaf_take},
    [VD_PHASE_NEXT_RECORD] = {vd_next_record_ask, vd_next_record_take},
    [VD_PHASE_TRACE_OPEN] = {vd_descent_ask, vd_descent_take},
    [VD_PHASE_RECORD] = {vd_record_ask, vd_record_take},
    [VD_PHASE_PRODUCERS] = {vd_producers_ask, vd_producers_take},
    [VD_PHASE_STATE] = {vd_state_ask, vd_state_take},
    [VD_PHASE_TENSOR_OPEN] = {vd_descent_ask, vd_descent_take},
    [VD_PHASE_LEAF] = {vd_leaf_ask, vd_leaf_take},
    [VD_PHASE_FOLD] = {vd_fold_ask, vd_fold_take},
    [VD_PHASE_FOLD_OPEN] = {vd_descent_ask, vd_descent_take},
    [VD_PHASE_FOLD_PROVE] = {vd_ends_ask, vd_parts_take},
    [VD_PHASE_INPUTS] = {vd_inputs_ask, vd_inputs_take},
    [VD_PHASE_SEAM_LEAVES] = {vd_seam_leaves_ask, vd_seam_leaves_take},
    [VD_PHASE_SEAM_RECORDS] = {vd_seam_records_ask, vd_seam_records_take},
    [VD_PHASE_NOTE] = {vd_note_ask, vd_note_take},
    [VD_PHASE_SECTION] = {vd_section_ask, vd_section_take},
    [VD_PHASE_CHALLENGE] = {vd_challenge_ask, vd_challenge_take},
    [VD_PHASE_CONTEST] = {vd_contest_ask, vd_contest_take},
};

const char *vd_level_name(vd_level level) {
    static const char *const name[VD_LEVELS] = {
        [VD_LEVEL_CLAIM] = "claim", [VD_LEVEL_ITEM] = "item",          [VD_LEVEL_STEP] = "step",
        [VD_LEVEL_NODE] = "node",   [VD_LEVEL_ELEMENT] = "element",    [VD_LEVEL_PART] = "part",
        [VD_LEVEL_LOG] = "log",     [VD_LEVEL_CHALLENGE] = "challenge"};
    return name[level];
}

vd_level vd_referee_level(const vd_referee *r) {
    switch (r->phase) {
    case VD_PHASE_COMMIT:
    case VD_PHASE_REVEAL: return VD_LEVEL_CLAIM;
    case VD_PHASE_ITEMS_OPEN:
    case VD_PHASE_ITEMS_PROVE: return VD_LEVEL_ITEM;
    case VD_PHASE_RUN_OPEN:
    case VD_PHASE_RUN_PROVE:
    case VD_PHASE_SUBRUN:
    case VD_PHASE_SUBRUN_OPEN:
    case VD_PHASE_SUBRUN_PROVE: return VD_LEVEL_STEP;
    case VD_PHASE_TENSOR_OPEN:
    case VD_PHASE_LEAF: return VD_LEVEL_ELEMENT;
    case VD_PHASE_FOLD:
    case VD_PHASE_FOLD_OPEN:
    case VD_PHASE_FOLD_PROVE: return VD_LEVEL_PART;
    case VD_PHASE_INPUTS: return r->place->part >= 0 ? VD_LEVEL_PART : VD_LEVEL_ELEMENT;
    case VD_PHASE_NOTE:
    case VD_PHASE_SECTION: return VD_LEVEL_LOG;
    case VD_PHASE_CHALLENGE:
    case VD_PHASE_CONTEST: return VD_LEVEL_CHALLENGE;
    default: return VD_LEVEL_NODE;
    }
}
