/* Assignments of version 2, to one provider that a checker audits. PROTOCOL.md section 13.1. */
#include <string.h>

#include "verde/protocol/message.h"

bool vd_is_audit_assignment(const json_t *root) {
    const json_t *version = json_object_get(root, "verde");
    return json_is_integer(version) && json_integer_value(version) == 2;
}

bool vd_is_beacon_source(const char *text) {
    const size_t length = strnlen(text, VD_BEACON_SOURCE_MAX + 1);
    for (size_t i = 0; i < length; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return length >= 1 && length <= VD_BEACON_SOURCE_MAX;
}

json_t *vd_audit_assignment_json(const vd_assignment *a) {
    vd_hash nonce;
    memcpy(nonce.b, a->nonce, sizeof nonce.b);
    return json_pack("{si so so so so s{ss sI}}", "verde", 2, "program", vd_hash_text(&a->program),
                     "nonce", vd_hash_text(&nonce), "checker", vd_json_key(&a->referee), "provider",
                     vd_json_key(&a->provider[0]), "beacon", "source", a->beacon_source, "round",
                     (json_int_t)a->beacon_round);
}

static vd_status bad(vd_err *err, const char *why) {
    return vd_fail(err, VD_ERR_PEER, "assignment: %s", why);
}

static vd_status read_beacon(const json_t *beacon, vd_assignment *out, vd_err *err) {
    static const char *const names[] = {"source", "round", NULL};
    const char *source = json_string_value(json_object_get(beacon, "source"));
    const json_t *round = json_object_get(beacon, "round");
    vd_err why = {0};
    vd_status status = vd_json_known(beacon, "beacon", names, &why);
    if (status != VD_OK)
        return bad(err, why.text);
    if (!source || !vd_is_beacon_source(source) || !json_is_integer(round) ||
        json_integer_value(round) < 0)
        return bad(err, "`beacon` must have a `source` of 1 to 128 printable characters, and a "
                        "`round` of 0 or more");
    snprintf(out->beacon_source, sizeof out->beacon_source, "%s", source);
    out->beacon_round = json_integer_value(round);
    return VD_OK;
}

static vd_status read_key(const json_t *root, const char *name, vd_public_key *out, vd_err *err) {
    const char *text = json_string_value(json_object_get(root, name));
    vd_err why = {0};
    vd_status status = text ? vd_public_key_read(text, out, &why)
                            : vd_fail(&why, VD_ERR_PEER, "expected a string");
    return status == VD_OK ? VD_OK : vd_fail(err, status, "assignment: %s: %s", name, why.text);
}

vd_status vd_audit_assignment_read(const json_t *root, vd_assignment *out, vd_err *err) {
    static const char *const names[] = {"verde",    "program", "nonce", "checker",
                                        "provider", "beacon",  NULL};
    vd_hash nonce;
    vd_err why = {0};
    vd_status status = vd_json_known(root, NULL, names, &why);
    if (status != VD_OK)
        return vd_fail(err, status, "assignment: %s", why.text);
    if (!vd_json_get_hash(root, "program", &out->program) ||
        !vd_json_get_hash(root, "nonce", &nonce))
        return bad(err, "`program` and `nonce` must be hashes");
    memcpy(out->nonce, nonce.b, sizeof out->nonce);
    out->audit = true;
    out->provider_count = 1;
    status = read_key(root, "checker", &out->referee, err);
    if (status == VD_OK)
        status = read_key(root, "provider", &out->provider[0], err);
    return status == VD_OK ? read_beacon(json_object_get(root, "beacon"), out, err) : status;
}
