/* Calls from simt.cc to traffic.cc, if both are compiled with SIMT_TRAFFIC, by which accesses of a
 * warp's lanes are grouped. Otherwise they do nothing. */
#ifndef SIMT_TRAFFIC_H
#define SIMT_TRAFFIC_H

#include <stddef.h>

namespace simt {
namespace traffic {
#if defined(SIMT_TRAFFIC)
void begin(const char *shared, size_t size); /* at a launch */
void end();
void run(unsigned lane);
void meet(); /* all lanes that ran are at a barrier, or have ended */
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
