/* Model files of other programs: read as their writers meant them, or refused with a message of one
 * line. tests/vectors/weights has files from transformers and safetensors. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verde/weights/weights.h"

#define VECTORS "tests/vectors/weights/"

static const char *const models[] = {"gpt2", "llama", "types"};
enum { MODELS = sizeof models / sizeof models[0] };

/* ---- files of other programs ---- */

static ro_ctx *threads(int count) {
    const ro_options options = {.size = sizeof options, .threads = count};
    ro_ctx *ro;
    cr_assert(ro_ctx_create(&options, &ro) == RO_OK);
    return ro;
}

static void see(void *user, uint64_t done, uint64_t total) {
    uint64_t *seen = user;
    cr_assert(done > *seen && done <= total);
    *seen = done;
}

Test(weights, manifests_are_those_that_the_generator_computed) {
    for (int i = 0; i < MODELS; i++) {
        char path[256];
        vd_weights w;
        vd_manifest m;
        vd_buf text = {0}, expected = {0};
        vd_err err = {0};
        vd_hash hash, of_file;
        uint64_t seen = 0;
        const vd_weights_hashing how = {threads(2), see, &seen};
        snprintf(path, sizeof path, VECTORS "%s", models[i]);
        cr_assert(vd_weights_open(path, &w, &err) == VD_OK, "%s", err.text);
        cr_assert(vd_manifest_make(&w, &how, &m, &err) == VD_OK, "%s", err.text);
        vd_manifest_put(&m, &text);
        snprintf(path, sizeof path, VECTORS "%s.manifest", models[i]);
        cr_assert(vd_read_file(path, VD_MANIFEST_BYTES_MAX, &expected, &err) == VD_OK);
        cr_assert(text.size == expected.size && !memcmp(text.data, expected.data, text.size), "%s",
                  models[i]);
        cr_assert(vd_manifest_hash(&m, &hash, &err) == VD_OK);
        cr_assert(vd_hash_tagged(NULL, expected.data, expected.size, &of_file));
        cr_assert(vd_hash_equal(&hash, &of_file) && seen > 0);
        vd_manifest_free(&m);
        cr_assert(vd_manifest_read(path, &m, &err) == VD_OK, "%s", err.text);
        seen = 0;
        cr_assert(vd_manifest_compare(&m, &w, &how, &err) == VD_OK, "%s", err.text);
        vd_manifest_free(&m);
        vd_weights_close(&w);
        vd_buf_free(&text);
        vd_buf_free(&expected);
        ro_ctx_destroy(how.ro);
    }
}

Test(weights, tensors_are_found_by_name_with_their_values) {
    vd_weights w;
    vd_err err = {0};
    cr_assert(vd_weights_open(VECTORS "types", &w, &err) == VD_OK, "%s", err.text);
    const vd_weight *counter = vd_weights_find(&w, "bn.num_batches_tracked");
    cr_assert(counter && counter->form.type == VD_WEIGHT_I64 && counter->form.ndim == 0);
    cr_assert(counter->shape.dtype == RO_U8 && counter->shape.dim[0] == 8);
    cr_assert(*(const uint8_t *)counter->data == 7);
    const vd_weight *scale = vd_weights_find(&w, "scale");
    float value;
    cr_assert(scale && scale->shape.dtype == RO_F32 && scale->shape.ndim == 1);
    memcpy(&value, scale->data, sizeof value);
    cr_assert(value == 0.5f);
    cr_assert(!vd_weights_find(&w, "scal") && !vd_weights_find(&w, ""));
    vd_weights_close(&w);
    cr_assert(vd_weights_open(VECTORS "types/model.safetensors", &w, &err) == VD_OK &&
              w.count == 20);
    vd_weights_close(&w);
}

/* ---- hostile headers ---- */

/* Makes the beginning of a file: the header's size and the header, padded to 8 bytes with the
 * format's spaces if `pad`. */
