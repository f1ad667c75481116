/* Reads heads of requests, and finds headers that evhttp or vd_head_parse has read. */
#include "verde/net/headers.h"

#include <event2/keyvalq_struct.h>
#include <string.h>
#include <strings.h>

/* Returns the next line, whose end is replaced by a NUL. */
static char *take_line(char **at) {
    char *line = *at, *end = strchr(line, '\n');
    if (!end)
        return NULL;
    *at = end + 1;
    *end = 0;
    if (end > line && end[-1] == '\r')
        end[-1] = 0;
    return line;
}

static bool take_request_line(char *line, vd_request *out, const char **version) {
    char *path = line ? strchr(line, ' ') : NULL, *last = path ? strchr(path + 1, ' ') : NULL;
    if (!last)
        return false;
    *path = *last = 0;
    out->method = line;
    out->path = path + 1;
    *version = last + 1;
    return out->path[0] == '/';
}

static bool take_header(char *line, vd_headers *out) {
    char *colon = strchr(line, ':');
    if (!colon || out->count == VD_NET_HEADERS_MAX)
        return false;
    *colon = 0;
    const char *value = colon + 1 + strspn(colon + 1, " \t");
    for (char *end = colon + 1 + strlen(colon + 1); end > value && strchr(" \t", end[-1]);)
        *--end = 0;
    out->own[out->count].name = line;
    out->own[out->count++].value = value;
    return true;
}

bool vd_head_parse(char *text, vd_request *request, vd_headers *headers, const char **version) {
    char *at = text, *line;
    headers->list = NULL;
    headers->count = 0;
    if (!take_request_line(take_line(&at), request, version))
        return false;
    while ((line = take_line(&at)) && *line)
        if (!take_header(line, headers))
            return false;
    request->headers = headers;
    return true;
}

int vd_headers_count(const vd_headers *headers, const char *name, const char **value) {
    const char *last = NULL;
    int count = 0;
    if (headers->list)
        for (const struct evkeyval *h = headers->list->tqh_first; h; h = h->next.tqe_next)
            if (strcasecmp(h->key, name) == 0 && ++count)
                last = h->value;
    for (int i = 0; !headers->list && i < headers->count; i++)
        if (strcasecmp(headers->own[i].name, name) == 0 && ++count)
            last = headers->own[i].value;
    if (value)
        *value = last;
    return count;
}

const char *vd_request_header(const vd_request *request, const char *name) {
    const char *value;
    const bool once = request->headers && vd_headers_count(request->headers, name, &value) == 1;
    return once ? value : NULL;
}

bool vd_is_length(const char *value) {
    return *value && strspn(value, "0123456789") == strlen(value);
}
