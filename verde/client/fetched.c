/* This file keeps the files of a model that is being downloaded, until all are complete. */
#include "verde/client/fetched.h"
#include "verde/run/out_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Bytes of tensors in one file, as in transformers. */
#define SHARD_BYTES (UINT64_C(5) * 1000 * 1000 * 1000)
#define LOCK        "fetch.lock" /* marks the folder as ours */
#define LAID        "laid"

static vd_status fetch_errno(const char *what, const char *path, vd_err *err) {
    return vd_fail(err, VD_ERR_LOCAL, "cannot %s %s: %s", what, path, strerror(errno));
}

/* ---- the folder ---- */

static vd_status take_lock(vd_fetched *f, vd_err *err) {
    char path[1100];
    struct stat info;
    snprintf(path, sizeof path, "%s/" LOCK, f->partial);
    f->resumed = stat(path, &info) == 0;
    if (!f->resumed && rmdir(f->partial) != 0 && errno != ENOENT)
        return vd_fail(err, VD_ERR_USAGE, "%s: lies there, and is no unfinished download",
                       f->partial);
    vd_status status = vd_make_dir(f->partial, err);
    if (status != VD_OK)
        return status;
    uint64_t size;
    status = vd_open_update(path, false, 0644, &f->lock, &size, err);
    if (status != VD_OK)
        return status;
    if (flock(f->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return vd_fail(err, VD_ERR_LOCAL, "%s: another `verde fetch` writes there", f->partial);
    return VD_OK;
}

vd_status vd_fetched_check(const char *out, bool force, vd_err *err) {
    vd_status status = vd_open_model_dir(out, err);
    return status == VD_OK && !force && !vd_lies_in(out, "partial")
               ? vd_weights_clear(out, true, err)
               : status;
}

vd_status vd_fetched_begin(vd_fetched *f, vd_err *err) {
    f->lock = f->laid_fd = -1;
    vd_status status = vd_fetched_check(f->out, f->force, err);
    snprintf(f->partial, sizeof f->partial, "%.900s/partial", f->out);
    return status == VD_OK ? take_lock(f, err) : status;
}

vd_status vd_fetched_proof(vd_fetched *f, const vd_hash *run_root, bool *found, vd_err *err) {
    char path[1100];
    vd_err unread = {0};
    snprintf(path, sizeof path, "%s/proof.json", f->partial);
    vd_status status = vd_state_proof_read(path, &f->proof, &unread);
    *found = status == VD_OK && vd_hash_equal(&f->proof.run_root, run_root) &&
             f->proof.step == f->proof.program.steps;
    if (status == VD_OK && !*found)
        vd_state_proof_free(&f->proof);
    if (unread.status == VD_ERR_LOCAL && access(path, F_OK) == 0)
        return vd_fail(err, VD_ERR_LOCAL, "%s", unread.text);
    return VD_OK;
}

vd_status vd_fetched_keep_proof(const vd_fetched *f, const vd_buf *text, vd_err *err) {
    char path[1100];
    snprintf(path, sizeof path, "%s/proof.json", f->partial);
    return vd_write_file(path, text->data, text->size, 0644, err);
}

/* ---- the plan ---- */

static vd_status plan_tensors(vd_fetched *f, vd_err *err) {
    char program[2 * VD_HASH_SIZE + 1], root[2 * VD_HASH_SIZE + 1], step[24];
    vd_hex(f->proof.program_hash.b, VD_HASH_SIZE, program);
    vd_hex(f->proof.run_root.b, VD_HASH_SIZE, root);
    snprintf(step, sizeof step, "%lld", (long long)f->proof.step);
    const vd_weight_note note[] = {{"format", "pt"},
                                   {"verde.program", program},
                                   {"verde.step", step},
                                   {"verde.run_root", root}};
    const vd_weights_writing how = {.note = note,
                                    .note_count = 4,
                                    .adapter = vd_is_adapter(&f->proof.program),
                                    .shard_bytes = SHARD_BYTES};
    f->tensor = calloc((size_t)f->row_count + 1, sizeof *f->tensor);
    if (!f->tensor)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < f->row_count; i++)
        f->tensor[i] = (vd_weight_out){.form = f->row[i].form,
                                       .leaf = f->proof.program.leaf[f->row[i].leaf].shape,
                                       .layout = f->row[i].layout,
                                       .data = &f->row[i]};
    return vd_weights_plan_make(f->out, f->tensor, f->row_count, &how, &f->plan, err);
}

static void plan_target(vd_fetched *f, uint32_t file, uint32_t i) {
    const vd_export_row *row = f->tensor[i].data;
    vd_target *t = &f->target[i];
    *t = (vd_target){.leaf = row->leaf, .path = f->path[file], .at = f->plan.at[i]};
    if (row->layout == VD_LAYOUT_SAME)
        return;
    t->path = f->path[f->plan.file_count];
    t->at = f->laid_bytes;
    f->laid_bytes += vd_weight_bytes(&row->form);
}

static vd_status plan_targets(vd_fetched *f, vd_err *err) {
    const uint32_t files = f->plan.file_count;
    f->target = calloc((size_t)f->row_count + 1, sizeof *f->target);
    f->fd = calloc(files, sizeof *f->fd);
    f->path = calloc(files + 1, sizeof *f->path);
    if (!f->target || !f->fd || !f->path)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < files; i++) {
        f->fd[i] = -1;
        snprintf(f->path[i], sizeof *f->path, "%s/%s", f->partial, f->plan.file[i].name);
    }
    snprintf(f->path[files], sizeof *f->path, "%s/" LAID, f->partial);
    for (uint32_t i = 0; i < files; i++)
        for (uint32_t k = 0; k < f->plan.file[i].count; k++)
            plan_target(f, i, f->plan.file[i].first + k);
    return VD_OK;
}

