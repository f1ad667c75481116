/* Rounding logs for tests: random outputs, calls and symbols, and a folder to write them to. */
#ifndef LOG_FILES_H
#define LOG_FILES_H

#include "verde/log/internal.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t log_random_state = 1;

static inline uint64_t log_random(void) { /* splitmix64 */
    uint64_t z = log_random_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline float *log_output(uint64_t elements) {
    uint32_t *word = malloc(elements * sizeof *word + 1);
    for (uint64_t i = 0; i < elements; i++)
        word[i] = (uint32_t)log_random();
    return (float *)word;
}

/* Makes about elements / one_in calls; every `escape_in`-th is an escape. */
static inline ro_close_call *log_calls(uint64_t elements, uint64_t one_in, uint64_t escape_in,
                                       int64_t *count) {
    ro_close_call *call = malloc((size_t)elements * sizeof *call + 1);
    *count = 0;
    for (uint64_t i = 0; i < elements; i++) {
        if (log_random() % one_in != 0)
            continue;
        const uint32_t bits = log_random() % escape_in ? 1 : 2 + (uint32_t)(log_random() % 31);
        const uint32_t place = (uint32_t)(log_random() & ((UINT64_C(1) << bits) - 1));
        call[(*count)++] = (ro_close_call){.element = (int64_t)i, .place = place, .bits = bits};
    }
    return call;
}

static inline uint8_t *log_symbols(uint64_t elements, uint64_t one_in) {
    uint8_t *symbol = malloc(elements + 1);
    for (uint64_t i = 0; i < elements; i++)
        symbol[i] = log_random() % one_in ? 1 : (uint8_t)(log_random() % 2 * 2);
    return symbol;
}

static int64_t log_interval = 1, log_steps = INT64_C(1) << 32;

static inline vd_log_run log_run(vd_log_encoding encoding) {
    vd_log_run run = {
        .encoding = encoding, .bits = 32, .interval = log_interval, .steps = log_steps};
    memset(run.program.b, 0x11, VD_HASH_SIZE);
    memset(run.run.b, 0x22, VD_HASH_SIZE);
    if (encoding == VD_LOG_SYMBOLS)
        memset(run.thresholds.b, 0x33, VD_HASH_SIZE);
    return run;
}

enum { LOG_NODES = 4 };
static const vd_log_node log_node[LOG_NODES] = {{3, 1}, {4, 700}, {9, 66000}, {200, 8}};

/* Writes a step, whose content depends on its number only. */
static inline vd_status log_write_step(vd_log_writer *writer, vd_log_encoding encoding,
                                       int64_t step, vd_err *err) {
    log_random_state = (uint64_t)step + 100;
    vd_status status = vd_log_begin(writer, step, log_node, LOG_NODES, err);
    for (int n = 0; n < LOG_NODES && status == VD_OK; n++) {
        const uint64_t elements = log_node[n].elements;
        float *output = log_output(elements);
        if (encoding == VD_LOG_CALLS) {
            int64_t count;
            ro_close_call *call = log_calls(elements, n == 3 ? 1 : 50, 4, &count);
            status = vd_log_calls(writer, NULL, log_node[n].node, call, count, output, err);
            free(call);
        } else {
            uint8_t *symbol = log_symbols(elements, 7);
            status = vd_log_symbols(writer, NULL, log_node[n].node, symbol, output, err);
            free(symbol);
        }
        free(output);
    }
    return status == VD_OK ? vd_log_end(writer, err) : status;
}

/* Makes the section again and compares it with the one that was read. */
static inline void log_expect_section(vd_log_encoding encoding, int64_t step, int n,
                                      const vd_log_section *section) {
    log_random_state = (uint64_t)step + 100;
    for (int i = 0; i <= n; i++) {
        const uint64_t elements = log_node[i].elements;
        float *output = log_output(elements);
        int64_t count = 0;
        ro_close_call *call = NULL;
        uint8_t *symbol = NULL;
        vd_log_difference difference;
        if (encoding == VD_LOG_CALLS)
            call = log_calls(elements, i == 3 ? 1 : 50, 4, &count);
        else
            symbol = log_symbols(elements, 7);
        if (i == n) {
            cr_assert(section->node == log_node[n].node && section->elements == elements);
            cr_expect(vd_log_compare(NULL, section, output, &difference));
            cr_expect(section->count == count || symbol);
            cr_expect(count == 0 || memcmp(section->call, call, (size_t)count * sizeof *call) == 0);
            cr_expect(!symbol || memcmp(section->symbol, symbol, elements) == 0);
        }
        free(call);
        free(symbol);
        free(output);
    }
}

/* Assembles a step's part of a file from its sections; if not `counted`, the index lacks their
 * counts. Returns the step's root. */
static inline vd_hash log_put_part(vd_buf *out, const vd_log_run *run, int64_t step,
                                   const vd_log_node *node, const vd_buf *section, uint32_t count,
                                   bool counted) {
    vd_log_entry *entry = calloc(count, sizeof *entry);
    vd_buf part = {0}, index = {0};
    vd_log_trailer trailer;
    vd_hash tree_root;
    vd_tree tree;
    vd_log_put_header(&part, run, step, count);
    for (uint32_t i = 0; i < count; i++) {
        vd_put(&part, section[i].data, section[i].size);
        entry[i].size = section[i].size;
        vd_cursor in = vd_cursor_of(section[i].data, counted ? section[i].size : 0);
        vd_log_get_varint(&in); /* skips node and elements */
        vd_log_get_varint(&in);
        entry[i].count = vd_log_get_varint(&in);
        entry[i].escapes = vd_log_get_varint(&in);
        cr_assert(vd_log_section_hash(section[i].data, section[i].size, &entry[i].hash));
    }
    vd_log_put_index(&index, node, entry, count);
    trailer.index_at = part.size;
    cr_assert(vd_log_digest(part.data, index.data, index.size, &trailer.digest));
    cr_assert(vd_log_tree(entry, count, &tree, &tree_root, NULL) == VD_OK);
    cr_assert(vd_log_root(run, step, count, &tree_root, &trailer.root));
    vd_put(&part, index.data, index.size);
    vd_log_put_trailer(&part, &trailer);
    vd_put(out, part.data, part.size);
    vd_tree_free(&tree);
    vd_buf_free(&part);
    vd_buf_free(&index);
    free(entry);
    return trailer.root;
}

static char log_dir[64];

static inline void log_make_dir(void) {
    strcpy(log_dir, "/tmp/verde-log-XXXXXX");
    cr_assert(mkdtemp(log_dir));
}

static inline void log_remove(const char *path) {
    DIR *list = opendir(path);
    for (struct dirent *entry; list && (entry = readdir(list));)
        unlinkat(dirfd(list), entry->d_name, 0);
    if (list)
        closedir(list);
    rmdir(path);
}

static inline void log_remove_dir(void) {
    char path[128];
    snprintf(path, sizeof path, "%s/log", log_dir);
    log_remove(path);
    log_remove(log_dir);
}

#endif
