/* The parts that may follow the graphs in a program's bytes, and ranges of integer data:
 * PROTOCOL.md section 1.6. */
#include "models/models.h"
#include "verde/exec/exec.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* A small program whose tokens come from so many shards, as data tensors 0, 1, ... */
static vd_program small_program(int dtype, uint32_t shards) {
    vd_shard shard[3] = {{.count = 100}, {.count = 100}, {.count = 100}};
    const vd_training training = {
        .model = {VD_MODEL_MLP, .vocab = 11, .layers = 1, .channels = 4, .hidden = 4},
        .optimizer = {.lr = 1e-3f, .schedule = RO_LR_CONSTANT},
        .batch = 2,
        .micro_batches = 1,
        .sequence = 8,
        .steps = 2,
        .checkpoint_interval = 1,
        .data_dtype = dtype,
        .data_count = 100,
        .shard = shard,
        .shard_count = shards,
    };
    vd_program p;
    vd_err err;
    cr_assert(vd_training_program(&training, &p, &err) == VD_OK, "%s", err.text);
    return p;
}

static vd_buf bytes_of(const vd_program *p) {
    vd_buf bytes = {0};
    vd_program_encode(p, &bytes);
    cr_assert(vd_buf_ok(&bytes));
    return bytes;
}

static vd_hash hash_of(const vd_program *p) {
    vd_hash hash;
    cr_assert(vd_program_hash(p, &hash, NULL) == VD_OK);
    return hash;
}

static void put_range(vd_buf *out, uint32_t tensor, int64_t least, int64_t greatest) {
    vd_put_u32(out, tensor);
    vd_put_u64(out, (uint64_t)least);
    vd_put_u64(out, (uint64_t)greatest);
}

Test(parts, ranges_come_back_and_are_part_of_the_hash) {
    vd_program p = small_program(RO_I32, 2), again;
    vd_err err;
    const vd_hash plain = hash_of(&p);
    vd_buf without = bytes_of(&p);
    vd_state_range(&p.data[0], 0, 10);
    vd_state_range(&p.data[2], -3, INT64_MAX);
    p.rounding = (vd_program_rounding){.bits = 24, .encoding = 1};
    const vd_hash ranged = hash_of(&p);
    cr_expect(!vd_hash_equal(&plain, &ranged));
    vd_buf bytes = bytes_of(&p), expected = {0};
    vd_put(&expected, without.data, without.size);
    vd_put_u8(&expected, 1);
    vd_put_u32(&expected, 2);
    put_range(&expected, 0, 0, 10);
    put_range(&expected, 2, -3, INT32_MAX);
    vd_put(&expected, (const uint8_t[]){24, 1, 0, 0}, 4);
    cr_expect(bytes.size == expected.size && !memcmp(bytes.data, expected.data, bytes.size));
    cr_assert(vd_program_decode(bytes.data, bytes.size, &again, &err) == VD_OK, "%s", err.text);
    const vd_hash read = hash_of(&again);
    cr_expect(vd_hash_equal(&read, &ranged));
    cr_expect(again.data[0].range.greatest == 10 && !again.data[1].range.stated &&
              again.data[2].range.least == -3 && again.rounding.bits == 24);
    vd_buf_free(&without);
    vd_buf_free(&bytes);
    vd_buf_free(&expected);
    vd_program_free(&p);
    vd_program_free(&again);
}

/* Each meaning has only one encoding. */
Test(parts, a_range_that_is_the_whole_type_is_not_stated) {
    const struct {
        int dtype;
        int64_t least, greatest;
        bool stated;
    } table[] = {
        {RO_U8, 0, 255, false},
        {RO_U8, 0, 50256, false},
        {RO_U8, 0, 254, true},
        {RO_U16, 0, 65535, false},
        {RO_U16, 1, 65535, true},
        {RO_I32, INT32_MIN, INT32_MAX, false},
        {RO_I32, INT32_MIN, INT32_MAX - 1, true},
        {RO_F32, 0, 1, false},
        {RO_BF16, 0, 1, false},
        {RO_I8, -128, 127, false},
        {RO_I8, -500, 500, false},
        {RO_I8, 0, 255, true},
        {RO_I8, -128, 126, true},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        vd_data data = {.tensor.shape = {table[i].dtype, 1, {4}}};
        vd_state_range(&data, table[i].least, table[i].greatest);
        cr_expect(data.range.stated == table[i].stated, "row %zu", i);
    }
}

