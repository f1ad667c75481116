/* Downloads from honest providers, with or without others beside them, and from faulty ones
 * alone. */
#include <fcntl.h>

#include "tests/unit/delivery_run.h"
#include "tests/unit/net_peers.h"
#include "verde/delivery/download.h"

typedef enum {
    HONEST,
    MORE_HASHES,
    FEWER_HASHES,
    WRONG_HASH,
    WRONG_BYTE,
    LONG_BLOCK,
    SHORT_BLOCK,
    NO_BLOCK,
    OTHER_BLOCK,
    OTHER_ROOT,
    NO_PROOF,
    CUT_PROOF,
    UNKNOWN,
    STRANGE,   /* answers each request with another kind of failure */
    OTHERWISE, /* answers every request with status 203 */
    HIDES,     /* never ends its answer to a list of hashes */
    HANGS,     /* never ends its answer to a block */
    FAILS,     /* answers every request with status 503 */
    BEHAVIOURS
} behaviour;

typedef struct {
    identity self;
    vd_server *server;
    pthread_t thread;
    vd_endpoint at;
    behaviour how;
    atomic_int blocks, lists;
    atomic_bool released;
} delivering;

static delivery_run run;
static delivering side[3];
static vd_download *download;
static vd_state_proof proof;
static vd_buf text, lines;
static char root[2 * VD_HASH_SIZE + 1], file[100];
static vd_target target[RUN_LEAVES];
static vd_download_progress progress;

static bool ends_with(const char *path, const char *end) {
    const size_t n = strlen(path), m = strlen(end);
    return n >= m && strcmp(path + n - m, end) == 0;
}

static void spoil_list(behaviour how, vd_buf *body) {
    if (how == MORE_HASHES)
        vd_put(body, (uint8_t[VD_HASH_SIZE]){1}, VD_HASH_SIZE);
    else if (how == FEWER_HASHES)
        body->size -= VD_HASH_SIZE;
    else if (how == WRONG_HASH)
        body->data[body->size - 1] ^= 1;
}

static void hang(const delivering *s) {
    while (!atomic_load(&s->released))
        sleep_ms(5);
}

static void spoil_block(delivering *s, vd_buf *body) {
    if (s->how == WRONG_BYTE)
        body->data[body->size / 2] ^= 1;
    else if (s->how == LONG_BLOCK)
        vd_put_u8(body, 0);
    else if (s->how == SHORT_BLOCK)
        body->size--;
    else if (s->how == NO_BLOCK)
        body->size = 0;
    if (s->how == HANGS)
        hang(s);
}

static void spoil_proof(behaviour how, vd_buf *body) {
    if (how == NO_PROOF || how == CUT_PROOF)
        body->size = how == CUT_PROOF ? body->size / 2 : 0;
    if (how == OTHER_ROOT) { /* changes the first hexadecimal digit of the root that is named */
        uint8_t *at = memmem(body->data, body->size, "\"run_root\": \"", 13);
        cr_assert(at);
        at[13] = at[13] == '0' ? '1' : '0';
    }
}

static vd_screened screen_all(void *user, const vd_request *request, uint8_t asker[VD_ASKER_SIZE],
                              vd_response *response) {
    (void)user, (void)request, (void)asker, (void)response;
    return VD_READS;
}

static void deliver(void *user, const vd_request *request, vd_response *response) {
    delivering *s = user;
    char rest[200];
    snprintf(rest, sizeof rest, "%s", request->path + strlen("/v1/jobs/") + strlen(root));
    if (s->how == OTHER_BLOCK && ends_with(rest, "/blocks/0"))
        strcpy(rest, "/state/0/blocks/1");
    vd_offer_answer(run.offer, rest, response);
    if (s->how == UNKNOWN || s->how == FAILS)
        response->status = s->how == UNKNOWN ? 404 : 503;
    else if (strcmp(rest, "/state") == 0)
        spoil_proof(s->how, &response->body);
    else if (ends_with(rest, "/hashes") && atomic_fetch_add(&s->lists, 1) >= 0)
        spoil_list(s->how, &response->body);
    else if (strstr(rest, "/blocks/") && atomic_fetch_add(&s->blocks, 1) >= 0)
        spoil_block(s, &response->body);
    if (s->how == HIDES && ends_with(rest, "/hashes"))
        hang(s);
    if (s->how == OTHERWISE)
        response->status = 203;
    if (s->how == STRANGE)
        response->status = 500 + atomic_load(&s->blocks) % 4;
}

