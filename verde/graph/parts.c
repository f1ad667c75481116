/* The parts that may follow the graphs in a program's bytes. PROTOCOL.md section 1.6. */
#include <string.h>

#include "verde/graph/encode.h"
#include "verde/graph/validate.h"

/* The first byte of a part. Rounding has a range of them: the byte is its number of bits. */
enum { PART_RANGES = 1, PART_ROUNDING = 16, PART_ROUNDING_LAST = 32 };

/* ---- ranges of data ---- */

static uint32_t count_ranges(const vd_program *p) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->data_count; i++)
        count += p->data[i].range.stated;
    return count;
}

static void put_ranges(vd_buf *out, const vd_program *p) {
    vd_put_u8(out, PART_RANGES);
    vd_put_u32(out, count_ranges(p));
    for (uint32_t i = 0; i < p->data_count; i++) {
        const vd_range *range = &p->data[i].range;
        if (!range->stated)
            continue;
        vd_put_u32(out, i);
        vd_put_u64(out, (uint64_t)range->least);
        vd_put_u64(out, (uint64_t)range->greatest);
    }
}

/* Reads ranges; vd_program_validate checks later that the tensor's type can hold them. */
static bool get_ranges(vd_cursor *in, vd_program *p, vd_err *err) {
    const uint32_t count = vd_get_u32(in);
    int64_t last = -1;
    if (!in->failed && count == 0)
        vd_fail(err, VD_ERR_PEER, "ranges: none, expected 1 or more");
    if (in->failed || count == 0)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t tensor = vd_get_u32(in);
        vd_range range = {.stated = true, .least = (int64_t)vd_get_u64(in)};
        range.greatest = (int64_t)vd_get_u64(in);
        if (in->failed)
            return false;
        if (tensor <= last || tensor >= p->data_count) {
            vd_fail(err, VD_ERR_PEER,
                    "ranges: number %u is of data tensor %u, expected one behind the last that was "
                    "named, below %u",
                    i, tensor, p->data_count);
            return false;
        }
        p->data[tensor].range = range;
        last = tensor;
    }
    return !in->failed;
}

/* ---- rounding ---- */

static void put_rounding(vd_buf *out, const vd_program_rounding *r) {
    uint16_t count = 0;
    for (int op = 0; op < RO_OP_END; op++)
        count += r->threshold[op] != 0;
    vd_put_u8(out, (uint8_t)r->bits);
    vd_put_u8(out, (uint8_t)r->encoding);
    vd_put_u16(out, count);
    for (int op = 0; op < RO_OP_END; op++) {
        uint64_t value;
        memcpy(&value, &r->threshold[op], sizeof value);
        if (r->threshold[op] != 0) {
            vd_put_u16(out, (uint16_t)op);
            vd_put_u64(out, value);
        }
    }
}

/* Operators must ascend, so that a table has only one encoding. */
static bool get_rounding(vd_cursor *in, int bits, vd_program_rounding *r, vd_err *err) {
    int last = -1;
    r->bits = bits;
    r->encoding = vd_get_u8(in);
    if (!in->failed &&
        r->encoding > 2) { /* an unknown encoding's thresholds may have another form */
        vd_fail(err, VD_ERR_VERSION, "encoding %d of rounding logs is not known to this version",
                r->encoding);
        return false;
    }
    for (uint16_t left = vd_get_u16(in); left > 0 && !in->failed; left--) {
        const int op = vd_get_u16(in);
        const uint64_t value = vd_get_u64(in);
        if (in->failed || op <= last || value == 0)
            return false;
        if (!ro_op_describe(op)) {
            const vd_text why = vd_say_operator(op);
            vd_fail(err, why.status, "a threshold: %s", why.text);
            return false;
        }
        memcpy(&r->threshold[op], &value, sizeof value);
        last = op;
    }
    return !in->failed;
}

/* ---- all parts ---- */

void vd_put_parts(vd_buf *out, const vd_program *program) {
    if (count_ranges(program) > 0)
        put_ranges(out, program);
    if (program->rounding.bits)
        put_rounding(out, &program->rounding);
}

static bool get_part(vd_cursor *in, int part, vd_program *p, vd_err *err) {
    if (part == PART_RANGES)
        return get_ranges(in, p, err);
    if (part >= PART_ROUNDING && part <= PART_ROUNDING_LAST)
        return get_rounding(in, part, &p->rounding, err);
    vd_fail(err, VD_ERR_VERSION,
            "part %d is not known to this version, which knows %d (ranges of data) and %d to %d "
            "(rounding)",
            part, PART_RANGES, PART_ROUNDING, PART_ROUNDING_LAST);
    return false;
}

/* Reads parts, each at most once and in order, so that a program has only one encoding. */
bool vd_get_parts(vd_cursor *in, vd_program *program, vd_err *err) {
    int last = 0;
    while (in->at < in->size) {
        const int part = vd_get_u8(in);
        if (last > 0 && (part <= last || (last >= PART_ROUNDING && part <= PART_ROUNDING_LAST))) {
            vd_fail(err, VD_ERR_PEER,
                    "part %d stands behind part %d: each is there at most once, in ascending order",
                    part, last);
            return false;
        }
        if (!get_part(in, part, program, err))
            return false;
        last = part;
    }
    return true;
}
