/* ro_rotary and ro_rotary_backward, SPEC.md section 13: one launch turns rows of tokens and
 * rearranges them by heads, or back. */
#include "repops/cuda/cuda.cuh"
#include "repops/src/rope.h"

enum { ROTARY_THREADS = 256, ROTARY_HEADS = 4 /* heads of a thread, which share their angle */ };

/* Items are [batch * tokens, groups of heads, half]. */
struct rotary_plan {
    ro_rotary_job j;
    ro_divider half, groups, tokens;
};

/* A pair of one token: its offsets in `from` and `to`, and its numbers. */
struct rotary_pair {
    int64_t from, to;
    float a, b;
};

__global__ void __launch_bounds__(ROTARY_THREADS)
    rotary_kernel(const __grid_constant__ rotary_plan p, int64_t items) {
    const ro_rotary_job &j = p.j;
    const int64_t item = (int64_t)blockIdx.x * ROTARY_THREADS + threadIdx.x;
    if (item >= items)
        return;
    const int64_t group = p.half.quotient(item), i = item - group * p.half.divisor;
    const int64_t token = p.groups.quotient(group), line = p.tokens.quotient(token);
    const int64_t place = token - line * p.tokens.divisor, size = j.layer.head_size;
    const int64_t first = (group - token * p.groups.divisor) * ROTARY_HEADS;
    const uint64_t f = ro_rope_words((uint32_t)j.turns[2 * i], (uint32_t)j.turns[2 * i + 1]);
    const uint32_t turn = ro_rope_turn(f, j.position[j.layer.each ? token : place]);
    const float cosine = ro_cos_turn(turn),
                sine = j.inverse ? -ro_sin_turn(turn) : ro_sin_turn(turn);
    const int64_t at = j.layer.neighbours ? 2 * i : i;
    const int64_t apart = j.layer.neighbours ? 1 : p.half.divisor;
    rotary_pair pair[ROTARY_HEADS];
#pragma unroll
    for (int u = 0; u < ROTARY_HEADS; u++)
        if (first + u < j.layer.heads) {
            const int64_t h = first + u, row = (token * j.layer.heads + h) * size + at;
            const int64_t head =
                ((line * j.layer.heads + h) * p.tokens.divisor + place) * size + at;
            rotary_pair &v = pair[u];
            v.from = j.inverse ? head : row, v.to = j.inverse ? row : head;
            v.a = j.from[v.from], v.b = j.from[v.from + apart];
        }
#pragma unroll
    for (int u = 0; u < ROTARY_HEADS; u++)
        if (first + u < j.layer.heads) {
            const rotary_pair &v = pair[u];
            float *to = j.to.data + v.to;
            const float a = ro_canon(ro_fma(v.a, cosine, -(v.b * sine)));
            const float b = ro_canon(ro_fma(v.b, cosine, v.a * sine));
            to[0] = j.to.add ? ro_canon(to[0] + a) : a;
            to[apart] = j.to.add ? ro_canon(to[apart] + b) : b;
        }
}

ro_status ro_cuda_rotary(ro_cuda *d, const ro_rotary_job *j) {
    const ro_rotary_layer &l = j->layer;
    const int64_t half = l.head_size / 2, groups = ceil_div(l.heads, ROTARY_HEADS);
    const int64_t items = l.batch * l.tokens * groups * half;
    const rotary_plan p = {*j, ro_divider(half), ro_divider(groups), ro_divider(l.tokens)};
    RO_LAUNCH(rotary_kernel, ro_grid(ceil_div(items, ROTARY_THREADS)), dim3(ROTARY_THREADS), 0,
              d->stream, p, items);
    return ro_cuda_launched(d, "rotary");
}
