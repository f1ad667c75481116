/* This file prints the jobs of a provider, as a table or as JSON. */
#include "verde/cli/jobs_list.h"
#include "verde/cli/cli.h"

#include <math.h>
#include <time.h>

static void print_done(const vd_remote_job *job, char text[48]) {
    if (job->prompts)
        snprintf(text, 48, "%lld/%lld prompts", (long long)job->prompts_done,
                 (long long)job->prompts);
    else
        snprintf(text, 48, "%lld/%lld", (long long)job->step, (long long)job->steps);
}

static void print_entry(const vd_remote_entry *e, bool all) {
    char done[48], left[32] = "-", took[32], when[32] = "-", who[16] = "";
    const time_t created = (time_t)e->created;
    struct tm local;
    print_done(&e->job, done);
    if (!isnan(e->job.seconds_left))
        vd_print_seconds(e->job.seconds_left, left);
    vd_print_seconds((double)e->seconds, took);
    if (localtime_r(&created, &local))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M", &local);
    if (all)
        snprintf(who, sizeof who, "%.8s  ", e->client);
    printf("%.*s  %-9s  %16s  %10s  %10s  %-16s  %s%s\n", VD_JOB_SHOWN, e->id,
           vd_remote_state_name(e->job.state), done, left, took, when, who, e->name);
    if (e->job.error[0])
        printf("%*s%s\n", VD_JOB_SHOWN + 2, "", e->job.error);
}

void vd_jobs_text(const vd_remote_entry *entry, uint32_t count) {
    const bool all = count && entry[0].client[0]; /* only the operator is told of clients */
    if (count == 0) {
        printf("no job is there\n");
        return;
    }
    printf("%-*s  %-9s  %16s  %10s  %10s  %-16s  %s%s\n", VD_JOB_SHOWN, "job", "state", "done",
           "time left", "computed", "submitted", all ? "client    " : "", "name");
    for (uint32_t i = 0; i < count; i++)
        print_entry(&entry[i], all);
}

static json_t *number_or_null(double value) {
    return isnan(value) ? json_null() : json_real(value);
}

static json_t *entry_json(const vd_remote_entry *e) {
    const vd_remote_job *job = &e->job;
    json_t *out = json_pack("{ss ss ss sI sI so so sI sI}", "job", e->id, "name", e->name, "state",
                            vd_remote_state_name(job->state), "step", (json_int_t)job->step,
                            "steps", (json_int_t)job->steps, "loss", number_or_null(job->loss),
                            "seconds_left", number_or_null(job->seconds_left), "created",
                            (json_int_t)e->created, "seconds", (json_int_t)e->seconds);
    if (job->prompts) {
        json_object_set_new(out, "prompts", json_integer(job->prompts));
        json_object_set_new(out, "prompts_done", json_integer(job->prompts_done));
    }
    if (job->state == VD_REMOTE_DONE)
        json_object_set_new(out, "run_root", vd_hash_text(&job->run_root));
    if (job->error[0])
        json_object_set_new(out, "error", json_string(job->error));
    if (e->client[0])
        json_object_set_new(out, "client", json_string(e->client));
    return out;
}

json_t *vd_jobs_json(const vd_remote_entry *entry, uint32_t count) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(list, entry_json(&entry[i]));
    return list;
}
