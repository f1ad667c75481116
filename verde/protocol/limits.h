/* Every size of the protocol that comes from a peer. */
#ifndef VD_PROTOCOL_LIMITS_H
#define VD_PROTOCOL_LIMITS_H

enum {
    VD_PARTIES_MAX = 64,                /* providers that one assignment names */
    VD_GAMES_MAX = 126,                 /* of a tournament: 63 before and 63 after challenges */
    VD_GAME_ANSWER_BYTES = 48 << 20,    /* all answers of one provider in one game: payloads */
    VD_BEACON_SOURCE_MAX = 128,         /* characters of a beacon's name */
    VD_SEAM_LEAVES_MAX = 256,           /* of a state, compared in one go with a trace's records */
    VD_ASSIGNMENT_ELEMENTS = 128,       /* as VD_SMALL_ELEMENTS, of an assignment */
    VD_OPEN_DEPTH = 4,                  /* a referee opens 16 nodes at once */
    VD_OPEN_DEPTH_MAX = 8,              /* a provider answers up to 256 */
    VD_PROVE_LEAVES_MAX = 1024,         /* of a tensor, or of a state, in one question */
    VD_PROVE_RECORDS_MAX = 256,         /* of a trace */
    VD_PROVE_PLACES_MAX = 2,            /* of any other tree: a place and the one before it */
    VD_SMALL_ELEMENTS = 64,             /* brackets, and commas, of a JSON text without lists */
    VD_QUESTION_ELEMENTS_MAX = 1 << 11, /* the same of any question: a list of leaves */
    VD_VERDICT_ELEMENTS_MAX = 1 << 20,  /* the same of a verdict's payload */
    VD_QUESTION_BYTES_MAX = 64 << 10,   /* note */
    VD_ANSWER_BYTES_MAX = 22 << 20,     /* payload: no question allows more (answer_most.c) */
    VD_ANSWER_SPARE = 4096, /* of an answer's payload, and of a note around it: what has no list */
    VD_ANSWER_HASH = 80,    /* each hash of a list in an answer: 67, and some white space */
    VD_ANSWER_LEAF = 64,    /* each proof of a leaf, beside its data and path */
    VD_ROUNDS_MAX = 4096,   /* questions to one provider in one dispute */
    VD_VERDICT_BYTES_MAX = 128 << 20,  /* file, without a game */
    VD_VERDICT_GAME_BYTES = 296 << 20, /* file, for each game; a hearing of two counts as one */
    VD_DESK_MAX = 32,                  /* questions that a provider works on, or has answered */
    VD_DESK_NEW_MAX = 16,              /* of them, of referees that have fetched no answer yet */
    VD_DESK_KNOWN_MAX = 64,            /* referees of which it is remembered that they have */
    VD_DESK_BYTES = 256 << 20,         /* of answers that it keeps */
};

#endif
