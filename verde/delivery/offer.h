/* The final state of a finished run, for download (PROTOCOL.md section 8.6). Nothing is executed
 * for it, and memory holds only the proof and 32 bytes for each MiB of the state. */
#ifndef VD_OFFER_H
#define VD_OFFER_H

#include "verde/delivery/blocks.h"
#include "verde/net/net.h"

typedef struct vd_offer vd_offer;

/* Largest file of an offer: a proof, and the hashes of a state of 1 TiB. */
enum { VD_OFFER_BYTES_MAX = 160 << 20 };

/* Hashes the state's file once and checks it against the run, which is not used afterwards.
 * VD_ERR_PEER: the state is not what the run commits to, so there is nothing to offer. */
VD_MUST_USE vd_status vd_offer_create(const vd_check *run, vd_offer **out, vd_err *err);
/* Saves an offer, and loads one without hashing anything; `dir` is the run's. Whoever can change
 * the file can cause wrong bytes to be sent, but only of this run's state. */
VD_MUST_USE vd_status vd_offer_save(const vd_offer *offer, const char *path, vd_err *err);
VD_MUST_USE vd_status vd_offer_load(const char *path, const char *dir, vd_offer **out, vd_err *err);
void vd_offer_destroy(vd_offer *offer); /* accepts NULL */
const vd_hash *vd_offer_run_root(const vd_offer *offer);

/* Answers a GET. `rest` is the path behind the job's: "/state", "/state/3/hashes",
 * "/state/3/blocks/7" or "/losses"; anything else gives 404. Thread-safe. */
void vd_offer_answer(const vd_offer *offer, const char *rest, vd_response *response);

#endif
