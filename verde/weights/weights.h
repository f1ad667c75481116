/* Models that were trained elsewhere: folders of Hugging Face, with config.json and safetensors
 * files (https://github.com/huggingface/safetensors#format). Their tensors are mapped, never
 * copied; nothing in them is ever executed.
 *
 * VD_ERR_USAGE: a file is not what it must be; VD_ERR_PEER: files and manifest do not fit together.
 * The sentence names the file, the tensor and what was expected. */
#ifndef VD_WEIGHTS_H
#define VD_WEIGHTS_H

#include "verde/commit/commit.h"

#define VD_WEIGHTS_SINGLE "model.safetensors"
#define VD_WEIGHTS_INDEX  "model.safetensors.index.json"
#define VD_WEIGHTS_CONFIG "config.json"
/* The files of low-rank adapters, as PEFT names them. */
#define VD_WEIGHTS_ADAPTER           "adapter_model.safetensors"
#define VD_WEIGHTS_ADAPTER_CONFIG    "adapter_config.json"
#define VD_WEIGHTS_GENERATION_CONFIG "generation_config.json"

enum {
    VD_WEIGHTS_HEADER_MAX = 100 * 1000 * 1000, /* bytes of a file's header, as the format has it */
    VD_WEIGHTS_INDEX_MAX = 32 << 20,           /* bytes of model.safetensors.index.json */
    VD_WEIGHTS_CONFIG_MAX = 1 << 20,           /* bytes of config.json */
    VD_WEIGHTS_MAX = 1 << 17,                  /* tensors of a folder: as a program's data */
    VD_WEIGHTS_FILES_MAX = 1024,
    VD_WEIGHT_NAME_SIZE = 256, /* with the final NUL */
    VD_MANIFEST_BYTES_MAX = 64 << 20,
};

/* ---- what a tensor is ---- */

/* Element types, in the order by which safetensors sorts the tensors of a file (downwards). */
typedef enum {
    VD_WEIGHT_BOOL,
    VD_WEIGHT_U8,
    VD_WEIGHT_I8,
    VD_WEIGHT_F8_E5M2,
    VD_WEIGHT_F8_E4M3,
    VD_WEIGHT_F8_E4M3FNUZ,
    VD_WEIGHT_F8_E5M2FNUZ,
    VD_WEIGHT_I16,
    VD_WEIGHT_U16,
    VD_WEIGHT_F16,
    VD_WEIGHT_BF16,
    VD_WEIGHT_I32,
    VD_WEIGHT_U32,
    VD_WEIGHT_F32,
    VD_WEIGHT_C64,
    VD_WEIGHT_F64,
    VD_WEIGHT_I64,
    VD_WEIGHT_U64,
    VD_WEIGHT_TYPES
} vd_weight_type;

const char *vd_weight_type_name(vd_weight_type type); /* "BF16", as in a file */
size_t vd_weight_type_size(vd_weight_type type);      /* bytes of an element */
bool vd_weight_type_of(const char *name, vd_weight_type *out);

/* Name, type and shape, as a file has them. */
typedef struct {
    char name[VD_WEIGHT_NAME_SIZE]; /* printable ASCII without space, quote and backslash */
    vd_weight_type type;
    int32_t ndim; /* 0..RO_MAX_DIMS; 0: one element */
    int64_t dim[RO_MAX_DIMS];
} vd_weight_form;

/* Bytes; 0: it has no elements, or more than RO_MAX_NUMEL. */
uint64_t vd_weight_bytes(const vd_weight_form *form);
/* What is committed to (PROTOCOL.md section 2.3): the tensor itself, with one dimension of 1 for
 * none; its bytes, as u8, if repops has no such type. */
ro_shape vd_weight_shape(const vd_weight_form *form);
/* The form of a tensor of repops. false: it has no valid shape, or the name is none for files. */
bool vd_weight_form_of(const char *name, const ro_shape *shape, vd_weight_form *out);
bool vd_weight_form_equal(const vd_weight_form *a, const vd_weight_form *b);
/* Writes a form as people read it, "BF16 [768,3072]". */
enum { VD_WEIGHT_FORM_TEXT = 128 };
void vd_weight_form_text(const vd_weight_form *form, char text[VD_WEIGHT_FORM_TEXT]);

