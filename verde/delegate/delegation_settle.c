/* Settles which of the providers' roots is accepted: the claim that stands after a dispute. */
#include <string.h>
#include <unistd.h>

#include "verde/delegate/delegation.h"
#include "verde/load/verdict_file.h"

void vd_delegation_verdict(const vd_delegation *d, char path[1100]) {
    snprintf(path, 1100, "%.900s/verdict.json", d->o->out);
}

static bool is_done(const vd_delegation *d, uint32_t i) {
    return d->order[i].state == VD_ORDER_DONE;
}

/* Lists the URLs of the providers that are done, in order. */
static uint32_t list_done(const vd_delegation *d, const char **url) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < d->o->urls; i++)
        if (is_done(d, i))
            url[count++] = d->o->url[i];
    return count;
}

/* Returns true if the verdict is between exactly the providers that are done. */
static bool is_between(const vd_delegation *d, const vd_verdict *v) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < d->o->urls; i++) {
        if (!is_done(d, i))
            continue;
        if (count == v->assignment.provider_count ||
            memcmp(&v->assignment.provider[count], &d->endpoint[i].key, VD_KEY_SIZE) != 0)
            return false;
        count++;
    }
    return count == v->assignment.provider_count && vd_hash_equal(&v->program, &d->program);
}

static vd_status load_verdict(const vd_delegation *d, const char *path, vd_verdict *out,
                              vd_err *err) {
    char referee[2 * VD_KEY_SIZE + 1];
    vd_hex(d->client.b, VD_KEY_SIZE, referee);
    vd_status status = vd_load_verdict(path, referee, false, out, err);
    if (status == VD_OK)
        vd_verdict_free(out); /* frees the games, which are not used */
    return status;
}

/* Returns true if an earlier command's verdict is between these providers and accepts a claim. */
static bool is_settled(const vd_delegation *d, const char *path, vd_verdict *out) {
    vd_err unread = {0};
    return access(path, F_OK) == 0 && load_verdict(d, path, out, &unread) == VD_OK &&
           is_between(d, out) && out->outcome.accepted;
}

static vd_status arbitrate(vd_delegation *d, vd_verdict *out) {
    char path[1100];
    const vd_delegate_options *o = d->o;
    vd_delegation_verdict(d, path);
    if (!is_settled(d, path, out)) {
        vd_arbitrate_arguments options = {.job = o->job,
                                          .loaded = &d->loaded,
                                          .verdict = path,
                                          .key_dir = o->key_dir,
                                          .patience_s = o->question_s,
                                          .step_s_max = o->step_s_max,
                                          .goes_on = true,
                                          .no_challenge = o->no_challenge,
                                          .force = true,
                                          .quiet = o->common.json,
                                          .common = o->common};
        options.urls = list_done(d, options.url);
        unlink(path); /* of another outcome, or between others */
        const vd_exit code = vd_arbitrate(&options);
        d->no_verdict = access(path, F_OK) != 0;
        if (d->no_verdict)
            d->code = code;
    }
    vd_status status = d->no_verdict ? VD_ERR_IO : load_verdict(d, path, out, d->err);
    d->has_verdict = status == VD_OK;
    return status;
}

/* Settles one dispute of all providers that are done. No root is accepted without a commitment. */
vd_status vd_delegation_settle(vd_delegation *d, bool *accepted) {
    const char *url[VD_DOWNLOAD_PROVIDERS_MAX];
    vd_verdict verdict = {0};
    *accepted = false;
    if (list_done(d, url) < 2)
        return VD_OK;
    vd_status status = arbitrate(d, &verdict);
    if (status != VD_OK)
        return status;
    d->code = vd_exit_of(&verdict.outcome);
    d->run_root = verdict.outcome.run_root;
    *accepted = verdict.outcome.accepted;
    return VD_OK;
}
