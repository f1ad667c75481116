#!/bin/sh
#SBATCH --job-name=verde
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
# A run by several processes under Slurm, or its replay for a referee. The lines above are an example: options of sbatch go before
# them. It has not yet been run under Slurm: its tests use mpirun instead of srun.
#
#     sbatch --nodes=8 examples/slurm.sh run job.yaml --out /shared/run
#     sbatch --nodes=8 examples/slurm.sh serve /shared/run --listen 0.0.0.0:8443 --key /shared/key
#
# - There may be at most as many processes as the job has micro-batches. The root is that of one process, whatever their number.
# - All processes read the job, its data and its weights; only the first one writes and reads --out. A requeued job continues from its
#   last checkpoint, also with another number of processes, if the first process finds --out again.
# - MPI=pmix is for Open MPI, MPI=pmi2 for MPICH: `srun --mpi=list` shows what there is.
# - A referee must be able to reach the first node's address, which `verde serve` prints.
set -eu
[ $# -ge 2 ] || { echo "usage: sbatch slurm.sh run JOB --out DIR | serve DIR --listen ADDR:PORT --key DIR" >&2; exit 2; }
[ -n "${SLURM_NTASKS:-}" ] || { echo "slurm.sh: not in a job of Slurm: give it to sbatch" >&2; exit 2; }
command=$1
shift
exec srun --mpi="${MPI:-pmix}" --kill-on-bad-exit=1 --cpu-bind=cores \
    "${VERDE:-verde}" "$command" "$@" --threads "${SLURM_CPUS_PER_TASK:-1}"
