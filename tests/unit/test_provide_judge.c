/* What a child reports about a program that a client sent, and how the daemon uses it. */
#include <string.h>
#include <sys/resource.h>

#include "provide_dir.h"
#include "repops/op_movement.h"
#include "tests/support/dispute.h"
#include "verde/exec/estimate.h"
#include "verde/delivery/remote.h"
#include "verde/exec/exec.h"
#include "verde/exec/item_pack.h"
#include "verde/provide/internal.h"
#include "verde/provide/judge.h"

TestSuite(provide_judge, .init = setup, .fini = teardown, .timeout = 60);

static test_job job;
static char path[128];
static const vd_judge_machine machine = {.cores = 1, .threads = 2};

static vd_buf judged(const void *bytes, size_t size) {
    vd_buf out = {0};
    snprintf(path, sizeof path, "%s/program", provide_dir);
    cr_assert(vd_write_file(path, bytes, size, 0600, NULL) == VD_OK);
    vd_judge_file(path, 2, &machine, &out);
    cr_assert(vd_buf_ok(&out));
    return out;
}

static vd_buf encoded(void) {
    vd_buf bytes = {0};
    test_job_open(&job, VD_MODEL_MLP, 6, 3);
    vd_program_encode(&job.program, &bytes);
    cr_assert(vd_buf_ok(&bytes));
    return bytes;
}

