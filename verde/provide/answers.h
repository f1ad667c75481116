/* Answers referees' questions about finished jobs: a child has the job's files, and asks the daemon
 * for signatures. */
#ifndef VD_PROVIDE_ANSWERS_H
#define VD_PROVIDE_ANSWERS_H

#include <pthread.h>
#include <sys/types.h>

#include "verde/provide/daemon.h"

typedef struct {
    char job[VD_ID_SIZE];    /* empty: the place is free */
    char client[VD_ID_SIZE]; /* the job's client */
    pid_t pid;
    int questions, signatures; /* sockets to the child */
    pthread_t signer;          /* thread */
    const vd_key *key;
    bool ready;     /* the job's files are loaded */
    double started; /* vd_seconds() at the start */
    double used;    /* vd_seconds() when asked last */
    double charged; /* vd_seconds() when its account was last asked for */
} vd_answerer;

/* Used by one thread, except for the signers. */
typedef struct {
    vd_answerer place[VD_ANSWERERS_MAX];
} vd_answers;

/* Returns true if a child may have this signed: an answer, or the salt of a commitment, and nothing
 * else that the provider's key can sign. */
bool vd_may_sign(const void *message, size_t size);

/* Waits until the child is ready, a second at most from its start. VD_ERR_TIMEOUT: it is still
 * loading, which includes hashing the job's data. VD_ERR_LOCAL: it has taken an hour. VD_ERR_IO: it
 * has ended. */
VD_MUST_USE vd_status vd_answerer_wait(vd_answerer *answerer, vd_err *err);

/* A referee's request and the job that it is about. */
typedef struct {
    vd_public_key referee;
    char referee_hex[VD_ID_SIZE];
    int64_t count; /* of the request (PROTOCOL.md section 8.1) */
    vd_job_record job;
} vd_asked;

/* ---- answers_account.c ---- */

/* Charges, in the ledger, what a ready child has computed for each referee since the last call, in
 * all no more than the time that has passed. Trouble of the ledger is only reported: it costs
 * nobody an answer. An error is the child's. */
VD_MUST_USE vd_status vd_answerer_charge(vd_daemon *daemon, vd_answerer *answerer, vd_err *err);
/* Returns true, with a response, if the request came before, or the referee has used up a day's
 * seconds of questions about the job. */
bool vd_asked_in_vain(vd_daemon *daemon, const vd_asked *asked, vd_response *response);

/* ---- answers.c ---- */

/* Answers a referee's request. */
void vd_serve_ask(vd_daemon *daemon, const vd_request *request, vd_response *response);
/* Checks that the request is a referee's own to this provider, and finds its job. False: `response`
 * says why not. */
bool vd_find_asked(vd_daemon *daemon, const vd_request *request, vd_asked *out,
                   vd_response *response);
void vd_answers_forget(vd_answers *answers, const char *job); /* ends the job's child, if any */
void vd_answers_close(vd_answers *answers);

#endif
