/* This file sorts named tensors, and finds one by its name. */
#include "verde/load/names.h"

#include <stdlib.h>
#include <string.h>

bool vd_names_reserve(vd_names *names, uint32_t count) {
    *names = (vd_names){.name = calloc((size_t)count + 1, sizeof *names->name)};
    return names->name != NULL;
}

void vd_names_put(vd_names *names, const char *text, uint32_t number) {
    names->name[names->count++] = (vd_named){text, number};
}

static int by_text(const void *a, const void *b) {
    return strcmp(((const vd_named *)a)->text, ((const vd_named *)b)->text);
}

void vd_names_sort(vd_names *names) {
    if (names->count > 0)
        qsort(names->name, names->count, sizeof *names->name, by_text);
}

const vd_named *vd_names_find(const vd_names *names, const char *text) {
    const vd_named key = {.text = text};
    return names->count > 0 ? bsearch(&key, names->name, names->count, sizeof key, by_text) : NULL;
}

void vd_names_free(vd_names *names) {
    free(names->name);
    *names = (vd_names){0};
}
