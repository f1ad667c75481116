/* Errors, byte buffers, hexadecimal, files: what every layer of verde stands on. */
#ifndef VD_BASE_H
#define VD_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define VD_MUST_USE          __attribute__((warn_unused_result))
#define VD_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* The category decides who is to blame. */
typedef enum {
    VD_OK = 0,
    VD_ERR_USAGE,   /* a file, option or job that the user must correct */
    VD_ERR_PEER,    /* the other side broke the protocol */
    VD_ERR_TIMEOUT, /* the other side did not answer in time */
    VD_ERR_IO,      /* connection or file trouble that may go away */
    VD_ERR_LOCAL,   /* memory, disk, device of this machine: never anybody's fault */
    VD_ERR_VERSION, /* of a version, or with a part, that this program does not know */
} vd_status;

typedef struct {
    vd_status status;
    char text[512]; /* what was wrong, where, what was expected */
} vd_err;

/* Fills *err (if not NULL) and returns `status`. Arguments may point into *err. Control characters
 * become '?': sentences may quote what a peer sent. */
vd_status vd_fail(vd_err *err, vd_status status, const char *format, ...) VD_PRINTF(3, 4);
/* "NAME: version 2 of WHAT; this verde reads version 1", or versions `first` to `last`: the one
 * sentence about versions, which all readers of ours say. `name`: of a file, or NULL. */
vd_status vd_fail_version(vd_err *err, const char *name, int64_t found, const char *what,
                          int64_t first, int64_t last);
/* The first line of a text, which must be `title` and the version 1, as "verde manifest 1".
 * VD_ERR_USAGE: it is another line. */
VD_MUST_USE vd_status vd_title_read(const char *name, const char *line, size_t size,
                                    const char *title, const char *what, vd_err *err);
/* "NAME: 65 providers; this verde reads at most 64": a later version may read more. */
vd_status vd_fail_limit(vd_err *err, const char *name, uint64_t found, const char *what,
                        uint64_t most);
/* A peer may not choose a version. So this makes VD_ERR_PEER of VD_ERR_VERSION, and keeps the
 * sentence. */
vd_status vd_of_peer(vd_status status, vd_err *err);

/* ---- growing buffer; put_* never fails by itself, check vd_buf_ok once ---- */

typedef struct {
    uint8_t *data;
    size_t size, capacity;
    bool failed; /* out of memory, or a string of more than 65535 bytes */
} vd_buf;

void vd_buf_free(vd_buf *buf);
bool vd_buf_ok(const vd_buf *buf);
void vd_put(vd_buf *buf, const void *bytes, size_t size);
void vd_put_u8(vd_buf *buf, uint8_t value);
void vd_put_u16(vd_buf *buf, uint16_t value); /* little-endian, as all of them */
void vd_put_u32(vd_buf *buf, uint32_t value);
void vd_put_u64(vd_buf *buf, uint64_t value);
void vd_put_string(vd_buf *buf, const char *text);                    /* u16 length, bytes */
void vd_printf(vd_buf *buf, const char *format, ...) VD_PRINTF(2, 3); /* appends text, no NUL */

/* ---- bounded reader: after a bad read `failed` stays set and zeros come back ---- */

typedef struct {
    const uint8_t *data;
    size_t size, at;
    bool failed;
} vd_cursor;

vd_cursor vd_cursor_of(const void *data, size_t size);
const uint8_t *vd_get(vd_cursor *cursor, size_t size); /* NULL at the end of the input */
uint8_t vd_get_u8(vd_cursor *cursor);
uint16_t vd_get_u16(vd_cursor *cursor);
uint32_t vd_get_u32(vd_cursor *cursor);
uint64_t vd_get_u64(vd_cursor *cursor);
/* Copies a string of at most size-1 bytes without NUL inside; else `failed`. */
void vd_get_string(vd_cursor *cursor, char *text, size_t size);
bool vd_cursor_done(const vd_cursor *cursor); /* everything read, nothing failed */

/* ---- elements of tensors: in memory as the machine has them, elsewhere little-endian ---- */

/* `size` bytes of elements, for hashing and storing: `data` itself on a little-endian machine, else
 * *copy, which the caller frees in any case. NULL: out of memory. */
const void *vd_to_little(const void *data, size_t size, size_t element_size, void **copy);
void vd_from_little(void *data, size_t size, size_t element_size); /* back, in place */

/* ---- text encodings ---- */

void vd_hex(const uint8_t *bytes, size_t size, char *text);   /* writes 2*size+1 characters */
bool vd_unhex(const char *text, uint8_t *bytes, size_t size); /* exactly 2*size lower-case digits */
/* Standard base64 with padding; canonical form only. Decoding appends to `out`, and leaves it as it
 * was after a failure: VD_ERR_PEER for the text, VD_ERR_LOCAL for want of memory. The result is
 * malloc'ed; NULL: out of memory.
 */
char *vd_base64(const void *bytes, size_t size);
void vd_put_base64(vd_buf *buf, const void *bytes, size_t size); /* appends it, no NUL */
VD_MUST_USE vd_status vd_unbase64(const char *text, size_t length, vd_buf *out, vd_err *err);

/* "-0.152760625 (0xbe1c6cc8)": the shortest decimal that reads back as these bits, and they. */
enum { VD_F32_TEXT = 32 };
void vd_f32_text(uint32_t bits, char text[VD_F32_TEXT]);

