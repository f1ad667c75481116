/* Tiles whose operands are packed. */
#include "repops/cpu/gemm/gemm_tile_body.h"

/* Runs a tile of at most one vector of columns, the last ones. */
static __attribute__((noinline)) void packed_vector(int rows, const tile *t) {
    tile_rows(rows, MR, 1, TILE_PACKED, t);
}

void RO_NAME(ro_tile_packed)(int rows, const tile *t) {
    if (t->cols <= VW && !t->start)
        packed_vector(rows, t);
    else
        tile_rows(rows, MR, NV, TILE_PACKED, t);
}
