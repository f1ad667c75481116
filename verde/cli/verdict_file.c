#include "verde/cli/story.h"

static vd_status read_referee(const char *hex, vd_public_key *key, vd_err *err) {
    if (vd_unhex(hex, key->b, VD_KEY_SIZE))
        return VD_OK;
    return vd_fail(err, VD_ERR_USAGE,
                   "--referee must be 64 lower-case hexadecimal digits, got \"%.80s\"", hex);
}

vd_status vd_load_verdict(const char *path, const char *referee, bool story, vd_verdict *out,
                          vd_err *err) {
    vd_buf text = {0};
    vd_public_key key;
    vd_status status = vd_leaf_self_test(err);
    if (status == VD_OK && referee)
        status = read_referee(referee, &key, err);
    if (status == VD_OK)
        status = vd_read_file(path, VD_VERDICT_BYTES_MAX, &text, err);
    if (status == VD_OK && text.size && text.data[text.size - 1] == '\n')
        text.size--;
    if (status == VD_OK)
        status = vd_verdict_verify(text.data, text.size, referee ? &key : NULL, vd_leaf_element,
                                   story ? vd_tell : NULL, NULL, out, err);
    if (status == VD_ERR_PEER)
        status = vd_fail(err, status, "%s: %s", path, err->text);
    vd_buf_free(&text);
    return status;
}

vd_status vd_compare_job(const char *job, const vd_hash *program, const char *what, vd_err *err) {
    vd_loaded loaded = {0};
    vd_hash hash;
    vd_status status = vd_load_job(job, &loaded, err);
    if (status == VD_OK)
        status = vd_program_hash(&loaded.program, &hash, err);
    if (status == VD_OK && !vd_hash_equal(&hash, program))
        status = vd_fail(err, VD_ERR_PEER, "%s: is about another program than %s", what, job);
    vd_loaded_free(&loaded);
    return status;
}
