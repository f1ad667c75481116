/* What a run says of the machines that it ran on. Nothing of it is committed to, and nothing is
 * sent to a peer: it is for whoever owns the machines, and looks for one that errs. */
#ifndef VD_STATED_H
#define VD_STATED_H

#include "repops/repops.h"
#include "verde/base/base.h"

enum { VD_MACHINES_MAX = 1024 }; /* of a run; later ones are not told apart from nobody's word */

typedef struct {
    char host[64];
    char device[96], uuid[48]; /* as device.h has them; "" for a CPU's UUID */
    char backend[16];
    char version[16]; /* of verde */
    int32_t threads;
} vd_machine;

/* Of the steps from one checkpoint to the next: the machine by its number, -1 if nobody said, and
 * how long it computed. */
typedef struct {
    int32_t machine;
    int64_t microseconds;
} vd_ran;

/* This machine, with what the context computes on. */
void vd_machine_here(const ro_ctx *ro, vd_machine *out);
/* What is no printable ASCII becomes '?': names are printed, and a run may come from anywhere. */
void vd_machine_clean(vd_machine *machine);
bool vd_machine_equal(const vd_machine *a, const vd_machine *b);

#endif
