/* This file verifies a section's proof up to the run's commitment. PROTOCOL.md section 12.4. */
#include <string.h>

#include "verde/log/program.h"

static vd_status run_of(const vd_program *program, const vd_hash *program_hash, const vd_hash *name,
                        vd_log_run *out, vd_err *err) {
    const vd_program_rounding *rounding = &program->rounding;
    vd_thresholds thresholds = {.bits = rounding->bits};
    *out = (vd_log_run){.program = *program_hash,
                        .run = *name,
                        .encoding = (vd_log_encoding)rounding->encoding,
                        .bits = rounding->bits};
    memcpy(thresholds.of, rounding->threshold, sizeof thresholds.of);
    return out->encoding == VD_LOG_SYMBOLS ? vd_thresholds_hash(&thresholds, &out->thresholds, err)
                                           : VD_OK;
}

vd_status vd_section_verify(const vd_program *program, const vd_hash *program_hash, int64_t step,
                            uint64_t index, const vd_section_proof *proof, const vd_hash *logs,
                            vd_log_run *run, vd_err *err) {
    const vd_log_range range = vd_logs_at(program, step);
    const vd_graph *graph = step < 0 ? &program->init : &program->step;
    const uint32_t sections = (uint32_t)vd_graph_sections(graph, graph->node_count);
    vd_hash root, leaf;
    vd_status status = run_of(program, program_hash, &proof->run, run, err);
    if (status == VD_OK && (!vd_log_root(run, step, sections, &proof->tree_root, &root) ||
                            !vd_leaf_hash(&root, sizeof root, &leaf)))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK)
        status = vd_proof_verify(&proof->step, (uint64_t)(step - range.first), range.count, &leaf,
                                 logs, err);
    if (status == VD_OK)
        status = vd_log_proof_verify(run, step, (uint32_t)index, sections, &proof->leaf,
                                     &proof->tree_root, &proof->section, &root, err);
    return status;
}
