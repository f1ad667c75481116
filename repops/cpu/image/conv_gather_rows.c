/* Copies the rows of a part (conv_gather_part.h) that tiles cannot read in the image: with one
 * stride, or transposed. */
#include "repops/cpu/image/conv_gather_part.h"

static const float *term_of(const gather_part *s, const gather_place *at, const piece *p) {
    const float *pixel = pixel_of(s->g, at, p);
    return pixel ? pixel + s->group * s->g->depth : NULL;
}

static void copy_steps(const float *from, int64_t steps, float *to) {
    int64_t p = 0;
    for (; from && p + VW <= steps; p += VW)
        vf_store(to + p, vf_load(from + p));
    for (; p < steps; p += VW)
        vf_store(to + p, from ? vf_load_n(from + p, steps - p) : vf_set1(0.0f));
}

/* Pieces that are contiguous in the image are copied at once if the first and the last pixel of a
 * window's line are inside. */
static void copy_row(const gather_part *s, const gather_place *at, float *to) {
    for (int64_t q = s->first, end; q < s->last; q = end) {
        const piece *p = &s->pieces[q];
        end = p->beside;
        const float *from = term_of(s, at, p), *behind = term_of(s, at, &s->pieces[end - 1]);
        if (from && behind && end <= s->last) {
            const int64_t steps = behind - from + s->pieces[end - 1].steps;
            copy_steps(from, steps, to);
            to += steps;
            continue;
        }
        copy_steps(from, p->steps, to);
        to += p->steps, end = q + 1;
    }
}

/* Transposes up to VW steps of up to VW rows. */
RO_INLINE void gather_square(const float *const *from, int64_t rows, int64_t p, int64_t steps,
                             float *to) {
    vf r[VW];
    for (int64_t i = 0; i < VW; i++)
        r[i] = i < rows && from[i] ? vf_load_n(from[i] + p, steps) : vf_set1(0.0f);
    transpose(r);
    for (int64_t i = 0; i < steps; i++)
        vf_store(to + (p + i) * rows, r[i]);
}

/* Transposes the steps of up to MR rows. Stores run into the next steps, which are stored later. */
static void gather_steps(const float *const *from, int64_t rows, int64_t steps, float *to) {
    if ((int)VW >= (int)MR && steps >= VW / 4) {
        for (int64_t p = 0; p < steps; p += VW)
            gather_square(from, rows, p, min_i64(VW, steps - p), to);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t p = 0; p < steps; p++)
            to[p * rows + i] = from[i] ? from[i][p] : 0.0f;
}

static void transpose_rows(const gather_part *s, const gather_place *at, int64_t rows, float *to) {
    const float *from[MR];
    for (int64_t q = s->first; q < s->last; q++) {
        const piece *p = &s->pieces[q];
        for (int64_t i = 0; i < rows; i++)
            from[i] = term_of(s, &at[i], p);
        gather_steps(from, rows, p->steps, to);
        to += p->steps * rows;
    }
}

void RO_NAME(ro_conv_gather_rows)(const gather_part *s, int64_t row0, int64_t m) {
    gather_place at[MR], next = place_of(s->b, s->b->row + row0);
    for (int64_t row = row0, rows; row < row0 + m; row += rows) {
        float *to = kept_rows(s, row0, row);
        rows = tile_rows_at(s, row);
        for (int64_t i = 0; i < rows; i++, next_place(s->b, &next)) {
            at[i] = next;
            if (s->layout == COPIED)
                copy_row(s, &next, to + i * s->a_row);
        }
        if (s->layout == TRANSPOSED)
            transpose_rows(s, at, rows, to);
    }
}
