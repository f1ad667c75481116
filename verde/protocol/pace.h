/* How long answers may take: the times that a provider states for its machine, and the work that a
 * question needs. PROTOCOL.md section 8.3. */
#ifndef VD_PACE_H
#define VD_PACE_H

#include "verde/commit/json.h"
#include "verde/exec/source.h"
#include "verde/protocol/message.h"

/* The work that an answer needs at most. */
typedef enum {
    VD_WORK_NONE,
    VD_WORK_COMMIT, /* hashing stored files, and measuring */
    VD_WORK_STATES, /* executing a checkpoint interval */
    VD_WORK_STEP,   /* executing up to a step, and the step in detail */
    VD_WORK_RUN,    /* executing the whole job */
    VD_WORKS,
} vd_work;

vd_work vd_work_of(const vd_question *question);

enum {
    VD_REACH_S = 1800,          /* cap on the way from a stored state, or one interval if longer */
    VD_STEP_US_LEAST = 1000000, /* lower bound of the cap on a step's time */
    VD_TERMS_PER_US = 4000,     /* of the slowest machine that the cap is meant for */
};
/* Upper bounds, in microseconds, for the times that a provider states. */
typedef struct {
    int64_t step;  /* of a plain or committed step */
    int64_t trace; /* of a traced step, or of initialisation */
} vd_pace_caps;
/* Returns the caps. `step_us`: the cap on a step that the referee's user chose; 0: derived from the
 * program. NULL program: the lowest caps. */
vd_pace_caps vd_pace_caps_of(const vd_program *program, int64_t step_us);

/* The seconds that a step, and initialisation, may really take so that every answer arrives in
 * time, whatever pace the provider states. */
typedef struct {
    double step, init;
} vd_pace_limits;
vd_pace_limits vd_pace_limits_of(const vd_program *program);

/* Returns the cap on a step, in whole seconds, that a referee's user must set so that this pace
 * counts in full; 0: the caps are high enough. */
long vd_pace_wants(const vd_pace *pace, const vd_pace_caps *caps);

/* Returns the seconds of this work at this pace, within the caps. NULL program: a collection. */
double vd_work_seconds(vd_work work, const vd_program *program, const vd_pace *pace,
                       const vd_pace_caps *caps);

/* Returns the member `pace` of an answer to commit. */
json_t *vd_pace_json(const vd_pace *pace);

#endif
