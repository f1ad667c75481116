/* This file keeps the list of mapped files. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "verde/base/internal.h"

/* Most bytes that a page fault maps around the missing page: a whole folio from Linux 6.18 on;
 * before, 64 KiB. */
enum { FAULT_AROUND = 2 << 20 };

/* Signal handlers read the list without the lock. */
static _Atomic(vd_map *) maps;
static pthread_mutex_t maps_lock = PTHREAD_MUTEX_INITIALIZER;

void vd_map_note(vd_map *map) {
    pthread_mutex_lock(&maps_lock);
    map->next = atomic_load(&maps);
    atomic_store(&maps, map);
    pthread_mutex_unlock(&maps_lock);
}

void vd_map_forget(const vd_map *map) {
    pthread_mutex_lock(&maps_lock);
    vd_map *at = atomic_load(&maps);
    if (at == map)
        atomic_store(&maps, map->next);
    for (; at; at = at->next)
        if (at->next == map)
            at->next = map->next;
    pthread_mutex_unlock(&maps_lock);
}

const char *vd_map_at(const void *address) {
    const uint8_t *at = address;
    for (const vd_map *m = atomic_load(&maps); m; m = m->next)
        if (at >= m->data && (uint64_t)(at - m->data) < m->size)
            return m->path;
    return NULL;
}

/* Finds the map that contains these bytes, its address and size. False: they are not mapped. */
static bool find_map(const uint8_t *bytes, uint8_t **data, uint64_t *size) {
    bool found = false;
    pthread_mutex_lock(&maps_lock);
    for (const vd_map *m = atomic_load(&maps); m && !found; m = m->next) {
        found = bytes >= m->data && (uint64_t)(bytes - m->data) < m->size;
        *data = m->data;
        *size = m->size;
    }
    pthread_mutex_unlock(&maps_lock);
    return found;
}

/* Releases the pages of these bytes. On a big-endian machine they stay: they were changed in place,
 * so the file has them in another order. Pages around the first and the last one are released too,
 * because faults have mapped them. */
void vd_map_pass(const void *bytes, size_t size) {
    uint8_t *data;
    uint64_t file_size;
    if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ || !find_map(bytes, &data, &file_size))
        return;
    const uint64_t at = (uint64_t)((const uint8_t *)bytes - data);
    const uint64_t from = at / FAULT_AROUND * FAULT_AROUND;
    uint64_t end = (at + size + FAULT_AROUND - 1) / FAULT_AROUND * FAULT_AROUND;
    end = end < file_size ? end : file_size;
    madvise(data + from, (size_t)(end - from), MADV_DONTNEED);
}
