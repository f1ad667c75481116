/* Shared by the files of verde/log only. */
#ifndef VD_LOG_INTERNAL_H
#define VD_LOG_INTERNAL_H

#include "verde/log/log.h"

/* ---- varints: 7 bits per byte, lowest first, in the shortest form only ---- */

void vd_log_put_varint(vd_buf *out, uint64_t value);
uint64_t vd_log_get_varint(vd_cursor *in);

/* ---- bits, lowest of each byte first; Rice codes ---- */

typedef struct {
    vd_buf *out;
    uint64_t held;
    int count;
} vd_bit_writer;

typedef struct {
    const uint8_t *data;
    size_t size, at;
    uint64_t held;
    int count;
    bool failed;
} vd_bit_reader;

enum { VD_RICE_MAX = 40 };

void vd_bits_put(vd_bit_writer *bits, uint64_t value, int count); /* count: at most 40 */
void vd_bits_end(vd_bit_writer *bits); /* fills the last byte with zeros */
/* Writes value >> parameter zeros, a one, and the last `parameter` bits of value. */
void vd_bits_put_rice(vd_bit_writer *bits, uint64_t value, int parameter);

uint64_t vd_bits_get(vd_bit_reader *bits, int count);
/* Fails if the value is more than `most`. */
uint64_t vd_bits_get_rice(vd_bit_reader *bits, int parameter, uint64_t most);
bool vd_bits_done(vd_bit_reader *bits); /* nothing is left, except zeros in the last byte */

/* ---- the coded part of a section ---- */

void vd_calls_encode(const vd_log_section *section, vd_buf *out);
/* section->elements, section->count and section->escapes say what to expect. */
VD_MUST_USE vd_status vd_calls_decode(const uint8_t *coded, size_t size, vd_log_section *section,
                                      vd_err *err);

/* Packs five symbols per byte. The first symbol is the lowest digit in base 3. */
uint64_t vd_symbols_packed_size(uint64_t elements);
/* Returns false for a symbol other than 0, 1, 2. *marked counts the symbols other than 1. */
bool vd_symbols_pack(const uint8_t *symbol, uint64_t elements, uint8_t *packed, int64_t *marked);
/* zlib's state, kept for the next section because making it takes longer than compressing a small
 * section. {0} is an empty one. */
typedef struct {
    void *stream; /* z_stream; owned */
} vd_deflater;
void vd_deflater_free(vd_deflater *deflater);
VD_MUST_USE vd_status vd_symbols_deflate(vd_deflater *deflater, const uint8_t *packed,
                                         uint64_t size, vd_buf *out, vd_err *err);
VD_MUST_USE vd_status vd_symbols_decode(const uint8_t *coded, size_t size, vd_log_section *section,
                                        vd_err *err);

/* Appends the section: the coded part with what stands around it. */
VD_MUST_USE vd_status vd_log_section_put(const vd_log_section *section, const vd_buf *coded,
                                         vd_buf *out, vd_err *err);

/* Checks that calls are ascending, inside the tensor and of 1 to 32 bits; else VD_ERR_LOCAL. Counts
 * *escapes. */
VD_MUST_USE vd_status vd_calls_check(const ro_close_call *call, int64_t count, uint32_t node,
                                     uint64_t elements, int64_t *escapes, vd_err *err);

/* ---- the frame of a step's part of a file ---- */

enum {
    VD_LOG_HEADER_SIZE = 120,
    VD_LOG_TRAILER_SIZE = 80,
    VD_LOG_ENTRY_MAX = 5 * 10 + VD_HASH_SIZE, /* bytes of a section's entry in the index */
};

/* A section in the index. */
typedef struct {
    uint64_t at; /* where it begins in the part; not stored, as it follows from the sizes */
    uint64_t size, coded_size, count, escapes;
    vd_hash hash;
} vd_log_entry;

/* The part of a file that an error's sentence names. */
typedef struct {
    const char *path;
    int64_t step;
} vd_log_place;

/* Sets the error "PATH, step 12: sentence". */
vd_status vd_log_fail(const vd_log_place *place, vd_status status, vd_err *err, const char *format,
                      ...) VD_PRINTF(4, 5);

/* Checks that the run's steps have files and that `step` is one of them; else VD_ERR_LOCAL. */
VD_MUST_USE vd_status vd_log_check_run(const vd_log_run *run, int64_t step, vd_err *err);
/* Checks that nodes are ascending, with at most VD_LOG_SECTIONS_MAX sections; else VD_ERR_LOCAL.
 * There may be none. */
