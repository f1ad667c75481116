/* Stores that bypass the caches, for outputs that are not read soon. */
#ifndef REPOPS_CPU_STREAM_H
#define REPOPS_CPU_STREAM_H

#include "repops/cpu/isa.h"

/* Elements from which caches do not keep an output until it is read. */
enum { STREAMED = 1 << 22 };

/* Stores x past the caches; p is aligned to a vector. */
#if defined(RO_ISA_avx512)
RO_INLINE void stream(float *p, vf x) {
    _mm512_stream_ps(p, x);
}
#elif defined(RO_ISA_avx2)
RO_INLINE void stream(float *p, vf x) {
    _mm256_stream_ps(p, x);
}
#else
RO_INLINE void stream(float *p, vf x) {
    vf_store(p, x);
}
#endif

/* Must be called before another thread reads what was streamed. */
RO_INLINE void end_stream(void) {
#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2)
    _mm_sfence();
#endif
}

/* Returns whether to stream rows: if no cache will keep them, and each begins at a cache line. */
RO_INLINE int rows_stream(const float *out, int64_t rows, int64_t cols) {
    return VW > 1 && (uintptr_t)out % 64 == 0 && cols % 16 == 0 && rows * cols >= STREAMED;
}

RO_INLINE void stream_run(float *restrict to, const float *restrict from, int64_t count) {
    for (int64_t i = 0; i < count; i += VW)
        stream(to + i, vf_load(from + i));
}

#endif
