/* DIR/checkpoints, beside run.json: the cost of one more checkpoint, and what is read after a kill
 * at any byte. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/exec/store.h"

static char dir[64], lines[96];

static void setup(void) {
    snprintf(dir, sizeof dir, "/tmp/verde-checkpoints-XXXXXX");
    cr_assert(mkdtemp(dir));
    snprintf(lines, sizeof lines, "%s/checkpoints", dir);
}

static void teardown(void) {
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    cr_expect(system(command) == 0);
}

TestSuite(checkpoints, .init = setup, .fini = teardown, .timeout = 120);

static vd_run_log new_log(void) {
    return (vd_run_log){.program = {{1, 2, 3}}};
}

/* The run moves from one machine to another, and the first state's machine is not stated. */
static vd_machine machine_of(int64_t step) {
    vd_machine m = {"host", "device", "GPU-1", "scalar", "1.2.3", 2};
    m.threads += step > 300;
    return m;
}

/* Adds a checkpoint of a step with its own loss. */
static void add(vd_run_log *log, bool last) {
    const int64_t step = log->count;
    const vd_hash state = {{(uint8_t)step, (uint8_t)(step >> 8), 7}};
    vd_err err = {0};
    log->losses = step;
    log->loss_first = 0.1f;
    log->loss_last = 1.0f / (float)(step + 3);
    const vd_machine machine = machine_of(step);
    cr_assert(vd_run_log_put(log, step, &state, NULL, &err) == VD_OK, "%s", err.text);
    if (step > 0)
        cr_assert(vd_run_log_state(log, &machine, 1000 + step, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_store_add_checkpoint(dir, log, last, &err) == VD_OK, "%s", err.text);
}

static void expect_same(const vd_run_log *log, uint32_t count) {
    vd_run_log back;
    vd_err err = {0};
    cr_assert(vd_store_load_log(dir, &back, &err) == VD_OK, "%s", err.text);
    cr_assert(back.count == count, "%u of %u", back.count, count);
    for (uint32_t i = 0; i < count; i++) {
        const vd_machine machine = machine_of(i);
        cr_assert(back.step[i] == log->step[i] && vd_hash_equal(&back.state[i], &log->state[i]));
        cr_assert(i == 0 ? back.stated[i].machine == -1
                         : back.stated[i].microseconds == 1000 + (int64_t)i &&
                               vd_machine_equal(&back.machine[back.stated[i].machine], &machine));
    }
    if (count == log->count)
        cr_expect(back.losses == log->losses && back.loss_first == log->loss_first &&
                  back.loss_last == log->loss_last);
    vd_run_log_free(&back);
}

/* Returns the bytes that this process has written so far; -1: this machine does not count them. */
static long long written(void) {
    char line[128];
    long long bytes = -1;
    FILE *file = fopen("/proc/self/io", "r");
    while (file && bytes < 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "wchar: %lld", &bytes) != 1)
            bytes = -1;
    if (file)
        fclose(file);
    return bytes;
}

static long long written_by(uint32_t count) {
    vd_run_log log = new_log();
    const long long before = written();
    for (uint32_t i = 0; i < count; i++)
        add(&log, i + 1 == count);
    const long long after = written();
    expect_same(&log, count);
    cr_expect(access(lines, F_OK) != 0, "a finished run has run.json alone");
    vd_run_log_free(&log);
    return after - before;
}

Test(checkpoints, a_checkpoint_writes_as_much_however_many_came_before) {
    enum { FEW = 80, MANY = 640 };
    if (written() < 0)
        cr_skip_test("no /proc/self/io that counts bytes");
    const long long few = written_by(FEW), many = written_by(MANY);
    cr_expect(many < few * (MANY / FEW) * 3 / 2, "%d write %lld bytes, %d write %lld", FEW, few,
              MANY, many);
    cr_expect(many < MANY * 1000LL, "%lld bytes each", many / MANY);
}

