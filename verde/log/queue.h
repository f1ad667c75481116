/* The queue between the executor and the log's thread. Private to writer.c and thread.c. */
#ifndef VD_LOG_QUEUE_H
#define VD_LOG_QUEUE_H

#include "verde/log/internal.h"

#include <pthread.h>

/* A step that was ended, but not waited for yet. `ready`: it is durable. */
typedef struct vd_log_pending {
    struct vd_log_pending *next, *owed; /* next of all steps; next step in the same file */
    int64_t step;
    bool ready;
    vd_log_done done;
} vd_log_pending;

typedef enum { VD_ITEM_BEGIN, VD_ITEM_SECTION, VD_ITEM_END } vd_log_item_kind;

typedef struct vd_log_item {
    struct vd_log_item *next;
    vd_log_item_kind kind;
    int64_t step;
    vd_log_node *node; /* of VD_ITEM_BEGIN; points into `tail` */
    uint32_t count;
    vd_log_section section; /* of VD_ITEM_SECTION */
    uint8_t *packed;
    vd_log_pending *pending; /* of VD_ITEM_END; the writer owns it */
    vd_log_sum tail[];       /* memory of `node`, `section` and `packed` */
} vd_log_item;

/* Items that the caller hands over together and the thread frees together. A step has hundreds of
 * small items, and a lock and an allocation for each would take longer than the work on it. */
typedef struct vd_log_batch {
    struct vd_log_batch *next;
    size_t bytes; /* size of the allocation */
    size_t room, used;
    vd_log_item *first, **last;
    _Alignas(16) uint8_t memory[];
} vd_log_batch;

enum {
    VD_LOG_BATCH = 120 << 10, /* size of a batch, unless one section takes more */
    /* The thread is woken after this many bytes, at a file's end, or when a caller waits. For small
     * steps, waking it costs more than the work. */
    VD_LOG_WAKE = 1 << 18,
};

struct vd_log_writer {
    vd_log_run run;
    char dir[1024];
    size_t limit;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* callers wait for it */
    pthread_cond_t queued;  /* the thread waits for it */
    /* Protected by the lock: */
    vd_log_batch *first, **last;
    size_t held;   /* bytes of all batches, with the caller's and the thread's current ones */
    size_t peak;   /* the most that were held at once */
    size_t unsaid; /* bytes of items queued since the thread was last woken */
    int waiting;   /* number of callers that wait for memory */
    vd_log_pending *pending;
    bool closing;
    vd_err failure; /* VD_OK: none */
    /* Used by the caller only: */
    vd_log_batch *batch; /* not queued yet; NULL: none */
    vd_log_node *node;
    uint32_t count, next;
    int64_t step;
    bool begun;
    vd_log_span span; /* steps of the current file */
    uint32_t ended;   /* number of these steps that have ended */
    /* Used by the thread only: */
    vd_log_step part;
    vd_writer file;       /* open until all of its steps ended */
    uint64_t at;          /* bytes of its finished parts */
    vd_buf table;         /* where these parts end */
    vd_log_pending *owed; /* the steps of these parts */
    vd_sha *sha;
    vd_deflater deflater;
    vd_buf coded; /* of a section; its memory is used again */
};

/* Starts writer->thread. Returns 0 or an errno number. */
int vd_log_thread_start(vd_log_writer *writer);

#endif
