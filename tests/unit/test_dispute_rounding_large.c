/* A trainer's log has a section that is too large to be sent, so that nobody could judge it. A leaf
 * of the log's tree proves that it is too large. */
#include "log_files.h"
#include "tests/support/dispute.h"
#include "verde/log/rounded.h"
#include "verde/exec/store.h"

enum { STEPS = 4, INTERVAL = 2, STEP = 1, FIRST = 0, LEAF = 1 };

static void open_trainer(test_provider *p, const test_job *job) {
    const vd_fault f = test_fault(job, "drop-record@1");
    const test_party party = {.profile = "sim-wide", .unsigned_log = true};
    vd_err err = {0};
    cr_assert(test_party_open(p, job, 1, &party, &f, &err) == VD_OK, "%s", err.text);
}

static void open_auditor(test_provider *p, const test_job *job, const test_provider *trainer) {
    const test_party party = {.profile = "sim-plain", .trainer = trainer, .contest = true};
    vd_err err = {0};
    cr_assert(test_party_open(p, job, 2, &party, NULL, &err) == VD_OK, "%s", err.text);
}

static test_dispute settle(const test_job *job, const test_provider *trainer,
                           const test_provider *auditor, test_transit transit) {
    test_dispute d = {.job = job, .side = {&trainer->side, &auditor->side}, .transit = transit};
    test_settle(&d);
    cr_assert(d.status == VD_OK, "%s", d.err.text);
    return d;
}

/* Writes the step's sections. Section `padded` is followed by zeros, more than a section may have
 * in all. */
static vd_hash put_step(vd_buf *out, const test_provider *trainer, const test_job *job,
                        const vd_log_run *run, int64_t step, int64_t padded) {
    static const uint8_t zeros[VD_LOG_SECTION_BYTES];
    vd_log_node *node = calloc(job->program.step.node_count, sizeof *node);
    const uint32_t count = vd_free_nodes(&job->program.step, node);
    vd_buf *section = calloc(count, sizeof *section);
    vd_log_file *file;
    vd_err err = {0};
    cr_assert(vd_log_open(trainer->dir, run, step, node, count, NULL, &file, &err) == VD_OK, "%s",
              err.text);
    for (uint32_t i = 0; i < count; i++) {
        cr_assert(vd_log_read_bytes(file, i, &section[i], NULL) == VD_OK);
        if (i == padded)
            vd_put(&section[i], zeros, sizeof zeros);
    }
    vd_log_close(file);
    const vd_hash root = log_put_part(out, run, step, node, section, count, true);
    for (uint32_t i = 0; i < count; i++)
        vd_buf_free(&section[i]);
    free(section);
    free(node);
    return root;
}

/* Rewrites the log's file and the commitment of the run, as if the trainer had written both this
 * way. */
static void pad(test_provider *trainer, const test_job *job, uint32_t node) {
    vd_run_log log = {0};
    vd_buf bytes = {0}, table = {0};
    vd_hash root[INTERVAL];
    vd_tree tree;
    char path[256];
    cr_assert(vd_store_load_log(trainer->dir, &log, NULL) == VD_OK);
    const vd_log_run run = vd_rounded_schedule(&vd_log_kept_of(&log)->rounding, &job->program);
    const int64_t index = (int64_t)vd_graph_sections(&job->program.step, node);
    for (int64_t step = FIRST; step < FIRST + INTERVAL; step++) {
        root[step - FIRST] = put_step(&bytes, trainer, job, &run, step, step == STEP ? index : -1);
        vd_put_u64(&table, bytes.size);
    }
    cr_assert(vd_log_end_table(&table, NULL) == VD_OK);
    vd_put(&bytes, table.data, table.size);
    cr_assert(vd_log_path(trainer->dir, &run, FIRST, path, sizeof path, NULL) == VD_OK);
    cr_assert(vd_write_file(path, bytes.data, bytes.size, 0644, NULL) == VD_OK);
    cr_assert(vd_tree_of_hashes(&tree, root, INTERVAL, NULL) == VD_OK &&
              vd_tree_root(&tree, &log.emitted[LEAF], NULL) == VD_OK);
    cr_assert(vd_store_save_log(trainer->dir, &log, NULL) == VD_OK);
    vd_tree_free(&tree);
    vd_buf_free(&bytes);
    vd_buf_free(&table);
    vd_run_log_free(&log);
    vd_replay_destroy(trainer->replay);
    cr_assert(vd_replay_create(trainer->dir, &trainer->exec, &trainer->replay, NULL) == VD_OK);
    trainer->side.source = vd_replay_source(trainer->replay);
}

/* Claims that a section, which has about 34 bytes, has 20 million. */
static void enlarge(test_dispute *d, uint32_t party, const vd_outgoing *question, vd_buf *note) {
    json_t *body = note->size ? test_answer_body(note) : NULL;
    if (party != 1 || !body || !json_object_get(body, "section")) {
        json_decref(body);
        return;
    }
    const char *zeros = "0000000000000000000000000000000000000000000000000000000000000000";
    json_object_del(body, "section");
    json_object_set_new(body, "size", json_integer(20000000));
    json_object_set_new(body, "digest", json_string(zeros));
    test_resign(d, party, question, body, note);
}

static void silence(test_dispute *d, uint32_t party, const vd_outgoing *question, vd_buf *note) {
    json_t *body = note->size && party == 0 ? test_answer_body(note) : NULL;
    if (body && json_object_get(body, "section"))
        note->size = 0;
    json_decref(body);
    enlarge(d, party, question, note);
}

Test(dispute_rounding_large, a_section_too_large_to_be_given_is_its_trainers_fault) {
    test_job job;
    test_provider trainer, auditor;
    test_job_open(&job, VD_MODEL_GPT2, STEPS, INTERVAL);
    test_job_round(&job, 32, VD_LOG_CALLS);
    open_trainer(&trainer, &job);
    open_auditor(&auditor, &job, &trainer);
    test_dispute d = settle(&job, &trainer, &auditor, NULL);
    const vd_place at = d.outcome.place;
    cr_assert(at.step == STEP && d.outcome.party[0].grade == VD_GRADE_LOG_INCOMPLETE);
    test_dispute_close(&d);

    /* A section of an allowed size must be sent whole. */
    d = settle(&job, &trainer, &auditor, silence);
    cr_expect(d.outcome.party[1].grade == VD_GRADE_BAD_PROOF, "%s", d.outcome.party[1].reason);
    test_dispute_close(&d);
    test_provider_close(&auditor);

    pad(&trainer, &job, (uint32_t)at.node);
    open_auditor(&auditor, &job, &trainer);
    d = settle(&job, &trainer, &auditor, NULL);
    const struct vd_party_outcome *p = d.outcome.party;
    cr_expect(d.outcome.place.node == at.node && d.outcome.place.element == at.element);
    cr_expect(p[0].grade == VD_GRADE_BAD_PROOF && p[1].grade == VD_GRADE_NONE, "%s; %s",
              p[0].reason, p[1].reason);
    cr_expect(strstr(p[0].reason, "at most 16777216 are allowed"), "%s", p[0].reason);
    test_dispute_close(&d);
    test_provider_close(&auditor);
    test_provider_close(&trainer);
    test_job_close(&job);
}
