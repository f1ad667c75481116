/* Internals of libverde_mpi.so. Only one thread at a time calls MPI: it holds the lock from
 * vd_mpi_lock to vd_mpi_unlock. */
#ifndef VD_MPI_INTERNAL_H
#define VD_MPI_INTERNAL_H

#include "verde/team/mpi.h"

void vd_mpi_lock(void);
void vd_mpi_unlock(void);
/* Sets *err, as vd_fail does, which a library cannot reach in the program that loads it. */
vd_status vd_mpi_fail(vd_err *err, vd_status status, const char *format, ...);

/* ---- watch.c: signs of life ---- */

/* Starts the thread that sends signs of life and watches others'. All processes call it. */
VD_MUST_USE vd_status vd_watch_start(uint32_t rank, uint32_t ranks, vd_mpi_lost lost, vd_err *err);
/* Tells the watched processes that this one ends, and waits until they end too. */
void vd_watch_end(void);

#endif
