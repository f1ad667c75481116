/* HTML for people: text of others, and the style sheet of all pages. */
#ifndef VD_HTML_H
#define VD_HTML_H

#include "verde/base/base.h"

/* Text from anywhere: markup is escaped, and control characters and broken UTF-8 become '?'. */
void vd_html_text(vd_buf *out, const char *text);
/* The first eight digits of an identifier, the rest in a tooltip. */
void vd_html_short(vd_buf *out, const char *id);
/* Begins a cell of a table; `name` is its column's, which narrow windows show above it. */
void vd_html_cell(vd_buf *out, const char *name, const char *class);
/* page.css; it needs no file beside it. */
extern const char vd_html_style[];

#endif
