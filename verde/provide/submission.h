/* A job that a client submits: submission.c reads it, acceptance.c decides. */
#ifndef VD_SUBMISSION_H
#define VD_SUBMISSION_H

#include "verde/provide/internal.h"
#include "verde/provide/judge.h"

typedef struct {
    vd_daemon *daemon;
    const char *client;
    json_t *root;      /* owned */
    json_t *data;      /* in `root`: names of blobs */
    const char **blob; /* program or pack, then data; ends with NULL */
    bool packed;       /* a pack of many programs */
    const char *referee[VD_REFEREES_MAX + 1];
    vd_judgement program;
    vd_job_record job;
    uint64_t before;  /* bytes counted for the job if it was submitted before, */
    uint64_t written; /* and bytes that it has on the disk */
    vd_response *response;
    vd_err err;
} vd_submission;

/* Checks that everything is there and fits, and queues the job. Fills in the response. */
void vd_submission_accept(vd_submission *submission);

#endif
