/* Models trained elsewhere: folders of Hugging Face, with config.json and safetensors files
 * (https://github.com/huggingface/safetensors#format). Their tensors are mapped, never copied;
 * nothing in them is ever executed.
 *
 * VD_ERR_USAGE: a file is not what it must be; VD_ERR_PEER: files and manifest do not match. The
 * message names the file, the tensor and what was expected. */
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
    VD_WEIGHTS_HEADER_MAX = 100 * 1000 * 1000, /* bytes of a header; the format's own limit */
    VD_WEIGHTS_INDEX_MAX = 32 << 20,           /* bytes of model.safetensors.index.json */
    VD_WEIGHTS_CONFIG_MAX = 1 << 20,           /* bytes of config.json */
    VD_WEIGHTS_MAX = 1 << 17, /* tensors of a folder; the limit of a program's data */
    VD_WEIGHTS_FILES_MAX = 1024,
    VD_WEIGHT_NAME_SIZE = 256, /* with the final NUL */
    VD_MANIFEST_BYTES_MAX = 64 << 20,
};

/* ---- tensors in files ---- */

/* Element types. Safetensors sorts the tensors of a file by type, the last of these first. */
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

/* Name, type and shape of a tensor in a file. */
typedef struct {
    char name[VD_WEIGHT_NAME_SIZE]; /* printable ASCII without space, quote and backslash */
    vd_weight_type type;
    int32_t ndim; /* 0..RO_MAX_DIMS; 0: one element */
    int64_t dim[RO_MAX_DIMS];
} vd_weight_form;

/* Size in bytes; 0 if there are no elements, or more than RO_MAX_NUMEL. */
uint64_t vd_weight_bytes(const vd_weight_form *form);
/* The shape whose commitment is taken (PROTOCOL.md section 2.3). A tensor without dimensions gets
 * one of length 1; a type that repops does not have is committed to as bytes, u8. */
ro_shape vd_weight_shape(const vd_weight_form *form);
/* Makes the form of a repops tensor. Returns false if shape or name are not valid for files. */
bool vd_weight_form_of(const char *name, const ro_shape *shape, vd_weight_form *out);
bool vd_weight_form_equal(const vd_weight_form *a, const vd_weight_form *b);
/* Writes a form for people, "BF16 [768,3072]". */
enum { VD_WEIGHT_FORM_TEXT = 128 };
void vd_weight_form_text(const vd_weight_form *form, char text[VD_WEIGHT_FORM_TEXT]);

/* ---- a folder ---- */

typedef struct {
    vd_weight_form form;
    ro_shape shape;    /* as vd_weight_shape gives it */
    const void *data;  /* in this machine's byte order; aligned to an element only */
    uint64_t at, size; /* offset and size of its bytes in the file */
    uint32_t file;
} vd_weight;

typedef struct {
    const char *path; /* of `map` */
    vd_map *map;      /* owned */
} vd_weight_file;

typedef struct {
    vd_weight *tensor; /* sorted by name, as strcmp does; owned */
    uint32_t count;
    vd_weight_file *file; /* owned */
    uint32_t file_count;
    vd_buf config; /* bytes of config.json */
    bool has_config;
} vd_weights;

/* Opens a folder with model.safetensors, the shards that model.safetensors.index.json names, or
 * adapter_model.safetensors, and config.json if it exists; or opens one safetensors file. All
 * headers are read and checked; the tensors are mapped (vd_map_file). */
VD_MUST_USE vd_status vd_weights_open(const char *path, vd_weights *out, vd_err *err);
/* Opens a file that consists of tensors in the given order and nothing else, such as a state's.
 * VD_ERR_PEER: the file's size differs. */
VD_MUST_USE vd_status vd_weights_open_raw(const char *path, const vd_weight_form *form,
                                          uint32_t count, vd_weights *out, vd_err *err);
void vd_weights_close(vd_weights *weights);
/* Returns NULL if there is no such tensor. */
const vd_weight *vd_weights_find(const vd_weights *weights, const char *name);

/* For tests: reads one file's header, and appends its tensors to `out`. `name` is for errors. */
VD_MUST_USE vd_status vd_weights_header(const void *bytes, uint64_t size, const char *name,
                                        vd_weights *out, vd_err *err);

/* ---- commitments ---- */

