/* A deliberate bug, for tests/system/graphs.sh: a slice that shares memory begins where its input
 * begins. */
#include "verde/exec/executor.h"

bool __real_vd_alias_bind(vd_execution *x, uint32_t node);
bool __wrap_vd_alias_bind(vd_execution *x, uint32_t node);

bool __wrap_vd_alias_bind(vd_execution *x, uint32_t node) {
    const bool shares = __real_vd_alias_bind(x, node);
    if (shares)
        x->value[x->sources + node] = x->value[vd_node_input(x->graph, node, 0)];
    return shares;
}
