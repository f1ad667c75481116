/* Packs of programs: an accepted pack, packed again, has the same programs. */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "verde/exec/item_pack.h"

enum { ITEMS = 16 }; /* limit of items, as hashing each takes time */

static bool put_again(const vd_pack *pack, uint32_t i, vd_packing *packing, vd_hash *hash) {
    void *own[VD_PACK_OWN_MAX] = {0};
    vd_program program;
    vd_err err;
    if (vd_pack_program(pack, i, &program, hash, &err) != VD_OK)
        return false;
    for (uint32_t d = 0; d < pack->own; d++)
        own[d] = vd_pack_own(pack, i, &program, d);
    const void *const *data = (const void *const *)own;
    fuzz_need(vd_packing_put(packing, pack->item[i].key, &program, data, &err) == VD_OK,
              "an item that was read is not packed");
    for (uint32_t d = 0; d < pack->own; d++)
        free(own[d]);
    vd_program_free(&program);
    return true;
}

static void read_again(const vd_pack *was, const vd_packing *packing, const vd_hash *expected) {
    vd_pack pack;
    vd_err err;
    fuzz_need(vd_pack_open(packing->bytes.data, packing->bytes.size, &pack, &err) == VD_OK &&
                  pack.count == was->count && pack.own == was->own,
              "a pack of ours is not read");
    for (uint32_t i = 0; i < pack.count; i++) {
        vd_program program;
        vd_hash hash;
        fuzz_need(vd_pack_program(&pack, i, &program, &hash, &err) == VD_OK &&
                      vd_hash_equal(&hash, &expected[i]) && pack.item[i].key == was->item[i].key,
                  "another program or key when it is packed again");
        vd_program_free(&program);
    }
    vd_pack_free(&pack);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vd_pack pack;
    vd_packing packing;
    vd_hash hash[ITEMS];
    vd_err err;
    if (vd_pack_open(data, size, &pack, &err) != VD_OK)
        return 0;
    fuzz_need(vd_pack_count(data, size) == pack.count, "two counts of items");
    bool whole = pack.count <= ITEMS;
    vd_packing_begin(&packing, pack.count, pack.own);
    for (uint32_t i = 0; i < pack.count && i < ITEMS; i++)
        whole = put_again(&pack, i, &packing, &hash[i]) && whole;
    if (whole)
        read_again(&pack, &packing, hash);
    vd_packing_free(&packing);
    vd_pack_free(&pack);
    return 0;
}
