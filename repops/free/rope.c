/* Rotary position embedding, SPEC.md section 13: the cosines and sines are SPEC's, only the turn is
 * computed here. */
#include "repops/src/rope.h"
#include "repops/free/writer.h"

typedef struct {
    const ro_free_job *job;
    int64_t rows, positions, half;
    uint64_t *frequency; /* [half] */
    float *angle;        /* [positions, 2, half]: cosines, then sines */
} plan;

static void find_angles(void *user, int64_t first, int64_t last, int worker) {
    const plan *p = user;
    const ro_call *call = p->job->call;
    (void)worker;
    for (int64_t t = first; t < last; t++) {
        float *cosine = p->angle + 2 * t * p->half, *sine = cosine + p->half;
        for (int64_t i = 0; i < p->half; i++) {
            const uint32_t turn = ro_rope_turn(p->frequency[i], (uint64_t)(call->attr[1] + t));
            cosine[i] = ro_cos_turn(turn);
            sine[i] = call->attr[3] ? -ro_sin_turn(turn) : ro_sin_turn(turn);
        }
    }
}

/* a, b: the halves; c, d: cosines and sines. */
RO_INLINE approx first_of(operands o, int64_t i, order how) {
    return ap_mul_add(at(o.a, i), at(o.c, i), ap_negative(ap_mul(at(o.b, i), at(o.d, i))), how);
}

RO_INLINE approx second_of(operands o, int64_t i, order how) {
    return ap_mul_add(at(o.b, i), at(o.c, i), ap_mul(at(o.a, i), at(o.d, i)), how);
}

/* a: pairs of neighbours. */
RO_INLINE approx neighbour_of(operands o, int64_t i, order how) {
    const approx mine = at(o.a, i), other = at(o.a, i ^ 1);
    const approx turned = ap_mul(other, at(o.d, i / 2));
    return ap_mul_add(mine, at(o.c, i / 2), i & 1 ? turned : ap_negative(turned), how);
}

RO_INLINE void turn_rows(const plan *p, int64_t first, int64_t last, ro_emitter *t, order how) {
    writer w;
    writer_open(&w, t, 2 * first * p->half);
    for (int64_t r = first; r < last; r++) {
        operands o = {.a = free_in(p->job, 0) + 2 * r * p->half};
        o.b = o.a + p->half;
        o.c = p->angle + 2 * (r % p->positions) * p->half;
        o.d = o.c + p->half;
        if (p->job->call->attr[2]) {
            write_each(&w, neighbour_of, o, 2 * p->half, how);
        } else {
            write_each(&w, first_of, o, p->half, how);
            write_each(&w, second_of, o, p->half, how);
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

enum { PIECE = 16384 }; /* elements that are worth a wake-up */

static ro_status rope(const ro_free_job *job) {
    const ro_shape *x = &job->call->input[0];
    const int64_t width = x->dim[x->ndim - 1], positions = x->dim[x->ndim - 2];
    plan p = {job, free_numel(job, 0) / width, positions, width / 2, NULL, NULL};
    p.frequency = ro_workspace(job->ctx, (size_t)p.half * sizeof *p.frequency +
                                             (size_t)(positions * width) * sizeof *p.angle);
    if (!p.frequency)
        return RO_ERR_MEMORY;
    p.angle = (float *)(p.frequency + p.half);
    const uint64_t log = ro_rope_log((uint32_t)job->call->attr[0]);
    for (int64_t i = 0; i < p.half; i++)
        p.frequency[i] = ro_rope_frequency(log, (uint64_t)p.half, (uint64_t)i);
    ro_pool_for(ro_ctx_pool(job->ctx), positions, ceil_div(PIECE, width), find_angles, &p);
    ro_pool_for(ro_ctx_pool(job->ctx), p.rows, ceil_div(PIECE, width), turn, &p);
    return RO_OK;
}

const ro_free_kernel *RO_FREE_NAME(ro_free_rope)(int op) {
    static const ro_free_kernel kernel[RO_OP_END] = {[RO_OP_ROPE] = {.run = rope}};
    return free_kernel_in(kernel, op);
}
