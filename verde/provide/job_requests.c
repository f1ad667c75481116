/* This file answers requests about jobs: their list, progress, losses, cancelling and deletion. */
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/delivery/delivery.h"
#include "verde/delivery/item_results.h"
#include "verde/exec/item_pack.h"
#include "verde/provide/internal.h"

enum { LINE_BYTES_MAX = 256 };

/* ---- describing a job ---- */

vd_job_progress vd_read_progress(const vd_daemon *daemon, const char *id) {
    char path[1200];
    vd_buf text = {0};
    char loss[32];
    vd_job_progress p = {.step = 0}, none = {.step = 0};
    vd_job_path(daemon, id, VD_JOB_PROGRESS, path);
    const bool read = vd_read_file(path, LINE_BYTES_MAX, &text, NULL) == VD_OK;
    vd_put_u8(&text, 0);
    if (!read || !vd_buf_ok(&text) ||
        sscanf((char *)text.data, "%lld %31s %lf %lld %u %u", &p.step, loss, &p.seconds,
               &p.resumed_at, &p.prompts_done, &p.prompts) != 6)
        p = none;
    else
        p.has_loss = sscanf(loss, "%lf", &p.loss) == 1 && p.step > 0 && !p.prompts;
    vd_buf_free(&text);
    return p;
}

/* Returns the number of programs of a job with a pack, else 0. */
static uint32_t job_prompts(const vd_daemon *daemon, const char *id) {
    char path[1200];
    uint8_t head[VD_PACK_HEAD_BYTES];
    vd_job_path(daemon, id, VD_JOB_PACK, path);
    int fd;
    uint64_t size;
    if (vd_open_file(path, &fd, &size, NULL) != VD_OK)
        return 0;
    const ssize_t got = read(fd, head, sizeof head);
    close(fd);
    return vd_pack_count(head, got < 0 ? 0 : (size_t)got);
}

/* Returns a loss as JSON; NaN and infinities, which JSON lacks, become text. */
static json_t *number(double value) {
    if (value - value == 0)
        return json_real(value);
    return json_string(value != value ? "nan" : value > 0 ? "inf" : "-inf");
}

static void put_progress(json_t *out, const vd_job_progress *p, const vd_job_record *job) {
    const double done = (double)(p->step - p->resumed_at);
    json_object_set_new(out, "step",
                        json_integer(job->state == VD_JOB_DONE ? job->steps : p->step));
    if (p->has_loss)
        json_object_set_new(out, "loss", number(p->loss));
    if (job->state != VD_JOB_RUNNING || done <= 0 || p->seconds <= 0)
        return;
    json_object_set_new(out, "rate", json_real(done / p->seconds));
    json_object_set_new(out, "seconds_left",
                        json_real(p->seconds / done * (double)(job->steps - p->step)));
}

static void put_prompts(json_t *out, const vd_job_progress *p, const vd_job_record *job,
                        uint32_t prompts) {
    if (!prompts)
        return;
    json_object_set_new(out, "prompts", json_integer(prompts));
    json_object_set_new(out, "prompts_done",
                        json_integer(job->state == VD_JOB_DONE ? prompts : p->prompts_done));
}

/* `client`: who asks. NULL, the operator, is also told whose job it is. */
static json_t *describe(const vd_daemon *daemon, const char *client, const vd_job_record *job) {
    const vd_job_progress p = vd_read_progress(daemon, job->id);
    json_t *out = json_pack("{ss ss ss ss sI sI sI}", "job", job->id, "name", job->name, "program",
                            job->program_hash, "state", vd_job_state_name(job->state), "steps",
                            (json_int_t)job->steps, "created", (json_int_t)job->created, "seconds",
                            (json_int_t)job->seconds);
    if (!out)
        return NULL;
    put_progress(out, &p, job);
    put_prompts(out, &p, job, job_prompts(daemon, job->id));
    if (job->state == VD_JOB_DONE)
        json_object_set_new(out, "run_root", json_string(job->run_root));
    if (job->final_state[0])
        json_object_set_new(out, "final_state", json_string(job->final_state));
    if (job->error[0])
        json_object_set_new(out, "error", json_string(job->error));
    if (!client)
        json_object_set_new(out, "client", json_string(job->client));
    return out;
}

typedef struct {
    const vd_daemon *daemon;
    const char *client;
    json_t *list;
} listing;

static bool add_job(void *user, const vd_job_record *job) {
    const listing *l = user;
    json_array_append_new(l->list, describe(l->daemon, l->client, job));
    return true;
}

void vd_serve_jobs(vd_daemon *daemon, const char *client, vd_response *response) {
    listing l = {daemon, client, json_array()};
    vd_err err = {0};
    if (vd_ledger_list_jobs(daemon->ledger, client, add_job, &l, &err) == VD_OK)
        vd_reply(response, 200, json_pack("{sO}", "jobs", l.list));
    else
        vd_reply_trouble(daemon, response, &err);
    json_decref(l.list);
}

