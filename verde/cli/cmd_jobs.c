/* This file is `verde jobs`, which lists and cancels jobs at providers. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verde/cli/cli.h"
#include "verde/cli/jobs_list.h"
#include "verde/delivery/download.h"

enum {
    JOBS_MAX = 64,     /* jobs that one command may name */
    ID_LEAST = 4,      /* the fewest digits that may stand for a job's name */
    POLL_MS = 200,     /* between questions whether a cancelled job has ended */
    DATA_URL_MAX = 512 /* bytes of DATA/url */
};

typedef enum { JOBS_LIST, JOBS_CANCEL, JOBS_DELETE } jobs_verb;

typedef struct {
    jobs_verb verb;
    const char *url[VD_DOWNLOAD_PROVIDERS_MAX];
    uint32_t urls;
    const char *key_dir, *data;
    const char *job[JOBS_MAX]; /* a name, or its first digits */
    uint32_t jobs;
    long patience_s;
    vd_common common;
} jobs_arguments;

typedef struct {
    const jobs_arguments *a;
    uint32_t number; /* of the provider, from 1 on */
    vd_endpoint at;
    vd_remote remote;
    vd_remote_entry *entry;
    uint32_t count;
    bool found[JOBS_MAX]; /* whether a provider asked so far has the job */
    vd_err *err;
} jobs_session;

/* ---- one job ---- */

/* Finds the one job whose name begins with the given digits. NULL: this provider has none. */
static vd_status find_entry(jobs_session *s, uint32_t job, const vd_remote_entry **out) {
    const char *name = s->a->job[job];
    *out = NULL;
    for (uint32_t i = 0; i < s->count; i++) {
        if (strncmp(s->entry[i].id, name, strlen(name)) != 0)
            continue;
        if (*out)
            return vd_fail(s->err, VD_ERR_USAGE, "%s: two jobs at %s begin so; give more digits",
                           name, s->at.url);
        *out = &s->entry[i];
    }
    s->found[job] |= *out != NULL;
    return VD_OK;
}

