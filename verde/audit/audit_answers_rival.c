/* Runs a wrong answer's prompt here, and disputes it with the provider. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verde/audit/audit_answers.h"
#include "verde/client/arbitrate.h"
#include "verde/load/verdict_file.h"
#include "verde/run/out_dir.h"
#include "verde/run/run_items.h"

enum { URL_SIZE = 300 };

/* ---- the rival's run ---- */

typedef struct {
    vd_answers_check *c;
    uint32_t prompt;
} own_run;

static vd_status load(void *user, uint32_t item, vd_err *err) {
    const own_run *r = user;
    (void)item; /* there is only one */
    return vd_load_prompt(&r->c->loaded, r->prompt, err);
}

static void see(void *user, const vd_items_progress *progress) {
    (void)user, (void)progress;
}

/* Runs the prompt into WORK/prompts/KEY; *root becomes its run root. */
static vd_status run_own(own_run *r, vd_hash *root) {
    vd_answers_check *c = r->c;
    vd_items one = {0};
    vd_items_run run = {.loaded = &c->loaded,
                        .dir = c->a->work,
                        .items = &one,
                        .load = load,
                        .own_data = vd_prompt_own_data(&c->loaded),
                        .makes_tokens = true,
                        .together = 1,
                        .progress = see,
                        .user = r};
    uint32_t made;
    vd_status status = vd_items_create(1, &one, c->err);
    if (status == VD_OK) {
        one.key[0] = c->items.key[r->prompt];
        one.program[0] = c->items.program[r->prompt];
        status = vd_open_run_dir(c->a->work, &made, c->err);
    }
    if (status == VD_OK)
        status = vd_items_begin(c->a->work, &one, c->err);
    if (status == VD_OK)
        status = vd_run_items(&run, c->err);
    if (status == VD_OK)
        *root = one.run_root[0];
    vd_items_free(&one);
    return status;
}

/* Writes the folder of all prompts: the others have the run roots that were delivered. */
static vd_status name_all(own_run *r, const vd_hash *root) {
    vd_items *items = &r->c->items;
    for (uint32_t i = 0; i < items->count; i++)
        items->done[i] = true, items->delivered[i] = i != r->prompt;
    items->run_root[r->prompt] = *root;
    return vd_items_save(r->c->a->work, items, r->c->err);
}

/* Returns true if an earlier command has already run the prompt in WORK. */
static bool is_there(const own_run *r, vd_hash *root) {
    const vd_items *mine = &r->c->items;
    vd_items there = {0};
    vd_err unread = {0};
    bool same = vd_items_load(r->c->a->work, &there, &unread) == VD_OK &&
                there.count == mine->count && !there.delivered[r->prompt];
    for (uint32_t i = 0; same && i < mine->count; i++)
        same = vd_hash_equal(&there.program[i], &mine->program[i]) &&
               (i == r->prompt ||
                (there.delivered[i] && vd_hash_equal(&there.run_root[i], &mine->run_root[i])));
    if (same)
        *root = there.run_root[r->prompt];
    vd_items_free(&there);
    return same;
}

static vd_status make_rival(own_run *r) {
    vd_hash root;
    vd_status status = is_there(r, &root) ? VD_OK : run_own(r, &root);
    return status == VD_OK ? name_all(r, &root) : status;
}

/* ---- the rival's server ---- */

typedef struct {
    pid_t pid; /* 0: not running */
    char url[URL_SIZE];
} rival;

static void serve(const vd_answers_check *c, const char *referee, int to) {
    char log[1100], threads[16];
    snprintf(log, sizeof log, "%.1000s/serve.log", c->a->work);
    snprintf(threads, sizeof threads, "%d", c->a->common.threads);
    const char *argv[] = {"verde",
                          "serve",
                          c->a->work,
                          "--referee",
                          referee,
                          "--threads",
                          threads,
                          c->a->common.backend ? "--backend" : NULL,
                          c->a->common.backend,
                          NULL};
    const int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && fd >= 0 && dup2(to, 1) == 1 && dup2(fd, 2) == 2)
        execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
    _exit(127);
}

static bool read_line(int fd, char *line, size_t size) {
    size_t used = 0;
    for (ssize_t got = 1; used + 1 < size && got > 0; used += (size_t)got) {
        got = read(fd, line + used, 1);
        if (got < 0 && errno == EINTR)
            got = 0;
        else if (got <= 0 || line[used] == '\n')
            break;
    }
    line[used] = 0;
    return used > 0;
}

