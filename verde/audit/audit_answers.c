/* This file draws delivered answers and checks each with one pass over its prompt and itself. */
#include "verde/audit/audit_answers.h"

#include <limits.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

#include "verde/audit/audit_provider.h"
#include "verde/exec/batch.h"
#include "verde/protocol/audit_draw.h"
#include "verde/run/checks.h"
#include "verde/run/out_dir.h"
#include "verde/tell/stop.h"

/* ---- loading ---- */

static vd_status check_job(const vd_answers_check *c) {
    const vd_job *job = &c->loaded.job;
    if (!vd_job_has_prompts(job) || job->packed || job->task != VD_JOB_GENERATES)
        return vd_fail(c->err, VD_ERR_USAGE,
                       "%s: --results checks answers of a job with `task: generate`%s", c->a->job,
                       vd_job_has_prompts(job) ? "; each of this one is one pass itself: `verde "
                                                 "run` it, and compare"
                                               : "");
    return vd_need_weights(&c->loaded, c->err);
}

static vd_status load(vd_answers_check *c) {
    const vd_check_options o = {.path = c->a->dir, .job = c->a->job, .common = &c->a->common};
    vd_status status = vd_load_prompts(c->a->job, &c->loaded, c->err);
    if (status == VD_OK)
        status = check_job(c);
    if (status == VD_OK)
        status = vd_load_backend(&c->loaded, &c->a->common, c->err);
    if (status == VD_OK && !ro_ctx_in_host_memory(c->loaded.ro))
        status = vd_fail(c->err, VD_ERR_USAGE, "--backend %s: answers are checked on a CPU",
                         c->a->common.backend);
    c->proven = vd_results_are_in(c->a->dir);
    if (status == VD_OK && c->proven)
        status = vd_prove_results(&o, &c->loaded, &c->items, &c->job_root, c->err);
    if (status == VD_OK && c->proven)
        status = vd_collection_hash(c->items.program, c->items.count, &c->collection, c->err);
    if (status == VD_OK && !c->proven && c->a->url)
        status = vd_fail(c->err, VD_ERR_USAGE,
                         "%s: has no results.proof, whose run roots a dispute goes on from: leave "
                         "--provider, --verdict and --work out, or `verde run` the job, `verde "
                         "serve` it, and `verde arbitrate`",
                         c->a->dir);
    if (status == VD_OK && !c->proven && c->a->beacon)
        status = vd_fail(c->err, VD_ERR_USAGE,
                         "%s: has no results.proof, whose job root draws together with a beacon",
                         c->a->dir);
    return status == VD_OK ? vd_answer_lines_open(c->a->dir, &c->lines, c->err) : status;
}

/* ---- what is drawn ---- */

static bool draw_own(vd_buf *out) {
    uint8_t bytes[VD_HASH_SIZE];
    char hex[2 * VD_HASH_SIZE + 1];
    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return false;
    vd_hex(bytes, sizeof bytes, hex);
    vd_put(out, hex, 2 * VD_HASH_SIZE);
    return vd_buf_ok(out);
}

