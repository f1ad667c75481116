/* Groups of consecutive runs of one step: their files are synced together, since for small runs
 * syncing takes most of the time. DIR/run.json says which runs are done; only those are relied on
 * later. */
#ifndef VD_ITEM_GROUPS_H
#define VD_ITEM_GROUPS_H

#include "verde/exec/items.h"

/* Starts as all zeros, except `dir` and `items`. */
typedef struct {
    const char *dir;
    const vd_items *items;
    bool *before; /* of each item: was done when this process began; owned */
    bool open;
    double began, saving_s; /* start; duration of the last writing of DIR/run.json */
} vd_item_group;

/* Reads which items are done. */
VD_MUST_USE vd_status vd_item_group_open(vd_item_group *group, vd_err *err);
/* Call this before each item's run of `steps` steps. If the run has one step and was not done, its
 * files are deleted, as they may be torn. */
VD_MUST_USE vd_status vd_item_group_join(vd_item_group *group, uint32_t item, int64_t steps,
                                         vd_err *err);
/* Call this after each item: it ends the group if it is time, or `last`. */
VD_MUST_USE vd_status vd_item_group_end(vd_item_group *group, bool last, vd_err *err);
void vd_item_group_close(vd_item_group *group); /* may be called twice */

#endif
