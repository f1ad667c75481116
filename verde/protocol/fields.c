/* Reads and writes the fields of messages. */
#include "verde/protocol/message.h"

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
