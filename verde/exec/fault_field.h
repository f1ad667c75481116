/* VD_FAULT_FIELD. Private to verde/exec. */
#ifndef VD_FAULT_FIELD_H
#define VD_FAULT_FIELD_H

#include "verde/exec/exec.h"

enum { VD_FIELD_BYTES = 8 }; /* most bytes of an element */

/* Draws all of a fault from its seed. */
void vd_field_draw(uint64_t seed, const vd_program *program, vd_fault *out);
/* Alters a node's output in host memory; VD_FIELD_STALE uses the functions below instead. */
void vd_field_alter(const vd_fault *fault, const ro_shape *shape, void *output);

/* VD_FIELD_STALE lets one element keep its value of the state before: it is read before the node
 * runs, which may overwrite it, and written back afterwards. */
bool vd_field_is_stale(const vd_fault *fault, int64_t step, uint32_t node);
VD_MUST_USE vd_status vd_field_keep(const vd_fault *fault, const ro_shape *shape, ro_ctx *ro,
                                    const void *const *input, uint8_t old[VD_FIELD_BYTES],
                                    vd_err *err);
VD_MUST_USE vd_status vd_field_put_back(const vd_fault *fault, const ro_shape *shape, ro_ctx *ro,
                                        void *output, const uint8_t old[VD_FIELD_BYTES],
                                        vd_err *err);

#endif
