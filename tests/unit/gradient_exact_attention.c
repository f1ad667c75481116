/* Attention layers in double precision. */
#include "gradient_exact.h"

#include "repops/src/philox.h"

#include <math.h>
#include <stdlib.h>

/* The factor of element e in dropout: SPEC.md section 6. */
double exact_mask(const example *x, float rate, int64_t e) {
    uint32_t word[4];
    ro_philox_block(SEED, (uint64_t)e / 4, (uint32_t)x->step, STREAM, word);
    return word[e % 4] / 4294967296.0 < (double)rate ? 0 : 1 / (1 - (double)rate);
}

/* One head: rows of queries q, keys k and values v, which are `q_step` and `kv_step` numbers apart.
 * For dropout the score of query t and key j has index first_score + t keys + j. */
typedef struct {
    const double *q, *k, *v;
    int64_t q_step, kv_step, size, keys, first_score;
    float rate;
    const int32_t *padding; /* ids of the keys, 0 for padding; NULL: no padding */
    int64_t window;         /* 0: none */
} exact_head;

/* Computes out[0..size) of query t over the first `admitted` keys. */
static void exact_query(const example *x, const exact_head *h, int64_t t, int64_t admitted,
                        double *out) {
    double p[256], most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < admitted; j++) {
        p[j] = 0;
        for (int64_t d = 0; d < h->size; d++)
            p[j] += h->q[t * h->q_step + d] * h->k[j * h->kv_step + d] / sqrt((double)h->size);
        if ((h->padding && h->padding[j] == 0) || (h->window && j <= t - h->window))
            p[j] = -INFINITY;
        most = fmax(most, p[j]);
    }
    for (int64_t j = 0; j < admitted; j++)
        sum += p[j] = exp(p[j] - most);
    for (int64_t d = 0; d < h->size; d++)
        out[d] = 0;
    for (int64_t j = 0; j < admitted; j++) {
        const int64_t e = h->first_score + t * h->keys + j;
        const double weight = p[j] / sum * (h->rate != 0 ? exact_mask(x, h->rate, e) : 1);
        for (int64_t d = 0; d < h->size; d++)
            out[d] += weight * h->v[j * h->kv_step + d];
    }
}

void exact_attention(const example *x, const layer *l, double *out) {
    const ro_shape *s = &x->shape[l->in[0]];
    const int64_t rows = s->dim[1], width = s->dim[2], channels = width / 3;
    exact_head h = {.q_step = width, .kv_step = width, .size = channels / l->heads, .keys = rows};
    h.rate = l->rate;
    for (int64_t i = 0; i < s->dim[0] * l->heads; i++) {
        const int64_t b = i / l->heads, column = i % l->heads * h.size;
        h.q = x->exact[l->in[0]] + b * rows * width + column;
        h.k = h.q + channels, h.v = h.k + channels;
        h.first_score = i * rows * rows;
        for (int64_t t = 0; t < rows; t++)
            exact_query(x, &h, t, t + 1, out + (b * rows + t) * channels + column);
    }
}

/* Returns a copy with rotary positions (SPEC 13): pairs (i, i + size / 2) within each head. */
static double *exact_turn(const double *in, const ro_shape *s, int64_t size) {
    const int64_t count = ro_shape_numel(s), width = s->dim[2], half = size / 2;
    double *out = malloc((size_t)count * sizeof *out);
    for (int64_t e = 0; e < count; e++) {
        const int64_t d = e % width % size, i = d % half;
        const double position = (double)(ROTATION_FIRST + e / width % s->dim[1]);
        const double angle = position * pow((double)ROTATION_BASE, -2.0 * (double)i / (double)size);
        const double other = d < half ? -in[e + half] : in[e - half];
        out[e] = in[e] * cos(angle) + other * sin(angle);
    }
    return out;
}

void exact_grouped(const example *x, const layer *l, double *out) {
    const ro_shape *q = &x->shape[l->in[0]], *k = &x->shape[l->in[1]];
    const int64_t rows = q->dim[1], channels = q->dim[2], group = l->heads / l->kv_heads;
    exact_head h = {.q_step = channels, .kv_step = k->dim[2], .keys = k->dim[1]};
    h.size = channels / l->heads, h.rate = l->rate;
    double *turned[2] = {0};
    for (int i = 0; i < 2 && l->turns; i++)
        turned[i] = exact_turn(x->exact[l->in[i]], &x->shape[l->in[i]], h.size);
    const double *queries = l->turns ? turned[0] : x->exact[l->in[0]];
    const double *keys = l->turns ? turned[1] : x->exact[l->in[1]];
    for (int64_t i = 0; i < q->dim[0] * l->heads; i++) {
        const int64_t b = i / l->heads, column = i % l->heads * h.size;
        const int64_t kv = b * h.keys * h.kv_step + i % l->heads / group * h.size;
        h.q = queries + b * rows * channels + column;
        h.k = keys + kv, h.v = x->exact[l->in[2]] + kv;
        h.first_score = i * rows * h.keys;
        h.window = l->window[0];
        h.padding = l->pads ? x->ids[l->ids] + b * h.keys : NULL;
        for (int64_t t = 0; t < rows; t++)
            exact_query(x, &h, t, l->causal ? t + 1 : h.keys,
                        out + (b * rows + t) * channels + column);
    }
    free(turned[0]);
    free(turned[1]);
}