static void no_handler(void *user, const vd_request *request, vd_response *response) {
    (void)user, (void)request, (void)response;
    cr_assert_fail("nothing waits for the first handler");
}

static void *serve_main(void *user) {
    cr_assert(vd_server_run(((delivering *)user)->server, NULL) == VD_OK);
    return NULL;
}

static void start_side(delivering *s, behaviour how) {
    vd_err err = {0};
    *s = (delivering){.self = make_identity(), .how = how};
    const vd_server_options options = {.listen = "127.0.0.1:0",
                                       .cert_path = s->self.cert,
                                       .key_path = s->self.key_file,
                                       .screen = screen_all,
                                       .read = deliver};
    cr_assert(vd_server_create(&options, no_handler, s, &s->server, &err) == VD_OK, "%s", err.text);
    s->at = endpoint_at(vd_server_port(s->server), s->self.hex);
    cr_assert(pthread_create(&s->thread, NULL, serve_main, s) == 0);
}

static void stop_side(delivering *s) {
    if (!s->server)
        return;
    atomic_store(&s->released, true);
    vd_server_stop(s->server);
    pthread_join(s->thread, NULL);
    vd_server_destroy(s->server);
    remove_identity(&s->self);
    s->server = NULL;
}

static void open_run(void) {
    open_delivery_run(&run);
    vd_hex(vd_offer_run_root(run.offer)->b, VD_HASH_SIZE, root);
    snprintf(file, sizeof file, "%s/download", run.dir);
}

static void close_run(void) {
    vd_download_destroy(download);
    vd_state_proof_free(&proof);
    vd_buf_free(&text);
    vd_buf_free(&lines);
    for (int i = 0; i < 3; i++)
        stop_side(&side[i]);
    close_delivery_run(&run);
}

TestSuite(download, .init = open_run, .fini = close_run);

static void tell(void *user, const char *line) {
    (void)user;
    vd_printf(&lines, "%s\n", line);
    cr_log_info("%s", line);
}

static void see(void *user, const vd_download_progress *p) {
    (void)user;
    cr_assert(p->done >= progress.done && p->done <= p->total);
    progress = *p;
}

/* Starts a provider for each behaviour, and a download from them all. */
static vd_status begin(uint32_t count, const behaviour *how, vd_err *err) {
    static vd_endpoint at[3];
    for (uint32_t i = 0; i < count; i++) {
        start_side(&side[i], how[i]);
        at[i] = side[i].at;
    }
    const vd_download_options options = {.provider = at,
                                         .provider_count = count,
                                         .job = root,
                                         .patience_s = 1,
                                         .tell = tell,
                                         .progress = see};
    cr_assert(vd_download_create(&options, &download, err) == VD_OK, "%s", err->text);
    return vd_download_proof(download, vd_offer_run_root(run.offer), &text, &proof, err);
}

/* Downloads all tensors into one file, with a gap before each. */
static vd_status fill(vd_err *err) {
    uint64_t at = 0;
    const int fd = open(file, O_RDWR | O_CREAT, 0600);
    const off_t had = lseek(fd, 0, SEEK_END);
    cr_assert(fd >= 0 && had >= 0);
    progress = (vd_download_progress){0};
    for (uint32_t i = 0; i < RUN_LEAVES; i++) {
        at += 100;
        target[i] = (vd_target){i, fd, file, at, (uint64_t)had};
        at += vd_shape_bytes(&run.program.leaf[i].shape);
    }
    vd_status status = vd_download_tensors(download, &proof, target, RUN_LEAVES, err);
    close(fd);
    return status;
}

static void expect_whole(void) {
    char path[1024];
    vd_buf state = {0}, got = {0};
    vd_store_state_path(path, run.dir, &run.log.state[run.log.count - 1]);
    cr_assert(vd_read_file(path, 1 << 24, &state, NULL) == VD_OK);
    cr_assert(vd_read_file(file, 1 << 24, &got, NULL) == VD_OK);
    cr_assert(got.size == state.size + 100 * RUN_LEAVES);
    const uint8_t *from = state.data, *to = got.data;
    for (int i = 0; i < RUN_LEAVES; i++) {
        const size_t size = vd_shape_bytes(&run.program.leaf[i].shape);
        to += 100;
        cr_expect(memcmp(from, to, size) == 0, "tensor %d", i);
        from += size;
        to += size;
    }
    vd_buf_free(&state);
    vd_buf_free(&got);
    cr_expect(progress.done == progress.total && progress.total == 600001 * 4 + (1 << 20) + 28);
}

