/* Signed notes: DSSE envelopes (github.com/secure-systems-lab/dsse, protocol.md, version 1). */
#include "verde/commit/internal.h"

#include <string.h>

void vd_note_encode(const char *type, const void *payload, size_t size, vd_buf *out) {
    vd_printf(out, "DSSEv1 %zu %s %zu ", strlen(type), type, size);
    vd_put(out, payload, size);
}

/* Returns whether a type needs no escapes in JSON. Types are constants of this program. */
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

void vd_note_join(const char *type, const vd_public_key *key, const void *payload, size_t size,
                  const uint8_t signature[VD_SIGNATURE_SIZE], vd_buf *out) {
    char keyid[2 * VD_KEY_SIZE + 1];
    vd_hex(key->b, VD_KEY_SIZE, keyid);
    vd_printf(out, "{\"payload\":\"");
    vd_put_base64(out, payload, size);
    vd_printf(out, "\",\"payloadType\":\"%s\",\"signatures\":[{\"keyid\":\"%s\",\"sig\":\"", type,
              keyid);
    vd_put_base64(out, signature, VD_SIGNATURE_SIZE);
    vd_printf(out, "\"}]}");
}

vd_status vd_note_sign(const vd_key *key, const char *type, const void *payload, size_t size,
                       vd_buf *out, vd_err *err) {
    uint8_t signature[VD_SIGNATURE_SIZE];
    if (!is_plain(type))
        return vd_fail(err, VD_ERR_LOCAL, "a note's type must be plain ASCII");
    vd_status status = sign_payload(key, type, payload, size, signature, err);
    if (status != VD_OK)
        return status;
    const size_t before = out->size;
    vd_note_join(type, &key->public, payload, size, signature, out);
    if (vd_buf_ok(out))
        return VD_OK;
    out->size = before;
    return vd_fail(err, VD_ERR_LOCAL, "out of memory in signing a note");
}
