/* `verde check` of a folder that `verde export` wrote. */
#ifndef VD_CHECK_MODEL_H
#define VD_CHECK_MODEL_H

#include "verde/cli/cli.h"

typedef struct {
    const char *dir, *verdict, *referee, *job;
    long step; /* that the model must be of; -1: the last one */
    const vd_common *common;
} vd_check_model_options;

/* Does an exported model lie there? */
bool vd_is_model(const char *dir);
vd_exit vd_check_model(const vd_check_model_options *options);

#endif
