/* Files that are mapped. */
#include "verde/base/base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verde/base/internal.h"

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define PROTECTION (PROT_READ | PROT_WRITE)
#else
#define PROTECTION PROT_READ
#endif

/* A page that is missing brings its neighbours with it: Linux from 6.18 on its whole folio, which
 * has so many bytes at most; before, 64 KiB. */
enum { FAULT_AROUND = 2 << 20 };

/* A handler of signals reads the list without the lock. */
static _Atomic(vd_map *) maps;
static pthread_mutex_t maps_lock = PTHREAD_MUTEX_INITIALIZER;

static void put_in_list(vd_map *map) {
    pthread_mutex_lock(&maps_lock);
    map->next = atomic_load(&maps);
    atomic_store(&maps, map);
    pthread_mutex_unlock(&maps_lock);
}

static void take_from_list(const vd_map *map) {
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

/* Are these bytes in a file that is mapped? Finds its place and size. */
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

/* Bytes that were put in this machine's order are in no file. The first and the last page go with
 * their neighbours: the kernel has brought these, too. */
void vd_map_pass(const void *bytes, size_t size) {
    uint8_t *data;
    uint64_t file_size;
    if (PROTECTION != PROT_READ || !find_map(bytes, &data, &file_size))
        return;
    const uint64_t at = (uint64_t)((const uint8_t *)bytes - data);
    const uint64_t from = at / FAULT_AROUND * FAULT_AROUND;
    uint64_t end = (at + size + FAULT_AROUND - 1) / FAULT_AROUND * FAULT_AROUND;
    end = end < file_size ? end : file_size;
    madvise(data + from, (size_t)(end - from), MADV_DONTNEED);
}

static vd_status map_bytes(const char *path, vd_map *out, vd_err *err) {
    int fd;
    vd_status status = vd_open_file(path, &fd, &out->size, err);
    if (status != VD_OK)
        return status;
    void *data = out->size > SIZE_MAX
                     ? MAP_FAILED
                     : mmap(NULL, (size_t)out->size, PROTECTION, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        status = vd_fail_errno(err, "map", path);
    close(fd);
    if (status != VD_OK)
        return status;
    out->data = data;
    out->mapped = true;
    put_in_list(out);
    return VD_OK;
}

static vd_status read_bytes(const char *path, vd_map *out, vd_err *err) {
    vd_buf bytes = {0};
    vd_status status = vd_read_file(path, VD_MAP_BYTES_MIN, &bytes, err);
    out->data = bytes.data;
    out->size = bytes.size;
    return status;
}

vd_status vd_map_file(const char *path, vd_map *out, vd_err *err) {
    int fd;
    uint64_t size;
    *out = (vd_map){0};
    vd_status status = vd_open_file(path, &fd, &size, err);
    if (status != VD_OK)
        return status;
    close(fd);
    out->path = strdup(path);
    if (!out->path)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    status = size < VD_MAP_BYTES_MIN ? read_bytes(path, out, err) : map_bytes(path, out, err);
    if (status != VD_OK)
        vd_map_free(out);
    return status;
}

void vd_map_free(vd_map *map) {
    if (map->mapped) {
        take_from_list(map);
        munmap(map->data, (size_t)map->size);
    } else {
        free(map->data);
    }
    free(map->path);
    *map = (vd_map){0};
}
