/* A pack: the programs of a collection and their own data as one string of bytes, for a client to
 * send to a provider (PROTOCOL.md section 8.7). It stores similar programs as differences. */
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

/* An item's parts in the pack's bytes. */
typedef struct {
    int64_t key;
    uint32_t base;             /* index of a similar item; its own index: the program is whole */
    const uint8_t *code, *own; /* the program or its changes; its own data */
    uint32_t code_bytes, own_bytes;
} vd_packed_item;

typedef struct {
    uint32_t count, own; /* number of items; of data tensors of each, the program's first ones */
    vd_packed_item *item;
    vd_program first; /* program of item 0 */
} vd_pack;

/* Finds the items in foreign bytes, which are borrowed as long as the pack is used. VD_ERR_PEER:
 * they are no pack, have too many items, or repeat a key. */
VD_MUST_USE vd_status vd_pack_open(const void *bytes, size_t size, vd_pack *out, vd_err *err);
void vd_pack_free(vd_pack *pack); /* may be called twice */
/* The number of items that a pack's first bytes state; 0: they are not a pack's. */
enum { VD_PACK_HEAD_BYTES = 19 };
uint32_t vd_pack_count(const void *bytes, size_t size);
/* Decodes the program of item `index`, and checks that it is valid, has the shared data of item 0,
 * and commits to its own data. *hash (may be NULL) is the program's. VD_ERR_PEER: a check
 * failed. */
VD_MUST_USE vd_status vd_pack_program(const vd_pack *pack, uint32_t index, vd_program *out,
                                      vd_hash *hash, vd_err *err);
/* Copies own data tensor `tensor` of item `index` in this machine's byte order; `program` is that
 * of vd_pack_program. The caller frees it. NULL: out of memory. */
void *vd_pack_own(const vd_pack *pack, uint32_t index, const vd_program *program, uint32_t tensor);

/* ---- item_packing.c ---- */

/* Makes packs. The last programs that were stored whole are kept for comparison, several of them,
 * because prompts of one token have programs unlike others. */
enum { VD_PACKING_BASES = 4 };
typedef struct {
    vd_buf bytes;
    uint32_t count, own;
    vd_buf base[VD_PACKING_BASES];
    uint32_t base_number[VD_PACKING_BASES]; /* indices of their items */
    uint32_t bases;                         /* number of programs stored whole so far */
} vd_packing;

void vd_packing_begin(vd_packing *packing, uint32_t count, uint32_t own);
/* Appends the next item. VD_ERR_USAGE: the pack would have more than VD_PACK_BYTES_MAX bytes. */
VD_MUST_USE vd_status vd_packing_put(vd_packing *packing, int64_t key, const vd_program *program,
                                     const void *const *data, vd_err *err);
void vd_packing_free(vd_packing *packing);

#endif
