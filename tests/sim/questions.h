/* What a provider reads of a request: which question it is, and whether it was there before. */
#ifndef SIM_QUESTIONS_H
#define SIM_QUESTIONS_H

#include "verde/commit/commit.h"

/* As vd_question_print says it: "prove tensor 3 of step 5". */
void sim_question_text(const vd_buf *request, char *text, size_t size);

enum { SIM_NAMES = 1 << 13 };
/* Requests that a provider has answered. */
typedef struct {
    uint64_t name[SIM_NAMES]; /* 0: none */
} sim_names;

bool sim_names_has(const sim_names *names, uint32_t provider, const vd_hash *request);
void sim_names_add(sim_names *names, uint32_t provider, const vd_hash *request);

#endif