Test(download, from_one_provider) {
    vd_err err = {0};
    cr_assert(begin(1, (behaviour[]){HONEST}, &err) == VD_OK, "%s", err.text);
    cr_assert(fill(&err) == VD_OK, "%s", err.text);
    expect_whole();
    cr_expect(vd_download_received(download, 0) == progress.total && progress.found == 0);
    cr_expect(lines.size == 0);
}

Test(download, from_three_providers_at_once) {
    vd_err err = {0};
    cr_assert(begin(3, (behaviour[]){HONEST, HONEST, HONEST}, &err) == VD_OK, "%s", err.text);
    cr_assert(fill(&err) == VD_OK, "%s", err.text);
    expect_whole();
    uint64_t received = 0;
    for (uint32_t i = 0; i < 3; i++)
        received += vd_download_received(download, i);
    cr_expect(received == progress.total && progress.found == 0);
}

/* Whatever one provider does, the other one's bytes arrive, and the faulty provider is named. */
static void beside(behaviour how, const char *words) {
    vd_err err = {0};
    cr_assert(begin(2, (behaviour[]){how, HONEST}, &err) == VD_OK, "%s", err.text);
    cr_assert(fill(&err) == VD_OK, "%s", err.text);
    expect_whole();
    const char *why = vd_download_dropped(download, 0);
    cr_expect(words == NULL || (why && strstr(why, words)), "%d: %s", (int)how, why ? why : "-");
    cr_expect(vd_download_dropped(download, 1) == NULL);
    vd_put_u8(&lines, 0);
    cr_expect(words == NULL || strstr((char *)lines.data, "provider 1 (https://127.0.0.1:"));
}

/* `words` must appear in the reason for dropping the provider. NULL: it may be too slow to be
 * dropped. */
#define BESIDE(name, how, words)                                                                   \
    Test(download, beside_one_that_##name) {                                                       \
        beside(how, words);                                                                        \
    }
BESIDE(proves_another_root, OTHER_ROOT, "its proof: ")
BESIDE(has_no_proof, NO_PROOF, "its proof: ")
BESIDE(cuts_its_proof, CUT_PROOF, "its proof: ")
BESIDE(has_no_such_run, UNKNOWN, "HTTP status 404")
BESIDE(fails, FAILS, NULL)
BESIDE(answers_strangely, STRANGE, NULL)

/* A faulty provider alone gives nothing: the error says what it sent, and none of its bytes are
 * taken for the state's. */
static void alone(behaviour how, vd_status status, const char *words) {
    vd_err err = {0};
    vd_status got = begin(1, &how, &err);
    if (got == VD_OK)
        got = fill(&err);
    cr_expect(got == status && strstr(err.text, words), "%d: %d, %s", (int)how, got, err.text);
    cr_expect(vd_download_dropped(download, 0) != NULL);
}

#define ALONE(name, how, status, words)                                                            \
    Test(download, from_one_alone_that_##name) {                                                   \
        alone(how, status, words);                                                                 \
    }
ALONE(sends_more_hashes, MORE_HASHES, VD_ERR_PEER, "larger than")
ALONE(sends_fewer_hashes, FEWER_HASHES, VD_ERR_PEER, "the hashes of tensor large: 64 bytes")
ALONE(sends_a_wrong_hash, WRONG_HASH, VD_ERR_PEER, "do not give the commitment")
ALONE(sends_a_wrong_byte, WRONG_BYTE, VD_ERR_PEER, "do not give the")
ALONE(sends_too_much, LONG_BLOCK, VD_ERR_PEER, "larger than")
ALONE(sends_too_little, SHORT_BLOCK, VD_ERR_PEER, "bytes, expected")
ALONE(sends_nothing, NO_BLOCK, VD_ERR_PEER, "0 bytes, expected")
ALONE(sends_other_blocks, OTHER_BLOCK, VD_ERR_PEER, "no provider gives the rest")
ALONE(has_no_such_run, UNKNOWN, VD_ERR_PEER, "no provider gives a proof")
ALONE(answers_otherwise, OTHERWISE, VD_ERR_PEER, "HTTP status 203")
ALONE(fails, FAILS, VD_ERR_IO, "HTTP status 503")

