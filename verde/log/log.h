/* Rounding logs: what a run on free kernels rounded, in one file from checkpoint to checkpoint, for
 * whoever follows it on another device. verde/PROTOCOL.md section 11. */
#ifndef VD_LOG_H
#define VD_LOG_H

#include "repops/free.h"
#include "repops/ref.h"
#include "verde/commit/commit.h"

enum {
    VD_LOG_BLOCK = 1 << 20,          /* elements of a section */
    VD_LOG_SECTIONS_MAX = 1 << 20,   /* of a step */
    VD_LOG_SECTION_BYTES = 16 << 20, /* at most; no honest one comes near */
    VD_LOG_CANDIDATES = 8,           /* elements named when several differ */
    VD_THRESHOLDS_BYTES_MAX = 65536, /* of a file of thresholds */
};

typedef enum {
    VD_LOG_CALLS = 1, /* close calls (SPEC 14.3): RO_FREE_REPORT, RO_FREE_REPLAY */
    VD_LOG_SYMBOLS =
        2, /* a symbol for every element (SPEC 14.4): RO_FREE_SYMBOLS, RO_FREE_FOLLOW */
} vd_log_encoding;

/* What all files of a run have in common. */
typedef struct {
    vd_hash program;    /* program hash */
    vd_hash run;        /* of the trainer's choosing: no two of its runs have the same */
    vd_hash thresholds; /* vd_thresholds_hash; zeros with VD_LOG_CALLS */
    vd_log_encoding encoding;
    int32_t bits;     /* rounded to, 16..32 */
    int64_t interval; /* steps between two checkpoints, which share a file */
    int64_t steps;    /* of the run: its last file may have fewer */
} vd_log_run;

/* A free node of a step's graph. The log of a step has vd_log_sections for each, in this order. */
typedef struct {
    uint32_t node;
    uint64_t elements; /* of its output, f32 */
} vd_log_node;

/* ---- checksums: which element of a block differs ---- */

/* Over the words of a block's elements, in their place i: mod 2^64, sum of w, sum of i w. */
typedef struct {
    uint64_t s0, s1;
} vd_log_sum;

uint64_t vd_log_blocks(uint64_t elements);
/* One for each block, and one for an output without elements. */
uint64_t vd_log_sections(uint64_t elements);
/* A block of a node's output, as if it were a node. */
vd_log_node vd_log_block_of(uint32_t node, uint64_t elements, uint64_t block);
/* Writes vd_log_blocks(elements) sums. At the speed of memory. `ctx`: whose threads share the work;
 * NULL: this one does it. */
void vd_log_sums(ro_ctx *ctx, const float *output, uint64_t elements, vd_log_sum *sum);

/* ---- sections ---- */

/* What the log has of a node's output, or of one block of it, with elements counted from there on.
 * {0} is an empty one; decoding frees what was there. */
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
/* Appends a section's bytes. VD_ERR_LOCAL: not what SPEC 14.3 or 14.4 says, or out of memory. */
VD_MUST_USE vd_status vd_log_section_encode(const vd_log_section *section, vd_log_encoding encoding,
                                            vd_buf *out, vd_err *err);
/* The section from its bytes, all of them, `node` having the elements of the block; what is wrong
 * with them is VD_ERR_PEER. */
VD_MUST_USE vd_status vd_log_section_decode(const void *bytes, size_t size,
                                            vd_log_encoding encoding, const vd_log_node *node,
                                            vd_log_section *out, vd_err *err);
/* The call of an element, NULL: it has none. */
const ro_close_call *vd_log_section_find(const vd_log_section *section, int64_t element);

/* Where an output is not the one that was logged. */
typedef struct {
    int64_t element; /* the one that differs, if `single`; else the first of the block */
    bool single;     /* exactly one element of the block explains the sums, */
    uint32_t word;   /* whose bits then are these in the log's run */
    int64_t end;     /* end of the block */
    int64_t candidate[VD_LOG_CANDIDATES]; /* else: first elements of the block that were marked */
    int32_t candidate_count;
} vd_log_difference;

/* True if the output has the sums of the log; else *difference is of the first block that has not.
 * (Elements whose differences cancel in both sums are not seen here; the next state's hash is.) */
