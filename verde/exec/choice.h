/* The choice of a token in a program that generates (models/models.h). */
#ifndef VD_CHOICE_H
#define VD_CHOICE_H

#include "verde/exec/exec.h"

/* The node that chooses a token: `argmax` of logits, or `draw` by weights. UINT32_MAX: none
 * does. */
uint32_t vd_choosing_node(const vd_program *program);
/* The leaf that is not 0 after the text has ended; UINT32_MAX: there is none. */
uint32_t vd_stopped_leaf(const vd_program *program);
/* Returns whether the node's output follows from its input, both in host memory. It does not if the
 * largest logit is not finite, because then all weights are 0. */
bool vd_choice_follows(const vd_program *program, uint32_t node, const void *input,
                       const void *output);

#endif
