/* MPI as a transport, in a library of its own, so that only teams need MPI. */
#ifndef VD_MPI_H
#define VD_MPI_H

#include "verde/team/transport.h"

/* The number of processes that MPI's launcher started together, by the environment of Open MPI,
 * MPICH, or Slurm's PMIx; 1: there was no launcher. */
uint32_t vd_mpi_processes(void);

/* Receives a sentence that names a process without signs of life: it is stopped, or unreachable.
 * All processes end when this returns. A thread of its own calls it. */
typedef void (*vd_mpi_lost)(const char *sentence);

/* Joins the processes. VD_ERR_USAGE: the library is missing, or is of another version or another
 * MPI. The same thread must call vd_mpi_leave on *out, also after a failure; in between any thread
 * may use the transport, as transport.h says. */
typedef struct vd_mpi vd_mpi;
VD_MUST_USE vd_status vd_mpi_join(vd_mpi_lost lost, vd_mpi **out, vd_err *err);
vd_transport vd_mpi_transport(vd_mpi *mpi);
/* Waits until all other processes leave, or, unless `whole`, ends them at once. Accepts NULL. */
void vd_mpi_leave(vd_mpi *mpi, bool whole);

/* ---- what the library exports ---- */

#define VD_MPI_LIBRARY "libverde_mpi.so.1"
enum { VD_MPI_VERSION = 2 };
typedef struct {
    uint32_t version;
    vd_status (*join)(vd_transport *out, vd_mpi_lost lost, vd_err *err);
    void (*leave)(void *user, bool whole);
} vd_mpi_functions;

#endif