/* A job's disk usage is estimated by these counts. */
Test(checkpoints, files_have_no_more_bytes_than_are_counted) {
    enum { COUNT = 16 };
    char path[96];
    vd_run_log log = new_log();
    vd_buf whole = {0}, line = {0};
    const vd_hash state = {{7}};
    const vd_machine machine = machine_of(0);
    for (int i = 0; i < COUNT; i++)
        cr_assert(vd_run_log_put(&log, INT32_MAX, &state, NULL, NULL) == VD_OK &&
                  vd_run_log_state(&log, &machine, INT64_MAX, NULL) == VD_OK);
    log.loss_first = log.loss_last = -1.17549449e-38f;
    cr_assert(vd_store_save_log(dir, &log, NULL) == VD_OK);
    snprintf(path, sizeof path, "%s/run.json", dir);
    cr_assert(vd_read_file(path, 1 << 20, &whole, NULL) == VD_OK);
    cr_expect(whole.size <= COUNT * VD_RUN_STATE_BYTES + 1024, "%zu bytes", whole.size);
    cr_assert(vd_run_log_put(&log, INT32_MAX, &state, NULL, NULL) == VD_OK &&
              vd_run_log_state(&log, &machine, INT64_MAX, NULL) == VD_OK);
    cr_assert(vd_store_add_checkpoint(dir, &log, false, NULL) == VD_OK);
    cr_assert(vd_read_file(lines, 1 << 20, &line, NULL) == VD_OK);
    cr_expect(line.size > 200 && line.size <= VD_CHECKPOINT_BYTES - 8, "%zu bytes", line.size);
    vd_buf_free(&whole);
    vd_buf_free(&line);
    vd_run_log_free(&log);
}

Test(checkpoints, a_run_is_read_as_it_was_at_each) {
    vd_run_log log = new_log();
    for (uint32_t i = 1; i <= 40; i++) {
        add(&log, false);
        expect_same(&log, i);
    }
    vd_run_log_free(&log);
}

static vd_buf read_lines(void) {
    vd_buf text = {0};
    cr_assert(vd_read_file(lines, 1 << 20, &text, NULL) == VD_OK);
    return text;
}

static void write_lines(const void *text, size_t size) {
    FILE *file = fopen(lines, "w");
    cr_assert(file && fwrite(text, 1, size, file) == size && fclose(file) == 0);
}

/* Makes a log with 16 checkpoints in run.json, and 7 in lines beside it. */
static vd_run_log log_with_lines(void) {
    vd_run_log log = new_log();
    for (int i = 0; i < 23; i++)
        add(&log, false);
    cr_assert(log.saved == 16 && log.count == 23);
    return log;
}

Test(checkpoints, a_torn_end_is_left_out_wherever_it_is) {
    vd_run_log log = log_with_lines();
    vd_buf text = read_lines();
    for (size_t size = 0; size < text.size; size++) {
        uint32_t whole = 16;
        for (size_t i = 0; i < size; i++)
            whole += text.data[i] == '\n';
        write_lines(text.data, size);
        expect_same(&log, whole);
    }
    vd_buf_free(&text);
    vd_run_log_free(&log);
}

Test(checkpoints, a_changed_byte_is_seen) {
    vd_run_log log = log_with_lines(), back;
    vd_buf text = read_lines();
    const size_t last = text.size - text.size / 7 - 1; /* the line feed before it ends it */
    for (size_t at = 0; at < text.size; at++) {
        vd_err err = {0};
        text.data[at] ^= 1;
        write_lines(text.data, text.size);
        text.data[at] ^= 1;
        if (at >= last) {
            expect_same(&log, at == last ? 21 : 22);
            continue;
        }
        cr_expect(vd_store_load_log(dir, &back, &err) == VD_ERR_PEER, "byte %zu", at);
        cr_expect(strstr(err.text, "damaged") && strstr(err.text, "/checkpoints"), "%s", err.text);
        vd_run_log_free(&back);
    }
    vd_buf_free(&text);
    vd_run_log_free(&log);
}

Test(checkpoints, lines_that_are_in_run_json_do_not_count_again) {
    vd_run_log log = log_with_lines();
    vd_buf text = read_lines();
    cr_assert(vd_store_save_log(dir, &log, NULL) == VD_OK);
    write_lines(text.data, text.size); /* as if the machine had stopped before they were removed */
    expect_same(&log, 23);
    add(&log, false);
    expect_same(&log, 24);
    vd_buf_free(&text);
    vd_run_log_free(&log);
}

Test(checkpoints, another_runs_lines_are_none) {
    vd_run_log log = log_with_lines(), other = new_log(), back;
    vd_buf text = read_lines();
    vd_err err = {0};
    other.program.b[0] = 9;
    for (int i = 0; i < 16; i++)
        add(&other, false);
    write_lines(text.data, text.size);
    cr_expect(vd_store_load_log(dir, &back, &err) == VD_ERR_PEER, "%s", err.text);
    vd_run_log_free(&back);
    vd_buf_free(&text);
    vd_run_log_free(&log);
    vd_run_log_free(&other);
}
