/* This file loads the library that contains MPI, and joins the processes that started together. */
#include "verde/team/mpi.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "repops/modes.h"

struct vd_mpi {
    const vd_mpi_functions *functions;
    vd_transport transport;
};

static long number_in(const char *name) {
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : 0;
}

uint32_t vd_mpi_processes(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    long count = getenv("PMIX_RANK") ? number_in("SLURM_NTASKS") : 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && count <= 1; i++)
        count = number_in(names[i]);
    return count > 1 && count <= INT_MAX ? (uint32_t)count : 1;
}

/* Looks for the library beside the program, in ../lib, then where the system does. Its symbols are
 * global, because MPI's own plug-ins need them. */
static void *open_library(void) {
    static const char *const places[] = {"", "../lib/"};
    char self[PATH_MAX], path[PATH_MAX + 64];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(self, '/');
    for (size_t i = 0; slash && i < sizeof places / sizeof places[0]; i++) {
        slash[1] = '\0';
        snprintf(path, sizeof path, "%s%s" VD_MPI_LIBRARY, self, places[i]);
        if (access(path, F_OK) == 0)
            return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    }
    return dlopen(VD_MPI_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
}

/* Refuses another MPI's launcher, under which each process believes to be alone. */
static vd_status check_launcher(const vd_transport *t, vd_err *err) {
    if (t->ranks == vd_mpi_processes())
        return VD_OK;
    return vd_fail(err, VD_ERR_USAGE,
                   "started as one of %u processes, and " VD_MPI_LIBRARY
                   " finds %u: it was built for "
                   "another MPI than this mpirun's; `make mpi MPICC=...` names its compiler",
                   vd_mpi_processes(), t->ranks);
}

/* Joins. The library is never unloaded, since few MPI libraries can be. */
vd_status vd_mpi_join(vd_mpi_lost lost, vd_mpi **out, vd_err *err) {
    *out = NULL;
    void *library = open_library();
    (void)ro_modes_set(); /* loading MPI may change the floating-point modes */
    const vd_mpi_functions *functions = library ? dlsym(library, "vd_mpi_library") : NULL;
    if (!functions)
        return vd_fail(err, VD_ERR_USAGE,
                       "started by MPI as one of %u processes, which needs " VD_MPI_LIBRARY
                       " (`make mpi`): %s",
                       vd_mpi_processes(), dlerror());
    if (functions->version != VD_MPI_VERSION)
        return vd_fail(err, VD_ERR_USAGE, VD_MPI_LIBRARY " is of version %u, expected %d",
                       functions->version, VD_MPI_VERSION);
    vd_mpi *mpi = calloc(1, sizeof *mpi);
    if (!mpi)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    mpi->functions = functions;
    vd_status status = functions->join(&mpi->transport, lost, err);
    (void)ro_modes_set(); /* joining may load plug-ins, which may change them again */
    if (status != VD_OK) {
        free(mpi);
        return status;
    }
    *out = mpi;
    return check_launcher(&mpi->transport, err);
}

vd_transport vd_mpi_transport(vd_mpi *mpi) {
    return mpi->transport;
}

void vd_mpi_leave(vd_mpi *mpi, bool whole) {
    if (!mpi)
        return;
    mpi->functions->leave(mpi->transport.user, whole);
    free(mpi);
}
