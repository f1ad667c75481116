/* What comes before the tensors, and what comes beside them. */
#include <string.h>

#include "verde/delivery/delivery.h"
#include "verde/delivery/download_internal.h"
#include "verde/delivery/signed.h"

static vd_client *client_of(vd_download *d, uint32_t provider) {
    return d->connection[provider * (uint32_t)d->options.connections].client;
}

/* VD_ERR_PEER: it is not what it must be. */
typedef vd_status (*accept_fn)(void *user, vd_answer *answer, vd_err *err);

/* Asks one provider after the other, until one gives what is accepted. Nobody is waited for
 * before all were asked. */
static vd_got ask_each(vd_download *d, const char *rest, size_t answer_max, accept_fn accept,
                       void *user, uint32_t *provider) {
    for (uint32_t p = 0; p < d->options.provider_count; p++) {
        vd_answer answer = {0};
        vd_err err = {0};
        if (vd_download_dropped(d, p))
            continue;
        vd_got got = vd_download_ask(d, p, client_of(d, p), rest, answer_max, &answer);
        const vd_status status = got == VD_GOT ? accept(user, &answer, &err) : VD_OK;
        vd_answer_free(&answer);
        *provider = p;
        if (got == VD_GOT && status == VD_OK) {
            vd_download_heard(d, p);
            return VD_GOT;
        }
        if (status == VD_ERR_LOCAL)
            vd_download_fail(d, &err);
        else if (status != VD_OK)
            vd_download_drop(d, p, true, err.text);
        if (got == VD_FAILED || status == VD_ERR_LOCAL)
            return VD_FAILED;
    }
    return vd_download_anybody(d) ? VD_TROUBLE : VD_DROPPED;
}

/* ---- the proof ---- */

typedef struct {
    const vd_hash *run_root;
    vd_buf *text;
    vd_state_proof *out;
} proof_wish;

static vd_status accept_proof(void *user, vd_answer *answer, vd_err *err) {
    const proof_wish *wish = user;
    vd_err why = {0};
    vd_status status = vd_state_proof_parse(answer->body.data, answer->body.size, wish->out, &why);
    if (status != VD_OK)
        return vd_fail(err, status == VD_ERR_LOCAL ? status : VD_ERR_PEER, "its proof: %s",
                       why.text);
    if (!vd_hash_equal(&wish->out->run_root, wish->run_root))
        status = vd_fail(err, VD_ERR_PEER, "its proof leads to another run root");
    else if (wish->out->step != wish->out->program.steps)
        status = vd_fail(err, VD_ERR_PEER, "its proof is of step %lld, not of the last one, %lld",
                         (long long)wish->out->step, (long long)wish->out->program.steps);
    if (status != VD_OK) {
        vd_state_proof_free(wish->out);
        return status;
    }
    *wish->text = answer->body;
    answer->body = (vd_buf){0};
    return VD_OK;
}

vd_status vd_download_proof(vd_download *d, const vd_hash *run_root, vd_buf *text,
                            vd_state_proof *out, vd_err *err) {
    proof_wish wish = {run_root, text, out};
    uint32_t provider;
    vd_got got;
    while ((got = ask_each(d, "/state", VD_DELIVERED_PROOF_MAX, accept_proof, &wish, &provider)) ==
           VD_TROUBLE)
        vd_download_pause(d, VD_DOWNLOAD_RETRY_MS);
    if (got == VD_GOT)
        return VD_OK;
    return got == VD_DROPPED ? vd_download_nobody(d, "a proof that leads to this run root", err)
                             : vd_fail(err, d->err.status, "%s", d->err.text);
}

/* ---- losses ---- */

static bool ask_losses(vd_download *d, uint32_t p, vd_buf *out) {
    vd_answer answer = {0};
    char path[VD_NET_PATH_MAX + 1];
    snprintf(path, sizeof path, "/v1/jobs/%.200s/losses", d->options.job);
    const vd_exchange exchange = {.to = &d->options.provider[p],
                                  .path = path,
                                  .deadline_ms = VD_DOWNLOAD_DEADLINE_MS,
                                  .answer_max = VD_DELIVERED_LOSSES_MAX};
    vd_signed_ask(client_of(d, p), d->options.key, &exchange, &answer);
    const bool got = answer.err.status == VD_OK && answer.body.size > 0;
    if (got) {
        *out = answer.body;
        answer.body = (vd_buf){0};
    }
    vd_answer_free(&answer);
    return got;
}

/* Nobody is dropped for having none. Who did not answer before is asked last. */
bool vd_download_losses(vd_download *d, vd_buf *out, uint32_t *provider) {
    for (int troubled = 0; troubled < 2; troubled++)
        for (*provider = 0; *provider < d->options.provider_count; (*provider)++)
            if (!vd_download_dropped(d, *provider) &&
                (d->provider[*provider].trouble > 0) == (troubled == 1) &&
                ask_losses(d, *provider, out))
                return true;
    return false;
}
