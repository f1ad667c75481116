/* A deliberate bug, for tests/system/sim.sh: the next provider to speak for a claim only has the
 * time that the one before it left. */
#include "verde/protocol/arbiter_internal.h"

void __real_vd_clocks_renew(vd_arbiter *a, const vd_sitting *sitting, uint32_t parties);
void __wrap_vd_clocks_renew(vd_arbiter *a, const vd_sitting *sitting, uint32_t parties);

static void inherit(vd_arbiter *a, uint32_t provider) {
    const vd_outcome *o = vd_arbiter_outcome(a);
    for (uint32_t p = 0; p < o->party_count; p++)
        if (o->party[p].game && vd_hash_equal(&o->party[p].run_root, &o->party[provider].run_root))
            a->clock[provider].left_s = a->clock[p].left_s;
}

void __wrap_vd_clocks_renew(vd_arbiter *a, const vd_sitting *sitting, uint32_t parties) {
    __real_vd_clocks_renew(a, sitting, parties);
    for (uint32_t i = 0; i < parties && sitting->game; i++)
        inherit(a, sitting->provider[i]);
}
