/* What anybody may know of a running provider: `GET /v1/health` and `GET /v1/metrics`. PROTOCOL.md
 * sections 8.1 and 8.7. */
#ifndef VD_METER_H
#define VD_METER_H

#include <stdatomic.h>

#include "verde/net/net.h"

typedef struct {
    double started; /* vd_seconds() */
    atomic_llong requests, refused;
} vd_meter;

/* Returns the free space of `dir`'s disk and its size. False: they are not known. */
bool vd_meter_disk(const char *dir, int64_t *free_bytes, int64_t *size_bytes);
/* Responds with {"confined": ..., "status": ...}. */
void vd_meter_health(bool confined, const char *status, vd_response *response);
/* Appends disk of `dir`, requests, time and memory to the body, in the text format of
 * Prometheus. */
void vd_meter_put(const vd_meter *meter, const char *dir, vd_response *response);

#endif
