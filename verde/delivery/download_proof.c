/* Downloads what precedes the tensors (the proof), and what accompanies them (the losses). */
#include <string.h>

#include "verde/delivery/delivery.h"
#include "verde/delivery/download_internal.h"
#include "verde/delivery/signed.h"

static vd_client *client_of(vd_download *d, uint32_t provider) {
    return d->connection[provider * (uint32_t)d->options.connections].client;
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

static vd_got ask_proof(vd_download *d, uint32_t p, vd_answer *answer, void *user) {
    (void)user;
    return vd_download_ask(d, p, client_of(d, p), "/state", VD_STATE_PROOF_BYTES_MAX, answer);
}

static vd_got take_proof(vd_download *d, uint32_t p, vd_answer *answer, void *user) {
    vd_err err = {0};
    const vd_status status = accept_proof(user, answer, &err);
    if (status == VD_OK) {
        vd_download_heard(d, p);
        return VD_GOT;
    }
    if (status == VD_ERR_LOCAL) {
        vd_download_fail(d, &err);
        return VD_FAILED;
    }
    vd_download_drop(d, p, true, err.text);
    return VD_DROPPED;
}

vd_status vd_download_proof(vd_download *d, const vd_hash *run_root, vd_buf *text,
                            vd_state_proof *out, vd_err *err) {
    proof_wish wish = {run_root, text, out};
    const vd_first how = {ask_proof, take_proof, &wish};
    uint32_t provider;
    const vd_got got = vd_download_first(d, &how, &provider);
    if (got == VD_GOT)
        return VD_OK;
    return got == VD_DROPPED ? vd_download_nobody(d, "a proof that leads to this run root", err)
                             : vd_fail(err, d->err.status ? d->err.status : VD_ERR_LOCAL, "%s",
                                       d->err.status ? d->err.text : "could not create a mutex");
}

/* ---- losses ---- */

/* Asks for losses. A provider without them is not dropped, and is not asked again. */
static vd_got ask_losses(vd_download *d, uint32_t p, vd_answer *answer, void *user) {
    char path[VD_NET_PATH_MAX + 1];
    (void)user;
    snprintf(path, sizeof path, "/v1/jobs/%.200s/losses", d->options.job);
    const vd_exchange exchange = {.to = &d->options.provider[p],
                                  .path = path,
                                  .deadline_ms = VD_DOWNLOAD_DEADLINE_MS,
                                  .answer_max = VD_DELIVERED_LOSSES_MAX,
                                  .stop = &d->stop};
    vd_signed_ask(client_of(d, p), d->options.key, &exchange, answer);
    return answer->err.status == VD_OK && answer->body.size > 0 ? VD_GOT : VD_DROPPED;
}

static vd_got take_losses(vd_download *d, uint32_t p, vd_answer *answer, void *out) {
    (void)d, (void)p;
    *(vd_buf *)out = answer->body;
    answer->body = (vd_buf){0};
    return VD_GOT;
}

bool vd_download_losses(vd_download *d, vd_buf *out, uint32_t *provider) {
    const vd_first how = {ask_losses, take_losses, out};
    return vd_download_first(d, &how, provider) == VD_GOT;
}
