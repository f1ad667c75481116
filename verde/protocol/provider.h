/* A provider's side of a dispute: from a signed question to a signed answer. No sockets, no clock,
 * no files. Stateless between questions: a provider that was killed and started again answers on.
 */
#ifndef VD_PROVIDER_H
#define VD_PROVIDER_H

#include "verde/exec/source.h"
#include "verde/protocol/message.h"

/* Lies on purpose, for tests and demonstrations. */
typedef enum {
    VD_LIE_NONE = 0,
    VD_LIE_PROOF,      /* proofs that lead nowhere */
    VD_LIE_WITHHOLD,   /* no answer about tensors */
    VD_LIE_SILENCE,    /* no answer after the reveal */
    VD_LIE_CONTRADICT, /* states inside a run that are not those at its ends */
    VD_LIE_PAD,        /* answers filled up with what nobody reads */
} vd_lie;

VD_MUST_USE vd_status vd_lie_parse(const char *text, vd_lie *out, vd_err *err);

typedef struct {
    const vd_program *program;       /* NULL: the job is a collection */
    const vd_collection *collection; /* NULL: it is one program */
    vd_hash program_hash;            /* the job's, of either kind */
    const vd_key *key;
    vd_source source; /* of a collection: its run_root alone, the root over `item_root` */
    /* Of a collection: the root of each item's run, and those runs. Any thread may call it. */
    const vd_hash *item_root;
    vd_status (*item_source)(void *items, uint64_t item, vd_source *out, vd_err *err);
    void *items;
    vd_pace pace;                 /* stated in its commitment; zeros: none is */
    const vd_public_key *referee; /* the only one to answer; NULL: any that enrols this key */
    vd_lie lie;
    /* A second run, for the second hearing. VD_ERR_IO: not finished yet, to be asked again;
     * VD_ERR_LOCAL: it failed, and none is stated. NULL: this provider does not run again. */
    vd_status (*run_again)(void *again, vd_source *out, vd_err *err);
    void *again;
    void (*tell)(const char *line); /* of trouble, to whoever runs this provider; may be NULL */
} vd_provider;

/* `request`: {"assignment": note, "question": note}, as vd_request_write makes it. The answer note
 * goes to *out. VD_ERR_PEER: the request deserves no answer (malformed, another program, not this
 * key, not signed by the assignment's referee); VD_ERR_TIMEOUT: a lie of silence; VD_ERR_IO: a
 * second run is under way, ask again; VD_ERR_LOCAL: trouble here. */
VD_MUST_USE vd_status vd_provider_answer(const vd_provider *provider, const void *request,
                                         size_t size, vd_buf *out, vd_err *err);

/* Whether a request deserves an answer, in a few milliseconds and from any thread: VD_OK and the
 * referee who has signed it, or VD_ERR_PEER, as vd_provider_answer would say. */
VD_MUST_USE vd_status vd_provider_screen(const vd_provider *provider, const void *request,
                                         size_t size, vd_public_key *referee, vd_err *err);

/* The assignment of a request, signed by its referee: for whoever serves many programs. Nothing
 * else of the request is judged. */
VD_MUST_USE vd_status vd_request_assignment(const void *request, size_t size, vd_assignment *out,
                                            vd_err *err);

VD_MUST_USE vd_status vd_request_write(const vd_buf *assignment_note, const vd_buf *question_note,
                                       vd_buf *out, vd_err *err);

#endif
