/* Checks that a run fits this machine. */
#ifndef VD_FITS_H
#define VD_FITS_H

#include "verde/load/load.h"

uint64_t vd_machine_memory(void); /* bytes, swap included */
/* Bytes of the file system of `path`, which need not exist: all, and left. False: unknown. */
bool vd_disk_of(const char *path, uint64_t *all, uint64_t *left);
/* VD_ERR_LOCAL: one state needs more than this machine's memory. */
VD_MUST_USE vd_status vd_check_memory(const char *job, const vd_loaded *loaded, vd_err *err);
/* VD_ERR_LOCAL: the checkpoints need more than the whole disk. `keep`: how many are kept; 0:
 * all. */
VD_MUST_USE vd_status vd_check_disk(const char *job, const char *dir, const vd_program *program,
                                    long keep, vd_err *err);

#endif
