/* A job's data in several files, and 32-bit tokens. Must run in the project's root. */
#include "repops/op_movement.h"
#include "verde/commit/commit.h"
#include "verde/exec/exec.h"
#include "verde/job/job.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SEQUENCE = 8, HEADER = VD_TOKENS_HEADER_SIZE / 4, MOST = 100, VOCAB = 1000 };

static const char recipe[] =
    "verde: 1\n"
    "model: {kind: mlp, vocab: 1000, layers: 1, channels: 4, hidden: 4}\n"
    "data: {kind: tokens, %s,\n"
    "       sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}\n"
    "seed: 3\nbatch: 4\nsequence: 8\nsteps: 9\ncheckpoint_interval: 9\n"
    "optimizer: {kind: sgd, lr: 0.1, momentum: 0, nesterov: false, weight_decay: 0, clip_norm: 0}\n"
    "schedule: {kind: constant, warmup: 0}\n";

/* A directory of the test's own, and the files in it in the order in which they were written. */
typedef struct {
    char dir[64], path[8][100];
    int files;
    vd_sha *sha;
} place;

static place open_place(void) {
    place p = {.dir = "/tmp/verde-data-XXXXXX", .sha = vd_sha_create()};
    cr_assert(mkdtemp(p.dir) && p.sha);
    return p;
}

static void close_place(place *p) {
    while (p->files > 0)
        unlink(p->path[--p->files]);
    rmdir(p->dir);
    vd_sha_destroy(p->sha);
}

static uint32_t token_of(int file, uint32_t i) {
    return (uint32_t)(file * 101 + (int)i * 7) % VOCAB;
}

static void write_tokens(place *p, const char *name, uint32_t count, int bits) {
    vd_buf file = {0};
    char *path = p->path[p->files];
    vd_put_u32(&file, bits == 16 ? 20240520 : 20240801);
    vd_put_u32(&file, bits == 16 ? 1 : 7);
    vd_put_u32(&file, count);
    for (int i = 3; i < HEADER; i++)
        vd_put_u32(&file, 0);
    for (uint32_t i = 0; i < count; i++)
        bits == 16 ? vd_put_u16(&file, (uint16_t)token_of(p->files, i))
                   : vd_put_u32(&file, token_of(p->files, i));
    strcat(strcat(strcpy(path, p->dir), "/"), name);
    cr_assert(vd_write_file(path, file.data, file.size, 0644, NULL) == VD_OK);
    vd_sha_put(p->sha, file.data, file.size);
    vd_buf_free(&file);
    p->files++;
}

static vd_job job_of(const place *p, const char *data) {
    char text[2000], name[100];
    vd_job job;
    vd_err err = {0};
    snprintf(text, sizeof text, recipe, data);
    snprintf(name, sizeof name, "%s/job.yaml", p->dir);
    cr_assert(vd_job_parse(text, strlen(text), name, &job, &err) == VD_OK, "%s", err.text);
    return job;
}

/* Loads data with the SHA-256 of everything that was written. */
static vd_status load(place *p, const char *data, vd_job *job, vd_dataset *out, vd_err *err) {
    vd_hash digest;
    *job = job_of(p, data);
    cr_assert(vd_sha_finish(p->sha, &digest));
    memcpy(job->data_sha256, digest.b, sizeof digest.b);
    return vd_job_load_data(job, NULL, out, err);
}

static void expect_refused(place *p, const char *data, const char *why) {
    vd_job job;
    vd_dataset out;
    vd_err err = {.text = "accepted"};
    cr_expect(load(p, data, &job, &out, &err) == VD_ERR_USAGE);
    cr_expect(strstr(err.text, why), "expected \"%s\", got \"%s\"", why, err.text);
    cr_expect(!out.list && !out.file && job.training.data_count == 0);
}

