/* Encodes and decodes a section: one block's part of a step's log. PROTOCOL.md section 11.2. */
#include "verde/log/internal.h"

#include <stdlib.h>

void vd_log_section_free(vd_log_section *section) {
    free(section->call);
    free(section->symbol);
    free(section->sum);
    *section = (vd_log_section){0};
}

const ro_close_call *vd_log_section_find(const vd_log_section *section, int64_t element) {
    int64_t lo = 0, hi = section->call ? section->count : 0;
    while (lo < hi) {
        const int64_t middle = lo + (hi - lo) / 2;
        if (section->call[middle].element < element)
            lo = middle + 1;
        else
            hi = middle;
    }
    if (!section->call || lo == section->count || section->call[lo].element != element)
        return NULL;
    return &section->call[lo];
}

vd_status vd_calls_check(const ro_close_call *call, int64_t count, uint32_t node, uint64_t elements,
                         int64_t *escapes, vd_err *err) {
    int64_t last = -1;
    *escapes = 0;
    if (count < 0)
        return vd_fail(err, VD_ERR_LOCAL, "node %u: %lld close calls", node, (long long)count);
    for (int64_t i = 0; i < count; last = call[i++].element) {
        if (call[i].element <= last || (uint64_t)call[i].element >= elements || call[i].bits < 1 ||
            call[i].bits > 32 || (uint64_t)call[i].place >> call[i].bits != 0)
            return vd_fail(err, VD_ERR_LOCAL,
                           "close call %lld of node %u is at element %lld, %u bits, place %u",
                           (long long)i, node, (long long)call[i].element, (unsigned)call[i].bits,
                           (unsigned)call[i].place);
        *escapes += call[i].bits > 1;
    }
    return VD_OK;
}

static vd_status encode_calls(const vd_log_section *section, vd_buf *coded, vd_err *err) {
    int64_t escapes;
    vd_status status = vd_calls_check(section->call, section->count, section->node,
                                      section->elements, &escapes, err);
    if (status == VD_OK && escapes != section->escapes)
        return vd_fail(err, VD_ERR_LOCAL, "node %u has %lld escapes, not %lld", section->node,
                       (long long)escapes, (long long)section->escapes);
    if (status == VD_OK)
        vd_calls_encode(section, coded);
    return status;
}

vd_status vd_log_section_put(const vd_log_section *section, const vd_buf *coded, vd_buf *out,
                             vd_err *err) {
    vd_log_put_varint(out, section->node);
    vd_log_put_varint(out, section->elements);
    vd_log_put_varint(out, (uint64_t)section->count);
    vd_log_put_varint(out, (uint64_t)section->escapes);
    vd_log_put_varint(out, coded->size);
    vd_put(out, coded->data, coded->size);
    for (uint64_t b = 0; b < vd_log_blocks(section->elements); b++) {
        vd_put_u64(out, section->sum[b].s0);
        vd_put_u64(out, section->sum[b].s1);
    }
    return vd_buf_ok(coded) && vd_buf_ok(out)
               ? VD_OK
               : vd_fail(err, VD_ERR_LOCAL, "no memory for the log of node %u", section->node);
}

static vd_status encode_symbols(const vd_log_section *section, vd_buf *coded, vd_err *err) {
    int64_t marked;
    const uint64_t size = vd_symbols_packed_size(section->elements);
    uint8_t *packed = malloc(size ? (size_t)size : 1);
    vd_status status = VD_OK;
    if (!packed)
        status = vd_fail(err, VD_ERR_LOCAL, "no memory for the log of node %u", section->node);
    else if (!vd_symbols_pack(section->symbol, section->elements, packed, &marked) ||
             marked != section->count)
        status =
            vd_fail(err, VD_ERR_LOCAL, "the symbols of node %u are not 0, 1, 2 with %lld marked",
                    section->node, (long long)section->count);
    vd_deflater deflater = {0};
    if (status == VD_OK)
        status = vd_symbols_deflate(&deflater, packed, size, coded, err);
    vd_deflater_free(&deflater);
    free(packed);
    return status;
}

