/* libverde_mpi.so: messages through MPI's point-to-point calls. MPI's reductions are not used,
 * since they add in an order of their own. */
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verde/mpi/mpi_internal.h"
#include "verde/team/team.h"

enum {
    PIECE_BYTES = 1 << 30, /* limit of a message, because MPI counts in ints */
    TAG_MAX = VD_TEAM_MESSAGES_MAX + 16,
    YIELDS = 100,         /* polls for a message without sleeping in between */
    REST_NS_MIN = 10000,  /* sleep after these polls; it grows with each poll */
    REST_NS_MAX = 200000, /* longest sleep while a step waits */
    AWAIT_REST = 25,      /* sleeps between two polls where nothing is urgent */
};

/* A piece that is being sent, with a copy of its bytes. */
typedef struct sending {
    struct sending *next;
    MPI_Request request;
    uint8_t bytes[];
} sending;

static sending *first_sending;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

void vd_mpi_lock(void) {
    pthread_mutex_lock(&one_at_a_time);
}

void vd_mpi_unlock(void) {
    pthread_mutex_unlock(&one_at_a_time);
}

vd_status vd_mpi_fail(vd_err *err, vd_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (err) {
        err->status = status;
        vsnprintf(err->text, sizeof err->text, format, arguments);
    }
    va_end(arguments);
    return status;
}

static vd_status failed(int code, const char *what, uint32_t rank, vd_err *err) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    vd_mpi_lock();
    MPI_Error_string(code, text, &length);
    vd_mpi_unlock();
    return vd_mpi_fail(err, VD_ERR_IO, "process %u: %s: %s", rank, what, text);
}

/* Yields or sleeps between two polls; the sleep grows with `turn`, the number of polls so far. */
static void rest(uint32_t turn) {
    const long ns = turn < YIELDS ? 0 : (long)REST_NS_MIN * (turn - YIELDS + 1);
    if (ns == 0)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = ns < REST_NS_MAX ? ns : REST_NS_MAX}, NULL);
}

