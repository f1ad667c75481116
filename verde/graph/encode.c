/* Canonical bytes of programs. PROTOCOL.md section 1.2. */
#include "verde/graph/encode.h"

#include <stdlib.h>
#include <string.h>

static const char magic[] = "verde program";

/* Bytes that are gathered before they are passed on. */
enum { PIECE_BYTES = 1 << 16 };

void vd_put_name(const vd_encoding *e, const char *name) {
    vd_put_string(e->out, e->nameless ? "" : name);
}

void vd_encoding_pass(const vd_encoding *e, bool last) {
    if (!e->take || (!last && e->out->size < PIECE_BYTES))
        return;
    e->take(e->user, e->out->data, e->out->size);
    e->out->size = 0;
}

static void put_leaf(const vd_encoding *e, const vd_leaf *leaf) {
    vd_put_name(e, leaf->name);
    vd_put_shape(e->out, &leaf->shape);
    vd_encoding_pass(e, false);
}

static void get_leaf(vd_cursor *in, vd_leaf *leaf, vd_err *err) {
    vd_get_string(in, leaf->name, sizeof leaf->name);
    leaf->shape = vd_get_shape(in, err);
}

static void put_program(const vd_encoding *e, const vd_program *program) {
    vd_buf *out = e->out;
    vd_put_string(out, magic);
    vd_put_u16(out, VD_ENCODING_VERSION);
    vd_put_u16(out, RO_SPEC_VERSION);
    vd_put_u64(out, program->seed);
    vd_put_u64(out, (uint64_t)program->steps);
    vd_put_u64(out, (uint64_t)program->checkpoint_interval);
    vd_put_u32(out, program->data_count);
    for (uint32_t i = 0; i < program->data_count; i++) {
        put_leaf(e, &program->data[i].tensor);
        vd_put(out, program->data[i].root, sizeof program->data[i].root);
    }
    vd_put_u32(out, program->leaf_count);
    for (uint32_t i = 0; i < program->leaf_count; i++)
        put_leaf(e, &program->leaf[i]);
    vd_put_graph(e, program, &program->init);
    vd_put_graph(e, program, &program->step);
    vd_put_parts(out, program);
}

void vd_program_encode(const vd_program *program, vd_buf *out) {
    put_program(&(vd_encoding){.out = out}, program);
}

bool vd_program_pieces(const vd_program *program, bool named, vd_take_bytes take, void *user) {
    vd_buf piece = {0};
    const vd_encoding e = {&piece, !named, take, user};
    put_program(&e, program);
    const bool whole = vd_buf_ok(&piece);
    if (whole)
        vd_encoding_pass(&e, true);
    vd_buf_free(&piece);
    return whole;
}

/* Reads both versions first: nothing else is known of bytes of another version. */
static bool get_header(vd_cursor *in, vd_program *p, vd_err *err) {
    char text[sizeof magic];
    vd_get_string(in, text, sizeof text);
    const int encoding = vd_get_u16(in), specification = vd_get_u16(in);
    if (in->failed || strcmp(text, magic) != 0)
        return false;
    if (encoding != VD_ENCODING_VERSION || specification != RO_SPEC_VERSION) {
        if (encoding != VD_ENCODING_VERSION)
            vd_fail_version(err, NULL, encoding, "a program", 1, VD_ENCODING_VERSION);
        else
            vd_fail_version(err, NULL, specification, "the specification", 1, RO_SPEC_VERSION);
        return false;
    }
    p->seed = vd_get_u64(in);
    p->steps = (int64_t)vd_get_u64(in);
    p->checkpoint_interval = (int64_t)vd_get_u64(in);
    return !in->failed;
}

/* The fewest bytes that a leaf can have: an empty name, one dimension. */
enum { LEAF_BYTES = 2 + 2 + 8 };

/* Counts that the input cannot hold are refused before memory is allocated. */
static bool get_data(vd_cursor *in, vd_program *p, vd_err *err) {
    const uint32_t count = vd_get_u32(in);
    if (in->failed || vd_exceeds(count, VD_DATA_MAX, "data tensors", err) ||
        count > (in->size - in->at) / (LEAF_BYTES + sizeof p->data->root))
        return false;
    if (vd_program_take_data(p, count, NULL) != VD_OK)
        return vd_no_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        get_leaf(in, &p->data[i].tensor, err);
        const uint8_t *root = vd_get(in, sizeof p->data[i].root);
        if (!root)
            return false;
        memcpy(p->data[i].root, root, sizeof p->data[i].root);
    }
    return !in->failed;
}

static bool get_layout(vd_cursor *in, vd_program *p, vd_err *err) {
    uint32_t leaves = vd_get_u32(in);
    if (in->failed || vd_exceeds(leaves, VD_LEAVES_MAX, "state leaves", err) ||
        leaves > (in->size - in->at) / LEAF_BYTES)
        return false;
    p->leaf = calloc(leaves + 1, sizeof *p->leaf);
    if (!p->leaf)
        return vd_no_memory(err);
    for (; p->leaf_count < leaves && !in->failed; p->leaf_count++)
        get_leaf(in, &p->leaf[p->leaf_count], err);
    return !in->failed;
}

static bool get_program(vd_cursor *in, vd_program *p, vd_err *err) {
    if (!get_header(in, p, err))
        return false;
    if (vd_exceeds(in->size, VD_PROGRAM_BYTES_MAX, "bytes", err))
        return false;
    return get_data(in, p, err) && get_layout(in, p, err) && vd_get_graph(in, p, &p->init, err) &&
           vd_get_graph(in, p, &p->step, err) && vd_get_parts(in, p, err) && vd_cursor_done(in);
}

vd_status vd_program_decode(const void *bytes, size_t size, vd_program *out, vd_err *err) {
    vd_cursor in = vd_cursor_of(bytes, size);
    vd_err why = {0};
    *out = (vd_program){0};
    if (!get_program(&in, out, &why)) {
        vd_program_free(out);
        return why.text[0] ? vd_fail(err, why.status, "program: %s", why.text)
                           : vd_fail(err, VD_ERR_PEER,
                                     "program: malformed at byte %zu, expected encoding version %d "
                                     "of specification %d",
                                     in.at, VD_ENCODING_VERSION, RO_SPEC_VERSION);
    }
    vd_status status = vd_program_validate(out, err);
    if (status != VD_OK)
        vd_program_free(out);
    return status;
}
