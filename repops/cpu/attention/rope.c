/* Rotary position embedding, SPEC.md section 13: first the cosines and sines of each position, then
 * every row with those of its position. */
#include "repops/src/rope.h"
#include "repops/cpu/isa.h"

typedef struct {
    ro_job job;
    int64_t rows, positions, half;
    uint64_t *frequency; /* [half] */
    float *angle;        /* [positions, 2, half]: cosines, then sines */
} plan;

static void find_frequencies(const plan *p) {
    const uint64_t log = ro_rope_log((uint32_t)p->job.call->attr[0]);
    for (int64_t i = 0; i < p->half; i++)
        p->frequency[i] = ro_rope_frequency(log, (uint64_t)p->half, (uint64_t)i);
}

static void find_angles(void *user, int64_t first, int64_t last, int worker) {
    const plan *p = user;
    const uint64_t *restrict frequency = p->frequency;
    const uint32_t flip = p->job.call->attr[3] ? UINT32_C(0x80000000) : 0;
    (void)worker;
    for (int64_t t = first; t < last; t++) {
        const uint64_t position = (uint64_t)(p->job.call->attr[1] + t);
        float *restrict cosine = p->angle + 2 * t * p->half;
        float *restrict sine = cosine + p->half;
        for (int64_t i = 0; i < p->half; i++) {
            const uint32_t turn = ro_rope_turn(frequency[i], position);
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
    (void)worker;
    for (int64_t r = first; r < last; r++) {
        const float *x = (const float *)p->job.in[0] + 2 * r * p->half;
        const float *cosine = p->angle + 2 * (r % p->positions) * p->half;
        float *out = (float *)p->job.out + 2 * r * p->half;
        if (p->job.call->attr[2])
            turn_neighbours(x, cosine, cosine + p->half, p->half, out);
        else
            turn_halves(x, cosine, cosine + p->half, p->half, out);
    }
}

enum { PIECE = 16384 }; /* elements that are worth a wake-up */

static ro_status rope(const ro_job *job) {
    const ro_shape *x = &job->call->input[0];
    const int64_t width = x->dim[x->ndim - 1], positions = x->dim[x->ndim - 2];
    plan p = {*job, in_numel(job, 0) / width, positions, width / 2, NULL, NULL};
    p.frequency = ro_workspace(job->ctx, (size_t)p.half * sizeof *p.frequency +
                                             (size_t)(positions * width) * sizeof *p.angle);
    if (!p.frequency)
        return RO_ERR_MEMORY;
    p.angle = (float *)(p.frequency + p.half);
    find_frequencies(&p);
    ro_pool *pool = ro_ctx_pool(job->ctx);
    const int64_t grain = ceil_div(PIECE, width);
    ro_pool_for(pool, positions, grain, find_angles, &p);
    ro_pool_for(pool, p.rows, grain, turn_rows, &p);
    return RO_OK;
}

void RO_NAME(ro_add_rope)(ro_table *table) {
    table->kernel[RO_OP_ROPE] = (ro_kernel){.run = rope};
}
