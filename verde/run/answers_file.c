/* This file writes one file of answers, and joins several into a safetensors file. */
#include "verde/run/answers_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEADER = 256,    /* bytes before an .npy file's data; a multiple of 64 */
    PIECE = 1 << 20, /* bytes copied or compared at a time */
};

const char *vd_answer_type(ro_dtype dtype) {
    switch (dtype) {
    case RO_F32: return "<f4";
    case RO_I32: return "<i4";
    case RO_U8: return "|u1";
    case RO_U16: return "<u2";
    case RO_F16: return "<f2";
    case RO_I8: return "|i1";
    default: return NULL;
    }
}

static const char *safetensors_type(ro_dtype dtype) {
    switch (dtype) {
    case RO_F32: return "F32";
    case RO_I32: return "I32";
    case RO_U8: return "U8";
    case RO_U16: return "U16";
    case RO_F16: return "F16";
    default: return "I8";
    }
}

static size_t row_bytes(const vd_answer_file *f) {
    return vd_shape_bytes(&f->shape) / (size_t)f->shape.dim[0];
}

/* ---- bytes at a place ---- */

static vd_status write_at(int fd, const char *path, const void *bytes, size_t size, uint64_t at,
                          vd_err *err) {
    const uint8_t *from = bytes;
    while (size > 0) {
        const ssize_t put = pwrite(fd, from, size < PIECE ? size : PIECE, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return vd_fail(err, VD_ERR_LOCAL, "cannot write %s: %s", path, strerror(errno));
        from += put;
        at += (uint64_t)put;
        size -= (size_t)put;
    }
    return VD_OK;
}

/* Reads at an offset. *got is less than `size` at the end of the file. */
static vd_status read_at(int fd, const char *path, void *bytes, size_t size, uint64_t at,
                         size_t *got, vd_err *err) {
    for (*got = 0; *got < size;) {
        const ssize_t part = pread(fd, (uint8_t *)bytes + *got, size - *got, (off_t)(at + *got));
        if (part < 0 && errno == EINTR)
            continue;
        if (part < 0)
            return vd_fail(err, VD_ERR_LOCAL, "cannot read %s: %s", path, strerror(errno));
        if (part == 0)
            break;
        *got += (size_t)part;
    }
    return VD_OK;
}

static vd_status compare_at(int fd, const char *path, const void *bytes, size_t size, uint64_t at,
                            vd_err *err) {
    uint8_t there[1 << 16];
    for (size_t done = 0, got; done < size; done += got) {
        const size_t wish = size - done < sizeof there ? size - done : sizeof there;
        vd_status status = read_at(fd, path, there, wish, at + done, &got, err);
        if (status != VD_OK)
            return status;
        if (got < wish || memcmp(there, (const uint8_t *)bytes + done, wish) != 0)
            return vd_fail(err, VD_ERR_PEER,
                           "%s: has other bytes from byte %llu on than what was committed to", path,
                           (unsigned long long)(at + done));
    }
    return VD_OK;
}

static vd_status put(int fd, const char *path, bool checks, const void *bytes, size_t size,
                     uint64_t at, vd_err *err) {
    return checks ? compare_at(fd, path, bytes, size, at, err)
                  : write_at(fd, path, bytes, size, at, err);
}

static vd_status check_size(int fd, const char *path, uint64_t size, vd_err *err) {
    struct stat info;
    if (fstat(fd, &info) != 0)
        return vd_fail(err, VD_ERR_LOCAL, "cannot look at %s: %s", path, strerror(errno));
    return (uint64_t)info.st_size == size
               ? VD_OK
               : vd_fail(err, VD_ERR_PEER, "%s: has %llu bytes, expected %llu", path,
                         (unsigned long long)info.st_size, (unsigned long long)size);
}

/* ---- NAME.npy ---- */

static void part_of(const char *path, char out[1400]) {
    snprintf(out, 1400, "%s.part", path);
}

vd_status vd_answer_open(vd_answer_file *f, bool checks, vd_err *err) {
    char part[1400];
    uint64_t size;
    if (checks)
        return vd_open_file(f->path, &f->fd, &size, err);
    part_of(f->path, part);
    vd_status status = vd_open_update(part, false, 0644, &f->fd, &size, err);
    if (status == VD_OK && ftruncate(f->fd, 0) != 0)
        status = vd_fail(err, VD_ERR_LOCAL, "cannot write %s: %s", part, strerror(errno));
    return status;
}

vd_status vd_answer_rows(vd_answer_file *f, bool checks, int64_t first, int64_t rows,
                         const void *data, vd_err *err) {
    const size_t row = row_bytes(f), size = row * (size_t)rows;
    void *copy = NULL;
    const void *little = vd_to_little(data, size, ro_dtype_size(f->shape.dtype), &copy);
    vd_status status =
        little ? put(f->fd, f->path, checks, little, size, HEADER + row * (uint64_t)first, err)
               : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    free(copy);
    return status;
}

/* Makes a header of numpy's format, version 1.0: a dictionary, padded with spaces to a line's
 * end. */
static void make_header(const vd_answer_file *f, int64_t rows, char out[HEADER]) {
    static const char magic[] = "\x93NUMPY\x01";
    enum { FRONT = 10 };
    char text[HEADER];
    int used =
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%lld,",
                 vd_answer_type(f->shape.dtype), (long long)rows);
    for (int i = 1; i < f->shape.ndim; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, i == 1 ? " %lld" : ", %lld",
                         (long long)f->shape.dim[i]);
    used += snprintf(text + used, sizeof text - (size_t)used, "), }");
    memset(out, ' ', HEADER);
    memcpy(out, magic, sizeof magic); /* with the NUL, the minor version */
    out[8] = (char)(HEADER - FRONT);
    out[9] = 0;
    memcpy(out + FRONT, text, (size_t)used);
    out[HEADER - 1] = '\n';
}

