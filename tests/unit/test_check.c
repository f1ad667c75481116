/* A state's file is hashed in blocks by several threads, with the same commitment as in memory. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verde/exec/check.h"
#include "verde/log/run.h"

/* Blocks have 1 MiB: tensors below, at and above one and several blocks, with whole and partial
 * last leaves. */
static const int64_t elements[] = {
    1, 255, 257, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5 << 18, 3 << 20, (3 << 20) + 256};
enum { LEAVES = sizeof elements / sizeof elements[0] };

typedef struct {
    char dir[64], path[1024];
    vd_leaf leaf[LEAVES];
    vd_program program;
    vd_state state;
    vd_run_log log;
    vd_exec exec;
    vd_check check;
    uint64_t done, total;
} fixture;

static void see(void *user, uint64_t done, uint64_t total) {
    fixture *f = user;
    cr_assert(done > f->done && done <= total);
    f->done = done;
    f->total = total;
}

static void begin(fixture *f, int threads) {
    const ro_options options = {.size = sizeof options, .threads = threads};
    vd_hash hash;
    *f = (fixture){.dir = "/tmp/verde-check-XXXXXX"};
    cr_assert(mkdtemp(f->dir) != NULL);
    cr_assert(ro_ctx_create(&options, &f->exec.ro) == RO_OK);
    f->state = (vd_state){.step = 7, .count = LEAVES, .tensor = calloc(LEAVES, sizeof(void *))};
    for (int i = 0; i < LEAVES; i++) {
        f->leaf[i].shape = (ro_shape){RO_F32, 1, {elements[i]}};
        uint32_t *word = f->state.tensor[i] = malloc((size_t)elements[i] * 4);
        for (int64_t k = 0; k < elements[i]; k++)
            word[k] = (uint32_t)(k * 2654435761u + (uint32_t)i);
    }
    f->program = (vd_program){.leaf = f->leaf, .leaf_count = LEAVES};
    memset(f->log.program.b, 0x11, VD_HASH_SIZE);
    f->exec.program = &f->program;
    cr_assert(vd_state_hash(NULL, &f->program, &f->log.program, &f->state, NULL, &hash, NULL) ==
              VD_OK);
    cr_assert(vd_run_log_put(&f->log, 7, &hash, NULL, NULL) == VD_OK);
    cr_assert(vd_store_save_state(f->dir, &f->program, &f->state, &hash, NULL) == VD_OK);
    vd_store_state_path(f->path, f->dir, &hash);
    f->check = (vd_check){f->dir, &f->exec, &f->log, see, f};
}

static void end(fixture *f) {
    unlink(f->path);
    rmdir(f->dir);
    vd_state_free(&f->state);
    vd_run_log_free(&f->log);
    ro_ctx_destroy(f->exec.ro);
}

static void flip(const fixture *f, uint64_t at) {
    uint8_t byte;
    int fd = open(f->path, O_RDWR);
    cr_assert(fd >= 0 && pread(fd, &byte, 1, (off_t)at) == 1);
    byte ^= 0x80;
    cr_assert(pwrite(fd, &byte, 1, (off_t)at) == 1);
    close(fd);
}

static vd_status check(fixture *f, vd_err *err) {
    f->done = 0;
    return vd_check_states(&f->check, 0, 1, err);
}

Test(check, blocks_give_the_commitment_of_the_tensors_in_memory) {
    for (int threads = 1; threads <= 3; threads += 2) {
        fixture f;
        vd_err err = {0};
        uint32_t index = 9;
        begin(&f, threads);
        cr_assert(vd_check_sizes(&f.check, &err) == VD_OK, "%s", err.text);
        cr_assert(check(&f, &err) == VD_OK, "%s", err.text);
        cr_assert(f.done == f.total && f.total == vd_state_bytes(&f.program));
        f.done = 0;
        cr_assert(vd_check_file(&f.check, f.path, &index, &err) == VD_OK && index == 0);
        end(&f);
    }
}

Test(check, a_flipped_bit_is_seen_at_both_ends_of_every_tensor_and_block) {
    fixture f;
    vd_err err = {0};
    begin(&f, 2);
    for (uint64_t i = 0, at = 0; i < LEAVES; at += (uint64_t)elements[i++] * 4) {
        const uint64_t size = (uint64_t)elements[i] * 4;
        const uint64_t places[] = {0, size - 1, size / 2, size > 4 << 20 ? 4 << 20 : 0};
        for (int k = 0; k < 4; k++) {
            flip(&f, at + places[k]);
            cr_assert(check(&f, &err) == VD_ERR_PEER, "tensor %d, byte %d", (int)i, (int)places[k]);
            cr_assert(strstr(err.text, "the bytes give") != NULL);
            flip(&f, at + places[k]);
        }
    }
    cr_assert(check(&f, &err) == VD_OK);
    end(&f);
}

Test(check, a_file_of_another_size_and_no_file_are_said) {
    fixture f;
    vd_err err = {0};
    begin(&f, 2);
    const off_t size = (off_t)vd_state_bytes(&f.program);
    cr_assert(truncate(f.path, size - 1) == 0);
    cr_assert(vd_check_sizes(&f.check, &err) == VD_ERR_PEER && check(&f, &err) == VD_ERR_PEER);
    cr_assert(truncate(f.path, size + 1) == 0);
    cr_assert(vd_check_sizes(&f.check, &err) == VD_ERR_PEER && check(&f, &err) == VD_ERR_PEER);
    cr_assert(unlink(f.path) == 0);
    cr_assert(vd_check_sizes(&f.check, &err) == VD_ERR_PEER && check(&f, &err) == VD_ERR_PEER);
    cr_assert(strstr(err.text, "No such file") != NULL);
    cr_assert(mkfifo(f.path, 0600) == 0);
    cr_assert(vd_check_sizes(&f.check, &err) == VD_ERR_PEER && check(&f, &err) == VD_ERR_PEER);
    end(&f);
}

