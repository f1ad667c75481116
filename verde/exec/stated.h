/* Machines that a run ran on, as it states them. This is not committed to, and not sent to peers:
 * it helps the machines' owner to find one that errs. */
#ifndef VD_STATED_H
#define VD_STATED_H

#include "repops/repops.h"
#include "verde/base/base.h"

enum { VD_MACHINES_MAX = 1024 }; /* of a run; further ones are recorded as unknown */

typedef struct {
    char host[64];
    char device[96], uuid[48]; /* as in device.h; the UUID is "" for a CPU */
    char backend[16];
    char version[16]; /* of verde */
    int32_t threads;
} vd_machine;

/* Who computed the steps since the checkpoint before: the machine's index, or -1; and the time. */
typedef struct {
    int32_t machine;
    int64_t microseconds;
} vd_ran;

/* Describes this machine and the device of the context. */
void vd_machine_here(const ro_ctx *ro, vd_machine *out);
/* Replaces all but printable ASCII by '?': names are printed, and may come from anywhere. */
void vd_machine_clean(vd_machine *machine);
bool vd_machine_equal(const vd_machine *a, const vd_machine *b);

#endif
