/* Whether the runs of a job with prompts are those of a job file, and those that a verdict accepts.
 */
#include <string.h>

#include "verde/cli/check_prompts.h"
#include "verde/cli/story.h"
#include "verde/exec/other_job.h"

/* Says in what the first run of another program differs. */
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

/* ---- against a verdict ---- */

static vd_status check_accepted(const char *verdict, const char *dir, const vd_hash *root,
                                const vd_outcome *o, vd_err *err) {
    char mine[2 * VD_HASH_SIZE + 1], accepted[2 * VD_HASH_SIZE + 1];
    vd_hex(root->b, VD_HASH_SIZE, mine);
    vd_hex(o->run_root.b, VD_HASH_SIZE, accepted);
    if (!o->accepted)
        return vd_fail(err, VD_ERR_PEER, "%s: accepts no result (%s)", verdict,
                       vd_result_name(o->result));
    return vd_hash_equal(&o->run_root, root)
               ? VD_OK
               : vd_fail(err, VD_ERR_PEER, "%s: accepts job root %s; %s has job root %s", verdict,
                         accepted, dir, mine);
}

vd_status vd_check_job_root(const vd_prompt_check_options *o, const vd_hash *collection,
                            const vd_hash *job_root, vd_err *err) {
    vd_verdict verdict = {0};
    if (!o->verdict)
        return VD_OK;
    vd_status status = vd_load_verdict(o->verdict, o->referee, false, &verdict, err);
    if (status == VD_OK && !vd_hash_equal(&verdict.program, collection))
        status = vd_fail(err, VD_ERR_PEER, "%s: is about another job than %s", o->verdict, o->dir);
    if (status == VD_OK)
        status = check_accepted(o->verdict, o->dir, job_root, &verdict.outcome, err);
    vd_verdict_free(&verdict);
    return status;
}
