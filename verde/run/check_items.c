/* This file checks that the runs of a job with prompts are those of a job file. */
#include <string.h>

#include "verde/exec/other_job.h"
#include "verde/run/checks.h"

/* Reports how the first run with another program differs from the job. */
static vd_status tell_other_job(const char *dir, const char *job, vd_loaded *loaded,
                                const vd_items *jobs, const vd_items *items, vd_err *err) {
    char run[1024], differences[256] = "";
    vd_program there = {0};
    vd_err unread = {0};
    uint32_t i = 0;
    if (jobs->count != items->count)
        return vd_fail(err, VD_ERR_PEER,
                       "%s: holds runs of another job than %s: %u prompt%s, not %u", dir, job,
                       items->count, vd_plural(items->count), jobs->count);
    while (vd_hash_equal(&jobs->program[i], &items->program[i]))
        i++;
    vd_items_path(run, dir, items->key[i]);
    if (vd_load_prompt(loaded, i, &unread) == VD_OK &&
        vd_store_program(run, &there, &unread) == VD_OK)
        vd_program_differences(&there, &loaded->program, differences, sizeof differences);
    vd_program_free(&there);
    return vd_fail(err, VD_ERR_PEER,
                   "%s: holds runs of another job than %s: prompt %u of the file (item %u), key "
                   "%lld%s%s",
                   dir, job, i + 1, i, (long long)items->key[i], differences[0] ? ": " : "",
                   differences);
}

vd_status vd_check_items_job(const char *dir, const char *job, const vd_items *items, vd_err *err) {
    vd_loaded loaded = {0};
    vd_items jobs = {0};
    vd_status status = vd_load_prompts(job, &loaded, err);
    if (status == VD_OK && !vd_job_has_prompts(&loaded.job))
        status = vd_fail(err, VD_ERR_PEER, "%s: has no prompts, which %s has runs of", job, dir);
    else if (status == VD_OK)
        status = vd_list_prompts(&loaded, &jobs, err);
    if (status == VD_OK &&
        (jobs.count != items->count ||
         memcmp(jobs.program, items->program, jobs.count * sizeof *jobs.program) != 0))
        status = tell_other_job(dir, job, &loaded, &jobs, items, err);
    vd_items_free(&jobs);
    vd_loaded_free(&loaded);
    return status;
}