static void pause_ms(long ms) {
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* Waits for the state in which a cancelled job ends: a running one ends after its step. */
static vd_status wait_for_end(jobs_session *s, const char *id, vd_remote_state *state) {
    const double start = vd_seconds();
    vd_remote_job job = {.state = VD_REMOTE_RUNNING};
    vd_status status = VD_OK;
    for (;;) {
        status = vd_remote_ask_job(&s->remote, id, &job, s->err);
        *state = job.state;
        if (status != VD_OK || job.state > VD_REMOTE_RUNNING ||
            vd_seconds() - start > (double)s->a->patience_s)
            return status;
        pause_ms(POLL_MS);
    }
}

static vd_status change_entry(jobs_session *s, const vd_remote_entry *e, json_t *list) {
    const bool cancels = s->a->verb == JOBS_CANCEL;
    vd_remote_state state = e->job.state;
    vd_status status = cancels ? vd_remote_cancel_job(&s->remote, e->id, s->err)
                               : vd_remote_delete_job(&s->remote, e->id, s->err);
    if (status == VD_OK && cancels)
        status = wait_for_end(s, e->id, &state);
    if (status != VD_OK)
        return status;
    const char *now = !cancels                     ? "deleted"
                      : state <= VD_REMOTE_RUNNING ? "ends after its step"
                                                   : vd_remote_state_name(state);
    if (list)
        json_array_append_new(list, json_pack("{ss ss ss}", "url", s->a->url[s->number - 1], "job",
                                              e->id, "state", now));
    else
        printf("%.*s  %s at %s: %s\n", VD_JOB_SHOWN, e->id, now, s->at.url, e->name);
    return VD_OK;
}

static vd_status change_jobs(jobs_session *s, json_t *list) {
    vd_status status = VD_OK;
    for (uint32_t i = 0; i < s->a->jobs && status == VD_OK; i++) {
        const vd_remote_entry *e;
        status = find_entry(s, i, &e);
        if (status == VD_OK && e)
            status = change_entry(s, e, list);
    }
    return status;
}

/* ---- each provider ---- */

static vd_status open_session(jobs_session *s, const char *url, const vd_key *key) {
    vd_status status = vd_endpoint_parse(url, &s->at, s->err);
    if (status == VD_OK && !s->at.pinned)
        status = vd_fail(s->err, VD_ERR_USAGE,
                         "%s: `#KEY` is missing; give the URL as `verde provide` prints it", url);
    s->remote = (vd_remote){.at = &s->at, .key = key, .patience_s = (int)s->a->patience_s};
    if (status == VD_OK)
        status = vd_client_create(NULL, &s->remote.client, s->err);
    return status == VD_OK ? vd_remote_list_jobs(&s->remote, &s->entry, &s->count, s->err) : status;
}

static vd_status visit(jobs_session *s, const char *url, const vd_key *key, json_t *list) {
    vd_status status = open_session(s, url, key);
    if (status == VD_OK && s->a->verb != JOBS_LIST) {
        status = change_jobs(s, list);
    } else if (status == VD_OK && list) {
        json_array_append_new(
            list, json_pack("{ss so}", "url", url, "jobs", vd_jobs_json(s->entry, s->count)));
    } else if (status == VD_OK) {
        if (s->a->urls > 1)
            printf("provider %u  %s\n", s->number, s->at.url);
        vd_jobs_text(s->entry, s->count);
    }
    free(s->entry);
    vd_client_destroy(s->remote.client);
    s->entry = NULL;
    s->count = 0;
    return status;
}

/* Asks all providers, also after one that does not answer. */
static vd_exit visit_all(const jobs_arguments *a, const vd_key *key) {
    vd_exit code = VD_EXIT_OK;
    vd_err err = {0};
    jobs_session s = {.a = a, .err = &err};
    json_t *list = a->common.json ? json_array() : NULL;
    bool all = true; /* all providers have answered */
    for (uint32_t i = 0; i < a->urls; i++) {
        s.number = i + 1;
        if (visit(&s, a->url[i], key, list) != VD_OK) {
            code = vd_report(&err);
            all = false;
        }
    }
    for (uint32_t i = 0; i < a->jobs && all; i++)
        if (!s.found[i]) {
            fprintf(stderr, "verde: %s: there is no such job; `verde jobs` lists them\n",
                    a->job[i]);
            code = VD_EXIT_USAGE;
        }
    if (list)
        vd_print_json(json_pack("{so}", a->verb == JOBS_LIST ? "providers" : "jobs", list));
    return code;
}

/* ---- the command ---- */

static bool take_job(jobs_arguments *a, const char *text) {
    const size_t size = strlen(text);
    if (a->jobs < JOBS_MAX && size >= ID_LEAST && size < VD_REMOTE_ID_SIZE &&
        text[strspn(text, "0123456789abcdef")] == 0) {
        a->job[a->jobs++] = text;
        return true;
    }
    fprintf(stderr,
            "verde: \"%.80s\" is no job: a job is named by the first %d or more of its 64 digits, "
            "as `verde jobs` lists them\n",
            text, ID_LEAST);
    return false;
}

static bool take_words(jobs_arguments *a, int count, char *const *word) {
    static const char *const verbs[] = {"list", "cancel", "delete"};
    for (int v = 0; count > 0 && v < 3; v++)
        if (strcmp(word[0], verbs[v]) == 0)
            a->verb = (jobs_verb)v;
    const int first = count > 0 && (a->verb || strcmp(word[0], "list") == 0);
    for (int i = first; i < count; i++)
        if (!take_job(a, word[i]))
            return false;
    const bool named = a->data ? a->urls == 0 : a->urls > 0 && a->key_dir;
    if (named && (a->verb == JOBS_LIST ? a->jobs == 0 : a->jobs > 0))
        return true;
    fprintf(stderr, "verde: jobs takes nothing, or `cancel` or `delete` and jobs; and --provider "
                    "URL once or more and --key DIR, or --data DIR\n");
    return false;
}

/* With --data, the operator asks by the daemon's own key, at the address that the daemon wrote into
 * DATA/url when it started. */
static vd_status take_data(jobs_arguments *a, char url[DATA_URL_MAX], char key_dir[1100],
                           vd_err *err) {
    char path[1100];
    vd_buf text = {0};
    if (!a->data)
        return VD_OK;
    snprintf(path, sizeof path, "%.1000s/url", a->data);
    vd_status status = vd_read_file(path, DATA_URL_MAX - 1, &text, err);
    if (status != VD_OK)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: cannot be read: is %s the --dir of a `verde provide`"
                       " that runs?",
                       path, a->data);
    snprintf(url, DATA_URL_MAX, "%.*s", (int)strcspn((const char *)text.data, "\n"),
             (const char *)text.data);
    vd_buf_free(&text);
    snprintf(key_dir, 1100, "%.1000s/keys", a->data);
    a->url[a->urls++] = url;
    a->key_dir = a->key_dir ? a->key_dir : key_dir;
    return VD_OK;
}

