/* Writes and reads numbers in as few bytes and bits as they need. */
#include "verde/log/internal.h"

void vd_log_put_varint(vd_buf *out, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        vd_put_u8(out, (uint8_t)(value | 0x80));
    vd_put_u8(out, (uint8_t)value);
}

uint64_t vd_log_get_varint(vd_cursor *in) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        const uint8_t byte = vd_get_u8(in);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80)
            continue;
        /* A number has only one encoding: no leading zeros, and no bits shifted out. */
        if ((byte == 0 && shift > 0) || (shift == 63 && byte > 1))
            break;
        return in->failed ? 0 : value;
    }
    in->failed = true;
    return 0;
}

/* Writes four bytes at a time; up to 31 bits are held until then. */
void vd_bits_put(vd_bit_writer *bits, uint64_t value, int count) {
    if (count > 32) {
        vd_bits_put(bits, value & UINT32_MAX, 32);
        value >>= 32, count -= 32;
    }
    bits->held |= value << bits->count;
    bits->count += count;
    if (bits->count < 32)
        return;
    vd_put_u32(bits->out, (uint32_t)bits->held);
    bits->held >>= 32;
    bits->count -= 32;
}

void vd_bits_end(vd_bit_writer *bits) {
    for (; bits->count > 0; bits->count -= 8, bits->held >>= 8)
        vd_put_u8(bits->out, (uint8_t)bits->held);
    bits->count = 0;
}

void vd_bits_put_rice(vd_bit_writer *bits, uint64_t value, int parameter) {
    uint64_t zeros = value >> parameter;
    for (; zeros >= 32; zeros -= 32)
        vd_bits_put(bits, 0, 32);
    vd_bits_put(bits, UINT64_C(1) << zeros, (int)zeros + 1);
    vd_bits_put(bits, value & ((UINT64_C(1) << parameter) - 1), parameter);
}

static void fill(vd_bit_reader *bits) {
    for (; bits->count <= 56 && bits->at < bits->size; bits->count += 8)
        bits->held |= (uint64_t)bits->data[bits->at++] << bits->count;
}

uint64_t vd_bits_get(vd_bit_reader *bits, int count) {
    fill(bits);
    if (bits->failed || bits->count < count) {
        bits->failed = true;
        return 0;
    }
    const uint64_t value = bits->held & ((UINT64_C(1) << count) - 1);
    bits->held >>= count;
    bits->count -= count;
    return value;
}

/* Counts the zero bits before the next one bit. */
static uint64_t get_unary(vd_bit_reader *bits, uint64_t most) {
    uint64_t zeros = 0;
    for (;;) {
        fill(bits);
        if (bits->held)
            break;
        zeros += (uint64_t)bits->count; /* all held bits are zeros; more input may follow */
        bits->count = 0;
        if (zeros > most || bits->at == bits->size) {
            bits->failed = true;
            return 0;
        }
    }
    const int last = __builtin_ctzll(bits->held);
    bits->held >>= last; /* not in one shift by last + 1, which may be 64 */
    bits->held >>= 1;
    bits->count -= last + 1;
    return zeros + (uint64_t)last;
}

uint64_t vd_bits_get_rice(vd_bit_reader *bits, int parameter, uint64_t most) {
    const uint64_t high = get_unary(bits, most >> parameter);
    if (high > most >> parameter)
        bits->failed = true;
    const uint64_t value = vd_bits_get(bits, parameter) | (bits->failed ? 0 : high << parameter);
    if (value > most)
        bits->failed = true;
    return bits->failed ? 0 : value;
}

bool vd_bits_done(vd_bit_reader *bits) {
    fill(bits);
    return !bits->failed && bits->at == bits->size && bits->count < 8 && bits->held == 0;
}
