#!/bin/sh
# MPI processes that compute on a simulated device: they communicate through host memory, and the run root is that of one
# process on the CPU.
. tests/simt/setup
rm -r "$temp"
. tests/support/team
team_job gpt2 toy 4 4 4 2
sed -i 's/^model: .*/model: {kind: gpt2, vocab: 256, context: 8, layers: 1, heads: 2, channels: 8, dropout: 0.1}/
    s/^sequence: .*/sequence: 8/' "$work/gpt2.yaml"
team_job resnet resnet-tiny 4 4 2 1
alone gpt2
alone resnet
for n in 2 3; do
    for name in gpt2 resnet; do
        team $n $name $name-$n --backend cuda:0
        same $name-$n $name
    done
done
# A run that began on a device is continued by other processes on the CPU.
team_job long toy 4 4 12 2
alone long
hit KILL 1 2 long killed 2 --backend cuda:0
team 3 long killed
same killed long
echo "$count runs of 2 and 3 processes on a device have the root of one on the CPU"
