/* Opening the folder that a command writes to. */
#ifndef VD_OUT_DIR_H
#define VD_OUT_DIR_H

#include "verde/base/base.h"

/* Opens a folder for a run; creates it and the folders above if they do not exist, and prints which
 * other files are in it. *made: how many folders were created. */
VD_MUST_USE vd_status vd_open_run_dir(const char *dir, uint32_t *made, vd_err *err);
/* Opens a folder for a model or results. VD_ERR_USAGE: it contains a run. */
VD_MUST_USE vd_status vd_open_model_dir(const char *dir, vd_err *err);
/* Checks, before long work, that a file can be written, and that none exists unless `force`. */
VD_MUST_USE vd_status vd_check_new(const char *path, bool force, vd_err *err);

#endif