static jobs_arguments given;

static vd_exit jobs(int argc, char **argv) {
    char url[DATA_URL_MAX], key_dir[1100], key_file[1200];
    given = (jobs_arguments){.patience_s = 10};
    vd_exit code;
    vd_key *key = NULL;
    vd_err err = {0};
    if (!vd_take_options(&vd_cmd_jobs, argc, argv, &code))
        return code;
    if (!take_words(&given, argc - optind, argv + optind))
        return VD_EXIT_USAGE;
    vd_status status = take_data(&given, url, key_dir, &err);
    if (status == VD_OK) {
        snprintf(key_file, sizeof key_file, "%.1100s/key.pem", given.key_dir);
        status = vd_key_load(key_file, &key, &err);
    }
    code = status == VD_OK ? visit_all(&given, key) : vd_report(&err);
    vd_key_destroy(key);
    return code;
}

static const vd_option options[] = {
    {"  --provider URL   as `verde provide` prints it, with its key; up to 16\n", given.url,
     vd_take_url, .most = VD_DOWNLOAD_PROVIDERS_MAX, .count = &given.urls, .often = true},
    {"  --key DIR        the client's identity, as given to `verde delegate`\n", &given.key_dir},
    {"  --data DATA      of the operator: the folder that is --dir of `verde provide`, on the "
     "same\n"
     "                   machine; with --key DIR if its key is not in DATA/keys\n",
     &given.data},
    {"  --timeout S      seconds for which a provider that does not answer is asked again\n"
     "                   (default: 10)\n",
     &given.patience_s, .least = 1, .most = 86400, .often = true},
    {"  --json           one JSON object on standard output at the end\n", &given.common.json},
    {"  --help, -h       this text\n"},
    VD_HIDDEN_ROWS(given.common),
    {NULL}};

const vd_command vd_cmd_jobs = {
    "jobs",
    "list, cancel and delete jobs at providers",
    "Usage: verde jobs [list] --provider URL [...] --key DIR [options]\n"
    "       verde jobs cancel JOB [...] --provider URL [...] --key DIR [options]\n"
    "       verde jobs delete JOB [...] --provider URL [...] --key DIR [options]\n"
    "       verde jobs ... --data DATA [options]\n\n"
    "Lists a client's jobs at the daemons of providers (`verde provide`), the oldest first; ends\n"
    "jobs that wait or run; or deletes jobs that have ended, with their checkpoints, which makes\n"
    "room: each job counts for what the client may have there, until it is deleted. A dispute\n"
    "about a job that was deleted cannot be answered. A job has the same name at all providers.\n"
    "Who handed it over with `verde delegate` may do so again: a job that was cancelled goes on\n"
    "from its last checkpoint.\n\n"
    "With --data the operator of a daemon lists, cancels and deletes the jobs of all clients, by\n"
    "the daemon's own key, while the daemon runs.\n\n"
    "  JOB              the first 4 or more of its 64 digits\n",
    options,
    "\n"
    "Exit code 2: there is no such job. 6: a provider refuses, as to delete a job that runs.\n"
    "1: one does not answer.\n\n"
    "Examples:\n"
    "  verde jobs --key client --provider https://a.example:8443#KEY\n"
    "  verde jobs cancel 9f2c41d0 --key client --provider https://a.example:8443#KEY\n"
    "  verde jobs delete 9f2c41d0 --key client --provider https://a.example:8443#KEY\n"
    "  verde jobs --data /srv/verde\n" VD_EXIT_HELP,
    jobs};
