/* A job that a client hands over: submission.c reads it, acceptance.c decides. */
#ifndef VD_SUBMISSION_H
#define VD_SUBMISSION_H

#include "verde/provide/internal.h"
#include "verde/provide/judge.h"

typedef struct {
    vd_daemon *daemon;
    const char *client;
    json_t *root;      /* owned */
    json_t *data;      /* of root: names of blobs */
    const char **blob; /* program or pack, data; NULL at the end */
    bool packed;       /* it is a pack of many programs */
    const char *referee[VD_REFEREES_MAX + 1];
    vd_judgement program;
    vd_job_record job;
    uint64_t before;  /* bytes that the job counts for already, if it was submitted before, */
    uint64_t written; /* and that it has on the disk */
    vd_response *response;
    vd_err err;
} vd_submission;

/* Is all of it there, and does it fit? Then the job is queued. Fills the response. */
void vd_submission_accept(vd_submission *submission);

#endif
