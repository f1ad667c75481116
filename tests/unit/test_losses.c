/* losses.jsonl has a line for each step, whatever interrupted the run. */
#include "tests/support/dispute.h"
#include "verde/exec/losses.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 12, EVERY = 5 };

typedef struct {
    test_job job;
    vd_exec exec;
    char dir[64], path[100];
    int64_t stop_at; /* 0: never */
    int begun, begun_with_log;
} losses_run;

static void open_run(losses_run *r) {
    memset(r, 0, sizeof *r);
    test_job_open(&r->job, VD_MODEL_MLP, STEPS, EVERY);
    r->exec = (vd_exec){.program = &r->job.program, .data = r->job.data};
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &r->exec.ro) ==
              RO_OK);
    strcpy(r->dir, "/tmp/verde-losses-XXXXXX");
    cr_assert(mkdtemp(r->dir));
    strcat(strcpy(r->path, r->dir), "/losses.jsonl");
}

static void close_run(losses_run *r) {
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", r->dir);
    cr_assert(system(command) == 0);
    ro_ctx_destroy(r->exec.ro);
    test_job_close(&r->job);
}

static bool progress(void *user, const vd_progress *p) {
    const losses_run *r = user;
    return p->step != r->stop_at;
}

static vd_status begun(void *user, vd_err *err) {
    losses_run *r = user;
    char log[100];
    (void)err;
    snprintf(log, sizeof log, "%s/run.json", r->dir);
    r->begun++;
    r->begun_with_log += access(log, F_OK) == 0;
    return VD_OK;
}

static vd_status go_on(losses_run *r, int64_t stop_at) {
    vd_run_result result;
    const vd_run_options options = {.exec = &r->exec,
                                    .dir = r->dir,
                                    .progress = progress,
                                    .user = r,
                                    .begun = begun,
                                    .begun_user = r,
                                    .samples = {"tokens", 64}};
    r->stop_at = stop_at;
    return vd_run(&options, &result, NULL);
}

/* Reads the file without the values that depend on the clock. */
static vd_buf lines_of(const losses_run *r, int *count) {
    vd_buf file = {0}, out = {0};
    cr_assert(vd_read_file(r->path, 1 << 20, &file, NULL) == VD_OK);
    vd_put_u8(&file, 0);
    *count = 0;
    for (char *at = (char *)file.data, *end; (end = strchr(at, '\n')); at = end + 1) {
        *end = 0;
        const char *clock = strstr(at, ",\"seconds\":");
        cr_assert(clock, "%s", at);
        vd_printf(&out, "%.*s\n", (int)(clock - at), at);
        ++*count;
    }
    vd_buf_free(&file);
    return out;
}

