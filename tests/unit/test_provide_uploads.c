/* Blobs in chunks: resumed, refused, shared, collected. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "provide_dir.h"

static vd_uploads uploads;

static void open_uploads(void) {
    vd_err err = {0};
    cr_assert(vd_uploads_open(&uploads, provide_dir, ledger, &err) == VD_OK, "%s", err.text);
}

static void begin(void) {
    setup();
    open_uploads();
}

static void end(void) {
    vd_uploads_close(&uploads);
    teardown();
}

TestSuite(provide_uploads, .init = begin, .fini = end, .timeout = 30);

enum { QUOTA = 5 * VD_DISK_BLOCK, BLOBS = 12 };
static vd_quota quota = {QUOTA, BLOBS};
static const char bytes[] = "hello, world";
#define SIZE (sizeof bytes - 1)

static const char *name_of(const void *data, size_t size) {
    static char hex[VD_ID_SIZE];
    vd_hash hash;
    cr_assert(vd_hash_tagged(NULL, data, size, &hash));
    vd_hex(hash.b, VD_HASH_SIZE, hex);
    return hex;
}

static vd_chunk_fate put(const char *client, const char *hash, uint64_t size, uint64_t from,
                         size_t count, uint64_t *have) {
    const vd_chunk chunk = {client, hash, size, from, bytes + from % SIZE, count};
    vd_chunk_fate fate;
    vd_upload_place place;
    vd_err err = {0};
    cr_assert(vd_uploads_put(&uploads, &chunk, &quota, 1, &fate, &place, &err) == VD_OK, "%s",
              err.text);
    *have = place.have;
    return fate;
}

static vd_upload_place find(const char *client, const char *hash, uint64_t *have) {
    vd_upload_place place;
    vd_chunk_fate fate;
    cr_assert(vd_uploads_find(&uploads, client, hash, &fate, &place, NULL) == VD_OK);
    cr_expect(fate == VD_CHUNK_TAKEN);
    *have = place.have;
    return place;
}

/* Waits while the upload is being hashed. */
static vd_chunk_fate wait_for(const char *client, const char *hash, vd_upload_place *place) {
    vd_chunk_fate fate;
    do {
        cr_assert(vd_uploads_find(&uploads, client, hash, &fate, place, NULL) == VD_OK);
        usleep(1000);
    } while (place->hashing);
    return fate;
}

static bool is_on_disk(const char *hash) {
    char path[1100];
    struct stat info;
    vd_uploads_path(&uploads, hash, path);
    return stat(path, &info) == 0;
}

static int files_of_uploads(void) {
    char command[128];
    snprintf(command, sizeof command, "exit $(ls %s/uploads | wc -l)", provide_dir);
    return WEXITSTATUS(system(command));
}

/* Works wherever the bytes are split, and if the daemon restarts in between. */
Test(provide_uploads, chunks_become_a_blob) {
    const char *hash = name_of(bytes, SIZE);
    for (size_t cut = 1; cut < SIZE; cut++)
        for (int restart = 0; restart < 2; restart++) {
            uint64_t have;
            cr_expect(put(alice, hash, SIZE, 0, cut, &have) == VD_CHUNK_TAKEN && have == cut);
            cr_expect(!find(alice, hash, &have).complete && have == cut);
            if (restart) {
                vd_uploads_close(&uploads);
                reopen();
                open_uploads();
            }
            cr_expect(!is_on_disk(hash));
            cr_expect(put(alice, hash, SIZE, cut, SIZE - cut, &have) == VD_CHUNK_TAKEN);
            cr_expect(have == SIZE && find(alice, hash, &have).complete && is_on_disk(hash));
            cr_expect(files_of_uploads() == 0);
            cr_assert(vd_uploads_collect(&uploads, 2, NULL) == VD_OK);
            cr_expect(!is_on_disk(hash) && find(alice, hash, &have).size == -1);
        }
}

