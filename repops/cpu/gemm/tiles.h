/* AMX tile instructions, and whether this process may use them. Tests replace this header by
 * tests/support/tiles.h. */
#ifndef REPOPS_CPU_TILES_H
#define REPOPS_CPU_TILES_H

/* clang 14 has the instructions, but cannot test whether the processor supports them. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#define RO_HAVE_TILES 1
#endif

#ifdef RO_HAVE_TILES

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TILES __attribute__((target("amx-tile,amx-int8")))

/* A tile has 16 rows of 64 bytes, `apart` bytes from one to the next in memory. `t` is a
 * constant. */
#define TILE_ZERO(t)               _tile_zero(t)
#define TILE_LOAD(t, from, apart)  _tile_loadd(t, from, apart)
#define TILE_STORE(t, to, apart)   _tile_stored(t, to, apart)
#define TILE_MULTIPLY(sum, a, b)   _tile_dpbssd(sum, a, b)
#define TILE_CONFIGURE(descriptor) _tile_loadconfig(descriptor)
#define TILE_RELEASE()             _tile_release()

/* Asks Linux for the state of tiles, which it grants to each process on request, also repeatedly.
 * The answer is not kept: the library has no global state. */
static int have_tiles(void) {
    enum { ASK = 0x1023 /* ARCH_REQ_XCOMP_PERM */, TILE_DATA = 18 };
    return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8") &&
           syscall(SYS_arch_prctl, ASK, TILE_DATA) == 0;
}

#endif

#endif
