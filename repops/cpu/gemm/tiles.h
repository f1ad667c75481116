/* Tile instructions of AMX, and whether this process may use them. A test puts a header of its own
 * in this one's place, tests/support/tiles.h. */
#ifndef REPOPS_CPU_TILES_H
#define REPOPS_CPU_TILES_H

#if defined(__has_include)
#if __has_include(<amxint8intrin.h>)
#define RO_HAVE_TILES 1
#endif
#endif

#ifdef RO_HAVE_TILES

#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TILES __attribute__((target("amx-tile,amx-int8")))

/* A tile has 16 rows of 64 bytes, which are `apart` bytes apart in memory. `t` is a constant. */
#define TILE_ZERO(t)               _tile_zero(t)
#define TILE_LOAD(t, from, apart)  _tile_loadd(t, from, apart)
#define TILE_STORE(t, to, apart)   _tile_stored(t, to, apart)
#define TILE_MULTIPLY(sum, a, b)   _tile_dpbssd(sum, a, b)
#define TILE_CONFIGURE(descriptor) _tile_loadconfig(descriptor)
#define TILE_RELEASE()             _tile_release()

/* Linux gives a process the tiles' state when it asks; all of its threads have it then. */
static int ask_for_tiles(void) {
    enum { ASK = 0x1023 /* ARCH_REQ_XCOMP_PERM */, TILE_DATA = 18 };
    const unsigned wanted = 1u << 24 | 1u << 25; /* amx-tile, amx-int8 */
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & wanted) == wanted &&
           syscall(SYS_arch_prctl, ASK, TILE_DATA) == 0;
}

/* Asks once: cpuid takes microseconds in a virtual machine. */
static int have_tiles(void) {
    enum { NONE = 1, SOME };
    static atomic_int answer;
    if (atomic_load(&answer) == 0)
        atomic_store(&answer, ask_for_tiles() ? SOME : NONE);
    return atomic_load(&answer) == SOME;
}

#endif

#endif
