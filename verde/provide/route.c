/* Parses a request's path. Only identifiers of 64 digits become part of a file's name, and the rest
 * of a state's path, which its delivery checks itself. */
#include <stdlib.h>
#include <string.h>

#include "verde/provide/internal.h"

static bool take(const char **at, const char *prefix) {
    const size_t size = strlen(prefix);
    if (strncmp(*at, prefix, size) != 0)
        return false;
    *at += size;
    return true;
}

static bool take_id(const char **at, char id[VD_ID_SIZE]) {
    uint8_t bytes[32];
    snprintf(id, VD_ID_SIZE, "%.64s", *at);
    if (!vd_unhex(id, bytes, sizeof bytes))
        return false;
    *at += 64;
    return true;
}

/* Parses digits without leading zeros, at most 2^53. */
static bool take_number(const char **at, uint64_t *out) {
    const size_t digits = strspn(*at, "0123456789");
    if (digits == 0 || digits > 16 || (digits > 1 && **at == '0'))
        return false;
    *out = strtoull(*at, NULL, 10);
    *at += digits;
    return *out <= UINT64_C(1) << 53;
}

static vd_route_kind blob(const char *at, vd_route *out, bool put) {
    if (!take_id(&at, out->id))
        return VD_ROUTE_NONE;
    if (put && (!take(&at, "?size=") || !take_number(&at, &out->size) || !take(&at, "&from=") ||
                !take_number(&at, &out->from)))
        return VD_ROUTE_NONE;
    return *at ? VD_ROUTE_NONE : VD_ROUTE_BLOB;
}

static vd_route_kind job(const char *at, vd_route *out) {
    if (!take_id(&at, out->id))
        return VD_ROUTE_NONE;
    if (!*at)
        return VD_ROUTE_JOB;
    if (strcmp(at, "/cancel") == 0)
        return VD_ROUTE_CANCEL;
    out->rest = at;
    const bool state = strcmp(at, "/state") == 0 || strncmp(at, "/state/", 7) == 0;
    const bool items = strcmp(at, "/items") == 0 || strncmp(at, "/items/", 7) == 0;
    return state || items || strcmp(at, "/losses") == 0 ? VD_ROUTE_STATE : VD_ROUTE_NONE;
}

static vd_route_kind find(const vd_request *request, vd_route *out) {
    static const struct {
        const char *path;
        vd_route_kind kind;
    } plain[] = {
        {"health", VD_ROUTE_HEALTH}, {"metrics", VD_ROUTE_METRICS}, {"provider", VD_ROUTE_PROVIDER},
        {"ask", VD_ROUTE_ASK},       {"jobs", VD_ROUTE_JOBS},
    };
    const char *at = request->path;
    if (!take(&at, "/v1/"))
        return VD_ROUTE_NONE;
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (strcmp(at, plain[i].path) == 0)
            return plain[i].kind;
    if (take(&at, "blobs/"))
        return blob(at, out, strcmp(request->method, "PUT") == 0);
    return take(&at, "jobs/") ? job(at, out) : VD_ROUTE_NONE;
}

/* Returns the methods allowed for each kind of path. */
static const char *methods_of(vd_route_kind kind) {
    switch (kind) {
    case VD_ROUTE_ASK:
    case VD_ROUTE_CANCEL: return "POST";
    case VD_ROUTE_BLOB: return "GET PUT";
    case VD_ROUTE_JOBS: return "GET POST";
    case VD_ROUTE_JOB: return "GET DELETE";
    default: return "GET";
    }
}

bool vd_route_read(const vd_request *request, vd_route *out, vd_response *response) {
    *out = (vd_route){.rest = ""};
    out->kind = find(request, out);
    if (out->kind == VD_ROUTE_NONE) {
        vd_reply_error(response, 404, "no such path; PROTOCOL.md section 8.7 lists all of them");
        return false;
    }
    const char *methods = methods_of(out->kind);
    if (!strstr(methods, request->method)) {
        vd_reply_error(response, 405, "the method must be one of: %s", methods);
        return false;
    }
    out->is_get = strcmp(request->method, "GET") == 0;
    return true;
}
