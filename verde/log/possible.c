/* Finds which roundings of an element are possible, and which one a log names. PROTOCOL.md section
 * 12.1. */
#include <string.h>

#include "verde/log/log.h"

float vd_word_float(uint32_t word) {
    float x;
    memcpy(&x, &word, sizeof x);
    return x;
}

uint32_t vd_float_word(float x) {
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    return word;
}

vd_possible vd_possible_of(ro_bounded y, int32_t bits) {
    const ro_places v = ro_bounded_places(y, bits);
    return (vd_possible){bits, y, v.low, v.high};
}

static bool is_finite(const vd_possible *p) {
    return p->y.value - p->y.value == 0;
}

/* Returns whether the log must record the element: not if it has no bound, or may not be finite. */
static bool owes(const vd_possible *p) {
    return is_finite(p) && p->y.bound < 0x1p199;
}

bool vd_possible_has(const vd_possible *p, uint32_t word) {
    return (is_finite(p) && !owes(p)) || ro_bounded_admits(p->y, p->bits, word);
}

bool vd_possible_several(const vd_possible *p) {
    return p->low != p->high && owes(p);
}

uint32_t vd_possible_word(const vd_possible *p, int64_t place) {
    const uint32_t magnitude = (uint32_t)(place < 0 ? -1 - place : place);
    return magnitude << (32 - p->bits) | (place < 0 ? UINT32_C(1) << 31 : 0);
}

int64_t vd_possible_place(const vd_possible *p, uint32_t word) {
    const int64_t magnitude = (int64_t)((word & 0x7fffffff) >> (32 - p->bits));
    return word >> 31 ? -1 - magnitude : magnitude;
}

/* ---- what the log says of them ---- */

/* Keeps the possible values whose places end in the call's bits. */
static vd_told told_by_call(const vd_possible *p, const ro_close_call *call) {
    const int64_t size = INT64_C(1) << call->bits;
    const int64_t first = p->low + (((int64_t)call->place - p->low) % size + size) % size;
    if (first > p->high)
        return (vd_told){.recorded = true, .low = 0, .high = -1};
    return (vd_told){
        .recorded = true, .missing = p->high - first >= size, .low = first, .high = first};
}

/* The power of two of |x|, as defined in SPEC 14.4. */
static double binade(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= UINT64_C(0x7ff0000000000000);
    memcpy(&x, &bits, sizeof x);
    return x > 0x1p-126 ? x : 0x1p-126;
}

static double value_at(const vd_possible *p, int64_t place) {
    const uint32_t word = vd_possible_word(p, place);
    float x;
    memcpy(&x, &word, sizeof x);
    return (double)x;
}

/* The values of all devices are in from(p)..to(p). */
static double from(const vd_possible *p) {
    return p->y.value - 2 * p->y.bound;
}

static double to(const vd_possible *p) {
    return p->y.value + 2 * p->y.bound;
}

static double distance(double a, double b) {
    return a < b ? b - a : a - b;
}

/* Returns whether all devices must log a symbol other than 1: every value in from(p)..to(p) is
 * further from its rounded value than the threshold. The distance is least at the ends. */
static bool symbol_owed(const vd_possible *p, double threshold) {
    const double low = value_at(p, p->low), high = value_at(p, p->high);
    const double one = binade(from(p)), other = binade(to(p));
    const double least = threshold * (one > other ? one : other);
    return p->high - p->low == 1 && from(p) >= low && to(p) <= high &&
           distance(from(p), low) > least && distance(to(p), high) > least;
}

/* Reads a symbol: 0 means rounded down, 2 rounded up, of a value between `from` and `to`. */
static vd_told told_by_symbol(const vd_possible *p, uint8_t symbol, double threshold) {
    vd_told told = {.recorded = symbol != 1, .low = p->low, .high = p->high};
    if (symbol == 1)
        told.missing = symbol_owed(p, threshold);
    if (symbol == 0 && !(to(p) > value_at(p, p->high)))
        told.high--;
    if (symbol == 2 && !(from(p) < value_at(p, p->low)))
        told.low++;
    return told;
}

vd_told vd_possible_told(const vd_possible *p, const vd_log_section *section, double threshold,
                         int64_t element) {
    const int64_t nan = vd_possible_place(p, UINT32_C(0x7fc00000));
    if (!owes(p))
        return (vd_told){.low = -1 - nan, .high = nan};
    if (section->symbol)
        return told_by_symbol(p, section->symbol[element], threshold);
    const ro_close_call *call = vd_log_section_find(section, element);
    if (call)
        return told_by_call(p, call);
    return (vd_told){.missing = vd_possible_several(p), .low = p->low, .high = p->high};
}
