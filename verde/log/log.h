/* Rounding logs. A run on free kernels writes its roundings to one file per checkpoint interval, so
 * that others can follow it on another device. verde/PROTOCOL.md section 11. */
#ifndef VD_LOG_H
#define VD_LOG_H

#include "repops/free.h"
#include "repops/ref.h"
#include "verde/commit/commit.h"

enum {
    VD_LOG_BLOCK = 1 << 20,          /* elements of a section */
    VD_LOG_SECTIONS_MAX = 1 << 20,   /* most sections of a step */
    VD_LOG_SECTION_BYTES = 16 << 20, /* most bytes of a section; honest ones are far below */
    VD_LOG_CANDIDATES = 8,           /* most elements named if several may differ */
    VD_THRESHOLDS_BYTES_MAX = 65536, /* most bytes of a file of thresholds */
};

typedef enum {
    VD_LOG_CALLS = 1, /* close calls (SPEC 14.3): RO_FREE_REPORT, RO_FREE_REPLAY */
    VD_LOG_SYMBOLS =
        2, /* a symbol for every element (SPEC 14.4): RO_FREE_SYMBOLS, RO_FREE_FOLLOW */
} vd_log_encoding;

/* A trainer writes the log; an auditor follows it. */
typedef enum { VD_TRAINER = 1, VD_AUDITOR = 2 } vd_role;
const char *vd_role_name(vd_role role); /* "trainer", "auditor"; "" for 0 */

/* The properties that all files of a run share. */
typedef struct {
    vd_hash program;    /* program hash */
    vd_hash run;        /* chosen by the trainer, unique among its runs */
    vd_hash thresholds; /* vd_thresholds_hash; zeros with VD_LOG_CALLS */
    vd_log_encoding encoding;
    int32_t bits;     /* bits that values are rounded to, 16..32 */
    int64_t interval; /* steps between two checkpoints; they share a file */
    int64_t steps;    /* steps of the run; its last file may have fewer than `interval` */
} vd_log_run;

/* A free node of a step's graph. The log of a step has vd_log_sections for each, in graph order. */
typedef struct {
    uint32_t node;
    uint64_t elements; /* of its output, f32 */
} vd_log_node;

/* ---- checksums, which tell which element of a block differs ---- */

/* Checksum of a block, mod 2^64: the sum of its words w_i, and the sum of i w_i. */
typedef struct {
    uint64_t s0, s1;
} vd_log_sum;

uint64_t vd_log_blocks(uint64_t elements);
/* Number of sections: one for each block, and one for an output without elements. */
uint64_t vd_log_sections(uint64_t elements);
/* A block of a node's output, described like a node. */
vd_log_node vd_log_block_of(uint32_t node, uint64_t elements, uint64_t block);
/* Writes vd_log_blocks(elements) sums, by all threads of `ctx`, or by this one if it is NULL. */
void vd_log_sums(ro_ctx *ctx, const float *output, uint64_t elements, vd_log_sum *sum);

/* ---- sections ---- */

/* The log's section for a node's output or one block of it; elements count from the block's start.
 * {0} is empty. Decoding frees the earlier contents. */
typedef struct {
    uint32_t node;
    uint64_t elements;
    int64_t count;       /* calls, or symbols other than 1 */
    int64_t escapes;     /* calls of more than one bit */
    ro_close_call *call; /* VD_LOG_CALLS: ascending; owned */
    uint8_t *symbol;     /* VD_LOG_SYMBOLS: one per element; owned */
    vd_log_sum *sum;     /* one per block; owned */
} vd_log_section;

void vd_log_section_free(vd_log_section *section);
/* Appends a section's bytes. VD_ERR_LOCAL: it violates SPEC 14.3 or 14.4, or memory is out. */
VD_MUST_USE vd_status vd_log_section_encode(const vd_log_section *section, vd_log_encoding encoding,
                                            vd_buf *out, vd_err *err);
/* Decodes all bytes of a section. `node` has the block's elements. VD_ERR_PEER: they are wrong. */
VD_MUST_USE vd_status vd_log_section_decode(const void *bytes, size_t size,
                                            vd_log_encoding encoding, const vd_log_node *node,
                                            vd_log_section *out, vd_err *err);
/* The call of an element; NULL: it has none. */
const ro_close_call *vd_log_section_find(const vd_log_section *section, int64_t element);