Test(check, the_root_in_a_log_is_that_of_its_states) {
    fixture f;
    vd_err err = {0};
    vd_run_log log = {0};
    begin(&f, 1);
    char path[128];
    snprintf(path, sizeof path, "%s/run.json", f.dir);
    cr_assert(vd_store_save_log(f.dir, &f.log, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_store_load_log(f.dir, &log, &err) == VD_OK, "%s", err.text);
    vd_run_log_free(&log);
    vd_buf text = {0};
    cr_assert(vd_read_file(path, 1 << 20, &text, &err) == VD_OK);
    char *digit = memmem(text.data, text.size, "\"state\": \"", 10);
    digit[10] = digit[10] == '0' ? '1' : '0';
    cr_assert(vd_write_file(path, text.data, text.size, 0644, &err) == VD_OK);
    cr_assert(vd_store_load_log(f.dir, &log, &err) == VD_ERR_PEER);
    cr_assert(strstr(err.text, "damaged") != NULL && log.count == 0);
    vd_buf_free(&text);
    unlink(path);
    end(&f);
}

/* Replaces `from` by `to` in run.json, and reads it. */
static vd_status read_changed(const char *dir, const vd_buf *whole, const char *from,
                              const char *to, vd_err *err) {
    char path[128];
    vd_buf text = {0};
    vd_run_log log = {0};
    const uint8_t *at = memmem(whole->data, whole->size, from, strlen(from));
    cr_assert(at != NULL, "no %s", from);
    const size_t before = (size_t)(at - whole->data), after = before + strlen(from);
    vd_put(&text, whole->data, before);
    vd_put(&text, to, strlen(to));
    vd_put(&text, whole->data + after, whole->size - after);
    snprintf(path, sizeof path, "%s/run.json", dir);
    cr_assert(vd_write_file(path, text.data, text.size, 0644, err) == VD_OK);
    vd_buf_free(&text);
    const vd_status status = vd_store_load_log(dir, &log, err);
    vd_run_log_free(&log);
    return status;
}

Test(check, a_member_of_another_type_or_out_of_range_is_no_log) {
    static const char *const change[][2] = {{"\"step\": 0", "\"step\": \"0\""},
                                            {"\"step\": 0", "\"step\": null"},
                                            {"\"step\": 0", "\"step\": -1"},
                                            {"\"losses\": 3", "\"losses\": \"3\""},
                                            {"\"losses\": 3", "\"losses\": -3"},
                                            {"\"losses\": 3", "\"losses\": 3.5"},
                                            {"\"loss_last\": 1.5", "\"last\": 1.5"},
                                            {"\"loss_last\": 1.5", "\"loss_last\": 1e300"},
                                            {"\"loss_last\": 1.5", "\"loss_last\": \"low\""},
                                            {"\"bits\": 16", "\"bits\": 4294967312"},
                                            {"\"lanes\": 4", "\"lanes\": 4294967300"},
                                            {"\"split\": 64", "\"split\": \"64\""}};
    fixture f;
    vd_err err = {0};
    vd_buf whole = {0};
    char path[128];
    begin(&f, 1);
    snprintf(path, sizeof path, "%s/run.json", f.dir);
    f.log.step[0] = 0;
    f.log.losses = 3;
    f.log.loss_first = f.log.loss_last = 1.5F;
    vd_log_kept *kept = f.log.of_backend = calloc(1, sizeof *kept);
    cr_assert(kept);
    f.log.backend = &vd_backend_log;
    kept->rounding.encoding = VD_LOG_CALLS;
    kept->rounding.bits = 16;
    kept->party.role = VD_TRAINER;
    kept->party.profile = (ro_profile){.size = sizeof(ro_profile), .lanes = 4, .split = 64};
    cr_assert(vd_store_save_log(f.dir, &f.log, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_read_file(path, 1 << 20, &whole, &err) == VD_OK);
    cr_assert(read_changed(f.dir, &whole, "\"bits\": 16", "\"bits\": 16", &err) == VD_OK, "%s",
              err.text);
    cr_assert(read_changed(f.dir, &whole, "\"loss_last\": 1.5", "\"loss_last\": \"-inf\"", &err) ==
                  VD_OK,
              "%s", err.text);
    for (size_t i = 0; i < sizeof change / sizeof *change; i++)
        cr_assert(read_changed(f.dir, &whole, change[i][0], change[i][1], &err) == VD_ERR_PEER,
                  "%s", change[i][1]);
    vd_buf_free(&whole);
    unlink(path);
    end(&f);
}

Test(check, a_log_of_many_empty_states_is_refused_before_it_takes_memory) {
    fixture f;
    vd_err err = {0};
    vd_buf text = {0};
    char path[128];
    begin(&f, 1);
    snprintf(path, sizeof path, "%s/run.json", f.dir);
    vd_printf(&text, "{\"states\":[{}");
    for (int i = 0; i < 10000; i++)
        vd_put(&text, ",{}", 3);
    vd_put(&text, "]}\n", 3);
    cr_assert(vd_write_file(path, text.data, text.size, 0644, &err) == VD_OK);
    vd_run_log log;
    cr_assert(vd_store_load_log(f.dir, &log, &err) == VD_ERR_PEER);
    cr_assert(strstr(err.text, "elements of JSON") != NULL, "%s", err.text);
    vd_buf_free(&text);
    unlink(path);
    end(&f);
}