Test(provide_uploads, a_chunk_must_begin_where_the_upload_has_come_to) {
    const char *hash = name_of(bytes, SIZE);
    uint64_t have;
    cr_expect(put(alice, hash, SIZE, 1, 3, &have) == VD_CHUNK_ELSEWHERE && have == 0);
    cr_expect(put(alice, hash, SIZE, 0, 4, &have) == VD_CHUNK_TAKEN && have == 4);
    cr_expect(put(alice, hash, SIZE, 0, 4, &have) == VD_CHUNK_ELSEWHERE && have == 4);
    cr_expect(put(alice, hash, SIZE, 5, 1, &have) == VD_CHUNK_ELSEWHERE && have == 4);
    cr_expect(put(alice, hash, SIZE, 4, SIZE, &have) == VD_CHUNK_ELSEWHERE && have == 4);
    cr_expect(put(alice, hash, SIZE, 4, SIZE - 4, &have) == VD_CHUNK_TAKEN && have == SIZE);
    cr_expect(put(alice, hash, SIZE, 0, 4, &have) == VD_CHUNK_TAKEN && have == SIZE);
}

static void add_to_upload(const char *hash, char last) {
    char path[256];
    snprintf(path, sizeof path, "%s/uploads/%s-%s", provide_dir, alice, hash);
    FILE *file = fopen(path, "a");
    cr_assert(file && fputc(last, file) == last && fclose(file) == 0);
}

/* The daemon was killed after the last byte arrived, and before it had hashed the blob. */
Test(provide_uploads, an_upload_that_has_all_bytes_is_ended) {
    const char *hash = name_of(bytes, SIZE);
    vd_upload_place place;
    uint64_t have;
    cr_expect(put(alice, hash, SIZE, 0, SIZE - 1, &have) == VD_CHUNK_TAKEN && have == SIZE - 1);
    add_to_upload(hash, 'd');
    cr_expect(put(alice, hash, SIZE, SIZE - 1, 1, &have) == VD_CHUNK_ELSEWHERE && have == SIZE);
    cr_expect(wait_for(alice, hash, &place) == VD_CHUNK_TAKEN && place.complete);
    cr_expect(is_on_disk(hash) && files_of_uploads() == 0);
}

Test(provide_uploads, an_upload_that_has_all_bytes_may_have_wrong_ones) {
    const char *hash = name_of(bytes, SIZE);
    vd_upload_place place;
    uint64_t have;
    cr_expect(put(alice, hash, SIZE, 0, SIZE - 1, &have) == VD_CHUNK_TAKEN && have == SIZE - 1);
    add_to_upload(hash, 'x');
    cr_expect(wait_for(alice, hash, &place) == VD_CHUNK_WRONG && !place.complete);
    cr_expect(find(alice, hash, &have).size == -1 && have == 0);
    cr_expect(!is_on_disk(hash) && files_of_uploads() == 0);
    cr_expect(put(alice, hash, SIZE, 0, SIZE, &have) == VD_CHUNK_TAKEN);
    cr_expect(find(alice, hash, &have).complete);
}

