/* This file starts and stops the daemon, and dispatches its requests. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/protocol/limits.h"
#include "verde/provide/internal.h"

/* ---- requests ---- */

static size_t body_max(const vd_route *route, const vd_request *request) {
    if (route->kind == VD_ROUTE_ASK)
        return 2 * VD_QUESTION_BYTES_MAX;
    if (route->kind == VD_ROUTE_JOBS && strcmp(request->method, "POST") == 0)
        return VD_SUBMISSION_MAX;
    return route->kind == VD_ROUTE_BLOB && !route->is_get ? VD_CHUNK_MAX : 0;
}

static bool is_open(const vd_route *route) {
    return route->kind == VD_ROUTE_HEALTH || route->kind == VD_ROUTE_METRICS ||
           route->kind == VD_ROUTE_PROVIDER || route->kind == VD_ROUTE_ASK;
}

static bool judge(vd_daemon *daemon, const vd_request *request, vd_route *route,
                  vd_request_claim *claim, vd_response *response) {
    if (!vd_route_read(request, route, response))
        return false;
    if (request->body_size > body_max(route, request)) {
        vd_reply_error(response, 413, "the body has %zu bytes, and at most %zu are allowed here",
                       request->body_size, body_max(route, request));
        return false;
    }
    return is_open(route) || vd_authority_judge(daemon, request, route, claim, response);
}

/* Runs on the connections' thread, before a body is read. Questions, from keys not known yet, do
 * not count against the room for clients' bodies. */
static vd_head_screened screen_head(void *user, const vd_request *request, vd_response *response) {
    vd_daemon *daemon = user;
    vd_route route;
    vd_request_claim claim;
    if (judge(daemon, request, &route, &claim, response))
        return is_open(&route) ? VD_HEAD_PASSES : VD_HEAD_WAITS;
    atomic_fetch_add(&daemon->meter.refused, 1);
    return VD_HEAD_REFUSED;
}

/* Judging a submission's program may take most of a minute. Questions, during which a referee's
 * clock runs, must not wait for that. */
static vd_screened lane_of(const vd_route *route) {
    if (route->kind == VD_ROUTE_JOBS && !route->is_get)
        return VD_LASTS;
    return route->kind == VD_ROUTE_BLOB || route->kind == VD_ROUTE_STATE ? VD_READS : VD_WAITS;
}

/* Returns why signed requests get 503, or uploads and jobs 507; "ok": they do not. */
static const char *status_of(const vd_daemon *daemon) {
    return !vd_ledger_is_fine(daemon->ledger)          ? "no ledger"
           : !vd_disk_has_room(daemon->options.dir, 0) ? "disk full"
                                                       : "ok";
}

static vd_screened screen(void *user, const vd_request *request, uint8_t asker[VD_ASKER_SIZE],
                          vd_response *response) {
    vd_daemon *daemon = user;
    vd_route route;
    vd_request_claim claim = {.time = 0};
    atomic_fetch_add(&daemon->meter.requests, 1);
    if (!judge(daemon, request, &route, &claim, response)) {
        atomic_fetch_add(&daemon->meter.refused, 1);
        return VD_ANSWERED;
    }
    if (route.kind == VD_ROUTE_HEALTH) {
        const vd_confinement c = vd_confinement_here();
        vd_meter_health(c.files && c.calls, status_of(daemon), response);
        return VD_ANSWERED;
    }
    vd_asked asked = {.referee = claim.client};
    if (route.kind == VD_ROUTE_ASK && !vd_find_asked(daemon, request, &asked, response)) {
        atomic_fetch_add(&daemon->meter.refused, 1);
        return VD_ANSWERED;
    }
    memcpy(asker, asked.referee.b, VD_KEY_SIZE);
    return lane_of(&route);
}

