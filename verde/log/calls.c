/* Encodes close calls in few bits: the gaps between them in a Rice code, then escapes, then one bit
 * for each other call. PROTOCOL.md section 11.3. */
#include "verde/log/internal.h"

#include <stdlib.h>

typedef struct {
    const vd_log_section *section;
    bool escapes; /* measures gaps between escapes, in calls; else between calls, in elements */
    int64_t at;
    uint64_t next; /* the smallest position of the next one */
} gaps;

static bool next_gap(gaps *g, uint64_t *gap) {
    const vd_log_section *s = g->section;
    while (g->escapes && g->at < s->count && s->call[g->at].bits == 1)
        g->at++;
    if (g->at >= s->count)
        return false;
    const uint64_t place = (uint64_t)(g->escapes ? g->at : s->call[g->at].element);
    g->at++;
    *gap = place - g->next;
    g->next = place + 1;
    return true;
}

static uint64_t cost(const vd_log_section *section, bool escapes, int parameter) {
    gaps g = {.section = section, .escapes = escapes};
    uint64_t bits = 0, gap;
    while (next_gap(&g, &gap))
        bits += (gap >> parameter) + 1 + (uint64_t)parameter;
    return bits;
}

/* Finds the parameter that takes the fewest bits. The number of bits has one minimum, since it is
 * convex in each gap; it is near the logarithm of the mean gap. */
static int best_parameter(const vd_log_section *section, bool escapes) {
    const uint64_t count = (uint64_t)(escapes ? section->escapes : section->count);
    const uint64_t range = escapes ? (uint64_t)section->count : section->elements;
    int best = 0;
    while (best < VD_RICE_MAX && range / count >> best > 1)
        best++;
    uint64_t bits = cost(section, escapes, best), other;
    while (best > 0 && (other = cost(section, escapes, best - 1)) <= bits) {
        bits = other;
        best--;
    }
    while (best < VD_RICE_MAX && (other = cost(section, escapes, best + 1)) < bits) {
        bits = other;
        best++;
    }
    return best;
}

static void put_gaps(vd_bit_writer *bits, const vd_log_section *section, int parameter) {
    gaps g = {.section = section};
    uint64_t gap;
    while (next_gap(&g, &gap))
        vd_bits_put_rice(bits, gap, parameter);
}

static void put_escapes(vd_bit_writer *bits, const vd_log_section *section, int parameter) {
    gaps g = {.section = section, .escapes = true};
    uint64_t gap;
    while (next_gap(&g, &gap)) {
        const ro_close_call *call = &section->call[g.at - 1];
        vd_bits_put_rice(bits, gap, parameter);
        vd_bits_put(bits, call->bits - 1, 5);
        vd_bits_put(bits, call->place, (int)call->bits);
    }
}

void vd_calls_encode(const vd_log_section *section, vd_buf *out) {
    if (section->count == 0)
        return;
    const int gap = best_parameter(section, false);
    const int escape = section->escapes ? best_parameter(section, true) : 0;
    vd_put_u8(out, (uint8_t)gap);
    vd_put_u8(out, (uint8_t)escape);
    vd_bit_writer bits = {.out = out};
    put_gaps(&bits, section, gap);
    put_escapes(&bits, section, escape);
    for (int64_t i = 0; i < section->count; i++)
        if (section->call[i].bits == 1)
            vd_bits_put(&bits, section->call[i].place, 1);
    vd_bits_end(&bits);
}

static void get_gaps(vd_bit_reader *bits, vd_log_section *section, int parameter) {
    uint64_t next = 0;
    for (int64_t i = 0; i < section->count && !bits->failed; i++) {
        /* Leaves a place for each call still to come. */
        const uint64_t later = (uint64_t)(section->count - 1 - i);
        next += vd_bits_get_rice(bits, parameter, section->elements - 1 - later - next);
        section->call[i] = (ro_close_call){.element = (int64_t)next++, .bits = 1};
    }
}

static void get_escapes(vd_bit_reader *bits, vd_log_section *section, int parameter) {
    uint64_t next = 0;
    for (int64_t i = 0; i < section->escapes && !bits->failed; i++) {
        const uint64_t later = (uint64_t)(section->escapes - 1 - i);
        next += vd_bits_get_rice(bits, parameter, (uint64_t)section->count - 1 - later - next);
        ro_close_call *call = &section->call[next++];
        call->bits = 1 + (uint32_t)vd_bits_get(bits, 5);
        call->place = (uint32_t)vd_bits_get(bits, (int)call->bits);
        if (call->bits == 1)
            bits->failed = true; /* not an escape */
    }
}

static vd_status get_calls(vd_bit_reader *bits, vd_log_section *section, int gap, int escape,
                           vd_err *err) {
    get_gaps(bits, section, gap);
    if (!bits->failed)
        get_escapes(bits, section, escape);
    for (int64_t i = 0; i < section->count && !bits->failed; i++)
        if (section->call[i].bits == 1)
            section->call[i].place = (uint32_t)vd_bits_get(bits, 1);
    return vd_bits_done(bits) ? VD_OK
                              : vd_fail(err, VD_ERR_PEER,
                                        "%lld coded close calls do not end where "
                                        "their bytes do, or leave the tensor",
                                        (long long)section->count);
}

vd_status vd_calls_decode(const uint8_t *coded, size_t size, vd_log_section *section, vd_err *err) {
    if (section->count == 0)
        return size == 0 ? VD_OK : vd_fail(err, VD_ERR_PEER, "%zu bytes code no close calls", size);
    /* Each call takes at least two bits, so the input's size bounds the memory. */
    if (size < 3 || (uint64_t)section->count > 4 * ((uint64_t)size - 2))
        return vd_fail(err, VD_ERR_PEER, "%zu bytes cannot hold %lld close calls", size,
                       (long long)section->count);
    const int gap = coded[0], escape = coded[1];
    if (gap > VD_RICE_MAX || escape > VD_RICE_MAX || (section->escapes == 0 && escape != 0))
        return vd_fail(err, VD_ERR_PEER, "Rice parameters are %d and %d, at most %d is allowed",
                       gap, escape, (int)VD_RICE_MAX);
    section->call = calloc((size_t)section->count, sizeof *section->call);
    if (!section->call)
        return vd_fail(err, VD_ERR_LOCAL, "no memory for %lld close calls",
                       (long long)section->count);
    vd_bit_reader bits = {.data = coded + 2, .size = size - 2};
    return get_calls(&bits, section, gap, escape, err);
}
