/* Decides whether to accept a job: is everything there, and does it fit the limits? */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "verde/provide/submission.h"

/* ---- is everything there? ---- */

static bool find_missing(vd_submission *s) {
    json_t *missing = json_array();
    bool fine = missing != NULL;
    for (int i = 0; fine && s->blob[i]; i++) {
        vd_blob blob;
        fine =
            vd_ledger_find_blob(s->daemon->ledger, s->client, s->blob[i], &blob, &s->err) == VD_OK;
        if (fine && !blob.complete)
            json_array_append_new(missing, json_string(s->blob[i]));
    }
    if (!fine)
        vd_reply_trouble(s->daemon, s->response, &s->err);
    else if (json_array_size(missing) > 0)
        vd_reply(s->response, 409,
                 json_pack("{ss sO}", "error", "blobs that the job names have not been uploaded",
                           "missing", missing));
    fine = fine && json_array_size(missing) == 0;
    json_decref(missing);
    return fine;
}

static bool judge_program(vd_submission *s) {
    char path[1100];
    vd_uploads_path(&s->daemon->uploads, s->job.program, path);
    int64_t cpu_us;
    vd_err unwritten = {0};
    vd_status status = vd_judge(&s->daemon->options, path, s->packed ? VD_JUDGE_PACK : s->job.keep,
                                &s->program, &cpu_us, &s->err);
    vd_status charged = vd_ledger_charge_judging(s->daemon->ledger, s->client, cpu_us, &unwritten);
    if (status == VD_OK && charged != VD_OK)
        status = vd_fail(&s->err, charged, "%s", unwritten.text);
    if (status == VD_ERR_PEER)
        vd_reply_error(s->response, 422, "%s: %s", s->packed ? "pack" : "program", s->err.text);
    else if (status != VD_OK)
        vd_reply_trouble(s->daemon, s->response, &s->err);
    if (status != VD_OK)
        return false;
    vd_hex(s->program.program.b, VD_HASH_SIZE, s->job.program_hash);
    s->job.steps = s->program.steps;
    return true;
}

static bool check_data(vd_submission *s) {
    const vd_judgement *p = &s->program;
    if (json_array_size(s->data) != p->data_count) {
        vd_reply_error(s->response, 422, "the program%s %u data tensors, and `data` names %zu",
                       s->packed ? "s share" : " has", p->data_count, json_array_size(s->data));
        return false;
    }
    for (uint32_t i = 0; i < p->data_count; i++) {
        char path[1100];
        struct stat info;
        vd_uploads_path(&s->daemon->uploads, s->blob[i + 1], path);
        if (stat(path, &info) != 0 || (uint64_t)info.st_size != p->data_bytes[i]) {
            vd_reply_error(s->response, 422, "data %u must have %llu bytes", i,
                           (unsigned long long)p->data_bytes[i]);
            return false;
        }
    }
    return true;
}

/* ---- does it fit? ---- */

/* `option`: the daemon's option for this limit, so that a client can ask its operator for more. */
static bool over(vd_submission *s, const char *what, uint64_t wants, int64_t limit,
                 const char *option) {
    if (wants <= (uint64_t)limit)
        return false;
    vd_reply_error(s->response, 413, "the job takes %llu %s, and the limit is %lld (%s)",
                   (unsigned long long)wants, what, (long long)limit, option);
    return true;
}

/* A job that exceeds its time would only waste the machine, and one whose steps take longer than
 * referees wait would lose every dispute. */
static bool takes_too_long(vd_submission *s) {
    const vd_judgement *p = &s->program;
    const int64_t most = s->daemon->options.limits.job_seconds;
    if (p->step_ms > p->step_ms_max) {
        vd_reply_error(s->response, 413,
                       "a step of the job, or its initialisation, takes about %llu s by its "
                       "program, and a referee waits for no more than %llu (--cores says how fast "
                       "this provider is)",
                       (unsigned long long)(p->step_ms / 1000),
                       (unsigned long long)(p->step_ms_max / 1000));
        return true;
    }
    return most && over(s, "s by an estimate from its program", p->seconds, most, "--job-seconds");
}

