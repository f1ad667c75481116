/* The types of threads that headers need: WebAssembly has a single thread here. */
#ifndef VD_WASM_PTHREAD_H
#define VD_WASM_PTHREAD_H

#define __NEED_pthread_t
#define __NEED_pthread_mutex_t
#define __NEED_pthread_cond_t
#define __NEED_pthread_once_t
#include <bits/alltypes.h>

#define PTHREAD_ONCE_INIT 0
#define PTHREAD_MUTEX_INITIALIZER                                                                  \
    { 0 }

static inline int pthread_once(pthread_once_t *done, void (*call)(void)) {
    if (!*done)
        call();
    *done = 1;
    return 0;
}

#endif
