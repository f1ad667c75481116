/* The head of an HTTP request: its first line and its headers. */
#ifndef VD_NET_HEADERS_H
#define VD_NET_HEADERS_H

#include "verde/net/net.h"

struct evkeyvalq;

/* The list of evhttp where it has read the request; our own where vd_head_parse has. */
struct vd_headers {
    const struct evkeyvalq *list; /* NULL: these: */
    struct {
        const char *name, *value;
    } own[VD_NET_HEADERS_MAX];
    int count;
};

/* Reads a head, whose lines end with CR LF or LF, up to its empty line or the end of the text. Sets
 * method and path of `request` and its headers, which point into `text`, which is changed; and the
 * version, as "HTTP/1.1". Returns false if it is no head, its path does not begin with a slash, or
 * it has more headers than VD_NET_HEADERS_MAX. */
VD_MUST_USE bool vd_head_parse(char *text, vd_request *request, vd_headers *headers,
                               const char **version);
/* How often a header is there. Sets `value`, if it is not NULL, to that of the last one. */
int vd_headers_count(const vd_headers *headers, const char *name, const char **value);
/* Is the value of a Content-Length digits alone? evhttp also takes "+1" and " 1", which something
 * between the two may read otherwise. */
bool vd_is_length(const char *value);

#endif
