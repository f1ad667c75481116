/* Requests over TLS to a server that checks headers, writes and reads like the daemon's. Afterwards
 * the server must still answer. */
#include "tests/fuzz/fuzz.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verde/net/net.h"

/* How long to wait in silence: for arbitrary bytes, which may be half a request, and for a whole
 * request. */
enum { SILENCE_MS = 20, ANSWER_MS = 10000, CHECK_EVERY = 64, CONNECT_TRIES = 8 };

static vd_server *server;
static SSL_CTX *tls;

static void handle(void *user, const vd_request *request, vd_response *response) {
    (void)user;
    vd_put(&response->body, request->body, request->body ? request->body_size : 0);
}

static vd_screened screen(void *user, const vd_request *request, uint8_t asker[VD_ASKER_SIZE],
                          vd_response *response) {
    (void)user, (void)response;
    const char *name = vd_request_header(request, "Verde-Request");
    asker[0] = name ? (uint8_t)*name : 0;
    return strcmp(request->method, "GET") == 0 ? VD_READS : VD_WAITS;
}

static vd_head_screened screen_head(void *user, const vd_request *request, vd_response *response) {
    (void)user;
    response->status = 403;
    if (vd_request_header(request, "X-Refuse") || request->body_size >= 4096)
        return VD_HEAD_REFUSED;
    return vd_request_header(request, "X-Wait") ? VD_HEAD_WAITS : VD_HEAD_PASSES;
}

static void *serve(void *user) {
    vd_err err;
    (void)user;
    fuzz_need(vd_server_run(server, &err) == VD_OK, "the server ends");
    return NULL;
}

static void start(void) {
    char folder[] = "/tmp/fuzz-XXXXXX", cert[64], key[64], command[96];
    pthread_t thread;
    vd_err err;
    fuzz_need(mkdtemp(folder) && vd_key_save(fuzz_key(), folder, &err) == VD_OK, "no certificate");
    snprintf(cert, sizeof cert, "%s/tls.crt", folder);
    snprintf(key, sizeof key, "%s/key.pem", folder);
    const vd_server_options options = {.listen = "127.0.0.1:0",
                                       .cert_path = cert,
                                       .key_path = key,
                                       .screen = screen,
                                       .head_screen = screen_head,
                                       .writes = true,
                                       .read = handle,
                                       .request_max = 1 << 16};
    fuzz_need(vd_server_create(&options, handle, NULL, &server, &err) == VD_OK, err.text);
    snprintf(command, sizeof command, "rm -r %s", folder);
    fuzz_need(system(command) == 0, "the certificate stays");
    fuzz_need(pthread_create(&thread, NULL, serve, NULL) == 0, "no thread");
    tls = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_CLIENT);
}

/* Returns NULL if the handshake failed, as it may on a busy machine. */
static SSL *try_to_connect(int silence_ms) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval patience = {silence_ms / 1000, silence_ms % 1000 * 1000};
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)vd_server_port(server)),
                                   .sin_addr = {htonl(INADDR_LOOPBACK)}};
    SSL *ssl = SSL_new(tls);
    fuzz_need(connect(fd, (const struct sockaddr *)&to, sizeof to) == 0, "the server is gone");
    SSL_set_fd(ssl, fd);
    if (SSL_connect(ssl) == 1) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        return ssl;
    }
    SSL_free(ssl);
    close(fd);
    return NULL;
}

static SSL *connect_to(int silence_ms) {
    SSL *ssl = NULL;
    for (int i = 0; !ssl && i < CONNECT_TRIES; i++)
        ssl = try_to_connect(silence_ms);
    fuzz_need(ssl != NULL, "the server speaks no TLS");
    return ssl;
}

/* Retries, since libFuzzer's alarm sometimes interrupts reads. */
static int read_some(SSL *ssl, char *into, int most) {
    int n;
    do {
        errno = 0;
        n = SSL_read(ssl, into, most);
    } while (n < 0 && errno == EINTR);
    return n;
}

/* Sends, and reads until the server closes or is silent. The first bytes, at most `most`, go to
 * `answer`. Returns their number. */
static size_t exchange(const void *data, size_t size, int silence_ms, char *answer, size_t most) {
    char rest[4096];
    SSL *ssl = connect_to(silence_ms);
    const int fd = SSL_get_fd(ssl);
    size_t got = 0;
    int n = SSL_write(ssl, data, (int)size);
    while (n > 0 && (n = read_some(ssl, rest, sizeof rest)) > 0)
        for (int i = 0; i < n && got < most; i++)
            answer[got++] = rest[i];
    SSL_free(ssl);
    close(fd);
    return got;
}

/* Is this an HTTP answer? evhttp itself refuses bad headers and unknown methods, and repeats the
 * request's version, even HTTP/-1.1. */
static bool is_http(const char *answer) {
    const bool of_evhttp = strstr(answer, " 400") || strstr(answer, " 501");
    return memcmp(answer, "HTTP/1.1", 8) == 0 || memcmp(answer, "HTTP/1.0", 8) == 0 ||
           (memcmp(answer, "HTTP/", 5) == 0 && of_evhttp);
}

static void expect_answer(void) {
    static const char plain[] = "GET / HTTP/1.1\r\nConnection: close\r\n\r\n";
    char answer[13] = "", why[80];
    exchange(plain, sizeof plain - 1, ANSWER_MS, answer, sizeof answer - 1);
    snprintf(why, sizeof why, "a plain request is answered by \"%s\"", answer);
    fuzz_need(strcmp(answer, "HTTP/1.1 200") == 0, why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static unsigned count;
    char answer[16] = "";
    if (!server)
        start();
    if (size == 0)
        return 0;
    const size_t most = sizeof answer - 1;
    const size_t got = exchange(data, size, SILENCE_MS, answer, most);
    fuzz_need(got == 0 || (got == most && is_http(answer)), "an answer in no HTTP");
    if (count++ % CHECK_EVERY == 0)
        expect_answer();
    return 0;
}
