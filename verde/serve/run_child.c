#include "verde/serve/child.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/delivery/offer.h"
#include "verde/provide/child.h"
#include "verde/provide/daemon.h"
#include "verde/run/run_one.h"

enum {
    RUN_ARGUMENTS = 8,
    RUN_NICE = 10, /* below what answers questions: a tenth of its share of a busy core */
};

bool vd_child_has_gpu(const vd_common *common) {
    return common->backend && strncmp(common->backend, "cuda", 4) == 0;
}

static const char *or_null(const char *text) {
    return strcmp(text, "-") == 0 ? NULL : text;
}

static void take_arguments(char **argv, vd_run_child *c) {
    c->memory = strtoll(argv[0], NULL, 10);
    c->common.threads = atoi(argv[1]);
    c->common.backend = or_null(argv[2]);
    c->fault = or_null(argv[3]);
    c->parent = strtol(argv[4], NULL, 10);
    c->dir = argv[5];
    c->keep = strtoll(argv[6], NULL, 10);
    c->file_bytes = strtoll(argv[7], NULL, 10);
    snprintf(c->run, sizeof c->run, "%.900s/" VD_JOB_RUN, c->dir);
}

/* Writes the progress, which may be lost, and so goes no further than the page cache. */
static void write_progress(const vd_run_child *c, const vd_progress *p, uint32_t prompts_done,
                           uint32_t prompts) {
    char path[1100], temp[1100];
    snprintf(path, sizeof path, "%.900s/" VD_JOB_PROGRESS, c->dir);
    snprintf(temp, sizeof temp, "%.900s/" VD_JOB_PROGRESS ".new", c->dir);
    FILE *file = fopen(temp, "we");
    if (!file)
        return;
    const bool whole =
        fprintf(file, "%lld %.9g %.6f %lld %u %u\n", (long long)p->step, (double)p->loss,
                p->seconds, (long long)p->resumed_at, prompts_done, prompts) > 0;
    if (fclose(file) == 0 && whole)
        (void)!rename(temp, path);
}

void vd_child_tell(vd_run_child *c, const vd_progress *p, uint32_t prompts_done, uint32_t prompts) {
    enum { TELL_MS = 250 };
    const double now = vd_seconds();
    const bool last = prompts ? prompts_done == prompts : p->step == p->steps;
    if (!last && (now - c->told) * 1000 < TELL_MS)
        return;
    write_progress(c, p, prompts_done, prompts);
    c->told = now;
}

static bool see_step(void *user, const vd_progress *p) {
    vd_child_tell(user, p, 0, 0);
    return true;
}

static vd_status load(const vd_run_child *c, vd_loaded *loaded, vd_err *err) {
    vd_status status = vd_store_program(c->dir, &loaded->program, err);
    loaded->exec.program = &loaded->program;
    if (status == VD_OK && c->fault)
        status = vd_fault_parse(c->fault, &loaded->program, &loaded->exec.fault, err);
    if (status == VD_OK)
        status = vd_load_data(c->dir, NULL, loaded, err);
    return status == VD_OK ? vd_load_backend(loaded, &c->common, err) : status;
}

/* The run's folder serves by itself, as every run's. */
static vd_status copy_places(void *user, vd_err *err) {
    const vd_run_child *c = user;
    char path[1100];
    vd_buf text = {0};
    snprintf(path, sizeof path, "%.900s/" VD_JOB_DATA, c->dir);
    vd_status status = vd_read_file(path, VD_PLACES_BYTES_MAX, &text, err);
    snprintf(path, sizeof path, "%.1000s/data.json", c->run);
    if (status == VD_OK)
        status = vd_write_file(path, text.data, text.size, 0644, err);
    vd_buf_free(&text);
    return status;
}