VD_MUST_USE bool vd_log_compare(ro_ctx *ctx, const vd_log_section *section, const float *output,
                                vd_log_difference *difference);

/* ---- which roundings are possible, and which one the log names: PROTOCOL.md section 12.1 ---- */

/* V: neighbours on the grid of `bits` bits, by their places (SPEC 14.2, 14.5). */
typedef struct {
    int32_t bits;
    ro_bounded y;
    int64_t low, high;
} vd_possible;

/* Of an element whose reference is y. */
vd_possible vd_possible_of(ro_bounded y, int32_t bits);
bool vd_possible_has(const vd_possible *possible, uint32_t word);
bool vd_possible_several(const vd_possible *possible); /* false where nothing is owed */
uint32_t vd_possible_word(const vd_possible *possible, int64_t place);
int64_t vd_possible_place(const vd_possible *possible, uint32_t word);

/* Of several: low..high are those that the log leaves, none if low > high. */
typedef struct {
    bool missing; /* a record is owed, and there is none, or one that names several */
    bool recorded;
    int64_t low, high;
} vd_told;

/* What a section says of an element; `threshold` is of its operator, with symbols. */
vd_told vd_possible_told(const vd_possible *possible, const vd_log_section *section,
                         double threshold, int64_t element);

/* ---- commitment ---- */

/* A leaf in the tree of a step's log. The size, so that one that is too large can be shown to be.
 */
typedef struct {
    uint64_t size;  /* of the section, bytes */
    vd_hash digest; /* H("verde/section/1", section) */
} vd_log_leaf;

VD_MUST_USE bool vd_log_section_hash(const void *bytes, size_t size, vd_hash *out);
/* The log's root from the root of that tree, which is zeros if there are no sections. */
VD_MUST_USE bool vd_log_root(const vd_log_run *run, int64_t step, uint32_t sections,
                             const vd_hash *tree_root, vd_hash *out);
/* A section against a root: number `index` of `sections`. VD_ERR_PEER: it does not lead there. Its
 * bytes may be decoded then, and bind whoever signed the root. */
VD_MUST_USE vd_status vd_log_proof_verify(const vd_log_run *run, int64_t step, uint32_t index,
                                          uint32_t sections, const vd_log_leaf *leaf,
                                          const vd_hash *tree_root, const vd_proof *proof,
                                          const vd_hash *root, vd_err *err);

/* ---- writing ---- */

/* A thread of its own encodes and writes; one other thread may call the functions below. They wait
 * while more than `memory_bytes` are queued (one section is always let through). What went wrong in
 * the thread, the next call says, and so does every later one; nothing more is written then. */
typedef struct vd_log_writer vd_log_writer;

/* Makes DIR/log; DIR exists. Files that are logged again are replaced. */
VD_MUST_USE vd_status vd_log_writer_create(const vd_log_run *run, const char *dir,
                                           size_t memory_bytes, vd_log_writer **out, vd_err *err);
/* Step -1: initialisation. Steps of a file come one after the other, from its first one on; only
 * there is a step that was not ended given up for another. */
VD_MUST_USE vd_status vd_log_begin(vd_log_writer *writer, int64_t step, const vd_log_node *node,
                                   uint32_t count, vd_err *err);
/* The next node's: what it needs is copied before this returns. `output` is the rounded tensor,
 * `ctx` as for vd_log_sums. */
VD_MUST_USE vd_status vd_log_calls(vd_log_writer *writer, ro_ctx *ctx, uint32_t node,
                                   const ro_close_call *call, int64_t count, const float *output,
                                   vd_err *err);
VD_MUST_USE vd_status vd_log_symbols(vd_log_writer *writer, ro_ctx *ctx, uint32_t node,
                                     const uint8_t *symbol, const float *output, vd_err *err);
/* After the last node. With a file's last step the file is whole: it appears, durable, some time
 * later. */
VD_MUST_USE vd_status vd_log_end(vd_log_writer *writer, vd_err *err);

typedef struct {
    int64_t step;
    vd_hash root;
    uint64_t bytes;           /* in the file */
    uint64_t coded_bytes;     /* of them: calls or symbols alone */
    uint64_t elements, count; /* of all sections; calls, or symbols other than 1 */
    uint64_t escapes;
} vd_log_done;

