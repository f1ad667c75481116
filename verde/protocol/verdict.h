/* Verdicts: an in-toto statement in a signed note, with all the evidence; and deciding again from
 * it. */
#ifndef VD_VERDICT_H
#define VD_VERDICT_H

#include "verde/protocol/crumb.h"
#include "verde/protocol/referee.h"
#include "verde/protocol/tournament.h"

#define VD_PREDICATE "https://verde.invalid/verdict/v1"
/* Of more than two providers. */
#define VD_PREDICATE_MANY "https://verde.invalid/verdict/v2"

/* A proof of fraud: of one provider, by a place of its run (section 13.5). */
#define VD_PREDICATE_FRAUD "https://verde.invalid/fraud/v1"

/* The dispute's cost for the referee. */
typedef struct {
    uint64_t bytes_in, bytes_out;
    double seconds, cpu_seconds;
    uint64_t peak_bytes;
    double level_seconds[VD_LEVELS]; /* of `seconds`; all 0: not stated */
} vd_cost;

VD_MUST_USE vd_status vd_verdict_write(const vd_key *referee, const vd_program *program,
                                       const vd_buf *assignment_note, const vd_referee *dispute,
                                       const vd_cost *cost, vd_buf *out, vd_err *err);

VD_MUST_USE vd_status vd_verdict_write_many(const vd_key *referee, const vd_program *program,
                                            const vd_buf *assignment_note,
                                            const vd_tournament *tournament, const vd_cost *cost,
                                            vd_buf *out, vd_err *err);
/* Of a referee of vd_crumb_open whose outcome is VD_RESULT_CONVICTED. */
VD_MUST_USE vd_status vd_fraud_write(const vd_key *checker, const vd_program *program,
                                     const vd_buf *assignment_note, const vd_referee *crumb,
                                     const vd_crumb *place, const vd_cost *cost, vd_buf *out,
                                     vd_err *err);
/* The most bytes that a verdict of so many games has, or of this outcome. */
uint64_t vd_verdict_bytes_max(uint32_t games);
uint64_t vd_verdict_bytes_of(const vd_outcome *outcome);

/* The contents of a verified verdict; vd_verdict_free frees it. */
typedef struct {
    vd_public_key referee;
    vd_assignment assignment;
    vd_hash program;
    vd_hash structure; /* of the program; all zeros: the job has many */
    bool fraud;        /* it is a proof of fraud; then: */
    vd_crumb place;
    vd_outcome outcome;
    vd_cost cost;
    size_t statements;
} vd_verdict;

void vd_verdict_free(vd_verdict *verdict);

/* Checks the note, decodes the program, runs the referee's machine again on the recorded
 * statements, and compares. `referee`: whose verdict it must be; NULL: whoever signed. VD_ERR_PEER:
 * it does not hold, and why. VD_ERR_VERSION: what the referee signed is of a version, or has a
 * part, that is not known here, so that nothing can be decided; what providers signed is never the
 * cause.
 */
VD_MUST_USE vd_status vd_verdict_verify(const void *note, size_t size, const vd_public_key *referee,
                                        vd_leaf_fn leaf,
                                        void (*story)(void *user, const char *line), void *user,
                                        vd_verdict *out, vd_err *err);

/* An item of the evidence, when the referee that decides again has asked for it. */
typedef struct {
    uint32_t provider, game; /* numbers: the provider's from 0 on; game 0: of no game */
    vd_level level;
    const char *question;
    const json_t *item; /* as it stands in the verdict */
} vd_heard;

/* What a page about a verdict is made from: who watches is told while it is decided again. Any may
 * be NULL, but for `leaf`. */
typedef struct {
    vd_leaf_fn leaf;
    void (*story)(void *user, const char *line);
    void (*heard)(void *user, const vd_heard *heard);
    void (*computing)(void *user); /* as in vd_referee_options */
    void (*reading)(void *user, int input, int64_t index, uint32_t bits);
    /* At the end, if the verdict holds: its program (item -1), or those of its items. */
    void (*program)(void *user, int64_t item, const vd_program *program);
    void *user;
} vd_watch;

VD_MUST_USE vd_status vd_verdict_watch(const void *note, size_t size, const vd_public_key *referee,
                                       const vd_watch *watch, vd_verdict *out, vd_err *err);

/* ---- told.c: as lines for people ---- */

void vd_outcome_told(const vd_outcome *outcome, const char *const *names, const vd_cost *cost,
                     vd_buf *out);
const char *vd_challenge_told(vd_challenge_end end); /* "ran again, ...": of whom is asked */
/* What `verde verify` says of a verdict that holds. */
void vd_verdict_told(const vd_verdict *verdict, vd_buf *out);
bool vd_verdict_has_structure(const vd_verdict *verdict);

/* The seconds of each level that has some; NULL: none has. */
json_t *vd_level_seconds_json(const vd_cost *cost);
/* The outcome as a JSON object, the same in a verdict and in --json. */
json_t *vd_outcome_json(const vd_outcome *outcome, const vd_assignment *assignment);

#endif
