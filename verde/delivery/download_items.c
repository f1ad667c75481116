/* This file downloads and checks the results of a job with many programs. */
#include "verde/delivery/download_items.h"

#include "verde/delivery/download_internal.h"

typedef struct {
    const vd_hash *job_root;
    uint32_t count;
    vd_buf *roots;
    const vd_record_taker *taker;
    uint32_t next; /* first item whose record is missing */
    uint64_t size; /* size of this record */
} items_wish;

static vd_client *client_of(vd_download *d, uint32_t provider) {
    return d->connection[provider * (uint32_t)d->options.connections].client;
}

/* Decides whether an error is the provider's fault or trouble of this machine. */
static vd_got judge(vd_download *d, uint32_t provider, vd_status status, const vd_err *err) {
    if (status == VD_OK) {
        vd_download_heard(d, provider);
        return VD_GOT;
    }
    if (status == VD_ERR_PEER) {
        vd_download_drop(d, provider, true, err->text);
        return VD_DROPPED;
    }
    vd_download_fail(d, err);
    return VD_FAILED;
}

static vd_status nothing(vd_download *d, vd_got got, const char *what, vd_err *err) {
    return got == VD_DROPPED ? vd_download_nobody(d, what, err)
                             : vd_fail(err, d->err.status ? d->err.status : VD_ERR_LOCAL, "%s",
                                       d->err.status ? d->err.text : "could not create a mutex");
}

/* ---- roots ---- */

static vd_got ask_roots(vd_download *d, uint32_t p, vd_answer *answer, void *user) {
    const items_wish *wish = user;
    return vd_download_ask(d, p, client_of(d, p), "/items", (size_t)wish->count * VD_HASH_SIZE + 1,
                           answer);
}

static vd_got take_roots(vd_download *d, uint32_t p, vd_answer *answer, void *user) {
    items_wish *wish = user;
    vd_hash root;
    vd_err err = {0};
    vd_status status = VD_OK;
    if (answer->body.size != (size_t)wish->count * VD_HASH_SIZE)
        status = vd_fail(&err, VD_ERR_PEER, "%zu bytes of run roots, expected %zu",
                         answer->body.size, (size_t)wish->count * VD_HASH_SIZE);
    if (status == VD_OK)
        status = vd_collection_root((const vd_hash *)answer->body.data, wish->count, &root, &err);
    if (status == VD_OK && !vd_hash_equal(&root, wish->job_root))
        status = vd_fail(&err, VD_ERR_PEER, "its run roots do not give the job root");
    if (status == VD_OK) {
        *wish->roots = answer->body;
        answer->body = (vd_buf){0};
    }
    return judge(d, p, status, &err);
}

vd_status vd_download_item_roots(vd_download *d, const vd_hash *job_root, uint32_t count,
                                 vd_buf *out, vd_err *err) {
    items_wish wish = {.job_root = job_root, .count = count, .roots = out};
    const vd_first how = {ask_roots, take_roots, &wish};
    uint32_t provider;
    const vd_got got = vd_download_first(d, &how, &provider);
    return got == VD_GOT ? VD_OK : nothing(d, got, "run roots that give this job root", err);
}

/* ---- records ---- */

static vd_got ask_pieces(vd_download *d, uint32_t p, vd_answer *answer, const items_wish *wish) {
    vd_buf all = {0};
    vd_got got = VD_GOT;
    char rest[48];
    for (uint32_t i = 0; got == VD_GOT && all.size < wish->size; i++) {
        snprintf(rest, sizeof rest, "/items/%u/%u", wish->next, i);
        got = vd_download_ask(d, p, client_of(d, p), rest, VD_ITEM_PIECE_BYTES, answer);
        if (got != VD_GOT)
            break;
        const bool last = answer->body.size < VD_ITEM_PIECE_BYTES; /* too short: the taker fails */
        vd_put(&all, answer->body.data, answer->body.size);
        vd_buf_free(&answer->body);
        if (last)
            break;
    }
    if (got == VD_GOT)
        answer->body = all;
    else
        vd_buf_free(&all);
    return got;
}

static vd_got ask_records(vd_download *d, uint32_t p, vd_answer *answer, void *user) {
    const items_wish *wish = user;
    char rest[32];
    snprintf(rest, sizeof rest, "/items/%u", wish->next);
    if (wish->size > VD_ITEM_PIECE_BYTES)
        return ask_pieces(d, p, answer, wish);
    return vd_download_ask(d, p, client_of(d, p), rest, VD_ITEM_PIECE_BYTES, answer);
}

/* Takes records. Those before a wrong one are right, and are kept. */
static vd_got take_records(vd_download *d, uint32_t p, vd_answer *answer, void *user) {
    items_wish *wish = user;
    const vd_buf *body = &answer->body;
    size_t at = 0, used = 0;
    vd_err err = {0};
    vd_status status = VD_OK;
    while (status == VD_OK && (at == 0 || at < body->size)) {
        if (wish->next == wish->count)
            status = vd_fail(&err, VD_ERR_PEER, "bytes behind the record of the last item");
        else
            status = wish->taker->take(wish->taker->user, wish->next, body->data + at,
                                       body->size - at, &used, &err);
        if (status != VD_OK)
            break;
        d->provider[p].received += used;
        wish->next++;
        at += used;
    }
    return judge(d, p, status, &err);
}

vd_status vd_download_records(vd_download *d, uint32_t first, uint32_t count,
                              const vd_record_taker *taker, vd_err *err) {
    items_wish wish = {.count = count, .taker = taker, .next = first};
    const vd_first how = {ask_records, take_records, &wish};
    uint32_t provider;
    while (wish.next < count) {
        const vd_status status = taker->size(taker->user, wish.next, &wish.size, err);
        if (status != VD_OK)
            return status;
        const vd_got got = vd_download_first(d, &how, &provider);
        if (got != VD_GOT)
            return nothing(d, got, "the rest", err);
    }
    return VD_OK;
}
