/* Answers that were given before. The same run, key and request have the same answer, so a question
 * that comes in many disputes is computed once. */
#ifndef SIM_MEMO_H
#define SIM_MEMO_H

#include "tests/sim/toy.h"
#include "verde/protocol/provider.h"

/* As vd_provider_answer, of a request with this hash; an answer goes to *note, and no answer leaves
 * it empty. */
void sim_memo_answer(const vd_provider *side, const vd_buf *request, const vd_hash *name,
                     vd_buf *note);
void sim_memo_clear(void);

#endif
