/* This file checks downloaded results of a job with prompts: results.proof and results.jsonl. The
 * job file gives the programs, without which the proof could not be verified. */
#include <string.h>

#include "verde/run/checks.h"
#include "verde/run/item_lines.h"

#define LINES "results.jsonl"
#define PROOF "results.proof"

typedef struct {
    const vd_check_options *o;
    vd_item_lines made; /* expected lines */
    vd_hash job_root;
    vd_map lines, proof;
    char lines_path[1100], proof_path[1100];
    size_t lines_at, proof_at; /* bytes checked in each */
    vd_err *err;
} results_check;

bool vd_results_are_in(const char *dir) {
    return strlen(dir) <= 900 && vd_lies_in(dir, PROOF);
}

static vd_status open_files(results_check *c) {
    snprintf(c->lines_path, sizeof c->lines_path, "%.900s/" LINES, c->o->path);
    snprintf(c->proof_path, sizeof c->proof_path, "%.900s/" PROOF, c->o->path);
    vd_status status = vd_map_file(c->proof_path, &c->proof, c->err);
    if (status == VD_OK)
        status = vd_results_head_read(c->proof_path, &c->proof, c->err);
    return status == VD_OK ? vd_map_file(c->lines_path, &c->lines, c->err) : status;
}

/* ---- the job's programs ---- */

static vd_status load_job(const vd_check_options *o, vd_loaded *job, vd_err *err) {
    if (!o->job)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: " PROOF " is a proof for the programs of a job, which `--job JOB` must "
                       "name",
                       o->path);
    vd_status status = vd_load_prompts(o->job, job, err);
    if (status == VD_OK && !vd_job_has_prompts(&job->job))
        status = vd_fail(err, VD_ERR_PEER, "%s: has no prompts, which %s has results of", o->job,
                         o->path);
    return status;
}

static vd_status take_roots(results_check *c) {
    const size_t size = VD_RESULTS_HEAD + (size_t)c->made.items.count * VD_HASH_SIZE;
    if (c->proof.size < size)
        return vd_fail(c->err, VD_ERR_PEER,
                       "%s: has %zu bytes, and %s has %u %s, whose run roots end at byte %zu",
                       c->proof_path, c->proof.size, c->o->job, c->made.items.count,
                       vd_prompt_word(c->made.job, c->made.items.count), size);
    c->proof_at = size;
    return vd_item_lines_roots(&c->made, c->proof.data + VD_RESULTS_HEAD, &c->job_root, c->err);
}

/* ---- lines ---- */

static bool begins_with(const results_check *c, const vd_buf *line) {
    return c->lines.size - c->lines_at >= line->size &&
           memcmp(c->lines.data + c->lines_at, line->data, line->size) == 0;
}

static vd_status check_line(results_check *c, uint32_t item) {
    const vd_map *proof = &c->proof;
    vd_buf line = {0};
    vd_err why = {0};
    size_t used;
    vd_status status = vd_item_line(&c->made, item, proof->data + c->proof_at,
                                    proof->size - c->proof_at, &used, &line, &why);
    if (status != VD_OK) {
        vd_fail(c->err, status, "%s: %.300s%s%.200s%s", c->proof_path, why.text,
                status == VD_ERR_PEER ? "; it is of another job than " : "",
                status == VD_ERR_PEER ? c->o->job : "",
                status == VD_ERR_PEER ? ", or was changed" : "");
    } else if (!begins_with(c, &line)) {
        status = vd_fail(c->err, VD_ERR_PEER,
                         "%s: line %u, of the %s with key %lld, is not what " PROOF " proves",
                         c->lines_path, item + 1, vd_prompt_word(c->made.job, 1),
                         (long long)c->made.items.key[item]);
    } else {
        c->proof_at += used;
        c->lines_at += line.size;
    }
    vd_buf_free(&line);
    return status;
}

