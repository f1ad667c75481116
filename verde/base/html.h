/* HTML pages: escaping of foreign text, and the style sheet of all pages. */
#ifndef VD_HTML_H
#define VD_HTML_H

#include "verde/base/base.h"

/* Appends any text: markup is escaped, control characters and broken UTF-8 become '?'. */
void vd_html_text(vd_buf *out, const char *text);
/* Appends the first eight digits of an identifier, with all of it in a tooltip. */
void vd_html_short(vd_buf *out, const char *id);
/* Begins a table cell. `name` is its column's name, which narrow windows show above the cell. */
void vd_html_cell(vd_buf *out, const char *name, const char *class);
/* The text of page.css, so that a page needs no other file. */
extern const char vd_html_style[];

#endif