static vd_status start_rival(const vd_answers_check *c, const char *referee, rival *out) {
    int fd[2];
    if (pipe2(fd, O_CLOEXEC) != 0)
        return vd_fail(c->err, VD_ERR_LOCAL, "could not start a server of %s: %s", c->a->work,
                       strerror(errno));
    out->pid = fork();
    if (out->pid == 0)
        serve(c, referee, fd[1]);
    close(fd[1]);
    const bool said = out->pid > 0 && read_line(fd[0], out->url, sizeof out->url);
    close(fd[0]);
    return said ? VD_OK
                : vd_fail(c->err, VD_ERR_LOCAL,
                          "%s: `verde serve` of it does not start; serve.log there may say why",
                          c->a->work);
}

static void stop_rival(const rival *r) {
    if (r->pid <= 0)
        return;
    kill(r->pid, SIGTERM);
    while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

/* ---- the dispute ---- */

/* Keeps the verdict if it accepts the rival's root, else removes it: a provider that states another
 * job root than it delivered may have won by prompts that the rival never ran, which proves
 * nothing. */
static vd_status keep_verdict(vd_answers_check *c, const char *referee) {
    const char *path = c->a->verdict;
    vd_verdict verdict = {0};
    vd_hash root;
    if (c->outcome == VD_EXIT_OK || access(path, F_OK) != 0)
        return VD_OK;
    vd_status status = vd_items_job_root(&c->items, &root, c->err);
    if (status == VD_OK)
        status = vd_load_verdict(path, referee, false, &verdict, c->err);
    const bool stands = status == VD_OK && verdict.outcome.accepted &&
                        vd_hash_equal(&verdict.outcome.run_root, &root);
    vd_verdict_free(&verdict);
    if (status != VD_OK || stands)
        return status;
    unlink(path);
    c->outcome = VD_EXIT_INCONCLUSIVE;
    vd_say(
        "verde: there is no verdict: the provider states another job root than it delivered, and "
        "only a run of all prompts is a rival for that; `verde run` the job, `verde serve` it, "
        "and `verde arbitrate`");
    return VD_OK;
}

static vd_status arbitrate(vd_answers_check *c, const rival *r, const char *referee) {
    const vd_answers_arguments *a = c->a;
    const vd_arbitrate_arguments options = {.job = a->job,
                                            .verdict = a->verdict,
                                            .key_dir = a->key_dir,
                                            .ca = a->ca,
                                            .url = {a->url, r->url},
                                            .urls = 2,
                                            .patience_s = a->patience_s,
                                            .step_s_max = a->step_s_max,
                                            .force = a->force,
                                            .no_challenge = true, /* the rival does not run again */
                                            .own_rival = !a->accepted,
                                            .quiet = a->common.json || a->report,
                                            .common = a->common};
    c->outcome = vd_arbitrate(&options);
    c->disputed = true;
    return keep_verdict(c, referee);
}

static uint32_t first_wrong(const vd_answers_check *c) {
    uint32_t prompt = UINT32_MAX;
    for (uint32_t i = 0; i < c->differences; i++)
        prompt = c->difference[i].prompt < prompt ? c->difference[i].prompt : prompt;
    return prompt;
}

static void tell(const own_run *r) {
    char line[400];
    snprintf(line, sizeof line,
             "Prompt %u of the file (item %u) is run here, as the provider's rival: %.200s.",
             r->prompt + 1, r->prompt, r->c->a->work);
    vd_tell(NULL, line);
}

vd_status vd_answers_dispute(vd_answers_check *c) {
    own_run own = {c, first_wrong(c)};
    rival r = {0};
    vd_public_key referee;
    char hex[2 * VD_KEY_SIZE + 1];
    vd_key *key = NULL;
    if (own.prompt == UINT32_MAX)
        return vd_fail(c->err, VD_ERR_USAGE,
                       "%s: has more lines than the job has prompts, about which nobody disputes",
                       c->lines.path);
    vd_status status = vd_load_key(c->a->key_dir, &key, c->err);
    if (status != VD_OK)
        return status;
    vd_key_public(key, &referee);
    vd_key_destroy(key);
    vd_hex(referee.b, VD_KEY_SIZE, hex);
    tell(&own);
    status = make_rival(&own);
    if (status == VD_OK)
        status = start_rival(c, hex, &r);
    if (status == VD_OK)
        status = arbitrate(c, &r, hex);
    stop_rival(&r);
    return status;
}