/* Checks the client's jobs and seconds, also before its program is judged. */
static bool may_have_more(vd_submission *s, vd_usage *usage) {
    const vd_provide_limits *limits = &s->daemon->options.limits;
    if (vd_ledger_usage(s->daemon->ledger, s->client, usage, &s->err) != VD_OK) {
        vd_reply_trouble(s->daemon, s->response, &s->err);
        return false;
    }
    if (usage->jobs >= limits->client_jobs) {
        vd_reply_error(s->response, 429, "the limit of a client is %lld jobs at a time",
                       (long long)limits->client_jobs);
        return false;
    }
    if (limits->client_seconds && usage->seconds >= limits->client_seconds) {
        vd_reply_error(s->response, 403, "the limit of a client is %lld s of computing, all used",
                       (long long)limits->client_seconds);
        return false;
    }
    return true;
}

/* Checks the disk, less what other jobs have still to write. A job may use the space that uploads
 * leave free, so that uploads do not keep others from jobs, but not the ledger's reserve. */
static bool has_room(vd_submission *s) {
    const vd_daemon *daemon = s->daemon;
    struct statvfs disk;
    int64_t others;
    if (vd_ledger_unwritten(daemon->ledger, s->job.id, &others, &s->err) != VD_OK) {
        vd_reply_trouble(s->daemon, s->response, &s->err);
        return false;
    }
    if (statvfs(daemon->options.dir, &disk) != 0)
        return true;
    const uint64_t free = (uint64_t)disk.f_bavail * disk.f_frsize;
    const uint64_t taken = (uint64_t)others + VD_DISK_LEDGER;
    const uint64_t wants = s->program.disk - (s->written < s->program.disk ? s->written : 0);
    if (taken <= free && wants <= free - taken)
        return true;
    vd_reply_error(s->response, 507,
                   "this provider's disk has %llu bytes free, of which other jobs and the daemon "
                   "may take %llu, and the job takes %llu",
                   (unsigned long long)free, (unsigned long long)taken, (unsigned long long)wants);
    return false;
}

static bool fits(vd_submission *s) {
    const vd_provide_limits *limits = &s->daemon->options.limits;
    const uint64_t memory = s->program.memory, disk = s->program.disk;
    vd_usage usage;
    if (s->program.emits) {
        vd_reply_error(s->response, 422, "this provider takes no programs with rounding logs");
        return false;
    }
    if (!may_have_more(s, &usage) ||
        over(s, "bytes of memory", memory, limits->memory, "--memory") ||
        over(s, "bytes of disk", disk, limits->client_bytes, "--client-bytes") ||
        over(s, "bytes, with all that this client has here",
             disk + (uint64_t)usage.bytes - s->before, limits->client_bytes, "--client-bytes") ||
        takes_too_long(s) || !has_room(s))
        return false;
    s->job.memory = (int64_t)memory;
    s->job.disk = (int64_t)disk;
    return true;
}

/* ---- accepting ---- */

/* Writes the path of a data tensor in the job's own folder, which its child can read. */
static void data_path(const vd_submission *s, uint32_t i, char path[1200]) {
    char name[16 + VD_ID_SIZE];
    snprintf(name, sizeof name, VD_JOB_BLOBS "/%s", s->blob[i + 1]);
    vd_job_path(s->daemon, s->job.id, name, path);
}

static json_t *place_of(const vd_submission *s, uint32_t i) {
    char path[1200];
    data_path(s, i, path);
    return json_pack("{ss si}", "file", path, "offset", 0);
}

static vd_status write_data(vd_submission *s) {
    char path[1200];
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < s->program.data_count; i++)
        json_array_append_new(list, place_of(s, i));
    json_t *record = json_pack("{sO si}", "data", list, "verde", 1);
    char *text = record && json_array_size(list) == s->program.data_count
                     ? json_dumps(record, JSON_INDENT(1) | JSON_PRESERVE_ORDER)
                     : NULL;
    vd_job_path(s->daemon, s->job.id, VD_JOB_DATA, path);
    vd_status status = text ? vd_write_file(path, text, strlen(text), 0600, &s->err)
                            : vd_fail(&s->err, VD_ERR_LOCAL, "%s: out of memory", path);
    free(text);
    json_decref(record);
    json_decref(list);
    return status;
}

