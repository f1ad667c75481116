/* What a child that answers questions may have signed, and how the daemon asks it. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verde/protocol/message.h"
#include "verde/protocol/signed_request.h"
#include "verde/provide/answers.h"
#include "verde/provide/frames.h"

TestSuite(provide_answers, .timeout = 300);

static vd_status note(void *user, const void *message, size_t size,
                      uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err) {
    (void)err;
    *(bool *)user = vd_may_sign(message, size);
    memset(signature, 7, VD_SIGNATURE_SIZE);
    return VD_OK;
}

/* Returns whether the daemon would sign a note of this type for a child. */
static bool signs(const char *type, const char *payload) {
    const vd_public_key public = {{1}};
    bool may = false;
    vd_key *key;
    vd_buf out = {0};
    cr_assert(vd_key_elsewhere(&public, note, &may, &key, NULL) == VD_OK);
    cr_assert(vd_note_sign(key, type, payload, strlen(payload), &out, NULL) == VD_OK);
    vd_buf_free(&out);
    vd_key_destroy(key);
    return may;
}

Test(provide_answers, answers_and_salts_are_signed_and_nothing_else) {
    char salt[13 + 32] = "verde/salt/1";
    cr_expect(signs(VD_TYPE_ANSWER, "{}"));
    cr_expect(!signs(VD_TYPE_ASSIGNMENT, "{}") && !signs(VD_TYPE_QUESTION, "{}"));
    cr_expect(!signs(VD_TYPE_REQUEST, "{}") && !signs("application/vnd.in-toto+json", "{}"));
    cr_expect(!signs(VD_TYPE_ANSWER "x", "{}"));
    cr_expect(vd_may_sign(salt, sizeof salt));
    cr_expect(!vd_may_sign(salt, sizeof salt - 1) && !vd_may_sign("", 0));
    salt[12] = 1; /* another tag that begins with this one */
    cr_expect(!vd_may_sign(salt, sizeof salt));
}

typedef struct {
    int end[2];
} pair;

static pair make_pair(void) {
    pair p;
    cr_assert(socketpair(AF_UNIX, SOCK_STREAM, 0, p.end) == 0);
    return p;
}

static void close_pair(pair *p) {
    close(p->end[0]);
    close(p->end[1]);
}

Test(provide_answers, frames_come_whole) {
    pair p = make_pair();
    vd_buf out = {0};
    cr_assert(vd_frame_put(p.end[0], "hello", 5, NULL) == VD_OK);
    cr_assert(vd_frame_put(p.end[0], NULL, 0, NULL) == VD_OK);
    cr_expect(vd_frame_get(p.end[1], 5, 1000, &out, NULL) == VD_OK);
    cr_expect(out.size == 5 && memcmp(out.data, "hello", 5) == 0);
    cr_expect(vd_frame_get(p.end[1], 5, -1, &out, NULL) == VD_OK && out.size == 5);
    vd_buf_free(&out);
    close_pair(&p);
}

Test(provide_answers, frames_that_do_not_come_or_are_too_large) {
    pair p = make_pair();
    vd_buf out = {0};
    vd_put(&out, "kept", 4);
    cr_expect(vd_frame_get(p.end[1], 5, 20, &out, NULL) == VD_ERR_TIMEOUT);
    cr_assert(vd_frame_put(p.end[0], "longer", 6, NULL) == VD_OK);
    cr_expect(vd_frame_get(p.end[1], 5, 20, &out, NULL) == VD_ERR_IO);
    close_pair(&p);
    p = make_pair();
    cr_assert(send(p.end[0], "\x05\0\0\0abc", 7, 0) == 7);
    shutdown(p.end[0], SHUT_RDWR);
    cr_expect(vd_frame_get(p.end[1], 5, 1000, &out, NULL) == VD_ERR_IO);
    cr_expect(out.size == 4 && vd_frame_put(p.end[1], "x", 1, NULL) == VD_ERR_IO);
    vd_buf_free(&out);
    close_pair(&p);
}

Test(provide_answers, a_child_that_loads_for_long_is_waited_for) {
    int ends[2];
    cr_assert(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    const double start = vd_seconds();
    vd_answerer a = {.questions = ends[0], .started = start};
    for (int i = 0; i < 10; i++) /* all ten together wait for one second */
        cr_expect(vd_answerer_wait(&a, NULL) == VD_ERR_TIMEOUT && !a.ready && a.used > 0);
    cr_expect(vd_seconds() - start < 3);
    a.started = start - 4000;
    cr_expect(vd_answerer_wait(&a, NULL) == VD_ERR_LOCAL); /* the child hangs */
    cr_assert(vd_frame_put(ends[1], "", 0, NULL) == VD_OK);
    cr_expect(vd_answerer_wait(&a, NULL) == VD_OK && a.ready);
    cr_expect(vd_answerer_wait(&a, NULL) == VD_OK);
    close(ends[1]);
    a.ready = false;
    cr_expect(vd_answerer_wait(&a, NULL) == VD_ERR_IO); /* the child has gone */
    close(ends[0]);
}
