/* Prints a dispute and its outcome, for people and for machines. */
#ifndef VD_STORY_H
#define VD_STORY_H

#include "verde/load/verdict_file.h"

void vd_tell_outcome(const vd_outcome *outcome, const char *const *names, const vd_cost *cost,
                     const char *verdict);
void vd_tell_verdict(const vd_verdict *verdict);
/* Returns the output of --json: grade, convicted, step, node, operator, rounds, bytes_in,
 * bytes_out, seconds, peak_bytes, ... */
json_t *vd_dispute_json(const vd_outcome *outcome, const vd_assignment *assignment,
                        const vd_cost *cost);

#endif
