/* Private to verde/log. */
#ifndef VD_LOG_INTERNAL_H
#define VD_LOG_INTERNAL_H

#include "verde/log/log.h"

/* ---- varints: 7 bits per byte, lowest first, in the shortest form only ---- */

void vd_log_put_varint(vd_buf *out, uint64_t value);
uint64_t vd_log_get_varint(vd_cursor *in);

/* ---- bits, from the lowest of each byte; Rice codes ---- */

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
bool vd_bits_done(vd_bit_reader *bits); /* whether nothing is left but zeros in the last byte */

/* ---- the coded part of a section ---- */

void vd_calls_encode(const vd_log_section *section, vd_buf *out);
/* Decodes calls. section->elements, section->count and section->escapes are set by the caller. */
VD_MUST_USE vd_status vd_calls_decode(const uint8_t *coded, size_t size, vd_log_section *section,
                                      vd_err *err);

/* Packs five symbols per byte. The first symbol is the lowest digit in base 3. */
uint64_t vd_symbols_packed_size(uint64_t elements);
/* Returns false for a symbol other than 0, 1, 2. *marked counts the symbols other than 1. */
bool vd_symbols_pack(const uint8_t *symbol, uint64_t elements, uint8_t *packed, int64_t *marked);
/* The state of zlib, kept between sections because making it takes longer than compressing a small
 * section. {0} is an empty one. */
typedef struct {
    void *stream; /* z_stream; owned */
} vd_deflater;
void vd_deflater_free(vd_deflater *deflater);
VD_MUST_USE vd_status vd_symbols_deflate(vd_deflater *deflater, const uint8_t *packed,
                                         uint64_t size, vd_buf *out, vd_err *err);
VD_MUST_USE vd_status vd_symbols_decode(const uint8_t *coded, size_t size, vd_log_section *section,
                                        vd_err *err);

/* Appends a section: the coded part, with its header and checksums. */
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

/* Index entry of a section. */
typedef struct {
    uint64_t at; /* offset in the part; not stored, as it follows from the sizes */
    uint64_t size, coded_size, count, escapes;
    vd_hash hash;
} vd_log_entry;

/* The part of a file that errors name. */
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
vd_log_node *vd_log_copy_nodes(const vd_log_node *node, uint32_t count); /* NULL: out of memory */
/* Lists the blocks of all outputs in order. Returns NULL without memory. */
vd_log_node *vd_log_blocks_of(const vd_log_node *node, uint32_t count, uint32_t *sections);

void vd_log_put_header(vd_buf *out, const vd_log_run *run, int64_t step, uint32_t sections);
/* Checks a header against run, step and sections; each difference has its own error. */
VD_MUST_USE vd_status vd_log_check_header(const vd_log_place *place, const uint8_t *header,
                                          const vd_log_run *run, uint32_t sections, vd_err *err);

void vd_log_put_index(vd_buf *out, const vd_log_node *node, const vd_log_entry *entry,
                      uint32_t count);
/* Reads the index. The sections must fill the part up to `end`. */
VD_MUST_USE vd_status vd_log_get_index(const vd_log_place *place, const uint8_t *index, size_t size,
                                       uint64_t end, const vd_log_node *node, vd_log_entry *entry,
                                       uint32_t count, vd_err *err);
/* H("verde/index/1", header and index). */
VD_MUST_USE bool vd_log_digest(const uint8_t header[VD_LOG_HEADER_SIZE], const void *index,
                               size_t size, vd_hash *out);
/* Like vd_log_section_hash, with a context for many hashes. */
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

/* ---- the table of parts at a file's end ---- */

enum { VD_LOG_TABLE_TAIL = 4 + VD_HASH_SIZE + 8 };

/* Bytes of a table of `parts` parts: for each part a u64 that says where it ends, then the tail. */
uint64_t vd_log_table_size(uint32_t parts);
/* Appends the tail to a table that has the ends of all parts. */
VD_MUST_USE vd_status vd_log_end_table(vd_buf *table, vd_err *err);
/* Reads the number of a file's parts from the tail. Returns false if it is not such a tail. */
VD_MUST_USE bool vd_log_table_parts(const uint8_t tail[VD_LOG_TABLE_TAIL], uint32_t *parts);
/* Finds where part `index` begins and ends, in a file whose table begins at `at`. VD_ERR_USAGE: the
 * file is damaged. */
VD_MUST_USE vd_status vd_log_find_part(const vd_log_place *place, const uint8_t *table,
                                       uint32_t parts, uint32_t index, uint64_t at, uint64_t *begin,
                                       uint64_t *end, vd_err *err);

/* ---- a step's part, while being written ---- */

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
/* Writes a section. The caller provides `sha`. */
VD_MUST_USE vd_status vd_log_step_put(vd_log_step *step, vd_sha *sha, const vd_log_section *section,
                                      const vd_buf *coded, vd_err *err);
/* Ends the part after its last section, and frees all memory of it. */
VD_MUST_USE vd_status vd_log_step_end(vd_log_step *step, vd_log_done *done, vd_err *err);
void vd_log_step_drop(vd_log_step *step); /* may follow any of these, repeatedly; accepts {0} */

#endif
