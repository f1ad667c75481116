/* What a provider reads in a request: which question it is, and whether it came before. */
#ifndef SIM_QUESTIONS_H
#define SIM_QUESTIONS_H

#include "verde/commit/commit.h"

/* Prints the question like vd_question_print: "prove tensor 3 of step 5". */
void sim_question_text(const vd_buf *request, char *text, size_t size);

enum { SIM_NAMES = 1 << 13 };
/* The requests that a provider has answered. */
typedef struct {
    uint64_t name[SIM_NAMES]; /* 0: empty slot */
} sim_names;

bool sim_names_has(const sim_names *names, uint32_t provider, const vd_hash *request);
void sim_names_add(sim_names *names, uint32_t provider, const vd_hash *request);

#endif
