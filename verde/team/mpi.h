/* MPI as a transport, in a library of its own: who uses no team needs no MPI. */
#ifndef VD_MPI_H
#define VD_MPI_H

#include "verde/team/transport.h"

/* How many processes MPI started beside this one and with it, as its launcher says in the
 * environment (Open MPI, MPICH, and Slurm's PMIx); 1: it did not. */
uint32_t vd_mpi_processes(void);

/* Told which process gives no more signs of life: it is stopped, or its machine cannot be reached.
 * All are ended when it returns. Called in a thread of its own. */
typedef void (*vd_mpi_lost)(const char *sentence);

/* Joins them. VD_ERR_USAGE: the library is not there, or is another version's or another MPI's.
 * What is in *out, also then, is left in the same thread by vd_mpi_leave; in between any threads
 * may use it, as transport.h says. */
typedef struct vd_mpi vd_mpi;
VD_MUST_USE vd_status vd_mpi_join(vd_mpi_lost lost, vd_mpi **out, vd_err *err);
vd_transport vd_mpi_transport(vd_mpi *mpi);
/* Waits for all others to leave. If not `whole`, they are ended at once. Accepts NULL. */
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