/* Where an output differs from the logged one. */
typedef struct {
    int64_t element; /* if `single`: the element that differs; else the first one of the block */
    bool single;     /* exactly one element of the block explains the sums */
    uint32_t word;   /* if `single`: the element's bits in the logged run */
    int64_t end;     /* end of the block */
    int64_t candidate[VD_LOG_CANDIDATES]; /* unless `single`: the block's first marked elements */
    int32_t candidate_count;
} vd_log_difference;

/* Returns true if the output has the sums of the log; otherwise *difference describes the first
 * block that differs. Differences that cancel in both sums are not seen here, but the next state's
 * hash shows them. */
VD_MUST_USE bool vd_log_compare(ro_ctx *ctx, const vd_log_section *section, const float *output,
                                vd_log_difference *difference);

/* ---- which roundings are possible, and which one the log names: PROTOCOL.md section 12.1 ---- */

/* The possible values of an element: neighbours on the grid of `bits` bits, numbered by their
 * places (V in SPEC 14.2, 14.5). */
typedef struct {
    int32_t bits;
    ro_bounded y;
    int64_t low, high;
} vd_possible;

/* The possible values of an element with reference y. */
vd_possible vd_possible_of(ro_bounded y, int32_t bits);
bool vd_possible_has(const vd_possible *possible, uint32_t word);
bool vd_possible_several(const vd_possible *possible); /* false: the log owes no decision */
uint32_t vd_possible_word(const vd_possible *possible, int64_t place);
int64_t vd_possible_place(const vd_possible *possible, uint32_t word);

/* Possible values that remain after reading the log: places low..high, none if low > high. */
typedef struct {
    bool missing; /* a record is required, but there is none, or it leaves several values */
    bool recorded;
    int64_t low, high;
} vd_told;

/* Reads what a section says of an element. For symbols, `threshold` is that of the node's
 * operator. */
vd_told vd_possible_told(const vd_possible *possible, const vd_log_section *section,
                         double threshold, int64_t element);

float vd_word_float(uint32_t word);
uint32_t vd_float_word(float x);

/* ---- commitment ---- */

/* A leaf of the tree over a step's log. With the size, an oversized section can be proved. */
typedef struct {
    uint64_t size;  /* of the section, bytes */
    vd_hash digest; /* H("verde/section/1", section) */
} vd_log_leaf;

VD_MUST_USE bool vd_log_section_hash(const void *bytes, size_t size, vd_hash *out);
/* Computes the log's root from the root of that tree, which is zeros if there are no sections. */
VD_MUST_USE bool vd_log_root(const vd_log_run *run, int64_t step, uint32_t sections,
                             const vd_hash *tree_root, vd_hash *out);
/* Verifies that a section is number `index` of `sections` under a root; VD_ERR_PEER: it is not.
 * Then its bytes may be decoded, and bind the signer of the root. */
VD_MUST_USE vd_status vd_log_proof_verify(const vd_log_run *run, int64_t step, uint32_t index,
                                          uint32_t sections, const vd_log_leaf *leaf,
                                          const vd_hash *tree_root, const vd_proof *proof,
                                          const vd_hash *root, vd_err *err);

/* ---- writing ---- */

/* A writer has a thread that encodes and writes. One other thread may call the functions below;
 * they wait while more than `memory_bytes` are queued, but a single section always passes. After an
 * error in the thread, every later call returns it, and nothing more is written. */
typedef struct vd_log_writer vd_log_writer;

/* Makes DIR/log; DIR exists. Files of steps that are logged again are replaced. */
VD_MUST_USE vd_status vd_log_writer_create(const vd_log_run *run, const char *dir,
                                           size_t memory_bytes, vd_log_writer **out, vd_err *err);
/* Begins a step; -1 is initialisation. The steps of a file come in order. A step that was begun and
 * not ended can be abandoned only by beginning its file anew, from its first step. */
VD_MUST_USE vd_status vd_log_begin(vd_log_writer *writer, int64_t step, const vd_log_node *node,
                                   uint32_t count, vd_err *err);
/* Log the next node, and copy its data before they return. `output` is the rounded tensor; `ctx` is
 * as for vd_log_sums. */
VD_MUST_USE vd_status vd_log_calls(vd_log_writer *writer, ro_ctx *ctx, uint32_t node,
                                   const ro_close_call *call, int64_t count, const float *output,
                                   vd_err *err);
VD_MUST_USE vd_status vd_log_symbols(vd_log_writer *writer, ro_ctx *ctx, uint32_t node,
                                     const uint8_t *symbol, const float *output, vd_err *err);
/* Ends the step, after its last node. The last step of a file completes the file, which appears,
 * durable, some time later. */
