#include "tests/support/dispute.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>

static int remove_one(const char *path, const struct stat *info, int flag, struct FTW *walk) {
    (void)info, (void)flag, (void)walk;
    return remove(path);
}

void test_remove_dir(const char *dir) {
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Opens a backend: honest and dishonest providers use different threads and instruction sets. */
static void open_backend(test_provider *p, bool honest) {
    ro_options options = {
        .size = sizeof options, .threads = honest ? 1 : 2, .backend = honest ? NULL : "scalar"};
    cr_assert(ro_ctx_create(&options, &p->ro) == RO_OK);
}

static void train(test_provider *p) {
    char fault[128] = "";
    vd_err err = {0};
    if (p->exec.fault.kind)
        vd_fault_print(&p->exec.fault, p->exec.program, fault, sizeof fault);
    vd_run_options options = {.exec = &p->exec, .dir = p->dir, .fault = fault};
    cr_assert(vd_run(&options, &p->run, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_replay_create(p->dir, &p->exec, &p->replay, &err) == VD_OK, "%s", err.text);
}

static void open_provider(test_provider *p, const test_job *job, uint8_t name,
                          const vd_fault *fault) {
    const char *temp = getenv("TMPDIR");
    uint8_t seed[32];
    *p = (test_provider){.exec = {.program = &job->program, .data = job->data}};
    open_backend(p, !fault);
    p->exec.ro = p->ro;
    if (fault)
        p->exec.fault = *fault;
    snprintf(p->dir, sizeof p->dir, "%.40s/verde-test-XXXXXX", temp ? temp : "/tmp");
    cr_assert(mkdtemp(p->dir), "%s", p->dir);
    memset(seed, name, sizeof seed);
    cr_assert(vd_key_from_seed(seed, &p->key, NULL) == VD_OK);
    p->side = (vd_provider){.program = &job->program, .program_hash = job->hash, .key = p->key};
}

void test_provider_open(test_provider *p, const test_job *job, uint8_t name,
                        const vd_fault *fault) {
    open_provider(p, job, name, fault);
    train(p);
    p->side.source = vd_replay_source(p->replay);
}

void test_job_round(test_job *job, int32_t bits, vd_log_encoding encoding) {
    job->program.rounding = (vd_program_rounding){.bits = bits, .encoding = (int32_t)encoding};
    cr_assert(vd_program_hash(&job->program, &job->hash, NULL) == VD_OK);
}

static vd_status follow(test_provider *p, const test_job *job, const test_party *party,
                        vd_err *err) {
    char fault[128] = "";
    vd_thresholds thresholds = {.bits = job->program.rounding.bits};
    memcpy(thresholds.of, job->program.rounding.threshold, sizeof thresholds.of);
    const vd_run_rounding rounding = {.role = party->trainer ? VD_AUDITOR : VD_TRAINER,
                                      .profile = ro_profile_by_name(party->profile),
                                      .thresholds = &thresholds,
                                      .encoding = (vd_log_encoding)job->program.rounding.encoding,
                                      .bits = job->program.rounding.bits,
                                      .trainer = party->trainer ? party->trainer->dir : NULL,
                                      .key = party->trainer || party->unsigned_log ? NULL : p->key,
                                      .trainer_key = party->trainer_key,
                                      .contest = party->contest};
    if (p->exec.fault.kind)
        vd_fault_print(&p->exec.fault, p->exec.program, fault, sizeof fault);
    const vd_run_backend backend = {&vd_backend_log, &rounding, &p->logged};
    const vd_run_options options = {
        .exec = &p->exec, .dir = p->dir, .fault = fault, .backend = &backend};
    return vd_run(&options, &p->run, err);
}

vd_status test_party_open(test_provider *p, const test_job *job, uint8_t name,
                          const test_party *party, const vd_fault *fault, vd_err *err) {
    open_provider(p, job, name, fault);
    vd_status status = follow(p, job, party, err);
    if (status != VD_OK)
        return status;
    cr_assert(vd_replay_create(p->dir, &p->exec, &p->replay, err) == VD_OK, "%s", err->text);
    p->side.source = vd_replay_source(p->replay);
    return VD_OK;
}

void test_provider_runs_again(test_provider *p, const vd_fault *fault) {
    char dir[80];
    vd_again *again;
    ro_options options = {.size = sizeof options, .threads = 1};
    vd_exec exec = p->exec;
    cr_assert(ro_ctx_create(&options, &p->second) == RO_OK);
    exec.ro = p->second;
    snprintf(dir, sizeof dir, "%s/again", p->dir);
    cr_assert(vd_again_create(dir, &exec, fault, 0, &again, NULL) == VD_OK);
    p->side.run_again = vd_again_source;
    p->side.again = again;
}

void test_provider_close(test_provider *p) {
    vd_again_destroy(p->side.again);
    ro_ctx_destroy(p->second);
    vd_replay_destroy(p->replay);
    vd_key_destroy(p->key);
    ro_ctx_destroy(p->ro);
    test_remove_dir(p->dir);
}
