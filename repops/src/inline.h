/* RO_INLINE, for functions that hosts and devices share. `static` everywhere: objects for different
 * instruction sets may not share code. */
#ifndef RO_INLINE_H
#define RO_INLINE_H

#if defined(__CUDACC__)
#define RO_INLINE static __host__ __device__ __forceinline__
#else
#define RO_INLINE static inline __attribute__((always_inline, unused))
#endif

#endif
