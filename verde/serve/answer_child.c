/* Answers referees' questions about a finished job, in a child: the child has the job's files, and
 * asks the daemon for signatures. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/protocol/desk.h"
#include "verde/provide/child.h"
#include "verde/provide/daemon.h"
#include "verde/provide/frames.h"
#include "verde/serve/checking.h"
#include "verde/serve/child.h"
#include "verde/serve/patience.h"

/* REPLAYS: a replay holds a step's values, their trees, and a second run's state */
enum { ANSWER_ARGUMENTS = 7, REPLAYS = 4 };

/* Computing allowed for one referee's answers: at least REFEREE_S, else three times what a
 * tournament of the most games takes. */
enum { REFEREE_S = 3600, REFEREE_FACTOR = 3 };

typedef struct {
    char dir[1100]; /* the run's folder */
    vd_common common;
    vd_public_key public_key;
    vd_served served;
    vd_checking checking;
    vd_key *key;
    vd_provider provider;
    vd_desk *desk;
    pthread_mutex_t signing; /* held while any thread has a message signed */
    double game_s;           /* seconds that a game's answers take at most, as measured */
} answerer;

static vd_status sign_by_daemon(void *user, const void *message, size_t size,
                                uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err) {
    answerer *a = user;
    vd_buf reply = {0};
    pthread_mutex_lock(&a->signing);
    vd_status status = vd_frame_put(VD_CHILD_SIGNATURES, message, size, err);
    if (status == VD_OK)
        status = vd_frame_get(VD_CHILD_SIGNATURES, VD_SIGNATURE_SIZE, -1, &reply, err);
    pthread_mutex_unlock(&a->signing);
    if (status == VD_OK && reply.size == VD_SIGNATURE_SIZE)
        memcpy(signature, reply.data, VD_SIGNATURE_SIZE);
    else
        status = vd_fail(err, VD_ERR_LOCAL, "the daemon signs nothing like this");
    vd_buf_free(&reply);
    return status;
}

/* ---- loading ---- */

/* Writes the path of the only folder that the child writes into. */
static void again_path(const answerer *a, char path[1200]) {
    snprintf(path, 1200, "%.1000s/again", a->dir);
}

static vd_status load(answerer *a, vd_err *err) {
    vd_status status = vd_served_open(a->dir, NULL, &a->common, &a->served, err);
    if (status == VD_OK && !a->served.many)
        status = vd_served_replay(&a->served, NULL, err);
    if (status == VD_OK && !a->served.many)
        status = vd_served_prepare_again(&a->served, err);
    return status == VD_OK ? vd_key_elsewhere(&a->public_key, sign_by_daemon, a, &a->key, err)
                           : status;
}

static void tell(const char *line) {
    vd_say("verde provide: %s", line);
}

static vd_status open_desk(answerer *a, vd_err *err) {
    vd_served_provide(&a->served, &a->provider);
    a->provider.key = a->key;
    a->provider.tell = tell;
    return vd_desk_create(&a->provider, &a->desk, err);
}

/* ---- answering ---- */

/* Ends the child if a file does not fit. No answer is given before all files of the run were
 * hashed: a signature cannot be taken back. */
static void ended(void *user, bool fits) {
    answerer *a = user;
    if (!fits) {
        vd_report(&a->checking.err);
        kill(getpid(), SIGTERM);
    }
}

static vd_status ask(answerer *a, const vd_buf *request, vd_buf *answer, vd_working *working,
                     vd_err *err) {
    char why[128];
    if (atomic_load(&a->checking.done))
        return vd_ask_desk(a->desk, request->data, request->size, answer, working, err);
    *working = (vd_working){.working = true};
    vd_checking_print(&a->checking, why, sizeof why);
    return vd_fail(err, VD_ERR_IO, "%s", why);
}

static void put_us(vd_buf *out, double seconds) {
    vd_put_u64(out, (uint64_t)(seconds * 1e6));
}

static void put_charge(void *user, const vd_public_key *referee, double seconds) {
    vd_buf *account = user;
    vd_put(account, referee->b, VD_KEY_SIZE);
    put_us(account, seconds);
}

static vd_status give_account(answerer *a, vd_err *err) {
    const double most = REFEREE_FACTOR * VD_GAMES_MAX * a->game_s;
    vd_buf account = {0};
    put_us(&account, !atomic_load(&a->checking.done) ? 0 : most > REFEREE_S ? most : REFEREE_S);
    vd_desk_settle(a->desk, put_charge, &account);
    vd_status status = vd_buf_ok(&account)
                           ? vd_frame_put(VD_CHILD_QUESTIONS, account.data, account.size, err)
                           : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_buf_free(&account);
    return status;
}