static vd_status check_end(const results_check *c, const char *path, const vd_map *file,
                           size_t at) {
    return at == file->size
               ? VD_OK
               : vd_fail(c->err, VD_ERR_PEER, "%s: has %zu bytes behind the last of %u %s", path,
                         file->size - at, c->made.items.count,
                         vd_prompt_word(c->made.job, c->made.items.count));
}

static vd_status check_lines(results_check *c) {
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < c->made.items.count; i++)
        status = check_line(c, i);
    if (status == VD_OK)
        status = vd_answers_finish(&c->made.answers, c->err);
    if (status == VD_OK)
        status = check_end(c, c->proof_path, &c->proof, c->proof_at);
    return status == VD_OK ? check_end(c, c->lines_path, &c->lines, c->lines_at) : status;
}

/* ---- all results ---- */

static void print_json(const results_check *c) {
    json_t *out = json_pack("{sb ss so so sI sI}", "fits", 1, "path", c->o->path, "collection",
                            vd_hash_text(&c->made.collection), "job_root",
                            vd_hash_text(&c->job_root), vd_prompt_word(c->made.job, 0),
                            (json_int_t)c->made.items.count, "bytes", (json_int_t)c->proof.size);
    if (c->o->verdict)
        json_object_set_new(out, "verdict", json_string(c->o->verdict));
    vd_score_json(&c->made.sum, out);
    vd_result_json(out);
}

static void print_text(const results_check *c) {
    vd_buf told = {0}, *out = &told;
    vd_put_hex(out, "collection", c->made.collection.b);
    vd_printf(out, "results      every line of %s, of %u %s\n", c->lines_path, c->made.items.count,
              vd_prompt_word(c->made.job, c->made.items.count));
    if (c->made.answers.count)
        vd_printf(out, "answers      every byte of %u files in %s\n", c->made.answers.count + 1,
                  c->made.answers.dir);
    vd_score_text(out, &c->made.sum);
    vd_put_hex(out, "job root", c->job_root.b);
    if (c->o->verdict)
        vd_printf(out, "verdict      verified: %s accepts this job root\n", c->o->verdict);
    vd_printf(out, "fits         yes\n");
    vd_result_text(out);
}

/* Proves the results of a loaded job. */
static vd_status prove(results_check *c, vd_loaded *job) {
    const vd_check_claim claim = {"job", "", "job", &c->made.collection, &c->job_root};
    vd_verdict verdict = {0};
    vd_status status = open_files(c);
    if (status == VD_OK)
        status = vd_item_lines_open(job, &c->made, c->err);
    c->made.dir = c->o->path;
    c->made.answers.checks = true;
    if (status == VD_OK)
        status = take_roots(c);
    if (status == VD_OK) /* quick; the records are hashed later */
        status = vd_check_accepted(c->o, &claim, &verdict, c->err);
    return status == VD_OK ? check_lines(c) : status;
}

static void close_check(results_check *c) {
    vd_map_free(&c->lines);
    vd_map_free(&c->proof);
    vd_item_lines_free(&c->made);
}

vd_status vd_check_results(const vd_check_options *o, vd_err *err) {
    results_check c = {.o = o, .err = err};
    vd_loaded job = {0};
    vd_status status = load_job(o, &job, err);
    if (status == VD_OK)
        status = prove(&c, &job);
    if (status == VD_OK && o->common->json)
        print_json(&c);
    else if (status == VD_OK)
        print_text(&c);
    close_check(&c);
    vd_loaded_free(&job);
    return status;
}

vd_status vd_prove_results(const vd_check_options *o, vd_loaded *job, vd_items *items,
                           vd_hash *job_root, vd_err *err) {
    results_check c = {.o = o, .err = err};
    const vd_status status = prove(&c, job);
    *items = c.made.items;
    c.made.items = (vd_items){0};
    *job_root = c.job_root;
    close_check(&c);
    return status;
}