static vd_hash program_hash(const vd_job *job, vd_program *out) {
    vd_hash hash;
    vd_err err = {0};
    cr_assert(vd_job_program(job, out, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_program_hash(out, &hash, &err) == VD_OK);
    return hash;
}

Test(job_data, tokens_of_32_bits_become_a_tensor_of_i32) {
    place p = open_place();
    vd_job job;
    vd_dataset data;
    vd_err err = {0};
    write_tokens(&p, "a.bin", MOST, 32);
    cr_assert(load(&p, "file: a.bin", &job, &data, &err) == VD_OK, "%s", err.text);
    cr_assert(data.count == 1 && data.list[0].offset == VD_TOKENS_HEADER_SIZE);
    cr_assert(job.training.data_dtype == RO_I32 && job.training.data_count == MOST);
    for (uint32_t i = 0; i < MOST; i++)
        cr_assert_eq(((int32_t *)data.list[0].tensor.data)[i], (int32_t)token_of(0, i));
    vd_dataset_free(&data);
    close_place(&p);
}

Test(job_data, files_become_tensors_in_the_order_of_the_list_or_of_their_names) {
    static const char *const list[] = {"files: [x_1.bin, x_2.bin, x_3.bin]", "files: [x_*.bin]",
                                       "files: ['x_[12].bin', x_3.bin]"};
    vd_hash hash[3];
    for (int i = 0; i < 3; i++) {
        place p = open_place();
        vd_job job;
        vd_dataset data;
        vd_program program;
        vd_err err = {0};
        write_tokens(&p, "x_1.bin", 50, 16);
        write_tokens(&p, "x_2.bin", 9, 16);
        write_tokens(&p, "x_3.bin", MOST, 16);
        cr_assert(load(&p, list[i], &job, &data, &err) == VD_OK, "%s: %s", list[i], err.text);
        cr_assert(data.count == 3 && job.training.shard_count == 2);
        hash[i] = program_hash(&job, &program);
        cr_assert_eq(program.data_count, 3);
        cr_expect_str_eq(program.data[2].tensor.name, "tokens.2");
        cr_expect_eq(program.data[2].tensor.shape.dim[0], MOST);
        cr_expect(vd_hash_equal(&hash[i], &hash[0]), "%s", list[i]);
        vd_program_free(&program);
        vd_dataset_free(&data);
        close_place(&p);
    }
}

Test(job_data, a_list_of_one_file_is_that_file) {
    vd_hash hash[2];
    for (int i = 0; i < 2; i++) {
        place p = open_place();
        vd_job job;
        vd_dataset data;
        vd_program program;
        vd_err err = {0};
        write_tokens(&p, "a.bin", 50, 16);
        cr_assert(load(&p, i ? "files: [a.bin]" : "file: a.bin", &job, &data, &err) == VD_OK);
        hash[i] = program_hash(&job, &program);
        vd_program_free(&program);
        vd_dataset_free(&data);
        close_place(&p);
    }
    cr_expect(vd_hash_equal(&hash[0], &hash[1]));
}

Test(job_data, files_that_do_not_go_together_are_refused) {
    place p = open_place();
    write_tokens(&p, "a.bin", 50, 16);
    write_tokens(&p, "b.bin", 50, 32);
    expect_refused(&p, "files: [a.bin, b.bin]", "b.bin: has tokens of type i32, and ");
    write_tokens(&p, "c.bin", 50, 16);
    expect_refused(&p, "files: [nothing*.bin]", "no file is like `nothing*.bin` of `data.files`");
    expect_refused(&p, "files: [a.bin, c.bin]", "but the 2 files of `data.files`, one after the");
    close_place(&p);
}

Test(job_data, a_file_without_a_window_is_refused) {
    place p = open_place();
    vd_job job;
    vd_dataset data;
    vd_program program;
    vd_err err = {0};
    write_tokens(&p, "a.bin", 50, 16);
    write_tokens(&p, "b.bin", SEQUENCE, 16);
    cr_assert(load(&p, "files: [a.bin, b.bin]", &job, &data, &err) == VD_OK, "%s", err.text);
    cr_expect(vd_job_program(&job, &program, &err) == VD_ERR_USAGE);
    cr_expect(strstr(err.text, "in each file, file 2 holds 8"), "%s", err.text);
    vd_dataset_free(&data);
    close_place(&p);
}

static void expect_range(const char *data, int bits, int64_t greatest) {
    place p = open_place();
    vd_job job;
    vd_dataset files;
    vd_program program;
    vd_err err = {0};
    write_tokens(&p, "a.bin", 50, bits);
    write_tokens(&p, "b.bin", MOST, bits);
    cr_assert(load(&p, data, &job, &files, &err) == VD_OK, "%s", err.text);
    /* As if the job had a vocabulary of greatest + 1. */
    job.training.model.vocab = greatest + 1;
    job.training.data_below = job.training.data_below == VOCAB ? greatest + 1 : 0;
    program_hash(&job, &program);
    for (int i = 0; i < 2; i++) {
        const vd_range *range = &program.data[i].range;
        const bool whole = bits == 16 && greatest >= UINT16_MAX;
        cr_expect(range->stated == !whole, "%s, %d bits, %lld", data, bits, (long long)greatest);
        cr_expect(whole || (range->least == 0 && range->greatest == greatest));
    }
    vd_program_free(&program);
    vd_dataset_free(&files);
    close_place(&p);
}

Test(job_data, programs_state_the_range_of_tokens) {
    expect_range("files: [a.bin, b.bin]", 16, VOCAB - 1);
    expect_range("files: [a.bin, b.bin]", 16, UINT16_MAX - 1);
    expect_range("files: [a.bin, b.bin]", 16, UINT16_MAX);
    expect_range("files: [a.bin, b.bin]", 32, UINT16_MAX);
}

typedef struct {
    const vd_graph *graph;
    const vd_dataset *data;
    int seen[2]; /* rows seen from each file */
} watch;

/* Finds the file from which each row was read: its windows start at multiples of SEQUENCE. */
static bool see_node(void *user, uint32_t node, const void *const *input, const void *output) {
    watch *w = user;
    const vd_node *n = vd_node_stored(w->graph, node);
    (void)input;
    if (n->op != RO_OP_READ_BATCH || n->attr[RO_READ_BATCH_SHIFT])
        return true;
    for (int64_t r = 0; r < n->shape.dim[0]; r++)
        for (int q = 0; q < 2; q++) {
            const uint16_t *token = w->data->list[q].tensor.data;
            const int64_t windows = (w->data->list[q].tensor.shape.dim[0] - 1) / SEQUENCE;
            for (int64_t i = 0; i < windows; i++) {
                bool same = true;
                for (int64_t t = 0; t < SEQUENCE; t++)
                    same &= ((const int32_t *)output)[r * SEQUENCE + t] == token[i * SEQUENCE + t];
                w->seen[q] += same;
            }
        }
    return true;
}

Test(job_data, an_epoch_reads_each_window_of_each_file_once) {
    place p = open_place();
    vd_job job;
    vd_dataset data;
    vd_program program;
    vd_state state;
    vd_err err = {0};
    write_tokens(&p, "a.bin", 12 * SEQUENCE + 1, 16);
    write_tokens(&p, "b.bin", 8 * SEQUENCE + 5, 16);
    cr_assert(load(&p, "files: ['?.bin']", &job, &data, &err) == VD_OK, "%s", err.text);
    program_hash(&job, &program);
    const void *tensor[] = {data.list[0].tensor.data, data.list[1].tensor.data};
    vd_exec exec = {.program = &program, .data = tensor};
    watch w = {&program.step, &data, {0, 0}};
    const vd_observer observer = {see_node, &w};
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &exec.ro) ==
              RO_OK);
    cr_assert(vd_exec_init(&exec, NULL, &state, &err) == VD_OK, "%s", err.text);
    for (int step = 0; step < 5; step++) /* four windows each: 20 in all, which are one epoch */
        cr_assert(vd_exec_step(&exec, &observer, &state, NULL, &err) == VD_OK, "%s", err.text);
    cr_expect(w.seen[0] == 12 && w.seen[1] == 8, "%d and %d", w.seen[0], w.seen[1]);
    vd_state_free(&state);
    ro_ctx_destroy(exec.ro);
    vd_program_free(&program);
    vd_dataset_free(&data);
    close_place(&p);
}

