/* This file downloads the results of a job with prompts, and writes their lines. */
#include "verde/client/fetching.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "verde/delivery/download_items.h"
#include "verde/run/out_dir.h"
#include "verde/tell/stop.h"

#define PART  "results.part"
#define PROOF "results.proof"
#define LINES "results.jsonl"

/* ---- the folder ---- */

vd_status vd_fetch_items_check(const char *out, bool force, vd_err *err) {
    vd_status status = vd_open_model_dir(out, err);
    /* a download that was stopped while renaming its files continues */
    const bool unfinished = vd_lies_in(out, PART) && !vd_lies_in(out, PROOF);
    if (status == VD_OK && !force && vd_lies_in(out, LINES) && !unfinished)
        status = vd_fail(err, VD_ERR_USAGE,
                         "%s/results.jsonl: exists already; give another name, or --force to "
                         "overwrite it",
                         out);
    return status;
}

static vd_status open_part(vd_fetching *x) {
    uint64_t size;
    snprintf(x->part, sizeof x->part, "%.900s/" PART, x->o->out);
    const vd_status status = vd_open_update(x->part, false, 0644, &x->fd, &size, x->err);
    if (status != VD_OK)
        return status;
    if (flock(x->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return vd_fail(x->err, VD_ERR_LOCAL, "%s: another `verde fetch` writes there", x->part);
    return VD_OK;
}

static vd_status write_part(vd_fetching *x, const void *bytes, size_t size) {
    const uint8_t *from = bytes;
    for (size_t have = 0; have < size;) {
        const ssize_t put = pwrite(x->fd, from + have, size - have, (off_t)(x->at + have));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return vd_fail(x->err, VD_ERR_LOCAL, "cannot write %s: %s", x->part, strerror(errno));
        have += (size_t)put;
    }
    return VD_OK;
}

/* ---- a record ---- */

static void tell(vd_fetching *x, uint32_t done) {
    enum { QUIET_S = 2 };
    const bool last = done == x->made.items.count;
    if (vd_tick(&x->ticker, QUIET_S, last))
        vd_tell_meanwhile(last, "fetched and checked %u of %u %s", done, x->made.items.count,
                          vd_prompt_word(x->made.job, x->made.items.count));
}

static vd_status take_record(void *user, uint32_t item, const void *bytes, size_t size,
                             size_t *used, vd_err *err) {
    vd_fetching *x = user;
    vd_buf line = {0};
    vd_status status = vd_item_line(&x->made, item, bytes, size, used, &line, err);
    if (status == VD_OK)
        status = write_part(x, bytes, *used);
    if (status == VD_OK)
        status = vd_writer_put(&x->lines, line.data, line.size, err);
    if (status == VD_OK) {
        x->at += *used;
        tell(x, item + 1);
    }
    vd_buf_free(&line);
    return status;
}

static vd_status size_of_record(void *user, uint32_t item, uint64_t *size, vd_err *err) {
    vd_fetching *x = user;
    return vd_item_line_size(&x->made, item, size, err);
}

/* ---- an earlier download ---- */

static vd_status take_roots(vd_fetching *x, const void *roots, bool *right) {
    vd_hash root;
    const vd_status status = vd_item_lines_roots(&x->made, roots, &root, x->err);
    *right = status == VD_OK && vd_hash_equal(&root, &x->o->run_root);
    return status;
}

static vd_status find_records(vd_fetching *x, const vd_map *file, uint32_t *next) {
    const uint32_t count = x->made.items.count;
    vd_status status = VD_OK;
    for (*next = 0; status == VD_OK && *next < count && x->at < file->size;) {
        vd_err why = {0};
        vd_buf line = {0};
        size_t used = 0;
        status = vd_item_line(&x->made, *next, file->data + x->at, file->size - x->at, &used, &line,
                              &why);
        if (status == VD_OK)
            status = vd_writer_put(&x->lines, line.data, line.size, &why);
        if (status != VD_OK && status != VD_ERR_PEER)
            vd_fail(x->err, status, "%s", why.text);
        vd_buf_free(&line);
        x->at += status == VD_OK ? used : 0;
        *next += status == VD_OK;
    }
    return status == VD_ERR_PEER ? VD_OK : status;
}

static vd_status find_part(vd_fetching *x, uint32_t *next, bool *found) {
    const uint64_t roots = VD_RESULTS_HEAD + (uint64_t)x->made.items.count * VD_HASH_SIZE;
    vd_map file = {0};
    *next = 0;
    *found = false;
    vd_status status = vd_map_file(x->part, &file, x->err);
    if (status == VD_OK && file.size >= roots) {
        status = vd_results_head_read(x->part, &file, x->err);
        if (status == VD_OK)
            status = take_roots(x, file.data + VD_RESULTS_HEAD, found);
        status = status == VD_ERR_PEER ? VD_OK : status; /* an invalid proof is written anew */
    }
    if (status == VD_OK && *found) {
        x->at = roots;
        status = find_records(x, &file, next);
        x->found = x->at;
    }
    vd_map_free(&file);
    if (status == VD_OK && ftruncate(x->fd, (off_t)x->at) != 0)
        status = vd_fail(x->err, VD_ERR_LOCAL, "cannot write %s: %s", x->part, strerror(errno));
    return status;
}

/* ---- all of it ---- */

static vd_status begin(vd_fetching *x) {
    const vd_fetch_options *o = x->o;
    char path[1100];
    vd_status status = vd_fetch_items_check(o->out, o->force, x->err);
    if (status == VD_OK)
        status = vd_item_lines_open(o->job, &x->made, x->err);
    x->made.dir = o->out;
    if (status == VD_OK && o->program && !vd_hash_equal(o->program, &x->made.collection))
        status =
            vd_fail(x->err, VD_ERR_PEER, "%s: is about other programs than the job", o->program_of);
    if (status == VD_OK)
        status = open_part(x);
    if (status == VD_OK)
        status = vd_fetch_download(x, 1, NULL);
    vd_stop_line("stopped; what is checked stays in %s, and `%s` goes on from there", x->part,
                 vd_command_line());
    snprintf(path, sizeof path, "%.900s/" LINES, o->out);
    if (status == VD_OK)
        status = vd_writer_open(&x->lines, path, 0644, x->err);
    x->writes = status == VD_OK;
    return status;
}

static vd_status get_roots(vd_fetching *x) {
    uint8_t head[VD_RESULTS_HEAD];
    vd_buf roots = {0};
    bool right;
    vd_status status =
        vd_download_item_roots(x->download, &x->o->run_root, x->made.items.count, &roots, x->err);
    if (status == VD_OK)
        status = take_roots(x, roots.data, &right);
    vd_results_head(head);
    if (status == VD_OK)
        status = write_part(x, head, sizeof head);
    x->at += status == VD_OK ? sizeof head : 0;
    if (status == VD_OK)
        status = write_part(x, roots.data, roots.size);
    x->at += status == VD_OK ? roots.size : 0;
    vd_buf_free(&roots);
    return status;
}

/* Names the files. A proof must never be beside lines of another download: the earlier proof is
 * deleted first, and the new one gets its name last. */
static vd_status finish(vd_fetching *x) {
    char path[1100];
    snprintf(path, sizeof path, "%.900s/" PROOF, x->o->out);
    if (fsync(x->fd) != 0 || (unlink(path) != 0 && errno != ENOENT))
        return vd_fail(x->err, VD_ERR_LOCAL, "cannot write %s: %s", path, strerror(errno));
    vd_status status = vd_sync_parent(path, x->err);
    if (status == VD_OK)
        status = vd_answers_finish(&x->made.answers, x->err);
    if (status == VD_OK)
        status = vd_writer_commit(&x->lines, x->err);
    if (status == VD_OK && rename(x->part, path) != 0)
        status = vd_fail(x->err, VD_ERR_LOCAL, "cannot write %s: %s", path, strerror(errno));
    return status == VD_OK ? vd_sync_parent(path, x->err) : status;
}

vd_status vd_fetch_items(vd_fetching *x) {
    uint32_t next = 0;
    bool found = false;
    const vd_record_taker taker = {take_record, size_of_record, x};
    vd_status status = begin(x);
    if (status == VD_OK)
        status = find_part(x, &next, &found);
    if (status == VD_OK && !found)
        status = get_roots(x);
    if (status == VD_OK)
        status = vd_download_records(x->download, next, x->made.items.count, &taker, x->err);
    return status == VD_OK ? finish(x) : status;
}

void vd_fetch_items_free(vd_fetching *x) {
    if (x->writes)
        vd_writer_abort(&x->lines);
    if (x->fd >= 0)
        close(x->fd);
    vd_item_lines_free(&x->made);
}

/* ---- the result ---- */

json_t *vd_fetch_items_json(const vd_fetching *x) {
    json_t *out = json_pack(
        "{ss so so sI sI sI sf so}", "dir", x->o->out, "job_root", vd_hash_text(&x->o->run_root),
        "collection", vd_hash_text(&x->made.collection), vd_prompt_word(x->made.job, 0),
        (json_int_t)x->made.items.count, "bytes", (json_int_t)x->at, "found", (json_int_t)x->found,
        "seconds", vd_seconds() - x->ticker.start, "providers", vd_fetch_providers(x));
    vd_score_json(&x->made.sum, out);
    return out;
}

void vd_fetch_items_text(vd_buf *out, const vd_fetching *x) {
    char size[32];
    vd_printf(out, "results      %s/%s, %u %s, every byte checked\n", x->o->out,
              x->made.answers.count ? VD_ANSWERS_FOLDER : "results.jsonl", x->made.items.count,
              vd_prompt_word(x->made.job, x->made.items.count));
    vd_score_text(out, &x->made.sum);
    vd_printf(out, "job root     %s, to which results.proof leads\n", x->root_text);
    vd_print_size(x->found, size);
    if (x->found)
        vd_printf(out, "were there   %s, from an earlier download\n", size);
}
