/* Puts the verifier of verify.html into a verdict's own page. */
#include <string.h>

#include "verde/page/internal.h"

/* Finds the text between the last occurrence of `from` and the next one of `to`. */
static bool part_between(const vd_buf *text, const char *from, const char *to, const char **part,
                         size_t *size) {
    const char *at = NULL, *end = (const char *)text->data + text->size;
    for (const char *next = (const char *)text->data;
         (next = memmem(next, (size_t)(end - next), from, strlen(from))); next++)
        at = next;
    if (!at)
        return false;
    at += strlen(from);
    const char *stop = memmem(at, (size_t)(end - at), to, strlen(to));
    *part = at;
    *size = stop ? (size_t)(stop - at) : 0;
    return stop != NULL;
}

static const char section[] =
    "<h2 class=\"screen\">Decide it again</h2>\n<div class=\"card screen\"><p>A page that a "
    "stranger sends proves nothing: whoever made it can make it say anything. To be sure, take "
    "<b>verify.html</b> from the release, whose SHA-256 is signed, and drop the verdict on it; or "
    "run <code>verde verify</code>.</p>\n"
    "<p><button id=\"again\">Decide again, here</button> <button id=\"save\">Save the verdict"
    "</button></p>\n<p id=\"progress\" class=\"soft\" role=\"status\"></p>\n"
    "<div id=\"result\" hidden><p id=\"outcome\" class=\"outcome\"></p><pre id=\"said\"></pre>"
    "<details><summary>How it was decided</summary><pre id=\"story\"></pre></details></div></div>"
    "\n";

vd_status vd_page_verifier(const vd_buf *verifier, const char *name, const void *note, size_t size,
                           vd_buf *body, vd_buf *script, vd_err *err) {
    const char *data, *code;
    size_t data_size, code_size;
    if (!part_between(verifier, "<!-- verifier -->", "<!-- end -->", &data, &data_size) ||
        !part_between(verifier, "<script>", "</script>", &code, &code_size))
        return vd_fail(err, VD_ERR_USAGE, "is no verify.html, as `make verifier` makes one");
    vd_printf(body, "%s", section);
    vd_put(body, data, data_size);
    vd_printf(body, "\n<script id=\"verdict\" type=\"text/plain\" data-name=\"");
    vd_html_text(body, name);
    vd_printf(body, "\">");
    vd_put_base64(body, note, size);
    vd_printf(body, "</script>\n");
    vd_put(script, code, code_size);
    vd_put_u8(script, 0);
    return vd_buf_ok(script) ? VD_OK
                             : vd_fail(err, VD_ERR_LOCAL, "out of memory in writing a page");
}