/* ---- malformed parts ---- */

typedef struct {
    int part; /* number of the part that begins; 0: none */
    uint32_t count;
    struct {
        uint32_t tensor;
        int64_t least, greatest;
    } range[3];
    size_t cut; /* bytes cut off at the end */
    uint8_t behind[14];
    size_t more; /* bytes appended */
    const char *why;
} bad_parts;

static const bad_parts table[] = {
    {1, 0, {{0}}, .why = "ranges: none, expected 1 or more"},
    {1, 1, {{2, 0, 5}}, .why = "number 0 is of data tensor 2, expected one behind"},
    {1, 2, {{1, 0, 5}, {0, 0, 5}}, .why = "number 1 is of data tensor 0, expected one behind"},
    {1, 2, {{1, 0, 5}, {1, 0, 6}}, .why = "number 1 is of data tensor 1, expected one behind"},
    {1, 1, {{1, 6, 5}}, .why = "range 6 to 5 of data tensor 1 (tokens.1), of type u16"},
    {1, 1, {{1, -1, 5}}, .why = "range -1 to 5 of data tensor 1"},
    {1, 1, {{1, 0, 65536}}, .why = "range 0 to 65536 of data tensor 1"},
    {1, 1, {{1, 0, 65535}}, .why = "a part, but not the whole, of a type of integers"},
    {1, 1, {{1, INT64_MIN, INT64_MAX}}, .why = "data tensor 1"},
    {1, 1, {{1, 0, 5}}, .cut = 1, .why = "malformed at byte"},
    {1, 1, {{1, 0, 5}}, .cut = 20, .why = "malformed at byte"},
    {1, 1, {{1, 0, 5}}, .cut = 21, .why = "malformed at byte"},
    {1, 2, {{1, 0, 5}}, .why = "malformed at byte"},
    {1, UINT32_MAX, {{1, 0, 5}}, .why = "malformed at byte"},
    {1, 1, {{1, 0, 5}}, .behind = {0}, .more = 1, .why = "part 0 stands behind part 1"},
    {1, 1, {{1, 0, 5}}, .behind = {1}, .more = 1, .why = "part 1 stands behind part 1"},
    {1, 1, {{1, 0, 5}}, .behind = {2}, .more = 1, .why = "part 2 is not known to this version"},
    {1, 1, {{1, 0, 5}}, .behind = {24}, .more = 1, .why = "malformed at byte"},
    {1, 1, {{1, 0, 5}}, .behind = {24, 1, 0, 0, 24}, .more = 5, .why = "stands behind part 24"},
    {.behind = {0}, .more = 1, .why = "part 0 is not known to this version, which knows 1 (ranges"},
    {.behind = {15}, .more = 1, .why = "part 15 is not known to this version"},
    {.behind = {33}, .more = 1, .why = "1 (ranges of data) and 16 to 32 (rounding)"},
    {.behind = {255}, .more = 1, .why = "part 255 is not known to this version"},
    {.behind = {24, 1, 0, 0, 1}, .more = 5, .why = "part 1 stands behind part 24: each is there"},
    {.behind = {24, 1, 0, 0, 25}, .more = 5, .why = "part 25 stands behind part 24"},
    {.behind = {24, 1, 0, 0, 33}, .more = 5, .why = "part 33 is not known to this version"},
    {.behind = {24, 3},
     .more = 2,
     .why = "encoding 3 of rounding logs is not known to this version"},
    {.behind = {24, 2, 1, 0, 0x2c, 1, 1, 1},
     .more = 14,
     .why = "a threshold: operator 300 is not known"},
    {.behind = {24, 3, 0, 0}, .more = 4, .why = "encoding 3 of rounding logs is not known"},
};

static void put_bad(vd_buf *out, const bad_parts *bad) {
    if (bad->part) {
        vd_put_u8(out, (uint8_t)bad->part);
        vd_put_u32(out, bad->count);
        for (int i = 0; i < 3 && (i == 0 || bad->range[i].greatest); i++)
            if (bad->range[i].greatest)
                put_range(out, bad->range[i].tensor, bad->range[i].least, bad->range[i].greatest);
        out->size -= bad->cut;
    }
    vd_put(out, bad->behind, bad->more);
}