/* "12.3 MB"; "95 s", "12 min", "3 h 20 min". text: 32 bytes. */
void vd_print_size(uint64_t bytes, char *text);
void vd_print_seconds(double seconds, char *text);

/* ---- files ---- */

/* Opens a regular file for reading, the only kind that is read: a FIFO or a device could make its
 * reader wait for ever. *out is -1 after a failure. */
VD_MUST_USE vd_status vd_open_file(const char *path, int *out, uint64_t *size, vd_err *err);
/* Opens a regular file to read and to write it, only at its end if `append`; makes an empty one
 * with `mode` if there is none. *out is -1 after a failure. VD_ERR_USAGE: anything else of that
 * name, a symbolic link too, which is never waited for. */
VD_MUST_USE vd_status vd_open_update(const char *path, bool append, int mode, int *out,
                                     uint64_t *size, vd_err *err);
/* Whether vd_open_file would succeed: for files that a library opens itself. */
VD_MUST_USE vd_status vd_check_readable(const char *path, vd_err *err);
bool vd_lies_in(const char *dir, const char *name); /* is there anything of this name? */

/* Appends a whole regular file of at most `limit` bytes; `out` is as before after a failure. */
VD_MUST_USE vd_status vd_read_file(const char *path, size_t limit, vd_buf *out, vd_err *err);

/* A file's bytes: mapped, or read whole if it has fewer than VD_MAP_BYTES_MIN. What is mapped must
 * keep its length: an access behind its end raises SIGBUS, whose handler learns the file's name
 * from vd_map_at. On a big-endian machine the bytes may be changed in place, for this process
 * alone. */
enum { VD_MAP_BYTES_MIN = 1 << 20 };
typedef struct vd_map {
    uint8_t *data;
    uint64_t size;
    char *path;
    bool mapped;
    struct vd_map *next; /* of those that are mapped */
} vd_map;
/* *out stays where it is until it is freed. */
VD_MUST_USE vd_status vd_map_file(const char *path, vd_map *out, vd_err *err);
/* The bytes of all files, one after the other, mapped from a copy: a file without a name in TMPDIR,
 * else in /var/tmp, which goes with the map. One byte or more in all. */
VD_MUST_USE vd_status vd_map_join(const vd_map *file, uint32_t count, vd_map *out, vd_err *err);
void vd_map_free(vd_map *map); /* harmless twice */
/* The file that is mapped at an address, or NULL. Signal handlers may call it. */
const char *vd_map_at(const void *address);
/* Bytes whose reader has gone on: what is mapped of them leaves this process's memory, and comes
 * back from the file if it is read again. So whoever reads a large file once, in pieces, takes no
 * more memory than a piece. Harmless for bytes that are not mapped. */
void vd_map_pass(const void *bytes, size_t size);

/* Temporary file in the same directory, fsync, rename, fsync of the directory. The old file stays
 * as it was, and nothing else is left behind, when this fails. `mode` is subject to the umask. */
VD_MUST_USE vd_status vd_write_file(const char *path, const void *bytes, size_t size, int mode,
                                    vd_err *err);

/* As vd_write_file, in pieces, for files larger than memory should hold twice. */
typedef struct {
    int fd;
    char path[1024], temp[1040];
} vd_writer;
VD_MUST_USE vd_status vd_writer_open(vd_writer *writer, const char *path, int mode, vd_err *err);
VD_MUST_USE vd_status vd_writer_put(vd_writer *writer, const void *bytes, size_t size, vd_err *err);
VD_MUST_USE vd_status vd_writer_commit(vd_writer *writer, vd_err *err);
/* Whether a file can be written there: for what is written after long work. Leaves nothing. */
VD_MUST_USE vd_status vd_check_writable(const char *path, vd_err *err);
void vd_writer_abort(vd_writer *writer); /* after an error, or instead of commit; harmless twice */

/* Many small files that count together. From vd_sync_begin on, what this thread writes by
 * vd_write_file and the like, and vd_fsync, is not made durable one by one, which takes longer than
 * small steps do; vd_sync_end makes all of the file system of `dir` durable. A machine that stops
 * in between may leave files that have their names and not their bytes, so nothing may count on
 * them before. */
void vd_sync_begin(void);
VD_MUST_USE vd_status vd_sync_end(const char *dir, vd_err *err); /* harmless without a begin */
int vd_fsync(int fd);
/* Makes a new or renamed entry of a directory durable: fsync of the directory that holds `path`. */
VD_MUST_USE vd_status vd_sync_parent(const char *path, vd_err *err);
/* Makes the directory if it is not there (one level) and fsyncs its parent. */
VD_MUST_USE vd_status vd_make_dir(const char *path, vd_err *err);
/* The same with the directories that it lies in. *made: how many were not there. */
VD_MUST_USE vd_status vd_make_dirs(const char *path, uint32_t *made, vd_err *err);
/* Removes so many of them, the innermost first, as long as they are empty. */
void vd_drop_dirs(const char *path, uint32_t count);

double vd_seconds(void);     /* monotonic clock */
double vd_cpu_seconds(void); /* user + system time of this process */
size_t vd_peak_bytes(void);  /* largest resident size of this process so far */

#endif
