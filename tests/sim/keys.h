/* Keys whose signatures cost one hash: thousands of disputes a minute need not be tests of Ed25519.
 * The programs of this folder are linked so that notes are checked by them (sim.mk). Whoever knows
 * a public key can sign by it; nobody here does. */
#ifndef SIM_KEYS_H
#define SIM_KEYS_H

#include "verde/commit/commit.h"

/* Keys of different numbers are different. The caller destroys it. */
vd_key *sim_key(uint32_t number);

#endif