/* The daemon restarts in the middle of a large upload. Nobody waits while it hashes the blob. */
Test(provide_uploads, a_large_upload_is_hashed_beside_the_others) {
    enum { LARGE = VD_UPLOAD_AT_ONCE + 5 };
    char *large = calloc(1, LARGE);
    char hash[VD_ID_SIZE];
    uint64_t have;
    vd_chunk_fate fate;
    vd_upload_place place;
    cr_assert(large);
    memcpy(hash, name_of(large, LARGE), VD_ID_SIZE);
    for (int wrong = 0; wrong < 2; wrong++) {
        const vd_quota room = {2 * LARGE, BLOBS};
        vd_chunk chunk = {alice, hash, LARGE, 0, large, LARGE - 3};
        cr_assert(vd_uploads_put(&uploads, &chunk, &room, 1, &fate, &place, NULL) == VD_OK);
        vd_uploads_close(&uploads);
        reopen();
        open_uploads();
        large[LARGE - 1] = wrong ? 0 : 1;
        chunk = (vd_chunk){alice, hash, LARGE, LARGE - 3, large + LARGE - 3, 3};
        cr_assert(vd_uploads_put(&uploads, &chunk, &room, 1, &fate, &place, NULL) == VD_OK);
        cr_expect(fate == VD_CHUNK_TAKEN && place.hashing && !place.complete);
        cr_expect(place.have == LARGE && place.hashed < LARGE);
        cr_expect(put(bob, name_of(bytes, SIZE), SIZE, 0, SIZE, &have) == VD_CHUNK_TAKEN);
        cr_expect(wait_for(alice, hash, &place) == (wrong ? VD_CHUNK_TAKEN : VD_CHUNK_WRONG));
        cr_expect(place.complete == wrong);
    }
    free(large);
}

Test(provide_uploads, a_blob_stays_of_the_size_that_its_first_chunk_said) {
    static const uint64_t others[] = {1, 7, 8, 9, SIZE - 1, SIZE + 1, QUOTA};
    const char *hash = name_of(bytes, SIZE);
    uint64_t have;
    cr_expect(put(alice, hash, SIZE, 0, 8, &have) == VD_CHUNK_TAKEN && have == 8);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        cr_expect(put(alice, hash, others[i], 8, 1, &have) == VD_CHUNK_OTHER_SIZE && have == 8);
        cr_expect(put(alice, hash, others[i], 0, 1, &have) == VD_CHUNK_OTHER_SIZE && have == 8);
        cr_expect(find(alice, hash, &have).size == SIZE && have == 8);
    }
    cr_expect(put(alice, hash, SIZE, 8, SIZE - 8, &have) == VD_CHUNK_TAKEN && have == SIZE);
    cr_expect(find(alice, hash, &have).complete && have == SIZE);
    cr_expect(put(alice, hash, SIZE - 1, 0, 1, &have) == VD_CHUNK_OTHER_SIZE);
    cr_expect(find(alice, hash, &have).complete && is_on_disk(hash));
}

Test(provide_uploads, wrong_bytes_are_dropped) {
    char wrong[VD_ID_SIZE];
    uint64_t have;
    memcpy(wrong, name_of(bytes, SIZE), sizeof wrong);
    wrong[0] = wrong[0] == '0' ? '1' : '0';
    cr_expect(put(alice, wrong, SIZE, 0, 4, &have) == VD_CHUNK_TAKEN);
    cr_expect(put(alice, wrong, SIZE, 4, SIZE - 4, &have) == VD_CHUNK_WRONG);
    cr_expect(find(alice, wrong, &have).size == -1 && have == 0);
    cr_expect(!is_on_disk(wrong) && files_of_uploads() == 0);
    cr_expect(put(alice, wrong, SIZE, 0, 4, &have) == VD_CHUNK_TAKEN && have == 4);
}

Test(provide_uploads, nobody_has_a_blob_that_another_one_brought) {
    const char *hash = name_of(bytes, SIZE);
    uint64_t have;
    cr_expect(put(alice, hash, SIZE, 0, SIZE, &have) == VD_CHUNK_TAKEN);
    cr_expect(find(bob, hash, &have).size == -1 && have == 0);
    cr_expect(put(bob, hash, SIZE, 0, 4, &have) == VD_CHUNK_TAKEN && have == 4);
    cr_expect(find(alice, hash, &have).complete && !find(bob, hash, &have).complete);
    cr_expect(put(bob, hash, SIZE, 4, SIZE - 4, &have) == VD_CHUNK_TAKEN && have == SIZE);
    cr_expect(find(bob, hash, &have).complete);
}

