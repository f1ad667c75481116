/* The queue between the executor and the log's thread: shared by writer.c and thread.c only. */
#ifndef VD_LOG_QUEUE_H
#define VD_LOG_QUEUE_H

#include "verde/log/internal.h"

#include <pthread.h>

/* A step that was ended and not yet asked for; ready: and durable. */
typedef struct vd_log_pending {
    struct vd_log_pending *next, *owed; /* of all; of those that wait for the same file */
    int64_t step;
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
    /* The thread is woken for so many bytes, for a file's end, or when somebody waits: small steps
     * would cost more in changes of thread than in work. */
    VD_LOG_WAKE = 1 << 18,
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
    vd_log_pending *pending;
    bool closing;
    vd_err failure; /* VD_OK: none */
    /* The caller's: */
    vd_log_batch *batch; /* not yet handed over; NULL: none */
    vd_log_node *node;
    uint32_t count, next;
    int64_t step;
    bool begun;
    vd_log_span span; /* the file that `step` is in, */
    uint32_t ended;   /* and how many of its steps ended */
    /* The thread's: */
    vd_log_step part;
    vd_writer file;       /* open until all of its steps ended */
    uint64_t at;          /* its bytes so far: parts that ended, */
    vd_buf table;         /* their ends */
    vd_log_pending *owed; /* their steps */
    vd_sha *sha;
    vd_deflater deflater;
    vd_buf coded; /* of a section, kept for the next one */
};

/* Starts writer->thread. 0, or errno's number. */
int vd_log_thread_start(vd_log_writer *writer);

#endif