static void append(const losses_run *r, const char *text) {
    FILE *file = fopen(r->path, "a");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* The folder is marked as a run before its caller writes more files there. If the caller is killed,
 * it later recognises its own files. */
Test(losses, the_folder_is_a_run_before_its_caller_writes_there) {
    losses_run r;
    open_run(&r);
    cr_assert(go_on(&r, 7) == VD_ERR_TIMEOUT);
    cr_expect(r.begun == 1 && r.begun_with_log == 1);
    cr_assert(go_on(&r, 0) == VD_OK);
    cr_expect(r.begun == 2 && r.begun_with_log == 2);
    cr_assert(go_on(&r, 0) == VD_OK);
    cr_expect(r.begun == 2, "a finished run begins nothing");
    close_run(&r);
}

Test(losses, has_a_line_of_each_step_with_what_its_graph_says) {
    losses_run r;
    int count;
    open_run(&r);
    cr_assert(go_on(&r, 0) == VD_OK);
    vd_buf lines = lines_of(&r, &count);
    cr_expect_eq(count, STEPS);
    vd_put_u8(&lines, 0);
    const char *text = (const char *)lines.data;
    cr_expect(strncmp(text, "{\"step\":1,\"loss\":", 17) == 0, "%s", text);
    cr_expect(strstr(text, ",\"lr\":") && strstr(text, ",\"grad_norm\":"));
    cr_expect(strstr(text, "{\"step\":12,") && strstr(text, ",\"tokens\":768"));
    vd_buf_free(&lines);
    close_run(&r);
}

/* A killed process leaves lines of steps after the checkpoint, and half a line. */
Test(losses, of_a_run_that_was_stopped_are_those_of_one_that_was_not) {
    losses_run whole, stopped;
    int count;
    open_run(&whole);
    open_run(&stopped);
    cr_assert(go_on(&whole, 0) == VD_OK);
    cr_assert(go_on(&stopped, 3) == VD_ERR_TIMEOUT); /* before the first checkpoint */
    cr_assert(go_on(&stopped, 8) == VD_ERR_TIMEOUT); /* after it */
    append(&stopped, "{\"step\":9,\"loss\":1,\"seconds\":0}\n{\"step\":10,\"lo");
    cr_assert(go_on(&stopped, 0) == VD_OK);
    cr_assert(go_on(&stopped, 0) == VD_OK); /* finished: nothing changes */
    vd_buf a = lines_of(&whole, &count), b = lines_of(&stopped, &count);
    cr_expect_eq(count, STEPS);
    cr_expect(a.size == b.size && memcmp(a.data, b.data, a.size) == 0, "%.*s", (int)b.size, b.data);
    vd_buf_free(&a);
    vd_buf_free(&b);
    close_run(&whole);
    close_run(&stopped);
}

/* If the file was removed, the lines go on from the resumed step. */
Test(losses, without_a_file_begin_at_the_step_that_is_resumed) {
    losses_run r;
    int count;
    open_run(&r);
    cr_assert(go_on(&r, 8) == VD_ERR_TIMEOUT);
    cr_assert(remove(r.path) == 0);
    cr_assert(go_on(&r, 0) == VD_OK);
    vd_buf lines = lines_of(&r, &count);
    cr_expect(count == STEPS - 5 && strncmp((char *)lines.data, "{\"step\":6,", 10) == 0);
    vd_buf_free(&lines);
    close_run(&r);
}

/* A job's disk space is estimated with this length. */
Test(losses, the_longest_line_has_no_more_bytes_than_are_counted) {
    const float long_one = -1.17549449e-38f;
    const vd_step_numbers numbers = {.loss = long_one,
                                     .lr = long_one,
                                     .grad_norm = long_one,
                                     .has_loss = true,
                                     .has_lr = true,
                                     .has_grad_norm = true};
    const vd_run_samples samples = {NULL, 0};
    vd_losses l;
    losses_run r;
    vd_buf text = {0};
    open_run(&r);
    cr_assert(vd_losses_open(&l, r.dir, 0, NULL) == VD_OK);
    cr_assert(vd_losses_put(&l, INT32_MAX, &numbers, &samples, 1.23457e-10, NULL) == VD_OK);
    vd_losses_close(&l);
    cr_assert(vd_read_file(r.path, 1000, &text, NULL) == VD_OK);
    cr_expect(text.size > 100 && text.size <= VD_LOSSES_STEP_BYTES, "%zu bytes", text.size);
    vd_buf_free(&text);
    close_run(&r);
}

Test(losses, that_are_no_numbers_are_words) {
    const vd_step_numbers numbers = {
        .loss = __builtin_nanf(""), .lr = __builtin_inff(), .has_loss = true, .has_lr = true};
    const vd_run_samples samples = {NULL, 0};
    vd_losses l;
    losses_run r;
    int count;
    open_run(&r);
    cr_assert(vd_losses_open(&l, r.dir, 0, NULL) == VD_OK);
    cr_assert(vd_losses_put(&l, 1, &numbers, &samples, 0.5, NULL) == VD_OK);
    vd_losses_close(&l);
    vd_buf lines = lines_of(&r, &count);
    vd_put_u8(&lines, 0);
    cr_expect_str_eq((char *)lines.data, "{\"step\":1,\"loss\":\"nan\",\"lr\":\"inf\"\n");
    vd_buf_free(&lines);
    close_run(&r);
}