static uint8_t *file_of(const char *json, bool pad, size_t *size) {
    const size_t length = strlen(json), whole = pad ? (length + 7) / 8 * 8 : length;
    uint8_t *bytes = malloc(whole + 8);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)whole >> (8 * i));
    memset(bytes + 8, ' ', whole);
    memcpy(bytes + 8, json, length);
    *size = whole + 8;
    return bytes;
}

static vd_status read_header(const char *json, uint64_t data, uint32_t *count, vd_err *err) {
    size_t size;
    vd_weights w = {0};
    uint8_t *bytes = file_of(json, true, &size);
    const vd_status status = vd_weights_header(bytes, size + data, "m.safetensors", &w, err);
    *count = w.count;
    vd_weights_close(&w);
    free(bytes);
    return status;
}

static void expect(const char *json, uint64_t data, const char *words) {
    uint32_t count;
    vd_err err = {0};
    const vd_status status = read_header(json, data, &count, &err);
    if (!words) {
        cr_assert(status == VD_OK, "%s: %s", json, err.text);
        return;
    }
    cr_assert(status == VD_ERR_USAGE, "%s", json);
    cr_assert(strstr(err.text, words) && !strncmp(err.text, "m.safetensors: ", 15), "%s: %s", json,
              err.text);
}

#define T(name, dtype, shape, offsets)                                                             \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

Test(weights, a_header_that_is_right_is_taken) {
    expect("{" T("a", "F32", "[2,3]", "[0,24]") "}", 24, NULL);
    expect("{" T("b", "BF16", "[3]", "[4,10]") "," T("a", "F32", "[]", "[0,4]") "}   ", 10, NULL);
    expect("{\"__metadata__\":{\"format\":\"pt\"}," T("a", "U8", "[1,1,1,1,7]", "[0,7]") "}", 7,
           NULL);
}

