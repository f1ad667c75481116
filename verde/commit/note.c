/* Signed notes: DSSE envelopes (github.com/secure-systems-lab/dsse, protocol.md, version 1). */
#include "verde/commit/internal.h"

#include <stdlib.h>
#include <string.h>

void vd_note_encode(const char *type, const void *payload, size_t size, vd_buf *out) {
    vd_printf(out, "DSSEv1 %zu %s %zu ", strlen(type), type, size);
    vd_put(out, payload, size);
}

/* Can the type stand in JSON as it is? Types are constants of this program. */
static bool is_plain(const char *type) {
    for (; *type; type++)
        if (*type < 0x20 || *type > 0x7e || *type == '"' || *type == '\\')
            return false;
    return true;
}

static vd_status sign_payload(const vd_key *key, const char *type, const void *payload, size_t size,
                              uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err) {
    vd_buf message = {0};
    vd_note_encode(type, payload, size, &message);
    vd_status status = vd_buf_ok(&message)
                           ? vd_sign(key, message.data, message.size, signature, err)
                           : vd_fail(err, VD_ERR_LOCAL, "out of memory in signing a note");
    vd_buf_free(&message);
    return status;
}

static void put_text(vd_buf *out, const char *text) {
    vd_put(out, text, strlen(text));
}

vd_status vd_note_sign(const vd_key *key, const char *type, const void *payload, size_t size,
                       vd_buf *out, vd_err *err) {
    uint8_t signature[VD_SIGNATURE_SIZE];
    if (!is_plain(type))
        return vd_fail(err, VD_ERR_LOCAL, "a note's type must be plain ASCII");
    vd_status status = sign_payload(key, type, payload, size, signature, err);
    if (status != VD_OK)
        return status;
    char keyid[2 * VD_KEY_SIZE + 1];
    vd_hex(key->public.b, VD_KEY_SIZE, keyid);
    char *body = vd_base64(payload, size);
    char *sig = vd_base64(signature, sizeof signature);
    size_t before = out->size;
    if (body && sig) {
        put_text(out, "{\"payload\":\"");
        put_text(out, body); /* may be larger than printf can */
        vd_printf(out,
                  "\",\"payloadType\":\"%s\",\"signatures\":[{\"keyid\":\"%s\",\"sig\":\"%s\"}]}",
                  type, keyid, sig);
    }
    if (!body || !sig || !vd_buf_ok(out)) {
        out->size = before;
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory in signing a note");
    }
    free(body);
    free(sig);
    return status;
}