Test(provide_uploads, what_is_announced_counts) {
    const char *hash = name_of(bytes, SIZE);
    uint64_t have;
    cr_expect(put(alice, bob, QUOTA + 1, 0, 4, &have) == VD_CHUNK_OVER_QUOTA);
    cr_expect(put(alice, bob, QUOTA - 3 * VD_DISK_BLOCK, 0, 4, &have) == VD_CHUNK_TAKEN);
    cr_expect(put(alice, alice, VD_DISK_BLOCK + 1, 0, 4, &have) == VD_CHUNK_OVER_QUOTA);
    cr_expect(put(alice, hash, SIZE, 0, 4, &have) == VD_CHUNK_TAKEN);
    cr_expect(put(bob, bob, QUOTA, 0, 4, &have) == VD_CHUNK_OVER_QUOTA); /* the name counts */
    cr_expect(put(bob, bob, QUOTA - VD_DISK_BLOCK, 0, 4, &have) == VD_CHUNK_TAKEN);
}

/* Many small files fill a disk too, so each counts as a block and their number is limited. */
Test(provide_uploads, small_files_count_in_blocks_and_have_a_limit) {
    const vd_quota few = {INT64_MAX / 2, 3};
    char hash[2][VD_ID_SIZE];
    vd_chunk_fate fate;
    vd_upload_place place;
    uint64_t have;
    for (int i = 0; i < 2; i++)
        memcpy(hash[i], name_of(bytes + i, 1), VD_ID_SIZE);
    cr_expect(put(alice, hash[0], 1, 0, 1, &have) == VD_CHUNK_TAKEN);
    cr_expect(put(alice, bob, QUOTA - 3 * VD_DISK_BLOCK, 0, 4, &have) == VD_CHUNK_TAKEN);
    cr_expect(put(alice, alice, 1, 0, 1, &have) == VD_CHUNK_OVER_QUOTA);
    for (int i = 0; i < 2; i++) {
        const vd_chunk chunk = {alice, hash[1], 1, 0, bytes + 1, 1},
                       other = {alice, alice, 2, 0, bytes, 1};
        cr_assert(vd_uploads_put(&uploads, i ? &other : &chunk, &few, 1, &fate, &place, NULL) ==
                  VD_OK);
        cr_expect(fate == (i ? VD_CHUNK_TOO_MANY : VD_CHUNK_TAKEN));
    }
    cr_expect(put(bob, hash[0], 1, 0, 1, &have) == VD_CHUNK_TAKEN);
}

/* The disk is full in the middle of a chunk. A limit on the size of files has the same effect. */
Test(provide_uploads, a_full_disk_leaves_what_was_there) {
    const char *hash = name_of(bytes, SIZE);
    uint64_t have;
    signal(SIGXFSZ, SIG_IGN);
    cr_expect(put(alice, hash, SIZE, 0, 4, &have) == VD_CHUNK_TAKEN);
    struct rlimit before, small;
    cr_assert(getrlimit(RLIMIT_FSIZE, &before) == 0);
    small = before;
    small.rlim_cur = 7;
    const vd_chunk chunk = {alice, hash, SIZE, 4, bytes + 4, SIZE - 4};
    vd_chunk_fate fate;
    vd_upload_place place;
    cr_assert(setrlimit(RLIMIT_FSIZE, &small) == 0);
    vd_status status = vd_uploads_put(&uploads, &chunk, &quota, 1, &fate, &place, NULL);
    cr_assert(setrlimit(RLIMIT_FSIZE, &before) == 0);
    cr_expect(status == VD_OK && fate == VD_CHUNK_DISK_FULL);
    cr_expect(!find(alice, hash, &have).complete && have == 4);
    cr_expect(put(alice, hash, SIZE, 4, SIZE - 4, &have) == VD_CHUNK_TAKEN && have == SIZE);
}

static vd_chunk_fate put_at(int64_t now, const char *hash, uint64_t from, size_t count) {
    const vd_chunk chunk = {alice, hash, SIZE, from, bytes + from, count};
    vd_chunk_fate fate;
    vd_upload_place place;
    cr_assert(vd_uploads_put(&uploads, &chunk, &quota, now, &fate, &place, NULL) == VD_OK);
    return fate;
}

