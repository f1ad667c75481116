/* Reading JSON from anybody: limits are checked before parsing, and lack of memory is never
 * mistaken for an error in the text. */
#ifndef VD_JSON_H
#define VD_JSON_H

#include <jansson.h>

#include "verde/commit/commit.h"

/* Parses one JSON object without duplicate members or bytes around it. At most `elements` brackets,
 * and as many commas, may be outside of strings; this bounds depth and memory (jansson takes 40
 * bytes for each of "[[],[],[],..."). VD_ERR_PEER: the text is not that; VD_ERR_LOCAL: out of
 * memory. */
VD_MUST_USE vd_status vd_json_read(const void *text, size_t size, size_t elements, json_t **out,
                                   vd_err *err);

/* Parses a file of ours, of at most `limit` bytes, without its last line feed; errors begin with
 * its name. The limit of elements is one for each `element_bytes` of the file, so that memory is
 * proportional to its size. VD_ERR_USAGE: there is no file; VD_ERR_PEER: it is not such JSON. */
VD_MUST_USE vd_status vd_json_load(const char *path, size_t limit, size_t element_bytes,
                                   json_t **out, vd_err *err);

/* Returns whether at most `elements` brackets, and as many commas, are outside of strings. */
bool vd_json_is_small(const void *text, size_t size, size_t elements);

/* Begins reading an object of one of our formats: checks first its version, then the names of its
 * members. `version` is the member that must be the integer 1; `what` names the format; `names`
 * lists all members that are allowed, and ends with NULL. VD_ERR_VERSION: another version;
 * VD_ERR_PEER: no version, or an unknown member. */
VD_MUST_USE vd_status vd_json_begin(const json_t *object, const char *version, const char *what,
                                    const char *const *names, vd_err *err);
/* Like vd_json_begin, for a format with the versions 1 to `last`. */
VD_MUST_USE vd_status vd_json_begin_to(const json_t *object, const char *version, const char *what,
                                       int64_t last, const char *const *names, vd_err *err);
/* Checks only the names of members, of an object at `place`, such as "states[2]". */
VD_MUST_USE vd_status vd_json_known(const json_t *object, const char *place,
                                    const char *const *names, vd_err *err);

/* Writes a value in its only spelling: compact, with sorted members. */
VD_MUST_USE bool vd_json_dump(const json_t *value, vd_buf *out);

json_t *vd_hash_text(const vd_hash *hash); /* in hexadecimal */
/* Read a hash in hexadecimal: a value, or a member of an object. False: it is not a hash. */
bool vd_json_to_hash(const json_t *value, vd_hash *out);
bool vd_json_get_hash(const json_t *object, const char *key, vd_hash *out);
/* Read a member that must be an integer from 0 to `most`, or to INT32_MAX. False: it is not.
 * (Jansson gives 0 for what is no integer, which could be mistaken for a number.) */
bool vd_json_get_integer(const json_t *object, const char *key, int64_t most, int64_t *out);
bool vd_json_get_number(const json_t *object, const char *key, int32_t *out);

/* Jansson returns NULL without memory, as for much else, and containers do not notice that adding a
 * member failed. So code that builds JSON calls vd_json_start first; vd_json_failed then says
 * whether an allocation of this thread has failed since. */
void vd_json_start(void);
bool vd_json_failed(void);

#endif