Test(weights, hostile_headers_are_refused_in_one_line) {
    expect("{" T("a", "F32", "[2]", "[0,8]") "," T("b", "F32", "[2]", "[4,12]") "}", 12,
           "a and b overlap");
    expect("{" T("a", "F32", "[2]", "[0,8]") "," T("b", "F32", "[2]", "[0,8]") "}", 8, "overlap");
    expect("{" T("a", "F32", "[2]", "[0,8]") "," T("b", "F32", "[2]", "[12,20]") "}", 20,
           "4 bytes before tensor b belong to no tensor");
    expect("{" T("a", "F32", "[2]", "[0,8]") "}", 9, "1 bytes at the end of the file");
    expect("{" T("a", "F32", "[2]", "[4,12]") "}", 12, "4 bytes before tensor a");
    expect("{}", 4, "4 bytes at the end");
    expect("{" T("a", "F32", "[2]", "[0,8]") "}", 7,
           "tensor a: `data_offsets` end at 8, beyond the 7");
    expect("{" T("a", "F32", "[2]", "[-8,0]") "}", 8, "`data_offsets` must be two whole numbers");
    expect("{" T("a", "F32", "[2]", "[8,0]") "}", 8, "ascending");
    expect("{" T("a", "F32", "[2]", "[0,9223372036854775807]") "}", 8, "beyond the 8 bytes");
    expect("{" T("a", "F32", "[2]", "[0,9223372036854775808]") "}", 8, "too big integer");
    expect("{" T("a", "F32", "[2]", "[0,1e99999]") "}", 8, "real number overflow");
    expect("{" T("a", "F32", "[2]", "[0,8.0]") "}", 8, "two whole numbers");
    expect("{" T("a", "F32", "[2]", "[0]") "}", 8, "two whole numbers");
    expect("{" T("a", "F32", "[2]", "[0,4,8]") "}", 8, "two whole numbers");
    expect("{" T("a", "F32", "[2]", "{}") "}", 8, "two whole numbers");
    expect("{" T("a", "F32", "[3]", "[0,8]") "}", 8,
           "tensor a: F32 [3] has 12 bytes, but its `data_offsets` hold 8");
    expect("{" T("a", "F31", "[2]", "[0,8]") "}", 8, "tensor a: unknown `dtype` \"F31\"");
    expect("{" T("a", "f32", "[2]", "[0,8]") "}", 8, "unknown `dtype`");
    expect("{" T("a", "F32", "[0]", "[0,0]") "}", 0, "1 or more");
    expect("{" T("a", "F32", "[-2]", "[0,8]") "}", 8, "1 or more");
    expect("{" T("a", "F32", "[2.0]", "[0,8]") "}", 8, "whole number");
    expect("{" T("a", "F32", "2", "[0,8]") "}", 8, "list of at most 8");
    expect("{" T("a", "F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]") "}", 8, "list of at most 8");
    expect("{" T("a", "F32", "[4294967296,4294967296]", "[0,8]") "}", 8, "more than 2^40");
    expect("{" T("a", "F32", "[9223372036854775807,2]", "[0,8]") "}", 8, "more than 2^40");
    expect("{" T("a", "F32", "[2]", "[0,8]") "," T("a", "F32", "[2]", "[8,16]") "}", 16,
           "duplicate object key");
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "expected exactly");
    expect("{\"a\":{\"dtype\":1,\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "must be a string");
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", 8,
           "exactly");
    expect("{\"a\":[]}", 8, "expected exactly");
    expect("{\"__metadata__\":[]," T("a", "F32", "[2]", "[0,8]") "}", 8, "must be an object");
    expect("{\"__metadata__\":{\"x\":1}," T("a", "F32", "[2]", "[0,8]") "}", 8, "must be a string");
    expect("{" T("a b", "F32", "[2]", "[0,8]") "}", 8, "printable ASCII");
    expect("{" T("", "F32", "[2]", "[0,8]") "}", 8, "printable ASCII");
    expect("{" T("a\\nb", "F32", "[2]", "[0,8]") "}", 8, "printable ASCII");
    expect("{" T("\\u0000", "F32", "[2]", "[0,8]") "}", 8, "NUL");
    expect("[]", 0, "JSON object");
    expect("", 0, "JSON object");
    expect("{", 0, "JSON object");
    expect(" {}", 0, "JSON object");
    expect("{\"a\":}", 0, "byte");
}

Test(weights, a_tensor_that_is_not_aligned_is_refused_with_the_reason) {
    expect("{" T("b", "U8", "[1]", "[0,1]") "," T("a", "F32", "[1]", "[1,5]") "}", 5,
           "which is no multiple of its 4-byte elements");
    for (int spaces = 0; spaces < 8; spaces++) {
        char json[128];
        size_t size;
        vd_weights w = {0};
        vd_err err = {0};
        snprintf(json, sizeof json, "{%s}%*s", T("a", "F32", "[1]", "[0,4]"), spaces, "");
        uint8_t *bytes = file_of(json, false, &size);
        cr_assert((vd_weights_header(bytes, size + 4, "m", &w, &err) == VD_OK) == (size % 4 == 0));
        vd_weights_close(&w);
        free(bytes);
    }
}

Test(weights, sizes_of_headers_are_checked_before_anything_is_read) {
    static const uint64_t sizes[] = {UINT64_C(1) << 63, UINT64_MAX, VD_WEIGHTS_HEADER_MAX + 1, 17,
                                     3};
    for (int i = 0; i < 5; i++) {
        uint8_t bytes[24] = {0};
        vd_weights w = {0};
        vd_err err = {0};
        for (int k = 0; k < 8; k++)
            bytes[k] = (uint8_t)(sizes[i] >> (8 * k));
        cr_assert(vd_weights_header(bytes, sizeof bytes, "m", &w, &err) == VD_ERR_USAGE);
        cr_assert(strstr(err.text, i < 3   ? "at most 100000000"
                                   : i < 4 ? "cut short"
                                           : "JSON"),
                  "%s", err.text);
        vd_weights_close(&w);
    }
    for (uint64_t size = 0; size < 8; size++) {
        uint8_t bytes[8] = {0};
        vd_weights w = {0};
        vd_err err = {0};
        cr_assert(vd_weights_header(bytes, size, "m", &w, &err) == VD_ERR_USAGE);
        cr_assert(strstr(err.text, "begins with 8 bytes"), "%s", err.text);
        vd_weights_close(&w);
    }
}