/* Frees the pieces whose sending is complete. */
static void reap(void) {
    for (sending **at = &first_sending; *at;) {
        sending *s = *at;
        int done = 0;
        if (MPI_Test(&s->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done) {
            *at = s->next;
            free(s);
        } else {
            at = &s->next;
        }
    }
}

static vd_status send_piece(uint32_t to, uint32_t number, const void *data, size_t size,
                            vd_err *err) {
    sending *s = malloc(sizeof *s + size);
    if (!s)
        return vd_mpi_fail(err, VD_ERR_LOCAL, "out of memory for a message of %zu bytes", size);
    if (size > 0)
        memcpy(s->bytes, data, size);
    vd_mpi_lock();
    reap();
    const int code =
        MPI_Isend(s->bytes, (int)size, MPI_BYTE, (int)to, (int)number, MPI_COMM_WORLD, &s->request);
    if (code == MPI_SUCCESS) {
        s->next = first_sending;
        first_sending = s;
    }
    vd_mpi_unlock();
    if (code == MPI_SUCCESS)
        return VD_OK;
    free(s);
    return failed(code, "sending to it", to, err);
}

/* Polls until a request is complete, because MPI_Wait would keep a core busy and hold the lock.
 * *count: bytes received; `count` may be NULL. */
static int wait_for(MPI_Request *request, int *count) {
    MPI_Status got;
    int done = 0, code = MPI_SUCCESS;
    for (uint32_t turn = 0; code == MPI_SUCCESS && !done; turn++) {
        if (turn > 0)
            rest(turn);
        vd_mpi_lock();
        code = MPI_Test(request, &done, &got);
        if (code == MPI_SUCCESS && done && count)
            code = MPI_Get_count(&got, MPI_BYTE, count);
        vd_mpi_unlock();
    }
    return code;
}

static vd_status give_piece(uint32_t to, uint32_t number, const void *data, size_t size,
                            vd_err *err) {
    MPI_Request request;
    vd_mpi_lock();
    int code = MPI_Isend(data, (int)size, MPI_BYTE, (int)to, (int)number, MPI_COMM_WORLD, &request);
    vd_mpi_unlock();
    if (code == MPI_SUCCESS)
        code = wait_for(&request, NULL);
    return code == MPI_SUCCESS ? VD_OK : failed(code, "giving to it", to, err);
}

static vd_status receive_piece(uint32_t from, uint32_t number, void *data, size_t size,
                               vd_err *err) {
    MPI_Request request;
    int count = 0;
    vd_mpi_lock();
    int code =
        MPI_Irecv(data, (int)size, MPI_BYTE, (int)from, (int)number, MPI_COMM_WORLD, &request);
    vd_mpi_unlock();
    if (code == MPI_SUCCESS)
        code = wait_for(&request, &count);
    if (code != MPI_SUCCESS)
        return failed(code, "receiving from it", from, err);
    return (size_t)count == size
               ? VD_OK
               : vd_mpi_fail(err, VD_ERR_PEER,
                             "process %u sent %d bytes as message %u, expected %zu", from, count,
                             number, size);
}

typedef vd_status (*send_one)(uint32_t to, uint32_t number, const void *data, size_t size,
                              vd_err *err);

static vd_status send_pieces(send_one send, uint32_t to, uint32_t number, const uint8_t *from,
                             size_t size, vd_err *err) {
    for (;; from += PIECE_BYTES, size -= PIECE_BYTES) {
        const vd_status status =
            send(to, number, from, size < PIECE_BYTES ? size : PIECE_BYTES, err);
        if (status != VD_OK || size <= PIECE_BYTES)
            return status;
    }
}

static vd_status mpi_send(void *user, uint32_t to, uint32_t number, const void *data, size_t size,
                          vd_err *err) {
    (void)user;
    return send_pieces(send_piece, to, number, data, size, err);
}

static vd_status mpi_give(void *user, uint32_t to, uint32_t number, const void *data, size_t size,
                          vd_err *err) {
    (void)user;
    return send_pieces(give_piece, to, number, data, size, err);
}

static vd_status mpi_receive(void *user, uint32_t from, uint32_t number, void *data, size_t size,
                             vd_err *err) {
    uint8_t *to = data;
    (void)user;
    for (;; to += PIECE_BYTES, size -= PIECE_BYTES) {
        const vd_status status =
            receive_piece(from, number, to, size < PIECE_BYTES ? size : PIECE_BYTES, err);
        if (status != VD_OK || size <= PIECE_BYTES)
            return status;
    }
}

static vd_status mpi_await(void *user, uint32_t from, uint32_t number, vd_err *err) {
    int there = 0, code = MPI_SUCCESS;
    (void)user;
    for (uint32_t turn = 0; code == MPI_SUCCESS && !there; turn++) {
        for (int i = 0; turn > 0 && i < AWAIT_REST; i++)
            rest(turn);
        vd_mpi_lock();
        reap();
        code = MPI_Iprobe((int)from, (int)number, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        vd_mpi_unlock();
    }
    return code == MPI_SUCCESS ? VD_OK : failed(code, "waiting for it", from, err);
}

static vd_status mpi_flush(void *user, vd_err *err) {
    bool all = false;
    (void)user, (void)err;
    for (uint32_t turn = 0; !all; turn++) {
        if (turn > 0)
            rest(turn);
        vd_mpi_lock();
        reap();
        all = !first_sending;
        vd_mpi_unlock();
    }
    return VD_OK;
}

static vd_status check_tags(vd_err *err) {
    int *most, found;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found);
    return found && *most >= TAG_MAX
               ? VD_OK
               : vd_mpi_fail(err, VD_ERR_LOCAL, "this MPI has tags up to %d, expected %d or more",
                             found ? *most : 0, TAG_MAX);
}

static vd_status join(vd_transport *out, vd_mpi_lost lost, vd_err *err) {
    int level, rank, ranks;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS)
        return vd_mpi_fail(err, VD_ERR_LOCAL, "MPI_Init_thread failed");
    if (level < MPI_THREAD_SERIALIZED)
        return vd_mpi_fail(err, VD_ERR_LOCAL, "this MPI may be called by one thread alone");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    *out = (vd_transport){NULL,     (uint32_t)rank, (uint32_t)ranks, mpi_send,
                          mpi_give, mpi_receive,    mpi_await,       mpi_flush};
    const vd_status status = check_tags(err);
    return status == VD_OK ? vd_watch_start((uint32_t)rank, (uint32_t)ranks, lost, err) : status;
}

static void leave(void *user, bool whole) {
    vd_err none;
    if (!whole) {
        vd_mpi_lock();
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (mpi_flush(user, &none) == VD_OK)
        vd_watch_end();
    MPI_Finalize();
}

extern const vd_mpi_functions vd_mpi_library;
const vd_mpi_functions vd_mpi_library = {VD_MPI_VERSION, join, leave};
