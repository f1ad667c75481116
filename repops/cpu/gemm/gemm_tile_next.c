/* Tiles in place that prefetch the next columns of b. */
#include "repops/cpu/gemm/gemm_tile_body.h"

void RO_NAME(ro_tile_next)(int rows, const tile *t) {
    switch (rows) {
#if defined(RO_ISA_avx512)
    case 1: tile_body(1, MR, 8, TILE_NEXT, t); break;
    case 2: tile_body(2, MR, 8, TILE_NEXT, t); break;
    case 3: tile_body(3, MR, 8, TILE_NEXT, t); break;
    case 4: tile_body(4, MR, 6, TILE_NEXT, t); break;
    case 5: tile_body(5, MR, 4, TILE_NEXT, t); break;
    case 6: tile_body(6, MR, 4, TILE_NEXT, t); break;
    case 7: tile_body(7, MR, 4, TILE_NEXT, t); break;
    case 8: tile_body(8, MR, 3, TILE_NEXT, t); break;
#elif defined(RO_ISA_avx2)
    case 1: tile_body(1, MR, 12, TILE_NEXT, t); break;
    case 2: tile_body(2, MR, 6, TILE_NEXT, t); break;
    case 3: tile_body(3, MR, 4, TILE_NEXT, t); break;
    case 4: tile_body(4, MR, 3, TILE_NEXT, t); break;
#endif
    default: tile_rows(rows, MR, NV, TILE_NEXT, t); break;
    }
}
