/* Verdicts: an in-toto statement in a signed note, with all evidence. Writes them, and verifies
 * them by deciding again. */
#ifndef VD_VERDICT_H
#define VD_VERDICT_H

#include "verde/protocol/crumb.h"
#include "verde/protocol/referee.h"
#include "verde/protocol/tournament.h"

#define VD_PREDICATE "https://verde.invalid/verdict/v1"
/* The type for more than two providers. */
#define VD_PREDICATE_MANY "https://verde.invalid/verdict/v2"

/* The type of a proof of fraud: about one provider and a place of its run (section 13.5). */
#define VD_PREDICATE_FRAUD "https://verde.invalid/fraud/v1"

/* The dispute's cost for the referee. */
typedef struct {
    uint64_t bytes_in, bytes_out;
    double seconds, cpu_seconds;
    uint64_t peak_bytes;
    double level_seconds[VD_LEVELS]; /* parts of `seconds`; all 0: not stated */
} vd_cost;

VD_MUST_USE vd_status vd_verdict_write(const vd_key *referee, const vd_program *program,
                                       const vd_buf *assignment_note, const vd_referee *dispute,
                                       const vd_cost *cost, vd_buf *out, vd_err *err);

VD_MUST_USE vd_status vd_verdict_write_many(const vd_key *referee, const vd_program *program,
                                            const vd_buf *assignment_note,
                                            const vd_tournament *tournament, const vd_cost *cost,
                                            vd_buf *out, vd_err *err);
/* Writes a proof of fraud. `crumb`: its referee (vd_crumb_open), with VD_RESULT_CONVICTED. */
VD_MUST_USE vd_status vd_fraud_write(const vd_key *checker, const vd_program *program,
                                     const vd_buf *assignment_note, const vd_referee *crumb,
                                     const vd_crumb *place, const vd_cost *cost, vd_buf *out,
                                     vd_err *err);
/* Return the largest size in bytes of a verdict with so many games, or with this outcome. */
uint64_t vd_verdict_bytes_max(uint32_t games);
uint64_t vd_verdict_bytes_of(const vd_outcome *outcome);

/* The contents of a verified verdict; vd_verdict_free frees it. */
typedef struct {
    vd_public_key referee;
    vd_assignment assignment;
    vd_hash program;
    vd_hash structure; /* hash of the program's structure; all zeros: the job is a collection */
    bool fraud;        /* this is a proof of fraud; then: */
    vd_crumb place;
    vd_outcome outcome;
    vd_cost cost;
    size_t statements;
} vd_verdict;

void vd_verdict_free(vd_verdict *verdict);

/* Verifies a verdict: checks the note, decodes the program, runs the referee's machine again on the
 * recorded statements, and compares the outcomes. `referee`: the key that must have signed it;
 * NULL: any. VD_ERR_PEER: the verdict does not hold; the text says why. VD_ERR_VERSION: the referee
 * signed something of a version, or with a part, that this program does not know, so that nothing
 * can be decided. Statements of providers never cause VD_ERR_VERSION. */
VD_MUST_USE vd_status vd_verdict_verify(const void *note, size_t size, const vd_public_key *referee,
                                        vd_leaf_fn leaf,
                                        void (*story)(void *user, const char *line), void *user,
                                        vd_verdict *out, vd_err *err);

/* An item of the evidence, reported when the referee that decides again asks for it. */
typedef struct {
    uint32_t provider, game; /* provider: from 0; game: from 1, 0 outside the games */
    vd_level level;
    const char *question;
    const json_t *item; /* its JSON in the verdict */
} vd_heard;

/* Callbacks while a verdict is decided again, from which a page about it is made. Any but `leaf`
 * may be NULL. */
typedef struct {
    vd_leaf_fn leaf;
    void (*story)(void *user, const char *line);
    void (*heard)(void *user, const vd_heard *heard);
    void (*computing)(void *user); /* `computing` and `reading`: as in vd_referee_options */
    void (*reading)(void *user, int input, int64_t index, uint32_t bits);
    /* The verdict holds: its program (item -1), or each item's. */
    void (*program)(void *user, int64_t item, const vd_program *program);
    void *user;
} vd_watch;

VD_MUST_USE vd_status vd_verdict_watch(const void *note, size_t size, const vd_public_key *referee,
                                       const vd_watch *watch, vd_verdict *out, vd_err *err);

/* ---- told.c: lines for people ---- */

void vd_outcome_told(const vd_outcome *outcome, const char *const *names, const vd_cost *cost,
                     vd_buf *out);
const char *vd_challenge_told(vd_challenge_end end); /* a clause: "ran again, ..." */
/* Appends what `verde verify` prints about a verdict that holds. */
void vd_verdict_told(const vd_verdict *verdict, vd_buf *out);
bool vd_verdict_has_structure(const vd_verdict *verdict);

/* Returns an object with the seconds of each level that has any; NULL: none has. */
json_t *vd_level_seconds_json(const vd_cost *cost);
/* Returns the outcome as a JSON object, the same in a verdict and in --json. */
json_t *vd_outcome_json(const vd_outcome *outcome, const vd_assignment *assignment);

#endif