/* Pieces of a faulty provider are asked of another one, and its correct ones are kept. */
Test(download, wrong_bytes_from_two_of_three) {
    vd_err err = {0};
    cr_assert(begin(3, (behaviour[]){WRONG_BYTE, HONEST, WRONG_HASH}, &err) == VD_OK, "%s",
              err.text);
    cr_assert(fill(&err) == VD_OK, "%s", err.text);
    expect_whole();
    for (int i = 0; i < 3; i++) {
        const char *why = vd_download_dropped(download, (uint32_t)i);
        cr_expect(!why == (i == 1) || atomic_load(&side[i].blocks) == 0 ||
                      (i == 2 && atomic_load(&side[i].lists) == 0),
                  "%d: %s", i, why ? why : "-");
    }
}

Test(download, one_that_hangs_holds_up_nobody) {
    vd_err err = {0};
    cr_assert(begin(2, (behaviour[]){HANGS, HONEST}, &err) == VD_OK, "%s", err.text);
    cr_assert(fill(&err) == VD_OK, "%s", err.text);
    expect_whole();
    cr_expect(lines.size == 0, "its deadline has passed");
}

Test(download, one_that_hides_its_hashes_holds_up_nobody) {
    vd_err err = {0};
    cr_assert(begin(2, (behaviour[]){HIDES, HONEST}, &err) == VD_OK, "%s", err.text);
    cr_assert(fill(&err) == VD_OK, "%s", err.text);
    expect_whole();
    cr_expect(lines.size == 0, "its deadline has passed");
}

static void flip_in_file(long at) {
    FILE *f = fopen(file, "r+");
    cr_assert(f && fseek(f, at, SEEK_SET) == 0);
    const int byte = fgetc(f);
    cr_assert(fseek(f, at, SEEK_SET) == 0 && fputc(byte ^ 4, f) >= 0);
    fclose(f);
}

Test(download, what_is_there_is_checked_and_not_asked_for_again) {
    vd_err err = {0};
    cr_assert(begin(1, (behaviour[]){HONEST}, &err) == VD_OK && fill(&err) == VD_OK);
    atomic_store(&side[0].blocks, 0);
    cr_assert(fill(&err) == VD_OK, "%s", err.text);
    expect_whole();
    cr_expect(progress.found == progress.total && atomic_load(&side[0].blocks) == 0);
    flip_in_file(100 + (1 << 20) + 5); /* in the second block */
    cr_assert(truncate(file, 200 + 600001 * 4 + 30) ==
              0); /* cuts the tensor of exactly one block, and removes the small one */
    cr_assert(fill(&err) == VD_OK, "%s", err.text);
    expect_whole();
    cr_expect(atomic_load(&side[0].blocks) == 3, "%d", atomic_load(&side[0].blocks));
    cr_expect(progress.total - progress.found == (2 << 20) + 28);
}

Test(download, a_disk_that_cannot_be_written_ends_it) {
    vd_err err = {0};
    cr_assert(begin(1, (behaviour[]){HONEST}, &err) == VD_OK);
    cr_assert(fill(&err) == VD_OK);
    const int fd = open(file, O_RDONLY);
    for (int i = 0; i < RUN_LEAVES; i++) {
        target[i].fd = fd;
        target[i].had = 0;
    }
    progress = (vd_download_progress){0};
    cr_expect(vd_download_tensors(download, &proof, target, RUN_LEAVES, &err) == VD_ERR_LOCAL);
    cr_expect(strstr(err.text, "cannot write"), "%s", err.text);
    close(fd);
}

Test(download, bad_options_are_said) {
    vd_err err = {0};
    const vd_endpoint at = {0};
    const vd_download_options none = {.provider = &at, .job = root};
    const vd_download_options many = {
        .provider = &at, .provider_count = VD_DOWNLOAD_PROVIDERS_MAX + 1, .job = root};
    cr_expect(vd_download_create(&none, &download, &err) == VD_ERR_USAGE && !download);
    cr_expect(vd_download_create(&many, &download, &err) == VD_ERR_USAGE && !download);
}