/* Hard-links a blob into the job's folder: it takes no space, even if it is needed twice. */
static vd_status link_blob(vd_submission *s, const char *blob, const char *path) {
    char from[1100];
    vd_uploads_path(&s->daemon->uploads, blob, from);
    return link(from, path) == 0 || errno == EEXIST
               ? VD_OK
               : vd_fail(&s->err, VD_ERR_LOCAL, "%s: %s", path, strerror(errno));
}

/* Makes the job's folder. It is complete before the ledger has the job. */
static vd_status make_folder(vd_submission *s) {
    static const char *const folders[] = {"", VD_JOB_RUN, VD_JOB_TOLD, VD_JOB_BLOBS};
    char path[1200];
    vd_status status = VD_OK;
    for (size_t i = 0; status == VD_OK && i < sizeof folders / sizeof folders[0]; i++) {
        vd_job_path(s->daemon, s->job.id, folders[i], path);
        status = vd_make_dir(path, &s->err);
    }
    vd_job_path(s->daemon, s->job.id, s->packed ? VD_JOB_PACK : VD_JOB_PROGRAM, path);
    if (status == VD_OK)
        status = link_blob(s, s->job.program, path);
    for (uint32_t i = 0; status == VD_OK && i < s->program.data_count; i++) {
        data_path(s, i, path);
        status = link_blob(s, s->blob[i + 1], path);
    }
    vd_job_path(s->daemon, s->job.id, VD_JOB_BLOBS, path);
    if (status == VD_OK && !vd_uploads_sync(path))
        status = vd_fail(&s->err, VD_ERR_LOCAL, "%s: %s", path, strerror(errno));
    return status == VD_OK ? write_data(s) : status;
}

static void accept_job(vd_submission *s) {
    s->job.created = vd_unix_time();
    vd_status status = make_folder(s);
    if (status == VD_OK)
        status = vd_ledger_put_job(s->daemon->ledger, &s->job, s->blob, s->referee, &s->err);
    if (status != VD_OK) {
        vd_reply_trouble(s->daemon, s->response, &s->err);
        return;
    }
    vd_queue_wake(&s->daemon->queue);
    vd_reply(s->response, 200, json_pack("{ss}", "job", s->job.id));
}

/* Answers a repeated submission. False: it is new, or failed or was cancelled and starts again. */
static bool find_job(vd_submission *s) {
    bool found = false;
    vd_job_record job;
    if (vd_ledger_get_job(s->daemon->ledger, s->client, s->job.id, &job, &found, &s->err) !=
        VD_OK) {
        vd_reply_trouble(s->daemon, s->response, &s->err);
    } else if (found && job.state == VD_JOB_RUNNING && job.cancel) {
        vd_reply_error(s->response, 503, "the job is being cancelled: ask again when it is");
    } else if (found && job.state <= VD_JOB_DONE) {
        vd_reply(s->response, 200, json_pack("{ss}", "job", s->job.id));
    } else {
        s->before = found ? (uint64_t)(job.disk > job.written ? job.disk : job.written) : 0;
        s->written = found ? (uint64_t)job.written : 0;
        return false;
    }
    return true;
}

void vd_submission_accept(vd_submission *s) {
    vd_usage usage;
    if (find_job(s) || !find_missing(s) || !may_have_more(s, &usage) || !judge_program(s))
        return;
    /* the lock keeps blobs from being collected, and the job from being deleted */
    pthread_mutex_lock(&s->daemon->uploads.lock);
    if (!find_job(s) && find_missing(s) && check_data(s) && fits(s))
        accept_job(s);
    pthread_mutex_unlock(&s->daemon->uploads.lock);
}
