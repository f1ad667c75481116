/* Rotary position embedding, SPEC.md section 13: cosines and sines are those of SPEC; only the turn
 * is free. */
#include "repops/src/rope.h"
#include "repops/free/writer.h"
#include "repops/op_attention.h"

typedef struct {
    const ro_free_job *job;
    ro_rotation v;
    float *angle; /* [lines, positions, 2, half]: cosines, then sines */
} plan;

static void find_angles(void *user, int64_t first, int64_t last, int worker) {
    const plan *p = user;
    const int32_t *position = p->job->in[1];
    const uint32_t *words = p->job->in[2];
    (void)worker;
    for (int64_t t = first; t < last; t++) {
        float *cosine = p->angle + 2 * t * p->v.half, *sine = cosine + p->v.half;
        for (int64_t i = 0; i < p->v.half; i++) {
            const uint64_t f = ro_rope_words(words[2 * i], words[2 * i + 1]);
            const uint32_t turn = ro_rope_turn(f, position[t]);
            cosine[i] = ro_cos_turn(turn);
            sine[i] = p->job->call->attr[RO_ROPE_INVERSE] ? -ro_sin_turn(turn) : ro_sin_turn(turn);
        }
    }
}

/* a, b: the halves of a row; c, d: cosines and sines. */
RO_INLINE approx first_of(operands o, int64_t i, order how) {
    return ap_mul_add(at(o.a, i), at(o.c, i), ap_negative(ap_mul(at(o.b, i), at(o.d, i))), how);
}

RO_INLINE approx second_of(operands o, int64_t i, order how) {
    return ap_mul_add(at(o.b, i), at(o.c, i), ap_mul(at(o.a, i), at(o.d, i)), how);
}

/* a: a row of pairs of neighbours; c, d: cosines and sines. */
RO_INLINE approx neighbour_of(operands o, int64_t i, order how) {
    const approx mine = at(o.a, i), other = at(o.a, i ^ 1);
    const approx turned = ap_mul(other, at(o.d, i / 2));
    return ap_mul_add(mine, at(o.c, i / 2), i & 1 ? turned : ap_negative(turned), how);
}

RO_INLINE void turn_rows(const plan *p, int64_t first, int64_t last, ro_emitter *t, order how) {
    writer w;
    const int64_t half = p->v.half;
    writer_open(&w, t, 2 * first * half);
    for (int64_t r = first; r < last; r++) {
        operands o = {.a = free_in(p->job, 0) + 2 * r * half};
        o.b = o.a + half;
        o.c = p->angle + 2 * ro_rotation_place(&p->v, r) * half;
        o.d = o.c + half;
        if (p->job->call->attr[RO_ROPE_PAIRS]) {
            write_each(&w, neighbour_of, o, 2 * half, how);
        } else {
            write_each(&w, first_of, o, half, how);
            write_each(&w, second_of, o, half, how);
        }
    }
    writer_flush(&w);
}

static void turn(void *user, int64_t first, int64_t last, int worker) {
    const plan *p = user;
    if (p->job->profile->contract)
        turn_rows(p, first, last, &p->job->emitter[worker], (order){1, 0});
    else
        turn_rows(p, first, last, &p->job->emitter[worker], (order){0, 0});
}

enum { PIECE = 16384 }; /* elements that are worth waking a thread for */

static ro_status rope(const ro_free_job *job) {
    plan p = {job, ro_rotation_of(job->call), NULL};
    const int64_t places = p.v.lines * p.v.positions, width = 2 * p.v.half;
    p.angle = ro_workspace(job->ctx, (size_t)(places * width) * sizeof *p.angle);
    if (!p.angle)
        return RO_ERR_MEMORY;
    ro_pool_for(ro_ctx_pool(job->ctx), places, ceil_div(PIECE, width), find_angles, &p);
    ro_pool_for(ro_ctx_pool(job->ctx), p.v.rows, ceil_div(PIECE, width), turn, &p);
    return RO_OK;
}
RO_FREE_KERNEL(rope, .run = rope)
