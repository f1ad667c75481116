/* Journals: any state follows from their records, wherever the file is cut; damage is found; the
 * writing process may die. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verde/exec/journal.h"

enum { LEAVES = 3, STEPS = 6, WRITES = 4 };

static vd_leaf layout[LEAVES] = {
    {"k", {RO_F32, 3, {1, 9, 5}}}, {"count", {RO_I32, 1, {1}}}, {"half", {RO_U16, 1, {33}}}};
static const vd_program program = {.leaf = layout, .leaf_count = LEAVES, .steps = STEPS};
static const vd_hash program_hash = {{9, 8, 7}};

static uint64_t seed;
static uint64_t draw(uint64_t below) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % below;
}

static vd_state zeros(void) {
    vd_state state = {.step = -1, .count = LEAVES, .tensor = calloc(LEAVES, sizeof(void *))};
    for (uint32_t i = 0; i < LEAVES; i++)
        state.tensor[i] = calloc(1, vd_shape_bytes(&layout[i].shape));
    return state;
}

static vd_hash commitment(const vd_state *state) {
    vd_hash out;
    cr_assert(vd_state_hash(NULL, &program, &program_hash, state, NULL, &out, NULL) == VD_OK);
    return out;
}

static vd_written change(vd_state *state) {
    const uint32_t leaf = (uint32_t)draw(LEAVES);
    const size_t element = ro_dtype_size(layout[leaf].shape.dtype);
    const uint64_t count = vd_shape_bytes(&layout[leaf].shape) / element, from = draw(count);
    const uint64_t size = 1 + draw(count - from);
    for (uint64_t i = from * element; i < (from + size) * element; i++)
        ((uint8_t *)state->tensor[leaf])[i] = (uint8_t)draw(256);
    return (vd_written){leaf, from * element, size * element};
}

/* Does the same run every time: appends the records from step `from` on, and gives the hashes of
 * all states. */
static vd_status run_steps(vd_journal *j, int64_t from, vd_hash S[STEPS + 1]) {
    vd_state state = zeros();
    vd_status status = VD_OK;
    seed = 4;
    for (state.step = 0; status == VD_OK && state.step <= STEPS; state.step++) {
        vd_written written[WRITES];
        const uint32_t count = (uint32_t)draw(WRITES + 1); /* sometimes none */
        for (uint32_t i = 0; i < count; i++)
            written[i] = change(&state);
        S[state.step] = commitment(&state);
        if (state.step >= from)
            status = vd_journal_put(j, &state, &S[state.step], written, count, NULL);
    }
    vd_state_free(&state);
    return status;
}

static char dir[64];
static void make_dir(void) {
    strcpy(dir, "/tmp/vd-journal-XXXXXX");
    cr_assert(mkdtemp(dir) != NULL);
}

static void journal_path(char path[128]) {
    snprintf(path, 128, "%s/journal", dir);
}

static void remove_dir(void) {
    char path[128];
    journal_path(path);
    unlink(path);
    rmdir(dir);
}

static vd_buf whole_file(void) {
    char path[128];
    vd_buf bytes = {0};
    journal_path(path);
    cr_assert(vd_read_file(path, 1 << 20, &bytes, NULL) == VD_OK);
    return bytes;
}

