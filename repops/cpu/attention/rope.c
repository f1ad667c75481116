/* Rotary position embedding, SPEC.md section 13: first computes the cosines and sines of each
 * position, then turns every row by those of its position. */
#include "repops/src/rope.h"
#include "repops/cpu/isa.h"
#include "repops/src/call.h"
#include "repops/op_attention.h"

/* The angles by which rows are turned. */
typedef struct {
    const int32_t *position; /* [places] */
    const uint32_t *turns;   /* [half, 2] */
    int64_t places, half;
    int neighbours, inverse;
    uint64_t *frequency; /* [half] */
    float *angle;        /* [places, 2, half]: cosines, then sines */
} rotation;

static void find_frequencies(const rotation *v) {
    for (int64_t i = 0; i < v->half; i++)
        v->frequency[i] = ro_rope_words(v->turns[2 * i], v->turns[2 * i + 1]);
}

static void find_angles(void *user, int64_t first, int64_t last, int worker) {
    const rotation *v = user;
    const uint64_t *restrict frequency = v->frequency;
    const int64_t half = v->half;
    const uint32_t flip = v->inverse ? UINT32_C(0x80000000) : 0;
    (void)worker;
    for (int64_t t = first; t < last; t++) {
        float *restrict cosine = v->angle + 2 * t * half;
        float *restrict sine = cosine + half;
        for (int64_t i = 0; i < half; i++) {
            const uint32_t turn = ro_rope_turn(frequency[i], v->position[t]);
            cosine[i] = ro_cos_turn(turn);
            sine[i] = ro_from_bits(ro_to_bits(ro_sin_turn(turn)) ^ flip);
        }
    }
}

enum { PIECE = 16384 }; /* elements that are worth waking a thread for */

/* Computes the angles in the workspace, which it makes `more` floats longer for the caller. */
static ro_status find_rotation(ro_ctx *ctx, rotation *v, int64_t more) {
    const int64_t angles = 2 * v->places * v->half;
    v->frequency = ro_workspace(ctx, (size_t)v->half * sizeof *v->frequency +
                                         (size_t)(angles + more) * sizeof *v->angle);
    if (!v->frequency)
        return RO_ERR_MEMORY;
    v->angle = (float *)(v->frequency + v->half);
    find_frequencies(v);
    ro_pool_for(ro_ctx_pool(ctx), v->places, ceil_div(PIECE, 2 * v->half), find_angles, v);
    return RO_OK;
}

/* ---- a row ---- */

/* Turns the pairs (i, i + half) of a row. */
static void turn_halves(const float *restrict x, const float *restrict cosine,
                        const float *restrict sine, int64_t half, float *restrict out) {
    for (int64_t i = 0; i < half; i++) {
        const float a = x[i], b = x[half + i];
        out[i] = ro_canon(ro_fma(a, cosine[i], -(b * sine[i])));
        out[half + i] = ro_canon(ro_fma(b, cosine[i], a * sine[i]));
    }
}

/* Turns the pairs (2i, 2i + 1) of a row. */
static void turn_neighbours(const float *restrict x, const float *restrict cosine,
                            const float *restrict sine, int64_t half, float *restrict out) {
    for (int64_t i = 0; i < half; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        out[2 * i] = ro_canon(ro_fma(a, cosine[i], -(b * sine[i])));
        out[2 * i + 1] = ro_canon(ro_fma(b, cosine[i], a * sine[i]));
    }
}

static void turn_row(const rotation *v, int64_t place, const float *x, float *out) {
    const float *cosine = v->angle + 2 * place * v->half;
    (v->neighbours ? turn_neighbours : turn_halves)(x, cosine, cosine + v->half, v->half, out);
}

/* ---- operator rope ---- */

typedef struct {
    rotation by;
    ro_rotation v;
    const float *x;
    float *out;
} rope_plan;

static void turn_rows(void *user, int64_t first, int64_t last, int worker) {
    const rope_plan *p = user;
    const int64_t width = 2 * p->v.half;
    (void)worker;
    for (int64_t r = first; r < last; r++)
        turn_row(&p->by, ro_rotation_place(&p->v, r), p->x + r * width, p->out + r * width);
}

