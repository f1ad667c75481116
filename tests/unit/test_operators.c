/* Every operator of operators.def has a description, kernels that share one function to call, and
 * golden lines. (An operator without a row in a table of kernels or references does not link.) */
#include "repops/free.h"
#include "repops/src/backend.h"
#include "repops/src/free.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { FOLLOWS = 0, DECLARED = 1, FIXED = 0, FREE = 1 };

typedef struct {
    int number, least, most, shape, order;
    uint32_t onto;
    const char *name, *inputs;
} row;

static const row rows[] = {
#define RO_OPERATOR(number, NAME, name, least, most, shape, order, onto, check, inputs, text,      \
                    reads)                                                                         \
    {number, least, most, shape, order, onto, #name, inputs},
#include "repops/src/operators.def"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

Test(operators, are_described_as_the_list_says) {
    int described = 0;
    for (int op = -1; op <= RO_OP_END; op++)
        described += ro_op_describe(op) != NULL;
    cr_expect(described == ROWS, "%d operators, %d rows", described, ROWS);
    for (int i = 0; i < ROWS; i++) {
        const ro_op_info *info = ro_op_describe(rows[i].number);
        cr_assert(info != NULL);
        cr_expect_str_eq(info->name, rows[i].name);
        cr_expect(info->min_inputs == rows[i].least && info->max_inputs == rows[i].most);
        cr_expect(info->declared_shape == rows[i].shape && rows[i].number < RO_OP_END);
        cr_expect(ro_op_in_place(rows[i].number) == rows[i].onto);
        cr_expect(ro_op_is_free(rows[i].number) == rows[i].order, "%s", info->name);
        cr_expect(rows[i].most > 31 || rows[i].onto >> rows[i].most == 0, "%s", info->name);
        for (int k = 0; k < info->attr_count; k++)
            cr_expect(info->attr[k].name &&
                          (info->attr[k].kind == 'i' || info->attr[k].kind == 'f'),
                      "%s, attribute %d", info->name, k);
    }
}

/* "a, b i32" names each input; "a..., b i32" has one name for all inputs of a list. */
Test(operators, name_each_input_once) {
    for (int i = 0; i < ROWS; i++) {
        int names = *rows[i].inputs != 0;
        for (const char *at = rows[i].inputs; *at; at++)
            names += *at == ',';
        const int list = strstr(rows[i].inputs, "...") != NULL;
        cr_expect(list ? names == rows[i].least && rows[i].most > names
                       : names == rows[i].least && names == rows[i].most,
                  "%s: %s", rows[i].name, rows[i].inputs);
    }
}

static void expect_kernels(const char *table_name, void (*fill)(ro_table *)) {
    static ro_table table;
    memset(&table, 0, sizeof table);
    ro_table_scalar(&table);
    fill(&table);
    for (int i = 0; i < ROWS; i++) {
        const ro_kernel *k = &table.kernel[rows[i].number];
        cr_expect((k->run != NULL) + (k->range != NULL) == 1,
                  "%s on %s: its kernel needs .run or .range", rows[i].name, table_name);
    }
}

static void expect_free_kernels(const char *backend, int f32) {
    ro_free_find *find = ro_free_kernels(backend, f32);
    cr_assert(find, "no free kernels on %s", backend);
    for (int op = 0; op < RO_OP_END; op++) {
        const ro_free_kernel *k = find(op);
        const int has = k && ((k->run != NULL) + (k->range != NULL) == 1);
        cr_expect(has == ro_op_is_free(op), "operator %d on %s, f32 %d", op, backend, f32);
    }
}

Test(operators, have_a_function_to_call_on_every_processor) {
#if defined(__x86_64__)
    static const char *const names[] = {"scalar", "avx2", "avx512"};
    /* A table is filled by code that may itself use the instructions of its set. */
    if (__builtin_cpu_supports("avx2"))
        expect_kernels("avx2", ro_table_avx2);
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        expect_kernels("avx512", ro_table_avx512);
#elif defined(__aarch64__)
    static const char *const names[] = {"scalar", "neon"};
    expect_kernels("neon", ro_table_neon);
#else
    static const char *const names[] = {"scalar"};
#endif
    expect_kernels("scalar", ro_table_scalar);
    expect_kernels("a device", ro_table_device);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (int f32 = 0; f32 < 2; f32++)
            expect_free_kernels(names[i], f32);
}

/* tests/cuda/cases.c runs these lines on a device, so that they also reveal a missing kernel
 * there. */
Test(operators, have_a_golden_line) {
    static char line[1024];
    static int lines[ROWS];
    FILE *file = fopen("tests/golden/ops.txt", "r");
    cr_assert(file, "run from the top of the repository");
    while (fgets(line, sizeof line, file))
        for (int i = 0; i < ROWS; i++) {
            const size_t n = strlen(rows[i].name);
            lines[i] += strncmp(line, rows[i].name, n) == 0 && line[n] == ' ';
        }
    fclose(file);
    for (int i = 0; i < ROWS; i++)
        cr_expect(lines[i] > 0, "%s has no golden line", rows[i].name);
}
