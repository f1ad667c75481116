/* What work prints: progress on standard error, and results at the end. */
#ifndef VD_TELL_H
#define VD_TELL_H

#include <jansson.h>

#include "verde/commit/commit.h"

/* Exit codes of the program, whoever started it. */
typedef enum {
    VD_EXIT_OK = 0,           /* the work is done, parties agree, a proof is verified */
    VD_EXIT_LOCAL = 1,        /* memory, disk, device or network of this machine failed */
    VD_EXIT_USAGE = 2,        /* options, a job or files are wrong */
    VD_EXIT_CONVICTED = 3,    /* a provider was convicted */
    VD_EXIT_FORFEIT = 4,      /* a provider did not answer; nobody was convicted */
    VD_EXIT_INCONCLUSIVE = 5, /* nothing is accepted */
    VD_EXIT_REFUSED = 6,   /* a bad verdict, a damaged file, or files that do not belong together */
    VD_EXIT_DISMISSED = 7, /* an auditor could not show the trainer to be wrong */
    VD_EXIT_VERSION = 8,   /* a version or a part that this program does not know */
    VD_EXIT_DIFFERS = 9,   /* what was compared or executed again differs */
} vd_exit;

/* Prints the error on standard error. Returns the exit code for its status. */
vd_exit vd_report(const vd_err *err);
/* Prints a line of at most 1,000 bytes. The line is dropped if its reader is slow: a process that
 * answers others must not wait. */
void vd_say(const char *format, ...) VD_PRINTF(1, 2);
/* Prints a line of a longer story, such as a referee's. `user` is not used. */
void vd_tell(void *user, const char *line);
/* Shows what is being asked now, on terminals only, where the next text overwrites it. */
void vd_tell_now(const char *text);
bool vd_is_terminal(void);             /* of standard error */
const char *vd_plural(uint64_t count); /* "", if count is 1, else "s" */

/* Decides when a progress line is due: after some quiet time, then now and then, and at the end. */
typedef struct {
    double start, told; /* seconds; set start to vd_seconds(), told to 0 */
} vd_ticker;
bool vd_tick(vd_ticker *ticker, double quiet_s, bool last);
/* Prints a progress line. On a terminal it is overwritten until the last one. */
void vd_tell_meanwhile(bool last, const char *format, ...) VD_PRINTF(2, 3);

/* Prints the progress of hashing, in bytes. `ticker`: a vd_ticker. Fits vd_check.progress. */
void vd_tell_hashing(void *ticker, uint64_t done, uint64_t total);
void vd_tell_hashed_items(vd_ticker *ticker, uint32_t done, uint32_t total); /* items: prompts */

/* Print the result of work, as text or JSON, and free it. vd_results_to says which functions print;
 * `verde` prints on standard output, other programs nothing. */
void vd_result_text(vd_buf *text);
void vd_result_json(json_t *json);
void vd_results_to(void (*text)(const vd_buf *text), void (*json)(const json_t *json));
/* Appends a line with the name and the hash or key in hexadecimal. */
void vd_put_hex(vd_buf *out, const char *name, const uint8_t bytes[VD_HASH_SIZE]);

#endif
