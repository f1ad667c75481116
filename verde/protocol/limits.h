/* Limits of everything that the protocol reads from a peer. */
#ifndef VD_PROTOCOL_LIMITS_H
#define VD_PROTOCOL_LIMITS_H

enum {
    VD_PARTIES_MAX = 64,                /* providers in one assignment */
    VD_GAMES_MAX = 126,                 /* games of a tournament: at most 63 in each hearing */
    VD_GAME_ANSWER_BYTES = 48 << 20,    /* payloads of all answers of one provider in one game */
    VD_BEACON_SOURCE_MAX = 128,         /* characters of a beacon's name */
    VD_SEAM_LEAVES_MAX = 256,           /* leaves of a state in one seam (crumb.h) */
    VD_ASSIGNMENT_ELEMENTS = 128,       /* like VD_SMALL_ELEMENTS, for an assignment */
    VD_OPEN_DEPTH = 4,                  /* levels that a referee opens at once: 16 nodes */
    VD_OPEN_DEPTH_MAX = 8,              /* levels that a provider opens at most: 256 nodes */
    VD_PROVE_LEAVES_MAX = 1024,         /* leaves of a tensor or a state in one question */
    VD_PROVE_RECORDS_MAX = 256,         /* records of a trace in one question */
    VD_PROVE_PLACES_MAX = 2,            /* leaves of any other tree: one and the one before it */
    VD_SMALL_ELEMENTS = 64,             /* brackets, or commas, of a JSON text without lists */
    VD_QUESTION_ELEMENTS_MAX = 1 << 11, /* the same for a question, which may list leaves */
    VD_VERDICT_ELEMENTS_MAX = 1 << 20,  /* the same for a verdict's payload */
    VD_QUESTION_BYTES_MAX = 64 << 10,   /* the note */
    VD_ANSWER_BYTES_MAX = 22 << 20,     /* the payload; no question allows more (answer_most.c) */
    VD_ANSWER_SPARE = 4096, /* an answer's payload without its lists; the note around it */
    VD_ANSWER_HASH = 80,    /* a hash in a list of an answer: 67 bytes and some white space */
    VD_ANSWER_LEAF = 64,    /* a proof of a leaf, without its data and path */
    VD_ROUNDS_MAX = 4096,   /* questions to one provider in one dispute */
    VD_VERDICT_BYTES_MAX = 128 << 20,  /* a verdict's file without its games */
    VD_VERDICT_GAME_BYTES = 296 << 20, /* for each game; a hearing between two counts as one */
    VD_DESK_MAX = 32,                  /* questions that a provider has answered or will */
    VD_DESK_NEW_MAX = 16,              /* those of new referees: they have fetched no answer */
    VD_DESK_KNOWN_MAX = 64,            /* known referees: those that have fetched one */
    VD_DESK_BYTES = 256 << 20,         /* total of the answers kept */
};

#endif
