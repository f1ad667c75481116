/* This file checks that DIR/prompts holds only the runs of the job's prompts. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verde/run/checks.h"

static int by_key(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Returns whether a name is a key, as verde writes it, of one of these prompts. */
static bool is_prompt(const char *name, const int64_t *sorted, uint32_t count) {
    char text[24];
    char *end;
    const int64_t key = strtoll(name, &end, 10);
    snprintf(text, sizeof text, "%lld", (long long)key);
    return strcmp(text, name) == 0 && bsearch(&key, sorted, count, sizeof key, by_key);
}

static vd_status look_at(const char *path, DIR *list, const int64_t *sorted, uint32_t count,
                         vd_err *err) {
    for (struct dirent *entry; (entry = readdir(list));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            !is_prompt(entry->d_name, sorted, count))
            return vd_fail(err, VD_ERR_PEER, "%s/%.200s: is no run of a prompt of this job", path,
                           entry->d_name);
    return VD_OK;
}

vd_status vd_check_entries(const char *dir, const vd_items *items, vd_err *err) {
    char path[1024];
    snprintf(path, sizeof path, "%.1000s/prompts", dir);
    int64_t *sorted = calloc((size_t)items->count + 1, sizeof *sorted);
    DIR *list = opendir(path);
    vd_status status = VD_OK;
    if (!sorted)
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    else if (!list)
        status = vd_fail(err, VD_ERR_IO, "cannot read %s: %s", path, strerror(errno));
    if (status == VD_OK) {
        memcpy(sorted, items->key, items->count * sizeof *sorted);
        qsort(sorted, items->count, sizeof *sorted, by_key);
        status = look_at(path, list, sorted, items->count, err);
    }
    if (list)
        closedir(list);
    free(sorted);
    return status;
}
