/* The commands that `verde provide` runs in children. Their arguments come from the daemon only. */
#ifndef VD_PROVIDE_CHILD_H
#define VD_PROVIDE_CHILD_H

#include "verde/load/load.h"

/* Bytes of a child's memory in addition to a job's tensors: programs, kernels' buffers, stacks. */
#define VD_CHILD_SPARE ((int64_t)512 << 20)

/* provide --child-run MEMORY THREADS BACKEND FAULT PARENT DIR KEEP BYTES: runs the job in DIR. No
 * file may become larger than BYTES. */
#define VD_CHILD_RUN "--child-run"
vd_exit vd_provide_run_child(int argc, char **argv);

/* provide --child-answer MEMORY THREADS BACKEND PARENT DIR KEY BYTES: answers questions about the
 * run of the job in DIR. The daemon, whose public key is KEY, signs (verde/provide/frames.h). */
#define VD_CHILD_ANSWER "--child-answer"
vd_exit vd_provide_answer_child(int argc, char **argv);

/* provide --child-judge PARENT PROGRAM KEEP SECONDS: reads a program within SECONDS of processor
 * time, and describes it to the daemon (verde/provide/judge.h). */
#define VD_CHILD_JUDGE "--child-judge"
vd_exit vd_provide_judge_child(int argc, char **argv);

bool vd_child_has_gpu(const vd_common *common);

#endif
