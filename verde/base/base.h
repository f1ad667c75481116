/* Errors, byte buffers, hexadecimal, files: used by every layer of verde. */
#ifndef VD_BASE_H
#define VD_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define VD_MUST_USE          __attribute__((warn_unused_result))
#define VD_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Categories of errors; they decide who is to blame. */
typedef enum {
    VD_OK = 0,
    VD_ERR_USAGE,   /* a file, option or job that the user must correct */
    VD_ERR_PEER,    /* the other side broke the protocol */
    VD_ERR_TIMEOUT, /* the other side did not answer in time */
    VD_ERR_IO,      /* connection or file trouble that may go away */
    VD_ERR_LOCAL,   /* memory, disk or device of this machine failed: nobody's fault */
    VD_ERR_VERSION, /* a version or a part that this program does not know */
} vd_status;

typedef struct {
    vd_status status;
    char text[512]; /* what was wrong, where, what was expected */
} vd_err;

/* Fills *err (if not NULL) and returns `status`. Arguments may point into *err. Control characters
 * become '?', since messages may quote what a peer sent. */
vd_status vd_fail(vd_err *err, vd_status status, const char *format, ...) VD_PRINTF(3, 4);
/* Fails with "NAME: version 2 of WHAT; this verde reads version 1", or "versions `first` to
 * `last`". All readers of our formats use it. `name` is that of a file, or NULL. */
vd_status vd_fail_version(vd_err *err, const char *name, int64_t found, const char *what,
                          int64_t first, int64_t last);
/* Checks that the first line of a text is `title` and version 1, such as "verde manifest 1".
 * VD_ERR_USAGE: it is another line. */
VD_MUST_USE vd_status vd_title_read(const char *name, const char *line, size_t size,
                                    const char *title, const char *what, vd_err *err);
/* Fails with "NAME: 65 providers; this verde reads at most 64"; a later version may read more. */
vd_status vd_fail_limit(vd_err *err, const char *name, uint64_t found, const char *what,
                        uint64_t most);
/* Turns VD_ERR_VERSION into VD_ERR_PEER, where a peer must not use another version. */
vd_status vd_of_peer(vd_status status, vd_err *err);

/* ---- growing buffer; vd_put_* do not report errors: check vd_buf_ok once at the end ---- */

typedef struct {
    uint8_t *data;
    size_t size, capacity;
    bool failed; /* out of memory, or a string of more than 65535 bytes */
} vd_buf;

void vd_buf_free(vd_buf *buf);
bool vd_buf_ok(const vd_buf *buf);
void vd_put(vd_buf *buf, const void *bytes, size_t size);
void vd_put_u8(vd_buf *buf, uint8_t value);
void vd_put_u16(vd_buf *buf, uint16_t value); /* little-endian, as all integers */
void vd_put_u32(vd_buf *buf, uint32_t value);
void vd_put_u64(vd_buf *buf, uint64_t value);
void vd_put_string(vd_buf *buf, const char *text);                    /* u16 length, bytes */
void vd_printf(vd_buf *buf, const char *format, ...) VD_PRINTF(2, 3); /* appends text, no NUL */

/* ---- bounded reader: after a bad read `failed` stays set, and all reads give zeros ---- */

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
/* Copies a string to `text`, with a NUL at its end. `failed`: it has a NUL inside, or does not fit
 * `size`. */
void vd_get_string(vd_cursor *cursor, char *text, size_t size);
bool vd_cursor_done(const vd_cursor *cursor); /* everything was read, and nothing failed */

/* ---- elements of tensors: in the machine's byte order in memory, little-endian elsewhere ---- */

/* Returns `size` bytes of elements in little-endian order, for hashing and storing: `data` itself
 * on a little-endian machine, else *copy. The caller frees *copy in any case. NULL: out of
 * memory. */
const void *vd_to_little(const void *data, size_t size, size_t element_size, void **copy);
void vd_from_little(void *data, size_t size, size_t element_size); /* the inverse, in place */

/* ---- text encodings ---- */

void vd_hex(const uint8_t *bytes, size_t size, char *text); /* writes 2*size+1 characters */
bool vd_unhex(const char *text, uint8_t *bytes,
              size_t size); /* accepts exactly 2*size lower-case digits */
/* Standard base64 with padding, in canonical form only. vd_base64 returns a string for the caller
 * to free, or NULL without memory. vd_unbase64 appends to `out`, and leaves it unchanged after a
 * failure: VD_ERR_PEER for a bad text, VD_ERR_LOCAL without memory. */
char *vd_base64(const void *bytes, size_t size);
void vd_put_base64(vd_buf *buf, const void *bytes, size_t size); /* appends base64 without a NUL */
VD_MUST_USE vd_status vd_unbase64(const char *text, size_t length, vd_buf *out, vd_err *err);

/* Writes "-0.152760625 (0xbe1c6cc8)": the shortest decimal with these bits, and the bits. */
enum { VD_F32_TEXT = 32 };
void vd_f32_text(uint32_t bits, char text[VD_F32_TEXT]);

