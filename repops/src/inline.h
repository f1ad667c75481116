/* How functions and objects are declared. */
#ifndef RO_INLINE_H
#define RO_INLINE_H

/* For functions that hosts and devices share. `static` everywhere: objects for different
 * instruction sets may not share code. */
#if defined(__CUDACC__)
#define RO_INLINE static __host__ __device__ __forceinline__
#else
#define RO_INLINE static inline __attribute__((always_inline, unused))
#endif

/* Declares what another object of the same library defines, so that linking fails if none does.
 * Without it a shared library would link, and look for the symbol in others when it is loaded. */
#define RO_HIDDEN __attribute__((visibility("hidden")))

#endif
