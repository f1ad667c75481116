/* The programs of a job with many, and the data that each has for itself, in one string of bytes:
 * what a client hands to a provider (PROTOCOL.md section 8.7). Programs that differ in a few places
 * take little more than these. */
#ifndef VD_ITEM_PACK_H
#define VD_ITEM_PACK_H

#include "verde/exec/exec.h"

#define VD_PACK_MAGIC "verde pack" /* with its NUL */
enum {
    VD_PACK_VERSION = 1,
    VD_PACK_ITEMS_MAX = 1 << 16,
    VD_PACK_BYTES_MAX = 1 << 28,
    VD_PACK_OWN_MAX = 4, /* data tensors that each item has for itself */
};

/* Where an item's parts lie. */
typedef struct {
    int64_t key;
    uint32_t base; /* the item whose program this one is like; its own number: it lies here whole */
    const uint8_t *code, *own; /* the program, or how it differs; its data */
    uint32_t code_bytes, own_bytes;
} vd_packed_item;

typedef struct {
    uint32_t count, own; /* items; data tensors of each, which are its program's first ones */
    vd_packed_item *item;
    vd_program first; /* that of item 0 */
} vd_pack;

/* Finds the items in bytes of a stranger, which are borrowed and must stay. VD_ERR_PEER: they are
 * no pack, have too many items, or a key twice. */
VD_MUST_USE vd_status vd_pack_open(const void *bytes, size_t size, vd_pack *out, vd_err *err);
void vd_pack_free(vd_pack *pack); /* harmless twice */
/* How many items bytes claim to have, from their beginning; 0: they are no pack. */
enum { VD_PACK_HEAD_BYTES = 19 };
uint32_t vd_pack_count(const void *bytes, size_t size);
/* The program of item `index`, which is valid, has the shared data that the first item's has, and
 * whose own data are those of the pack. *hash (may be NULL) is the program's. VD_ERR_PEER: it is
 * not so. */
VD_MUST_USE vd_status vd_pack_program(const vd_pack *pack, uint32_t index, vd_program *out,
                                      vd_hash *hash, vd_err *err);
/* A copy of own data tensor `tensor` of item `index`, as this machine has it, for its program,
 * which vd_pack_program gave. The caller frees it. NULL: out of memory. */
void *vd_pack_own(const vd_pack *pack, uint32_t index, const vd_program *program, uint32_t tensor);

/* ---- item_packing.c ---- */

/* Making one. Of programs that lie there whole, the last ones are kept: those of one token and of
 * more are not like each other. */
enum { VD_PACKING_BASES = 4 };
typedef struct {
    vd_buf bytes;
    uint32_t count, own;
    vd_buf base[VD_PACKING_BASES];
    uint32_t base_number[VD_PACKING_BASES]; /* their items */
    uint32_t bases;                         /* so many have been */
} vd_packing;

void vd_packing_begin(vd_packing *packing, uint32_t count, uint32_t own);
/* Appends the next item. VD_ERR_USAGE: the pack would have more than VD_PACK_BYTES_MAX bytes. */
VD_MUST_USE vd_status vd_packing_put(vd_packing *packing, int64_t key, const vd_program *program,
                                     const void *const *data, vd_err *err);
void vd_packing_free(vd_packing *packing);

#endif
