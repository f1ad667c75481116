/* Members of messages. */
#include "verde/protocol/message.h"

bool vd_json_to_hash(const json_t *value, vd_hash *out) {
    const char *hex = json_string_value(value);
    return hex && vd_unhex(hex, out->b, VD_HASH_SIZE);
}

bool vd_json_get_hash(const json_t *object, const char *key, vd_hash *out) {
    return vd_json_to_hash(json_object_get(object, key), out);
}

bool vd_json_has_only(const json_t *object, const char *const *keys) {
    size_t count = 0;
    for (; keys[count]; count++)
        if (!json_object_get(object, keys[count]))
            return false;
    return json_is_object(object) && json_object_size(object) == count;
}

json_t *vd_json_key(const vd_public_key *key) {
    char hex[2 * VD_KEY_SIZE + 1];
    vd_hex(key->b, VD_KEY_SIZE, hex);
    return json_string(hex);
}
