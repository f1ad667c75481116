/* The head of an HTTP request: its first line and its headers. */
#ifndef VD_NET_HEADERS_H
#define VD_NET_HEADERS_H

#include "verde/net/net.h"

struct evkeyvalq;

/* Headers: evhttp's list, if it has read the request, or our own from vd_head_parse. */
struct vd_headers {
    const struct evkeyvalq *list; /* NULL: `own` is used */
    struct {
        const char *name, *value;
    } own[VD_NET_HEADERS_MAX];
    int count;
};

/* Parses a head with lines ending in CR LF or LF, up to its empty line or the end of the text. Sets
 * method and path of *request, its headers, which point into `text` (which is changed), and the
 * version, such as "HTTP/1.1". False: it is malformed, its path does not begin with a slash, or it
 * has more headers than VD_NET_HEADERS_MAX. */
VD_MUST_USE bool vd_head_parse(char *text, vd_request *request, vd_headers *headers,
                               const char **version);
/* Returns the number of headers with this name. *value becomes the last one's; NULL is accepted. */
int vd_headers_count(const vd_headers *headers, const char *name, const char **value);
/* Returns true if a Content-Length has only digits. evhttp also accepts "+1" and " 1", which an
 * intermediary may read differently. */
bool vd_is_length(const char *value);

#endif
