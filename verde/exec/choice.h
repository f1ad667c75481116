/* The choice of a token, in a program that generates (models/models.h). */
#ifndef VD_CHOICE_H
#define VD_CHOICE_H

#include "verde/exec/exec.h"

/* The node of a step that chooses: `argmax` of logits, or `draw` by their weights. UINT32_MAX: the
 * program chooses none. */
uint32_t vd_choosing_node(const vd_program *program);
/* The leaf that is not 0 once the text has ended; UINT32_MAX: there is none. */
uint32_t vd_stopped_leaf(const vd_program *program);
/* Whether its output follows from its input, both in host memory. It does not if the largest logit
 * is not finite: then the weights are all 0. */
bool vd_choice_follows(const vd_program *program, uint32_t node, const void *input,
                       const void *output);

#endif
