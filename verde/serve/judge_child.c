/* Reads a client's program, in a child that can open nothing else. */
#include <stdlib.h>

#include "verde/provide/child.h"
#include "verde/provide/frames.h"
#include "verde/provide/judge.h"
#include "verde/serve/child.h"

enum { JUDGE_ARGUMENTS = 6 };

vd_exit vd_provide_judge_child(int argc, char **argv) {
    vd_err err = {0};
    vd_buf reply = {0};
    if (argc != JUDGE_ARGUMENTS)
        return VD_EXIT_USAGE;
    const vd_judge_machine machine = {atoi(argv[0]), atoi(argv[1])};
    const char *const reads[] = {argv[3], NULL};
    const vd_child_limits limits = {.fds = 1,
                                    .parent = strtol(argv[2], NULL, 10),
                                    .memory = VD_JUDGE_MEMORY,
                                    .cpu_s = strtoll(argv[5], NULL, 10),
                                    .places = {.reads = reads}};
    vd_status status = vd_child_confine(&limits, &err);
    if (status == VD_OK) {
        vd_judge_file(argv[3], strtoll(argv[4], NULL, 10), &machine, &reply);
        status = vd_frame_put(VD_CHILD_QUESTIONS, reply.data, reply.size, &err);
    }
    vd_buf_free(&reply);
    return status == VD_OK ? VD_EXIT_OK : vd_report(&err);
}
