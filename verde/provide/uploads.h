/* Blobs of clients: files named by the SHA-256 of their bytes, uploaded in chunks. */
#ifndef VD_UPLOADS_H
#define VD_UPLOADS_H

#include <pthread.h>

#include "verde/commit/commit.h"
#include "verde/provide/ledger.h"

enum {
    VD_CHUNK_MAX = 8 << 20,       /* bytes of a chunk */
    VD_DISK_SPARE = 16 << 20,     /* disk space that uploads leave free, */
    VD_DISK_LEDGER = 4 << 20,     /* and that jobs leave free for the ledger */
    VD_UPLOAD_HASHES = 8,         /* uploads whose hash state is kept between chunks */
    VD_UPLOAD_BUFFER = 256 << 10, /* bytes per read */
    VD_UPLOAD_AT_ONCE = 64 << 20, /* bytes read at most while a chunk's sender waits */
};

/* How an upload is hashed. */
typedef enum {
    VD_HASH_FREE,       /* the entry is free */
    VD_HASH_GOES_ALONG, /* chunk by chunk, as they arrive */
    VD_HASH_WAITS,      /* all bytes are there, and wait for the thread */
    VD_HASH_READS,      /* the thread is reading them */
    VD_HASH_WRONG,      /* the hash is wrong, which the client is not told yet */
} vd_hash_state;

typedef struct {
    vd_hash_state state;
    char client[VD_ID_SIZE], hash[VD_ID_SIZE];
    vd_sha *sha;   /* VD_HASH_GOES_ALONG: the hash so far */
    uint64_t at;   /* bytes hashed */
    uint64_t size; /* VD_HASH_WAITS, VD_HASH_READS: bytes in all */
    uint64_t used; /* when last used, by `vd_uploads.used` */
} vd_upload_hash;

/* Chunks are put by one thread. `lock` is held while files change together with the ledger's rows,
 * and while the state of a hash changes. */
typedef struct {
    vd_ledger *ledger; /* borrowed */
    char blobs[1024], uploads[1024];
    pthread_mutex_t lock;
    vd_upload_hash hash[VD_UPLOAD_HASHES];
    uint64_t used;
    pthread_t thread; /* hashes uploads that were not hashed chunk by chunk */
    pthread_cond_t wake;
    bool stop;
} vd_uploads;

/* Opens the folders DIR/blobs and DIR/uploads, and makes them if need be. */
VD_MUST_USE vd_status vd_uploads_open(vd_uploads *uploads, const char *dir, vd_ledger *ledger,
                                      vd_err *err);
void vd_uploads_close(vd_uploads *uploads);

/* A chunk, beginning at byte `from`, of the blob `hash`, which has `size` bytes. */
typedef struct {
    const char *client, *hash;
    uint64_t size, from;
    const void *bytes;
    size_t count;
} vd_chunk;

/* What became of a chunk. */
typedef enum {
    VD_CHUNK_TAKEN,      /* appended; `have` counts it */
    VD_CHUNK_ELSEWHERE,  /* does not begin at `have` */
    VD_CHUNK_OTHER_SIZE, /* another size than that of an earlier chunk, which stays */
    VD_CHUNK_WRONG,      /* the blob's bytes do not have its hash; all are dropped */
    VD_CHUNK_DISK_FULL,
    VD_CHUNK_OVER_QUOTA, /* all of the client's data would exceed quota->bytes */
    VD_CHUNK_TOO_MANY,   /* the client has quota->blobs */
} vd_chunk_fate;

/* The limits of a client. */
typedef struct {
    int64_t bytes; /* as counted by vd_disk_bytes, with the results of jobs */
    int64_t blobs; /* including uploads */
} vd_quota;

/* What a client has uploaded of a blob. */
typedef struct {
    int64_t size; /* -1: nothing was begun */
    uint64_t have;
    bool complete;   /* all bytes are there and have the hash */
    bool hashing;    /* all bytes are there and are being hashed: ask again */
    uint64_t hashed; /* bytes hashed so far */
} vd_upload_place;

VD_MUST_USE vd_status vd_uploads_put(vd_uploads *uploads, const vd_chunk *chunk,
                                     const vd_quota *quota, int64_t now, vd_chunk_fate *fate,
                                     vd_upload_place *place, vd_err *err);
/* *fate becomes VD_CHUNK_TAKEN, or VD_CHUNK_WRONG if all bytes had come and were dropped. */
VD_MUST_USE vd_status vd_uploads_find(vd_uploads *uploads, const char *client, const char *hash,
                                      vd_chunk_fate *fate, vd_upload_place *place, vd_err *err);
/* Returns true if `count` bytes can be written to `dir`'s disk and leave VD_DISK_SPARE free. */
bool vd_disk_has_room(const char *dir, size_t count);
/* Flushes a file, or a folder's names, to disk. False: see errno. */
VD_MUST_USE bool vd_uploads_sync(const char *path);
/* Writes the path of a complete blob. */
void vd_uploads_path(const vd_uploads *uploads, const char *hash, char path[1100]);
/* Deletes what was not needed since `before`. */
VD_MUST_USE vd_status vd_uploads_collect(vd_uploads *uploads, int64_t before, vd_err *err);

#endif
