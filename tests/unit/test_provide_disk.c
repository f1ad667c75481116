/* A daemon whose job writes more than it may. A shell script runs in place of the job. */
#include "net_peers.h"

#include <sys/stat.h>

#include "verde/provide/internal.h"

TestSuite(provide_disk, .timeout = 120);

/* $1 is the daemon's process, $2 the job's folder. */
static char run_script[] = "head -c 40000000 /dev/zero > \"$2/run/file\"; exec sleep 100";
static char *run_argv[] = {"/bin/sh", "-c", run_script, "run", NULL};

static void keep_quiet(const char *format, ...) {
    (void)format;
}

static void *serve(void *user) {
    cr_assert(vd_daemon_run(user, NULL) == VD_OK);
    return NULL;
}

/* Puts a job into the ledger before the daemon opens it. */
static vd_job_record put_job(const char *dir) {
    static const char *const folders[] = {"", VD_JOB_RUN, VD_JOB_TOLD};
    const vd_daemon daemon = {.options = {.dir = dir}};
    char path[1200];
    vd_ledger *ledger;
    vd_job_record job = {.state = VD_JOB_QUEUED, .disk = 1000};
    memset(job.id, '7', VD_ID_SIZE - 1);
    memset(job.program, '8', VD_ID_SIZE - 1);
    memset(job.client, '9', VD_ID_SIZE - 1);
    const char *blobs[] = {job.program, NULL}, *none[] = {NULL};
    cr_assert(vd_ledger_open(dir, &ledger, NULL) == VD_OK);
    cr_assert(vd_ledger_put_job(ledger, &job, blobs, none, NULL) == VD_OK);
    vd_ledger_close(ledger);
    vd_job_path(&daemon, "", "", path);
    cr_assert(mkdir(path, 0700) == 0);
    for (int i = 0; i < 3; i++) {
        vd_job_path(&daemon, job.id, folders[i], path);
        cr_assert(mkdir(path, 0700) == 0);
    }
    return job;
}

Test(provide_disk, a_job_that_writes_more_than_was_estimated_is_stopped) {
    char dir[] = "/tmp/verde-disk-XXXXXX", command[96];
    identity self = make_identity();
    vd_daemon *daemon;
    vd_key *key;
    vd_public_key client_key;
    pthread_t thread;
    vd_err err = {0};
    bool found = false;
    cr_assert(mkdtemp(dir));
    vd_job_record job = put_job(dir);
    cr_assert(vd_key_load(self.key_file, &key, NULL) == VD_OK);
    vd_key_public(key, &client_key);
    const vd_daemon_options options = {.dir = dir,
                                       .listen = "127.0.0.1:0",
                                       .cert_path = self.cert,
                                       .key_path = self.key_file,
                                       .key = key,
                                       .client = &client_key,
                                       .client_count = 1,
                                       .limits = {.client_bytes = 1 << 30, .keep_s = 86400},
                                       .jobs = 1,
                                       .run_argv = run_argv,
                                       .say = keep_quiet};
    cr_assert(vd_daemon_create(&options, &daemon, &err) == VD_OK, "%s", err.text);
    cr_assert(pthread_create(&thread, NULL, serve, daemon) == 0);
    for (int i = 0; i < 6000 && job.state <= VD_JOB_RUNNING; i++) {
        cr_assert(vd_ledger_get_job(daemon->ledger, NULL, job.id, &job, &found, NULL) == VD_OK);
        sleep_ms(10);
    }
    cr_expect(job.state == VD_JOB_FAILED);
    cr_expect(strstr(job.error, "written more to the disk"), "%s", job.error);
    cr_expect(job.written > 16 << 20, "%lld", (long long)job.written);
    vd_daemon_stop(daemon);
    pthread_join(thread, NULL);
    vd_daemon_destroy(daemon);
    vd_key_destroy(key);
    remove_identity(&self);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    cr_expect(system(command) == 0);
}
