/* Keys whose signatures cost only a hash, since thousands of disputes a minute need not test
 * Ed25519. The linker makes this folder's programs check notes with them (sim.mk). Anyone who knows
 * a public key could sign for it; no provider here does. */
#ifndef SIM_KEYS_H
#define SIM_KEYS_H

#include "verde/commit/commit.h"

/* Returns a key, different for each number. The caller destroys it. */
vd_key *sim_key(uint32_t number);

#endif