Test(provide_uploads, an_upload_that_goes_on_is_not_collected) {
    const char *hash = name_of(bytes, SIZE);
    cr_expect(put_at(10, hash, 0, 4) == VD_CHUNK_TAKEN);
    cr_expect(put_at(20, hash, 4, 4) == VD_CHUNK_TAKEN);
    cr_assert(vd_uploads_collect(&uploads, 15, NULL) == VD_OK);
    cr_expect(put_at(30, hash, 8, SIZE - 8) == VD_CHUNK_TAKEN);
    cr_expect(is_on_disk(hash));
}

/* As if the daemon had been killed when the file existed and the upload's row did not. */
Test(provide_uploads, an_upload_begins_anew_over_a_forgotten_file) {
    const char *hash = name_of(bytes, SIZE);
    uint64_t have;
    cr_expect(put(alice, hash, SIZE, 0, 8, &have) == VD_CHUNK_TAKEN && have == 8);
    cr_assert(vd_ledger_drop_upload(ledger, alice, hash, NULL) == VD_OK);
    cr_expect(put(alice, hash, SIZE, 0, 4, &have) == VD_CHUNK_TAKEN && have == 4);
    cr_expect(put(alice, hash, SIZE, 4, SIZE - 4, &have) == VD_CHUNK_TAKEN && have == SIZE);
    cr_expect(find(alice, hash, &have).complete);
}

/* Chunks arrive while blobs are collected again and again. A blob that is complete must have the
 * right bytes. */
static atomic_bool collecting;

static void *collect_on(void *user) {
    (void)user;
    while (atomic_load(&collecting))
        cr_assert(vd_uploads_collect(&uploads, 100, NULL) == VD_OK);
    return NULL;
}

static bool is_right(const char *hash) {
    char path[1100];
    vd_buf text = {0};
    vd_uploads_path(&uploads, hash, path);
    const bool right = vd_read_file(path, SIZE, &text, NULL) != VD_OK ||
                       (text.size == SIZE && memcmp(text.data, bytes, SIZE) == 0);
    vd_buf_free(&text);
    return right;
}

Test(provide_uploads, what_is_collected_meanwhile_never_becomes_a_wrong_blob) {
    const char *hash = name_of(bytes, SIZE);
    pthread_t thread;
    atomic_store(&collecting, true);
    cr_assert(pthread_create(&thread, NULL, collect_on, NULL) == 0);
    for (int i = 0; i < 300; i++) {
        uint64_t have;
        for (uint64_t at = 0; at < SIZE; at = have)
            put(alice, hash, SIZE, at, at + 3 < SIZE ? 3 : SIZE - at, &have);
        cr_expect(is_right(hash));
    }
    atomic_store(&collecting, false);
    cr_assert(pthread_join(thread, NULL) == 0);
}

/* More uploads at once than hash states are kept, all beginnings of the same bytes. */
Test(provide_uploads, many_at_once) {
    enum { COUNT = SIZE - 2 };
    char hash[COUNT][VD_ID_SIZE];
    uint64_t have;
    cr_assert((int)COUNT > (int)VD_UPLOAD_HASHES);
    quota.bytes = 2 * COUNT * VD_DISK_BLOCK;
    for (size_t i = 0; i < COUNT; i++)
        memcpy(hash[i], name_of(bytes, 2 + i), VD_ID_SIZE);
    for (size_t i = 0; i < COUNT; i++)
        cr_expect(put(alice, hash[i], 2 + i, 0, 1, &have) == VD_CHUNK_TAKEN);
    for (size_t i = 0; i < COUNT; i++)
        cr_expect(put(alice, hash[i], 2 + i, 1, 1 + i, &have) == VD_CHUNK_TAKEN && have == 2 + i);
}
