/* This file lets a child read a stranger's program, and tells its size and how long it takes. */
#include "verde/provide/judge.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verde/exec/backend.h"
#include "verde/exec/estimate.h"
#include "verde/exec/exec.h"
#include "verde/exec/item_pack.h"
#include "verde/provide/child.h"
#include "verde/provide/frames.h"

enum {
    REPLY_HEAD = 1 + VD_HASH_SIZE + 4 + 6 * 8 + 1 + 4,
    REPLY_MAX = REPLY_HEAD + 8 * VD_DATA_MAX,
};

void vd_judgement_free(vd_judgement *j) {
    free(j->data_bytes);
    *j = (vd_judgement){.steps = 0};
}

/* ---- in the child ---- */

static uint64_t disk_of(const vd_program *p, int64_t keep, uint64_t program_bytes) {
    const uint64_t leaves = vd_run_leaves(p);
    const uint64_t states = keep > 0 && (uint64_t)keep < leaves ? (uint64_t)keep + 1 : leaves + 1;
    uint64_t bytes;
    return __builtin_add_overflow(vd_estimate_disk(p, keep), vd_estimate_beside(p, program_bytes),
                                  &bytes)
               ? UINT64_MAX
               : vd_judge_disk(bytes, states, p->data_count);
}

static void put_judgement(const vd_judgement *j, vd_buf *out) {
    vd_put_u8(out, VD_OK);
    vd_put(out, j->program.b, VD_HASH_SIZE);
    vd_put_u32(out, j->items);
    vd_put_u64(out, (uint64_t)j->steps);
    vd_put_u64(out, j->memory);
    vd_put_u64(out, j->disk);
    vd_put_u64(out, j->seconds);
    vd_put_u64(out, j->step_ms);
    vd_put_u64(out, j->step_ms_max);
    vd_put_u8(out, j->emits);
    vd_put_u32(out, j->data_count);
    for (uint32_t i = 0; i < j->data_count; i++)
        vd_put_u64(out, j->data_bytes[i]);
}

static vd_status describe_program(const vd_program *p, int64_t keep, uint64_t program_bytes,
                                  vd_judgement *j, vd_err *err) {
    j->steps = p->steps;
    j->emits = vd_backend_of(p) != NULL;
    j->disk = disk_of(p, keep, program_bytes);
    j->data_count = p->data_count;
    j->data_bytes = calloc((size_t)p->data_count + 1, sizeof *j->data_bytes);
    if (!j->data_bytes)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < p->data_count; i++)
        j->data_bytes[i] = vd_shape_bytes(&p->data[i].tensor.shape);
    vd_status status = vd_trace_fits(p, err);
    if (status == VD_OK)
        status = vd_program_hash(p, &j->program, err);
    return status;
}

static vd_status judge_program(const char *path, int64_t keep, const vd_judge_machine *machine,
                               vd_judgement *j, bool *read, vd_err *err) {
    vd_buf bytes = {0};
    vd_program program = {0};
    vd_status status = vd_read_file(path, VD_PROGRAM_BYTES_MAX, &bytes, err);
    *read = status == VD_OK;
    if (status == VD_OK)
        status = vd_program_decode(bytes.data, bytes.size, &program, err);
    if (status == VD_OK)
        status = vd_refuse_experimental(&program, err);
    if (status == VD_OK)
        status = describe_program(&program, keep, bytes.size, j, err);
    if (status == VD_OK)
        status = vd_judge_estimate(&program, machine, j, err);
    vd_program_free(&program);
    vd_buf_free(&bytes);
    return status;
}

void vd_judge_file(const char *path, int64_t keep, const vd_judge_machine *machine, vd_buf *out) {
    vd_judgement j = {.items = 0};
    vd_err err = {0};
    bool read = true;
    vd_status status = keep == VD_JUDGE_PACK ? vd_judge_pack(path, machine, &j, &read, &err)
                                             : judge_program(path, keep, machine, &j, &read, &err);
    if (read && status == VD_ERR_LOCAL) /* of this machine's resources only memory is needed */
        status = vd_fail(&err, VD_ERR_PEER, "reading it takes more memory than is allowed");
    if (status == VD_OK) {
        put_judgement(&j, out);
    } else {
        vd_put_u8(out, (uint8_t)status);
        vd_put(out, err.text, strlen(err.text));
    }
    vd_judgement_free(&j);
}

/* ---- in the daemon ---- */

static vd_status read_refusal(vd_status said, const vd_buf *reply, vd_err *err) {
    const int size = (int)(reply->size < 400 ? reply->size : 400) - 1;
    const bool no_program = said == VD_ERR_PEER || said == VD_ERR_USAGE || said == VD_ERR_VERSION;
    return vd_fail(err, no_program ? VD_ERR_PEER : VD_ERR_LOCAL, "%.*s", size,
                   (const char *)reply->data + 1);
}

