/* This file passes referees' questions to children with the jobs' files, and signs for them. */
#include "verde/provide/answers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verde/protocol/provider.h"
#include "verde/protocol/signed_request.h"
#include "verde/provide/child.h"
#include "verde/provide/frames.h"
#include "verde/provide/internal.h"

enum {
    READY_MS = 1000,  /* wait for a child to load; then the referee is told that it loads */
    LOADING_S = 3600, /* a child that takes longer to load hangs, and is ended */
    REPLY_MS = 20000, /* wait for a child's reply, which never waits for computing */
    KEPT_S = 5,       /* a child asked within this time does not give way to another */
    SPARED_S = 300,   /* the same if its client has fewer than the one that waits */
    /* A child that was not asked for this long is ended. It is not ended earlier: its referee may
     * be waiting for a slow rival, and the child's hashes and steps would be lost. */
    NOTHING_ASKED_S = 3600,
};

/* ---- signatures ---- */

bool vd_may_sign(const void *message, size_t size) {
    static const char salt[] = "verde/salt/1"; /* includes its NUL */
    char head[64];
    const int length =
        snprintf(head, sizeof head, "DSSEv1 %zu " VD_TYPE_ANSWER " ", strlen(VD_TYPE_ANSWER));
    if (size == sizeof salt + VD_HASH_SIZE && memcmp(message, salt, sizeof salt) == 0)
        return true;
    return length > 0 && size > (size_t)length && memcmp(message, head, (size_t)length) == 0;
}

/* Signs what the child may have signed, until the child ends. */
static void *sign_for(void *user) {
    const vd_answerer *a = user;
    vd_buf message = {0};
    vd_err err = {0};
    bool goes_on = true;
    while (goes_on && vd_frame_get(a->signatures, VD_FRAME_MAX, -1, &message, &err) == VD_OK) {
        uint8_t signature[VD_SIGNATURE_SIZE];
        const bool is_signed =
            vd_may_sign(message.data, message.size) &&
            vd_sign(a->key, message.data, message.size, signature, &err) == VD_OK;
        goes_on =
            vd_frame_put(a->signatures, signature, is_signed ? sizeof signature : 0, &err) == VD_OK;
        message.size = 0;
    }
    vd_buf_free(&message);
    return NULL;
}

/* ---- children ---- */

static void end_child(vd_answerer *a) {
    if (!a->job[0])
        return;
    kill(a->pid, SIGKILL);
    waitpid(a->pid, NULL, 0);
    shutdown(a->signatures, SHUT_RDWR);
    pthread_join(a->signer, NULL);
    close(a->signatures);
    close(a->questions);
    *a = (vd_answerer){.pid = 0};
}

void vd_answers_forget(vd_answers *answers, const char *job) {
    for (int i = 0; i < VD_ANSWERERS_MAX; i++)
        if (strcmp(answers->place[i].job, job) == 0)
            end_child(&answers->place[i]);
}

void vd_answers_close(vd_answers *answers) {
    for (int i = 0; i < VD_ANSWERERS_MAX; i++)
        end_child(&answers->place[i]);
}

/* Ends a child, after charging for what it has computed. */
static void charge_and_end(vd_daemon *daemon, vd_answerer *a) {
    vd_err err = {0};
    if (a->job[0] && a->ready && vd_answerer_charge(daemon, a, &err) != VD_OK)
        vd_trouble_tell(&daemon->trouble, &daemon->options, err.text);
    end_child(a);
}

static vd_status spawn(const vd_daemon *daemon, vd_answerer *a, int64_t disk, const int *fds,
                       vd_err *err) {
    char *argv[VD_CHILD_ARGS_MAX], dir[1200], log[1200], parent[32], bytes[32];
    char key[VD_ID_SIZE];
    int count = 0;
    vd_job_path(daemon, a->job, "", dir);
    vd_job_path(daemon, a->job, VD_JOB_ANSWERS, log);
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    snprintf(key, sizeof key, "%s", daemon->key_hex);
    snprintf(bytes, sizeof bytes, "%lld", (long long)vd_job_disk_most(disk));
    for (char *const *at = daemon->options.answer_argv; *at && count < VD_CHILD_ARGS_MAX - 5; at++)
        argv[count++] = *at;
    argv[count++] = parent;
    argv[count++] = dir;
    argv[count++] = key;
    argv[count++] = bytes;
    argv[count] = NULL;
    return vd_child_start(argv, log, fds, 2, &a->pid, err);
}

static vd_status start_signer(vd_answerer *a, vd_err *err) {
    sigset_t all, before;
    sigfillset(&all); /* signals are handled by the main thread */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&a->signer, NULL, sign_for, a);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error)
        return VD_OK;
    kill(a->pid, SIGKILL);
    waitpid(a->pid, NULL, 0);
    return vd_fail(err, VD_ERR_LOCAL, "could not start a thread: %s", strerror(error));
}