Test(job_data, a_file_is_found_by_an_address_in_it_while_it_is_mapped) {
    place p = open_place();
    vd_map map, small;
    vd_err err = {0};
    write_tokens(&p, "large.bin", VD_MAP_BYTES_MIN / 4, 32);
    write_tokens(&p, "small.bin", 4, 32);
    cr_assert(vd_map_file(p.path[0], &map, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_map_file(p.path[1], &small, &err) == VD_OK, "%s", err.text);
    const uint8_t *last = map.data + map.size - 1;
    cr_expect(map.mapped && !small.mapped && small.size == VD_TOKENS_HEADER_SIZE + 16);
    cr_assert(vd_map_at(last) && strcmp(vd_map_at(last), p.path[0]) == 0);
    cr_expect(!vd_map_at(last + 1) && !vd_map_at(small.data) && !vd_map_at(NULL));
    vd_map_free(&map);
    vd_map_free(&map); /* harmless */
    cr_expect(!vd_map_at(last));
    vd_map_free(&small);
    close_place(&p);
}

/* Returns whether the page of this address is in the process's memory: bit 63 of its entry in
 * Linux's pagemap. */
static bool is_present(const uint8_t *at) {
    const uint64_t page = (uintptr_t)at / (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t entry = 0;
    FILE *file = fopen("/proc/self/pagemap", "rb");
    cr_assert(file && fseek(file, (long)(8 * page), SEEK_SET) == 0);
    cr_assert(fread(&entry, sizeof entry, 1, file) == 1);
    fclose(file);
    return entry >> 63;
}

Test(job_data, mapped_bytes_that_are_passed_leave_memory_and_come_back) {
    place p = open_place();
    vd_map map;
    vd_err err = {0};
    write_tokens(&p, "large.bin", 6 * VD_MAP_BYTES_MIN / 4, 32);
    cr_assert(vd_map_file(p.path[0], &map, &err) == VD_OK, "%s", err.text);
    const uint8_t *at = map.data + 3 * VD_MAP_BYTES_MIN, *token = at + 24;
    const uint8_t before = *token;
    cr_expect(is_present(at));
    vd_map_pass(at, 1000);
    cr_expect(!is_present(at) || __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    cr_expect(*token == before && is_present(at));
    vd_map_pass(map.data, (size_t)map.size);
    cr_expect(*token == before);
    vd_map_pass(&before, 1); /* has no effect: not mapped from a file */
    vd_map_free(&map);
    close_place(&p);
}

/* Writes and maps files that end in the middle of a page. */
static void write_parts(place *p, vd_map *part, const uint8_t *bytes, const size_t *size,
                        int count) {
    vd_err err = {0};
    for (int i = 0; i < count; bytes += size[i++]) {
        snprintf(p->path[i], sizeof p->path[i], "%s/part-%d", p->dir, i);
        p->files++;
        cr_assert(vd_write_file(p->path[i], bytes, size[i], 0644, &err) == VD_OK, "%s", err.text);
        cr_assert(vd_map_file(p->path[i], &part[i], &err) == VD_OK, "%s", err.text);
    }
}

Test(job_data, files_are_joined_without_a_copy_in_memory_and_leave_no_file) {
    static const size_t size[3] = {3 * VD_MAP_BYTES_MIN + 3073, 5, 4 * VD_MAP_BYTES_MIN + 77};
    static uint8_t bytes[8 * VD_MAP_BYTES_MIN];
    const size_t all = size[0] + size[1] + size[2];
    place p = open_place();
    vd_map part[3], joined;
    vd_err err = {0};
    for (size_t i = 0; i < all; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 255);
    write_parts(&p, part, bytes, size, 3);
    cr_assert(setenv("TMPDIR", p.dir, 1) == 0);
    cr_assert(vd_map_join(part, 3, &joined, &err) == VD_OK, "%s", err.text);
    cr_assert(joined.size == all && joined.mapped);
    cr_expect(memcmp(joined.data, bytes, all) == 0);
    vd_map_pass(joined.data, all);
    cr_expect(!is_present(joined.data) || __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    cr_expect(memcmp(joined.data, bytes, all) == 0);
    cr_expect(access(joined.path, F_OK) != 0, "%s is left", joined.path);
    vd_map_free(&joined);
    cr_assert(setenv("TMPDIR", "/nowhere", 1) == 0);
    cr_expect(vd_map_join(part, 3, &joined, &err) != VD_OK && !joined.data && !joined.path);
    cr_expect(strstr(err.text, "cannot create (TMPDIR says where) /nowhere/verde-"), "%s",
              err.text);
    for (int i = 0; i < 3; i++)
        vd_map_free(&part[i]);
    close_place(&p);
}
