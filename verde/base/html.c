/* This file writes foreign text into HTML so that none of it becomes markup. */
#include "verde/base/html.h"

const char vd_html_style[] =
#include "page_css.h"
    ;

/* The length of the valid UTF-8 sequence at `at`; 0: there is none. */
static int sequence_at(const uint8_t *at) {
    const int size = at[0] < 0x80                    ? 1
                     : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
                     : at[0] >= 0xe0 && at[0] < 0xf0 ? 3
                     : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
                                                     : 0;
    for (int i = 1; i < size; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    const bool overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    const bool no_character = (at[0] == 0xed && at[1] >= 0xa0) || (at[0] == 0xf4 && at[1] >= 0x90);
    return overlong || no_character ? 0 : size;
}

void vd_html_text(vd_buf *out, const char *text) {
    for (const uint8_t *at = (const uint8_t *)text; *at;) {
        const int size = sequence_at(at);
        switch (*at) {
        case '&': vd_printf(out, "&amp;"); break;
        case '<': vd_printf(out, "&lt;"); break;
        case '>': vd_printf(out, "&gt;"); break;
        case '"': vd_printf(out, "&quot;"); break;
        case '\'': vd_printf(out, "&#39;"); break;
        default:
            if (size == 0 || *at == 127 || (*at < ' ' && *at != '\n'))
                vd_put_u8(out, '?');
            else
                vd_put(out, at, (size_t)size);
        }
        at += size ? size : 1;
    }
}

void vd_html_cell(vd_buf *out, const char *name, const char *class) {
    vd_printf(out, "<td data-name=\"%s\" class=\"%s\">", name, class);
}

void vd_html_short(vd_buf *out, const char *id) {
    vd_printf(out, "<code title=\"%s\">%.8s</code>", id, id);
}