static vd_status start_child(const vd_daemon *daemon, const vd_job_record *job, vd_answerer *a,
                             vd_err *err) {
    int questions[2] = {-1, -1}, signatures[2] = {-1, -1};
    vd_status status = VD_OK;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, questions) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, signatures) != 0)
        status = vd_fail(err, VD_ERR_LOCAL, "could not make sockets: %s", strerror(errno));
    snprintf(a->job, VD_ID_SIZE, "%s", job->id);
    snprintf(a->client, VD_ID_SIZE, "%s", job->client);
    a->questions = questions[0];
    a->signatures = signatures[0];
    a->key = daemon->options.key;
    a->started = a->charged = vd_seconds();
    if (status == VD_OK)
        status = spawn(daemon, a, job->disk, (int[]){questions[1], signatures[1]}, err);
    if (status == VD_OK)
        status = start_signer(a, err);
    for (int i = 0; i < 2; i++)
        if (status != VD_OK || i == 1) {
            if (questions[i] >= 0)
                close(questions[i]);
            if (signatures[i] >= 0)
                close(signatures[i]);
        }
    if (status != VD_OK)
        *a = (vd_answerer){.pid = 0};
    return status;
}

static int places_of(const vd_answers *answers, const char *client) {
    int count = 0;
    for (int i = 0; i < VD_ANSWERERS_MAX; i++)
        count += answers->place[i].job[0] && strcmp(answers->place[i].client, client) == 0;
    return count;
}

/* Returns a free place, or else the child asked about longest ago among those whose clients have at
 * least `most` places. */
static vd_answerer *oldest_of(vd_answers *answers, int most) {
    vd_answerer *oldest = NULL;
    for (int i = 0; i < VD_ANSWERERS_MAX; i++) {
        vd_answerer *a = &answers->place[i];
        if (!a->job[0])
            return a;
        if ((!oldest || a->used < oldest->used) && places_of(answers, a->client) >= most)
            oldest = a;
    }
    return oldest;
}

static bool is_idle(const vd_answerer *a, double seconds) {
    return !a->job[0] || vd_seconds() - a->used >= seconds;
}

/* Finds a place for another job of a client. A client that has two more places gives one up, so
 * that nobody can keep others from answers; one that has as many, if not asked for KEPT_S; one that
 * has fewer, if not asked for SPARED_S, since a child's hashes and steps are lost with it. */
static vd_answerer *find_room(vd_answers *answers, const char *client) {
    const int own = places_of(answers, client);
    vd_answerer *of_equals = oldest_of(answers, own > 1 ? own : 1);
    if (of_equals && is_idle(of_equals, KEPT_S))
        return of_equals;
    vd_answerer *of_richer = oldest_of(answers, own + 2);
    if (of_richer)
        return of_richer;
    vd_answerer *of_anybody = oldest_of(answers, 0);
    return is_idle(of_anybody, SPARED_S) ? of_anybody : NULL;
}

/* Returns the place of this job's child, or one to start it in; NULL: none is to be had now. */
static vd_answerer *find_place(vd_daemon *daemon, const vd_job_record *job) {
    vd_answers *answers = &daemon->answers;
    for (int i = 0; i < VD_ANSWERERS_MAX; i++) {
        vd_answerer *a = &answers->place[i];
        if (strcmp(a->job, job->id) == 0)
            return a;
        if (a->job[0] && is_idle(a, NOTHING_ASKED_S))
            charge_and_end(daemon, a);
    }
    vd_answerer *place = find_room(answers, job->client);
    if (place)
        charge_and_end(daemon, place);
    return place;
}

/* ---- questions ---- */

static bool find_job(vd_daemon *daemon, const vd_hash *program_hash, vd_asked *out,
                     vd_response *response) {
    char program[VD_ID_SIZE];
    vd_err err = {0};
    bool found = false;
    vd_hex(program_hash->b, VD_HASH_SIZE, program);
    if (vd_ledger_find_run(daemon->ledger, program, out->referee_hex, &out->job, &found, &err) !=
        VD_OK)
        vd_reply_trouble(daemon, response, &err);
    else if (!found)
        vd_reply_error(response, 400,
                       "no finished job here is program %.8s... and names the referee %.8s...",
                       program, out->referee_hex);
    return found;
}

bool vd_find_asked(vd_daemon *daemon, const vd_request *request, vd_asked *out,
                   vd_response *response) {
    vd_assignment assignment;
    vd_err err = {0};
    vd_status status = vd_request_assignment(request->body, request->body_size, &assignment, &err);
    if (status != VD_OK) {
        vd_reply_error(response, status == VD_ERR_PEER ? 400 : 503, "%s", err.text);
        return false;
    }
    out->referee = assignment.referee;
    vd_hex(out->referee.b, VD_KEY_SIZE, out->referee_hex);
    if (!find_job(daemon, &assignment.program, out, response))
        return false;
    status = vd_ask_judge(vd_request_header(request, VD_REQUEST_HEADER), &daemon->key,
                          &out->referee, request->body, request->body_size, &out->count, &err);
    if (status != VD_OK)
        vd_reply_error(response, status == VD_ERR_PEER ? 401 : 503, "%s", err.text);
    return status == VD_OK;
}

