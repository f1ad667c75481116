/* Macros for declaring functions and objects. */
#ifndef RO_INLINE_H
#define RO_INLINE_H

/* For functions that host and device code share. They are static, since objects compiled for
 * different instruction sets may not share code. */
#if defined(__CUDACC__)
#define RO_INLINE static __host__ __device__ __forceinline__
#else
#define RO_INLINE static inline __attribute__((always_inline, unused))
#endif

/* Declares a symbol that another object of the same library defines, so that linking fails if none
 * does. Otherwise a shared library would link without it and look for the symbol in other libraries
 * when it is loaded. */
#define RO_HIDDEN __attribute__((visibility("hidden")))

#endif
