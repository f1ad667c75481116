/* Tensors found by name. Private to verde/cli. */
#ifndef VD_NAMES_H
#define VD_NAMES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    const char *text; /* borrowed */
    uint32_t number;
} vd_named;

/* All zero is empty. Owned: vd_names_free. */
typedef struct {
    vd_named *name; /* ascending, once vd_names_sort was called */
    uint32_t count;
} vd_names;

/* Room for so many. False: out of memory. */
bool vd_names_reserve(vd_names *names, uint32_t count);
void vd_names_put(vd_names *names, const char *text, uint32_t number);
void vd_names_sort(vd_names *names);
/* NULL: there is none. */
const vd_named *vd_names_find(const vd_names *names, const char *text);
void vd_names_free(vd_names *names);

#endif