VD_MUST_USE vd_status vd_log_end(vd_log_writer *writer, vd_err *err);

typedef struct {
    int64_t step;
    vd_hash root;
    uint64_t bytes;           /* of the step in the file */
    uint64_t coded_bytes;     /* of calls or symbols among these */
    uint64_t elements, count; /* of all sections; `count`: calls, or symbols other than 1 */
    uint64_t escapes;
} vd_log_done;

/* Waits until the whole file of an ended step is durable. May be called once per step. */
VD_MUST_USE vd_status vd_log_wait(vd_log_writer *writer, int64_t step, vd_log_done *done,
                                  vd_err *err);
/* Finishes complete files, deletes an incomplete one, and frees the writer. NULL: VD_OK. */
VD_MUST_USE vd_status vd_log_writer_close(vd_log_writer *writer, vd_err *err);
/* The most bytes that were queued at once. */
size_t vd_log_writer_peak(vd_log_writer *writer);

/* ---- reading ---- */

/* The steps of a file: the first one, and their number. */
typedef struct {
    int64_t first;
    uint32_t count;
} vd_log_span;
vd_log_span vd_log_span_of(const vd_log_run *run, int64_t step);
/* Writes DIR/log/step-00000012.vlog, by the file's first step; for step -1 DIR/log/init.vlog. */
VD_MUST_USE vd_status vd_log_path(const char *dir, const vd_log_run *run, int64_t step, char *path,
                                  size_t size, vd_err *err);

/* A step's part of a file; sections are read one by one. Errors name file, step and node.
 * VD_ERR_USAGE: a damaged file, or another run's. VD_ERR_PEER: the committed file breaks the
 * rules. */
typedef struct vd_log_file vd_log_file;

/* Opens a step's part. Refuses another run, step or list of nodes (borrowed; it must outlive the
 * file) and, if `root` is given, a part with another root. */
VD_MUST_USE vd_status vd_log_open(const char *dir, const vd_log_run *run, int64_t step,
                                  const vd_log_node *node, uint32_t count, const vd_hash *root,
                                  vd_log_file **out, vd_err *err);
/* Reads all sections of a node as one section of its whole output. VD_ERR_LOCAL: there is no such
 * free node. */
VD_MUST_USE vd_status vd_log_read(vd_log_file *file, uint32_t node, vd_log_section *out,
                                  vd_err *err);
/* Appends the stored bytes of section number `section`, from 0, for a proof. They are hashed and
 * compared, but not decoded. VD_ERR_PEER: the section is too large. */
VD_MUST_USE vd_status vd_log_read_bytes(vd_log_file *file, uint64_t section, vd_buf *out,
                                        vd_err *err);
VD_MUST_USE vd_status vd_log_prove(vd_log_file *file, uint64_t section, vd_log_leaf *leaf,
                                   vd_hash *tree_root, vd_proof *proof, vd_err *err);
/* Decodes all sections in order to check them. */
VD_MUST_USE vd_status vd_log_check(vd_log_file *file, vd_err *err);
void vd_log_file_done(const vd_log_file *file, vd_log_done *out);
void vd_log_close(vd_log_file *file);

/* Copies the file that contains a step to the log of another directory, which is created. */
VD_MUST_USE vd_status vd_log_copy(const char *from, const char *to, const vd_log_run *run,
                                  int64_t step, vd_err *err);

/* ---- thresholds of VD_LOG_SYMBOLS ---- */

/* ro_rounding.threshold of each operator. 0: none was found; all inexact roundings are logged. */
typedef struct {
    int32_t bits; /* the bits that the thresholds are for */
    double of[RO_OP_END];
} vd_thresholds;

/* Prints thresholds in their only spelling. VD_ERR_LOCAL: a value is not in 0..1, or is of no
 * operator. */
VD_MUST_USE vd_status vd_thresholds_print(const vd_thresholds *thresholds, vd_buf *out,
                                          vd_err *err);
/* H("verde/thresholds/1", text). */
VD_MUST_USE vd_status vd_thresholds_hash(const vd_thresholds *thresholds, vd_hash *out,
                                         vd_err *err);
VD_MUST_USE vd_status vd_thresholds_save(const char *path, const vd_thresholds *thresholds,
                                         vd_err *err);
/* Loads a table from a file. VD_ERR_USAGE names path and line. */
VD_MUST_USE vd_status vd_thresholds_load(const char *path, vd_thresholds *out, vd_err *err);

#endif
