/* This file passes results of work on to the functions that print them. */
#include "verde/tell/tell.h"

static void (*take_text)(const vd_buf *text);
static void (*take_json)(const json_t *json);

void vd_results_to(void (*text)(const vd_buf *text), void (*json)(const json_t *json)) {
    take_text = text;
    take_json = json;
}

void vd_result_text(vd_buf *text) {
    if (take_text)
        take_text(text);
    vd_buf_free(text);
}

void vd_result_json(json_t *json) {
    if (take_json)
        take_json(json);
    json_decref(json);
}

void vd_put_hex(vd_buf *out, const char *name, const uint8_t bytes[VD_HASH_SIZE]) {
    char hex[2 * VD_HASH_SIZE + 1];
    vd_hex(bytes, VD_HASH_SIZE, hex);
    vd_printf(out, "%-12s %s\n", name, hex);
}