static vd_status write_result(const vd_run_child *c, const vd_run_result *r, vd_err *err) {
    char path[1100], root[VD_ID_SIZE], state[VD_ID_SIZE], text[2 * VD_ID_SIZE + 1];
    snprintf(path, sizeof path, "%.900s/" VD_JOB_RESULT, c->dir);
    vd_hex(r->run_root.b, VD_HASH_SIZE, root);
    vd_hex(r->final_state.b, VD_HASH_SIZE, state);
    snprintf(text, sizeof text, "%s\n%s\n", root, state);
    return vd_write_file(path, text, strlen(text), 0644, err);
}

/* Hashes the state, so that the daemon, whose threads have others to answer, need not. */
static vd_status offer_state(const vd_run_child *c, const vd_loaded *loaded, vd_err *err) {
    char path[1100];
    vd_run_log log = {.count = 0};
    vd_offer *offer = NULL;
    const vd_check run = {.dir = c->run, .exec = &loaded->exec, .log = &log};
    snprintf(path, sizeof path, "%.900s/" VD_JOB_OFFER, c->dir);
    vd_status status = vd_store_load_log(c->run, &log, err);
    if (status == VD_OK)
        status = vd_offer_create(&run, &offer, err);
    if (status == VD_OK)
        status = vd_offer_save(offer, path, err);
    vd_offer_destroy(offer);
    vd_run_log_free(&log);
    return status;
}

vd_status vd_child_tell_idle(const vd_run_child *c, vd_err *err) {
    char path[1100];
    snprintf(path, sizeof path, "%.900s/" VD_JOB_IDLE, c->dir);
    return vd_write_file(path, "\n", 1, 0644, err);
}

static vd_status run(vd_run_child *c, vd_loaded *loaded, vd_err *err) {
    vd_one_run one = {.loaded = loaded, .save = copy_places, .user = c};
    one.options = (vd_run_options){.exec = &loaded->exec,
                                   .dir = c->run,
                                   .fault = c->fault,
                                   .progress = see_step,
                                   .user = c,
                                   .keep = (int32_t)c->keep};
    vd_status status = load(c, loaded, err);
    if (status == VD_OK)
        status = vd_run_one(&one, err);
    if (status == VD_OK && one.idle)
        status = vd_child_tell_idle(c, err);
    if (status == VD_OK)
        status = offer_state(c, loaded, err);
    return status == VD_OK ? write_result(c, &one.result, err) : status;
}

static vd_status confine(const vd_run_child *c, vd_err *err) {
    char told[1100];
    snprintf(told, sizeof told, "%.900s/" VD_JOB_TOLD, c->dir);
    const char *const reads[] = {c->dir, NULL}, *const writes[] = {c->run, told, NULL};
    const vd_child_limits limits = {.parent = c->parent,
                                    .memory = c->memory + c->memory / 4 + VD_CHILD_SPARE,
                                    .file_bytes = c->file_bytes,
                                    .places = {reads, writes, vd_child_has_gpu(&c->common)}};
    return vd_child_confine(&limits, err);
}

/* A referee's patience ends, a client's job may take longer: children that answer go first. It is
 * before any thread is started, which all inherit it. */
static void lower_priority(void) {
    errno = 0;
    if (nice(RUN_NICE) == -1 && errno)
        vd_say("verde provide: this job runs at the priority of answers: %s", strerror(errno));
}

vd_exit vd_provide_run_child(int argc, char **argv) {
    vd_run_child c = {.told = 0};
    vd_loaded loaded = {.data = {0}};
    vd_err err = {0};
    if (argc != RUN_ARGUMENTS)
        return VD_EXIT_USAGE;
    take_arguments(argv, &c);
    lower_priority();
    vd_status status = confine(&c, &err);
    if (status == VD_OK)
        status = vd_child_has_items(&c) ? vd_child_run_items(&c, &err) : run(&c, &loaded, &err);
    vd_loaded_free(&loaded);
    return status == VD_OK ? VD_EXIT_OK : vd_report(&err);
}
