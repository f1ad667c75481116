/* Thresholds that a job names: they become part of its program, or are refused. Must run in the
 * project's root. */
#include "repops/op_product.h"
#include "verde/job/job.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static void save(int32_t bits, vd_hash *hash) {
    vd_thresholds thresholds = {.bits = bits};
    vd_buf file = {0};
    thresholds.of[RO_OP_MATMUL] = 0x1.8p-26;
    snprintf(path, sizeof path, "/tmp/verde-thresholds-%d", (int)getpid());
    cr_assert(vd_thresholds_save(path, &thresholds, NULL) == VD_OK);
    cr_assert(vd_read_file(path, VD_THRESHOLDS_BYTES_MAX, &file, NULL) == VD_OK);
    cr_assert(vd_hash_tagged(NULL, file.data, file.size, hash));
    vd_buf_free(&file);
}

/* Makes the program of toy-log.yaml, changed to symbols. */
static vd_status program_of(const vd_hash *sha256, vd_program *out, vd_err *err) {
    vd_job job;
    vd_dataset data;
    cr_assert(vd_job_read("models/jobs/toy-log.yaml", &job, err) == VD_OK, "%s", err->text);
    cr_assert(job.rounding.bits == 32 && job.rounding.encoding == VD_LOG_CALLS);
    job.rounding.encoding = VD_LOG_SYMBOLS;
    snprintf(job.rounding.thresholds_path, sizeof job.rounding.thresholds_path, "%s", path);
    memcpy(job.rounding.thresholds_sha256, sha256->b, sizeof sha256->b);
    cr_assert(vd_job_load_data(&job, NULL, &data, err) == VD_OK, "%s", err->text);
    *out = (vd_program){.seed = 0};
    vd_status status = vd_job_program(&job, out, err);
    vd_dataset_free(&data);
    return status;
}

static void expect_refused(const vd_hash *sha256, const char *words) {
    vd_program program;
    vd_err err = {0};
    cr_expect(program_of(sha256, &program, &err) != VD_OK, "%s", words);
    cr_expect(strstr(err.text, words) && strstr(err.text, path), "expected \"%s\", got: %s", words,
              err.text);
    vd_program_free(&program);
}

Test(job_rounding, thresholds_are_part_of_the_program) {
    vd_hash hash;
    vd_program program;
    vd_err err = {0};
    save(32, &hash);
    cr_assert(program_of(&hash, &program, &err) == VD_OK, "%s", err.text);
    cr_expect(program.rounding.bits == 32 && program.rounding.encoding == 2);
    cr_expect(program.rounding.threshold[RO_OP_MATMUL] == 0x1.8p-26);
    cr_expect(vd_program_validate(&program, &err) == VD_OK, "%s", err.text);
    vd_program_free(&program);
    unlink(path);
}

Test(job_rounding, other_thresholds_are_refused) {
    vd_hash hash, other;
    save(32, &hash);
    other = hash;
    other.b[0] ^= 1;
    expect_refused(&other, "`rounding.sha256` is another");
    save(31, &hash);
    expect_refused(&hash, "thresholds for 31 bits");
    cr_assert(vd_write_file(path, "no thresholds\n", 14, 0644, NULL) == VD_OK);
    cr_assert(vd_hash_tagged(NULL, "no thresholds\n", 14, &hash));
    expect_refused(&hash, ":1");
    unlink(path);
    expect_refused(&hash, "cannot open");
}
