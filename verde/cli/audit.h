/* `verde audit` has three forms, each with options of its own. Private to cmd_audit.c, recheck.c,
 * audit_provider.c and audit_answers.c. */
#ifndef VD_CLI_AUDIT_H
#define VD_CLI_AUDIT_H

#include "verde/cli/cli.h"

typedef enum { VD_AUDIT_OF_RUN, VD_AUDIT_OF_PROVIDER, VD_AUDIT_OF_ANSWERS } vd_audit_form;

/* The letters of all options of all forms. */
enum {
    VD_OPTION_ALL = 'A',
    VD_OPTION_ANSWERS = 'n',
    VD_OPTION_BATCH = 'g',
    VD_OPTION_BEACON = 'B',
    VD_OPTION_BEACON_ROUND = 'R',
    VD_OPTION_BEACON_SOURCE = 'S',
    VD_OPTION_CACERT = 'c',
    VD_OPTION_CRUMBS = 'N',
    VD_OPTION_DATA = 'D',
    VD_OPTION_FORCE = 'F',
    VD_OPTION_INTERVALS = 'K',
    VD_OPTION_KEY = 'k',
    VD_OPTION_PROMPT = 'P',
    VD_OPTION_PROOF = 'o',
    VD_OPTION_PROVIDER = 'p',
    VD_OPTION_RESULTS = 'r',
    VD_OPTION_SEED = 'e',
    VD_OPTION_STATE = 'T',
    VD_OPTION_STEPS = 'M',
    VD_OPTION_LONGEST_STEP = 's',
    VD_OPTION_TIMEOUT = 'q',
    VD_OPTION_VERDICT = 'v',
    VD_OPTION_WORK = 'w',
};

/* As vd_next_option. '?', too: the option is of another form, which a line has named. */
int vd_audit_option(int argc, char **argv, vd_audit_form form);

#endif
