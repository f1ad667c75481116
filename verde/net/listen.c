/* The server's address and certificate. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

#include "verde/net/server_internal.h"

typedef union {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
} net_address;

/* Parses the port after the last colon, to which *host_end is set. */
static bool parse_port(const char *text, const char **host_end, uint16_t *port) {
    const char *colon = strrchr(text, ':');
    size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
    if (digits < 1 || digits > 5 || colon[1 + digits])
        return false;
    unsigned long value = strtoul(colon + 1, NULL, 10);
    *host_end = colon;
    *port = (uint16_t)value;
    return value <= 65535;
}

static bool parse_address(const char *text, net_address *out, int *size) {
    const char *end;
    uint16_t port;
    char host[INET6_ADDRSTRLEN] = "";
    if (!parse_port(text, &end, &port))
        return false;
    bool six = *text == '[' && end > text && end[-1] == ']';
    text += six;
    end -= six;
    if (end - text >= (ptrdiff_t)sizeof host)
        return false;
    memcpy(host, text, (size_t)(end - text));
    *out = (net_address){0};
    if (six) {
        out->in6.sin6_family = AF_INET6;
        out->in6.sin6_port = htons(port);
        *size = sizeof out->in6;
        return inet_pton(AF_INET6, host, &out->in6.sin6_addr) == 1;
    }
    out->in.sin_family = AF_INET;
    out->in.sin_port = htons(port);
    *size = sizeof out->in;
    return inet_pton(AF_INET, host, &out->in.sin_addr) == 1;
}

static int bound_port(struct evconnlistener *listener) {
    net_address address = {0};
    socklen_t size = sizeof address;
    if (getsockname(evconnlistener_get_fd(listener), &address.any, &size) != 0)
        return -1;
    return ntohs(address.any.sa_family == AF_INET6 ? address.in6.sin6_port : address.in.sin_port);
}

vd_status vd_listen(struct event_base *base, const char *text, struct evconnlistener **out,
                    int *port, vd_err *err) {
    net_address address;
    int size;
    if (!text || !parse_address(text, &address, &size))
        return vd_fail(err, VD_ERR_USAGE,
                       "cannot listen on `%.100s`: expected IPv4:PORT or "
                       "[IPv6]:PORT",
                       text ? text : "");
    const unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE;
    *out = evconnlistener_new_bind(base, NULL, NULL, flags, VD_NET_BACKLOG, &address.any, size);
    if (!*out)
        return vd_fail(err, VD_ERR_IO, "cannot listen on `%s`: %s", text, strerror(errno));
    /* Accepted sockets inherit this. Head and body are written separately: otherwise the second
     * would wait 40 ms for the acknowledgement of the first. */
    setsockopt(evconnlistener_get_fd(*out), IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    *port = bound_port(*out);
    return VD_OK;
}

/* ---- TLS ---- */

/* Prevents OpenSSL from asking for a passphrase at the terminal. */
static int no_passphrase(char *text, int size, int writing, void *user) {
    (void)text, (void)size, (void)writing, (void)user;
    return -1;
}

static vd_status tls_error(const char *what, const char *path, vd_err *err) {
    const char *why = ERR_reason_error_string(ERR_peek_last_error());
    vd_fail(err, VD_ERR_USAGE, "%s: %s: %s", path, what, why ? why : "unknown error");
    ERR_clear_error();
    return VD_ERR_USAGE;
}

static vd_status tls_load(SSL_CTX *tls, const char *cert_path, const char *key_path, vd_err *err) {
    if (!cert_path || !key_path)
        return vd_fail(err, VD_ERR_USAGE, "a server needs a certificate and a key file");
    vd_status status = vd_check_readable(cert_path, err); /* OpenSSL would wait for a FIFO */
    if (status == VD_OK)
        status = vd_check_readable(key_path, err);
    if (status != VD_OK)
        return status;
    SSL_CTX_set_default_passwd_cb(tls, no_passphrase);
    if (SSL_CTX_use_certificate_chain_file(tls, cert_path) != 1)
        return tls_error("cannot read the certificate", cert_path, err);
    if (SSL_CTX_use_PrivateKey_file(tls, key_path, SSL_FILETYPE_PEM) != 1)
        return tls_error("cannot use the private key with this certificate", key_path, err);
    return VD_OK;
}

vd_status vd_tls_create(const char *cert_path, const char *key_path, SSL_CTX **out, vd_err *err) {
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    /* Without tickets no session is resumed: every connection proves the key anew. */
    if (!tls || SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_num_tickets(tls, 0) != 1) {
        SSL_CTX_free(tls);
        return vd_fail(err, VD_ERR_LOCAL, "could not initialise TLS");
    }
    SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
    vd_status status = tls_load(tls, cert_path, key_path, err);
    if (status != VD_OK) {
        SSL_CTX_free(tls);
        return status;
    }
    *out = tls;
    return VD_OK;
}
