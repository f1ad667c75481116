#!/bin/sh
# Ten clients hand jobs of their own to the same two daemons at the same time, one of them dishonest: each gets the honest model.
. tests/support/system
keys=
for i in 0 1 2 3 4 5 6 7 8 9; do
    "$verde" keygen "$work/client-$i" > /dev/null
    keys="$keys --client $(cat "$work/client-$i/key.pub")"
    sed -e "s/^seed: .*/seed: $i/" -e "s|file: .*|file: $PWD/models/data/project.txt|" models/jobs/toy.yaml > "$work/$i.yaml"
    "$verde" run "$work/$i.yaml" --out "$work/run-$i" --threads 1 > "$work/out" 2> "$work/err"
    "$verde" export "$work/run-$i" --out "$work/honest-$i" > /dev/null
done
# shellcheck disable=SC2086
start honest "$verde" provide --dir "$work/honest" --listen 127.0.0.1:0 --threads 1 --jobs 2 $keys
# shellcheck disable=SC2086
start wrong "$verde" provide --dir "$work/wrong" --listen 127.0.0.1:0 --threads 1 --jobs 2 $keys --fault element@7
clients=
for i in 0 1 2 3 4 5 6 7 8 9; do
    timeout 2000 "$verde" delegate "$work/$i.yaml" --key "$work/client-$i" --provider "$wrong" --provider "$honest" --out "$work/result-$i" \
        > "$work/out.$i" 2> "$work/err.$i" &
    clients="$clients $!"
done
for client in $clients; do
    code=0
    wait "$client" || code=$?
    [ $code -eq 3 ] || { tail -n 3 "$work"/err.?; fail "exit code $code, expected 3"; }
done
for i in 0 1 2 3 4 5 6 7 8 9; do
    cmp "$work/honest-$i/model.safetensors" "$work/result-$i/model.safetensors" || fail "client $i has another model"
done
echo "ten clients at once, each beside a dishonest provider"
