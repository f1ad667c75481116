/* Private to verde/weights. */
#ifndef VD_WEIGHTS_INTERNAL_H
#define VD_WEIGHTS_INTERNAL_H

#include <jansson.h>

#include "verde/weights/weights.h"

/* Limit on brackets, and on commas, in a header or index: a tensor has at most 3 and 10 of them. */
enum { VD_WEIGHTS_ELEMENTS_MAX = 16 * VD_WEIGHTS_MAX };

/* Returns whether the text can be a tensor's name: it must fit manifests and terminals. */
bool vd_weight_name_valid(const char *name);

/* Maps one more file. */
VD_MUST_USE vd_status vd_weights_map(vd_weights *weights, const char *path, vd_err *err);
/* Sets `data` of the tensors from `first` on. */
void vd_weights_point(vd_weights *weights, uint32_t first);

/* Reads the header of file[index], of which `bytes` are mapped, and appends its tensors. */
VD_MUST_USE vd_status vd_header_read(const uint8_t *bytes, uint64_t size, const char *path,
                                     uint32_t index, vd_weights *out, vd_err *err);
/* Like vd_json_read, but VD_ERR_USAGE if the file is wrong; errors begin with its name. */
VD_MUST_USE vd_status vd_weights_json(const void *text, size_t size, const char *path, json_t **out,
                                      vd_err *err);

#endif
