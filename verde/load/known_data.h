/* Data tensors whose hash was compared with their commitment: runs that read the same weights, as
 * runs of many prompts do, hash them once. */
#ifndef VD_KNOWN_DATA_H
#define VD_KNOWN_DATA_H

#include "verde/exec/exec.h"

typedef struct {
    uint64_t device, file, size, changed_s, changed_ns; /* of the file when it was hashed */
    uint64_t offset;
    ro_shape shape;
    uint8_t root[VD_HASH_SIZE];
} vd_known_tensor;

/* A list that starts as all zeros. */
typedef struct {
    vd_known_tensor *list;
    uint32_t count, room;
} vd_known_data;

/* Returns whether the tensor at this offset was hashed before, and its file was not written to
 * since. `known` may be NULL. */
bool vd_data_is_known(const vd_known_data *known, const char *path, uint64_t offset,
                      const vd_data *data);
/* Records that the tensor was hashed; without memory it is not recorded, and is hashed again. */
void vd_data_note(vd_known_data *known, const char *path, uint64_t offset, const vd_data *data);
void vd_known_data_free(vd_known_data *known); /* may be called twice */

#endif
