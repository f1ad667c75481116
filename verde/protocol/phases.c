/* The state machine as a table. PROTOCOL.md section 5. */
#include "verde/protocol/dispute.h"

const vd_phase_rule vd_phase_rules[VD_PHASE_DONE] = {
    [VD_PHASE_COMMIT] = {vd_commit_ask, vd_commit_take},
    [VD_PHASE_REVEAL] = {vd_reveal_ask, vd_reveal_take},
    [VD_PHASE_RUN_OPEN] = {vd_descent_ask, vd_descent_take},
    [VD_PHASE_RUN_PROVE] = {vd_ends_ask, vd_ends_take},
    [VD_PHASE_SUBRUN] = {vd_subrun_ask, vd_subrun_take},
    [VD_PHASE_SUBRUN_OPEN] = {vd_descent_ask, vd_descent_take},
    [VD_PHASE_SUBRUN_PROVE] = {vd_ends_ask, vd_ends_take},
    [VD_PHASE_TRACE] = {vd_trace_ask, vd_trace_take},
    [VD_PHASE_LAYOUT] = {vd_layout_ask, vd_layout_take},
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
    [VD_PHASE_NOTE] = {vd_note_ask, vd_note_take},
    [VD_PHASE_SECTION] = {vd_section_ask, vd_section_take},
    [VD_PHASE_CHALLENGE] = {vd_challenge_ask, vd_challenge_take},
    [VD_PHASE_CONTEST] = {vd_contest_ask, vd_contest_take},
};
