# libverde_mpi.so.1, by MPI's own compiler: Open MPI's or MPICH's. verde itself needs no MPI.
MPICC ?= mpicc
mpi: ## the library for runs of several processes, by mpicc
mpi: $(BUILD)/lib/libverde_mpi.so.1
verde_mpi := verde/mpi/verde_mpi.c verde/mpi/watch.c
$(BUILD)/lib/libverde_mpi.so.1: $(verde_mpi) verde/mpi/mpi_internal.h verde/team/mpi.h verde/team/transport.h verde/team/team.h $(FLAGS)
	@mkdir -p $(@D)
	@echo "  MPICC   $@"
	$(Q)$(MPICC) $(BASE) $(OPT) -fPIC $(CFLAGS) -shared -Wl,-soname,libverde_mpi.so.1 $(verde_mpi) -pthread -o $@
.PHONY: mpi
