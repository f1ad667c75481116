/* Blobs of clients: files named by the SHA-256 of their bytes, which come in chunks. */
#ifndef VD_UPLOADS_H
#define VD_UPLOADS_H

#include <pthread.h>

#include "verde/commit/commit.h"
#include "verde/provide/ledger.h"

enum {
    VD_CHUNK_MAX = 8 << 20,       /* bytes of a chunk */
    VD_DISK_SPARE = 16 << 20,     /* bytes of the disk that uploads leave free, */
    VD_DISK_LEDGER = 4 << 20,     /* and that jobs do when they are accepted */
    VD_UPLOAD_HASHES = 8,         /* uploads whose hash is kept between chunks */
    VD_UPLOAD_BUFFER = 256 << 10, /* bytes that are read at once */
    VD_UPLOAD_AT_ONCE = 64 << 20, /* bytes that may be read while a chunk's sender waits */
};

/* The hash of an upload. */
typedef enum {
    VD_HASH_FREE,       /* nobody has this place */
    VD_HASH_GOES_ALONG, /* with the chunks as they come */
    VD_HASH_WAITS,      /* all bytes are there, and the thread is to read them */
    VD_HASH_READS,      /* the thread does */
    VD_HASH_WRONG,      /* they have another hash, which is still to be told */
} vd_hash_state;

typedef struct {
    vd_hash_state state;
    char client[VD_ID_SIZE], hash[VD_ID_SIZE];
    vd_sha *sha;   /* of one that goes along */
    uint64_t at;   /* bytes that it has */
    uint64_t size; /* of one that the thread has */
    uint64_t used; /* by which the oldest is found */
} vd_upload_hash;

/* Chunks are put by one thread. `lock` is held while files and the ledger's rows change together,
 * and while the state of a hash does. */
typedef struct {
    vd_ledger *ledger; /* borrowed */
    char blobs[1024], uploads[1024];
    pthread_mutex_t lock;
    vd_upload_hash hash[VD_UPLOAD_HASHES];
    uint64_t used;
    pthread_t thread; /* hashes uploads that did not come in one piece */
    pthread_cond_t wake;
    bool stop;
} vd_uploads;

/* Makes DIR/blobs and DIR/uploads. */
VD_MUST_USE vd_status vd_uploads_open(vd_uploads *uploads, const char *dir, vd_ledger *ledger,
                                      vd_err *err);
void vd_uploads_close(vd_uploads *uploads);

/* A chunk of the blob `hash`, which has `size` bytes, to go on at byte `from`. */
typedef struct {
    const char *client, *hash;
    uint64_t size, from;
    const void *bytes;
    size_t count;
} vd_chunk;

/* What became of it. */
typedef enum {
    VD_CHUNK_TAKEN,      /* `have` counts it */
    VD_CHUNK_ELSEWHERE,  /* it does not begin at `have` */
    VD_CHUNK_OTHER_SIZE, /* an earlier one said another size of the blob, which stays */
    VD_CHUNK_WRONG,      /* the bytes do not hash to the name; all of them are dropped */
    VD_CHUNK_DISK_FULL,
    VD_CHUNK_OVER_QUOTA, /* quota->bytes would be exceeded by all that the client has */
    VD_CHUNK_TOO_MANY,   /* quota->blobs */
} vd_chunk_fate;

/* What a client may have. */
typedef struct {
    int64_t bytes; /* as vd_disk_bytes counts them, with its jobs' results */
    int64_t blobs; /* and uploads */
} vd_quota;

/* What a client has of a blob. */
typedef struct {
    int64_t size; /* -1: it has begun none */
    uint64_t have;
    bool complete;   /* all bytes are there, and have the hash */
    bool hashing;    /* all are there, and are read again: one who asks later knows more */
    uint64_t hashed; /* so far, of these */
} vd_upload_place;

VD_MUST_USE vd_status vd_uploads_put(vd_uploads *uploads, const vd_chunk *chunk,
                                     const vd_quota *quota, int64_t now, vd_chunk_fate *fate,
                                     vd_upload_place *place, vd_err *err);
/* *fate is VD_CHUNK_TAKEN, or VD_CHUNK_WRONG: all bytes had come, and are dropped. */
VD_MUST_USE vd_status vd_uploads_find(vd_uploads *uploads, const char *client, const char *hash,
                                      vd_chunk_fate *fate, vd_upload_place *place, vd_err *err);
/* Whether so many bytes can go to the disk of `dir` and VD_DISK_SPARE stay free. */
bool vd_disk_has_room(const char *dir, size_t count);
/* A file, or a folder with the names in it, is on the disk. False: errno says why not. */
VD_MUST_USE bool vd_uploads_sync(const char *path);
/* The file of a complete blob. path: 1100 bytes. */
void vd_uploads_path(const vd_uploads *uploads, const char *hash, char path[1100]);
/* Deletes what nobody has needed since `before`. */
VD_MUST_USE vd_status vd_uploads_collect(vd_uploads *uploads, int64_t before, vd_err *err);

#endif