static void dispatch(vd_daemon *daemon, const char *client, const vd_route *route,
                     const vd_request *request, vd_response *response) {
    switch (route->kind) {
    case VD_ROUTE_BLOB: vd_serve_blob(daemon, client, route, request, response); break;
    case VD_ROUTE_JOBS:
        if (route->is_get)
            vd_serve_jobs(daemon, client, response);
        else
            vd_serve_submission(daemon, client, request, response);
        break;
    case VD_ROUTE_JOB:
    case VD_ROUTE_CANCEL: vd_serve_job(daemon, client, route, request, response); break;
    case VD_ROUTE_STATE: vd_serve_state(daemon, client, route, response); break;
    default: vd_reply_error(response, 404, "no such path");
    }
}

/* Runs on a worker's thread. The request is judged again, now with its body. */
static void handle(void *user, const vd_request *request, vd_response *response) {
    vd_daemon *daemon = user;
    vd_route route;
    vd_request_claim claim = {.time = 0};
    char client[VD_ID_SIZE];
    if (!judge(daemon, request, &route, &claim, response))
        return;
    if (route.kind == VD_ROUTE_METRICS) {
        vd_serve_metrics(daemon, response);
    } else if (route.kind == VD_ROUTE_PROVIDER) {
        vd_serve_provider(daemon, response);
    } else if (route.kind == VD_ROUTE_ASK) {
        vd_serve_ask(daemon, request, response);
    } else if (vd_authority_judge_body(daemon, request, &claim, response)) {
        const bool all = vd_is_operator(daemon, &claim.client) && vd_is_of_operator(&route);
        vd_hex(claim.client.b, VD_KEY_SIZE, client);
        dispatch(daemon, all ? NULL : client, &route, request, response);
    }
}

/* ---- at the start ---- */

static bool job_is_known(vd_daemon *daemon, const char *id) {
    vd_job_record job;
    bool found = false;
    return vd_ledger_get_job(daemon->ledger, NULL, id, &job, &found, NULL) != VD_OK || found;
}

static bool blob_is_known(vd_daemon *daemon, const char *hash) {
    vd_blob blob;
    return vd_ledger_find_blob(daemon->ledger, "", hash, &blob, NULL) != VD_OK || blob.on_disk;
}

/* Returns true if the upload `name`, "CLIENT-HASH", is under way, or the ledger fails. */
static bool upload_is_known(vd_daemon *daemon, const char *name) {
    char client[VD_ID_SIZE];
    vd_blob blob;
    snprintf(client, sizeof client, "%s", name);
    return vd_ledger_find_blob(daemon->ledger, client, name + VD_ID_SIZE, &blob, NULL) != VD_OK ||
           (blob.size >= 0 && !blob.complete);
}

/* Returns true if the name is a hash, or for an upload two of them. */
static bool is_ours(const char *name, bool upload) {
    uint8_t bytes[32];
    char first[VD_ID_SIZE] = "";
    if (!upload)
        return vd_unhex(name, bytes, sizeof bytes);
    if (strlen(name) != 2 * VD_ID_SIZE - 1 || name[VD_ID_SIZE - 1] != '-')
        return false;
    memcpy(first, name, VD_ID_SIZE - 1);
    return vd_unhex(first, bytes, sizeof bytes) && vd_unhex(name + VD_ID_SIZE, bytes, sizeof bytes);
}

/* Deletes leftovers of a daemon that was killed: files that have no row in the ledger. */
static void sweep(vd_daemon *daemon, const char *name,
                  bool (*known)(vd_daemon *daemon, const char *id)) {
    char dir[1200], path[1500];
    snprintf(dir, sizeof dir, "%.1000s/%s", daemon->options.dir, name);
    DIR *list = opendir(dir);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        if (!is_ours(entry->d_name, known == upload_is_known) || known(daemon, entry->d_name))
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        if (known == job_is_known)
            vd_remove_job(daemon, entry->d_name);
        else
            unlink(path);
    }
    if (list)
        closedir(list);
}

