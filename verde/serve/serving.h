/* A served run over HTTPS: who is answered what, and the server's life until a signal ends it. */
#ifndef VD_SERVING_H
#define VD_SERVING_H

#include "verde/delivery/offer.h"
#include "verde/protocol/ask_counts.h"
#include "verde/protocol/desk.h"
#include "verde/provide/meter.h"
#include "verde/serve/checking.h"

typedef struct {
    vd_provider provider;
    vd_desk *desk;
    vd_served served;
    vd_checking checking;
    /* With --fetch, once all is hashed: what is handed out to who names this root. */
    vd_hash root;
    vd_offer *offer;
    char results[1024]; /* of a job with prompts, in place of the offer: a file */
    const char *listen, *dir;
    vd_meter meter;
    vd_ask_counts counts; /* the handler's alone */
    bool quiet, json, fetch;
    double refused_s; /* when a refusal was last told of: screen's alone */
} vd_serving;

void vd_serving_stop(int signal_number);
/* One line for whoever started the server. */
void vd_serving_tell(const char *line);
void vd_serving_say_dishonest(const char *fault);

/* To be run after the hashing, of `user`, a vd_serving: what a referee is told of this machine's
 * pace, and what downloads get. */
vd_status vd_serving_prepare(void *user, vd_err *err);
/* To be run at the end of the hashing, on its thread: prints the URL, or ends the server. */
void vd_serving_announce(void *user, bool fits);

/* Answers until a signal comes, with the certificate and the key of `key_dir`. Destroys the desk.
 */
vd_status vd_serving_run(vd_serving *s, const char *key_dir, vd_err *err);

#endif