/* The decoder distinguishes what a later version may allow from what is wrong in every version. */
static vd_status status_of(const vd_err *err) {
    return strstr(err->text, "is not known to this version") ? VD_ERR_VERSION : VD_ERR_PEER;
}

Test(parts, malformed_ones_are_refused_by_a_sentence) {
    vd_program p = small_program(RO_U16, 1);
    vd_buf bytes = bytes_of(&p);
    const size_t size = bytes.size;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        vd_program out;
        vd_err err = {.text = "accepted"};
        bytes.size = size;
        put_bad(&bytes, &table[i]);
        const vd_status status = vd_program_decode(bytes.data, bytes.size, &out, &err);
        cr_expect(status == status_of(&err), "row %zu: %d", i, status);
        cr_expect(strstr(err.text, table[i].why), "row %zu: \"%s\" lacks \"%s\"", i, err.text,
                  table[i].why);
        cr_expect(!out.leaf && !out.data);
    }
    vd_buf_free(&bytes);
    vd_program_free(&p);
}

Test(parts, a_range_of_numbers_that_are_no_integers_is_refused) {
    vd_program p = small_program(RO_U16, 0);
    vd_err err;
    p.data[0].range = (vd_range){true, 0, 1};
    p.data[0].tensor.shape.dtype = RO_BF16;
    cr_expect(vd_program_validate(&p, &err) == VD_ERR_PEER);
    cr_expect(strstr(err.text, "range 0 to 1 of data tensor 0 (tokens), of type bf16"), "%s",
              err.text);
    vd_program_free(&p);
}

/* ---- versions ---- */

Test(parts, versions_are_looked_at_before_all_else) {
    vd_program p = small_program(RO_U16, 0), out;
    vd_err err;
    vd_buf bytes = bytes_of(&p);
    bytes.data[15] = 2;
    memset(bytes.data + 19, 0xff, bytes.size - 19);
    cr_expect(vd_program_decode(bytes.data, bytes.size, &out, &err) == VD_ERR_VERSION);
    cr_expect(strstr(err.text, "version 2 of a program; this verde reads version 1"), "%s",
              err.text);
    bytes.data[15] = 1;
    bytes.data[17] = 7;
    cr_expect(vd_program_decode(bytes.data, 19, &out, &err) == VD_ERR_VERSION);
    cr_expect(strstr(err.text, "version 7 of the specification; this verde reads version 1"), "%s",
              err.text);
    vd_buf_free(&bytes);
    vd_program_free(&p);
}

/* ---- unknown numbers ---- */

/* Returns the offset of the operator of the step's first node, which follows the node's name. */
static size_t operator_at(const vd_buf *bytes, const char *name) {
    const uint8_t *found = memmem(bytes->data, bytes->size, name, strlen(name));
    cr_assert(found);
    return (size_t)(found - bytes->data) + strlen(name);
}

Test(numbers, unknown_and_experimental_operators_are_refused_by_name) {
    static const struct {
        int op;
        const char *why;
    } rows[] = {
        {0, "step graph, node 0 (m0.batch.tokens): there is no operator 0"},
        {300, "step graph, node 0 (m0.batch.tokens): operator 300 is not known to this version"},
        {61439, "operator 61439 is not known to this version"},
        {61440, "operator 61440 is experimental (61440 to 65535): no program may have it"},
        {65535, "operator 65535 is experimental (61440 to 65535): no program may have it"},
    };
    vd_program p = small_program(RO_U16, 0), out;
    vd_buf bytes = bytes_of(&p);
    const size_t at = operator_at(&bytes, "m0.batch.tokens");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        vd_err err = {.text = "accepted"};
        bytes.data[at] = (uint8_t)rows[i].op;
        bytes.data[at + 1] = (uint8_t)(rows[i].op >> 8);
        const vd_status status = vd_program_decode(bytes.data, bytes.size, &out, &err);
        cr_expect(status == status_of(&err), "%d", status);
        cr_expect(strstr(err.text, rows[i].why), "%s", err.text);
    }
    vd_buf_free(&bytes);
    vd_program_free(&p);
}

