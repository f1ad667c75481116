/* Referees' questions about finished jobs, each answered by a child that has the job's files, and
 * asks the daemon for signatures. */
#ifndef VD_PROVIDE_ANSWERS_H
#define VD_PROVIDE_ANSWERS_H

#include <pthread.h>
#include <sys/types.h>

#include "verde/provide/daemon.h"

typedef struct {
    char job[VD_ID_SIZE];    /* empty: the place is free */
    char client[VD_ID_SIZE]; /* whose job it is */
    pid_t pid;
    int questions, signatures; /* descriptors */
    pthread_t signer;          /* thread */
    const vd_key *key;
    bool ready;     /* the job's files are loaded */
    double started; /* vd_seconds() */
    double used;    /* likewise: when it was asked last */
    double charged; /* likewise: when it was asked for its account last */
} vd_answerer;

/* Used by one thread, but for the signers. */
typedef struct {
    vd_answerer place[VD_ANSWERERS_MAX];
} vd_answers;

/* May a child have this signed? Answers to questions, and the salt of a commitment: nothing else
 * that a key of a provider stands for. */
bool vd_may_sign(const void *message, size_t size);

/* Waits for a second at most, from the child's start on. VD_ERR_TIMEOUT: it still loads the job's
 * files, which takes as long as it takes to hash its data. VD_ERR_LOCAL: it has taken an hour.
 * VD_ERR_IO: it has gone. */
VD_MUST_USE vd_status vd_answerer_wait(vd_answerer *answerer, vd_err *err);

/* A request of a referee: who asks about what. */
typedef struct {
    vd_public_key referee;
    char referee_hex[VD_ID_SIZE];
    int64_t count; /* of the request: PROTOCOL.md section 8.1 */
    vd_job_record job;
} vd_asked;

/* ---- answers_account.c ---- */

/* Puts into the ledger what a child that is ready has computed for each referee since this was
 * called last: all together no more than the time that has passed. A ledger that cannot be written
 * is told of, and costs nobody an answer; an error is the child's. */
VD_MUST_USE vd_status vd_answerer_charge(vd_daemon *daemon, vd_answerer *answerer, vd_err *err);
/* Has the referee's request come before, or have its questions about the job taken the seconds of a
 * day that they may? Then `response` says so. */
bool vd_asked_in_vain(vd_daemon *daemon, const vd_asked *asked, vd_response *response);

/* ---- answers.c ---- */

/* A request of a referee, judged to be one. */
void vd_serve_ask(vd_daemon *daemon, const vd_request *request, vd_response *response);
/* Is it a referee's own request to this provider, and which job is it about? False: `response` says
 * why not. */
bool vd_find_asked(vd_daemon *daemon, const vd_request *request, vd_asked *out,
                   vd_response *response);
void vd_answers_forget(vd_answers *answers, const char *job); /* ends its child, if it has one */
void vd_answers_close(vd_answers *answers);

#endif
