/* Reports and replays close calls (SPEC.md section 14.3): the rare part of emission. */
#include <string.h>

#include "repops/src/backend.h"
#include "repops/src/emit.h"

float ro_round(double x, int bits) {
    return ro_canon(ro_round_any(x, ro_magic(bits)));
}

float ro_round_next(float x, int bits, int direction) {
    if (x != x || (x == ro_from_bits(0x7f800000u) && direction > 0) ||
        (x == ro_from_bits(0xff800000u) && direction < 0))
        return x;
    /* both zeros count as one number: the neighbours of -0 and +0 are the same */
    if (x == 0)
        return ro_at_place(direction > 0 ? 1 : -2, bits);
    return ro_at_place(ro_place(x, bits) + direction, bits);
}

int ro_emit_room(ro_emitter *t, int64_t calls) {
    int64_t room = t->room ? t->room : 256;
    while (room < calls)
        room *= 2;
    if (room == t->room)
        return 1;
    ro_close_call *call = ro_host_alloc(t->ctx, (size_t)room * sizeof *call);
    if (!call)
        return 0;
    if (t->calls > 0)
        memcpy(call, t->call, (size_t)t->calls * sizeof *call);
    if (t->call)
        ro_host_free(t->ctx, t->call);
    t->call = call;
    t->room = room;
    return 1;
}

static uint32_t bits_above(uint64_t n) {
    uint32_t bits = 0;
    while (bits < 32 && UINT64_C(1) << bits <= n)
        bits++;
    return bits;
}

typedef struct {
    int64_t low, high;
} places;

static int64_t place_of(const ro_emitter *t, double y) {
    const int bits = t->rounding->bits;
    return ro_place(bits == 32 ? ro_canon((float)y) : ro_emit_round(t, y), bits);
}

static places places_around(const ro_emitter *t, double y, double reach) {
    return (places){place_of(t, y - reach), place_of(t, y + reach)};
}

static void put_call(ro_emitter *t, ro_close_call call) {
    if (t->calls == t->room && !ro_emit_room(t, t->calls + 1))
        t->failed = 1;
    else
        t->call[t->calls++] = call;
}

void ro_emit_moved(ro_emitter *t, int64_t element, float nearest) {
    const uint32_t place = (uint32_t)ro_place(nearest, t->rounding->bits);
    t->corrected++;
    put_call(t, (ro_close_call){.element = element, .place = place, .bits = 32});
}

void ro_emit_close(ro_emitter *t, int64_t element, double y, double bound) {
    if (y != y || y - y != 0) /* no order changes a NaN or an infinity */
        return;
    const double reach =
        bound < 0x1p200 ? RO_EMIT_REACH * bound : 0x1p201; /* a NaN counts as an infinite bound */
    const int64_t place = ro_place(t->out[element], t->rounding->bits);
    const places near = places_around(t, y, reach);
    if (near.low == near.high)
        return;
    const places far = places_around(t, y, 2 * reach);
    const int64_t up = near.high - place, down = place - near.low;
    ro_close_call call = {.element = element, .bits = 1};
    if (far.high - far.low > 1)
        call.bits = bits_above(2 * (uint64_t)(up > down ? up : down));
    call.place = (uint32_t)place & (uint32_t)((UINT64_C(1) << call.bits) - 1);
    t->escapes += call.bits > 1;
    put_call(t, call);
}

/* Returns the index of the first call for an element at or after `first`. */
static int64_t find_call(const ro_rounding *r, int64_t first) {
    int64_t low = 0, high = r->call_count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (r->call[middle].element < first)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int ro_emit_is_called(const ro_emitter *t, int64_t first, int64_t n) {
    const ro_rounding *r = t->rounding;
    const int64_t i = find_call(r, first);
    return i < r->call_count && r->call[i].element < first + n;
}

/* Returns the number at a place, 2^128 for infinity, so that midpoints can be computed. */
static double at(int64_t place, int bits) {
    const double x = (double)ro_at_place(place, bits);
    return x - x == 0 ? x : x > 0 ? 0x1p128 : -0x1p128;
}

/* Returns the neighbour of `place` across the boundary that is nearest to y. */
static int64_t neighbour(int64_t place, double y, int bits) {
    const int64_t infinite = ro_place(ro_from_bits(0x7f800000u), bits);
    if (place == infinite || place == -1 - infinite)
        return place > 0 ? place - 1 : place + 1;
    const double above = 0.5 * (at(place, bits) + at(place + 1, bits));
    const double below = 0.5 * (at(place, bits) + at(place - 1, bits));
    return above - y < y - below ? place + 1 : place - 1;
}

/* Returns the place that the call names, near y; `place` is y's own. */
static int64_t place_called(const ro_close_call *c, int64_t place, double y, int bits) {
    if (c->bits == 32)
        return (int32_t)c->place;
    const int64_t size = INT64_C(1) << c->bits;
    const int64_t up =
        (((int64_t)c->place - place) % size + size) % size; /* to the next place with these bits */
    if (up == 0)
        return place;
    if (c->bits == 1)
        return neighbour(place, y, bits);
    return up <= size / 2 ? place + up : place + up - size;
}

float ro_round_called(double y, int bits, const ro_close_call *call) {
    const float nearest = ro_round(y, bits);
    if (y - y != 0)
        return nearest;
    return ro_at_place(place_called(call, ro_place(nearest, bits), y, bits), bits);
}

void ro_emit_replay(ro_emitter *t, int64_t first, const double *y, int64_t n) {
    const ro_rounding *r = t->rounding;
    for (int64_t i = find_call(r, first); i < r->call_count; i++) {
        const ro_close_call *c = &r->call[i];
        if (c->element >= first + n)
            return;
        float *out = &t->out[c->element];
        const double value = y[c->element - first];
        t->escapes += c->bits > 1;
        if (value != value || value - value != 0)
            continue;
        const int64_t place = ro_place(*out, r->bits);
        const int64_t called = place_called(c, place, value, r->bits);
        if (called != place)
            ro_emit_moved(t, c->element, *out);
        *out = ro_at_place(called, r->bits);
    }
}
