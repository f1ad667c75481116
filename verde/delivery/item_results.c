/* This file writes the file of a job's results, and answers requests from it. */
#include "verde/delivery/item_results.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/commit/json.h"
#include "verde/exec/state_proof.h"

/* The file: this head, u64 count, the run roots, count + 1 offsets (u64) where records begin and
 * the last one ends, the records. */
static const char magic[16] = "verde items 1";
enum { HEAD = sizeof magic + 8 };

/* ---- making ---- */

static vd_status put_record(const vd_state_proof *proof, const vd_state *state, vd_writer *to,
                            uint64_t *size, vd_err *err) {
    const vd_program *p = &proof->program;
    vd_status status = vd_writer_put(to, proof->tensor, p->leaf_count * sizeof *proof->tensor, err);
    if (status == VD_OK)
        status = vd_writer_put(to, proof->path.path, proof->path.length * VD_HASH_SIZE, err);
    for (uint32_t i = 0; status == VD_OK && i < p->leaf_count; i++) {
        const ro_shape *shape = &p->leaf[i].shape;
        const size_t bytes = vd_shape_bytes(shape);
        void *copy = NULL;
        if (!vd_is_result_leaf(&p->leaf[i]))
            continue;
        const void *little =
            vd_to_little(state->tensor[i], bytes, ro_dtype_size(shape->dtype), &copy);
        status = little ? vd_writer_put(to, little, bytes, err)
                        : vd_fail(err, VD_ERR_LOCAL, "out of memory");
        free(copy);
    }
    *size += vd_item_record_bytes(p);
    return status;
}

static vd_status prove_state(ro_ctx *ro, const vd_exec *exec, const vd_run_log *log,
                             const vd_state *state, vd_state_proof *out, vd_err *err) {
    vd_hash found, *tensor = calloc((size_t)exec->program->leaf_count + 1, sizeof *tensor);
    vd_status status = tensor ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK)
        status = vd_state_hash(ro, exec->program, &log->program, state, tensor, &found, err);
    if (status == VD_OK)
        status = vd_state_proof_make(exec, log, log->count - 1, tensor, out, err);
    free(tensor);
    return status;
}

static vd_status load_item(ro_ctx *ro, const char *dir, vd_program *program, vd_run_log *log,
                           vd_state *state, vd_err *err) {
    vd_status status = vd_store_program(dir, program, err);
    if (status == VD_OK)
        status = vd_store_load_log(dir, log, err);
    if (status == VD_OK && log->count != vd_run_leaves(program))
        status = vd_fail(err, VD_ERR_USAGE, "%s: the run is not finished", dir);
    return status == VD_OK ? vd_store_load_state(ro, dir, program, &log->program, program->steps,
                                                 &log->state[log->count - 1], state, err)
                           : status;
}

static vd_status put_item(ro_ctx *ro, const char *dir, vd_writer *to, uint64_t *size, vd_err *err) {
    vd_program program = {0};
    vd_run_log log = {.count = 0};
    vd_state state = {0};
    vd_state_proof proof = {.step = 0};
    vd_exec exec = {.program = &program};
    vd_status status = load_item(ro, dir, &program, &log, &state, err);
    if (status == VD_OK && log.fault[0])
        status = vd_fault_parse(log.fault, &program, &exec.fault, err);
    if (status == VD_OK)
        status = prove_state(ro, &exec, &log, &state, &proof, err);
    if (status == VD_OK)
        status = put_record(&proof, &state, to, size, err);
    vd_state_proof_free(&proof);
    vd_state_free(&state);
    vd_run_log_free(&log);
    vd_program_free(&program);
    return status;
}

static vd_status record_sizes(const char *dir, const vd_items *items, vd_buf *head, vd_err *err) {
    uint64_t at = HEAD + (uint64_t)items->count * (VD_HASH_SIZE + 8) + 8;
    vd_status status = VD_OK;
    vd_put(head, magic, sizeof magic);
    vd_put_u64(head, items->count);
    vd_put(head, items->run_root, items->count * sizeof *items->run_root);
    vd_put_u64(head, at);
    for (uint32_t i = 0; status == VD_OK && i < items->count; i++) {
        char path[1024];
        vd_program program = {0};
        vd_items_path(path, dir, items->key[i]);
        status = vd_store_program(path, &program, err);
        if (status == VD_OK && vd_item_record_bytes(&program) > VD_ITEM_RECORD_MAX)
            status = vd_fail(err, VD_ERR_USAGE,
                             "%s: a result of more than %d bytes, which is not handed out", path,
                             VD_ITEM_RECORD_MAX);
        if (status == VD_OK)
            vd_put_u64(head, at += vd_item_record_bytes(&program));
        vd_program_free(&program);
    }
    return status == VD_OK && !vd_buf_ok(head) ? vd_fail(err, VD_ERR_LOCAL, "out of memory")
                                               : status;
}

vd_status vd_item_results_write(ro_ctx *ro, const char *dir, const vd_items *items,
                                const char *path, vd_err *err) {
    vd_writer to = {0};
    vd_buf head = {0};
    uint64_t size = 0;
    vd_status status = record_sizes(dir, items, &head, err);
    if (status == VD_OK)
        status = vd_writer_open(&to, path, 0644, err);
    if (status != VD_OK) {
        vd_buf_free(&head);
        return status;
    }
    status = vd_writer_put(&to, head.data, head.size, err);
    for (uint32_t i = 0; status == VD_OK && i < items->count; i++) {
        char run[1024];
        vd_items_path(run, dir, items->key[i]);
        status = put_item(ro, run, &to, &size, err);
    }
    if (status == VD_OK)
        status = vd_writer_commit(&to, err);
    vd_writer_abort(&to);
    vd_buf_free(&head);
    return status;
}