/* Write "12.3 MB", and "95 s", "12 min" or "3 h 20 min". `text` has room for 32 bytes. */
void vd_print_size(uint64_t bytes, char *text);
void vd_print_seconds(double seconds, char *text);

/* ---- files ---- */

/* Opens a regular file for reading. Other files are refused, because a FIFO or a device could make
 * its reader wait for ever. *out is -1 after a failure. */
VD_MUST_USE vd_status vd_open_file(const char *path, int *out, uint64_t *size, vd_err *err);
/* Opens a regular file for reading and writing; `append` restricts writing to its end. Creates an
 * empty file with `mode` if there is none. *out is -1 after a failure. VD_ERR_USAGE: the name is
 * that of anything else, such as a symbolic link or a FIFO, which it does not wait for. */
VD_MUST_USE vd_status vd_open_update(const char *path, bool append, int mode, int *out,
                                     uint64_t *size, vd_err *err);
/* Whether vd_open_file would succeed, for files that another library opens. */
VD_MUST_USE vd_status vd_check_readable(const char *path, vd_err *err);
bool vd_lies_in(const char *dir, const char *name); /* whether dir/name exists */

/* Appends a whole regular file of at most `limit` bytes. `out` is unchanged after a failure. */
VD_MUST_USE vd_status vd_read_file(const char *path, size_t limit, vd_buf *out, vd_err *err);

/* The bytes of a file: mapped, or, if it has fewer than VD_MAP_BYTES_MIN, read as a whole. A mapped
 * file must keep its length: access behind its end raises SIGBUS, whose handler learns the file's
 * name from vd_map_at. On a big-endian machine this process may change the bytes in place; the file
 * stays as it is. */
enum { VD_MAP_BYTES_MIN = 1 << 20 };
typedef struct vd_map {
    uint8_t *data;
    uint64_t size;
    char *path;
    bool mapped;
    struct vd_map *next; /* list of all mapped files */
} vd_map;
/* *out must not move until it is freed. */
VD_MUST_USE vd_status vd_map_file(const char *path, vd_map *out, vd_err *err);
/* Joins the bytes of all files, in order, one byte or more in all. They are copied to a nameless
 * file in TMPDIR, or else in /var/tmp, which is mapped, and deleted with the map. */
VD_MUST_USE vd_status vd_map_join(const vd_map *file, uint32_t count, vd_map *out, vd_err *err);
void vd_map_free(vd_map *map); /* may be called twice */
/* The name of the file that is mapped at an address, or NULL. Signal handlers may call it. */
const char *vd_map_at(const void *address);
/* Releases mapped pages that a reader has finished with; they are read from the file again if
 * needed. So a reader of a large file, in pieces, takes no more memory than a piece. Does nothing
 * for bytes that are not mapped. */
void vd_map_pass(const void *bytes, size_t size);

/* Writes a temporary file in the same directory, fsyncs and renames it, and fsyncs the directory.
 * After a failure the old file is unchanged, and nothing else is left behind. `mode` is subject to
 * the umask. */
VD_MUST_USE vd_status vd_write_file(const char *path, const void *bytes, size_t size, int mode,
                                    vd_err *err);

/* Like vd_write_file, but in pieces, for files too large to be in memory twice. */
typedef struct {
    int fd;
    char path[1024], temp[1040];
} vd_writer;
VD_MUST_USE vd_status vd_writer_open(vd_writer *writer, const char *path, int mode, vd_err *err);
VD_MUST_USE vd_status vd_writer_put(vd_writer *writer, const void *bytes, size_t size, vd_err *err);
VD_MUST_USE vd_status vd_writer_commit(vd_writer *writer, vd_err *err);
/* Checks that a file can be written there, before the long work that makes it. Leaves no file. */
VD_MUST_USE vd_status vd_check_writable(const char *path, vd_err *err);
void vd_writer_abort(vd_writer *writer); /* after an error, or in place of commit; or twice */

/* Makes many small files durable together. After vd_sync_begin, vd_write_file, vd_fsync and the
 * like do not sync files of this thread one by one, which would take longer than small steps do;
 * vd_sync_end syncs the whole file system of `dir`. If the machine stops in between, files may have
 * their names but not their bytes, so nothing may rely on them before. */
void vd_sync_begin(void);
VD_MUST_USE vd_status vd_sync_end(const char *dir, vd_err *err); /* does nothing without a begin */
int vd_fsync(int fd);
/* Makes a new or renamed entry durable: fsyncs the directory that holds `path`. */
VD_MUST_USE vd_status vd_sync_parent(const char *path, vd_err *err);
/* Makes one directory, if it does not exist, and fsyncs its parent. */
VD_MUST_USE vd_status vd_make_dir(const char *path, vd_err *err);
/* Like vd_make_dir, with all directories above it. *made: how many did not exist. */
VD_MUST_USE vd_status vd_make_dirs(const char *path, uint32_t *made, vd_err *err);
/* Removes up to `count` of these directories, the innermost first, while they are empty. */
void vd_drop_dirs(const char *path, uint32_t count);

double vd_seconds(void);     /* monotonic clock */
double vd_cpu_seconds(void); /* user + system time of this process */
size_t vd_peak_bytes(void);  /* largest resident size of this process so far */

#endif
