#!/bin/sh
# Runs by several MPI processes have the run root of a single one, whatever their number, and also after one was killed.
. tests/support/team

team_job gpt2 toy 12 6 12 4
team_job llama llama-tiny 6 6 8 4
team_job bert bert-tiny 6 6 8 4
team_job fixed toy 12 6 4 2
echo 'products: fixed16' >> "$work/fixed.yaml"
for name in gpt2 llama bert fixed; do alone $name; done
for n in 2 3 6; do
    team $n gpt2 gpt2-$n
    same gpt2-$n gpt2
done
for name in llama bert fixed; do
    team 4 $name $name-4
    same $name-4 $name
done

# Owners of parameters round them as a single process does.
team_job stored toy 12 6 12 4
echo 'storage: bf16' >> "$work/stored.yaml"
alone stored
team 3 stored stored-3
same stored-3 stored

# A wrong element in one process is the same as in a single-process run: such a run is convicted as usual.
cp "$work/gpt2.yaml" "$work/liar.yaml"
alone liar --fault element@7
team 3 liar liar-3 --fault element@7
same liar-3 liar
[ "$(root liar-3)" != "$(root gpt2-3)" ] || fail "the fault changes nothing"

# goes_on OUT: two processes finish what three began.
goes_on() {
    team 2 long "$1"
    same "$1" long
    grep -q 'went on from the checkpoint' "$work/$1.log" || fail "$1: did not go on from a checkpoint"
}

team_job long toy 12 6 40 5
alone long
hit KILL 1 3 long killed 2
goes_on killed

for wrong in 5s 0 86401 -1 ten; do
    code=0
    VERDE_TEAM_PATIENCE=$wrong $mpirun -n 2 "$verde" run "$work/long.yaml" --out "$work/none" > "$work/patience.log" 2>&1 || code=$?
    [ $code -ne 0 ] && grep -q 'VERDE_TEAM_PATIENCE must be seconds' "$work/patience.log" ||
        { cat "$work/patience.log"; fail "VERDE_TEAM_PATIENCE=$wrong is taken"; }
    [ ! -e "$work/none" ] || fail "VERDE_TEAM_PATIENCE=$wrong has begun a run"
done

# A process that hangs is named, and all end.
export VERDE_TEAM_PATIENCE=5
for rank in 0 2; do
    hit STOP $rank 3 long stopped-$rank 2
    [ "$(grep -c "^verde: process $rank of 3 (pid [0-9]* on .*) has given no sign of life for [5-9] s" "$work/stopped-$rank.log")" -eq 1 ] ||
        { cat "$work/stopped-$rank.log"; fail "process $rank hangs, and is not named once"; }
done
unset VERDE_TEAM_PATIENCE
goes_on stopped-2

# The other MPI implementation, if both are installed.
if use_other_mpi; then
    team 4 gpt2 mpich-4
    use_first_mpi
    same mpich-4 gpt2
    code=0
    mpirun.mpich -n 2 "$verde" run "$work/gpt2.yaml" --out "$work/other" > "$work/other.out" 2> "$work/other.log" || code=$?
    if ldd "$build/lib/libverde_mpi.so.1" | grep -q libmpich; then
        [ $code -eq 0 ] || fail "mpirun.mpich does not start what mpicc.mpich built"
    else
        [ $code -ne 0 ] && grep -q 'built for another MPI' "$work/other.log" || fail "the launcher of another MPI goes unnoticed"
    fi
fi

# Refusals are printed once.
code=0
# shellcheck disable=SC2086
$mpirun -n 7 "$verde" run "$work/gpt2.yaml" --out "$work/seven" --threads 1 > "$work/seven.out" 2> "$work/seven.log" || code=$?
[ $code -ne 0 ] || fail "more processes than micro-batches run"
[ "$(grep -c '^verde: a team of 7 processes: expected 1 to 6' "$work/seven.log")" -eq 1 ] || { cat "$work/seven.log"; fail "not said once"; }

echo "$count runs of 2, 3, 4 and 6 processes have the root of one"
