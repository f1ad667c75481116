/* The final state of a finished run, for whoever downloads it (PROTOCOL.md section 8.5). Nothing is
 * executed for it, and little kept in memory: 32 bytes for each MiB of the state, and the proof. */
#ifndef VD_OFFER_H
#define VD_OFFER_H

#include "verde/delivery/blocks.h"
#include "verde/net/net.h"

typedef struct vd_offer vd_offer;

/* Bytes of a file that an offer is kept in: a proof, and the blocks of a state of 1 TiB. */
enum { VD_OFFER_BYTES_MAX = 160 << 20 };

/* Hashes the state's file once, as `run` says; takes nothing of it afterwards. VD_ERR_PEER: the
 * state is not what the run commits to, so that there is nothing to offer. */
VD_MUST_USE vd_status vd_offer_create(const vd_check *run, vd_offer **out, vd_err *err);
/* Keeps an offer in a file, and makes it of that file without hashing anything: `dir` is the run's.
 * Whoever can change the file can have wrong bytes offered, of the run's own state at most. */
VD_MUST_USE vd_status vd_offer_save(const vd_offer *offer, const char *path, vd_err *err);
VD_MUST_USE vd_status vd_offer_load(const char *path, const char *dir, vd_offer **out, vd_err *err);
void vd_offer_destroy(vd_offer *offer); /* NULL is fine */
const vd_hash *vd_offer_run_root(const vd_offer *offer);

/* Answers a GET. `rest` is the path behind that of the job: "/state", "/state/3/hashes",
 * "/state/3/blocks/7" or "/losses"; anything else is 404. Any number of threads may call it. */
void vd_offer_answer(const vd_offer *offer, const char *rest, vd_response *response);

#endif