/* Waits until the whole file of an ended step is durable. Each step is told once. */
VD_MUST_USE vd_status vd_log_wait(vd_log_writer *writer, int64_t step, vd_log_done *done,
                                  vd_err *err);
/* Finishes the files that are whole, drops one that is not, and destroys the writer. NULL: VD_OK.
 */
VD_MUST_USE vd_status vd_log_writer_close(vd_log_writer *writer, vd_err *err);
/* The most bytes that were queued at once. */
size_t vd_log_writer_peak(vd_log_writer *writer);

/* ---- reading ---- */

/* The steps that are in one file with `step`, all of them: the first one, and how many. */
typedef struct {
    int64_t first;
    uint32_t count;
} vd_log_span;
vd_log_span vd_log_span_of(const vd_log_run *run, int64_t step);
/* DIR/log/step-00000012.vlog, of the first step in it; step -1: DIR/log/init.vlog. */
VD_MUST_USE vd_status vd_log_path(const char *dir, const vd_log_run *run, int64_t step, char *path,
                                  size_t size, vd_err *err);

/* A step's part of a file. Sections are read one at a time. Errors name file, step and node.
 * VD_ERR_USAGE: the file is damaged, or another's; VD_ERR_PEER: it is what was committed to, and
 * against the rules. */
typedef struct vd_log_file vd_log_file;

/* Refuses what is not of this run, step and list of nodes (borrowed, outlives the file), and, with
 * `root`, what was not committed to by it. */
VD_MUST_USE vd_status vd_log_open(const char *dir, const vd_log_run *run, int64_t step,
                                  const vd_log_node *node, uint32_t count, const vd_hash *root,
                                  vd_log_file **out, vd_err *err);
/* All sections of a node, as one of its whole output. VD_ERR_LOCAL: no such free node. */
VD_MUST_USE vd_status vd_log_read(vd_log_file *file, uint32_t node, vd_log_section *out,
                                  vd_err *err);
/* Appends one section, counted from 0, as it stands, for a proof; checked against the file's tree,
 * not decoded. VD_ERR_PEER: it is too large. */
VD_MUST_USE vd_status vd_log_read_bytes(vd_log_file *file, uint64_t section, vd_buf *out,
                                        vd_err *err);
VD_MUST_USE vd_status vd_log_prove(vd_log_file *file, uint64_t section, vd_log_leaf *leaf,
                                   vd_hash *tree_root, vd_proof *proof, vd_err *err);
/* Every section, one after the other: decoded and dropped. */
VD_MUST_USE vd_status vd_log_check(vd_log_file *file, vd_err *err);
void vd_log_file_done(const vd_log_file *file, vd_log_done *out);
void vd_log_close(vd_log_file *file);

/* The file that a step is in, byte for byte, to the log of another directory, which is made. */
VD_MUST_USE vd_status vd_log_copy(const char *from, const char *to, const vd_log_run *run,
                                  int64_t step, vd_err *err);

/* ---- thresholds of VD_LOG_SYMBOLS ---- */

/* ro_rounding.threshold of each operator, by number. 0, where none was found: every inexact
 * rounding is marked. */
typedef struct {
    int32_t bits; /* that they are for */
    double of[RO_OP_END];
} vd_thresholds;

/* Text with one spelling for each table, and H("verde/thresholds/1", text). VD_ERR_LOCAL: a value
 * that is not 0 <= t <= 1, or of no operator. */
VD_MUST_USE vd_status vd_thresholds_print(const vd_thresholds *thresholds, vd_buf *out,
                                          vd_err *err);
VD_MUST_USE vd_status vd_thresholds_hash(const vd_thresholds *thresholds, vd_hash *out,
                                         vd_err *err);
VD_MUST_USE vd_status vd_thresholds_save(const char *path, const vd_thresholds *thresholds,
                                         vd_err *err);
/* VD_ERR_USAGE names path and line. */
VD_MUST_USE vd_status vd_thresholds_load(const char *path, vd_thresholds *out, vd_err *err);

#endif
