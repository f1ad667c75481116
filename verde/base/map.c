/* Files that are mapped. */
#include "verde/base/base.h"

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
    vd_map_note(out);
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
        vd_map_forget(map);
        munmap(map->data, (size_t)map->size);
    } else {
        free(map->data);
    }
    free(map->path);
    *map = (vd_map){0};
}