static vd_status give_reply(answerer *a, const vd_buf *request, vd_err *err) {
    vd_working working = {.working = false};
    vd_buf answer = {0}, reply = {0};
    vd_err why = {0};
    const vd_status status = ask(a, request, &answer, &working, &why);
    vd_put_u8(&reply, (uint8_t)status);
    vd_put_u8(&reply, working.working);
    vd_put_u64(&reply, (uint64_t)working.done);
    vd_put_u64(&reply, (uint64_t)working.of);
    if (status == VD_OK)
        vd_put(&reply, answer.data, answer.size);
    else
        vd_put(&reply, why.text, strlen(why.text));
    vd_status sent = vd_buf_ok(&reply)
                         ? vd_frame_put(VD_CHILD_QUESTIONS, reply.data, reply.size, err)
                         : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_buf_free(&reply);
    vd_buf_free(&answer);
    return sent;
}

/* Answers requests until the daemon has ended. */
static vd_status answer_all(answerer *a, vd_err *err) {
    vd_buf request = {0};
    vd_status status = VD_OK;
    while (status == VD_OK) {
        request.size = 0;
        if (vd_frame_get(VD_CHILD_QUESTIONS, VD_FRAME_MAX, -1, &request, err) != VD_OK)
            break;
        status = request.size ? give_reply(a, &request, err) : give_account(a, err);
    }
    vd_buf_free(&request);
    return status;
}

static vd_status measure(void *user, vd_err *err) {
    answerer *a = user;
    (void)err;
    vd_served_measure(&a->served, &a->provider.pace, &a->game_s);
    return VD_OK;
}

static vd_status serve(answerer *a, vd_err *err) {
    a->checking.served = &a->served;
    a->checking.fits = measure;
    a->checking.ended = ended;
    a->checking.user = a;
    vd_status status = load(a, err);
    if (status == VD_OK)
        status = open_desk(a, err);
    if (status == VD_OK)
        status = vd_checking_start(&a->checking, err);
    if (status != VD_OK)
        return status;
    status = vd_frame_put(VD_CHILD_QUESTIONS, "", 0, err); /* tells the daemon that it is ready */
    if (status == VD_OK)
        status = answer_all(a, err);
    vd_status checked = vd_checking_end(&a->checking, err);
    return status == VD_OK ? checked : status;
}

static void unload(answerer *a) {
    vd_desk_destroy(a->desk);
    vd_served_close(&a->served);
    vd_key_destroy(a->key);
}

static vd_status confine(const answerer *a, char **argv, vd_err *err) {
    char again[1200];
    again_path(a, again);
    const char *const reads[] = {argv[4], NULL}, *const writes[] = {again, NULL};
    const vd_child_limits limits = {.fds = 2,
                                    .parent = strtol(argv[3], NULL, 10),
                                    .memory = REPLAYS * strtoll(argv[0], NULL, 10) +
                                              VD_REPLAY_WINDOW_BYTES + VD_CHILD_SPARE,
                                    .file_bytes = strtoll(argv[6], NULL, 10),
                                    .places = {reads, writes, vd_child_has_gpu(&a->common)}};
    vd_status status = vd_make_dir(again, err);
    return status == VD_OK ? vd_child_confine(&limits, err) : status;
}

vd_exit vd_provide_answer_child(int argc, char **argv) {
    static answerer a;
    vd_err err = {0};
    if (argc != ANSWER_ARGUMENTS || !vd_unhex(argv[5], a.public_key.b, VD_KEY_SIZE) ||
        pthread_mutex_init(&a.signing, NULL) != 0)
        return VD_EXIT_USAGE;
    a.common.threads = atoi(argv[1]);
    a.common.backend = strcmp(argv[2], "-") == 0 ? NULL : argv[2];
    snprintf(a.dir, sizeof a.dir, "%.900s/" VD_JOB_RUN, argv[4]);
    vd_status status = confine(&a, argv, &err);
    if (status == VD_OK)
        status = serve(&a, &err);
    unload(&a);
    pthread_mutex_destroy(&a.signing);
    return status == VD_OK ? VD_EXIT_OK : vd_report(&err);
}