Test(provide_judge, a_program_is_what_it_is) {
    vd_judgement j;
    vd_err err = {0};
    vd_hash hash;
    uint64_t memory;
    vd_buf bytes = encoded(), reply = judged(bytes.data, bytes.size);
    cr_assert(vd_judgement_read(&reply, &j, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_program_hash(&job.program, &hash, NULL) == VD_OK);
    cr_assert(vd_estimate_memory(&job.program, &memory, NULL) == VD_OK);
    cr_expect(vd_hash_equal(&j.program, &hash) && j.steps == job.program.steps && !j.emits);
    cr_expect(j.memory == memory + vd_estimate_kernels(&job.program, 2));
    cr_expect(j.seconds == 1 && j.step_ms == 0 && j.step_ms_max == 0);
    cr_expect(j.disk > vd_estimate_disk(&job.program, 2));
    cr_expect(j.disk < vd_estimate_disk(&job.program, 2) +
                           vd_estimate_beside(&job.program, bytes.size) + 200000);
    cr_assert(j.data_count == job.program.data_count && j.data_count > 0);
    for (uint32_t i = 0; i < j.data_count; i++)
        cr_expect(j.data_bytes[i] == vd_shape_bytes(&job.program.data[i].tensor.shape));
    vd_judgement_free(&j);
    vd_buf_free(&reply);
    vd_buf_free(&bytes);
    test_job_close(&job);
}

static uint64_t disk_of(const vd_program *program, int64_t keep) {
    vd_buf bytes = {0}, reply = {0};
    vd_judgement j;
    vd_err err = {0};
    vd_program_encode(program, &bytes);
    snprintf(path, sizeof path, "%s/program", provide_dir);
    cr_assert(vd_write_file(path, bytes.data, bytes.size, 0600, NULL) == VD_OK);
    vd_judge_file(path, keep, &machine, &reply);
    cr_assert(vd_judgement_read(&reply, &j, &err) == VD_OK, "%s", err.text);
    const uint64_t disk = j.disk;
    vd_judgement_free(&j);
    vd_buf_free(&reply);
    vd_buf_free(&bytes);
    return disk;
}

/* A state has four bytes, but the losses of so many steps take hundreds of gigabytes. */
Test(provide_judge, all_that_a_run_writes_is_counted) {
    test_job_open(&job, VD_MODEL_MLP, 6, 3);
    const uint64_t few = disk_of(&job.program, 2);
    job.program.steps = job.program.checkpoint_interval = INT32_MAX;
    const uint64_t many = disk_of(&job.program, 2);
    cr_expect(many > UINT64_C(115) * INT32_MAX, "%llu", (unsigned long long)many);
    job.program.checkpoint_interval = 1;
    cr_expect(disk_of(&job.program, 2) > many + UINT64_C(200) * INT32_MAX, "run.json, too");
    cr_expect(few < 1000000);
    test_job_close(&job);
}

/* Compares with the size of a run's folder when the run is done. */
Test(provide_judge, a_run_takes_what_was_judged) {
    static const char id[] = "1111111111111111111111111111111111111111111111111111111111111111";
    vd_daemon daemon = {.options = {.dir = provide_dir}};
    char to[1200];
    test_provider p;
    test_job_open(&job, VD_MODEL_MLP, 60, 1);
    test_provider_open(&p, &job, 1, NULL);
    const uint64_t judged_disk = disk_of(&job.program, 0);
    vd_job_path(&daemon, "", "", to);
    cr_assert(mkdir(to, 0700) == 0);
    vd_job_path(&daemon, id, "", to);
    cr_assert(mkdir(to, 0700) == 0);
    vd_job_path(&daemon, id, VD_JOB_RUN, to);
    cr_assert(rename(p.dir, to) == 0);
    const uint64_t written = (uint64_t)vd_job_written(&daemon, id);
    cr_expect(written <= judged_disk && judged_disk < 4 * written, "%llu of %llu",
              (unsigned long long)written, (unsigned long long)judged_disk);
    cr_assert(rename(to, p.dir) == 0);
    test_provider_close(&p);
    test_job_close(&job);
}

Test(provide_judge, what_is_no_program_is_refused_with_a_reason) {
    vd_judgement j;
    vd_err err = {0};
    vd_buf bytes = encoded();
    for (size_t size = 0; size < bytes.size; size += 1 + size / 8) {
        vd_buf reply = judged(bytes.data, size);
        cr_expect(vd_judgement_read(&reply, &j, &err) == VD_ERR_PEER && strlen(err.text) > 5, "%s",
                  err.text);
        vd_buf_free(&reply);
    }
    vd_buf_free(&bytes);
    test_job_close(&job);
}

Test(provide_judge, a_judge_that_makes_no_sense_is_trouble) {
    vd_judgement j;
    vd_buf bytes = encoded(), reply = judged(bytes.data, bytes.size);
    const size_t whole = reply.size;
    for (reply.size = 0; reply.size < whole; reply.size++)
        cr_expect(vd_judgement_read(&reply, &j, NULL) == VD_ERR_LOCAL && !j.data_bytes);
    vd_put_u8(&reply, 0);
    cr_expect(vd_judgement_read(&reply, &j, NULL) == VD_ERR_LOCAL);
    memset(reply.data + 1 + VD_HASH_SIZE + 4, 0xff, 8); /* the number of steps becomes negative */
    reply.size--;
    cr_expect(vd_judgement_read(&reply, &j, NULL) == VD_ERR_LOCAL);
    vd_buf_free(&reply);
    vd_buf_free(&bytes);
    test_job_close(&job);
}

/* A sanitizer maps more memory for itself. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define LIMIT_MEMORY false
#else
#define LIMIT_MEMORY true
#endif

/* A repeat of 60 nodes, 2^20 times: a short program that stands for nearly as many nodes as are
 * allowed. */
static vd_buf few_bytes_of_many_nodes(void) {
    enum { SIZE = 60 };
    static const ro_shape one = {.dtype = RO_F32, .ndim = 1, .dim = {1}};
    vd_buf bytes = {0};
    vd_node fill[SIZE + 1];
    vd_repeat repeat = {.count = 1 << 20, .size = SIZE};
    vd_leaf leaf = {.name = "x", .shape = one};
    uint32_t init_output = 1, output = 1 + (1 << 20) * SIZE; /* the last fill of each graph */
    vd_program p = {.leaf = &leaf, .leaf_count = 1, .steps = 1, .checkpoint_interval = 1};
    for (int i = 0; i <= SIZE; i++)
        fill[i] = (vd_node){.op = RO_OP_FILL, .moving = -1, .shape = one};
    p.init = p.step = (vd_graph){.stored = fill, .stored_count = 1, .loss = UINT32_MAX};
    p.init.output = &init_output;
    p.step.stored_count = SIZE;
    p.step.repeat = &repeat;
    p.step.repeat_count = 1;
    p.step.output = &output;
    vd_program_encode(&p, &bytes);
    cr_assert(vd_buf_ok(&bytes));
    return bytes;
}

/* An array over all nodes would not fit. The judgement states the memory that a run needs, so that
 * the client's limits refuse it before it starts. */
Test(provide_judge, a_short_program_of_many_nodes_is_judged_from_its_bytes) {
    const struct rlimit little = {64 << 20, 64 << 20};
    vd_judgement j;
    vd_err err = {0};
    vd_buf bytes = few_bytes_of_many_nodes();
    cr_assert(!LIMIT_MEMORY || setrlimit(RLIMIT_DATA, &little) == 0);
    vd_buf reply = judged(bytes.data, bytes.size);
    cr_expect(bytes.size < 3000, "%zu bytes", bytes.size);
    cr_assert(vd_judgement_read(&reply, &j, &err) == VD_OK, "%s", err.text);
    cr_expect(j.memory > UINT64_C(200) * 60 << 20, "%llu", (unsigned long long)j.memory);
    vd_judgement_free(&j);
    vd_buf_free(&reply);
    vd_buf_free(&bytes);
}

static void quiet(const char *format, ...) {
    (void)format;
}

static vd_status judge_by(char *const *argv, vd_err *err) {
    vd_judgement j;
    int64_t us;
    const vd_daemon_options options = {.dir = provide_dir, .judge_argv = argv, .say = quiet};
    snprintf(path, sizeof path, "%s/program", provide_dir);
    cr_assert(vd_write_file(path, "no", 2, 0600, NULL) == VD_OK);
    return vd_judge(&options, path, 0, &j, &us, err);
}

/* The time to judge a pack grows with the number of items that it claims, but stays below a
 * client's deadline. */
Test(provide_judge, more_items_have_more_time) {
    const uint32_t most = VD_PACK_ITEMS_MAX;
    vd_judgement j;
    vd_err err = {0};
    vd_packing pack;
    int64_t us;
    char sh[] = "/bin/sh", c[] = "-c", script[] = "[ \"$3\" = 36 ] && kill -XCPU $$; exit 0";
    char *const argv[] = {sh, c, script, NULL};
    const vd_daemon_options options = {.dir = provide_dir, .judge_argv = argv, .say = quiet};
    const int64_t full = VD_PROGRAM_BYTES_MAX;
    cr_expect(vd_judge_time_of(0, 0).ms == VD_JUDGE_MS);
    cr_expect(vd_judge_time_of(0, 0).cpu_s == VD_JUDGE_CPU_S);
    cr_expect(vd_judge_time_of(full / 2, 0).cpu_s == VD_JUDGE_CPU_S + VD_JUDGE_BYTES_CPU_S / 2);
    cr_expect(vd_judge_time_of(full, most).cpu_s ==
              VD_JUDGE_CPU_S + VD_JUDGE_BYTES_CPU_S + VD_JUDGE_PACK_CPU_S);
    cr_expect(vd_judge_time_of(0, most / 8).cpu_s ==
              VD_JUDGE_CPU_S + VD_JUDGE_BYTES_CPU_S / 2 + VD_JUDGE_PACK_CPU_S / 8);
    cr_expect(vd_judge_time_of(VD_PACK_BYTES_MAX, most).ms < VD_REMOTE_DEADLINE_MS);
    vd_packing_begin(&pack, most / 2, 1);
    snprintf(path, sizeof path, "%s/pack", provide_dir);
    cr_assert(vd_write_file(path, pack.bytes.data, pack.bytes.size, 0600, &err) == VD_OK);
    cr_expect(vd_judge(&options, path, VD_JUDGE_PACK, &j, &us, &err) == VD_ERR_PEER);
    cr_expect(strstr(err.text, "split the prompts"), "%s", err.text);
    cr_expect(vd_judge(&options, path, 1, &j, &us, &err) == VD_ERR_LOCAL, "4 s, as so few bytes");
    vd_packing_free(&pack);
}

/* Runs programs in place of the judge that end in the ways a judge could. */
Test(provide_judge, a_judge_that_dies_is_told_of) {
    vd_err err = {0};
    char sh[] = "/bin/sh", c[] = "-c", segv[] = "kill -SEGV $$", cpu[] = "kill -XCPU $$",
         killed[] = "kill -KILL $$", ends[] = "exit 3", none[] = "/no/such/program";
    cr_expect(judge_by((char *[]){sh, c, segv, NULL}, &err) == VD_ERR_PEER);
    cr_expect(strstr(err.text, "signal 11"), "%s", err.text);
    cr_expect(judge_by((char *[]){sh, c, cpu, NULL}, &err) == VD_ERR_PEER);
    cr_expect(strstr(err.text, "longer than is allowed"), "%s", err.text);
    cr_expect(judge_by((char *[]){sh, c, killed, NULL}, &err) == VD_ERR_LOCAL);
    cr_expect(judge_by((char *[]){sh, c, ends, NULL}, &err) == VD_ERR_LOCAL);
    cr_expect(judge_by((char *[]){none, NULL}, &err) == VD_ERR_LOCAL);
}

/* Programs of a few bytes can have steps that take longer than a referee waits. */
Test(provide_judge, a_step_is_compared_with_a_referees_patience) {
    vd_judgement j;
    vd_err err = {0};
    vd_buf reply = {0};
    vd_judge_file("tests/vectors/hostile/convolution", 0, &machine, &reply);
    cr_assert(vd_judgement_read(&reply, &j, &err) == VD_OK, "%s", err.text);
    cr_expect(j.step_ms > 3600000 && j.step_ms_max == 1800000);
    cr_expect(j.seconds > 3600 && j.seconds < 10000);
    vd_judgement_free(&j);
    vd_buf_free(&reply);
    vd_judge_file("tests/vectors/hostile/permutation", 0, &machine, &reply);
    cr_assert(vd_judgement_read(&reply, &j, &err) == VD_OK, "%s", err.text);
    cr_expect(j.step_ms > 10000 && j.step_ms < j.step_ms_max && j.step_ms_max == 33000);
    vd_judgement_free(&j);
    vd_buf_free(&reply);
}