/* ---- opening ---- */

static bool begins_with(const char *path, const vd_buf *header) {
    uint8_t *bytes = malloc(header->size);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    const bool same = bytes && fd >= 0 && read(fd, bytes, header->size) == (ssize_t)header->size &&
                      memcmp(bytes, header->data, header->size) == 0;
    if (fd >= 0)
        close(fd);
    free(bytes);
    return same;
}

/* Takes back a file that an earlier download had already given its name when it was stopped. */
static void take_back(const vd_fetched *f, uint32_t i) {
    char path[1100];
    snprintf(path, sizeof path, "%s/%s", f->out, f->plan.file[i].name);
    if (!f->resumed || access(f->path[i], F_OK) == 0 ||
        !begins_with(path, &f->plan.file[i].header) || rename(path, f->path[i]) != 0)
        return;
    snprintf(path, sizeof path, "%s/" VD_WEIGHTS_INDEX, f->out);
    unlink(path); /* the index was of these files */
}

/* Opens a partial file. *had: bytes that it already has. */
static vd_status open_partial(const char *path, uint64_t size, int *fd, uint64_t *had,
                              uint64_t *on_disk, vd_err *err) {
    struct stat info;
    uint64_t bytes;
    vd_status status = vd_open_update(path, false, 0644, fd, &bytes, err);
    if (status != VD_OK)
        return status;
    if (fstat(*fd, &info) != 0)
        return fetch_errno("open", path, err);
    *had = (uint64_t)info.st_size < size ? (uint64_t)info.st_size : size;
    *on_disk += (uint64_t)info.st_blocks * 512;
    if ((uint64_t)info.st_size > size && ftruncate(*fd, (off_t)size) != 0)
        return fetch_errno("shorten", path, err);
    return VD_OK;
}

static vd_status put_header(const vd_fetched *f, uint32_t i, vd_err *err) {
    const vd_buf *header = &f->plan.file[i].header;
    for (size_t at = 0; at < header->size;) {
        const ssize_t put = pwrite(f->fd[i], header->data + at, header->size - at, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return fetch_errno("write", f->path[i], err);
        at += (size_t)put;
    }
    return VD_OK;
}

static vd_status enough_room(const vd_fetched *f, uint64_t on_disk, vd_err *err) {
    uint64_t needed = f->laid_bytes;
    struct statvfs disk;
    char needs[32], left[32];
    for (uint32_t i = 0; i < f->plan.file_count; i++)
        needed += f->plan.file[i].size;
    needed -= on_disk < needed ? on_disk : needed;
    if (statvfs(f->out, &disk) != 0 ||
        (double)needed <= (double)disk.f_bavail * (double)disk.f_frsize)
        return VD_OK;
    vd_print_size(needed, needs);
    vd_print_size((uint64_t)((double)disk.f_bavail * (double)disk.f_frsize), left);
    return vd_fail(err, VD_ERR_LOCAL, "%s: needs %s more, and the disk has %s left", f->out, needs,
                   left);
}

static vd_status open_files(vd_fetched *f, vd_err *err) {
    const uint32_t files = f->plan.file_count;
    uint64_t on_disk = 0, had = 0;
    vd_status status = VD_OK;
    for (uint32_t i = 0; i < files && status == VD_OK; i++) {
        const vd_weights_file *file = &f->plan.file[i];
        take_back(f, i);
        status = open_partial(f->path[i], file->size, &f->fd[i], &had, &on_disk, err);
        for (uint32_t k = file->first; k < file->first + file->count && status == VD_OK; k++) {
            f->target[k].fd = f->fd[i];
            f->target[k].had = had;
        }
    }
    if (status == VD_OK && f->laid_bytes)
        status = open_partial(f->path[files], f->laid_bytes, &f->laid_fd, &had, &on_disk, err);
    for (uint32_t k = 0; k < f->row_count && status == VD_OK; k++)
        if (f->target[k].path == f->path[files]) {
            f->target[k].fd = f->laid_fd;
            f->target[k].had = had;
        }
    return status == VD_OK ? enough_room(f, on_disk, err) : status;
}

vd_status vd_fetched_open(vd_fetched *f, const vd_buf *config, vd_err *err) {
    vd_status status = vd_export_rows(&f->proof.program, config, &f->row, &f->row_count, err);
    if (status == VD_OK)
        status = plan_tensors(f, err);
    if (status == VD_OK)
        status = plan_targets(f, err);
    if (status == VD_OK)
        status = open_files(f, err);
    for (uint32_t i = 0; i < f->plan.file_count && status == VD_OK; i++)
        status = put_header(f, i, err);
    return status == VD_OK && !f->force ? vd_weights_clear(f->out, true, err) : status;
}

/* ---- the end ---- */

static vd_status lay_tensor(const vd_fetched *f, uint32_t file, uint32_t i, vd_err *err) {
    const vd_weight_out *t = &f->tensor[i];
    const size_t size = (size_t)vd_weight_bytes(&t->form);
    uint8_t *from = malloc(size), *to = malloc(size);
    vd_status status = from && to ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK && pread(f->laid_fd, from, size, (off_t)f->target[i].at) != (ssize_t)size)
        status = fetch_errno("read", f->target[i].path, err);
    if (status == VD_OK) {
        vd_layout_copy(t->layout, &t->leaf, from, to);
        if (pwrite(f->fd[file], to, size, (off_t)f->plan.at[i]) != (ssize_t)size)
            status = fetch_errno("write", f->path[file], err);
    }
    free(from);
    free(to);
    return status;
}

