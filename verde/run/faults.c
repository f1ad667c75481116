/* This file reports that a run has a fault on purpose, and whether the fault changed anything. */
#include "verde/run/faults.h"

#include <stdio.h>

void vd_announce_fault(const vd_loaded *loaded) {
    char text[160];
    if (loaded->exec.fault.kind == VD_FAULT_NONE)
        return;
    vd_fault_print(&loaded->exec.fault, &loaded->program, text, sizeof text);
    if (loaded->exec.fault.kind == VD_FAULT_SUM)
        fprintf(stderr, "fault on purpose: %s, which --guard is to find\n", text);
    else
        fprintf(stderr,
                "*** FAULT ON PURPOSE: %s. This run is dishonest; never use its result. ***\n",
                text);
}

vd_status vd_tell_fault(const char *dir, const vd_loaded *loaded, bool *idle, vd_err *err) {
    bool changed = true;
    const vd_fault_kind kind = loaded->exec.fault.kind;
    vd_status status = kind == VD_FAULT_NONE || kind == VD_FAULT_SUM
                           ? VD_OK
                           : vd_fault_changed(dir, &loaded->exec, &changed, err);
    *idle = status == VD_OK && !changed;
    if (*idle)
        fprintf(stderr,
                "*** The fault changed nothing: %s holds an honest run. Name a node of "
                "`verde graph`, --fault KIND@STEP:NODE, or another step. ***\n",
                dir);
    return status;
}
