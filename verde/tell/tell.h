/* What work says: meanwhile on standard error, and at the end what it comes to. */
#ifndef VD_TELL_H
#define VD_TELL_H

#include <jansson.h>

#include "verde/commit/commit.h"

/* How a process ends, whether a person or a daemon started it. */
typedef enum {
    VD_EXIT_OK = 0,           /* done, agreed, verified */
    VD_EXIT_LOCAL = 1,        /* memory, disk, device, network of this machine */
    VD_EXIT_USAGE = 2,        /* options, job, files */
    VD_EXIT_CONVICTED = 3,    /* a provider was convicted */
    VD_EXIT_FORFEIT = 4,      /* a provider did not answer; nobody was convicted */
    VD_EXIT_INCONCLUSIVE = 5, /* nothing is accepted */
    VD_EXIT_REFUSED = 6,      /* a verdict does not hold, a file is damaged, or files do not fit */
    VD_EXIT_DISMISSED = 7,    /* an auditor could not show the trainer to be wrong */
    VD_EXIT_VERSION = 8,      /* of a version, or with a part, that this program does not know */
    VD_EXIT_DIFFERS = 9,      /* what was compared, or executed again, is not equal */
} vd_exit;

/* Prints the error as a line on standard error. Returns the exit code of its status. */
vd_exit vd_report(const vd_err *err);
/* A line of at most 1,000 bytes, dropped if nobody reads there: whoever answers others never waits
 * for it. */
void vd_say(const char *format, ...) VD_PRINTF(1, 2);
/* A line of a longer story, such as a referee's. */
void vd_tell(void *user, const char *line);
/* Tells what is being asked now; only on a terminal, where it is overwritten. */
void vd_tell_now(const char *text);
bool vd_is_terminal(void);             /* standard error */
const char *vd_plural(uint64_t count); /* "s", but of one thing "" */

/* When a line about work that goes on is due: after some quiet, now and then, and at the end. */
typedef struct {
    double start, told; /* vd_seconds(), 0 */
} vd_ticker;
bool vd_tick(vd_ticker *ticker, double quiet_s, bool last);
/* Such a line, which changes in place on a terminal until the last one. */
void vd_tell_meanwhile(bool last, const char *format, ...) VD_PRINTF(2, 3);

/* How far a check is, a vd_ticker: vd_check.progress. */
void vd_tell_hashing(void *ticker, uint64_t done, uint64_t total);
void vd_tell_hashed_items(vd_ticker *ticker, uint32_t done, uint32_t total); /* prompts */

/* What work comes to, for people or for machines: goes to where the program has said, which for
 * `verde` is standard output; else nowhere. Takes what it is given. */
void vd_result_text(vd_buf *text);
void vd_result_json(json_t *json);
void vd_results_to(void (*text)(const vd_buf *text), void (*json)(const json_t *json));
/* Appends a line of a hash or a key. */
void vd_put_hex(vd_buf *out, const char *name, const uint8_t bytes[VD_HASH_SIZE]);

#endif
