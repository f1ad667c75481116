/* This file makes the files of several short runs durable together. */
#include "verde/run/item_groups.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A group lasts at least GROUP_S seconds, and GROUP_SAVING times as long as writing
 * DIR/run.json. */
#define GROUP_S      1.0
#define GROUP_SAVING 10

vd_status vd_item_group_open(vd_item_group *g, vd_err *err) {
    vd_items there = {0};
    vd_status status = vd_items_load(g->dir, &there, err);
    if (status == VD_OK && there.count != g->items->count)
        status = vd_fail(err, VD_ERR_LOCAL, "%s/run.json: was changed meanwhile", g->dir);
    if (status == VD_OK && !(g->before = calloc((size_t)there.count + 1, sizeof *g->before)))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK)
        memcpy(g->before, there.done, there.count * sizeof *g->before);
    vd_items_free(&there);
    return status;
}

/* Deletes the plain files in a run's directory. */
static vd_status clear(const char *run, vd_err *err) {
    DIR *dir = opendir(run);
    char path[1300];
    struct stat info;
    vd_status status = VD_OK;
    if (!dir)
        return errno == ENOENT ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "%s: %s", run, strerror(errno));
    for (const struct dirent *entry; status == VD_OK && (entry = readdir(dir));) {
        snprintf(path, sizeof path, "%.1000s/%.255s", run, entry->d_name);
        if (lstat(path, &info) == 0 && S_ISREG(info.st_mode) && unlink(path) != 0)
            status = vd_fail(err, VD_ERR_LOCAL, "%s: %s", path, strerror(errno));
    }
    closedir(dir);
    return status;
}

vd_status vd_item_group_join(vd_item_group *g, uint32_t item, int64_t steps, vd_err *err) {
    char run[1024];
    if (steps != 1)
        return vd_item_group_end(g, true, err);
    if (!g->open)
        g->began = vd_seconds();
    g->open = true;
    vd_sync_begin();
    vd_items_path(run, g->dir, g->items->key[item]);
    return g->before[item] ? VD_OK : clear(run, err);
}

vd_status vd_item_group_end(vd_item_group *g, bool last, vd_err *err) {
    const double now = vd_seconds();
    if (!g->open ||
        (!last && (now - g->began < GROUP_S || now - g->began < GROUP_SAVING * g->saving_s)))
        return VD_OK;
    g->open = false;
    vd_status status = vd_sync_end(g->dir, err);
    const double start = vd_seconds();
    if (status == VD_OK)
        status = vd_items_save(g->dir, g->items, err);
    g->saving_s = vd_seconds() - start;
    return status;
}

void vd_item_group_close(vd_item_group *g) {
    vd_err unheard = {0};
    const vd_status status = vd_sync_end(
        g->dir, &unheard); /* unrecorded runs do not count, so an error does not matter */
    (void)status;
    free(g->before);
    *g = (vd_item_group){0};
}
