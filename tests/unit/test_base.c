#include "verde/base/base.h"

#include "commit_vectors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static void make_dir(void) {
    strcpy(dir, "/tmp/verde-base-XXXXXX");
    cr_assert(mkdtemp(dir));
}

static void remove_dir(void) {
    DIR *list = opendir(dir);
    for (struct dirent *entry; (entry = readdir(list));) {
        int fd = dirfd(list);
        if (unlinkat(fd, entry->d_name, 0) != 0)
            unlinkat(fd, entry->d_name, AT_REMOVEDIR);
    }
    closedir(list);
    cr_expect(rmdir(dir) == 0);
}

static const char *in_dir(const char *name) {
    static char path[2][256];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

static size_t entries(void) {
    size_t count = 0;
    DIR *list = opendir(dir);
    for (struct dirent *entry; (entry = readdir(list));)
        count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

static void expect_file(const char *path, const char *text) {
    vd_buf buf = {0};
    vd_err err = {0};
    cr_assert(vd_read_file(path, 1000, &buf, &err) == VD_OK, "%s", err.text);
    cr_expect(buf.size == strlen(text) && memcmp(buf.data, text, buf.size) == 0);
    vd_buf_free(&buf);
}

static void write_text(const char *path, const char *text) {
    vd_err err = {0};
    cr_assert(vd_write_file(path, text, strlen(text), 0644, &err) == VD_OK, "%s", err.text);
}

Test(error, a_sentence_may_quote_the_one_before) {
    vd_err err = {0};
    cr_expect(vd_fail(&err, VD_ERR_PEER, "got %d", 7) == VD_ERR_PEER);
    cr_expect(vd_fail(&err, VD_ERR_USAGE, "line 3: %s", err.text) == VD_ERR_USAGE);
    cr_expect_str_eq(err.text, "line 3: got 7");
    cr_expect(err.status == VD_ERR_USAGE);
    cr_expect(vd_fail(NULL, VD_ERR_IO, "nobody listens") == VD_ERR_IO);
}

Test(error, quoted_bytes_neither_steer_a_terminal_nor_overflow) {
    vd_err err = {0};
    cr_expect(vd_fail(&err, VD_ERR_PEER, "name \"%s\"", "a\x1b[2J\nb\x7f") == VD_ERR_PEER);
    cr_expect_str_eq(err.text, "name \"a?[2J?b?\"");
    /* 0x9b is a control character only after 0xc2. */
    cr_expect(vd_fail(&err, VD_ERR_PEER, "%s", "\302\23331m\302\240\303\233\302") == VD_ERR_PEER);
    cr_expect_str_eq(err.text, "?\?31m\302\240\303\233\302");
    char large[2000];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    cr_expect(vd_fail(&err, VD_ERR_PEER, "%s", large) == VD_ERR_PEER);
    cr_expect(strlen(err.text) == sizeof err.text - 1);
}

Test(buf, numbers_are_little_endian_and_read_back) {
    vd_buf buf = {0};
    vd_put_u8(&buf, 0x01);
    vd_put_u16(&buf, 0x0203);
    vd_put_u32(&buf, 0x04050607);
    vd_put_u64(&buf, UINT64_C(0x08090a0b0c0d0e0f));
    vd_put_string(&buf, "hey");
    vd_printf(&buf, "%s-%d", "x", 12);
    static const uint8_t expected[] = "\x01\x03\x02\x07\x06\x05\x04\x0f\x0e\x0d\x0c\x0b\x0a\x09\x08"
                                      "\x03\x00hey"
                                      "x-12";
    cr_assert(vd_buf_ok(&buf) && buf.size == sizeof expected - 1);
    cr_expect(memcmp(buf.data, expected, buf.size) == 0);
    vd_cursor in = vd_cursor_of(buf.data, buf.size);
    char text[4];
    cr_expect(vd_get_u8(&in) == 0x01 && vd_get_u16(&in) == 0x0203);
    cr_expect(vd_get_u32(&in) == 0x04050607 && vd_get_u64(&in) == UINT64_C(0x08090a0b0c0d0e0f));
    vd_get_string(&in, text, sizeof text);
    cr_expect_str_eq(text, "hey");
    cr_expect(!vd_cursor_done(&in) && vd_get(&in, 4) && vd_cursor_done(&in));
    vd_buf_free(&buf);
}

Test(buf, grows_over_many_puts_and_keeps_every_byte) {
    vd_buf buf = {0};
    for (uint32_t i = 0; i < 20000; i++)
        vd_put_u32(&buf, i * 2654435761u);
    vd_cursor in = vd_cursor_of(buf.data, buf.size);
    for (uint32_t i = 0; i < 20000; i++)
        cr_assert(vd_get_u32(&in) == i * 2654435761u);
    cr_expect(vd_cursor_done(&in));
    vd_buf_free(&buf);
}

Test(buf, sizes_that_overflow_fail_and_stay_failed) {
    vd_buf buf = {0};
    vd_put(&buf, "abc", 3);
    vd_put(&buf, "x", SIZE_MAX);
    cr_expect(!vd_buf_ok(&buf) && buf.size == 3);
    vd_put(&buf, "d", 1);
    cr_expect(!vd_buf_ok(&buf) && buf.size == 3);
    vd_buf_free(&buf);
    cr_expect(vd_buf_ok(&buf) && !buf.data);
}

Test(buf, a_string_longer_than_its_length_field_fails) {
    char *text = malloc(70000);
    memset(text, 'a', 65536);
    vd_buf buf = {0};
    text[65535] = 0;
    vd_put_string(&buf, text);
    cr_expect(vd_buf_ok(&buf) && buf.size == 65537);
    text[65535] = 'a';
    text[65536] = 0;
    vd_put_string(&buf, text);
    cr_expect(!vd_buf_ok(&buf) && buf.size == 65537);
    vd_buf_free(&buf);
    free(text);
}

Test(cursor, never_reads_past_the_end_and_remembers_it) {
    for (size_t size = 0; size < 8; size++) {
        uint8_t *bytes = malloc(size); /* exact size, so that a sanitizer sees an overrun */
        memset(bytes, 0xff, size);
        vd_cursor in = vd_cursor_of(bytes, size);
        cr_expect(vd_get_u64(&in) == 0 && in.failed);
        cr_expect(vd_get_u8(&in) == 0 && !vd_get(&in, 0) && !vd_cursor_done(&in));
        free(bytes);
    }
    vd_cursor in = vd_cursor_of("abc", 3);
    cr_expect(vd_get_u8(&in) == 'a' && !vd_get(&in, SIZE_MAX) && !vd_get(&in, 2));
    in = vd_cursor_of(NULL, 0);
    cr_expect(vd_cursor_done(&in) && vd_get(&in, 0) && vd_cursor_done(&in));
}

static bool reads_string(const char *bytes, size_t size, size_t room) {
    char text[8] = "before!";
    vd_cursor in = vd_cursor_of(bytes, size);
    vd_get_string(&in, text, room);
    cr_expect(!in.failed || text[0] == 0);
    return vd_cursor_done(&in);
}

Test(cursor, strings_must_fit_and_hold_no_nul) {
    cr_expect(reads_string("\x03\x00"
                           "abc",
                           5, 4));
    cr_expect(reads_string("\x00\x00", 2, 1));
    cr_expect(!reads_string("\x03\x00"
                            "abc",
                            5, 3),
              "no room for the NUL");
    cr_expect(!reads_string("\x03\x00"
                            "ab",
                            4, 8),
              "cut");
    cr_expect(!reads_string("\x03\x00"
                            "a\0c",
                            5, 8),
              "NUL inside");
    cr_expect(!reads_string("\xff\xff"
                            "abc",
                            5, 8),
              "longer than the input");
    cr_expect(!reads_string("\x01", 1, 8), "cut in the length");
}

Test(hex, only_lower_case_digits_of_the_exact_count) {
    uint8_t bytes[3];
    char text[7];
    cr_expect(vd_unhex("00a9ff", bytes, 3) && memcmp(bytes, "\x00\xa9\xff", 3) == 0);
    vd_hex(bytes, 3, text);
    cr_expect_str_eq(text, "00a9ff");
    static const char *bad[] = {"",       "0",      "00a9f",   "00a9ff0", "00A9ff",
                                "00a9fg", " 0a9ff", "0x0a9ff", "00a9f ",  "+0a9ff",
                                "00a9f/", "00a9f:", "00a9f`"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect(!vd_unhex(bad[i], bytes, 3), "%s", bad[i]);
    cr_expect(vd_unhex("", bytes, 0) && !vd_unhex("0", bytes, 0));
}

static void expect_base64(const vector_line *line) {
    uint8_t bytes[256];
    char hex[1024] = "", code[1024] = "";
    sscanf(line->value, "%1023s %1023s", hex, code);
    size_t size = strcmp(hex, "-") ? strlen(hex) / 2 : 0;
    if (strcmp(code, "-") == 0)
        code[0] = 0;
    cr_assert(size == 0 || vd_unhex(hex, bytes, size));
    vd_buf out = {0};
    cr_expect(vd_unbase64(code, strlen(code), &out, NULL) == VD_OK, "%s", code);
    cr_expect(out.size == size && memcmp(out.data, bytes, size) == 0, "%s", code);
    char *text = vd_base64(bytes, size);
    cr_expect_str_eq(text, code);
    free(text);
    vd_buf_free(&out);
}

Test(base64, has_one_spelling_per_value) {
    FILE *file = vector_open("commit_base64.txt");
    vector_line line;
    size_t good = 0, bad = 0;
    while (vector_next(file, &line)) {
        if (strcmp(line.key, "good") == 0) {
            expect_base64(&line);
            good++;
            continue;
        }
        vd_buf out = {0};
        vd_put(&out, "kept", 4);
        vd_status status = vd_unbase64(line.value, line.size, &out, NULL);
        cr_expect(status == VD_ERR_PEER, "accepted: %s", line.value);
        cr_expect(out.size == 4 && memcmp(out.data, "kept", 4) == 0);
        vd_buf_free(&out);
        bad++;
    }
    fclose(file);
    cr_expect(good == 9 && bad == 30, "%zu good, %zu bad", good, bad);
}

/* Of all texts of one group, exactly those decode that are the encoding of their own bytes. */
Test(base64, every_accepted_group_is_what_encoding_writes) {
    static const char tail[] = "AQgwBCDEFZaz019+/=-_ \n";
    size_t accepted = 0;
    for (size_t i = 0; i < 22 * 22 * 22 * 22; i++) {
        char text[5] = {tail[i % 22], tail[i / 22 % 22], tail[i / 484 % 22], tail[i / 10648], 0};
        vd_buf out = {0};
        if (vd_unbase64(text, 4, &out, NULL) == VD_OK) {
            char *again = vd_base64(out.data, out.size);
            cr_assert_str_eq(again, text);
            free(again);
            accepted++;
        }
        vd_buf_free(&out);
    }
    cr_expect(accepted > 17 * 17 * 17 * 17, "%zu", accepted);
}

TestSuite(file, .init = make_dir, .fini = remove_dir);

Test(file, write_then_read_gives_the_bytes_and_the_mode) {
    struct stat info;
    umask(022);
    write_text(in_dir("a"), "one");
    expect_file(in_dir("a"), "one");
    write_text(in_dir("a"), "");
    expect_file(in_dir("a"), "");
    cr_expect(stat(in_dir("a"), &info) == 0 && (info.st_mode & 0777) == 0644);
    cr_expect(vd_write_file(in_dir("secret"), "k", 1, 0600, NULL) == VD_OK);
    cr_expect(stat(in_dir("secret"), &info) == 0 && (info.st_mode & 0777) == 0600);
    cr_expect(entries() == 2);
}

Test(file, reading_appends_and_refuses_what_is_over_the_limit) {
    vd_buf buf = {0};
    vd_err err = {0};
    write_text(in_dir("a"), "12345");
    cr_expect(vd_read_file(in_dir("a"), 5, &buf, &err) == VD_OK);
    cr_expect(vd_read_file(in_dir("a"), 5, &buf, &err) == VD_OK);
    cr_expect(buf.size == 10 && memcmp(buf.data, "1234512345", 10) == 0);
    cr_expect(vd_read_file(in_dir("a"), 4, &buf, &err) == VD_ERR_USAGE && buf.size == 10);
    cr_expect(strstr(err.text, in_dir("a")) && strstr(err.text, "too large"), "%s", err.text);
    /* A file whose size is unknown before it is read. */
    cr_expect(vd_read_file("/proc/self/status", 100, &buf, &err) == VD_ERR_USAGE);
    cr_expect(buf.size == 10);
    cr_expect(vd_read_file("/proc/self/status", 1 << 20, &buf, &err) == VD_OK && buf.size > 100);
    vd_buf_free(&buf);
}

static void expect_unreadable(const char *path, const char *reason) {
    vd_buf buf = {0};
    vd_err err = {0};
    cr_expect(vd_read_file(path, 1000, &buf, &err) == VD_ERR_USAGE, "%s", path);
    cr_expect(strstr(err.text, path) && strstr(err.text, reason), "%s", err.text);
    vd_buf_free(&buf);
}

Test(file, what_is_not_a_regular_file_is_refused_without_waiting) {
    cr_assert(mkfifo(in_dir("pipe"), 0600) == 0);
    cr_assert(symlink("loop", in_dir("loop")) == 0);
    expect_unreadable(in_dir("none"), strerror(ENOENT));
    expect_unreadable(in_dir("loop"), strerror(ELOOP));
    expect_unreadable(in_dir("pipe"), "not a regular file");
    expect_unreadable("/dev/zero", "not a regular file");
    expect_unreadable(dir, "directory");
}

static void expect_unwritable(const char *path, vd_status status, const char *reason) {
    vd_err err = {0};
    cr_expect(vd_write_file(path, "new", 3, 0644, &err) == status, "%s", path);
    cr_expect(strstr(err.text, path) && strstr(err.text, reason), "%s", err.text);
}

Test(file, a_write_that_cannot_be_leaves_nothing_behind) {
    cr_assert(mkdir(in_dir("d"), 0755) == 0);
    write_text(in_dir("f"), "old");
    expect_unwritable(in_dir("d"), VD_ERR_USAGE, "directory");
    expect_unwritable(in_dir("none/x"), VD_ERR_USAGE, strerror(ENOENT));
    expect_unwritable(in_dir("f/x"), VD_ERR_USAGE, strerror(ENOTDIR));
    /* Uses a link, so that a failure of this test does not destroy a device. */
    cr_assert(symlink("/dev/null", in_dir("l")) == 0 && mkfifo(in_dir("p"), 0600) == 0);
    expect_unwritable(in_dir("l"), VD_ERR_USAGE, "not a regular file");
    expect_unwritable(in_dir("p"), VD_ERR_USAGE, "not a regular file");
    cr_expect(entries() == 4);
    expect_file(in_dir("f"), "old");
}

static void expect_unopened(const char *path, const char *reason) {
    vd_err err = {0};
    uint64_t size;
    for (int append = 0; append < 2; append++) {
        int fd;
        cr_expect(vd_open_update(path, append, 0600, &fd, &size, &err) == VD_ERR_USAGE, "%s", path);
        cr_expect(fd == -1 && strstr(err.text, path) && strstr(err.text, reason), "%s", err.text);
    }
}

Test(file, only_a_regular_file_is_opened_to_go_on_in_it) {
    int fd;
    uint64_t size;
    vd_err err = {0};
    cr_assert(mkdir(in_dir("d"), 0755) == 0 && mkfifo(in_dir("p"), 0600) == 0);
    write_text(in_dir("f"), "old");
    cr_assert(symlink("f", in_dir("l")) == 0);
    expect_unopened(in_dir("d"), "directory");
    expect_unopened(in_dir("p"), "not a regular file");
    expect_unopened(in_dir("l"), "symbolic link");
    expect_file(in_dir("f"), "old");
    cr_assert(vd_open_update(in_dir("f"), true, 0600, &fd, &size, &err) == VD_OK, "%s", err.text);
    cr_expect(size == 3 && write(fd, " new", 4) == 4 && close(fd) == 0);
    expect_file(in_dir("f"), "old new");
    cr_assert(vd_open_update(in_dir("g"), true, 0600, &fd, &size, &err) == VD_OK, "%s", err.text);
    cr_expect(size == 0 && close(fd) == 0);
}

Test(file, the_old_file_stays_until_commit_and_after_a_failed_write) {
    vd_writer writer;
    vd_err err = {0};
    write_text(in_dir("f"), "old");
    cr_assert(vd_writer_open(&writer, in_dir("f"), 0644, &err) == VD_OK);
    cr_expect(vd_writer_put(&writer, "ne", 2, &err) == VD_OK);
    cr_expect(vd_writer_put(&writer, "w", 1, &err) == VD_OK);
    expect_file(in_dir("f"), "old");
    vd_writer_abort(&writer);
    vd_writer_abort(&writer);
    cr_expect(entries() == 1);

    signal(SIGXFSZ, SIG_IGN); /* a write past the limit fails like one on a full disk */
    struct rlimit limit = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY}, unlimited;
    char large[8192] = "";
    cr_assert(getrlimit(RLIMIT_FSIZE, &unlimited) == 0 && setrlimit(RLIMIT_FSIZE, &limit) == 0);
    vd_status status = vd_write_file(in_dir("f"), large, sizeof large, 0644, &err);
    cr_assert(setrlimit(RLIMIT_FSIZE, &unlimited) == 0);
    cr_expect(status == VD_ERR_LOCAL && strstr(err.text, in_dir("f")), "%s", err.text);
    cr_expect(entries() == 1);
    expect_file(in_dir("f"), "old");
}

Test(file, a_rename_that_fails_removes_the_temporary_file) {
    vd_writer writer;
    vd_err err = {0};
    cr_assert(vd_writer_open(&writer, in_dir("f"), 0644, &err) == VD_OK);
    cr_assert(mkdir(in_dir("f"), 0755) == 0); /* in the meantime */
    cr_expect(vd_writer_put(&writer, "new", 3, &err) == VD_OK);
    cr_expect(vd_writer_commit(&writer, &err) == VD_ERR_USAGE);
    cr_expect(strstr(err.text, strerror(EISDIR)), "%s", err.text);
    cr_expect(entries() == 1);
}

Test(file, what_a_killed_writer_left_is_used_again) {
    int fd = open(in_dir("f.tmp0"), O_WRONLY | O_CREAT, 0666);
    cr_assert(write(fd, "a long piece of a torn file", 27) == 27);
    close(fd);
    cr_expect(vd_write_file(in_dir("f"), "whole", 5, 0600, NULL) == VD_OK);
    expect_file(in_dir("f"), "whole");
    struct stat info;
    cr_expect(stat(in_dir("f"), &info) == 0 && (info.st_mode & 0777) == 0600);
    cr_expect(entries() == 1);
}

Test(file, a_fifo_where_the_temporary_file_would_be_is_no_reason_to_wait) {
    cr_assert(mkfifo(in_dir("f.tmp0"), 0600) == 0);
    expect_unwritable(in_dir("f"), VD_ERR_USAGE, "cannot create");
    cr_expect(entries() == 1);
}

Test(file, two_writers_of_one_file_do_not_mix) {
    vd_writer a, b;
    cr_assert(vd_writer_open(&a, in_dir("f"), 0644, NULL) == VD_OK);
    cr_assert(vd_writer_open(&b, in_dir("f"), 0644, NULL) == VD_OK);
    cr_expect(vd_writer_put(&a, "aaaa", 4, NULL) == VD_OK);
    cr_expect(vd_writer_put(&b, "bb", 2, NULL) == VD_OK);
    cr_expect(vd_writer_commit(&b, NULL) == VD_OK);
    expect_file(in_dir("f"), "bb");
    cr_expect(vd_writer_commit(&a, NULL) == VD_OK);
    expect_file(in_dir("f"), "aaaa");
    cr_expect(entries() == 1);
}

Test(file, a_path_too_long_is_an_error_and_not_a_cut) {
    char path[1200];
    vd_writer writer;
    vd_err err = {0};
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = 0;
    cr_expect(vd_writer_open(&writer, path, 0644, &err) == VD_ERR_USAGE);
    vd_writer_abort(&writer);
}

Test(file, make_dir_is_idempotent_and_of_one_level) {
    vd_err err = {0};
    cr_expect(vd_make_dir(in_dir("d"), &err) == VD_OK);
    cr_expect(vd_make_dir(in_dir("d/"), &err) == VD_OK);
    cr_expect(vd_make_dir(in_dir("a/b"), &err) == VD_ERR_USAGE);
    cr_expect(strstr(err.text, in_dir("a/b")), "%s", err.text);
    write_text(in_dir("f"), "");
    cr_expect(vd_make_dir(in_dir("f"), &err) == VD_ERR_USAGE);
    cr_assert(chdir(dir) == 0);
    cr_expect(vd_make_dir("here", &err) == VD_OK, "%s", err.text);
    cr_expect(vd_write_file("plain", "p", 1, 0644, &err) == VD_OK, "%s", err.text);
}

Test(clock, time_goes_on_and_memory_is_counted) {
    double start = vd_seconds(), cpu = vd_cpu_seconds();
    volatile uint64_t sum = 0;
    while (vd_seconds() - start < 0.02)
        sum = sum + 1;
    cr_expect(vd_cpu_seconds() > cpu && vd_cpu_seconds() - cpu < 5);
    cr_expect(vd_peak_bytes() > 100000);
}

/* After exec, ru_maxrss still has the previous program's peak, as after this reset. */
Test(clock, the_peak_of_memory_is_not_another_programs) {
    const size_t size = 256 << 20;
    /* mmap, as sanitizers keep freed memory; their own memory is smaller than this. */
    char *bytes =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    cr_assert(bytes != MAP_FAILED);
    cr_expect(vd_peak_bytes() > size);
    munmap(bytes, size);
    FILE *reset = fopen("/proc/self/clear_refs", "w");
    if (!reset || fputs("5", reset) < 0 || fclose(reset) != 0)
        cr_skip("the kernel lets nobody reset VmHWM");
    cr_expect(vd_peak_bytes() < size, "%zu", vd_peak_bytes());
}

Test(base, a_version_is_refused_in_one_sentence) {
    vd_err err = {0};
    cr_expect(vd_fail_version(&err, "a/run.json", 2, "a log", 1, 1) == VD_ERR_VERSION);
    cr_assert_str_eq(err.text, "a/run.json: version 2 of a log; this verde reads version 1");
    vd_fail_version(&err, NULL, -1, "a verdict", 1, 2);
    cr_assert_str_eq(err.text, "version -1 of a verdict; this verde reads versions 1 and 2");
    vd_fail_version(&err, NULL, 5, "a ledger", 1, 4);
    cr_assert_str_eq(err.text, "version 5 of a ledger; this verde reads versions 1 to 4");
    cr_expect(vd_fail_limit(&err, NULL, 65, "providers", 64) == VD_ERR_VERSION);
    cr_assert_str_eq(err.text, "65 providers; this verde reads at most 64");
    cr_expect(vd_of_peer(VD_ERR_VERSION, &err) == VD_ERR_PEER && err.status == VD_ERR_PEER);
    cr_expect(vd_of_peer(VD_ERR_LOCAL, NULL) == VD_ERR_LOCAL && vd_of_peer(VD_OK, NULL) == VD_OK);
}

static void expect_text(uint32_t bits, const char *expected) {
    char text[VD_F32_TEXT];
    vd_f32_text(bits, text);
    cr_assert_str_eq(text, expected);
}

Test(base, an_f32_is_told_by_its_shortest_decimal_and_its_bits) {
    expect_text(0x00000000, "0 (0x00000000)");
    expect_text(0x80000000, "-0 (0x80000000)");
    expect_text(0x3f800000, "1 (0x3f800000)");
    expect_text(0x3dcccccd, "0.1 (0x3dcccccd)");
    expect_text(0xbcbeaf9d, "-0.023277098 (0xbcbeaf9d)");
    expect_text(0xbcbeaf9c, "-0.023277096 (0xbcbeaf9c)");
    expect_text(0x00000001, "1e-45 (0x00000001)");
    expect_text(0x7f7fffff, "3.4028235e+38 (0x7f7fffff)");
    expect_text(0xff800000, "-inf (0xff800000)");
    expect_text(0xffc00001, "nan (0xffc00001)");
}

Test(base, the_decimal_of_an_f32_reads_back_as_its_bits) {
    uint32_t bits = 1;
    for (int i = 0; i < 20000; i++, bits = bits * 1664525u + 1013904223u) {
        char text[VD_F32_TEXT];
        uint32_t back;
        vd_f32_text(bits, text);
        const float value = strtof(text, NULL);
        memcpy(&back, &value, sizeof back);
        cr_assert(back == bits || value != value, "%08x: %s", bits, text);
        cr_assert(strlen(text) < VD_F32_TEXT);
    }
}
