/* Files of rounding logs: a thread writes them; readers check them strictly; sections have proofs;
 * bad files are refused. */
#include "log_files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

TestSuite(log_file, .init = log_make_dir, .fini = log_remove_dir);

enum { QUEUE = 1 << 20 };

static vd_log_writer *open_writer(vd_log_encoding encoding, size_t memory) {
    vd_log_writer *writer = NULL;
    vd_err err = {0};
    const vd_log_run run = log_run(encoding);
    cr_assert(vd_log_writer_create(&run, log_dir, memory, &writer, &err) == VD_OK, "%s", err.text);
    return writer;
}

static vd_log_done write_step(vd_log_encoding encoding, int64_t step) {
    vd_log_writer *writer = open_writer(encoding, QUEUE);
    vd_log_done done;
    vd_err err = {0};
    cr_assert(log_write_step(writer, encoding, step, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_log_wait(writer, step, &done, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_log_writer_close(writer, &err) == VD_OK);
    return done;
}

static const char *step_path(int64_t step) {
    static char path[128];
    const vd_log_run run = log_run(VD_LOG_CALLS);
    cr_assert(vd_log_path(log_dir, &run, step, path, sizeof path, NULL) == VD_OK);
    return path;
}

static size_t files(const char *suffix) {
    char path[100];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/log", log_dir);
    DIR *list = opendir(path);
    for (struct dirent *entry; (entry = readdir(list));) {
        const size_t length = strlen(entry->d_name), tail = strlen(suffix);
        count += length > tail && strcmp(entry->d_name + length - tail, suffix) == 0;
    }
    closedir(list);
    return count;
}

static vd_status try_open(vd_log_encoding encoding, int64_t step, const vd_hash *root,
                          vd_log_file **file, vd_err *err) {
    const vd_log_run run = log_run(encoding);
    return vd_log_open(log_dir, &run, step, log_node, LOG_NODES, root, file, err);
}

static vd_log_file *open_log(vd_log_encoding encoding, int64_t step, const vd_hash *root) {
    vd_log_file *file = NULL;
    vd_err err = {0};
    cr_assert(try_open(encoding, step, root, &file, &err) == VD_OK, "%s", err.text);
    return file;
}

static void expect_step(vd_log_encoding encoding, int64_t step, const vd_log_done *done) {
    vd_log_file *file = open_log(encoding, step, &done->root);
    vd_log_section section = {0};
    vd_log_done told;
    vd_err err = {0};
    vd_log_file_done(file, &told);
    cr_expect(told.step == step && vd_hash_equal(&told.root, &done->root));
    cr_expect(told.bytes == done->bytes && told.coded_bytes == done->coded_bytes);
    cr_expect(told.count == done->count && told.escapes == done->escapes);
    cr_expect(told.elements == 66709 && done->elements == 66709 && told.count > 1000);
    for (int n = LOG_NODES - 1; n >= 0; n--) { /* in any order */
        cr_assert(vd_log_read(file, log_node[n].node, &section, &err) == VD_OK, "%s", err.text);
        log_expect_section(encoding, step, n, &section);
    }
    cr_expect(vd_log_check(file, &err) == VD_OK, "%s", err.text);
    cr_expect(vd_log_read(file, 5, &section, &err) == VD_ERR_LOCAL);
    vd_log_section_free(&section);
    vd_log_close(file);
}

Test(log_file, steps_come_back_in_both_encodings) {
    for (int e = VD_LOG_CALLS; e <= VD_LOG_SYMBOLS; e++) {
        const vd_log_encoding encoding = (vd_log_encoding)e;
        vd_log_writer *writer = open_writer(encoding, QUEUE);
        vd_log_done done[5];
        vd_err err = {0};
        for (int64_t step = -1; step < 4; step++)
            cr_assert(log_write_step(writer, encoding, step, &err) == VD_OK, "%s", err.text);
        for (int64_t step = 3; step >= -1; step--) {
            cr_assert(vd_log_wait(writer, step, &done[step + 1], &err) == VD_OK, "%s", err.text);
            expect_step(encoding, step, &done[step + 1]);
            cr_expect(vd_log_wait(writer, step, &done[step + 1], &err) == VD_ERR_LOCAL);
        }
        cr_expect(!vd_hash_equal(&done[0].root, &done[1].root));
        cr_assert(vd_log_writer_close(writer, &err) == VD_OK, "%s", err.text);
    }
    cr_expect(strstr(step_path(12), "/log/step-00000012.vlog"));
    cr_expect(strstr(step_path(INT32_MAX), "/log/step-2147483647.vlog"));
    cr_expect(strstr(step_path(-1), "/log/init.vlog"));
}

Test(log_file, a_step_without_free_nodes_has_an_empty_log) {
    const vd_log_run run = log_run(VD_LOG_CALLS);
    vd_log_writer *writer = open_writer(VD_LOG_CALLS, QUEUE);
    vd_log_file *file;
    vd_log_done done;
    vd_err err = {0};
    cr_assert(vd_log_begin(writer, -1, NULL, 0, &err) == VD_OK);
    cr_assert(vd_log_end(writer, &err) == VD_OK);
    cr_assert(vd_log_wait(writer, -1, &done, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_log_open(log_dir, &run, -1, NULL, 0, &done.root, &file, &err) == VD_OK, "%s",
              err.text);
    cr_expect(done.bytes == 200 && vd_log_check(file, &err) == VD_OK);
    vd_log_close(file);
    cr_assert(vd_log_writer_close(writer, &err) == VD_OK);
}

/* ---- damage ---- */

static vd_buf whole_file(int64_t step) {
    vd_buf bytes = {0};
    cr_assert(vd_read_file(step_path(step), 1 << 20, &bytes, NULL) == VD_OK);
    return bytes;
}

static void store(int64_t step, const void *bytes, size_t size) {
    FILE *file = fopen(step_path(step), "wb");
    cr_assert(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

/* Opens and checks the whole file. Returns the error message. */
static const char *refusal_as(vd_status expected, vd_log_encoding encoding, int64_t step,
                              const vd_hash *root) {
    static vd_err err;
    vd_log_file *file = NULL;
    err = (vd_err){0};
    vd_status status = try_open(encoding, step, root, &file, &err);
    if (status == VD_OK)
        status = vd_log_check(file, &err);
    vd_log_close(file);
    cr_assert(status == expected, "step %d: status %d", (int)step, (int)status);
    char where[200];
    snprintf(where, sizeof where, "%s, step %lld: ", step_path(step), (long long)step);
    cr_assert(strncmp(err.text, where, strlen(where)) == 0, "%s", err.text);
    return err.text + strlen(where);
}

static const char *refusal(vd_log_encoding encoding, int64_t step, const vd_hash *root) {
    return refusal_as(VD_ERR_USAGE, encoding, step, root);
}

static void expect_refusal(vd_log_encoding encoding, int64_t step, const vd_hash *root,
                           const char *why) {
    const char *text = refusal(encoding, step, root);
    cr_expect(strstr(text, why), "%s, expected %s", text, why);
}

static void expect_flips_refused(vd_log_encoding encoding) {
    const vd_log_done done = write_step(encoding, 12);
    vd_buf bytes = whole_file(12);
    int fd = open(step_path(12), O_WRONLY);
    cr_assert(fd >= 0 && bytes.size == done.bytes + vd_log_table_size(1));
    size_t named = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        /* All bits of the frame, and one bit of every seventh byte of the sections. */
        const bool frame = i < VD_LOG_HEADER_SIZE || i + 300 > bytes.size;
        if (!frame && i % 7 != 0)
            continue;
        for (int bit = 0; bit < (frame ? 8 : 1); bit++) {
            const uint8_t wrong = bytes.data[i] ^ (uint8_t)(1 << (bit + i) % 8);
            cr_assert(pwrite(fd, &wrong, 1, (off_t)i) == 1);
            const bool in_version = i == 8 || i == 9; /* the version, after `verdelog` */
            const char *why = refusal_as(in_version ? VD_ERR_VERSION : VD_ERR_USAGE, encoding, 12,
                                         frame && i % 2 ? NULL : &done.root);
            named += strstr(why, "node ") != 0;
        }
        cr_assert(pwrite(fd, &bytes.data[i], 1, (off_t)i) == 1);
    }
    cr_expect(named > 300, "%zu sentences name the node", named);
    close(fd);
    expect_step(encoding, 12, &done);
    vd_buf_free(&bytes);
}

Test(log_file, every_flipped_bit_is_refused_with_calls) {
    expect_flips_refused(VD_LOG_CALLS);
}

Test(log_file, every_flipped_bit_is_refused_with_symbols) {
    expect_flips_refused(VD_LOG_SYMBOLS);
}

Test(log_file, a_cut_or_longer_file_is_refused) {
    const vd_log_done done = write_step(VD_LOG_CALLS, 12);
    vd_buf bytes = whole_file(12);
    for (size_t size = 0; size < bytes.size;
         size += size < 250 || size + 100 > bytes.size ? 1 : 31) {
        store(12, bytes.data, size);
        expect_refusal(VD_LOG_CALLS, 12, size % 2 ? &done.root : NULL, "cut short");
    }
    vd_put(&bytes, "x", 1);
    store(12, bytes.data, bytes.size);
    expect_refusal(VD_LOG_CALLS, 12, &done.root, "bytes after its end");
    cr_assert(unlink(step_path(12)) == 0);
    expect_refusal(VD_LOG_CALLS, 12, &done.root, "cannot be opened");
    cr_assert(mkfifo(step_path(12), 0600) == 0);
    expect_refusal(VD_LOG_CALLS, 12, &done.root, "not a regular file");
    vd_buf_free(&bytes);
}

/* ---- files of several steps ---- */

/* Files for initialisation, steps 0 to 2, steps 3 to 5, and steps 6 and 7. */
static void write_shared(vd_log_encoding encoding, vd_log_done *done) {
    vd_err err = {0};
    log_interval = 3, log_steps = 8;
    vd_log_writer *writer = open_writer(encoding, QUEUE);
    for (int64_t step = -1; step < log_steps; step++)
        cr_assert(log_write_step(writer, encoding, step, &err) == VD_OK, "%s", err.text);
    for (int64_t step = -1; step < log_steps; step++)
        cr_assert(vd_log_wait(writer, step, &done[step + 1], &err) == VD_OK, "%s", err.text);
    cr_assert(vd_log_writer_close(writer, &err) == VD_OK, "%s", err.text);
}

Test(log_file, steps_between_two_checkpoints_share_a_file) {
    for (int e = VD_LOG_CALLS; e <= VD_LOG_SYMBOLS; e++) {
        vd_log_done done[9];
        write_shared((vd_log_encoding)e, done);
        cr_expect(files(".vlog") == 4 && files(".tmp0") == 0);
        cr_expect(strstr(step_path(5), "/log/step-00000003.vlog"));
        cr_expect(strstr(step_path(7), "/log/step-00000006.vlog"));
        for (int64_t step = log_steps - 1; step >= -1; step--)
            expect_step((vd_log_encoding)e, step, &done[step + 1]);
        vd_buf bytes = whole_file(7);
        cr_expect(bytes.size == done[7].bytes + done[8].bytes + vd_log_table_size(2));
        vd_buf_free(&bytes);
    }
}

/* A step's part of a file does not depend on the other steps in it. */
Test(log_file, a_steps_root_is_the_same_in_any_file) {
    vd_log_done done[9];
    write_shared(VD_LOG_CALLS, done);
    log_interval = 1;
    const vd_log_done alone = write_step(VD_LOG_CALLS, 4);
    cr_expect(vd_hash_equal(&alone.root, &done[5].root) && alone.bytes == done[5].bytes);
}

Test(log_file, damage_to_one_step_leaves_the_others) {
    vd_log_done done[9];
    write_shared(VD_LOG_CALLS, done);
    vd_buf bytes = whole_file(3);
    bytes.data[done[4].bytes + done[5].bytes / 2] ^= 4; /* in the middle of step 4 */
    store(3, bytes.data, bytes.size);
    expect_step(VD_LOG_CALLS, 3, &done[4]);
    expect_refusal(VD_LOG_CALLS, 4, &done[5].root, "is damaged");
    expect_step(VD_LOG_CALLS, 5, &done[6]);
    vd_buf_free(&bytes);
}

/* Writes the parts of steps 3 to 5 in this order, and a table that closes the file. */
static void store_parts(const vd_buf *whole, const vd_log_done *done, const int *order, int count) {
    const uint64_t at[] = {0, done[4].bytes, done[4].bytes + done[5].bytes};
    vd_buf bytes = {0}, table = {0};
    for (int i = 0; i < count; i++) {
        vd_put(&bytes, whole->data + at[order[i]], done[4 + order[i]].bytes);
        vd_put_u64(&table, bytes.size);
    }
    cr_assert(vd_log_end_table(&table, NULL) == VD_OK);
    vd_put(&bytes, table.data, table.size);
    store(3, bytes.data, bytes.size);
    vd_buf_free(&bytes);
    vd_buf_free(&table);
}

Test(log_file, steps_in_another_order_or_number_are_refused) {
    static const int straight[] = {0, 1, 2, 0}, reordered[] = {0, 2, 1};
    vd_log_done done[9];
    write_shared(VD_LOG_CALLS, done);
    vd_buf whole = whole_file(3);
    store_parts(&whole, done, straight, 3);
    expect_step(VD_LOG_CALLS, 5, &done[6]);
    store_parts(&whole, done, reordered, 3);
    expect_step(VD_LOG_CALLS, 3, &done[4]);
    expect_refusal(VD_LOG_CALLS, 4, NULL, "a log of step 5, expected 4");
    store_parts(&whole, done, straight, 2);
    expect_refusal(VD_LOG_CALLS, 3, &done[4].root, "a log of 2 steps, expected 3");
    store_parts(&whole, done, straight, 4);
    expect_refusal(VD_LOG_CALLS, 3, &done[4].root, "a log of 4 steps, expected 3");
    vd_buf_free(&whole);
}

Test(log_file, a_damaged_table_of_steps_is_refused) {
    vd_log_done done[9];
    write_shared(VD_LOG_CALLS, done);
    vd_buf bytes = whole_file(3);
    for (size_t i = bytes.size - (size_t)vd_log_table_size(3); i < bytes.size; i++) {
        bytes.data[i] ^= (uint8_t)(1 << i % 8);
        store(3, bytes.data, bytes.size);
        for (int64_t step = 3; step < 6; step++)
            refusal(VD_LOG_CALLS, step, &done[step + 1].root);
        bytes.data[i] ^= (uint8_t)(1 << i % 8);
    }
    vd_buf_free(&bytes);
}

/* The table's digest proves nothing, since whoever writes the file also computes it. */
Test(log_file, a_table_that_does_not_fit_the_file_is_refused) {
    const vd_log_place place = {.path = "file"};
    static const uint64_t ends[][2] = {{400, 400}, {800, 400}, {100, 800}, {400, 1200}, {400, 800}};
    for (int i = 0; i < 5; i++) {
        vd_buf table = {0};
        uint64_t begin = 0, end = 0;
        vd_put_u64(&table, ends[i][0]);
        vd_put_u64(&table, ends[i][1]);
        cr_assert(vd_log_end_table(&table, NULL) == VD_OK);
        const vd_status status =
            vd_log_find_part(&place, table.data, 2, 1, 800, &begin, &end, NULL);
        cr_expect(status == (i == 4 ? VD_OK : VD_ERR_USAGE), "%d", i);
        vd_buf_free(&table);
        cr_expect(i < 4 || (begin == 400 && end == 800));
    }
}

Test(log_file, a_file_without_all_of_its_steps_is_none) {
    vd_log_done done;
    vd_err err = {0};
    log_interval = 3, log_steps = 8;
    vd_log_writer *w = open_writer(VD_LOG_CALLS, QUEUE);
    cr_expect(vd_log_begin(w, 1, log_node, LOG_NODES, &err) == VD_ERR_LOCAL);
    cr_expect(strstr(err.text, "step 1 is not the next one to be logged, 0 is"), "%s", err.text);
    cr_expect(vd_log_begin(w, 8, log_node, LOG_NODES, &err) == VD_ERR_LOCAL);
    cr_assert(log_write_step(w, VD_LOG_CALLS, 0, &err) == VD_OK, "%s", err.text);
    cr_expect(vd_log_wait(w, 0, &done, &err) == VD_ERR_LOCAL);
    cr_expect(strstr(err.text, "with all steps of its file"), "%s", err.text);
    cr_expect(vd_log_begin(w, 3, log_node, LOG_NODES, &err) == VD_ERR_LOCAL);
    cr_assert(vd_log_begin(w, 1, log_node, LOG_NODES, &err) == VD_OK);
    cr_expect(vd_log_begin(w, 1, log_node, LOG_NODES, &err) == VD_ERR_LOCAL, "given up");
    cr_expect(vd_log_writer_close(w, &err) == VD_OK);
    cr_expect(files(".vlog") == 0 && files(".tmp0") == 0);
    /* The first step is abandoned, and logged again. */
    w = open_writer(VD_LOG_CALLS, QUEUE);
    cr_assert(vd_log_begin(w, 0, log_node, LOG_NODES, &err) == VD_OK);
    for (int64_t step = 0; step < 3; step++)
        cr_assert(log_write_step(w, VD_LOG_CALLS, step, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_log_wait(w, 2, &done, &err) == VD_OK, "%s", err.text);
    expect_step(VD_LOG_CALLS, 2, &done);
    cr_expect(vd_log_writer_close(w, &err) == VD_OK);
}

/* ---- forged sections ---- */

/* Makes the file again from its own sections, each shortened by `cut` bytes. Section from[i] takes
 * the place of node index_node[i]. */
static void forge(const int *index_node, const int *from, uint32_t count, size_t cut) {
    const vd_log_run run = log_run(VD_LOG_CALLS);
    vd_log_file *file = open_log(VD_LOG_CALLS, 12, NULL);
    vd_log_node node[LOG_NODES];
    vd_buf section[LOG_NODES] = {{0}}, bytes = {0}, table = {0};
    for (uint32_t i = 0; i < count; i++) {
        node[i] = log_node[index_node[i]];
        cr_assert(vd_log_read_bytes(file, (uint64_t)from[i], &section[i], NULL) == VD_OK);
        section[i].size -= cut;
    }
    vd_log_close(file);
    log_put_part(&bytes, &run, 12, node, section, count, false);
    vd_put_u64(&table, bytes.size);
    cr_assert(vd_log_end_table(&table, NULL) == VD_OK);
    vd_put(&bytes, table.data, table.size);
    store(12, bytes.data, bytes.size);
    for (uint32_t i = 0; i < count; i++)
        vd_buf_free(&section[i]);
    vd_buf_free(&bytes);
    vd_buf_free(&table);
}

static const int straight[] = {0, 1, 2, 3}, swapped[] = {0, 2, 1, 3};

Test(log_file, forged_frames_do_not_have_the_committed_root) {
    const vd_log_done done = write_step(VD_LOG_CALLS, 12);
    vd_buf whole = whole_file(12);
    forge(swapped, swapped, 4, 0);
    expect_refusal(VD_LOG_CALLS, 12, &done.root, "node 4: section 1 is node 9's");
    store(12, whole.data, whole.size);
    forge(straight, swapped, 4, 0);
    expect_refusal(VD_LOG_CALLS, 12, &done.root, "not the log that was committed to");
    store(12, whole.data, whole.size);
    forge(straight, straight, 3, 0);
    expect_refusal(VD_LOG_CALLS, 12, &done.root, "3 sections, the program has 4");
    store(12, whole.data, whole.size);
    vd_hash other = done.root;
    other.b[31] ^= 1;
    expect_refusal(VD_LOG_CALLS, 12, &other, "not the log that was committed to");
    vd_buf_free(&whole);
}

/* Whoever committed to such sections broke the rules. */
Test(log_file, committed_sections_that_are_none_are_their_makers_fault) {
    write_step(VD_LOG_CALLS, 12);
    vd_buf whole = whole_file(12);
    forge(straight, swapped, 4, 0);
    const char *text = refusal_as(VD_ERR_PEER, VD_LOG_CALLS, 12, NULL);
    store(12, whole.data, whole.size);
    forge(straight, straight, 4, 1);
    text = refusal_as(VD_ERR_PEER, VD_LOG_CALLS, 12, NULL);
    cr_expect(strstr(text, "node 3: "), "%s", text);
    /* The sections are right, but the index has other counts. */
    store(12, whole.data, whole.size);
    forge(straight, straight, 4, 0);
    expect_refusal(VD_LOG_CALLS, 12, NULL, "the index has other counts");
    vd_buf_free(&whole);
}

Test(log_file, another_steps_or_runs_file_is_refused) {
    const vd_log_done done = write_step(VD_LOG_CALLS, 12);
    char path[128];
    strcpy(path, step_path(12));
    cr_assert(link(path, step_path(13)) == 0 && link(path, step_path(-1)) == 0);
    expect_refusal(VD_LOG_CALLS, 13, &done.root, "a log of step 12, expected 13");
    expect_refusal(VD_LOG_CALLS, -1, NULL, "a log of step 12, expected -1");
    expect_refusal(VD_LOG_SYMBOLS, 12, &done.root, "a log of encoding 1, expected 2");
    static const char *why[] = {"another program", "another run", "another file of thresholds",
                                "rounding bits 32, expected 27"};
    for (int i = 0; i < 4; i++) {
        vd_log_run run = log_run(VD_LOG_CALLS);
        vd_log_file *file;
        vd_err err = {0};
        (i == 0 ? &run.program : i == 1 ? &run.run : &run.thresholds)->b[i] ^= i < 3;
        run.bits = i == 3 ? 27 : 32;
        cr_expect(vd_log_open(log_dir, &run, 12, log_node, LOG_NODES, &done.root, &file, &err) ==
                  VD_ERR_USAGE);
        cr_expect(strstr(err.text, why[i]), "%s", err.text);
    }
}

Test(log_file, another_tensors_size_or_list_of_nodes_is_refused) {
    const vd_log_run run = log_run(VD_LOG_CALLS);
    vd_log_node node[LOG_NODES + 1];
    vd_log_file *file;
    vd_err err = {0};
    write_step(VD_LOG_CALLS, 12);
    memcpy(node, log_node, sizeof log_node);
    node[1].elements++;
    cr_assert(vd_log_open(log_dir, &run, 12, node, LOG_NODES, NULL, &file, &err) == VD_OK);
    cr_expect(vd_log_check(file, &err) == VD_ERR_PEER);
    cr_expect(strstr(err.text, "node 4: 700 elements, the program's node has 701"), "%s", err.text);
    vd_log_close(file);
    node[2].node = 8;
    cr_expect(vd_log_open(log_dir, &run, 12, node, LOG_NODES, NULL, &file, &err) == VD_ERR_USAGE);
    cr_expect(strstr(err.text, "node 8: section 2 is node 9's"), "%s", err.text);
    node[2].node = 4;
    cr_expect(vd_log_open(log_dir, &run, 12, node, LOG_NODES, NULL, &file, &err) == VD_ERR_LOCAL);
}

/* ---- outputs of several blocks ---- */

enum { LARGE_NODES = 5, BLOCK = VD_LOG_BLOCK };
static const vd_log_node large_node[LARGE_NODES] = {
    {1, 2 * BLOCK + 19000}, {2, 0}, {3, BLOCK}, {4, BLOCK + 1}, {5, BLOCK - 1}};

typedef struct {
    float *output;
    ro_close_call *call;
    uint8_t *symbol;
    int64_t count;
} large_output;

static vd_log_done write_large(vd_log_encoding encoding, large_output *of) {
    vd_log_writer *w = open_writer(encoding, QUEUE);
    vd_log_done done;
    vd_err err = {0};
    cr_assert(vd_log_begin(w, 0, large_node, LARGE_NODES, &err) == VD_OK, "%s", err.text);
    for (uint32_t n = 0; n < LARGE_NODES; n++) {
        const uint64_t elements = large_node[n].elements;
        of[n] = (large_output){.output = log_output(elements)};
        if (encoding == VD_LOG_CALLS)
            of[n].call = log_calls(elements, 40000, 3, &of[n].count);
        else
            of[n].symbol = log_symbols(elements, 9);
        cr_assert((of[n].call
                       ? vd_log_calls(w, NULL, n + 1, of[n].call, of[n].count, of[n].output, &err)
                       : vd_log_symbols(w, NULL, n + 1, of[n].symbol, of[n].output, &err)) == VD_OK,
                  "%s", err.text);
    }
    cr_assert(vd_log_end(w, &err) == VD_OK && vd_log_wait(w, 0, &done, &err) == VD_OK);
    cr_assert(vd_log_writer_close(w, &err) == VD_OK, "%s", err.text);
    return done;
}

static void expect_large(const vd_log_section *section, uint32_t n, const large_output *of) {
    vd_log_difference d;
    const uint64_t elements = large_node[n].elements;
    cr_assert(section->node == n + 1 && section->elements == elements);
    cr_expect(!of->call || section->count == of->count);
    cr_expect(of->count == 0 ||
              memcmp(section->call, of->call, (size_t)of->count * sizeof *of->call) == 0);
    cr_expect(!of->symbol || memcmp(section->symbol, of->symbol, elements) == 0);
    cr_expect(vd_log_compare(NULL, section, of->output, &d));
    if (elements < BLOCK + 1)
        return;
    uint32_t *word = (uint32_t *)(void *)of->output;
    word[BLOCK] ^= 4; /* the first element of the second block */
    cr_expect(!vd_log_compare(NULL, section, of->output, &d) && d.single && d.element == BLOCK);
    word[BLOCK] ^= 4;
}

/* Each block's section is a leaf of its own. Its elements are counted from the block's start. */
static void expect_blocks(vd_log_file *file, vd_log_encoding encoding, const large_output *of) {
    const vd_log_node block[] = {{1, BLOCK}, {1, BLOCK}, {1, 19000}, {2, 0},
                                 {3, BLOCK}, {4, BLOCK}, {4, 1},     {5, BLOCK - 1}};
    vd_log_section section = {0};
    for (uint32_t i = 0; i < 8; i++) {
        vd_buf bytes = {0};
        cr_assert(vd_log_read_bytes(file, i, &bytes, NULL) == VD_OK);
        cr_expect(vd_log_section_decode(bytes.data, bytes.size, encoding, &block[i], &section,
                                        NULL) == VD_OK);
        vd_buf_free(&bytes);
        if (i != 1)
            continue;
        for (int64_t c = 0; of->call && c < of->count; c++) {
            const int64_t element = of->call[c].element;
            cr_expect((vd_log_section_find(&section, element - BLOCK) != NULL) ==
                      (element >= BLOCK && element < 2 * BLOCK));
        }
        cr_expect(!of->symbol || memcmp(section.symbol, of->symbol + BLOCK, BLOCK) == 0);
    }
    vd_log_section_free(&section);
    cr_expect(vd_log_read_bytes(file, 8, &(vd_buf){0}, NULL) == VD_ERR_LOCAL);
}

Test(log_file, a_large_output_has_a_section_for_each_block) {
    for (int e = VD_LOG_CALLS; e <= VD_LOG_SYMBOLS; e++) {
        const vd_log_encoding encoding = (vd_log_encoding)e;
        const vd_log_run run = log_run(encoding);
        large_output of[LARGE_NODES];
        const vd_log_done done = write_large(encoding, of);
        vd_log_file *file = NULL;
        vd_log_section section = {0};
        vd_err err = {0};
        cr_assert(vd_log_open(log_dir, &run, 0, large_node, LARGE_NODES, &done.root, &file, &err) ==
                      VD_OK,
                  "%s", err.text);
        for (uint32_t n = LARGE_NODES; n-- > 0;) {
            cr_assert(vd_log_read(file, n + 1, &section, &err) == VD_OK, "%s", err.text);
            expect_large(&section, n, &of[n]);
        }
        vd_log_section_free(&section);
        cr_expect(vd_log_check(file, &err) == VD_OK, "%s", err.text);
        expect_blocks(file, encoding, of);
        vd_log_close(file);
        for (int n = 0; n < LARGE_NODES; n++) {
            free(of[n].output);
            free(of[n].call);
            free(of[n].symbol);
        }
    }
}

/* ---- proofs ---- */

Test(log_file, a_nodes_section_is_proven_by_itself) {
    const vd_log_run run = log_run(VD_LOG_SYMBOLS);
    const vd_log_done done = write_step(VD_LOG_SYMBOLS, 7);
    vd_log_file *file = open_log(VD_LOG_SYMBOLS, 7, &done.root);
    for (uint32_t n = 0; n < LOG_NODES; n++) {
        vd_buf bytes = {0};
        vd_hash tree_root;
        vd_proof proof;
        vd_log_leaf leaf;
        vd_err err = {0};
        vd_log_section section = {0};
        cr_assert(vd_log_read_bytes(file, n, &bytes, &err) == VD_OK);
        cr_assert(vd_log_prove(file, n, &leaf, &tree_root, &proof, &err) == VD_OK);
#define VERIFY(at, step, count)                                                                    \
    vd_log_proof_verify(&run, step, at, count, &leaf, &tree_root, &proof, &done.root, &err)
        cr_expect(VERIFY(n, 7, LOG_NODES) == VD_OK, "%s", err.text);
        cr_expect(vd_log_section_decode(bytes.data, bytes.size, VD_LOG_SYMBOLS, &log_node[n],
                                        &section, &err) == VD_OK);
        log_expect_section(VD_LOG_SYMBOLS, 7, (int)n, &section);
        cr_expect(VERIFY((n + 1) % LOG_NODES, 7, LOG_NODES) == VD_ERR_PEER);
        cr_expect(VERIFY(n, 8, LOG_NODES) == VD_ERR_PEER);
        cr_expect(VERIFY(n, 7, LOG_NODES + 1) == VD_ERR_PEER);
        vd_hash digest;
        cr_expect(vd_log_section_hash(bytes.data, bytes.size, &digest));
        cr_expect(leaf.size == bytes.size && vd_hash_equal(&digest, &leaf.digest));
        leaf.digest.b[31] ^= 0x10;
        cr_expect(VERIFY(n, 7, LOG_NODES) == VD_ERR_PEER);
        leaf.digest.b[31] ^= 0x10;
        leaf.size++;
        cr_expect(VERIFY(n, 7, LOG_NODES) == VD_ERR_PEER);
        leaf.size--;
        tree_root.b[0] ^= 1;
        cr_expect(VERIFY(n, 7, LOG_NODES) == VD_ERR_PEER);
        vd_log_section_free(&section);
        vd_buf_free(&bytes);
    }
    vd_log_close(file);
}

/* ---- the writer ---- */

Test(log_file, the_queue_stays_within_its_bound) {
    enum { LIMIT = 100000, NODES = 200, ELEMENTS = 20000 };
    for (int e = VD_LOG_CALLS; e <= VD_LOG_SYMBOLS; e++) {
        vd_log_writer *writer = open_writer((vd_log_encoding)e, LIMIT);
        vd_log_node node[NODES];
        vd_err err = {0};
        int64_t count;
        float *output = log_output(ELEMENTS);
        ro_close_call *call = log_calls(ELEMENTS, 20, 5, &count);
        uint8_t *symbol = log_symbols(ELEMENTS, 4);
        for (uint32_t i = 0; i < NODES; i++)
            node[i] = (vd_log_node){i, ELEMENTS};
        cr_assert(vd_log_begin(writer, 0, node, NODES, &err) == VD_OK);
        for (uint32_t i = 0; i < NODES; i++)
            cr_assert((e == VD_LOG_CALLS
                           ? vd_log_calls(writer, NULL, i, call, count, output, &err)
                           : vd_log_symbols(writer, NULL, i, symbol, output, &err)) == VD_OK,
                      "%s", err.text);
        cr_assert(vd_log_end(writer, &err) == VD_OK);
        cr_expect(vd_log_writer_peak(writer) <= LIMIT, "%zu", vd_log_writer_peak(writer));
        cr_expect(vd_log_writer_peak(writer) > 4000);
        cr_assert(vd_log_writer_close(writer, &err) == VD_OK, "%s", err.text);
        cr_expect(access(step_path(0), F_OK) == 0, "close finishes steps that were ended");
        free(output);
        free(call);
        free(symbol);
    }
}

Test(log_file, a_section_larger_than_the_queue_passes_alone) {
    vd_log_writer *writer = open_writer(VD_LOG_CALLS, 1);
    vd_log_done done;
    vd_err err = {0};
    for (int64_t step = 0; step < 3; step++)
        cr_assert(log_write_step(writer, VD_LOG_CALLS, step, &err) == VD_OK, "%s", err.text);
    for (int64_t step = 0; step < 3; step++) {
        cr_assert(vd_log_wait(writer, step, &done, &err) == VD_OK, "%s", err.text);
        expect_step(VD_LOG_CALLS, step, &done);
    }
    cr_assert(vd_log_writer_close(writer, &err) == VD_OK);
}

Test(log_file, calls_out_of_turn_are_refused) {
    vd_log_writer *w = open_writer(VD_LOG_CALLS, QUEUE);
    vd_log_done done;
    vd_err err = {0};
    const float output[700] = {0};
    const uint8_t symbol[1] = {1};
    const ro_close_call outside = {.element = 1, .bits = 1};
    const vd_log_node twice[] = {{3, 1}, {3, 1}}, huge[] = {{3, UINT64_C(1) << 41}};
    cr_expect(vd_log_calls(w, NULL, 3, NULL, 0, output, &err) == VD_ERR_LOCAL);
    cr_expect(vd_log_end(w, &err) == VD_ERR_LOCAL);
    cr_expect(vd_log_begin(w, 0, twice, 2, &err) == VD_ERR_LOCAL);
    cr_expect(vd_log_begin(w, 0, huge, 1, &err) == VD_ERR_LOCAL);
    cr_assert(vd_log_begin(w, 0, log_node, LOG_NODES, &err) == VD_OK);
    cr_expect(vd_log_calls(w, NULL, 4, NULL, 0, output, &err) == VD_ERR_LOCAL);
    cr_expect(strstr(err.text, "node 4 is not the next one"), "%s", err.text);
    cr_expect(vd_log_symbols(w, NULL, 3, symbol, output, &err) == VD_ERR_LOCAL);
    cr_expect(vd_log_calls(w, NULL, 3, &outside, 1, output, &err) == VD_ERR_LOCAL);
    cr_expect(vd_log_calls(w, NULL, 3, &outside, -1, output, &err) == VD_ERR_LOCAL);
    cr_assert(vd_log_calls(w, NULL, 3, NULL, 0, output, &err) == VD_OK, "%s", err.text);
    cr_expect(vd_log_end(w, &err) == VD_ERR_LOCAL);
    cr_expect(strstr(err.text, "ended after 1 of 4"), "%s", err.text);
    cr_expect(vd_log_wait(w, 0, &done, &err) == VD_ERR_LOCAL);
    /* A step that is begun again starts anew, and an unfinished one leaves no file. */
    cr_assert(log_write_step(w, VD_LOG_CALLS, 5, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_log_begin(w, 6, log_node, LOG_NODES, &err) == VD_OK);
    cr_assert(vd_log_calls(w, NULL, 3, NULL, 0, output, &err) == VD_OK);
    cr_assert(vd_log_wait(w, 5, &done, &err) == VD_OK);
    expect_step(VD_LOG_CALLS, 5, &done);
    cr_expect(vd_log_writer_close(w, &err) == VD_OK);
    cr_expect(access(step_path(0), F_OK) != 0 && access(step_path(6), F_OK) != 0);
    cr_expect(vd_log_writer_close(NULL, &err) == VD_OK);
}

Test(log_file, a_writer_refuses_what_it_cannot_write) {
    vd_log_run run = log_run(VD_LOG_CALLS);
    vd_log_writer *w;
    vd_err err = {0};
    run.bits = 33;
    cr_expect(vd_log_writer_create(&run, log_dir, QUEUE, &w, &err) == VD_ERR_LOCAL);
    run.bits = 32, run.encoding = (vd_log_encoding)3;
    cr_expect(vd_log_writer_create(&run, log_dir, QUEUE, &w, &err) == VD_ERR_LOCAL);
    run.encoding = VD_LOG_CALLS;
    cr_expect(vd_log_writer_create(&run, "/tmp/none/none", QUEUE, &w, &err) == VD_ERR_USAGE);
    char long_dir[2000];
    memset(long_dir, 'x', sizeof long_dir - 1);
    long_dir[sizeof long_dir - 1] = 0;
    cr_expect(vd_log_writer_create(&run, long_dir, QUEUE, &w, &err) == VD_ERR_USAGE);
}

Test(log_file, trouble_of_the_thread_is_told_by_the_next_calls_and_by_close) {
    struct rlimit unlimited, limit;
    signal(SIGXFSZ, SIG_IGN);
    vd_log_writer *w = open_writer(VD_LOG_CALLS, QUEUE);
    vd_log_done done;
    vd_err err = {0};
    cr_assert(log_write_step(w, VD_LOG_CALLS, 0, &err) == VD_OK);
    cr_assert(vd_log_wait(w, 0, &done, &err) == VD_OK);
    cr_assert(getrlimit(RLIMIT_FSIZE, &unlimited) == 0);
    limit = unlimited;
    limit.rlim_cur = 1000;
    cr_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    vd_status status = log_write_step(w, VD_LOG_CALLS, 1, &err);
    cr_expect(vd_log_wait(w, 1, &done, &err) == VD_ERR_LOCAL);
    cr_assert(setrlimit(RLIMIT_FSIZE, &unlimited) == 0);
    cr_expect(strstr(err.text, "step-00000001.vlog") && strstr(err.text, "too large"), "%s",
              err.text);
    cr_expect(log_write_step(w, VD_LOG_CALLS, 2, &err) == VD_ERR_LOCAL, "%d", (int)status);
    cr_expect(vd_log_writer_close(w, &err) == VD_ERR_LOCAL);
    cr_expect(strstr(err.text, "too large"), "%s", err.text);
    cr_expect(files(".vlog") == 1 && files(".tmp0") == 0);
}

/* ---- crashes ---- */

/* Writes to `said` after every third step, once the step is on disk. */
static void write_until_killed(int said) {
    const vd_log_run run = log_run(VD_LOG_CALLS);
    vd_log_writer *writer;
    if (vd_log_writer_create(&run, log_dir, QUEUE, &writer, NULL) != VD_OK)
        _exit(1);
    vd_log_done done;
    for (int64_t step = 0;; step++)
        if (log_write_step(writer, VD_LOG_CALLS, step % 20, NULL) != VD_OK ||
            (step % 3 == 0 &&
             (vd_log_wait(writer, step % 20, &done, NULL) != VD_OK || write(said, "", 1) != 1)))
            _exit(1);
}

/* Kills the writer some time after its `steps`-th message, however slow the disk is. */
static void kill_after(pid_t child, int said, int steps) {
    char byte;
    for (int i = 0; i < steps; i++)
        cr_assert(read(said, &byte, 1) == 1);
    usleep((useconds_t)(log_random() % 20000));
    cr_assert(kill(child, SIGKILL) == 0);
    int how;
    cr_assert(waitpid(child, &how, 0) == child && WIFSIGNALED(how));
}

Test(log_file, a_killed_writer_leaves_whole_files_only) {
    int whole = 0, left = 0;
    for (int round = 0; round < 25; round++) {
        int said[2];
        cr_assert(pipe(said) == 0);
        const pid_t child = fork();
        cr_assert(child >= 0);
        if (child == 0)
            write_until_killed(said[1]);
        close(said[1]);
        kill_after(child, said[0], (round + 1) % 5);
        close(said[0]);
        for (int64_t step = 0; step < 20; step++) {
            if (access(step_path(step), F_OK) != 0)
                continue;
            vd_log_file *file = open_log(VD_LOG_CALLS, step, NULL);
            cr_assert(vd_log_check(file, NULL) == VD_OK);
            vd_log_close(file);
            whole++;
        }
        left += files(".tmp0") > 0;
    }
    cr_expect(whole > 20, "%d whole files", whole);
    /* Resuming writes the same steps again, also over an unfinished file. */
    vd_log_writer *writer = open_writer(VD_LOG_CALLS, QUEUE);
    for (int64_t step = 0; step < 20; step++)
        cr_assert(log_write_step(writer, VD_LOG_CALLS, step, NULL) == VD_OK);
    cr_assert(vd_log_writer_close(writer, NULL) == VD_OK);
    cr_expect(files(".vlog") == 20 && files(".tmp0") == 0, "%d rounds left one", left);
}
