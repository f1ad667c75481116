/* Parses "https://host[:port][/][#key]" strictly, and builds the URL for curl from its parts. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "verde/net/net.h"

enum { HOST_MAX = 253 };

static bool is_one_of(char c, const char *set) {
    return c && strchr(set, c);
}

#define DIGITS     "0123456789"
#define HOST_CHARS DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-."

/* Each take_* moves *at past what it has parsed. */
static bool take_text(const char **at, const char *text) {
    size_t length = strlen(text);
    if (strncmp(*at, text, length) != 0)
        return false;
    *at += length;
    return true;
}

static bool take_address6(const char **at, char host[HOST_MAX + 1]) {
    const char *end = strchr(*at, ']');
    size_t length = end ? (size_t)(end - *at) + 1 : 0;
    if (length < 2 || length > INET6_ADDRSTRLEN)
        return false;
    char address[INET6_ADDRSTRLEN] = "";
    memcpy(address, *at + 1, length - 2);
    struct in6_addr binary;
    if (inet_pton(AF_INET6, address, &binary) != 1)
        return false;
    snprintf(host, HOST_MAX + 1, "[%s]", address);
    *at += length;
    return true;
}

static bool take_host(const char **at, char host[HOST_MAX + 1]) {
    if (**at == '[')
        return take_address6(at, host);
    size_t length = strspn(*at, HOST_CHARS);
    if (length == 0 || length > HOST_MAX || is_one_of(**at, "-."))
        return false;
    memcpy(host, *at, length);
    host[length] = 0;
    *at += length;
    return true;
}

static bool take_port(const char **at, unsigned *port) {
    *port = 443;
    if (!take_text(at, ":"))
        return true;
    size_t length = strspn(*at, DIGITS);
    if (length == 0 || length > 5 || **at == '0')
        return false;
    *port = (unsigned)strtoul(*at, NULL, 10);
    *at += length;
    return *port <= 65535;
}

static vd_status take_key(const char *at, vd_endpoint *out, vd_err *err) {
    size_t length = strlen(at);
    if (length != 2 * VD_KEY_SIZE)
        return vd_fail(err, VD_ERR_USAGE,
                       "the key after `#` must be 64 hex digits, got %zu characters", length);
    if (!vd_unhex(at, out->key.b, VD_KEY_SIZE))
        return vd_fail(err, VD_ERR_USAGE, "the key after `#` must be lower-case hex digits only");
    if (vd_public_key_check(&out->key, err) != VD_OK)
        return VD_ERR_USAGE;
    if (!vd_public_key_pin(&out->key, out->pin))
        return vd_fail(err, VD_ERR_LOCAL, "could not hash the key");
    out->pinned = true;
    return VD_OK;
}

static vd_status parse(const char *at, vd_endpoint *out, vd_err *err) {
    char host[HOST_MAX + 1];
    unsigned port;
    if (take_text(&at, "http://"))
        return vd_fail(err, VD_ERR_USAGE, "must use https, not http");
    if (!take_text(&at, "https://"))
        return vd_fail(err, VD_ERR_USAGE, "must begin with `https://`");
    if (memchr(at, '@', strcspn(at, "/#?")))
        return vd_fail(err, VD_ERR_USAGE, "must not name a user");
    if (!take_host(&at, host))
        return vd_fail(err, VD_ERR_USAGE, "must have a host name, IPv4 or [IPv6] address");
    if (!take_port(&at, &port))
        return vd_fail(err, VD_ERR_USAGE, "the port must be 1..65535");
    if (take_text(&at, "/") && *at && *at != '#')
        return vd_fail(err, VD_ERR_USAGE, "must have no path or query");
    snprintf(out->url, sizeof out->url, "https://%s:%u", host, port);
    if (take_text(&at, "#"))
        return take_key(at, out, err);
    if (*at)
        return vd_fail(err, VD_ERR_USAGE, "unexpected `%.20s` after host and port", at);
    return VD_OK;
}

vd_status vd_endpoint_parse(const char *text, vd_endpoint *out, vd_err *err) {
    vd_err why = {0};
    *out = (vd_endpoint){0};
    if (parse(text, out, &why) == VD_OK)
        return VD_OK;
    return vd_fail(err, why.status == VD_ERR_LOCAL ? VD_ERR_LOCAL : VD_ERR_USAGE,
                   "endpoint `%.200s`: %.250s", text, why.text);
}
