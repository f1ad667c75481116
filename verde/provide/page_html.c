/* Common elements of the page's parts. */
#include <time.h>

#include "verde/provide/page_internal.h"

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

void vd_page_begin(vd_buf *out, const char *title, int refresh_s) {
    vd_printf(out,
              "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
              "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
              "<meta http-equiv=\"refresh\" content=\"%d\">\n"
              "<link rel=\"stylesheet\" href=\"/style.css\">\n"
              "<link rel=\"icon\" href=\"/icon.svg\">\n<title>",
              refresh_s);
    vd_html_text(out, title);
    vd_printf(out,
              "</title>\n<header><h1><a href=\"/\">Verde provider</a></h1></header>\n<main>\n");
}

void vd_page_end(vd_buf *out) {
    vd_printf(out, "</main>\n</html>\n");
}