typedef struct {
    ro_ctx *ro; /* its threads hash */
    /* Called after each piece, with bytes of all tensors; may be NULL. */
    void (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
} vd_weights_hashing;

/* Hashes all tensors, reading files in pieces. `commitment` has room for weights->count. */
VD_MUST_USE vd_status vd_weights_hash(const vd_weights *weights, const vd_weights_hashing *how,
                                      vd_hash *commitment, vd_err *err);

/* ---- manifests ---- */

typedef struct {
    vd_weight_form form;
    vd_hash commitment;
} vd_manifest_tensor;

/* A manifest, which a job pins. It tells shapes, commitments and config.json without the files. */
typedef struct {
    vd_manifest_tensor *tensor; /* sorted by name, as strcmp does; owned */
    uint32_t count;
    vd_buf config;
    bool has_config;
} vd_manifest;

void vd_manifest_free(vd_manifest *manifest);
/* Makes a folder's manifest; hashes every byte of the folder. */
VD_MUST_USE vd_status vd_manifest_make(const vd_weights *weights, const vd_weights_hashing *how,
                                       vd_manifest *out, vd_err *err);
/* Writes the manifest's only spelling; vd_manifest_hash gives the SHA-256 of this text. */
void vd_manifest_put(const vd_manifest *manifest, vd_buf *out);
VD_MUST_USE vd_status vd_manifest_hash(const vd_manifest *manifest, vd_hash *out, vd_err *err);
/* Parses a manifest. VD_ERR_USAGE: it is none, or is spelled another way; errors begin with
 * `name`. */
VD_MUST_USE vd_status vd_manifest_parse(const void *text, size_t size, const char *name,
                                        vd_manifest *out, vd_err *err);
VD_MUST_USE vd_status vd_manifest_read(const char *path, vd_manifest *out, vd_err *err);
/* Compares names, types, shapes and config.json; then, unless `how` is NULL, hashes all files and
 * compares commitments. VD_ERR_PEER names what differs or is missing. */
VD_MUST_USE vd_status vd_manifest_compare(const vd_manifest *manifest, const vd_weights *weights,
                                          const vd_weights_hashing *how, vd_err *err);

/* ---- writing ---- */

/* Order of axes in a file's tensor, compared with the state leaf that holds the same numbers. */
typedef enum {
    VD_LAYOUT_SAME,
    VD_LAYOUT_CONVOLUTION, /* leaf [height, width, in, out], file [out, in, height, width] */
    VD_LAYOUTS
} vd_layout;

/* Computes the shape of a leaf's tensor in a file. False: the layout needs other dimensions. */
bool vd_layout_shape(vd_layout layout, const ro_shape *leaf, ro_shape *tensor);
/* Copy elements from a leaf to a file's tensor, and back. `leaf` is the leaf's shape. */
void vd_layout_copy(vd_layout layout, const ro_shape *leaf, const void *from, void *to);
void vd_layout_copy_back(vd_layout layout, const ro_shape *leaf, const void *from, void *to);

typedef struct {
    vd_weight_form form;
    ro_shape leaf;    /* of `data` */
    vd_layout layout; /* converts the leaf's shape to form's */
    bool narrow;      /* `data` is f32 and is rounded to form.type, BF16, by vd_weight_bf16 */
    const void
        *data; /* in this machine's byte order; in the file's if vd_weight_shape(form) is u8 */
} vd_weight_out;
/* A member of a file's `__metadata__`. */
typedef struct {
    const char *name, *value;
} vd_weight_note;

typedef struct {
    const vd_weight_note *note;
    uint32_t note_count;
    bool adapter;         /* writes adapter_model.safetensors, never shards */
    uint64_t shard_bytes; /* limit on the tensors' bytes of one file; 0: no limit */
    void (*progress)(void *user, uint64_t done, uint64_t total); /* may be NULL */
    void *user;
} vd_weights_writing;

/* The plan of all files, for callers that write a file in pieces. */
enum { VD_WEIGHTS_FILE_NAME = 64 };
typedef struct {
    char name[VD_WEIGHTS_FILE_NAME];
    vd_buf header;         /* first bytes of the file; owned */
    uint64_t size;         /* of the whole file */
    uint32_t first, count; /* range of the sorted tensors */
} vd_weights_file;
typedef struct {
    vd_weights_file *file;
    uint32_t file_count;
    uint64_t *at;   /* offset of each sorted tensor in its file; owned */
    uint64_t total; /* bytes of all tensors */
    vd_buf index;   /* text of model.safetensors.index.json; empty if not needed */
} vd_weights_plan;
/* Plans the files. Sorts the tensors in place, as safetensors does; their `data` is not read. `dir`
 * is where the files will be. VD_ERR_USAGE: a name is bad or repeated, or a form does not fit its
 * leaf. */
VD_MUST_USE vd_status vd_weights_plan_make(const char *dir, vd_weight_out *tensor, uint32_t count,
                                           const vd_weights_writing *how, vd_weights_plan *out,
                                           vd_err *err);
/* Writes the index, if one is needed; last, because readers find shards only through it. */
VD_MUST_USE vd_status vd_weights_plan_index(const vd_weights_plan *plan, const char *dir,
                                            vd_err *err);
void vd_weights_plan_free(vd_weights_plan *plan);

/* Writes model.safetensors, or shards and model.safetensors.index.json, into an existing directory.
 * Sorts the tensors in place, as safetensors does, and writes the index last, because readers find
 * shards only through it. VD_ERR_USAGE: a name is bad or repeated, or a form does not fit its
 * leaf. */
VD_MUST_USE vd_status vd_weights_write(const char *dir, vd_weight_out *tensor, uint32_t count,
                                       const vd_weights_writing *how, vd_err *err);
/* Deletes model.safetensors, model.safetensors.index.json and adapter_model.safetensors, so that
 * another model can be written. With `ask`, nothing is deleted, and VD_ERR_USAGE means that one of
 * them exists. */
VD_MUST_USE vd_status vd_weights_clear(const char *dir, bool ask, vd_err *err);
/* Rounds to the nearest, ties to even; NaN becomes 0x7fc0. */
uint16_t vd_weight_bf16(uint32_t f32_bits);

#endif
