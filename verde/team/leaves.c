/* This file sends and receives leaves of a state between ranks. */
#include "verde/team/leaves.h"

#include <stdlib.h>

#include "verde/exec/memory.h"

size_t vd_leaf_bytes(const vd_member *m, uint32_t leaf) {
    return vd_shape_bytes(&m->plan->program->leaf[leaf].shape);
}

vd_status vd_leaf_send(const vd_member *m, const vd_state *state, uint32_t leaf, uint32_t to,
                       vd_err *err) {
    void *copy = NULL;
    const size_t size = vd_leaf_bytes(m, leaf);
    const void *host = vd_memory_in_host(state->memory, state->tensor[leaf], size, &copy, err);
    vd_status status = host
                           ? m->transport.give(m->transport.user, to, VD_TEAM_LEAF, host, size, err)
                           : VD_ERR_LOCAL;
    free(copy);
    return status;
}

vd_status vd_leaf_receive(const vd_member *m, uint32_t leaf, uint32_t from, void **out,
                          vd_err *err) {
    const size_t size = vd_leaf_bytes(m, leaf);
    *out = vd_memory_alloc(NULL, size);
    return *out ? m->transport.receive(m->transport.user, from, VD_TEAM_LEAF, *out, size, err)
                : vd_fail(err, VD_ERR_LOCAL, "out of memory: %zu bytes for %s", size,
                          m->plan->program->leaf[leaf].name);
}

vd_status vd_state_receive(const vd_member *m, const vd_exec *exec, int64_t step, vd_state *out,
                           vd_err *err) {
    const uint32_t count = m->plan->program->leaf_count;
    *out = (vd_state){.step = step, .count = count};
    out->tensor = calloc(count, sizeof *out->tensor);
    vd_status status = out->tensor ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; status == VD_OK && i < count; i++)
        if (vd_team_keeps(m->plan, m->transport.rank, i))
            status = vd_leaf_receive(m, i, 0, &out->tensor[i], err);
    return status == VD_OK ? vd_state_place(exec, out, err) : status;
}
