/* Tiles with a in place and b packed. */
#include "repops/cpu/gemm/gemm_tile_body.h"

void RO_NAME(ro_tile_runs)(int rows, const tile *t) {
#if defined(RO_ISA_avx512)
    if (t->cols <= VW / 2 && rows > WIDE_ROWS) {
        RO_NAME(ro_tile_half)(rows, t);
        return;
    }
#endif
    if (t->cols > VW)
        tile_rows(rows, MR, NV, TILE_RUNS, t);
    else
        tile_rows(rows, MR, 1, TILE_RUNS, t);
}

void RO_NAME(ro_tile_lanes)(int rows, const tile *t) {
    if (t->cols > VW)
        tile_rows(rows, MR, NV, TILE_LANES, t);
    else
        tile_rows(rows, MR, 1, TILE_LANES, t);
}
