#include "verde/cli/recheck.h"

const vd_command vd_cmd_audit = {
    "audit", "execute parts of one's own run again, elsewhere",
    "Usage: verde audit RUN [options]\n\n"
    "Executes stretches of a finished run again, each from its stored state to the next one, and\n"
    "compares the states with what the run commits to. Needs no keys, no servers and no rival: it\n"
    "is for machines of one's own that may err without a sign. By default it computes on another\n"
    "backend than the run did. What differs is narrowed to step, node, element and part of its\n"
    "sum. The report has apart what is proven, by the definition of the operators, and what the\n"
    "run states of the machine that computed it, and says whether the run's own backend computes\n"
    "the wrong value again. docs/auditing.md tells how.\n\n"
    "  --intervals K    execute so many stretches, drawn at random (default 1). A stretch is one\n"
    "                   checkpoint interval, or with --keep from one kept state to the next\n"
    "  --all            execute the whole run\n"
    "  --seed N         draw the stretches from this number, to repeat an audit\n"
    "  --state FILE     keep in FILE which stretches were executed, and go on from there\n"
    "  --data DIR       where the run's data files are now, if they have moved\n" VD_COMMON_HELP
    "\nExit code 0: all that was executed is equal. 9: a stretch is not.\n"
    "\nExamples:\n"
    "  verde audit run --intervals 3\n"
    "  verde audit run --all --state audit.txt --backend scalar\n" VD_EXIT_HELP,
    vd_recheck_command};