static vd_status open_files(vd_daemon *daemon, vd_err *err) {
    char jobs[1200];
    const char *dir = daemon->options.dir;
    if (strlen(dir) > 900)
        return vd_fail(err, VD_ERR_USAGE, "%.60s...: path longer than 900 bytes", dir);
    vd_status status = vd_make_dir(dir, err);
    if (status == VD_OK)
        status = vd_ledger_open(dir, &daemon->ledger, err);
    if (status == VD_OK)
        status = vd_uploads_open(&daemon->uploads, dir, daemon->ledger, err);
    if (status == VD_OK)
        status = vd_states_open(&daemon->states, err);
    daemon->opened = status == VD_OK;
    if (status != VD_OK)
        return status;
    vd_job_path(daemon, "", "", jobs);
    status = vd_make_dir(jobs, err);
    if (status == VD_OK)
        status = vd_ledger_requeue(daemon->ledger, err);
    if (status != VD_OK)
        return status;
    sweep(daemon, "jobs", job_is_known);
    sweep(daemon, "blobs", blob_is_known);
    sweep(daemon, "uploads", upload_is_known);
    return VD_OK;
}

vd_status vd_daemon_create(const vd_daemon_options *options, vd_daemon **out, vd_err *err) {
    vd_daemon *daemon = calloc(1, sizeof *daemon);
    *out = NULL;
    if (!daemon)
        return vd_fail(err, VD_ERR_LOCAL, "no memory for the daemon");
    if (pthread_mutex_init(&daemon->trouble.lock, NULL) != 0) {
        free(daemon);
        return vd_fail(err, VD_ERR_LOCAL, "could not create a mutex");
    }
    daemon->options = *options;
    daemon->meter.started = vd_seconds();
    vd_key_public(options->key, &daemon->key);
    vd_hex(daemon->key.b, VD_KEY_SIZE, daemon->key_hex);
    const vd_server_options server = {.listen = options->listen,
                                      .cert_path = options->cert_path,
                                      .key_path = options->key_path,
                                      .screen = screen,
                                      .head_screen = screen_head,
                                      .read = handle,
                                      .lasting = handle,
                                      .writes = true,
                                      .request_max = VD_SUBMISSION_MAX,
                                      .bodies_max = VD_DAEMON_BODIES_MAX,
                                      .held_max = VD_DAEMON_HELD_MAX};
    vd_status status = open_files(daemon, err);
    if (status == VD_OK)
        status = vd_server_create(&server, handle, daemon, &daemon->server, err);
    if (status == VD_OK)
        *out = daemon;
    else
        vd_daemon_destroy(daemon);
    return status;
}

int vd_daemon_port(const vd_daemon *daemon) {
    return vd_server_port(daemon->server);
}

/* Tells the operator what a client's job could do if the kernel cannot confine it. */
static void tell_confinement(const vd_daemon *daemon) {
    const vd_confinement c = vd_confinement_here();
    if (!c.files)
        daemon->options.say(
            "verde provide: this kernel has no Landlock: jobs run as this user, and "
            "could open all that it may");
    if (!c.calls)
        daemon->options.say("verde provide: no filter of system calls here: jobs could open "
                            "connections");
}

vd_status vd_daemon_run(vd_daemon *daemon, vd_err *err) {
    tell_confinement(daemon);
    vd_status status = vd_queue_start(&daemon->queue, daemon, err);
    if (status == VD_OK)
        status = vd_server_run(daemon->server, err);
    vd_queue_stop(&daemon->queue);
    vd_answers_close(&daemon->answers);
    return status;
}

void vd_daemon_stop(vd_daemon *daemon) {
    vd_server_stop(daemon->server);
}

void vd_daemon_destroy(vd_daemon *daemon) {
    if (!daemon)
        return;
    vd_server_destroy(daemon->server);
    if (daemon->opened) {
        vd_states_close(&daemon->states);
        vd_uploads_close(&daemon->uploads);
    }
    vd_ledger_close(daemon->ledger);
    pthread_mutex_destroy(&daemon->trouble.lock);
    free(daemon);
}
