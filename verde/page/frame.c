/* The frame of all pages: content security policy, style, numbers. */
#include <string.h>

#include "verde/page/internal.h"

/* Appends 'sha256-...' of a script or a style sheet, for the policy. */
static bool put_source(vd_buf *out, const char *text) {
    vd_hash hash;
    if (!vd_hash_tagged(NULL, text, strlen(text), &hash))
        return false;
    vd_printf(out, "'sha256-");
    vd_put_base64(out, hash.b, sizeof hash.b);
    vd_printf(out, "'");
    return true;
}

/* Appends the policy: nothing is loaded, sent or framed; scripts and styles are allowed by hash. */
static bool put_policy(vd_buf *out, const char *script) {
    vd_printf(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                   "base-uri 'none'; form-action 'none'; img-src data:; style-src ");
    bool done = put_source(out, vd_html_style);
    if (script) {
        vd_printf(out, "; worker-src blob:; script-src 'wasm-unsafe-eval' ");
        done &= put_source(out, script);
    }
    vd_printf(out, "\">\n");
    return done;
}

vd_status vd_page_frame(const char *title, const vd_buf *body, const char *script, vd_buf *out,
                        vd_err *err) {
    vd_printf(out, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n");
    const bool done = put_policy(out, script);
    vd_printf(out, "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                   "<title>");
    vd_html_text(out, title);
    vd_printf(out, "</title>\n<style>");
    vd_put(out, vd_html_style, strlen(vd_html_style));
    vd_printf(out, "</style>\n");
    vd_put(out, body->data, body->size);
    if (script) {
        vd_printf(out, "<script>");
        vd_put(out, script, strlen(script));
        vd_printf(out, "</script>\n");
    }
    vd_printf(out, "</html>\n");
    return done && vd_buf_ok(out) && vd_buf_ok(body)
               ? VD_OK
               : vd_fail(err, VD_ERR_LOCAL, "out of memory in writing a page");
}

const char *vd_page_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

void vd_page_title(vd_buf *out, const char *text) {
    vd_printf(out, "<h2>%s</h2>\n", text);
}

void vd_page_count(vd_buf *out, int64_t count) {
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%lld", (long long)count);
    for (int i = 0; i < length; i++) {
        vd_put_u8(out, (uint8_t)digits[i]);
        if (digits[i] != '-' && (length - i) % 3 == 1 && i + 1 < length)
            vd_put_u8(out, ',');
    }
}

void vd_page_bytes(vd_buf *out, uint64_t bytes) {
    char text[32];
    vd_print_size(bytes, text);
    vd_printf(out, "%s", text);
}

void vd_page_hash(vd_buf *out, const vd_hash *hash) {
    char hex[2 * VD_HASH_SIZE + 1];
    vd_hex(hash->b, VD_HASH_SIZE, hex);
    vd_printf(out, "<code>%s</code>", hex);
}

void vd_page_key(vd_buf *out, const vd_public_key *key) {
    char hex[2 * VD_KEY_SIZE + 1];
    vd_hex(key->b, VD_KEY_SIZE, hex);
    vd_printf(out, "<code>%s</code>", hex);
}
