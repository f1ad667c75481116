/* The queue between the executor and the log's thread: shared by writer.c and thread.c only. */
#ifndef VD_LOG_QUEUE_H
#define VD_LOG_QUEUE_H

#include "verde/log/internal.h"

#include <pthread.h>

/* A step that was ended and not yet asked for; ready: and durable. */
typedef struct vd_log_pending {
    struct vd_log_pending *next;
    bool ready;
    vd_log_done done;
} vd_log_pending;

typedef enum { VD_ITEM_BEGIN, VD_ITEM_SECTION, VD_ITEM_END } vd_log_item_kind;

typedef struct vd_log_item {
    struct vd_log_item *next;
    vd_log_item_kind kind;
    int64_t step;
    vd_log_node *node; /* VD_ITEM_BEGIN; in `tail` */
    uint32_t count;
    vd_log_section section; /* VD_ITEM_SECTION, its symbols packed: */
    uint8_t *packed;
    vd_log_pending *pending; /* VD_ITEM_END; the writer's */
    vd_log_sum tail[];       /* what `node`, `section` and `packed` point at */
} vd_log_item;

/* Items that the caller hands over, and the thread frees, together: a step has hundreds of small
 * ones, and memory and a lock for each would take longer than what is done with them. */
typedef struct vd_log_batch {
    struct vd_log_batch *next;
    size_t bytes; /* of memory, all together */
    size_t room, used;
    vd_log_item *first, **last;
    _Alignas(16) uint8_t memory[];
} vd_log_batch;

enum {
    VD_LOG_BATCH = 120 << 10, /* memory of a batch, but for a section that takes more */
    /* The thread is woken for so many bytes, or when somebody waits: small steps would cost more in
     * changes of thread than in work. */
    VD_LOG_WAKE = 1 << 18,
    /* Files are made durable together: when somebody waits for one, or there are so many, or so
     * many bytes of them. */
    VD_LOG_FILES = 32,
    VD_LOG_FILES_BYTES = 1 << 20,
};

struct vd_log_writer {
    vd_log_run run;
    char dir[1024];
    size_t limit;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* what callers wait for */
    pthread_cond_t queued;  /* what the thread waits for */
    /* Under the lock: */
    vd_log_batch *first, **last;
    size_t held,
        peak;      /* bytes of batches, the caller's and the one that the thread is at included */
    size_t unsaid; /* bytes of items that the thread was not woken for */
    int waiting;   /* callers who wait for memory */
    int asking;    /* callers who wait for a step to be durable */
    vd_log_pending *pending;
    bool closing;
    vd_err failure; /* VD_OK: none */
    /* The caller's: */
    vd_log_batch *batch; /* not yet handed over; NULL: none */
    vd_log_node *node;
    uint32_t count, next;
    int64_t step;
    bool begun;
    /* The thread's: */
    vd_log_step file;
    vd_sha *sha;
    vd_deflater deflater;
    vd_buf coded;                       /* of a section, kept for the next one */
    vd_writer written[VD_LOG_FILES];    /* and not yet durable */
    vd_log_pending *owed[VD_LOG_FILES]; /* their steps */
    uint32_t files;
    uint64_t files_bytes;
};

/* Starts writer->thread. 0, or errno's number. */
int vd_log_thread_start(vd_log_writer *writer);

#endif