static void put_file(const void *bytes, size_t size) {
    char path[128];
    journal_path(path);
    FILE *file = fopen(path, "w");
    cr_assert(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

static vd_status open_journal(int64_t synced, vd_journal *j, vd_err *err) {
    return vd_journal_open(dir, &program, &program_hash, synced, j, err);
}

static void write_whole(vd_hash S[STEPS + 1]) {
    vd_journal j;
    make_dir();
    cr_assert(vd_journal_create(dir, &program, &program_hash, &j, NULL) == VD_OK);
    cr_assert(run_steps(&j, 0, S) == VD_OK);
    cr_assert(vd_journal_sync(&j, NULL) == VD_OK);
    vd_journal_close(&j);
    vd_journal_close(&j);
}

Test(journal, leads_from_any_state_to_any_later_one) {
    vd_hash S[STEPS + 1];
    vd_journal j;
    write_whole(S);
    cr_assert(open_journal(STEPS + 1, &j, NULL) == VD_OK);
    cr_expect(j.count == STEPS + 1);
    for (int64_t from = -1; from <= STEPS; from++)
        for (int64_t to = from < 0 ? 0 : from; to <= STEPS; to++) {
            vd_state state = zeros();
            if (from >= 0)
                cr_assert(vd_journal_apply(&j, from, &state, NULL) == VD_OK);
            cr_assert(vd_journal_apply(&j, to, &state, NULL) == VD_OK);
            const vd_hash got = commitment(&state);
            cr_expect(state.step == to && vd_hash_equal(&got, &S[to]) &&
                      vd_hash_equal(&got, &j.step[to].state));
            vd_state_free(&state);
        }
    vd_state state = zeros();
    cr_expect(vd_journal_apply(&j, STEPS + 1, &state, NULL) == VD_ERR_LOCAL);
    vd_state_free(&state);
    vd_journal_close(&j);
    remove_dir();
}

Test(journal, cut_at_every_byte_goes_on_to_the_same_file) {
    vd_hash S[STEPS + 1], again[STEPS + 1];
    vd_err err;
    write_whole(S);
    vd_buf whole = whole_file();
    for (size_t size = 48; size <= whole.size; size++) { /* the header has 48 bytes */
        vd_journal j;
        put_file(whole.data, size);
        cr_assert(open_journal(0, &j, &err) == VD_OK, "%zu bytes: %s", size, err.text);
        cr_expect(j.size <= size);
        cr_assert(run_steps(&j, j.count, again) == VD_OK);
        vd_journal_close(&j);
        vd_buf got = whole_file();
        cr_assert(got.size == whole.size && memcmp(got.data, whole.data, got.size) == 0,
                  "cut at %zu", size);
        vd_buf_free(&got);
    }
    for (size_t size = 0; size < 48; size++) {
        vd_journal j;
        put_file(whole.data, size);
        cr_assert(open_journal(0, &j, &err) == VD_ERR_PEER);
        cr_expect(strstr(err.text, "not a journal"));
    }
    vd_buf_free(&whole);
    remove_dir();
}

/* Records behind damage are never accepted, and a record that is known to have been on disk is
 * missed. */
Test(journal, no_flipped_bit_is_taken_for_good) {
    vd_hash S[STEPS + 1];
    vd_err err;
    write_whole(S);
    vd_buf whole = whole_file();
    for (size_t at = 0; at < whole.size; at++) {
        vd_journal j;
        whole.data[at] ^= (uint8_t)(1 << at % 8);
        put_file(whole.data, whole.size);
        const vd_status status = open_journal(STEPS + 1, &j, &err);
        const bool in_version = at == 14 || at == 15; /* the version, after the name and its zero */
        cr_expect(status == (in_version ? VD_ERR_VERSION : VD_ERR_PEER), "byte %zu", at);
        cr_expect(at < 48 || strstr(err.text, "is damaged, and was on disk whole"), "%s", err.text);
        if (at >= 48) {
            put_file(whole.data, whole.size);
            cr_assert(open_journal(0, &j, &err) == VD_OK);
            cr_expect(j.count <= STEPS && j.size <= at);
            vd_journal_close(&j);
        }
        whole.data[at] ^= (uint8_t)(1 << at % 8);
    }
    vd_buf_free(&whole);
    remove_dir();
}

/* The kernel ends the process at the write that passes `limit` bytes, after writing what fits. */
static void die_at(uint64_t limit) {
    vd_hash S[STEPS + 1];
    vd_journal j;
    const struct rlimit most = {limit, limit};
    if (open_journal(0, &j, NULL) != VD_OK)
        _exit(1);
    signal(SIGXFSZ, SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    setrlimit(RLIMIT_FSIZE, &most);
    _exit(run_steps(&j, j.count, S) == VD_OK ? 0 : 2);
}

Test(journal, a_process_that_dies_at_any_write_leaves_whole_records) {
    vd_hash S[STEPS + 1], again[STEPS + 1];
    write_whole(S);
    vd_buf whole = whole_file();
    for (size_t limit = 48; limit < whole.size; limit += 23) {
        vd_journal j;
        int how;
        put_file(whole.data, 48);
        const pid_t pid = fork();
        cr_assert(pid >= 0);
        if (pid == 0)
            die_at(limit);
        cr_assert(waitpid(pid, &how, 0) == pid);
        cr_assert(WIFSIGNALED(how), "%d at %zu", how, limit);
        cr_assert(open_journal(0, &j, NULL) == VD_OK);
        cr_assert(run_steps(&j, j.count, again) == VD_OK);
        vd_journal_close(&j);
        vd_buf got = whole_file();
        cr_assert(got.size == whole.size && memcmp(got.data, whole.data, got.size) == 0);
        vd_buf_free(&got);
    }
    vd_buf_free(&whole);
    remove_dir();
}

Test(journal, of_another_program_or_none_is_refused) {
    vd_hash S[STEPS + 1];
    const vd_hash other = {{1}};
    vd_journal j;
    vd_err err;
    write_whole(S);
    cr_expect(vd_journal_open(dir, &program, &other, 0, &j, &err) == VD_ERR_PEER);
    cr_expect(vd_journal_open("/nowhere", &program, &other, 0, &j, &err) == VD_ERR_IO);
    vd_journal_close(&j);
    remove_dir();
}
