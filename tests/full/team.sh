#!/bin/sh
# Runs by 1 to 8 MPI processes: each kind of model has the run root of a single process, whichever was killed, and however many
# continue. A step that takes longer than a process may be silent does not end the run.
. tests/support/team

team_job gpt2 toy 16 8 6 3
team_job bert bert-tiny 8 8 6 3
team_job resnet resnet-tiny 16 8 4 2
work=$(cd "$work" && pwd)
set -- "$work" # what tests/support/finetune takes
. tests/support/finetune
job 8 4 lora | sed 's/^batch: .*/batch: 8/; s/^micro_batches: .*/micro_batches: 8/' > "$work/lora.yaml"
for name in gpt2 lora bert resnet; do
    alone $name
    for n in 1 2 3 4 6 8; do
        team $n $name $name-$n
        same $name-$n $name
        rm -r "${work:?}/$name-$n"
    done
done
if use_other_mpi; then
    for name in gpt2 lora bert resnet; do
        team 3 $name mpich-$name
        team 8 $name mpich8-$name
        same mpich-$name $name
        same mpich8-$name $name
    done
    use_first_mpi
fi

# After each state a process is killed, each time another one, and another number of processes continues.
team_job long toy 16 8 240 30
alone long
saved=0
for size in 3 2 8 4 6 3 5 7; do
    saved=$((saved + 1))
    hit KILL $((saved % size)) $size long killed $saved
done
team 2 long killed
same killed long

# Two steps of a second or more, with nodes during which a process says nothing.
team_job slow toy 2 2 3 3
sed -i 's/^model: .*/model: {kind: gpt2, vocab: 16384, context: 128, layers: 1, heads: 2, channels: 256, dropout: 0.1}/
    s/^sequence: .*/sequence: 128/' "$work/slow.yaml"
alone slow
export VERDE_TEAM_PATIENCE=1
team 2 slow slow-2 --backend scalar
same slow-2 slow

echo "$count runs of 1 to 8 processes have the root of one"
