/* libverde_mpi.so: messages by MPI's point-to-point calls alone. Its reductions add in an order of
 * their own, so none is used. */
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verde/team/mpi.h"
#include "verde/team/team.h"

enum {
    PIECE_BYTES = 1 << 30, /* MPI counts in ints */
    TAG_MAX = VD_TEAM_MESSAGES_MAX + 16,
    AWAIT_NS_MIN = 10000, /* between two looks for a message, doubled from this up to that */
    AWAIT_NS_MAX = 5000000,
};

/* A piece on its way, with its copy. */
typedef struct sending {
    struct sending *next;
    MPI_Request request;
    uint8_t bytes[];
} sending;

static sending *first_sending;

/* The program's own is not there for a library. */
static vd_status fail(vd_err *err, vd_status status, const char *format, ...) {
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
    MPI_Error_string(code, text, &length);
    return fail(err, VD_ERR_IO, "process %u: %s: %s", rank, what, text);
}

/* Frees what has arrived; `wait`: after it has. */
static void reap(bool wait) {
    for (sending **at = &first_sending; *at;) {
        sending *s = *at;
        int done = 0;
        if (wait)
            done = MPI_Wait(&s->request, MPI_STATUS_IGNORE) == MPI_SUCCESS;
        else
            MPI_Test(&s->request, &done, MPI_STATUS_IGNORE);
        if (done || wait) {
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
        return fail(err, VD_ERR_LOCAL, "out of memory for a message of %zu bytes", size);
    if (size > 0)
        memcpy(s->bytes, data, size);
    const int code =
        MPI_Isend(s->bytes, (int)size, MPI_BYTE, (int)to, (int)number, MPI_COMM_WORLD, &s->request);
    if (code != MPI_SUCCESS) {
        free(s);
        return failed(code, "sending to it", to, err);
    }
    s->next = first_sending;
    first_sending = s;
    return VD_OK;
}

static vd_status mpi_send(void *user, uint32_t to, uint32_t number, const void *data, size_t size,
                          vd_err *err) {
    const uint8_t *from = data;
    (void)user;
    reap(false);
    for (;; from += PIECE_BYTES, size -= PIECE_BYTES) {
        const vd_status status =
            send_piece(to, number, from, size < PIECE_BYTES ? size : PIECE_BYTES, err);
        if (status != VD_OK || size <= PIECE_BYTES)
            return status;
    }
}

static vd_status receive_piece(uint32_t from, uint32_t number, void *data, size_t size,
                               vd_err *err) {
    MPI_Status got;
    int count;
    int code = MPI_Recv(data, (int)size, MPI_BYTE, (int)from, (int)number, MPI_COMM_WORLD, &got);
    if (code == MPI_SUCCESS)
        code = MPI_Get_count(&got, MPI_BYTE, &count);
    if (code != MPI_SUCCESS)
        return failed(code, "receiving from it", from, err);
    return (size_t)count == size
               ? VD_OK
               : fail(err, VD_ERR_PEER, "process %u sent %d bytes as message %u, expected %zu",
                      from, count, number, size);
}

static vd_status mpi_receive(void *user, uint32_t from, uint32_t number, void *data, size_t size,
                             vd_err *err) {
    uint8_t *to = data;
    (void)user;
    reap(false);
    for (;; to += PIECE_BYTES, size -= PIECE_BYTES) {
        const vd_status status =
            receive_piece(from, number, to, size < PIECE_BYTES ? size : PIECE_BYTES, err);
        if (status != VD_OK || size <= PIECE_BYTES)
            return status;
    }
}

/* MPI's own waiting keeps a core busy. */
static vd_status mpi_await(void *user, uint32_t from, uint32_t number, vd_err *err) {
    long ns = AWAIT_NS_MIN;
    (void)user;
    for (;;) {
        int there = 0;
        const int code =
            MPI_Iprobe((int)from, (int)number, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS)
            return failed(code, "waiting for it", from, err);
        if (there)
            return VD_OK;
        reap(false);
        nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
        ns = 2 * ns < AWAIT_NS_MAX ? 2 * ns : AWAIT_NS_MAX;
    }
}

static vd_status mpi_flush(void *user, vd_err *err) {
    (void)user, (void)err;
    reap(true);
    return VD_OK;
}

static vd_status check_tags(vd_err *err) {
    int *most, found;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found);
    return found && *most >= TAG_MAX
               ? VD_OK
               : fail(err, VD_ERR_LOCAL, "this MPI has tags up to %d, expected %d or more",
                      found ? *most : 0, TAG_MAX);
}

static vd_status join(vd_transport *out, vd_err *err) {
    int level, rank, ranks;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS)
        return fail(err, VD_ERR_LOCAL, "MPI_Init_thread failed");
    if (level < MPI_THREAD_SERIALIZED)
        return fail(err, VD_ERR_LOCAL, "this MPI may be called by one thread alone");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    *out = (vd_transport){NULL,        (uint32_t)rank, (uint32_t)ranks, mpi_send,
                          mpi_receive, mpi_await,      mpi_flush};
    return check_tags(err);
}

static void leave(void *user, bool whole) {
    (void)user;
    if (!whole)
        MPI_Abort(MPI_COMM_WORLD, 1);
    reap(true);
    MPI_Finalize();
}

extern const vd_mpi_functions vd_mpi_library;
const vd_mpi_functions vd_mpi_library = {VD_MPI_VERSION, join, leave};
