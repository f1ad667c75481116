/* libverde_mpi.so from inside. MPI is asked by one thread at a time: between vd_mpi_lock and
 * vd_mpi_unlock. */
#ifndef VD_MPI_INTERNAL_H
#define VD_MPI_INTERNAL_H

#include "verde/team/mpi.h"

void vd_mpi_lock(void);
void vd_mpi_unlock(void);
/* Sets *err; the program's own function is not there for a library. */
vd_status vd_mpi_fail(vd_err *err, vd_status status, const char *format, ...);

/* ---- watch.c: signs of life ---- */

/* Starts a thread that gives them and looks for those of others. All processes call it. */
VD_MUST_USE vd_status vd_watch_start(uint32_t rank, uint32_t ranks, vd_mpi_lost lost, vd_err *err);
/* Waits until those that this process watches have come here too. */
void vd_watch_end(void);

#endif
