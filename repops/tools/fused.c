#include "repops/tools/fused.h"
#include "repops/tools/case_run.h"
#include "repops/tools/fused_functions.h"
#include "repops/tools/golden.h"

#include <stdio.h>

/* ---- data ---- */

/* Fills inputs by the case's formula, and all other words with 0x5a5a5a5a. */
static int fill(golden_block *b, const golden_fused *g) {
    const data_class class = golden_class(g->class);
    const uint64_t seed = golden_seed(g->name);
    b->host = malloc((size_t)(b->words + 1) * sizeof *b->host);
    if (!b->host || class == DATA_END)
        return 0;
    memset(b->host, 0x5a, (size_t)b->words * sizeof *b->host);
    for (int i = 0; i < b->inputs; i++)
        for (int64_t e = 0; e < b->count[i]; e++)
            b->host[b->at[i] + e] = case_f32(case_word(seed, i, e), class);
    return 1;
}

static float *results(const golden_block *b, int64_t *count) {
    *count = 0;
    float *out = malloc((size_t)b->words * sizeof *out + 1);
    for (int i = b->inputs; out && i < b->parts; i++) {
        memcpy(out + *count, b->host + b->at[i], (size_t)b->count[i] * sizeof *out);
        *count += b->count[i];
    }
    return out;
}

/* ---- cases ---- */

const char *golden_fused_function(int i) {
    const golden_function *f = golden_function_at(i);
    return f ? f->name : NULL;
}

static const golden_function *find(const char *name) {
    const golden_function *f;
    for (int i = 0; (f = golden_function_at(i)) && strcmp(f->name, name) != 0; i++)
        ;
    return f;
}

int golden_fused_parse(const char *line, golden_fused *out) {
    char sizes[64], *at = sizes;
    *out = (golden_fused){.hash = "-"};
    if (sscanf(line, "%23s %39s %63s %d %d %23s %11s %64s", out->function, out->name, sizes,
               &out->causal, &out->dropout, out->scale, out->class, out->hash) < 7)
        return 0;
    for (int i = 0; i < SIZES && *at; i++) {
        out->size[i] = strtoll(at, &at, 10);
        at += *at == 'x';
    }
    return find(out->function) != NULL;
}

ro_status golden_fused_run(ro_ctx *ctx, const golden_fused *g, float **out, int64_t *count) {
    const golden_function *f = find(g->function);
    ro_status status = RO_ERR_MEMORY;
    golden_block b = {0};
    *out = NULL;
    f->plan(g, &b);
    const size_t size = (size_t)b.words * sizeof *b.host;
    if (fill(&b, g)) {
        if (f->fill)
            f->fill(g, &b);
        float *x = case_upload(ctx, b.host, size);
        if (x)
            status = f->run(ctx, g, &b, x);
        if (status == RO_OK && (void *)x != (void *)b.host)
            status = ro_read(ctx, b.host, x, size);
        if (status == RO_OK)
            *out = results(&b, count);
        if (x)
            case_drop(ctx, b.host, x);
    }
    free(b.host);
    return status == RO_OK && !*out ? RO_ERR_MEMORY : status;
}
