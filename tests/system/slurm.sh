#!/bin/sh
# The Slurm example with mpirun instead of srun: its command line runs several processes. Slurm itself is not tested.
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
command -v mpirun > /dev/null && command -v mpicc > /dev/null || { echo "no mpirun and mpicc: libopenmpi-dev, openmpi-bin"; exit 77; }
. tests/support/system
flock "$build/mpi.lock" make --no-print-directory BUILD="$build" mpi > /dev/null
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export VERDE="$PWD/$verde"
mkdir "$work/bin"
cat > "$work/bin/srun" << 'SRUN'
#!/bin/sh
[ "$1 $2 $3" = "--mpi=pmix --kill-on-bad-exit=1 --cpu-bind=cores" ] || { echo "srun: options $1 $2 $3"; exit 2; }
shift 3
echo "processes: $SLURM_NTASKS"
mpirun --version | grep -q 'Open MPI' && set -- --oversubscribe -n "$SLURM_NTASKS" "$@" || set -- -n "$SLURM_NTASKS" "$@"
exec mpirun "$@"
SRUN
chmod +x "$work/bin/srun"
sed -e 's/^steps: .*/steps: 3/' -e 's/^checkpoint_interval: .*/checkpoint_interval: 3/' -e '/^micro_batches:/d' -e '/^evaluate:/d' \
    -e "s#\.\./data#$PWD/models/data#" models/jobs/toy.yaml > "$work/job.yaml"
echo 'micro_batches: 4' >> "$work/job.yaml"

expect 2 'not in a job of Slurm' env -u SLURM_NTASKS sh examples/slurm.sh run "$work/job.yaml" --out "$work/none"
expect 2 'usage: sbatch' env SLURM_NTASKS=3 sh examples/slurm.sh run
expect 0 '^run root' "$verde" run "$work/job.yaml" --out "$work/one" --threads 1
alone=$(root)
expect 0 '^run root' env PATH="$work/bin:$PATH" SLURM_NTASKS=3 SLURM_CPUS_PER_TASK=2 \
    sh examples/slurm.sh run "$work/job.yaml" --out "$work/three"
grep -qx 'processes: 3' "$work/out" || fail "not three processes"
[ -n "$alone" ] && [ "$(root)" = "$alone" ] || fail "another root than one process has"

# sbatch reads its options only before the first command.
[ "$(sed '/^[^#]/,$d' examples/slurm.sh | grep -c '^#SBATCH --')" -eq 7 ] || fail "options of sbatch behind a command"
echo "$count commands: the example's command line runs three processes"