vd_status vd_log_section_encode(const vd_log_section *section, vd_log_encoding encoding,
                                vd_buf *out, vd_err *err) {
    vd_buf coded = {0};
    vd_status status = encoding == VD_LOG_CALLS ? encode_calls(section, &coded, err)
                                                : encode_symbols(section, &coded, err);
    if (status == VD_OK)
        status = vd_log_section_put(section, &coded, out, err);
    vd_buf_free(&coded);
    return status;
}

static vd_status get_head(vd_cursor *in, vd_log_encoding encoding, const vd_log_node *node,
                          vd_log_section *out, uint64_t *coded_size, vd_err *err) {
    const uint64_t number = vd_log_get_varint(in), elements = vd_log_get_varint(in);
    const uint64_t count = vd_log_get_varint(in), escapes = vd_log_get_varint(in);
    *coded_size = vd_log_get_varint(in);
    if (in->failed)
        return vd_fail(err, VD_ERR_PEER, "the section's head is cut short or not in shortest form");
    if (number != node->node)
        return vd_fail(err, VD_ERR_PEER, "the section is node %llu's", (unsigned long long)number);
    if (elements != node->elements)
        return vd_fail(err, VD_ERR_PEER, "%llu elements, the program's node has %llu",
                       (unsigned long long)elements, (unsigned long long)node->elements);
    if (count > elements || escapes > count || (encoding == VD_LOG_SYMBOLS && escapes > 0))
        return vd_fail(err, VD_ERR_PEER, "%llu marks with %llu escapes on %llu elements",
                       (unsigned long long)count, (unsigned long long)escapes,
                       (unsigned long long)elements);
    out->node = node->node;
    out->elements = elements;
    out->count = (int64_t)count;
    out->escapes = (int64_t)escapes;
    return VD_OK;
}

/* The coded part and then the checksums must fill what is left of the section exactly. */
static vd_status get_sums(vd_cursor *in, uint64_t coded_size, const uint8_t **coded,
                          vd_log_section *out, vd_err *err) {
    const uint64_t left = in->size - in->at, blocks = vd_log_blocks(out->elements);
    if (coded_size > left || blocks != (left - coded_size) / sizeof *out->sum ||
        (left - coded_size) % sizeof *out->sum != 0)
        return vd_fail(err, VD_ERR_PEER,
                       "%llu bytes follow the section's head, expected %llu and %llu "
                       "checksums",
                       (unsigned long long)left, (unsigned long long)coded_size,
                       (unsigned long long)blocks);
    *coded = vd_get(in, (size_t)coded_size);
    out->sum = malloc(blocks ? (size_t)blocks * sizeof *out->sum : 1);
    if (!out->sum)
        return vd_fail(err, VD_ERR_LOCAL, "no memory for %llu checksums",
                       (unsigned long long)blocks);
    for (uint64_t b = 0; b < blocks; b++) {
        out->sum[b].s0 = vd_get_u64(in);
        out->sum[b].s1 = vd_get_u64(in);
    }
    return VD_OK;
}

vd_status vd_log_section_decode(const void *bytes, size_t size, vd_log_encoding encoding,
                                const vd_log_node *node, vd_log_section *out, vd_err *err) {
    vd_cursor in = vd_cursor_of(bytes, size);
    const uint8_t *coded = NULL;
    uint64_t coded_size = 0;
    vd_log_section_free(out);
    if (size > VD_LOG_SECTION_BYTES)
        return vd_fail(err, VD_ERR_PEER, "a section of %zu bytes, at most %d are allowed", size,
                       (int)VD_LOG_SECTION_BYTES);
    vd_status status = get_head(&in, encoding, node, out, &coded_size, err);
    if (status == VD_OK)
        status = get_sums(&in, coded_size, &coded, out, err);
    if (status == VD_OK && encoding == VD_LOG_CALLS)
        status = vd_calls_decode(coded, (size_t)coded_size, out, err);
    else if (status == VD_OK)
        status = vd_symbols_decode(coded, (size_t)coded_size, out, err);
    if (status != VD_OK)
        vd_log_section_free(out);
    return status;
}
