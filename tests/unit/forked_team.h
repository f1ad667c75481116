/* Teams of processes on this machine, which are children of the test, connected by sockets. */
#ifndef FORKED_TEAM_H
#define FORKED_TEAM_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verde/commit/commit.h"
#include "tests/support/sockets.h"

enum { RANKS_MAX = 8, STATES = 4, PATIENCE_MS = 20000 };

/* A rank's report: commitments of all states of a run, and bytes sent and received. */
typedef struct {
    vd_hash state[STATES];
    vd_hash root; /* of a run in a folder */
    uint64_t sent, received;
    bool ok;
    char error[sizeof((vd_err *)NULL)->text];
} outcome;

typedef struct {
    uint32_t ranks;
    uint32_t dies; /* a rank that ends immediately; UINT32_MAX: none */
    vd_status (*work)(const void *job, uint32_t rank, const vd_transport *transport, outcome *out,
                      vd_err *err);
    const void *job;
} forked_team;

typedef struct {
    int end[RANKS_MAX][RANKS_MAX]; /* [a][b]: a's socket to b */
} wiring;

static void connect_all(wiring *w, uint32_t ranks) {
    for (uint32_t a = 0; a < ranks; a++)
        for (uint32_t b = a + 1; b < ranks; b++) {
            int both[2];
            cr_assert(socketpair(AF_UNIX, SOCK_STREAM, 0, both) == 0);
            w->end[a][b] = both[0];
            w->end[b][a] = both[1];
        }
}

/* Closes the sockets of all ranks except `but`. */
static void close_ends(const wiring *w, uint32_t ranks, uint32_t but) {
    for (uint32_t a = 0; a < ranks; a++)
        for (uint32_t b = 0; b < ranks; b++)
            if (a != b && a != but)
                close(w->end[a][b]);
}

/* Runs a member in its own process. */
static void be_member(const forked_team *team, uint32_t rank, const int *sockets, outcome *out) {
    test_sockets *s;
    vd_err err = {0};
    vd_status status = test_sockets_create(rank, team->ranks, sockets, PATIENCE_MS, &s, &err);
    if (status == VD_OK && rank == team->dies)
        _exit(3);
    if (status == VD_OK) {
        const vd_transport t = test_sockets_transport(s);
        status = team->work(team->job, rank, &t, out, &err);
        test_sockets_destroy(s, status == VD_OK);
    }
    out->ok = status == VD_OK;
    snprintf(out->error, sizeof out->error, "%s", err.text);
}

static pid_t start_member(const forked_team *team, uint32_t rank, const wiring *w, int result) {
    const pid_t pid = fork();
    cr_assert(pid >= 0);
    if (pid > 0)
        return pid;
    outcome *out = calloc(1, sizeof *out);
    close_ends(w, team->ranks, rank);
    be_member(team, rank, w->end[rank], out);
    const ssize_t written = write(result, out, sizeof *out);
    const bool ok = written == sizeof *out;
    free(out);
    _exit(ok ? 0 : 1);
}

/* Fills out[rank]; all zeros for a rank that died. */
static void run_forked(const forked_team *team, outcome *out) {
    wiring w;
    int result[RANKS_MAX][2];
    pid_t pid[RANKS_MAX];
    connect_all(&w, team->ranks);
    for (uint32_t r = 0; r < team->ranks; r++) {
        cr_assert(pipe(result[r]) == 0);
        pid[r] = start_member(team, r, &w, result[r][1]);
        close(result[r][1]);
    }
    close_ends(&w, team->ranks, UINT32_MAX);
    memset(out, 0, team->ranks * sizeof *out);
    for (uint32_t r = 0; r < team->ranks; r++) {
        int ended;
        const ssize_t got = read(result[r][0], &out[r], sizeof out[r]);
        cr_expect(got == sizeof out[r] || r == team->dies);
        close(result[r][0]);
        cr_assert(waitpid(pid[r], &ended, 0) == pid[r]);
        cr_expect(r == team->dies || (WIFEXITED(ended) && WEXITSTATUS(ended) == 0));
    }
}

#endif
