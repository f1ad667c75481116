/* Serves a run over HTTPS until a signal ends the server. */
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
    /* With --fetch, once all is hashed: data for those who name this root. */
    vd_hash root;
    vd_offer *offer;
    char results[1024]; /* of a job with prompts, instead of the offer: a file */
    const char *listen, *dir;
    vd_meter meter;
    vd_ask_counts counts; /* only used by the handler */
    bool quiet, json, fetch;
    double refused_s; /* vd_seconds() of the last reported refusal; only used by screen() */
} vd_serving;

void vd_serving_stop(int signal_number);
/* Prints a line for whoever started the server. */
void vd_serving_tell(const char *line);
void vd_serving_say_dishonest(const char *fault);

/* A vd_checking.fits; `user` is a vd_serving. Measures the pace and prepares downloads. */
vd_status vd_serving_prepare(void *user, vd_err *err);
/* A vd_checking.ended: prints the URL, or ends the server. */
void vd_serving_announce(void *user, bool fits);

/* Serves until a signal, with the certificate and key in `key_dir`. Destroys the desk. */
vd_status vd_serving_run(vd_serving *s, const char *key_dir, vd_err *err);

#endif
