/* Estimates of any accepted program are fast, and nothing overflows. */
#include "verde/exec/estimate.h"
#include "tests/fuzz/fuzz.h"
#include "verde/exec/exec.h"
#include "verde/exec/fuse.h"

enum { CORES = 2, PLANNED_NODES = 1 << 16 };

/* Plans graphs up to the size of a stranger's program; larger ones are only estimated. */
static void plan(const vd_program *p, const vd_graph *graph) {
    vd_plan plan;
    if (graph->node_count > PLANNED_NODES ||
        vd_plan_create(p, graph, VD_FUSE_LAYERS, &plan, NULL) != VD_OK)
        return;
    for (uint32_t i = 0; i < plan.group_count; i++)
        fuzz_need(vd_plan_iterations(&plan, graph, i) > 0, "a group that never runs");
    vd_plan_free(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vd_program p = {0};
    uint64_t memory = 0;
    vd_err err;
    if (vd_program_decode(data, size, &p, &err) != VD_OK)
        return 0;
    const vd_estimated_seconds s = vd_estimate_seconds(&p, CORES);
    fuzz_need(s.init >= 0 && s.step >= 0 && s.run >= s.init + s.step, "seconds are no number");
    fuzz_need(vd_estimate_terms(&p, &p.init) > 0 && vd_estimate_terms(&p, &p.step) > 0,
              "a graph without a term");
    if (vd_estimate_memory(&p, &memory, &err) == VD_OK)
        fuzz_need(memory > 0, "a program without memory");
    fuzz_need(vd_estimate_disk(&p, 0) >= vd_estimate_disk(&p, 1), "all states are less than one");
    fuzz_need(vd_estimate_beside(&p, size) >= size, "a run without its program");
    fuzz_need(vd_estimate_journal(&p) > 0, "a journal without a byte");
    (void)vd_estimate_kernels(&p, CORES);
    (void)(vd_trace_fits(&p, &err) == VD_OK);
    plan(&p, &p.init);
    plan(&p, &p.step);
    vd_program_free(&p);
    return 0;
}
