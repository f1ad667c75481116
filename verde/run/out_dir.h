/* The folder that a command writes to. */
#ifndef VD_OUT_DIR_H
#define VD_OUT_DIR_H

#include "verde/base/base.h"

/* A folder for results, with the folders that it lies in, each made if it is not there.
 * A line says which other files are in it. For a run: how many folders were made. */
VD_MUST_USE vd_status vd_open_run_dir(const char *dir, uint32_t *made, vd_err *err);
/* For a model or results: VD_ERR_USAGE where a run is. */
VD_MUST_USE vd_status vd_open_model_dir(const char *dir, vd_err *err);
/* Can a file be written there, and is there none yet, unless `force`? For what is written after
 * long work. */
VD_MUST_USE vd_status vd_check_new(const char *path, bool force, vd_err *err);

#endif