Test(weights, deep_and_wide_json_is_refused) {
    enum { DEEP = 10000 };
    char *deep = malloc(2 * DEEP + 16);
    strcpy(deep, "{\"a\":");
    memset(deep + 5, '[', DEEP);
    memset(deep + 5 + DEEP, ']', DEEP);
    strcpy(deep + 5 + 2 * DEEP, "}");
    expect(deep, 0, "maximum parsing depth");
    free(deep);
    const size_t wide_size =
        (size_t)2 * 17 * VD_WEIGHTS_MAX; /* 17 commas for each tensor, where 16 are allowed */
    char *wide = malloc(wide_size + 16);
    strcpy(wide, "{\"a\":[0");
    size_t at = strlen(wide);
    for (; at < wide_size; at += 2)
        memcpy(wide + at, ",0", 2);
    strcpy(wide + at, "]}");
    expect(wide, 0, "elements of JSON");
    free(wide);
}

/* ---- mutations ---- */

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Changes, doubles or removes a few bytes. */
static size_t mutate(uint8_t *bytes, size_t size, size_t room, uint32_t *state) {
    static const char likely[] = "[]{}\",:0123456789-eF";
    for (uint32_t n = 1 + next_random(state) % 4; n > 0 && size > 9; n--) {
        const size_t at = next_random(state) % size, rest = size - at;
        switch (next_random(state) % 4) {
        case 0: bytes[at] = (uint8_t)likely[next_random(state) % (sizeof likely - 1)]; break;
        case 1: bytes[at] ^= (uint8_t)(1u << next_random(state) % 8); break;
        case 2:
            if (size < room) {
                memmove(bytes + at + 1, bytes + at, rest);
                size++;
            }
            break;
        default: memmove(bytes + at, bytes + at + 1, rest - 1); size--;
        }
    }
    return size;
}

/* A header that is accepted must still follow the rules. */
static void check_taken(const vd_weights *w, uint64_t size) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        const vd_weight *t = &w->tensor[i];
        cr_assert(t->size > 0 && t->size == vd_weight_bytes(&t->form) && t->at + t->size <= size);
        total += t->size;
    }
    cr_assert(total < size);
}

Test(weights, mutated_headers_are_taken_or_refused_and_never_more) {
    enum { MUTATIONS = 20000 };
    uint32_t state = 1, taken = 0, refused = 0;
    vd_buf file = {0};
    vd_err err = {0};
    cr_assert(vd_read_file(VECTORS "types/model.safetensors", 1 << 20, &file, &err) == VD_OK);
    uint8_t *bytes = malloc(file.size + 8);
    for (int i = 0; i < MUTATIONS; i++) {
        vd_weights w = {0};
        memcpy(bytes, file.data, file.size);
        size_t size = mutate(bytes, file.size, file.size + 8, &state);
        if (i % 2) { /* restores the header's size, so that later checks are reached */
            memcpy(bytes, file.data, 8);
        }
        uint8_t *exact = malloc(size); /* a sanitizer sees reads beyond its end */
        memcpy(exact, bytes, size);
        err = (vd_err){0};
        const vd_status status = vd_weights_header(exact, size, "m", &w, &err);
        cr_assert(status == VD_OK || (status == VD_ERR_USAGE && err.text[0]));
        if (status == VD_OK)
            check_taken(&w, size);
        taken += status == VD_OK;
        refused += status != VD_OK;
        vd_weights_close(&w);
        free(exact);
    }
    cr_assert(taken > 100 && refused > 1000, "%u, %u", taken, refused);
    free(bytes);
    vd_buf_free(&file);
}
