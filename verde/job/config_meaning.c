/* This file writes what a config.json means, as text with only one spelling. */
#include <stddef.h>
#include <string.h>

#include "verde/job/config.h"

typedef enum { WHOLE, REAL, FLAG } meaning_type;

typedef struct {
    const char *name;
    meaning_type type;
    size_t offset; /* in vd_model */
} meaning_field;

#define FIELD(type, place)                                                                         \
    { #place, type, offsetof(vd_model, place) }

/* All that config.json decides. What a job may replace is part of the program alone. */
static const meaning_field fields[] = {
    FIELD(WHOLE, vocab),
    FIELD(WHOLE, context),
    FIELD(WHOLE, layers),
    FIELD(WHOLE, heads),
    FIELD(WHOLE, kv_heads),
    FIELD(WHOLE, channels),
    FIELD(WHOLE, hidden),
    FIELD(WHOLE, head_dim),
    FIELD(REAL, norm_eps),
    FIELD(REAL, rope_base),
    FIELD(REAL, rope_scaling.factor),
    FIELD(REAL, rope_scaling.low),
    FIELD(REAL, rope_scaling.high),
    FIELD(WHOLE, rope_scaling.context),
    FIELD(WHOLE, window),
    FIELD(WHOLE, window_from),
    FIELD(FLAG, qkv_bias),
    FIELD(FLAG, out_bias),
    FIELD(FLAG, mlp_bias),
    FIELD(FLAG, qk_norm),
    FIELD(FLAG, tied),
    FIELD(WHOLE, classes),
    FIELD(WHOLE, segments),
    FIELD(FLAG, large_stem),
};

static void put_field(vd_buf *out, const vd_model *m, const meaning_field *f) {
    const void *at = (const char *)m + f->offset;
    int64_t whole = 0;
    uint32_t bits;
    if (f->type == REAL) {
        memcpy(&bits, at, sizeof bits);
        vd_printf(out, "%s 0x%08x\n", f->name, bits);
        return;
    }
    if (f->type == FLAG)
        whole = *(const bool *)at;
    else
        memcpy(&whole, at, sizeof whole);
    vd_printf(out, "%s %lld\n", f->name, (long long)whole);
}

void vd_config_meaning(const vd_model *m, vd_buf *out) {
    vd_printf(out, "verde model 1\nkind %d\nactivation %d\nrope_scaling.kind %d\ntask %d\n",
              (int)m->kind, (int)m->activation, (int)m->rope_scaling.kind, (int)m->task);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        put_field(out, m, &fields[i]);
    for (int64_t i = 0; i < m->stages; i++)
        vd_printf(out, "blocks %lld\n", (long long)m->blocks[i]);
}
