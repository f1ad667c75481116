/* Does a run have room on this machine? */
#ifndef VD_FITS_H
#define VD_FITS_H

#include "verde/load/load.h"

uint64_t vd_machine_memory(void); /* bytes, swap included */
/* Bytes of the file system that `path` lies in, or would lie in; false: it cannot be told. */
bool vd_disk_of(const char *path, uint64_t *all, uint64_t *left);
/* VD_ERR_LOCAL: the state alone is more than this machine's memory. */
VD_MUST_USE vd_status vd_check_memory(const char *job, const vd_loaded *loaded, vd_err *err);
/* VD_ERR_LOCAL: the checkpoints are more than the whole disk. `keep`: 0: all. */
VD_MUST_USE vd_status vd_check_disk(const char *job, const char *dir, const vd_program *program,
                                    long keep, vd_err *err);

#endif
