/* A provider's side of a dispute: from a signed question to a signed answer. It uses no sockets,
 * clock or files. It keeps nothing between questions, so a provider that was restarted goes on
 * answering. */
#ifndef VD_PROVIDER_H
#define VD_PROVIDER_H

#include "verde/exec/source.h"
#include "verde/protocol/message.h"

/* Ways of lying on purpose, for tests and demonstrations. */
typedef enum {
    VD_LIE_NONE = 0,
    VD_LIE_PROOF,      /* proofs that lead to no root */
    VD_LIE_WITHHOLD,   /* gives no answer about tensors */
    VD_LIE_SILENCE,    /* gives no answer after the reveal */
    VD_LIE_CONTRADICT, /* states inside the run do not fit those at its ends */
    VD_LIE_PAD,        /* fills answers up to the limit */
} vd_lie;

VD_MUST_USE vd_status vd_lie_parse(const char *text, vd_lie *out, vd_err *err);

typedef struct {
    const vd_program *program;       /* NULL: the job is a collection */
    const vd_collection *collection; /* NULL: it is one program */
    vd_hash program_hash;            /* of the program or the collection */
    const vd_key *key;
    vd_source source; /* of a collection only run_root is set: the root over `item_root` */
    /* Of a collection: each item's run root, and a thread-safe function that returns its run. */
    const vd_hash *item_root;
    vd_status (*item_source)(void *items, uint64_t item, vd_source *out, vd_err *err);
    void *items;
    vd_pace pace;                 /* stated with the commitment; zeros: not stated */
    const vd_public_key *referee; /* the only one to answer; NULL: any that names this key */
    vd_lie lie;
    /* Returns the second run, for the second hearing. VD_ERR_IO: it is not finished, ask again.
     * VD_ERR_LOCAL: it failed, and none is stated. NULL: this provider does not run again. */
    vd_status (*run_again)(void *again, vd_source *out, vd_err *err);
    void *again;
    void (*tell)(const char *line); /* reports trouble to the provider's operator; may be NULL */
} vd_provider;

/* Answers a request: {"assignment": note, "question": note}, as made by vd_request_write. Appends
 * the answer's note to *out. VD_ERR_PEER: the request is malformed, or about another program,
 * another provider's key, or not signed by the assignment's referee. VD_ERR_TIMEOUT: the provider
 * lies by silence. VD_ERR_IO: a second run is under way, ask again. VD_ERR_LOCAL: local trouble. */
VD_MUST_USE vd_status vd_provider_answer(const vd_provider *provider, const void *request,
                                         size_t size, vd_buf *out, vd_err *err);

/* Checks in a few milliseconds, from any thread, whether a request is valid: VD_OK and the referee
 * that signed it, or VD_ERR_PEER as from vd_provider_answer. */
VD_MUST_USE vd_status vd_provider_screen(const vd_provider *provider, const void *request,
                                         size_t size, vd_public_key *referee, vd_err *err);

/* Reads the assignment of a request and checks its referee's signature: for servers of many
 * programs. Nothing else of the request is checked. */
VD_MUST_USE vd_status vd_request_assignment(const void *request, size_t size, vd_assignment *out,
                                            vd_err *err);

VD_MUST_USE vd_status vd_request_write(const vd_buf *assignment_note, const vd_buf *question_note,
                                       vd_buf *out, vd_err *err);

#endif
