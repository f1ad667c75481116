/* How much a referee's questions about a job have made this provider compute, and how much they
 * may, of all its disputes together: more than a few that come to their end, less than for ever. */
#include <string.h>

#include "verde/provide/frames.h"
#include "verde/provide/internal.h"

enum { ACCOUNT_MS = 20000 }; /* for a child's account, which does not wait for computing */

static vd_status ask_account(const vd_answerer *a, vd_buf *out, vd_err *err) {
    const size_t most = VD_ACCOUNT_HEAD + VD_ACCOUNT_ENTRIES * VD_ACCOUNT_ENTRY;
    vd_status status = vd_frame_put(a->questions, "", 0, err);
    if (status == VD_OK)
        status = vd_frame_get(a->questions, most, ACCOUNT_MS, out, err);
    return status == VD_OK && out->size % VD_ACCOUNT_ENTRY != VD_ACCOUNT_HEAD
               ? vd_fail(err, VD_ERR_IO, "a child's account is cut off")
               : status;
}

/* An entry counts for no more than the microseconds that the child has had since its start. */
static int64_t entry_us(const vd_answerer *a, vd_cursor *c) {
    const uint64_t us = vd_get_u64(c);
    const double age = (vd_seconds() - a->started) * 1e6;
    return (double)us < age ? (int64_t)us : (int64_t)age;
}

vd_status vd_answerer_charge(vd_daemon *daemon, vd_answerer *a, vd_err *err) {
    vd_buf account = {0};
    vd_status status = ask_account(a, &account, err);
    vd_cursor c = vd_cursor_of(account.data, account.size);
    const uint64_t most = status == VD_OK ? vd_get_u64(&c) : 0;
    while (status == VD_OK && c.at < account.size) {
        char referee[VD_ID_SIZE];
        vd_hex(vd_get(&c, VD_KEY_SIZE), VD_KEY_SIZE, referee);
        status = vd_ledger_charge(daemon->ledger, a->job, referee, entry_us(a, &c),
                                  most > INT64_MAX ? INT64_MAX : (int64_t)most, err);
    }
    vd_buf_free(&account);
    return status;
}

void vd_tell_overrun(vd_daemon *daemon, const vd_job_record *job, const vd_public_key *referee) {
    char key[VD_ID_SIZE];
    int64_t us, us_max;
    vd_err err = {0};
    vd_hex(referee->b, VD_KEY_SIZE, key);
    if (vd_ledger_charged(daemon->ledger, job->id, key, &us, &us_max, &err) == VD_OK) {
        if (us_max == 0 || us < us_max)
            return;
        vd_fail(
            &err, VD_ERR_LOCAL,
            "questions of referee %.8s about job %.8s have taken more than %lld s, which is more "
            "than disputes take",
            key, job->id, (long long)(us_max / 1000000));
    }
    vd_trouble_tell(&daemon->trouble, &daemon->options, err.text);
}