/* Answers `working` (PROTOCOL.md section 8.4). */
static void say_working(vd_response *response, bool working, int64_t done, int64_t of,
                        const char *why) {
    json_t *out = json_pack("{ss sb}", "error", why, "working", working);
    if (of > 0) {
        json_object_set_new(out, "done", json_integer(done));
        json_object_set_new(out, "of", json_integer(of));
    }
    vd_reply(response, 503, out);
}

static void give_reply(vd_daemon *daemon, const vd_buf *reply, vd_response *response) {
    vd_cursor c = vd_cursor_of(reply->data, reply->size);
    const vd_status status = (vd_status)vd_get_u8(&c);
    const bool working = vd_get_u8(&c) != 0;
    const int64_t done = (int64_t)vd_get_u64(&c), of = (int64_t)vd_get_u64(&c);
    const size_t size = reply->size - VD_REPLY_HEAD;
    vd_err err = {0};
    if (status == VD_OK) {
        vd_put(&response->body, reply->data + VD_REPLY_HEAD, size);
        response->content_type = "application/json";
        return;
    }
    snprintf(err.text, sizeof err.text, "%.*s", (int)(size < 400 ? size : 400),
             (const char *)reply->data + VD_REPLY_HEAD);
    if (status == VD_ERR_PEER)
        vd_reply_error(response, 400, "%s", err.text);
    else if (status == VD_ERR_IO)
        say_working(response, working, done, of, err.text);
    else
        vd_reply_trouble(daemon, response, &err);
}

vd_status vd_answerer_wait(vd_answerer *a, vd_err *err) {
    vd_buf nothing = {0};
    if (a->ready)
        return VD_OK;
    a->used = vd_seconds();
    const double age = a->used - a->started; /* all others wait meanwhile */
    const int ms = age < READY_MS / 1e3 ? READY_MS - (int)(age * 1e3) : 0;
    vd_status status = vd_frame_get(a->questions, 0, ms, &nothing, err);
    vd_buf_free(&nothing);
    a->ready = status == VD_OK;
    if (status == VD_ERR_TIMEOUT && age > LOADING_S)
        return vd_fail(err, VD_ERR_LOCAL, "a child has not loaded job %.8s in %d s", a->job,
                       LOADING_S);
    return status;
}

static vd_status ask(vd_answerer *a, const vd_request *request, vd_buf *reply, vd_err *err) {
    a->used = vd_seconds();
    vd_status status = vd_frame_put(a->questions, request->body, request->body_size, err);
    if (status == VD_OK)
        status = vd_frame_get(a->questions, VD_FRAME_MAX, REPLY_MS, reply, err);
    return status == VD_OK && reply->size < VD_REPLY_HEAD
               ? vd_fail(err, VD_ERR_IO, "a child's reply is cut off")
               : status;
}

/* Charges the client for the disk of a second run, which takes as much again. */
static void charge_second_run(vd_daemon *daemon, const vd_job_record *job) {
    char path[1200];
    vd_err err = {0};
    vd_job_path(daemon, job->id, VD_JOB_AGAIN, path);
    if (!job->again && access(path, F_OK) == 0 &&
        vd_ledger_run_again(daemon->ledger, job->id, &err) != VD_OK)
        vd_trouble_tell(&daemon->trouble, &daemon->options, err.text);
}

void vd_serve_ask(vd_daemon *daemon, const vd_request *request, vd_response *response) {
    vd_asked asked;
    vd_buf reply = {0};
    vd_err err = {0};
    if (!vd_find_asked(daemon, request, &asked, response) ||
        vd_asked_in_vain(daemon, &asked, response))
        return;
    vd_answerer *a = find_place(daemon, &asked.job);
    if (!a) { /* `working`, so that waiting for a place costs no patience */
        say_working(response, true, 0, 0, "questions about other jobs are answered first");
        return;
    }
    vd_status status = a->job[0] ? VD_OK : start_child(daemon, &asked.job, a, &err);
    if (status == VD_OK)
        status = vd_answerer_wait(a, &err);
    if (status == VD_ERR_TIMEOUT) {
        say_working(response, true, 0, 0, "loading the job, and hashing its data");
        return;
    }
    if (status == VD_OK)
        status = vd_answerer_charge(daemon, a, &err);
    if (status == VD_OK)
        status = ask(a, request, &reply, &err);
    charge_second_run(daemon, &asked.job);
    if (status == VD_OK) {
        give_reply(daemon, &reply, response);
    } else { /* a repeated question starts another child */
        end_child(a);
        vd_reply_trouble(daemon, response, &err);
    }
    vd_buf_free(&reply);
}
