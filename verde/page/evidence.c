/* Shows each signed statement, folded: its signer, its question, its text and its signature. */
#include <string.h>

#include "verde/page/internal.h"

static const char *member(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static void put_payload(vd_buf *out, const vd_buf *payload) {
    const size_t shown = payload->size < VD_PAGE_PAYLOAD ? payload->size : VD_PAGE_PAYLOAD;
    vd_buf text = {0};
    vd_put(&text, payload->data, shown);
    vd_put_u8(&text, 0);
    vd_printf(out, "<pre>");
    if (vd_buf_ok(&text))
        vd_html_text(out, (const char *)text.data);
    vd_printf(out, "%s</pre>\n", shown < payload->size ? " &#8230;" : "");
    out->failed |= !vd_buf_ok(&text);
    vd_buf_free(&text);
}

static void put_signed(vd_page_watch *w, const vd_heard *heard) {
    const json_t *note = json_object_get(heard->item, "statement");
    const json_t *signature = json_array_get(json_object_get(note, "signatures"), 0);
    const char *coded = member(note, "payload");
    vd_buf *out = &w->evidence, payload = {0};
    if (vd_unbase64(coded, strlen(coded), &payload, NULL) != VD_OK)
        out->failed |= payload.failed;
    w->bytes[heard->level] += payload.size;
    vd_printf(out, " <span class=\"soft\">");
    vd_page_bytes(out, payload.size);
    vd_printf(out, "</span></summary>\n<dl><dt>signed by<dd><code>");
    vd_html_text(out, member(signature, "keyid"));
    vd_printf(out, "</code><dt>signature<dd><code>");
    vd_html_text(out, member(signature, "sig"));
    vd_printf(out, "</code><dt>question<dd><code>");
    vd_html_text(out, member(heard->item, "question"));
    vd_printf(out, "</code></dl>\n");
    put_payload(out, &payload);
    vd_buf_free(&payload);
}

void vd_page_heard(vd_page_watch *w, const vd_heard *heard) {
    vd_buf *out = &w->evidence;
    w->statements++;
    w->questions[heard->level]++;
    vd_printf(out, "<details><summary>");
    vd_page_count(out, (int64_t)w->statements);
    vd_printf(out, ". Provider %u", heard->provider + 1);
    if (heard->game)
        vd_printf(out, ", game %u", heard->game);
    vd_printf(out, ": ");
    vd_html_text(out, heard->question);
    if (json_object_get(heard->item, "absent")) {
        vd_printf(out, " <span class=\"bad\">no answer</span></summary><p>The referee saw: ");
        vd_html_text(out, member(heard->item, "absent"));
        vd_printf(out, "</p>");
    } else {
        put_signed(w, heard);
    }
    vd_printf(out, "</details>\n");
}
