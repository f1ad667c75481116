/* Downloads the results of a job with many programs from untrusted providers (PROTOCOL.md section
 * 8.6): the run roots of all items, then a record of each. */
#ifndef VD_DOWNLOAD_ITEMS_H
#define VD_DOWNLOAD_ITEMS_H

#include "verde/delivery/download.h"
#include "verde/delivery/item_results.h"

/* Gets the run roots of `count` items from the first provider whose roots lead to the job root.
 * VD_ERR_PEER: no provider has them. VD_ERR_IO: none answers. */
VD_MUST_USE vd_status vd_download_item_roots(vd_download *download, const vd_hash *job_root,
                                             uint32_t count, vd_buf *out, vd_err *err);

/* Receives records one after the other. */
typedef struct {
    /* Reads the record of `item` at the beginning of `bytes`, checks it (vd_item_record_read) and
     * keeps it; *used becomes its size. VD_ERR_PEER: it is wrong, and its provider is dropped. Any
     * other error ends the download. */
    vd_status (*take)(void *user, uint32_t item, const void *bytes, size_t size, size_t *used,
                      vd_err *err);
    /* Returns the size of an item's record in bytes. */
    vd_status (*size)(void *user, uint32_t item, uint64_t *size, vd_err *err);
    void *user;
} vd_record_taker;

/* Gets the records of items [first, count) in order; an answer has one, and further ones that fit.
 * A large record comes in pieces, all from one provider, and is held in memory.
 * Errors as above. */
VD_MUST_USE vd_status vd_download_records(vd_download *download, uint32_t first, uint32_t count,
                                          const vd_record_taker *taker, vd_err *err);

#endif