vd_status vd_answer_end(vd_answer_file *f, bool checks, int64_t rows, vd_err *err) {
    char header[HEADER], part[1400];
    make_header(f, rows, header);
    vd_status status = put(f->fd, f->path, checks, header, sizeof header, 0, err);
    if (status == VD_OK && checks)
        return check_size(f->fd, f->path, HEADER + row_bytes(f) * (uint64_t)rows, err);
    part_of(f->path, part);
    if (status == VD_OK && (fsync(f->fd) != 0 || rename(part, f->path) != 0))
        status = vd_fail(err, VD_ERR_LOCAL, "cannot write %s: %s", f->path, strerror(errno));
    return status;
}

void vd_answer_close(vd_answer_file *f) {
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

/* ---- answers.safetensors ---- */

static void make_front(const vd_answer_file *file, uint32_t count, int64_t rows, vd_buf *out) {
    vd_buf text = {0};
    uint64_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const vd_answer_file *f = &file[i];
        const uint64_t end = at + row_bytes(f) * (uint64_t)rows;
        vd_printf(&text, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%lld", i ? "," : "{", f->name,
                  safetensors_type(f->shape.dtype), (long long)rows);
        for (int k = 1; k < f->shape.ndim; k++)
            vd_printf(&text, ",%lld", (long long)f->shape.dim[k]);
        vd_printf(&text, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at,
                  (unsigned long long)end);
        at = end;
    }
    vd_printf(&text, "}");
    while (text.size % 8 && vd_buf_ok(&text))
        vd_put_u8(&text, ' ');
    vd_put_u64(out, text.size);
    vd_put(out, text.data, text.size);
    vd_buf_free(&text);
}

/* Copies the data of an .npy file, or compares with it. */
static vd_status put_numbers(const vd_answer_file *f, int fd, const char *path, bool checks,
                             int64_t rows, uint64_t *at, vd_err *err) {
    const uint64_t size = row_bytes(f) * (uint64_t)rows;
    uint8_t *piece = malloc(PIECE);
    vd_status status = piece ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint64_t done = 0; status == VD_OK && done < size;) {
        const size_t wish = size - done < PIECE ? (size_t)(size - done) : PIECE;
        size_t got = 0;
        status = read_at(f->fd, f->path, piece, wish, HEADER + done, &got, err);
        if (status == VD_OK && got < wish)
            status = vd_fail(err, VD_ERR_LOCAL, "%s: has become shorter", f->path);
        if (status == VD_OK)
            status = put(fd, path, checks, piece, wish, *at + done, err);
        done += wish;
    }
    *at += size;
    free(piece);
    return status;
}

static vd_status put_all(int fd, const char *path, const vd_answer_file *file, uint32_t count,
                         bool checks, int64_t rows, vd_err *err) {
    vd_buf front = {0};
    make_front(file, count, rows, &front);
    uint64_t at = front.size;
    vd_status status = vd_buf_ok(&front) ? put(fd, path, checks, front.data, front.size, 0, err)
                                         : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; status == VD_OK && i < count; i++)
        status = put_numbers(&file[i], fd, path, checks, rows, &at, err);
    vd_buf_free(&front);
    return status == VD_OK && checks ? check_size(fd, path, at, err) : status;
}

vd_status vd_answers_together(const char *path, const vd_answer_file *file, uint32_t count,
                              bool checks, int64_t rows, vd_err *err) {
    vd_writer to = {0};
    uint64_t size;
    int fd = -1;
    vd_status status =
        checks ? vd_open_file(path, &fd, &size, err) : vd_writer_open(&to, path, 0644, err);
    if (status == VD_OK)
        status = put_all(checks ? fd : to.fd, path, file, count, checks, rows, err);
    if (status == VD_OK && !checks)
        status = vd_writer_commit(&to, err);
    vd_writer_abort(&to);
    if (fd >= 0)
        close(fd);
    return status;
}