/* ---- one job ---- */

/* Finds a job. False: `response` says why there is none. */
static bool find(vd_daemon *daemon, const char *client, const vd_route *route, vd_job_record *job,
                 vd_response *response) {
    vd_err err = {0};
    bool found = false;
    if (vd_ledger_get_job(daemon->ledger, client, route->id, job, &found, &err) != VD_OK)
        vd_reply_trouble(daemon, response, &err);
    else if (!found)
        vd_reply_error(response, 404, "%s has no job %s", client ? "this client" : "this provider",
                       route->id);
    return found;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *at) {
    (void)info, (void)kind, (void)at;
    return remove(path);
}

void vd_remove_job(const vd_daemon *daemon, const char *id) {
    char path[1200];
    vd_job_path(daemon, id, "", path);
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void cancel(vd_daemon *daemon, const char *client, vd_job_record *job,
                   vd_response *response) {
    vd_err err = {0};
    bool found = false;
    if (job->state > VD_JOB_RUNNING) {
        vd_reply_error(response, 409, "the job is %s already", vd_job_state_name(job->state));
    } else if (vd_ledger_cancel_job(daemon->ledger, job->id, &err) != VD_OK ||
               vd_ledger_get_job(daemon->ledger, NULL, job->id, job, &found, &err) != VD_OK) {
        vd_reply_trouble(daemon, response, &err);
    } else {
        vd_queue_wake(&daemon->queue);
        vd_reply(response, 200, describe(daemon, client, job));
    }
}

static void delete_job(vd_daemon *daemon, const vd_job_record *job, vd_response *response) {
    vd_err err = {0};
    if (job->state <= VD_JOB_RUNNING) {
        vd_reply_error(response, 409, "the job is %s: cancel it first",
                       vd_job_state_name(job->state));
    } else if (vd_ledger_delete_job(daemon->ledger, job->id, vd_unix_time(), &err) != VD_OK) {
        vd_reply_trouble(daemon, response, &err);
    } else {
        vd_answers_forget(&daemon->answers, job->id);
        vd_states_forget(&daemon->states, job->id);
        vd_remove_job(daemon, job->id);
        vd_reply(response, 200, json_pack("{sb}", "deleted", true));
    }
}

/* Takes the lock of submissions: another thread may be accepting the same job again. */
static void find_and_delete(vd_daemon *daemon, const char *client, const vd_route *route,
                            vd_response *response) {
    vd_job_record job;
    pthread_mutex_lock(&daemon->uploads.lock);
    if (find(daemon, client, route, &job, response))
        delete_job(daemon, &job, response);
    pthread_mutex_unlock(&daemon->uploads.lock);
}

void vd_serve_job(vd_daemon *daemon, const char *client, const vd_route *route,
                  const vd_request *request, vd_response *response) {
    vd_job_record job;
    if (!find(daemon, client, route, &job, response))
        return;
    if (request->body_size)
        vd_reply_error(response, 400, "the request has no body");
    else if (route->kind == VD_ROUTE_CANCEL)
        cancel(daemon, client, &job, response);
    else if (route->is_get)
        vd_reply(response, 200, describe(daemon, client, &job));
    else
        find_and_delete(daemon, client, route, response);
}

/* Responds with the losses of a running job. The child may be appending: what follows the last line
 * feed is cut off. */
static void give_losses(const vd_daemon *daemon, const char *id, vd_response *response) {
    char path[1200];
    vd_job_path(daemon, id, VD_JOB_RUN "/losses.jsonl", path);
    if (vd_read_file(path, VD_DELIVERED_LOSSES_MAX, &response->body, NULL) != VD_OK) {
        vd_reply_error(response, 404, "the job has no losses yet");
        return;
    }
    while (response->body.size && response->body.data[response->body.size - 1] != '\n')
        response->body.size--;
    response->content_type = "application/jsonl";
}

static void give_items(const vd_daemon *daemon, const char *id, const char *rest,
                       vd_response *response) {
    char path[1200];
    vd_job_path(daemon, id, VD_JOB_ITEMS, path);
    vd_item_results_answer(path, rest, response);
}

void vd_serve_state(vd_daemon *daemon, const char *client, const vd_route *route,
                    vd_response *response) {
    vd_job_record job;
    if (!find(daemon, client, route, &job, response))
        return;
    if (strcmp(route->rest, "/losses") == 0)
        give_losses(daemon, job.id, response);
    else if (job.state == VD_JOB_DONE && !job.final_state[0])
        give_items(daemon, job.id, route->rest, response);
    else if (job.state == VD_JOB_DONE)
        vd_states_answer(&daemon->states, daemon, job.id, route->rest, response);
    else
        vd_reply_error(response, 404, "the job is %s, and has no result",
                       vd_job_state_name(job.state));
}