/* ---- a folder ---- */

typedef struct {
    vd_weight_form form;
    ro_shape shape;    /* vd_weight_shape */
    const void *data;  /* in this machine's order; aligned to an element, not more */
    uint64_t at, size; /* where its bytes lie in the file */
    uint32_t file;
} vd_weight;

typedef struct {
    const char *path; /* of `map` */
    vd_map *map;      /* owned */
} vd_weight_file;

typedef struct {
    vd_weight *tensor; /* by name, ascending as strcmp; owned */
    uint32_t count;
    vd_weight_file *file; /* owned */
    uint32_t file_count;
    vd_buf config; /* bytes of config.json */
    bool has_config;
} vd_weights;

/* Opens a folder: model.safetensors, the shards that model.safetensors.index.json names, or
 * adapter_model.safetensors, and
 * config.json if it is there; or one safetensors file. Headers are read and checked whole; the
 * tensors are mapped (vd_map_file). */
VD_MUST_USE vd_status vd_weights_open(const char *path, vd_weights *out, vd_err *err);
/* A file of tensors one after the other and nothing else, such as a state's, in the order given.
 * VD_ERR_PEER: it has another size. */
VD_MUST_USE vd_status vd_weights_open_raw(const char *path, const vd_weight_form *form,
                                          uint32_t count, vd_weights *out, vd_err *err);
void vd_weights_close(vd_weights *weights);
/* NULL: there is none. */
const vd_weight *vd_weights_find(const vd_weights *weights, const char *name);

/* For tests: the tensors of one file's bytes, of which only the header is looked at. `name` stands
 * for the file in errors. Appends to `out`. */
VD_MUST_USE vd_status vd_weights_header(const void *bytes, uint64_t size, const char *name,
                                        vd_weights *out, vd_err *err);

/* ---- commitments ---- */

