/* Makes the answer to a request's head. */
#include <string.h>
#include <strings.h>

#include "verde/net/headers.h"
#include "verde/net/loopback_internal.h"

/* ---- answers ---- */

static const char *reason_of(int status) {
    switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 431: return "Request Header Fields Too Large";
    default: return "Internal Server Error";
    }
}

static void put_reply(const vd_loopback_reply *reply, bool head_alone, vd_buf *out) {
    vd_printf(out, "HTTP/1.1 %d %s\r\n", reply->status, reason_of(reply->status));
    vd_printf(out, "Content-Type: %s\r\nContent-Length: %zu\r\n",
              reply->content_type ? reply->content_type : "text/plain; charset=utf-8",
              reply->body.size);
    if (reply->status == 405)
        vd_printf(out, "Allow: GET, HEAD\r\n");
    vd_printf(out, "Content-Security-Policy: default-src 'none'; style-src %s; img-src %s; ",
              reply->inline_style || reply->whole_page ? "'unsafe-inline'" : "'self'",
              reply->whole_page ? "data:" : "'self'");
    vd_printf(out, "base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
                   "Cross-Origin-Resource-Policy: same-origin\r\n"
                   "Cross-Origin-Opener-Policy: same-origin\r\n"
                   "X-Content-Type-Options: nosniff\r\n"
                   "Referrer-Policy: no-referrer\r\n"
                   "Cache-Control: no-store\r\n"
                   "Connection: close\r\n\r\n");
    if (!head_alone)
        vd_put(out, reply->body.data, reply->body.size);
}

void vd_loopback_refuse(int status, const char *why, vd_buf *out) {
    vd_loopback_reply reply = {.status = status};
    vd_printf(&reply.body, "%s\n", why);
    put_reply(&reply, false, out);
    vd_buf_free(&reply.body);
}

/* ---- requests ---- */

/* Returns true if a Host header names this machine; with any port, since it may be forwarded. */
static bool is_this_machine(const char *host) {
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; host && i < sizeof names / sizeof *names; i++) {
        const size_t length = strlen(names[i]);
        if (strncasecmp(host, names[i], length) != 0)
            continue;
        host += length;
        host += *host == ':' ? 1 + strspn(host + 1, "0123456789") : 0;
        return *host == 0;
    }
    return false;
}

/* Returns true if the text has a control character, which no valid head has. */
static bool has_control(const char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < ' ' && !strchr("\t\r\n", *text))
            return true;
    return false;
}

void vd_loopback_answer(char *text, vd_loopback_handler handler, void *user, vd_buf *out) {
    vd_request request = {0};
    vd_headers headers;
    const char *version;
    if (has_control(text)) {
        vd_loopback_refuse(400, "this is no HTTP", out);
        return;
    }
    if (!vd_head_parse(text, &request, &headers, &version) || strncmp(version, "HTTP/1.", 7) != 0) {
        vd_loopback_refuse(400, "this is no HTTP/1.1", out);
        return;
    }
    vd_loopback_reply reply = {.status = 200};
    if (!is_this_machine(vd_request_header(&request, "Host")))
        vd_loopback_refuse(403, "open it as http://localhost or http://127.0.0.1, with the port",
                           out);
    else if (strcmp(request.method, "GET") != 0 && strcmp(request.method, "HEAD") != 0)
        vd_loopback_refuse(405, "this page is for reading: GET alone", out);
    else {
        handler(user, request.path, &reply);
        if (vd_buf_ok(&reply.body))
            put_reply(&reply, strcmp(request.method, "HEAD") == 0, out);
        else
            vd_loopback_refuse(500, "out of memory", out);
    }
    vd_buf_free(&reply.body);
}
