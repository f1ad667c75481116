/* Rounding logs when memory runs out: every allocation fails once, and each failure is reported. */
#include "log_files.h"

/* Works with glibc's malloc only. A sanitizer's build has its own, and skips the test. */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CAN_FAIL 1
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

static _Atomic long left; /* the allocation that fails, counted down; 0: none */

static bool fails(void) {
    return left > 0 && --left == 0;
}

void *malloc(size_t size) {
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    return fails() ? NULL : __libc_realloc(old, size);
}
#else
#define CAN_FAIL 0
static long left;
#endif

TestSuite(log_memory, .init = log_make_dir, .fini = log_remove_dir);

enum { ELEMENTS = 700 };
static const vd_log_node node[] = {{1, ELEMENTS}, {2, ELEMENTS}};

static struct {
    vd_log_encoding encoding;
    float *output;
    ro_close_call *call;
    int64_t count;
    uint8_t *symbol;
} input;

static vd_status write_one(vd_log_done *done, vd_err *err) {
    const vd_log_run run = log_run(input.encoding);
    vd_log_writer *w = NULL;
    vd_status status = vd_log_writer_create(&run, log_dir, 1 << 20, &w, err);
    if (status == VD_OK)
        status = vd_log_begin(w, 0, node, 2, err);
    for (uint32_t i = 0; i < 2 && status == VD_OK; i++)
        status = input.encoding == VD_LOG_CALLS
                     ? vd_log_calls(w, NULL, i + 1, input.call, input.count, input.output, err)
                     : vd_log_symbols(w, NULL, i + 1, input.symbol, input.output, err);
    if (status == VD_OK)
        status = vd_log_end(w, err);
    if (status == VD_OK)
        status = vd_log_wait(w, 0, done, err);
    const vd_status closed = vd_log_writer_close(w, status == VD_OK ? err : NULL);
    return status == VD_OK ? closed : status;
}

static vd_status read_one(const vd_hash *root, vd_err *err) {
    const vd_log_run run = log_run(input.encoding);
    vd_log_file *file;
    vd_hash tree_root;
    vd_proof proof;
    vd_log_leaf leaf;
    vd_status status = vd_log_open(log_dir, &run, 0, node, 2, root, &file, err);
    if (status != VD_OK)
        return status;
    status = vd_log_check(file, err);
    if (status == VD_OK)
        status = vd_log_prove(file, 1, &leaf, &tree_root, &proof, err);
    vd_log_close(file);
    return status;
}

/* Fails one allocation after the other, until writing ends before the failing one. */
static void fail_each(vd_log_encoding encoding) {
    vd_log_done first, done;
    vd_err err = {0};
    input.encoding = encoding;
    input.output = log_output(ELEMENTS);
    input.call = log_calls(ELEMENTS, 10, 3, &input.count);
    input.symbol = log_symbols(ELEMENTS, 3);
    cr_assert(write_one(&first, &err) == VD_OK, "%s", err.text);
    cr_assert(read_one(&first.root, &err) == VD_OK, "%s", err.text);
    long told = 0, n = 0;
    for (bool over = false; !over; n++) {
        err = (vd_err){0};
        left = n / 2 + 1;
        const vd_status status = n % 2 ? read_one(&first.root, &err) : write_one(&done, &err);
        over = left > 0 && n % 2 == 0; /* writing needs more allocations than reading */
        left = 0;
        cr_assert(status == VD_OK || status == VD_ERR_LOCAL, "allocation %ld: %s", n / 2, err.text);
        cr_assert(status == VD_OK || err.text[0]);
        cr_assert(status != VD_OK || n % 2 || vd_hash_equal(&done.root, &first.root));
        told += status != VD_OK;
        /* The file is either the old or the new one, which are equal. */
        cr_assert(read_one(&first.root, &err) == VD_OK, "allocation %ld: %s", n / 2, err.text);
    }
    cr_expect(told > 40, "%ld of %ld failures were told", told, n);
    free(input.output);
    free(input.call);
    free(input.symbol);
}

Test(log_memory, every_allocation_may_fail_with_calls) {
    if (!CAN_FAIL)
        cr_skip_test("malloc is the sanitizer's");
    fail_each(VD_LOG_CALLS);
}

Test(log_memory, every_allocation_may_fail_with_symbols) {
    if (!CAN_FAIL)
        cr_skip_test("malloc is the sanitizer's");
    fail_each(VD_LOG_SYMBOLS);
}
