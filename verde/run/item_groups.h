/* Runs of one step that follow each other: their files are made durable together, which takes most
 * of the time of small ones. DIR/run.json says which are done, and those alone are relied on later.
 */
#ifndef VD_ITEM_GROUPS_H
#define VD_ITEM_GROUPS_H

#include "verde/exec/items.h"

/* Empty to begin with, but for these two. */
typedef struct {
    const char *dir;
    const vd_items *items;
    bool *before; /* of each item: it was done when this process began; owned */
    bool open;
    double began, saving_s; /* vd_seconds(); what writing DIR/run.json took last */
} vd_item_group;

/* Reads what is done. */
VD_MUST_USE vd_status vd_item_group_open(vd_item_group *group, vd_err *err);
/* Before the run of an item, of so many steps. Of one that was not done, and has one step, nothing
 * is left that may be torn. */
VD_MUST_USE vd_status vd_item_group_join(vd_item_group *group, uint32_t item, int64_t steps,
                                         vd_err *err);
/* After each item: ends the group if it is time for that, or `last`. */
VD_MUST_USE vd_status vd_item_group_end(vd_item_group *group, bool last, vd_err *err);
void vd_item_group_close(vd_item_group *group); /* harmless twice */

#endif
