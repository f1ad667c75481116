/* Rotary position embedding, SPEC.md section 13: first the cosines and sines of each position, then
 * every row with those of its position. */
#include "repops/src/rope.h"
#include "repops/cpu/isa.h"
#include "repops/src/call.h"

typedef struct {
    ro_job job;
    ro_rotation v;
    uint64_t *frequency; /* [half] */
    float *angle;        /* [lines, positions, 2, half]: cosines, then sines */
} plan;

static void find_frequencies(const plan *p) {
    const uint32_t *words = p->job.in[2];
    for (int64_t i = 0; i < p->v.half; i++)
        p->frequency[i] = ro_rope_words(words[2 * i], words[2 * i + 1]);
}

static void find_angles(void *user, int64_t first, int64_t last, int worker) {
    const plan *p = user;
    const uint64_t *restrict frequency = p->frequency;
    const int32_t *position = p->job.in[1];
    const int64_t half = p->v.half;
    const uint32_t flip = p->job.call->attr[RO_ROPE_INVERSE] ? UINT32_C(0x80000000) : 0;
    (void)worker;
    for (int64_t t = first; t < last; t++) {
        float *restrict cosine = p->angle + 2 * t * half;
        float *restrict sine = cosine + half;
        for (int64_t i = 0; i < half; i++) {
            const uint32_t turn = ro_rope_turn(frequency[i], position[t]);
            cosine[i] = ro_cos_turn(turn);
            sine[i] = ro_from_bits(ro_to_bits(ro_sin_turn(turn)) ^ flip);
        }
    }
}

/* Pairs (i, i + half). */
static void turn_halves(const float *restrict x, const float *restrict cosine,
                        const float *restrict sine, int64_t half, float *restrict out) {
    for (int64_t i = 0; i < half; i++) {
        const float a = x[i], b = x[half + i];
        out[i] = ro_canon(ro_fma(a, cosine[i], -(b * sine[i])));
        out[half + i] = ro_canon(ro_fma(b, cosine[i], a * sine[i]));
    }
}

/* Pairs (2i, 2i + 1). */
static void turn_neighbours(const float *restrict x, const float *restrict cosine,
                            const float *restrict sine, int64_t half, float *restrict out) {
    for (int64_t i = 0; i < half; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        out[2 * i] = ro_canon(ro_fma(a, cosine[i], -(b * sine[i])));
        out[2 * i + 1] = ro_canon(ro_fma(b, cosine[i], a * sine[i]));
    }
}

static void turn_rows(void *user, int64_t first, int64_t last, int worker) {
    const plan *p = user;
    const int64_t half = p->v.half;
    (void)worker;
    for (int64_t r = first; r < last; r++) {
        const float *x = (const float *)p->job.in[0] + 2 * r * half;
        const float *cosine = p->angle + 2 * ro_rotation_place(&p->v, r) * half;
        float *out = (float *)p->job.out + 2 * r * half;
        if (p->job.call->attr[RO_ROPE_PAIRS])
            turn_neighbours(x, cosine, cosine + half, half, out);
        else
            turn_halves(x, cosine, cosine + half, half, out);
    }
}

enum { PIECE = 16384 }; /* elements that are worth a wake-up */

static ro_status rope(const ro_job *job) {
    plan p = {*job, ro_rotation_of(job->call), NULL, NULL};
    const int64_t places = p.v.lines * p.v.positions, width = 2 * p.v.half;
    p.frequency = ro_workspace(job->ctx, (size_t)p.v.half * sizeof *p.frequency +
                                             (size_t)(places * width) * sizeof *p.angle);
    if (!p.frequency)
        return RO_ERR_MEMORY;
    p.angle = (float *)(p.frequency + p.v.half);
    find_frequencies(&p);
    ro_pool *pool = ro_ctx_pool(job->ctx);
    const int64_t grain = ceil_div(PIECE, width);
    ro_pool_for(pool, places, grain, find_angles, &p);
    ro_pool_for(pool, p.v.rows, grain, turn_rows, &p);
    return RO_OK;
}

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

void RO_NAME(ro_add_rope)(ro_table *table) {
    table->kernel[RO_OP_ROPE_TURNS] = (ro_kernel){.range = rope_turns};
    table->kernel[RO_OP_ROPE] = (ro_kernel){.run = rope};
}
