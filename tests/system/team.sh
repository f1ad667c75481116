#!/bin/sh
# Runs by several processes of MPI: the run root of one process, whatever their number, and when one of them was killed.
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
command -v mpirun > /dev/null && command -v mpicc > /dev/null || { echo "no mpirun and mpicc: libopenmpi-dev, openmpi-bin"; exit 77; }
make --no-print-directory BUILD="$build" mpi > /dev/null
verde=$build/bin/verde
work=$build/tests/team
rm -rf "$work"
mkdir -p "$work"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun=mpirun
mpirun --version | grep -q 'Open MPI' && mpirun="mpirun --oversubscribe"
top=$PWD
count=0
running=
trap '[ -z "$running" ] || kill $running 2> /dev/null || true' EXIT

fail() {
    echo "$*"
    exit 1
}

# job NAME KIND BATCH MICRO STEPS EVERY: models/jobs/KIND.yaml with other numbers, in $work/NAME.yaml.
job() {
    sed -e "s/^batch: .*/batch: $3/" -e '/^micro_batches:/d' -e "s/^steps: .*/steps: $5/" -e '/^evaluate:/d' \
        -e "s/^checkpoint_interval: .*/checkpoint_interval: $6/" -e "s#\.\./data#$top/models/data#" "models/jobs/$2.yaml" > "$work/$1.yaml"
    echo "micro_batches: $4" >> "$work/$1.yaml"
}

# team N NAME OUT [OPTIONS]: by N processes.
team() {
    n=$1 name=$2 out=$3
    shift 3
    # shellcheck disable=SC2086
    $mpirun -n "$n" "$verde" run "$work/$name.yaml" --out "$work/$out" --threads 1 "$@" > "$work/$out.out" 2> "$work/$out.log" ||
        { cat "$work/$out.log"; fail "$name by $n processes fails"; }
}

root() {
    sed -n 's/^run root *//p' "$work/$1.out"
}

# same OUT NAME: has the root of NAME by one process, and its files but for the seconds that steps took.
same() {
    [ -n "$(root "$2-alone")" ] && [ "$(root "$1")" = "$(root "$2-alone")" ] || fail "$1: another root than one process has"
    diff -r -x losses.jsonl "$work/$1" "$work/$2-alone" || fail "$1: other files than one process has"
    count=$((count + 1))
}

# alone NAME [OPTIONS]: by one process, in NAME-alone.
alone() {
    name=$1
    shift
    "$verde" run "$work/$name.yaml" --out "$work/$name-alone" --threads 1 "$@" > "$work/$name-alone.out" 2> "$work/$name-alone.log" ||
        { cat "$work/$name-alone.log"; fail "$name fails"; }
}

job gpt2 toy 12 6 12 4
job llama llama-tiny 6 6 8 4
job bert bert-tiny 6 6 8 4
for name in gpt2 llama bert; do alone $name; done
for n in 2 3 6; do
    team $n gpt2 gpt2-$n
    same gpt2-$n gpt2
done
for name in llama bert; do
    team 4 $name $name-4
    same $name-4 $name
done

# A wrong element of one process is the one of a run alone: who ran by several is convicted as ever.
cp "$work/gpt2.yaml" "$work/liar.yaml"
alone liar --fault element@7
team 3 liar liar-3 --fault element@7
same liar-3 liar
[ "$(root liar-3)" != "$(root gpt2-3)" ] || fail "the fault changes nothing"

# hit SIGNAL RANK OUT: sends it to one of three processes of a run once a checkpoint is there, and waits for the run's end.
hit() {
    # shellcheck disable=SC2086
    $mpirun -n 3 "$verde" run "$work/long.yaml" --out "$work/$3" --threads 1 > "$work/$3.out" 2> "$work/$3.log" &
    running=$!
    tries=0
    until [ -e "$work/$3/run.json" ] && [ "$(grep -c '"step"' "$work/$3/losses.jsonl" 2> /dev/null)" -ge 7 ]; do
        tries=$((tries + 1))
        [ $tries -lt 1200 ] || { cat "$work/$3.log"; fail "no checkpoint in a minute"; }
        sleep 0.05
    done
    for victim in $(pgrep -f -- "--out $work/$3 "); do
        ! tr '\0' '\n' < "/proc/$victim/environ" | grep -qE "^(OMPI_COMM_WORLD|PMI)_RANK=$2\$" || kill -s "$1" "$victim"
    done
    code=0
    wait $running || code=$?
    running=
    [ $code -ne 0 ] || fail "$3: goes unnoticed"
    [ -z "$(root "$3")" ] || fail "$3: a run without one of its processes has a root"
}

# goes_on OUT: two processes finish what three began.
goes_on() {
    team 2 long "$1"
    same "$1" long
    grep -q 'went on from the checkpoint' "$work/$1.log" || fail "$1: did not go on from a checkpoint"
}

job long toy 12 6 40 5
alone long
hit KILL 1 killed
goes_on killed

# One that hangs is named, and all end.
export VERDE_TEAM_PATIENCE=5
for rank in 0 2; do
    hit STOP $rank stopped-$rank
    [ "$(grep -c "^verde: process $rank of 3 (pid [0-9]* on .*) has given no sign of life for [5-9] s" "$work/stopped-$rank.log")" -eq 1 ] ||
        { cat "$work/stopped-$rank.log"; fail "process $rank hangs, and is not named once"; }
done
unset VERDE_TEAM_PATIENCE
goes_on stopped-2

# The other MPI, if both are there: libmpich-dev, mpich.
if command -v mpicc.mpich > /dev/null && command -v mpirun.mpich > /dev/null; then
    make --no-print-directory BUILD="$work/mpich" MPICC=mpicc.mpich mpi > /dev/null
    mkdir -p "$work/mpich/bin"
    cp "$verde" "$work/mpich/bin/verde"
    open=$mpirun
    mpirun=mpirun.mpich
    verde=$work/mpich/bin/verde
    team 4 gpt2 mpich-4
    mpirun=$open
    same mpich-4 gpt2
    verde=$build/bin/verde
    code=0
    mpirun.mpich -n 2 "$verde" run "$work/gpt2.yaml" --out "$work/other" > "$work/other.out" 2> "$work/other.log" || code=$?
    if ldd "$build/lib/libverde_mpi.so.1" | grep -q libmpich; then
        [ $code -eq 0 ] || fail "mpirun.mpich does not start what mpicc.mpich built"
    else
        [ $code -ne 0 ] && grep -q 'built for another MPI' "$work/other.log" || fail "the launcher of another MPI goes unnoticed"
    fi
fi

# Refusals are said once.
code=0
# shellcheck disable=SC2086
$mpirun -n 7 "$verde" run "$work/gpt2.yaml" --out "$work/seven" --threads 1 > "$work/seven.out" 2> "$work/seven.log" || code=$?
[ $code -ne 0 ] || fail "more processes than micro-batches run"
[ "$(grep -c '^verde: a team of 7 processes: expected 1 to 6' "$work/seven.log")" -eq 1 ] || { cat "$work/seven.log"; fail "not said once"; }

echo "$count runs of 2, 3, 4 and 6 processes have the root of one"