static ro_status rope(const ro_job *job) {
    const ro_rotation v = ro_rotation_of(job->call);
    rope_plan p = {{.position = job->in[1],
                    .turns = job->in[2],
                    .places = v.lines * v.positions,
                    .half = v.half,
                    .neighbours = job->call->attr[RO_ROPE_PAIRS] != 0,
                    .inverse = job->call->attr[RO_ROPE_INVERSE] != 0},
                   v,
                   job->in[0],
                   job->out};
    const ro_status status = find_rotation(job->ctx, &p.by, 0);
    if (status == RO_OK)
        ro_pool_for(ro_ctx_pool(job->ctx), v.rows, ceil_div(PIECE, 2 * v.half), turn_rows, &p);
    return status;
}
RO_KERNEL(rope, .run = rope)

/* ---- ro_rotary and ro_rotary_backward: rows of tokens to heads, and back ---- */

typedef struct {
    rotation by;
    const ro_rotary_job *job;
    float *turned; /* [workers, head_size]: gradients before they are added */
} rotary_plan;

/* An item is a token, whose heads share their angles. turned: NULL if nothing is added. */
static void turn_token(const rotary_plan *p, int64_t item, float *turned) {
    const ro_rotary_job *j = p->job;
    const int64_t tokens = j->layer.tokens, heads = j->layer.heads, size = j->layer.head_size;
    const int64_t line = item / tokens, place = item % tokens;
    for (int64_t h = 0; h < heads; h++) {
        const int64_t row = (item * heads + h) * size;
        const int64_t head = ((line * heads + h) * tokens + place) * size;
        float *to = j->to.data + (j->inverse ? row : head);
        turn_row(&p->by, j->layer.each ? item : place, j->from + (j->inverse ? head : row),
                 turned ? turned : to);
        for (int64_t i = 0; turned && i < size; i++)
            to[i] = ro_canon(to[i] + turned[i]);
    }
}

static void turn_tokens(void *user, int64_t first, int64_t last, int worker) {
    const rotary_plan *p = user;
    float *turned = p->turned ? p->turned + worker * p->job->layer.head_size : NULL;
    for (int64_t i = first; i < last; i++)
        turn_token(p, i, turned);
}

static ro_status rotary(ro_ctx *ctx, const ro_rotary_job *j) {
    const ro_rotary_layer *l = &j->layer;
    rotary_plan p = {{.position = j->position,
                      .turns = (const uint32_t *)j->turns,
                      .places = l->tokens * (l->each ? l->batch : 1),
                      .half = l->head_size / 2,
                      .neighbours = l->neighbours,
                      .inverse = j->inverse},
                     j};
    const int64_t turned = j->to.add ? ro_ctx_threads(ctx) * l->head_size : 0;
    const ro_status status = find_rotation(ctx, &p.by, turned);
    if (status != RO_OK)
        return status;
    if (j->to.add)
        p.turned = p.by.angle + p.by.places * l->head_size;
    ro_pool_for(ro_ctx_pool(ctx), l->batch * l->tokens, ceil_div(PIECE, l->heads * l->head_size),
                turn_tokens, &p);
    return RO_OK;
}
RO_FUSED(rotary, rotary)

/* ---- operator rope_turns ---- */

static void rope_turns(const ro_job *job, int64_t first, int64_t last) {
    const uint64_t log = ro_rope_log((uint32_t)job->call->attr[RO_ROPE_TURNS_BASE]);
    const uint64_t half = (uint64_t)job->call->output.dim[0];
    const ro_rope_scaling scaling = ro_rope_scaling_of(job->call);
    uint32_t *out = job->out;
    for (int64_t e = first; e < last; e++) {
        const uint64_t f = ro_rope_scaled(&scaling, ro_rope_frequency(log, half, (uint64_t)e / 2));
        out[e] = (uint32_t)(e % 2 ? f >> 32 : f);
    }
}
RO_KERNEL(rope_turns, .range = rope_turns)