/* The numbers are refused even as if this build knew them. */
Test(numbers, nobody_judges_experimental_ones_for_others) {
    vd_err err = {.text = "accepted"};
    for (int i = 0; i < 5; i++) {
        vd_program p = small_program(RO_U16, 0);
        cr_assert(vd_refuse_experimental(&p, &err) == VD_OK, "%s", err.text);
        int32_t *number[] = {&p.step.stored[3].op, &p.init.stored[0].op,
                             &p.step.stored[3].shape.dtype, &p.leaf[2].shape.dtype,
                             &p.data[0].tensor.shape.dtype};
        const bool is_op = i < 2;
        *number[i] = is_op ? RO_OP_EXPERIMENTAL + i : RO_DTYPE_EXPERIMENTAL;
        cr_expect(vd_refuse_experimental(&p, &err) == VD_ERR_PEER, "%d", i);
        cr_expect(strstr(err.text, is_op ? " is experimental (61440 to 65535)"
                                         : "element type 128 is experimental (128 to 255)"),
                  "%s", err.text);
        vd_program_free(&p);
    }
}

/* ---- elements ---- */

static void put_element(int dtype, void *to, int64_t at, int64_t value) {
    if (dtype == RO_U8 || dtype == RO_I8)
        ((uint8_t *)to)[at] = (uint8_t)value;
    else if (dtype == RO_U16)
        ((uint16_t *)to)[at] = (uint16_t)value;
    else
        ((int32_t *)to)[at] = (int32_t)value;
}

/* Tensors are slightly longer than the block that is checked at once. */
enum { COUNT = (1 << 20) + 1500 };

static void expect_found(const vd_data *d, void *x, int64_t at, int64_t value) {
    const int dtype = d->tensor.shape.dtype;
    char where[64], range[64];
    vd_err err = {.text = "accepted"};
    put_element(dtype, x, at, value);
    cr_expect(vd_check_range(d, x, &err) == VD_ERR_PEER, "%s %lld at %lld", ro_dtype_name(dtype),
              (long long)value, (long long)at);
    snprintf(where, sizeof where, "data tensor ids: element %lld is %lld,", (long long)at,
             (long long)value);
    snprintf(range, sizeof range, "expected %lld to %lld", (long long)d->range.least,
             (long long)d->range.greatest);
    cr_expect(strstr(err.text, where) && strstr(err.text, range), "%s", err.text);
    put_element(dtype, x, at, d->range.least);
}

Test(ranges, the_first_element_outside_is_named) {
    const struct {
        int dtype;
        int64_t least, greatest, outside[4];
        int count;
    } rows[] = {
        {RO_U8, 0, 99, {100, 255}, 2},
        {RO_U8, 7, 200, {6, 0, 201, 255}, 4},
        {RO_I8, -5, 5, {-6, 6, -128, 127}, 4},
        {RO_I8, -128, 0, {1, 127}, 2},
        {RO_I8, 1, 127, {0, -1, -128}, 3},
        {RO_U16, 0, 50256, {50257, 65535}, 2},
        {RO_U16, 300, 300, {299, 301, 0, 44}, 4},
        {RO_I32, 0, 50256, {-1, 50257, INT32_MIN, INT32_MAX}, 4},
        {RO_I32, -5, 5, {-6, 6, INT32_MIN, INT32_MAX}, 4},
        {RO_I32, INT32_MIN, 0, {1, INT32_MAX}, 2},
    };
    const int64_t places[] = {0, 1, 1023, 1024, 5000, (1 << 20) - 1, 1 << 20, COUNT - 1};
    void *x = malloc(COUNT * sizeof(int32_t));
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        vd_data d = {.tensor = {"ids", {rows[r].dtype, 1, {COUNT}}}};
        vd_err err;
        vd_state_range(&d, rows[r].least, rows[r].greatest);
        for (int64_t i = 0; i < COUNT; i++)
            put_element(rows[r].dtype, x, i, i % 2 ? rows[r].least : rows[r].greatest);
        cr_expect(vd_check_range(&d, x, &err) == VD_OK, "row %zu: %s", r, err.text);
        for (size_t i = 0; i < sizeof places / sizeof *places; i++)
            for (int k = 0; k < rows[r].count; k++)
                expect_found(&d, x, places[i], rows[r].outside[k]);
        put_element(rows[r].dtype, x, COUNT - 1, rows[r].outside[0]);
        expect_found(&d, x, 1500, rows[r].outside[1]);
    }
    free(x);
}
