/* Shared by the files of verde/base only. */
#ifndef VD_BASE_INTERNAL_H
#define VD_BASE_INTERNAL_H

#include "verde/base/base.h"

/* Room for `size` more bytes: where they go, or NULL and buf->failed. Does not change buf->size. */
uint8_t *vd_buf_room(vd_buf *buf, size_t size);

/* Reports errno about a path: "cannot open /x: No such file or directory". */
vd_status vd_fail_errno(vd_err *err, const char *verb, const char *path);

/* map_list.c: a map's bytes begin to be its file's, and end to be. */
void vd_map_note(vd_map *map);
void vd_map_forget(const vd_map *map);

#endif
