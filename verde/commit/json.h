/* JSON from anybody: bounded before it is parsed, and never mistaken for our own lack of memory. */
#ifndef VD_JSON_H
#define VD_JSON_H

#include <jansson.h>

#include "verde/commit/commit.h"

/* One document without duplicate members and without bytes around it, with at most `elements`
 * brackets and as many commas outside of its strings: that bounds depth and memory (jansson takes
 * 40 bytes for each of "[[],[],[],..."). VD_ERR_PEER: it is not that; VD_ERR_LOCAL: out of memory,
 * whatever the text. */
VD_MUST_USE vd_status vd_json_read(const void *text, size_t size, size_t elements, json_t **out,
                                   vd_err *err);

/* The same of a file of ours, whose name stands before what is wrong: of at most `limit` bytes, and
 * of an element for each `element_bytes` of them, so that what is parsed takes memory in proportion
 * to the file. A line feed at its end is taken off. VD_ERR_USAGE: it is not there; VD_ERR_PEER: it
 * is not that. */
VD_MUST_USE vd_status vd_json_load(const char *path, size_t limit, size_t element_bytes,
                                   json_t **out, vd_err *err);

/* Whether a text has at most so many brackets, and commas, outside of its strings. */
bool vd_json_is_small(const void *text, size_t size, size_t elements);

/* How an object of a format of ours is read: its version first, then the names of its members, then
 * what they say. `version` names the member that must be the integer 1, and `what` the format;
 * `names` are all that an object may have, to NULL. VD_ERR_VERSION: another version; VD_ERR_PEER:
 * no version, or a member that the format does not have. */
VD_MUST_USE vd_status vd_json_begin(const json_t *object, const char *version, const char *what,
                                    const char *const *names, vd_err *err);
/* The same of a format with the versions 1 to `last`. */
VD_MUST_USE vd_status vd_json_begin_to(const json_t *object, const char *version, const char *what,
                                       int64_t last, const char *const *names, vd_err *err);
/* The names alone, of an object without a version of its own at `place`, such as "states[2]". */
VD_MUST_USE vd_status vd_json_known(const json_t *object, const char *place,
                                    const char *const *names, vd_err *err);

/* Compact, members sorted: one spelling for one value. */
VD_MUST_USE bool vd_json_dump(const json_t *value, vd_buf *out);

json_t *vd_hash_text(const vd_hash *hash); /* in hexadecimal */
/* These read a hash in hexadecimal; the second reads that of a member. False: it is none. */
bool vd_json_to_hash(const json_t *value, vd_hash *out);
bool vd_json_get_hash(const json_t *object, const char *key, vd_hash *out);
/* These read a member that is an integer from 0 to `most`, or to INT32_MAX. Jansson's own 0 for
 * what is no integer would pass for a number that was written. False: it is none. */
bool vd_json_get_integer(const json_t *object, const char *key, int64_t most, int64_t *out);
bool vd_json_get_number(const json_t *object, const char *key, int32_t *out);

/* jansson tells out-of-memory by NULL, like much else, and parents forget failed children. Building
 * is bracketed by these two: after _start, _failed says whether any allocation of this thread has
 * failed since. */
void vd_json_start(void);
bool vd_json_failed(void);

#endif
