/* Item records: what the run of a prompt ends with. The reader takes the program from its own job;
 * the record after it comes from anybody. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "verde/delivery/item_results.h"

/* Writes the commitments of the results into the record, and computes the root that its path leads
 * to: no fuzzer would find a record for a given root. */
static bool make_root(const vd_program *p, const vd_hash *program, uint8_t *record, size_t size,
                      vd_hash *root) {
    vd_hash *tensor = (vd_hash *)record, state;
    vd_err err;
    const uint8_t *end = record + size;
    for (uint32_t i = p->leaf_count; i-- > 0;) {
        const ro_shape *shape = &p->leaf[i].shape;
        const size_t bytes = vd_shape_bytes(shape);
        vd_hash of_data;
        if (!vd_is_result_leaf(p->leaf[i].name))
            continue;
        end -= bytes;
        void *data = malloc(bytes);
        memcpy(data, end, bytes);
        vd_from_little(data, bytes, ro_dtype_size(shape->dtype));
        const vd_status status = vd_tensor_hash(NULL, shape, data, &of_data, &tensor[i], &err);
        free(data);
        if (status != VD_OK)
            return false;
    }
    if (vd_state_commit(program, p->steps, tensor, p->leaf_count, &state, &err) != VD_OK ||
        !vd_leaf_hash(&state, sizeof state, root))
        return false;
    /* The last leaf is the right child at each split. */
    for (const vd_hash *left = tensor + p->leaf_count; (const uint8_t *)left < end; left++)
        if (!vd_node_hash(left, root, root))
            return false;
    return true;
}

static void compare(const vd_program *p, const vd_state *state, const uint8_t *record,
                    size_t size) {
    const uint8_t *at = record + size;
    for (uint32_t i = p->leaf_count; i-- > 0;) {
        const size_t bytes = vd_shape_bytes(&p->leaf[i].shape);
        const bool result = vd_is_result_leaf(p->leaf[i].name);
        void *copy;
        fuzz_need(result == (state->tensor[i] != NULL), "a tensor that is no result, or none");
        if (!result)
            continue;
        const void *little =
            vd_to_little(state->tensor[i], bytes, ro_dtype_size(p->leaf[i].shape.dtype), &copy);
        at -= bytes;
        fuzz_need(little && memcmp(little, at, bytes) == 0, "other bytes than those of the record");
        free(copy);
    }
}

static void read_record(const vd_program *p, const uint8_t *bytes, size_t size) {
    const uint64_t expected = vd_item_record_bytes(p);
    vd_hash program, root = {{0}};
    vd_state state;
    vd_err err = {0};
    size_t used;
    if (vd_program_hash(p, &program, &err) != VD_OK)
        return;
    fuzz_need(vd_item_record_read(p, &program, &root, bytes, size, &used, &state, &err) ==
                      VD_ERR_PEER &&
                  err.text[0],
              "a record of no run is not refused");
    if (size < expected)
        return;
    uint8_t *record = malloc(size + 1);
    memcpy(record, bytes, size);
    if (make_root(p, &program, record, (size_t)expected, &root)) {
        fuzz_need(vd_item_record_read(p, &program, &root, record, size, &used, &state, &err) ==
                          VD_OK &&
                      used == expected,
                  "a record that fits is refused");
        compare(p, &state, record, (size_t)expected);
        vd_state_free(&state);
    }
    free(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vd_cursor c = vd_cursor_of(data, size);
    const uint32_t program_size = vd_get_u32(&c);
    const uint8_t *bytes = vd_get(&c, program_size);
    vd_program program;
    vd_err err;
    if (!bytes || vd_program_decode(bytes, program_size, &program, &err) != VD_OK)
        return 0;
    read_record(&program, data + c.at, size - c.at);
    vd_program_free(&program);
    return 0;
}
