/* Results of a job of many programs from providers that need not be trusted (PROTOCOL.md section
 * 8.6): the run roots of all items, then a record of each. */
#ifndef VD_DOWNLOAD_ITEMS_H
#define VD_DOWNLOAD_ITEMS_H

#include "verde/delivery/download.h"
#include "verde/delivery/item_results.h"

/* The run roots of `count` items, from the first provider whose roots give the job root; `out`
 * receives them. VD_ERR_PEER: no provider has them; VD_ERR_IO: none answers. */
VD_MUST_USE vd_status vd_download_item_roots(vd_download *download, const vd_hash *job_root,
                                             uint32_t count, vd_buf *out, vd_err *err);

/* What is done with records, one after the other. */
typedef struct {
    /* Reads the record of `item` at the beginning of bytes, checks it (vd_item_record_read) and
     * keeps it; *used receives its size. VD_ERR_PEER: it is wrong, and its provider dropped; any
     * other failure ends the download. */
    vd_status (*take)(void *user, uint32_t item, const void *bytes, size_t size, size_t *used,
                      vd_err *err);
    /* How many bytes the record of `item` has. */
    vd_status (*size)(void *user, uint32_t item, uint64_t *size, vd_err *err);
    void *user;
} vd_record_taker;

/* The records of items [first, count), in order: an answer has one, and those behind it that fit. A
 * large one comes in pieces, all of one provider, and is in memory whole.
 * Errors as above. */
VD_MUST_USE vd_status vd_download_records(vd_download *download, uint32_t first, uint32_t count,
                                          const vd_record_taker *taker, vd_err *err);

#endif
