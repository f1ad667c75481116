/* Gets the beacon's value, which must not be known before the claim is signed. */
#include <errno.h>
#include <openssl/rand.h>
#include <string.h>
#include <unistd.h>

#include "verde/audit/audit_provider.h"
#include "verde/load/verdict_file.h"

enum { LOOK_US = 200000 };

/* Draws a value here; the report says that it is no beacon's. */
static vd_status draw_own(vd_auditing *x) {
    uint8_t bytes[VD_HASH_SIZE];
    char hex[2 * VD_HASH_SIZE + 1];
    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return vd_fail(x->err, VD_ERR_LOCAL, "no random numbers");
    vd_hex(bytes, sizeof bytes, hex);
    vd_put(&x->beacon, hex, strlen(hex));
    return VD_OK;
}

static vd_status take_line(const char *line, vd_buf *out, vd_err *err) {
    const size_t size = strcspn(line, "\r\n");
    if (size < 1 || size > VD_BEACON_VALUE_MAX)
        return vd_fail(err, VD_ERR_USAGE,
                       "--beacon: the value must be a line of 1 to %d bytes, got %zu",
                       VD_BEACON_VALUE_MAX, size);
    vd_put(out, line, size);
    return vd_buf_ok(out) ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

static vd_status read_stdin(vd_buf *out, vd_err *err) {
    char line[VD_BEACON_VALUE_MAX + 3];
    if (!fgets(line, sizeof line, stdin))
        return vd_fail(err, VD_ERR_USAGE, "--beacon -: standard input ended without a value");
    return take_line(line, out, err);
}

/* Waits for the file, which appears with the value. Without a line feed it is not complete. */
static vd_status read_file(const char *path, vd_buf *out, vd_err *err) {
    vd_buf text = {0};
    vd_status status = VD_OK;
    while (access(path, F_OK) != 0 && errno == ENOENT)
        usleep(LOOK_US);
    for (int tries = 0; status == VD_OK && tries < 50; tries++) {
        text.size = 0;
        status = vd_read_file(path, VD_BEACON_VALUE_MAX + 2, &text, err);
        if (status != VD_OK || memchr(text.data ? text.data : (uint8_t *)"", '\n', text.size))
            break;
        usleep(LOOK_US);
    }
    vd_put_u8(&text, 0);
    if (status == VD_OK)
        status = take_line((const char *)text.data, out, err);
    vd_buf_free(&text);
    return status;
}

vd_status vd_beacon_read(const char *path, vd_buf *out, vd_err *err) {
    return strcmp(path, "-") == 0 ? read_stdin(out, err) : read_file(path, out, err);
}

static void tell_claim(const vd_auditing *x) {
    char line[400], root[2 * VD_HASH_SIZE + 1];
    vd_hex(vd_audit_results(x->audit)->run_root.b, VD_HASH_SIZE, root);
    snprintf(line, sizeof line, "The provider has signed its run root, %s.", root);
    vd_tell(NULL, line);
    if (!x->a->beacon)
        return;
    snprintf(line, sizeof line, "Now the value of %s, round %ld, is wanted %s%.200s.",
             x->a->beacon_source, x->a->beacon_round,
             strcmp(x->a->beacon, "-") == 0 ? "on standard input" : "in ",
             strcmp(x->a->beacon, "-") == 0 ? "" : x->a->beacon);
    vd_tell(NULL, line);
}

vd_status vd_audit_take_beacon(vd_auditing *x) {
    if (vd_audit_recall_beacon(x))
        return vd_audit_beacon(x->audit, x->beacon.data, x->beacon.size, x->err);
    tell_claim(x);
    vd_status status =
        x->a->beacon ? vd_beacon_read(x->a->beacon, &x->beacon, x->err) : draw_own(x);
    if (status == VD_OK && !vd_buf_ok(&x->beacon))
        status = vd_fail(x->err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK)
        status = vd_audit_note_beacon(x);
    return status == VD_OK ? vd_audit_beacon(x->audit, x->beacon.data, x->beacon.size, x->err)
                           : status;
}
