/* Tiles in place whose vectors are all whole. */
#include "repops/cpu/gemm/gemm_tile_body.h"

#if defined(RO_ISA_avx512)
TILES(ro_tile_four_quiet, WIDE_ROWS - 1, 4, TILE_QUIET)
TILES(ro_tile_two_quiet, MR, NV, TILE_QUIET)
#elif defined(RO_ISA_avx2)
TILES(ro_tile_twelve, WIDEST_ROWS, 12, TILE_WHOLE)
TILES(ro_tile_eight, WIDEST_ROWS, 8, TILE_WHOLE)
TILES(ro_tile_six, 2, 6, TILE_WHOLE)
TILES(ro_tile_four, WIDE_ROWS, 4, TILE_WHOLE)
TILES(ro_tile_four_quiet, WIDE_ROWS, 4, TILE_QUIET)
TILES(ro_tile_three, 4, 3, TILE_WHOLE)
TILES(ro_tile_two, MR, NV, TILE_WHOLE)
TILES(ro_tile_two_quiet, MR, NV, TILE_QUIET)
#endif
