/* Tensors found by name. Private to verde/load. */
#ifndef VD_NAMES_H
#define VD_NAMES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    const char *text; /* borrowed */
    uint32_t number;
} vd_named;

/* An all-zero list is empty. vd_names_free frees it. */
typedef struct {
    vd_named *name; /* sorted by name after vd_names_sort */
    uint32_t count;
} vd_names;

/* Makes room for `count` names in all. Returns false without memory. */
bool vd_names_reserve(vd_names *names, uint32_t count);
void vd_names_put(vd_names *names, const char *text, uint32_t number);
void vd_names_sort(vd_names *names);
/* Returns NULL if there is no such name. */
const vd_named *vd_names_find(const vd_names *names, const char *text);
void vd_names_free(vd_names *names);

#endif
