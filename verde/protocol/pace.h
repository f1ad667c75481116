/* How long answers take: what a provider states of its machine, and what a question makes it
 * compute. PROTOCOL.md section 8.3. */
#ifndef VD_PACE_H
#define VD_PACE_H

#include "verde/commit/json.h"
#include "verde/exec/source.h"
#include "verde/protocol/message.h"

/* What an answer takes, at most. */
typedef enum {
    VD_WORK_NONE,
    VD_WORK_COMMIT, /* hashing of stored files, and measuring */
    VD_WORK_STATES, /* states of a checkpoint interval */
    VD_WORK_STEP,   /* one step in detail */
    VD_WORK_RUN,    /* the whole job */
    VD_WORKS,
} vd_work;

vd_work vd_work_of(const vd_question *question);

enum {
    VD_REACH_S = 1800, /* a way from a stored state counts so much, or one checkpoint interval */
    VD_STEP_US_LEAST = 1000000, /* the cap on a step's time, of however small a program */
    VD_TERMS_PER_US = 4000,     /* what the slowest machine computes that needs no other cap */
};
/* The cap on the time of a step that a referee sets unless its user says else, in microseconds. */
int64_t vd_step_us_max(const vd_program *program);

/* Seconds that the work takes by this pace, of which no time counts for more than `step_us_max`. */
double vd_work_seconds(vd_work work, const vd_program *program, const vd_pace *pace,
                       int64_t step_us_max);

/* The member `pace` of an answer to commit. What is no pace is read as zeros. */
json_t *vd_pace_json(const vd_pace *pace);
void vd_pace_read(const json_t *body, vd_pace *out);

#endif
