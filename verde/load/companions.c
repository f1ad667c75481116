/* This file copies files that belong to a model's weights: the tokenizer's, and transformers'
 * settings for generation. No hash of a job or proof covers them. */
#include <sys/stat.h>

#include "verde/load/export.h"

enum { COMPANION_BYTES_MAX = 128 << 20 };

static const char *const companions[] = {VD_WEIGHTS_GENERATION_CONFIG,
                                         "tokenizer.json",
                                         "tokenizer_config.json",
                                         "special_tokens_map.json",
                                         "added_tokens.json",
                                         "vocab.json",
                                         "merges.txt",
                                         "vocab.txt",
                                         "tokenizer.model",
                                         "chat_template.jinja",
                                         "chat_template.json"};

static vd_status copy_companion(const char *from, const char *to, const char *name, vd_err *err) {
    char source[1100], target[1100];
    struct stat info;
    vd_buf bytes = {0};
    if (snprintf(source, sizeof source, "%s/%s", from, name) >= (int)sizeof source ||
        snprintf(target, sizeof target, "%s/%s", to, name) >= (int)sizeof target)
        return vd_fail(err, VD_ERR_USAGE, "%.60s...: path too long", from);
    if (stat(source, &info) != 0 || !S_ISREG(info.st_mode))
        return VD_OK;
    vd_status status = vd_read_file(source, COMPANION_BYTES_MAX, &bytes, err);
    if (status == VD_OK)
        status = vd_write_file(target, bytes.data, bytes.size, 0644, err);
    vd_buf_free(&bytes);
    return status;
}

vd_status vd_companions_copy(const char *from, const char *to, vd_err *err) {
    vd_status status = VD_OK;
    for (size_t i = 0; i < sizeof companions / sizeof companions[0] && status == VD_OK; i++)
        status = copy_companion(from, to, companions[i], err);
    return status;
}
