/* Tiles whose operands are read in place. */
#include "repops/cpu/gemm/gemm_tile_body.h"

#if defined(RO_ISA_avx512)
static __attribute__((noinline)) void four_rows(const tile *t) {
    tile_body(4, 4, 6, TILE_PLACE, t);
}

static __attribute__((noinline)) void three_vectors(int rows, const tile *t) {
    tile_rows(rows, 8, 3, TILE_PLACE, t);
}
#elif defined(RO_ISA_avx2)
static __attribute__((noinline)) void two_in_part(int rows, const tile *t) {
    tile_rows(rows, MR, NV, TILE_PLACE, t);
}

static __attribute__((noinline)) void one_vector(int rows, const tile *t) {
    tile_rows(rows, MR_MOST, 1, TILE_PLACE, t);
}
#endif

/* Tiles of few rows are wider, which keeps the multipliers busy. AVX-512 needs no instances for
 * whole vectors here, as its masks cost nothing. */
void RO_NAME(ro_tile_place)(int rows, const tile *t) {
    if (t->next && rows <= MR && t->cols == place_cols(rows, NV_MOST * VW)) {
        RO_NAME(ro_tile_next)(rows, t);
        return;
    }
#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2)
    const int quiet = t->a_step == 1 && !t->ahead && t->k < FAR_K;
#endif
#if defined(RO_ISA_avx512)
    if (quiet && t->cols == NR)
        RO_NAME(ro_tile_two_quiet)(rows, t);
    else if (quiet && t->cols == 4 * VW && rows < WIDE_ROWS)
        RO_NAME(ro_tile_four_quiet)(rows, t);
    else if (t->cols > 4 * VW && rows == 4)
        four_rows(t);
    else if (t->cols > 4 * VW)
        tile_rows(rows, WIDEST_ROWS, 8, TILE_PLACE, t);
    else if (t->cols > 3 * VW)
        tile_rows(rows, WIDE_ROWS, 4, TILE_PLACE, t);
    else if (t->cols > NR)
        three_vectors(rows, t);
    else if (t->cols > VW)
        tile_rows(rows, MR, NV, TILE_PLACE, t);
    else if (t->cols > VW / 2 || rows <= WIDE_ROWS)
        tile_rows(rows, MR_MOST, 1, TILE_PLACE, t);
    else
        RO_NAME(ro_tile_half)(rows, t);
#elif defined(RO_ISA_avx2)
    if (t->cols == NR)
        (quiet ? RO_NAME(ro_tile_two_quiet) : RO_NAME(ro_tile_two))(rows, t);
    else if (t->cols == 4 * VW)
        (quiet ? RO_NAME(ro_tile_four_quiet) : RO_NAME(ro_tile_four))(rows, t);
    else if (t->cols == 12 * VW)
        RO_NAME(ro_tile_twelve)(rows, t);
    else if (t->cols == 8 * VW)
        RO_NAME(ro_tile_eight)(rows, t);
    else if (t->cols == 6 * VW)
        RO_NAME(ro_tile_six)(rows, t);
    else if (t->cols == 3 * VW)
        RO_NAME(ro_tile_three)(rows, t);
    else if (t->cols > VW)
        two_in_part(rows, t);
    else
        one_vector(rows, t);
#else
    if (t->cols == NR)
        tile_rows(rows, MR, NV, TILE_WHOLE, t);
    else
        tile_rows(rows, MR, NV, TILE_PLACE, t);
#endif
}
