/* This file runs a job as the process that writes the run's directory. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "verde/cli/cli.h"
#include "verde/cli/run_command.h"
#include "verde/load/export.h"
#include "verde/protocol/pace.h"
#include "verde/run/dry_run.h"
#include "verde/run/evaluation.h"
#include "verde/run/out_dir.h"
#include "verde/run/run_items.h"
#include "verde/run/run_one.h"
#include "verde/tell/stop.h"

/* Opens and locks the directory: two runs would mix their files. Where a file system has no locks,
 * it is used without. */
static vd_status take_dir(const char *dir, int *fd, uint32_t *made, vd_err *err) {
    vd_status status = vd_open_run_dir(dir, made, err);
    *fd = status == VD_OK ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (*fd >= 0 && flock(*fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        status = vd_fail(err, VD_ERR_LOCAL, "%s: another process is running there", dir);
    return status;
}

/* Reads the result of an evaluation: its last state has the loss, and perhaps the accuracy. */
static vd_status read_score(const char *dir, const vd_hash *state, vd_score *out, vd_err *err) {
    char path[1024];
    vd_buf bytes = {0};
    float number[2] = {0};
    vd_store_state_path(path, dir, state);
    vd_status status = vd_read_file(path, sizeof number, &bytes, err);
    if (status == VD_OK && bytes.size) {
        vd_from_little(bytes.data, bytes.size, sizeof *number);
        memcpy(number, bytes.data, bytes.size);
    }
    *out = (vd_score){number[0], number[1], bytes.size == sizeof number};
    vd_buf_free(&bytes);
    return status;
}

static vd_status execute(const char *job, const char *dir, const vd_run_arguments *o,
                         const vd_run_backend *backend, const vd_run_processes *processes,
                         vd_loaded *loaded, vd_evaluation *evaluation, vd_err *err) {
    const char *fault = o->fault;
    const vd_common *common = &o->common;
    const vd_training *t = &loaded->job.training;
    vd_announce_run(job, loaded);
    vd_status status = vd_check_memory(job, loaded, err);
    if (status == VD_OK)
        status = vd_check_disk(job, dir, &loaded->program, o->keep, err);
    if (status != VD_OK)
        return status;
    vd_tell_disk(dir, &loaded->program, o->keep);
    vd_run_printer print = {.samples_per_step = (double)(t->batch * t->sequence),
                            .samples = vd_samples_name(&loaded->job),
                            .json = common->json,
                            .no_loss = !vd_has_loss(&loaded->program)};
    vd_exec exec = loaded->exec;
    exec.part = vd_run_part(processes);
    vd_one_run run = {.loaded = loaded};
    run.options = (vd_run_options){
        .exec = &exec,
        .dir = dir,
        .fault = fault,
        .progress = vd_tell_progress,
        .user = &print,
        .backend = backend,
        .team = exec.part ? &processes->lead : NULL,
        .samples = {loaded->job.program ? NULL : print.samples, t->batch * t->sequence},
        .keep = (int32_t)o->keep,
        .dispute_s = 2 * VD_REACH_S,
        .evaluate = evaluation->trained ? vd_evaluate : NULL,
        .evaluation = evaluation};
    vd_stop_line("stopped before a step was done; `%s` goes on", vd_command_line());
    status = vd_run_one(&run, err);
    const vd_run_result *result = &run.result;
    if (status == VD_OK)
        status = vd_config_save(dir, loaded, err);
    vd_score score;
    if (status == VD_OK && t->evaluates)
        status = read_score(dir, &result->final_state, &score, err);
    if (status != VD_OK)
        return status;
    if (result->resumed_at == result->steps)
        fprintf(stderr, "%s holds this run, finished: nothing was executed\n", dir);
    else if (result->resumed_at)
        fprintf(stderr, "went on from the checkpoint at step %lld\n",
                (long long)result->resumed_at);
    vd_print_result(result, loaded, common, backend, t->evaluates ? &score : NULL);
    if (backend && !common->json)
        vd_print_rounded(backend, result);
    return VD_OK;
}

static vd_status run_prompts(const char *job, const vd_run_arguments *o, vd_loaded *loaded,
                             vd_err *err) {
    const uint32_t together = o->batch ? (uint32_t)o->batch : VD_TOGETHER;
    const vd_prompt_options options = {job, o->dir, o->fault, together, o->common};
    if (o->keep)
        return vd_fail(err, VD_ERR_USAGE, "--keep: %s has prompts, which keep what they need", job);
    return vd_run_prompts(&options, loaded, err);
}

vd_status vd_lead_run(const char *job, const vd_run_arguments *o, const vd_run_backend *backend,
                      const vd_run_processes *processes, vd_loaded *loaded, vd_err *err) {
    static vd_evaluation evaluation;
    int fd = -1; /* the directory, locked */
    uint32_t made = 0;
    vd_status status = take_dir(o->dir, &fd, &made, err);
    const bool prompts = status == VD_OK && vd_job_has_prompts(&loaded->job);
    if (prompts)
        status = run_prompts(job, o, loaded, err);
    if (status == VD_OK && !prompts)
        status = vd_evaluation_open(loaded, o->dir, &evaluation, err);
    if (status == VD_OK && !prompts)
        status = execute(job, o->dir, o, backend, processes, loaded, &evaluation, err);
    vd_evaluation_close(&evaluation);
    if (status != VD_OK)
        vd_drop_dirs(o->dir, made); /* removes what was made, unless files are in it */
    if (fd >= 0)
        close(fd);
    return status;
}
