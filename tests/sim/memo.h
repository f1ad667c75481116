/* A cache of answers. Equal run, key and request give equal answers, so a question that occurs in
 * many disputes is computed once. */
#ifndef SIM_MEMO_H
#define SIM_MEMO_H

#include "tests/sim/toy.h"
#include "verde/protocol/provider.h"

/* Like vd_provider_answer, for a request with this hash. *note receives the answer; it stays empty
 * without one. */
void sim_memo_answer(const vd_provider *side, const vd_buf *request, const vd_hash *name,
                     vd_buf *note);
void sim_memo_clear(void);

#endif
