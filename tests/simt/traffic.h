/* Calls from simt.cc to traffic.cc where both are compiled with SIMT_TRAFFIC: which accesses the
 * lanes of a warp make at once. Elsewhere they do nothing. */
#ifndef SIMT_TRAFFIC_H
#define SIMT_TRAFFIC_H

#include <stddef.h>

namespace simt {
namespace traffic {
#if defined(SIMT_TRAFFIC)
void begin(const char *shared, size_t size); /* a launch */
void end();
void run(unsigned lane);
void meet(); /* all lanes that ran are at a barrier, or ended */
void access(const void *code, const void *address, size_t size);
#else
static inline void begin(const char *, size_t) {}
static inline void end() {}
static inline void run(unsigned) {}
static inline void meet() {}
static inline void access(const void *, const void *, size_t) {}
#endif
} // namespace traffic
bool on_device(const void *address);
} // namespace simt

#endif