static int compare_numbers(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Draws answers without repetition: draws 0, 1, ... of the seed (PROTOCOL.md section 13.10). */
static vd_status draw_some(vd_answers_check *c, const vd_hash *seed) {
    const uint32_t all = vd_prompt_count(&c->loaded);
    bool *taken = calloc((size_t)all + 1, sizeof *taken);
    vd_status status = taken ? VD_OK : vd_fail(c->err, VD_ERR_LOCAL, "out of memory");
    for (uint64_t i = 0, found = 0, at; status == VD_OK && found < c->drawn_count; i++) {
        if (!vd_draw_below(seed, i, all, &at))
            status = vd_fail(c->err, VD_ERR_LOCAL, "out of memory, or OpenSSL failed");
        else if (!taken[at])
            taken[at] = true, c->drawn[found++] = (uint32_t)at;
    }
    free(taken);
    qsort(c->drawn, status == VD_OK ? c->drawn_count : 0, sizeof *c->drawn, compare_numbers);
    return status;
}

static vd_status draw(vd_answers_check *c) {
    const uint32_t all = vd_prompt_count(&c->loaded);
    const bool whole = c->a->count == 0 || c->a->count >= (long)all;
    vd_hash seed;
    c->drawn_count = whole ? all : (uint32_t)c->a->count;
    c->drawn = calloc((size_t)c->drawn_count + 1, sizeof *c->drawn);
    if (!c->drawn)
        return vd_fail(c->err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < c->drawn_count; i++)
        c->drawn[i] = i;
    if (whole)
        return VD_OK;
    vd_status status = c->a->beacon ? vd_beacon_read(c->a->beacon, &c->beacon, c->err) : VD_OK;
    if (status == VD_OK && !c->a->beacon && !draw_own(&c->beacon))
        status = vd_fail(c->err, VD_ERR_LOCAL, "no random numbers");
    if (status == VD_OK && !vd_draw_seed(c->beacon.data, c->beacon.size, &c->job_root, &seed))
        status = vd_fail(c->err, VD_ERR_LOCAL, "out of memory, or OpenSSL failed");
    return status == VD_OK ? draw_some(c, &seed) : status;
}

/* ---- the order of lines ---- */

vd_status vd_answers_differ(vd_answers_check *c, const vd_answer_difference *d) {
    if (c->differences == c->capacity) {
        const uint32_t capacity = c->capacity ? 2 * c->capacity : 16;
        vd_answer_difference *grown = realloc(c->difference, capacity * sizeof *grown);
        if (!grown)
            return vd_fail(c->err, VD_ERR_LOCAL, "out of memory");
        c->difference = grown;
        c->capacity = capacity;
    }
    c->difference[c->differences++] = *d;
    return VD_OK;
}

static vd_status differ_line(vd_answers_check *c, uint32_t number, const char *said,
                             const char *right, uint32_t prompt, int64_t key) {
    vd_answer_difference d = {.prompt = prompt, .key = key};
    snprintf(d.place, sizeof d.place, "line %u", number);
    snprintf(d.said, sizeof d.said, "%s", said);
    snprintf(d.right, sizeof d.right, "%s", right);
    return vd_answers_differ(c, &d);
}

/* Checks that line i belongs to prompt i. Reports the first that does not, or a wrong count. */
static vd_status check_order(vd_answers_check *c) {
    const uint32_t prompts = vd_prompt_count(&c->loaded), lines = c->lines.count;
    char said[40] = "nothing", right[40] = "nothing";
    uint32_t i = 0;
    while (i < prompts && i < lines && c->lines.line[i].key == vd_prompt_key(&c->loaded, i))
        i++;
    if (i == prompts && i == lines)
        return VD_OK;
    if (i < lines)
        snprintf(said, sizeof said, "key %lld", (long long)c->lines.line[i].key);
    if (i < prompts)
        snprintf(right, sizeof right, "key %lld", (long long)vd_prompt_key(&c->loaded, i));
    return differ_line(c, i + 1, said, right, i < prompts ? i : UINT32_MAX,
                       i < prompts ? vd_prompt_key(&c->loaded, i) : c->lines.line[i].key);
}

/* ---- all of it ---- */

/* Checks what a dispute will need, before the passes rather than after them. */
static vd_status check_dispute(const vd_answers_check *c) {
    vd_key *key = NULL;
    vd_endpoint endpoint;
    if (!c->a->url)
        return VD_OK;
    vd_status status = vd_endpoint_parse(c->a->url, &endpoint, c->err);
    if (status == VD_OK)
        status = vd_check_new(c->a->verdict, c->a->force, c->err);
    if (status == VD_OK)
        status = vd_load_key(c->a->key_dir, &key, c->err);
    vd_key_destroy(key);
    return status;
}

static vd_status check(vd_answers_check *c) {
    vd_status status = check_dispute(c);
    if (status == VD_OK)
        status = load(c);
    if (status == VD_OK)
        status = draw(c);
    if (status == VD_OK)
        status = check_order(c);
    c->ticker.start = vd_seconds();
    vd_stop_line("stopped before all answers were checked; `%s` begins anew", vd_command_line());
    return status == VD_OK ? vd_answers_run(c) : status;
}

/* Returns the exit code. If the parties agree in the dispute, the provider has delivered other
 * results than it states there: still a difference. */
static vd_exit exit_of(const vd_answers_check *c) {
    if (c->disputed && c->outcome != VD_EXIT_OK)
        return c->outcome;
    return c->differences > 0 ? VD_EXIT_DIFFERS : VD_EXIT_OK;
}

vd_exit vd_audit_answers(const vd_answers_arguments *a) {
    vd_err err = {0};
    vd_answers_check c = {.a = a, .ticker = {vd_seconds()}, .err = &err};
    vd_status status = check(&c);
    const bool text = !a->report && !a->common.json;
    if (status == VD_OK && text)
        vd_answers_print(&c);
    if (status == VD_OK && c.differences > 0 && a->url)
        status = vd_answers_dispute(&c);
    if (status == VD_OK && a->report)
        *a->report = vd_answers_json(&c);
    else if (status == VD_OK && !text)
        vd_result_json(vd_answers_json(&c));
    const vd_exit code = status == VD_OK ? exit_of(&c) : vd_report(&err);
    free(c.drawn);
    free(c.difference);
    vd_buf_free(&c.beacon);
    vd_answer_lines_free(&c.lines);
    vd_items_free(&c.items);
    vd_loaded_free(&c.loaded);
    return code;
}