/* ---- answering ---- */

static void refuse(vd_response *response, int status, const char *why) {
    json_t *object = json_pack("{ss}", "error", why);
    vd_buf_free(&response->body);
    response->status = object && vd_json_dump(object, &response->body) ? status : 500;
    response->content_type = "application/json";
    json_decref(object);
}

/* Appends `size` bytes of the file, from `at` on. */
static bool read_part(int fd, uint64_t at, uint64_t size, vd_buf *out) {
    uint8_t part[1 << 16];
    while (size > 0) {
        const size_t wish = size < sizeof part ? (size_t)size : sizeof part;
        const ssize_t got = pread(fd, part, wish, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        vd_put(out, part, (size_t)got);
        at += (uint64_t)got;
        size -= (uint64_t)got;
    }
    return vd_buf_ok(out);
}

static bool read_number(int fd, uint64_t at, uint64_t *out) {
    vd_buf bytes = {0};
    const bool read = read_part(fd, at, 8, &bytes);
    vd_cursor c = vd_cursor_of(bytes.data, bytes.size);
    *out = vd_get_u64(&c);
    vd_buf_free(&bytes);
    return read;
}

/* Finds where the record of item `first` begins and ends. */
static bool find_record(int fd, uint64_t count, uint64_t first, uint64_t *from, uint64_t *end) {
    const uint64_t table = HEAD + count * VD_HASH_SIZE;
    return read_number(fd, table + 8 * first, from) &&
           read_number(fd, table + 8 * first + 8, end) && *end >= *from &&
           *end - *from <= VD_ITEM_RECORD_MAX;
}

/* Reads the record `first`, and further ones while all fit into an answer. Nothing, if the first is
 * so large that it is sent in pieces. */
static bool read_records(int fd, uint64_t count, uint64_t first, vd_buf *out) {
    const uint64_t table = HEAD + count * VD_HASH_SIZE;
    uint64_t from, end, next;
    if (!find_record(fd, count, first, &from, &end))
        return false;
    if (end - from > VD_ITEM_PIECE_BYTES)
        return true;
    for (uint64_t i = first + 2; i <= count; i++) {
        if (!read_number(fd, table + 8 * i, &next))
            return false;
        if (next - from > VD_ITEM_ANSWER_BYTES)
            break;
        end = next;
    }
    return read_part(fd, from, end - from, out);
}

/* Reads a piece of a record; nothing, if the record has no such piece. */
static bool read_piece(int fd, uint64_t count, uint64_t item, uint64_t piece, vd_buf *out) {
    uint64_t from, end;
    if (!find_record(fd, count, item, &from, &end))
        return false;
    const uint64_t size = end - from, at = piece * VD_ITEM_PIECE_BYTES;
    if (at >= size)
        return true;
    return read_part(fd, from + at,
                     size - at < VD_ITEM_PIECE_BYTES ? size - at : VD_ITEM_PIECE_BYTES, out);
}

/* Parses an index below `count`, such as "/7", without leading zeros, and moves *text behind it. */
static bool read_index(const char **text, uint64_t count, uint64_t *out) {
    char *end, again[32];
    *out = strtoull(**text ? *text + 1 : *text, &end, 10);
    const int size = snprintf(again, sizeof again, "/%llu", (unsigned long long)*out);
    const bool right = strncmp(again, *text, (size_t)size) == 0 && end == *text + size;
    *text += right ? size : 0;
    return right && *out < count;
}

static bool answer_item(int fd, const char *which, uint64_t count, vd_response *response) {
    uint64_t item, piece;
    if (!read_index(&which, count, &item))
        return true;
    if (!*which)
        return read_records(fd, count, item, &response->body);
    return !read_index(&which, VD_ITEM_RECORD_MAX / VD_ITEM_PIECE_BYTES, &piece) || *which ||
           read_piece(fd, count, item, piece, &response->body);
}

static bool answer_from(int fd, const char *rest, vd_response *response) {
    uint64_t count;
    static const char items[] = "/items";
    const char *which = rest + sizeof items - 1;
    const bool named = strncmp(rest, items, sizeof items - 1) == 0;
    if (!read_number(fd, sizeof magic, &count) || count > VD_COLLECTION_ITEMS_MAX)
        return false;
    if (named && !*which)
        return read_part(fd, HEAD, count * VD_HASH_SIZE, &response->body);
    if (named && !answer_item(fd, which, count, response))
        return false;
    if (response->body.size)
        return true;
    refuse(response, 404,
           strncmp(rest, "/state", 6) == 0
               ? "a job with prompts has no state: fetch takes its job file (`verde fetch JOB`)"
               : "the job's results have nothing there");
    return true;
}

void vd_item_results_answer(const char *path, const char *rest, vd_response *response) {
    int fd;
    uint64_t size;
    if (vd_open_file(path, &fd, &size, NULL) != VD_OK) {
        refuse(response, 503, "trouble of this provider: its results cannot be read");
        return;
    }
    if (!answer_from(fd, rest, response))
        refuse(response, 503, "trouble of this provider: its results cannot be read");
    close(fd);
}