static vd_status end_file(const vd_fetched *f, uint32_t i, vd_err *err) {
    const vd_weights_file *file = &f->plan.file[i];
    vd_status status = VD_OK;
    for (uint32_t k = file->first; k < file->first + file->count && status == VD_OK; k++)
        if (f->tensor[k].layout != VD_LAYOUT_SAME)
            status = lay_tensor(f, i, k, err);
    if (status == VD_OK && fsync(f->fd[i]) != 0)
        status = fetch_errno("write", f->path[i], err);
    return status;
}

static vd_status name_file(const vd_fetched *f, uint32_t i, vd_err *err) {
    char path[1100];
    snprintf(path, sizeof path, "%s/%s", f->out, f->plan.file[i].name);
    return rename(f->path[i], path) == 0 ? VD_OK : fetch_errno("rename to", path, err);
}

/* Deletes the folder of incomplete files. All files in it were written by a fetch. */
static void remove_partial(const vd_fetched *f) {
    char path[1400];
    DIR *dir = opendir(f->partial);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", f->partial, entry->d_name);
        if (strcmp(entry->d_name, LOCK) != 0 && entry->d_name[0] != '.')
            unlink(path);
    }
    if (dir)
        closedir(dir);
    snprintf(path, sizeof path, "%s/" LOCK, f->partial); /* last, as it marks the folder as ours */
    unlink(path);
    rmdir(f->partial);
}

static vd_status clear_out(const vd_fetched *f, vd_err *err) {
    char path[1100];
    snprintf(path, sizeof path, "%s/proof.json", f->out);
    if (unlink(path) != 0 && errno != ENOENT)
        return fetch_errno("remove", path, err);
    return vd_weights_clear(f->out, false, err);
}

vd_status vd_fetched_finish(vd_fetched *f, bool has_config, vd_err *err) {
    char path[1100];
    vd_status status = VD_OK;
    for (uint32_t i = 0; i < f->plan.file_count && status == VD_OK; i++)
        status = end_file(f, i, err);
    if (status == VD_OK)
        status = clear_out(f, err);
    for (uint32_t i = 0; i < f->plan.file_count && status == VD_OK; i++)
        status = name_file(f, i, err);
    if (status == VD_OK)
        status = vd_weights_plan_index(&f->plan, f->out, err);
    if (status == VD_OK && has_config)
        status = vd_config_export(f->partial, f->out, false, err);
    snprintf(path, sizeof path, "%s/proof.json", f->out);
    if (status == VD_OK)
        status = vd_state_proof_write(&f->proof, path, err);
    if (status == VD_OK)
        remove_partial(f);
    return status;
}

void vd_fetched_abandon(const vd_fetched *f) {
    if (f->lock < 0 || f->resumed || f->plan.file)
        return;
    remove_partial(f);
    rmdir(f->out); /* fails if it holds anything else */
}

void vd_fetched_free(vd_fetched *f) {
    for (uint32_t i = 0; f->fd && i < f->plan.file_count; i++)
        if (f->fd[i] >= 0)
            close(f->fd[i]);
    if (f->laid_fd >= 0)
        close(f->laid_fd);
    if (f->lock >= 0)
        close(f->lock);
    free(f->fd);
    free(f->path);
    free(f->target);
    free(f->tensor);
    free(f->row);
    vd_weights_plan_free(&f->plan);
    vd_state_proof_free(&f->proof);
}