vd_status vd_judgement_read(const vd_buf *reply, vd_judgement *out, vd_err *err) {
    vd_cursor c = vd_cursor_of(reply->data, reply->size);
    const vd_status said = (vd_status)vd_get_u8(&c);
    *out = (vd_judgement){.steps = 0};
    if (said != VD_OK && !c.failed)
        return read_refusal(said, reply, err);
    const uint8_t *hash = vd_get(&c, VD_HASH_SIZE);
    out->items = vd_get_u32(&c);
    out->steps = (int64_t)vd_get_u64(&c);
    out->memory = vd_get_u64(&c);
    out->disk = vd_get_u64(&c);
    out->seconds = vd_get_u64(&c);
    out->step_ms = vd_get_u64(&c);
    out->step_ms_max = vd_get_u64(&c);
    out->emits = vd_get_u8(&c) != 0;
    out->data_count = vd_get_u32(&c);
    if (!hash || c.failed || out->data_count > VD_DATA_MAX || out->steps < 0 ||
        c.size - c.at != 8 * (size_t)out->data_count)
        return vd_fail(err, VD_ERR_LOCAL, "what reads programs makes no sense");
    memcpy(out->program.b, hash, VD_HASH_SIZE);
    out->data_bytes = calloc((size_t)out->data_count + 1, sizeof *out->data_bytes);
    if (!out->data_bytes)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < out->data_count; i++)
        out->data_bytes[i] = vd_get_u64(&c);
    return VD_OK;
}

vd_judge_time vd_judge_time_of(uint64_t bytes, uint32_t items) {
    /* Items of a pack are stored as differences, but each is read whole: so many items take the
     * time of the largest file. */
    enum { MANY = VD_PACK_ITEMS_MAX / 4 };
    const int64_t most = VD_PROGRAM_BYTES_MAX, by_items = items < MANY ? most / MANY * items : most;
    const int64_t by_bytes = bytes < most ? (int64_t)bytes : most;
    const int64_t read = by_bytes > by_items ? by_bytes : by_items;
    const int64_t ms =
        VD_JUDGE_BYTES_MS * read / most + (int64_t)VD_JUDGE_PACK_MS * items / VD_PACK_ITEMS_MAX;
    const int64_t cpu_s = VD_JUDGE_BYTES_CPU_S * read / most +
                          (int64_t)VD_JUDGE_PACK_CPU_S * items / VD_PACK_ITEMS_MAX;
    return (vd_judge_time){VD_JUDGE_MS + (int)ms, VD_JUDGE_CPU_S + cpu_s};
}

/* Finds the time to judge a file by its size and by how many items a pack claims, which is
 * limited. */
static vd_status find_time(const char *path, int64_t keep, vd_judge_time *out, vd_err *err) {
    vd_map file = {0};
    const vd_status status = vd_map_file(path, &file, err);
    if (status == VD_OK)
        *out = vd_judge_time_of(file.size,
                                keep == VD_JUDGE_PACK ? vd_pack_count(file.data, file.size) : 0);
    vd_map_free(&file);
    return status;
}

static vd_status start(const vd_daemon_options *options, const char *path, int64_t keep,
                       int64_t cpu_s, const int *fd, pid_t *pid, vd_err *err) {
    char *argv[VD_CHILD_ARGS_MAX], log[1200], parent[32], kept[32], limit[32];
    int count = 0;
    snprintf(log, sizeof log, "%.1000s/judge.log", options->dir);
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    snprintf(kept, sizeof kept, "%lld", (long long)keep);
    snprintf(limit, sizeof limit, "%lld", (long long)cpu_s);
    for (char *const *at = options->judge_argv; *at && count < VD_CHILD_ARGS_MAX - 5; at++)
        argv[count++] = *at;
    argv[count++] = parent;
    argv[count++] = (char *)(uintptr_t)path;
    argv[count++] = kept;
    argv[count++] = limit;
    argv[count] = NULL;
    return vd_child_start(argv, log, fd, 1, pid, err);
}

/* A judge that ends without a reply was stopped by the program that it read, or by this machine. */
static vd_status say_why(vd_status status, int ended, bool packed, vd_err *err) {
    const bool signalled = WIFSIGNALED(ended) && WTERMSIG(ended) != SIGKILL;
    if (status == VD_ERR_TIMEOUT || (signalled && WTERMSIG(ended) == SIGXCPU))
        return vd_fail(err, VD_ERR_PEER, "reading it takes longer than is allowed%s",
                       packed ? "; split the prompts among several jobs" : "");
    if (signalled)
        return vd_fail(err, VD_ERR_PEER, "what reads it was ended by signal %d (%s)",
                       WTERMSIG(ended), strsignal(WTERMSIG(ended)));
    return vd_fail(err, VD_ERR_LOCAL, "what reads programs ended without a word");
}

static int64_t us_of(const struct timeval *time) {
    return (int64_t)time->tv_sec * 1000000 + time->tv_usec;
}

vd_status vd_judge(const vd_daemon_options *options, const char *path, int64_t keep,
                   vd_judgement *out, int64_t *cpu_us, vd_err *err) {
    int fd[2], ended = 0;
    pid_t pid = 0;
    struct rusage took = {0};
    vd_buf reply = {0};
    vd_judge_time time = {0};
    *out = (vd_judgement){.steps = 0};
    *cpu_us = 0;
    vd_status status = find_time(path, keep, &time, err);
    if (status == VD_OK && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
        status = vd_fail(err, VD_ERR_LOCAL, "could not make sockets: %s", strerror(errno));
    if (status != VD_OK)
        return status;
    status = start(options, path, keep, time.cpu_s, &fd[1], &pid, err);
    close(fd[1]);
    if (status == VD_OK) {
        status = vd_frame_get(fd[0], REPLY_MAX, time.ms, &reply, err);
        if (status == VD_ERR_TIMEOUT || status == VD_OK)
            kill(pid, SIGKILL);
        wait4(pid, &ended, 0, &took);
        *cpu_us = us_of(&took.ru_utime) + us_of(&took.ru_stime);
        status = status == VD_OK ? vd_judgement_read(&reply, out, err)
                                 : say_why(status, ended, keep == VD_JUDGE_PACK, err);
    }
    close(fd[0]);
    vd_buf_free(&reply);
    return status;
}
