#!/bin/sh
# Disputes about runs by several processes, served by one process or by several: a run by four is agreed with, or convicted, like
# a run by one.
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
command -v mpirun > /dev/null && command -v mpicc > /dev/null || { echo "no mpirun and mpicc: libopenmpi-dev, openmpi-bin"; exit 77; }
. tests/support/system
flock "$build/mpi.lock" make --no-print-directory BUILD="$build" mpi > /dev/null
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun=mpirun
mpirun --version | grep -q 'Open MPI' && mpirun="mpirun --oversubscribe"

# Six micro-batches: of four processes, the third has only the fifth.
sed -e 's/^batch: .*/batch: 12/' -e '/^micro_batches:/d' -e 's/^steps: .*/steps: 12/' -e '/^evaluate:/d' \
    -e 's/^checkpoint_interval: .*/checkpoint_interval: 4/' -e "s#\.\./data#$PWD/models/data#" models/jobs/toy.yaml > "$work/job.yaml"
echo 'micro_batches: 6' >> "$work/job.yaml"

# run_by N NAME [OPTION...]: runs the job with N processes into $work/NAME.
run_by() {
    n=$1 name=$2
    shift 2
    # shellcheck disable=SC2086
    expect 0 '^run root' $mpirun -n "$n" "$verde" run "$work/job.yaml" --out "$work/$name" --threads 1 "$@"
    root > "$work/$name.root"
}

# serve_by N RUN: serves it with N processes; $answers is the one that answers.
serve_by() {
    # shellcheck disable=SC2086
    start "$2" $mpirun -n "$1" "$verde" serve "$work/$2" --key "$work/keys-$2" --threads 1
    answers=$(pgrep -o -f "^$verde serve $work/$2 ")
}

# settle LABEL EXIT_CODE WORDS RUN RUN: holds a dispute and verifies its verdict.
settle() {
    # shellcheck disable=SC2046
    expect "$2" "$3" "$verde" arbitrate "$work/job.yaml" --key "$work/referee" --verdict "$work/$1.json" --timeout 120 \
        $(providers "$4" "$5")
    cp "$work/out" "$work/$1.said"
    "$verde" verify "$work/$1.json" --job "$work/job.yaml" --quiet || fail "$1: the verdict does not hold"
}

# gone RUN: within a minute no process serves it any more.
gone() {
    tries=0
    while pgrep -f "^$verde serve $work/$1 " > /dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || fail "a process of $1 goes on"
        sleep 0.1
    done
}

run_by 1 one
run_by 4 four
run_by 4 liar --fault element@7:m4.h.0.attn.qkv.matmul
run_by 4 owner --fault element@7:adamw.wpe.v
run_by 4 attr --fault attr@5
cmp -s "$work/one.root" "$work/four.root" || fail "four processes have another root than one"
cp -r "$work/four" "$work/four_served"

serve one --key "$work/keys-one" --threads 1
serve liar --key "$work/keys-liar" --threads 1
serve_by 3 four

# decided LABEL: prints place and values of the decision, which must not depend on who serves.
decided() {
    grep -e '^where' -e '^reference' -e '^ *wrong-output' -e '^accepted' "$work/$1.said"
}

settle agreed 0 'agreed' one four
settle alone 3 '^provider 2 *CONVICTED' four liar
grep -q 'm4.h.0.attn.qkv.matmul' "$work/alone.said" || fail "not at the node of the fault"
kill "$pid"
gone four

# The liar is served by a team, and the honest run by one process.
cp -r "$work/liar" "$work/liar_team"
serve_by 4 liar_team
settle team 3 '^provider 2 *CONVICTED' one liar_team
[ "$(decided team)" = "$(decided alone)" ] || fail "a team is convicted elsewhere: $(decided team)"
kill -TERM "$answers"
gone liar_team

# Nodes of the optimizer, whose tensors only one process has; an attribute, whose fault unrolls the graph.
for name in owner attr; do
    serve_by 3 $name
    settle $name 3 '^provider 2 *CONVICTED' one $name
    kill -TERM "$answers"
    gone $name
done
grep -q 'adamw.wpe.v' "$work/owner.said" || fail "not at the optimizer's node"

# One process is killed: all end. Restarted with its key, the run is served as before.
serve_by 3 four_served
kill -9 "$(pgrep -n -f "^$verde serve $work/four_served ")"
gone four_served
code=0
wait "$pid" || code=$?
[ $code -ne 0 ] || fail "a killed process goes unnoticed"
serve_by 2 four_served
settle again 0 'agreed' one four_served

# The other MPI implementation, if both are installed: libmpich-dev, mpich.
if command -v mpicc.mpich > /dev/null && command -v mpirun.mpich > /dev/null; then
    make --no-print-directory BUILD="$work/mpich" MPICC=mpicc.mpich mpi > /dev/null
    mkdir -p "$work/mpich/bin"
    cp "$verde" "$work/mpich/bin/verde"
    mv "$work/liar" "$work/mpich_liar"
    open=$mpirun plain=$verde
    mpirun=mpirun.mpich verde=$work/mpich/bin/verde
    serve_by 3 mpich_liar
    settle mpich 3 '^provider 2 *CONVICTED' one mpich_liar
    [ "$(decided mpich)" = "$(decided alone)" ] || fail "a team of MPICH is convicted elsewhere: $(decided mpich)"
    kill -TERM "$answers"
    gone mpich_liar
    mpirun=$open verde=$plain
fi

# More processes than micro-batches, and runs that only one process can serve: one line each.
# shellcheck disable=SC2086
expect 1 'a team of 7 processes: expected 1 to 6' $mpirun -n 7 "$verde" serve "$work/four" --threads 1
[ "$(grep -c '^verde: a team' "$work/err")" -eq 1 ] || fail "not said once"
echo "$count commands: runs of four processes are agreed with and convicted, served by one process and by several"
