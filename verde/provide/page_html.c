/* What all parts of the page are made of. */
#include <string.h>
#include <time.h>

#include "verde/provide/page_internal.h"

/* ---- text of others ---- */

/* The bytes of a sequence of UTF-8 that is whole and allowed; 0: there is none. */
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

void vd_page_text(vd_buf *out, const char *text) {
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

void vd_page_cell(vd_buf *out, const char *name, const char *class) {
    vd_printf(out, "<td data-name=\"%s\" class=\"%s\">", name, class);
}

void vd_page_short(vd_buf *out, const char *id) {
    vd_printf(out, "<code title=\"%s\">%.8s</code>", id, id);
}

/* ---- numbers ---- */

void vd_page_size(vd_buf *out, int64_t bytes) {
    char text[32];
    vd_print_size(bytes > 0 ? (uint64_t)bytes : 0, text);
    vd_printf(out, "%s", text);
}

void vd_page_seconds(vd_buf *out, double seconds) {
    char text[32];
    vd_print_seconds(seconds, text);
    vd_printf(out, "%s", text);
}

void vd_page_time(vd_buf *out, int64_t unix_s) {
    const time_t at = (time_t)unix_s;
    char text[32] = "";
    struct tm utc;
    if (gmtime_r(&at, &utc))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
    vd_printf(out, "%s", text);
}

void vd_page_meter(vd_buf *out, int64_t value, int64_t limit, vd_page_unit unit) {
    if (limit > 0)
        vd_printf(out, "<progress max=\"1000\" value=\"%.0f\"></progress> ",
                  1000.0 * (double)value / (double)limit);
    unit(out, value);
    if (limit <= 0)
        return;
    vd_printf(out, " of ");
    unit(out, limit);
}

/* ---- the frame ---- */

const char vd_page_style[] =
    ":root{color-scheme:light dark;--ink:#1d2430;--soft:#667085;--line:#e3e6eb;--back:#f6f7f9;"
    "--card:#fff;--main:#0a66c2;--good:#1a7f4b;--bad:#c22f2f;--wait:#996200}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e4e7ec;--soft:#98a2b3;--line:#2d3138;"
    "--back:#101215;--card:#16181c;--main:#6cb4ff;--good:#57c98b;--bad:#ff7b72;--wait:#e0b050}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--back);color:var(--ink);font:15px/1.5 system-ui,sans-serif}\n"
    "header,main,footer{max-width:1120px;margin:0 auto;padding:0 24px}\n"
    "header{padding-top:28px}header a{color:inherit;text-decoration:none}\n"
    "h1{font-size:22px;margin:0}h2{font-size:16px;margin:32px 0 10px}\n"
    ".soft,footer,th{color:var(--soft)}footer{font-size:13px;padding:28px 24px}\n"
    "a{color:var(--main)}code,pre{font:13px/1.5 ui-monospace,monospace}\n"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(130px,1fr));gap:12px;"
    "margin:20px 0 0}\n"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px "
    "16px;overflow-x:auto}\n"
    ".tiles b{display:block;font-size:22px;font-weight:600}\n"
    "table{border-collapse:collapse;width:100%}th{font-weight:500;text-align:left;font-size:13px}\n"
    "th,td{padding:7px 14px 7px 0;border-bottom:1px solid var(--line);white-space:nowrap}\n"
    "tr:last-child td{border-bottom:0}th:last-child,td:last-child{padding-right:0}\n"
    "td.name{max-width:180px;overflow:hidden;text-overflow:ellipsis}\n"
    ".number{text-align:right;font-variant-numeric:tabular-nums}\n"
    "progress{appearance:none;border:0;width:120px;height:8px;margin-right:8px;border-radius:4px;"
    "overflow:hidden;background:var(--line);vertical-align:middle}\n"
    "progress::-webkit-progress-bar{background:var(--line)}\n"
    "progress::-webkit-progress-value{background:var(--main)}\n"
    "progress::-moz-progress-bar{background:var(--main)}\n"
    ".state{font-weight:600}.done{color:var(--good)}.failed{color:var(--bad)}"
    ".queued,.cancelled{color:var(--wait)}.running{color:var(--main)}\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:6px 24px;margin:0}"
    "dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}\n"
    "pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere}img{display:block;max-width:100%;"
    "height:auto;margin:0 auto}\n"
    /* A table that is wider than the window would be scrolled back whenever the page is loaded
     * again: each row becomes a block of named cells. */
    "@media(max-width:1120px){thead{display:none}table,tbody{display:block}"
    "tr{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:8px 16px;"
    "padding:12px 0;border-bottom:1px solid var(--line)}tr:last-child{border-bottom:0}"
    "tr:first-child{padding-top:0}tr:last-child{padding-bottom:0}"
    "td,td.number{padding:0;border:0;text-align:left;white-space:normal}td.name{max-width:none;"
    "overflow-wrap:anywhere}td.wide{grid-column:1/-1}td:empty{display:none}"
    "td:not(.wide) progress{display:block;margin:6px 0 4px}"
    "td::before{content:attr(data-name);display:block;color:var(--soft);font-size:13px}}\n"
    "@media(max-width:500px){header,main,footer{padding-left:16px;padding-right:16px}"
    ".tiles{grid-template-columns:repeat(auto-fill,minmax(100px,1fr))}"
    "dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:10px}dd:last-child{margin-bottom:0}}\n";

void vd_page_begin(vd_buf *out, const char *title, int refresh_s) {
    vd_printf(out,
              "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
              "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
              "<meta http-equiv=\"refresh\" content=\"%d\">\n"
              "<link rel=\"stylesheet\" href=\"/style.css\">\n"
              "<link rel=\"icon\" href=\"/icon.svg\">\n<title>",
              refresh_s);
    vd_page_text(out, title);
    vd_printf(out,
              "</title>\n<header><h1><a href=\"/\">Verde provider</a></h1></header>\n<main>\n");
}

void vd_page_end(vd_buf *out) {
    vd_printf(out, "</main>\n</html>\n");
}
