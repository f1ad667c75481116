/* AMX's tile instructions in software, as Intel's manual defines them, instead of
 * repops/cpu/gemm/tiles.h: for machines without them. Use without a configuration, or with
 * addresses that are not aligned as the engine intends, ends the process. */
#ifndef TESTS_SUPPORT_TILES_H
#define TESTS_SUPPORT_TILES_H

#include <stdlib.h>
#include <string.h>

#define RO_HAVE_TILES 1
#define TILES

enum { TILES_ALL = 8, TILE_ROWS_ALL = 16, TILE_ROW_BYTES = 64 };

/* The operand of instruction ldtilecfg. */
typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_shapes;

static _Thread_local struct {
    int configured;
    _Alignas(64) uint8_t at[TILES_ALL][TILE_ROWS_ALL][TILE_ROW_BYTES];
} tiles;

static inline void tile_expect(int truth) {
    if (!truth)
        abort();
}

static inline void tile_configure(const void *descriptor) {
    tile_shapes s;
    memcpy(&s, descriptor, sizeof s);
    tile_expect(sizeof s == 64 && s.palette == 1 && s.start_row == 0);
    for (int t = 0; t < TILES_ALL; t++)
        tile_expect(s.rows[t] == TILE_ROWS_ALL && s.row_bytes[t] == TILE_ROW_BYTES);
    memset(&tiles, 0, sizeof tiles);
    tiles.configured = 1;
}

static inline void tile_release(void) {
    tile_expect(tiles.configured);
    memset(&tiles, 0xa5, sizeof tiles);
    tiles.configured = 0;
}

static inline void tile_zero(int t) {
    tile_expect(tiles.configured);
    memset(tiles.at[t], 0, sizeof tiles.at[t]);
}

static inline void tile_load(int t, const void *from, size_t apart) {
    tile_expect(tiles.configured && (uintptr_t)from % 64 == 0 && apart % 64 == 0);
    for (int r = 0; r < TILE_ROWS_ALL; r++)
        memcpy(tiles.at[t][r], (const char *)from + r * apart, TILE_ROW_BYTES);
}

static inline void tile_store(int t, void *to, size_t apart) {
    tile_expect(tiles.configured && (uintptr_t)to % 64 == 0 && apart % 64 == 0);
    for (int r = 0; r < TILE_ROWS_ALL; r++)
        memcpy((char *)to + r * apart, tiles.at[t][r], TILE_ROW_BYTES);
}

/* tdpbssd: a row of `sum` has 16 numbers of 32 bits, which wrap around. */
static inline void tile_multiply(int sum, int a, int b) {
    tile_expect(tiles.configured && sum != a && sum != b && a != b);
    for (int m = 0; m < TILE_ROWS_ALL; m++)
        for (int n = 0; n < TILE_ROW_BYTES / 4; n++) {
            uint32_t total;
            memcpy(&total, &tiles.at[sum][m][4 * n], 4);
            for (int k = 0; k < TILE_ROW_BYTES; k++)
                total += (uint32_t)((int8_t)tiles.at[a][m][k] *
                                    (int8_t)tiles.at[b][k / 4][4 * n + k % 4]);
            memcpy(&tiles.at[sum][m][4 * n], &total, 4);
        }
}

#define TILE_ZERO(t)               tile_zero(t)
#define TILE_LOAD(t, from, apart)  tile_load(t, from, apart)
#define TILE_STORE(t, to, apart)   tile_store(t, to, apart)
#define TILE_MULTIPLY(sum, a, b)   tile_multiply(sum, a, b)
#define TILE_CONFIGURE(descriptor) tile_configure(descriptor)
#define TILE_RELEASE()             tile_release()

static inline int have_tiles(void) {
    return 1;
}

#endif
