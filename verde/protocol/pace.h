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
/* What a provider's times count for at most, in microseconds. */
typedef struct {
    int64_t step;  /* plain or committed */
    int64_t trace; /* of a step or of initialisation */
} vd_pace_caps;
/* `step_us`: what the referee's user says of a step; 0: by the program. Of no program (NULL) the
 * least. */
vd_pace_caps vd_pace_caps_of(const vd_program *program, int64_t step_us);

/* Seconds that a step, and initialisation, may take in truth so that a referee waits for every
 * answer, whatever the provider's pace counts for. */
typedef struct {
    double step, init;
} vd_pace_limits;
vd_pace_limits vd_pace_limits_of(const vd_program *program);

/* What a referee must say of a step, in whole seconds, so that all of this pace counts; 0: its caps
 * are enough. */
long vd_pace_wants(const vd_pace *pace, const vd_pace_caps *caps);

/* Seconds that the work takes by this pace. `program` may be NULL: of a collection. */
double vd_work_seconds(vd_work work, const vd_program *program, const vd_pace *pace,
                       const vd_pace_caps *caps);

/* The member `pace` of an answer to commit. */
json_t *vd_pace_json(const vd_pace *pace);

#endif
