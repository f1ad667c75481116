/* This file finds the tokens that end a text: eos_token_id of both config files of a model. */
#include "verde/job/config_fields.h"

static bool has_token(const int64_t *list, int64_t count, int64_t token) {
    while (count > 0 && list[count - 1] != token)
        count--;
    return count > 0;
}

static vd_status take_token(const vd_config *c, const json_t *token, int64_t vocab,
                            int64_t stop[VD_STOPS_MAX], int64_t *count, vd_err *err) {
    const int64_t value = json_integer_value(token);
    if (!json_is_integer(token))
        return vd_config_refuse(c, "eos_token_id", "a token, or a list of them", err);
    if (value < 0 || value >= vocab || has_token(stop, *count, value))
        return VD_OK;
    if (*count == VD_STOPS_MAX)
        return vd_config_refuse(c, "eos_token_id", "16 tokens or fewer", err);
    stop[(*count)++] = value;
    return VD_OK;
}

vd_status vd_config_stops(const void *text, size_t size, const char *name, int64_t vocab,
                          int64_t stop[VD_STOPS_MAX], int64_t *count, vd_err *err) {
    json_t *root = NULL;
    *count = 0;
    vd_status status = vd_config_parse(text, size, name, &root, err);
    const vd_config c = {.root = root, .name = name};
    const json_t *eos = status == VD_OK ? vd_config_value(&c, "eos_token_id") : NULL;
    const size_t listed = json_is_array(eos) ? json_array_size(eos) : 0;
    if (eos && !json_is_array(eos))
        status = take_token(&c, eos, vocab, stop, count, err);
    for (size_t i = 0; i < listed && status == VD_OK; i++)
        status = take_token(&c, json_array_get(eos, i), vocab, stop, count, err);
    json_decref(root);
    return status;
}