VD_MUST_USE vd_status vd_log_check_nodes(const vd_log_node *node, uint32_t count, vd_err *err);
vd_log_node *vd_log_copy_nodes(const vd_log_node *node, uint32_t count); /* NULL: no memory */
/* Lists the blocks of all outputs in order. NULL: no memory. */
vd_log_node *vd_log_blocks_of(const vd_log_node *node, uint32_t count, uint32_t *sections);

void vd_log_put_header(vd_buf *out, const vd_log_run *run, int64_t step, uint32_t sections);
/* Checks a header against the run, step and sections. Each difference has a sentence of its own. */
VD_MUST_USE vd_status vd_log_check_header(const vd_log_place *place, const uint8_t *header,
                                          const vd_log_run *run, uint32_t sections, vd_err *err);

void vd_log_put_index(vd_buf *out, const vd_log_node *node, const vd_log_entry *entry,
                      uint32_t count);
/* Reads the index. Sections must fill the part up to `end`. */
VD_MUST_USE vd_status vd_log_get_index(const vd_log_place *place, const uint8_t *index, size_t size,
                                       uint64_t end, const vd_log_node *node, vd_log_entry *entry,
                                       uint32_t count, vd_err *err);
/* H("verde/index/1", header and index). */
VD_MUST_USE bool vd_log_digest(const uint8_t header[VD_LOG_HEADER_SIZE], const void *index,
                               size_t size, vd_hash *out);
/* As vd_log_section_hash, with a context that serves many hashes. */
VD_MUST_USE bool vd_log_section_hash_with(vd_sha *sha, const void *bytes, size_t size,
                                          vd_hash *out);
/* Builds the tree over the sections ({0} if there are none) and gives its root. */
VD_MUST_USE vd_status vd_log_tree(const vd_log_entry *entry, uint32_t count, vd_tree *tree,
                                  vd_hash *tree_root, vd_err *err);

typedef struct {
    uint64_t index_at;
    vd_hash digest, root;
} vd_log_trailer;

void vd_log_put_trailer(vd_buf *out, const vd_log_trailer *trailer);
bool vd_log_get_trailer(const uint8_t bytes[VD_LOG_TRAILER_SIZE], vd_log_trailer *out);

/* Adds up the sizes and counts of the sections. */
void vd_log_sum_up(const vd_log_node *node, const vd_log_entry *entry, uint32_t count,
                   vd_log_done *out);

/* ---- the table of a file's parts ---- */

enum { VD_LOG_TABLE_TAIL = 4 + VD_HASH_SIZE + 8 };

/* Bytes of a table of `parts` parts: for each part a u64 that says where it ends, then the tail. */
uint64_t vd_log_table_size(uint32_t parts);
/* Appends the tail to a table that has the ends of all parts. */
VD_MUST_USE vd_status vd_log_end_table(vd_buf *table, vd_err *err);
/* Reads from the tail how many parts a file has. Returns false if no file ends like this. */
VD_MUST_USE bool vd_log_table_parts(const uint8_t tail[VD_LOG_TABLE_TAIL], uint32_t *parts);
/* Finds where part `index` begins and ends, in a file whose table begins at `at`. VD_ERR_USAGE: the
 * file is damaged. */
VD_MUST_USE vd_status vd_log_find_part(const vd_log_place *place, const uint8_t *table,
                                       uint32_t parts, uint32_t index, uint64_t at, uint64_t *begin,
                                       uint64_t *end, vd_err *err);

/* ---- a step's part, while it is written ---- */

typedef struct {
    const vd_log_run *run;
    vd_writer *file; /* borrowed */
    int64_t step;
    vd_log_node *node;   /* owned */
    vd_log_entry *entry; /* owned */
    uint32_t count, written;
    uint64_t at;
    vd_buf bytes; /* not yet written */
} vd_log_step;

/* Begins a part at the end of `file`. Takes `node` over, also on failure. */
VD_MUST_USE vd_status vd_log_step_open(vd_log_step *step, const vd_log_run *run, vd_writer *file,
                                       int64_t number, vd_log_node *node, uint32_t count,
                                       vd_err *err);
/* Writes a section. `sha` is a context of the caller. */
VD_MUST_USE vd_status vd_log_step_put(vd_log_step *step, vd_sha *sha, const vd_log_section *section,
                                      const vd_buf *coded, vd_err *err);
/* Ends the part after all sections. Only its bytes in the file remain. */
VD_MUST_USE vd_status vd_log_step_end(vd_log_step *step, vd_log_done *done, vd_err *err);
void vd_log_step_drop(vd_log_step *step); /* may follow any of these, twice too, and {0} */

#endif