typedef struct {
    ro_ctx *ro; /* whose threads hash */
    /* After each piece; may be NULL. Bytes of all tensors. */
    void (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
} vd_weights_hashing;

/* Each tensor's commitment; room for weights->count. Files are read, never held in memory. */
VD_MUST_USE vd_status vd_weights_hash(const vd_weights *weights, const vd_weights_hashing *how,
                                      vd_hash *commitment, vd_err *err);

/* ---- manifests ---- */

typedef struct {
    vd_weight_form form;
    vd_hash commitment;
} vd_manifest_tensor;

/* What a job pins. Whoever has no files knows shapes, commitments and config.json from it. */
typedef struct {
    vd_manifest_tensor *tensor; /* by name, ascending as strcmp; owned */
    uint32_t count;
    vd_buf config;
    bool has_config;
} vd_manifest;

void vd_manifest_free(vd_manifest *manifest);
/* Hashes every byte of the folder. */
VD_MUST_USE vd_status vd_manifest_make(const vd_weights *weights, const vd_weights_hashing *how,
                                       vd_manifest *out, vd_err *err);
/* The text, in its one spelling. Its SHA-256 is that of a file that holds it and nothing else. */
void vd_manifest_put(const vd_manifest *manifest, vd_buf *out);
VD_MUST_USE vd_status vd_manifest_hash(const vd_manifest *manifest, vd_hash *out, vd_err *err);
/* VD_ERR_USAGE: the text is no manifest, or not in its one spelling; `name` stands before the line.
 */
VD_MUST_USE vd_status vd_manifest_parse(const void *text, size_t size, const char *name,
                                        vd_manifest *out, vd_err *err);
VD_MUST_USE vd_status vd_manifest_read(const char *path, vd_manifest *out, vd_err *err);
/* Compares names, types, shapes and config.json; then, unless `how` is NULL, hashes every byte and
 * compares commitments. VD_ERR_PEER: what is another, or is missing. */
VD_MUST_USE vd_status vd_manifest_compare(const vd_manifest *manifest, const vd_weights *weights,
                                          const vd_weights_hashing *how, vd_err *err);

/* ---- writing ---- */

/* How a file's tensor lies, compared with the leaf of a state that holds the same numbers. */
typedef enum {
    VD_LAYOUT_SAME,
    VD_LAYOUT_CONVOLUTION, /* leaf [height, width, in, out], file [out, in, height, width] */
    VD_LAYOUTS
} vd_layout;

/* The shape of the file's tensor of a leaf. false: the layout is of another number of axes. */
bool vd_layout_shape(vd_layout layout, const ro_shape *leaf, ro_shape *tensor);
/* Copies elements from a leaf to a file's tensor, and back. `leaf` is the leaf's shape. */
void vd_layout_copy(vd_layout layout, const ro_shape *leaf, const void *from, void *to);
void vd_layout_copy_back(vd_layout layout, const ro_shape *leaf, const void *from, void *to);

typedef struct {
    vd_weight_form form;
    ro_shape leaf;    /* of `data` */
    vd_layout layout; /* gives form's shape from leaf's */
    bool narrow;      /* `data` is f32, form.type BF16: rounded as vd_weight_bf16 does */
    const void
        *data; /* in this machine's order; where vd_weight_shape(form) is u8, in the file's */
} vd_weight_out;
/* A member of a file's `__metadata__`. */
typedef struct {
    const char *name, *value;
} vd_weight_note;

typedef struct {
    const vd_weight_note *note;
    uint32_t note_count;
    bool adapter;         /* writes adapter_model.safetensors, never shards */
    uint64_t shard_bytes; /* of tensors in a file at most, unless one alone has more; 0: no limit */
    void (*progress)(void *user, uint64_t done, uint64_t total); /* may be NULL */
    void *user;
} vd_weights_writing;

/* Where the tensors go: for who writes a file in pieces. */
enum { VD_WEIGHTS_FILE_NAME = 64 };
typedef struct {
    char name[VD_WEIGHTS_FILE_NAME];
    vd_buf header;         /* the file's first bytes; owned */
    uint64_t size;         /* of the whole file */
    uint32_t first, count; /* of the sorted tensors */
} vd_weights_file;
typedef struct {
    vd_weights_file *file;
    uint32_t file_count;
    uint64_t *at;   /* of each of the sorted tensors, in its file; owned */
    uint64_t total; /* bytes of all tensors */
    vd_buf index;   /* text of model.safetensors.index.json; empty: none is needed */
} vd_weights_plan;
/* Sorts the tensors as safetensors does, in place; their `data` is not looked at. `dir` is where
 * the files will be. VD_ERR_USAGE: a name that is none or stands twice, or a form that does not fit
 * its leaf. */
VD_MUST_USE vd_status vd_weights_plan_make(const char *dir, vd_weight_out *tensor, uint32_t count,
                                           const vd_weights_writing *how, vd_weights_plan *out,
                                           vd_err *err);
/* Writes the index, if there must be one. Without it no shard is found, so it comes last. */
VD_MUST_USE vd_status vd_weights_plan_index(const vd_weights_plan *plan, const char *dir,
                                            vd_err *err);
void vd_weights_plan_free(vd_weights_plan *plan);

/* Writes model.safetensors, or shards and model.safetensors.index.json, into a directory that is
 * there. Tensors are sorted as safetensors does, in place; the index, without which no shard is
 * found, is written last. VD_ERR_USAGE: a name that is none or stands twice, or a form that does
 * not fit its leaf. */
VD_MUST_USE vd_status vd_weights_write(const char *dir, vd_weight_out *tensor, uint32_t count,
                                       const vd_weights_writing *how, vd_err *err);
/* Takes away model.safetensors, model.safetensors.index.json and adapter_model.safetensors, so that
 * another model can be written. With `ask`: VD_ERR_USAGE if one of them is there, and nothing is
 * taken away. */
VD_MUST_USE vd_status vd_weights_clear(const char *dir, bool ask, vd_err *err);
/* Nearest, ties to even; NaN becomes 0x7fc0. */
uint16_t vd_weight_bf16(uint32_t f32_bits);

#endif
