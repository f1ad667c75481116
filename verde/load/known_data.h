/* Data tensors whose bytes were compared with a commitment: of many runs that read the same
 * weights, as those of prompts and batches do, they are hashed once. */
#ifndef VD_KNOWN_DATA_H
#define VD_KNOWN_DATA_H

#include "verde/exec/exec.h"

typedef struct {
    uint64_t device, file, size, changed_s, changed_ns; /* of the file, as it was hashed */
    uint64_t offset;
    ro_shape shape;
    uint8_t root[VD_HASH_SIZE];
} vd_known_tensor;

/* Empty to begin with. */
typedef struct {
    vd_known_tensor *list;
    uint32_t count, room;
} vd_known_data;

/* Whether the bytes at this place had this tensor's commitment, and its file was not written to
 * since. `known` may be NULL. */
bool vd_data_is_known(const vd_known_data *known, const char *path, uint64_t offset,
                      const vd_data *data);
/* That they have it. Where there is no memory they are hashed again. */
void vd_data_note(vd_known_data *known, const char *path, uint64_t offset, const vd_data *data);
void vd_known_data_free(vd_known_data *known); /* harmless twice */

#endif
