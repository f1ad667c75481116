/* Private to verde/base. */
#ifndef VD_BASE_INTERNAL_H
#define VD_BASE_INTERNAL_H

#include "verde/base/base.h"

/* Returns room for `size` more bytes, or NULL and sets buf->failed. buf->size does not change. */
uint8_t *vd_buf_room(vd_buf *buf, size_t size);

/* Fails with errno's text for a path: "cannot open /x: No such file or directory". */
vd_status vd_fail_errno(vd_err *err, const char *verb, const char *path);

/* map_list.c: add a mapped file to the list for vd_map_at, and remove it. */
void vd_map_note(vd_map *map);
void vd_map_forget(const vd_map *map);

#endif
