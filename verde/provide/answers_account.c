/* Charges each referee for the computing that its questions about a job cause on a day, and limits
 * it: enough for a few disputes that come to their end, but not endless. */
#include <string.h>

#include "verde/provide/frames.h"
#include "verde/provide/internal.h"

enum {
    ACCOUNT_MS = 20000, /* wait for a child's account, which never waits for computing */
    DAY_S = 86400,
};

static vd_status ask_account(const vd_answerer *a, vd_buf *out, vd_err *err) {
    const size_t most = VD_ACCOUNT_HEAD + VD_ACCOUNT_ENTRIES * VD_ACCOUNT_ENTRY;
    vd_status status = vd_frame_put(a->questions, "", 0, err);
    if (status == VD_OK)
        status = vd_frame_get(a->questions, most, ACCOUNT_MS, out, err);
    return status == VD_OK && out->size % VD_ACCOUNT_ENTRY != VD_ACCOUNT_HEAD
               ? vd_fail(err, VD_ERR_IO, "a child's account is cut off")
               : status;
}

/* Reads an entry's microseconds. A child computes in one thread, so all entries together count for
 * no more than the time that has passed. */
static int64_t entry_us(vd_cursor *c, double *left_us) {
    const uint64_t us = vd_get_u64(c);
    const double counted = (double)us < *left_us ? (double)us : *left_us;
    *left_us -= counted;
    return (int64_t)counted;
}

static vd_status put_account(vd_daemon *daemon, const vd_answerer *a, const vd_buf *account,
                             double left_us, vd_err *err) {
    vd_cursor c = vd_cursor_of(account->data, account->size);
    const uint64_t most = vd_get_u64(&c);
    vd_status status = VD_OK;
    while (status == VD_OK && c.at < account->size) {
        char referee[VD_ID_SIZE];
        vd_hex(vd_get(&c, VD_KEY_SIZE), VD_KEY_SIZE, referee);
        const vd_charge charge = {.day = vd_unix_time() / DAY_S,
                                  .us = entry_us(&c, &left_us),
                                  .us_max = most > INT64_MAX ? INT64_MAX : (int64_t)most};
        status = vd_ledger_charge(daemon->ledger, a->job, referee, &charge, err);
    }
    return status;
}

vd_status vd_answerer_charge(vd_daemon *daemon, vd_answerer *a, vd_err *err) {
    vd_buf account = {0};
    vd_err unwritten = {0};
    vd_status status = ask_account(a, &account, err);
    const double since = a->charged;
    a->charged = vd_seconds();
    if (status == VD_OK &&
        put_account(daemon, a, &account, (a->charged - since) * 1e6, &unwritten) != VD_OK)
        vd_trouble_tell(&daemon->trouble, &daemon->options, unwritten.text);
    vd_buf_free(&account);
    return status;
}

/* ---- what is refused ---- */

/* Returns true if the request came before: a referee signs each repetition with a new count. It may
 * still be the referee's own, and late. */
static bool was_sent_before(vd_daemon *daemon, const vd_asked *asked, vd_response *response) {
    int64_t have;
    vd_err err = {0};
    vd_status status = vd_ledger_take_count(daemon->ledger, asked->job.id, asked->referee_hex,
                                            asked->count, &have, &err);
    if (status == VD_ERR_PEER)
        vd_reply(response, 409, json_pack("{ss sI}", "error", err.text, "have", (json_int_t)have));
    else if (status != VD_OK)
        vd_trouble_tell(&daemon->trouble, &daemon->options, err.text);
    return status == VD_ERR_PEER;
}

/* Returns the microseconds allowed on a day; 0: no limit, or not measured yet. */
static int64_t allowed_us(const vd_daemon *daemon, const vd_charge *charged) {
    const int64_t seconds = daemon->options.limits.referee_seconds;
    return seconds == VD_REFEREE_MEASURED ? charged->us_max : seconds * 1000000;
}

static bool has_had_its_day(vd_daemon *daemon, const vd_asked *asked, vd_response *response) {
    vd_charge charged = {.day = vd_unix_time() / DAY_S};
    vd_err err = {0};
    if (vd_ledger_charged(daemon->ledger, asked->job.id, asked->referee_hex, &charged, &err) !=
        VD_OK) {
        vd_trouble_tell(&daemon->trouble, &daemon->options, err.text);
        return false;
    }
    const int64_t most = allowed_us(daemon, &charged);
    if (most == 0 || charged.us < most)
        return false;
    vd_fail(&err, VD_ERR_LOCAL,
            "questions of referee %.8s... about job %.8s... have had the %lld s of computing that "
            "they may take in a day; the next day begins at 0:00 UTC",
            asked->referee_hex, asked->job.id, (long long)(most / 1000000));
    vd_trouble_tell(&daemon->trouble, &daemon->options, err.text);
    vd_reply_error(response, 429, "%s", err.text);
    return true;
}

bool vd_asked_in_vain(vd_daemon *daemon, const vd_asked *asked, vd_response *response) {
    return was_sent_before(daemon, asked, response) || has_had_its_day(daemon, asked, response);
}
