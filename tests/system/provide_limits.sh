#!/bin/sh
# Programs of a few hundred bytes that would take hours: a daemon estimates a program's needs and refuses it before it starts.
. tests/support/system
client=tests/system/provide_client.py
if ! command -v python3 > /dev/null || ! python3 -c 'import ssl' 2> /dev/null || ! command -v openssl > /dev/null; then
    echo "no python3 with ssl, or no openssl: there is no other client"
    exit 77
fi

# refused WORDS PROGRAM: the daemon refuses it, in one answer.
refused() {
    expect 1 "^413 {\"error\":\"$1\"}" python3 "$client" "$url" "$work/client" submit "$work/$2"
}
# daemon NAME OPTION...: starts one that counts as one core on any machine; $url is its URL.
daemon() {
    name=$1
    shift
    provide "$name" 127.0.0.1:0 --cores 1 "$@"
    eval "url=\$$name"
}

mkdir "$work/hostile"
python3 tests/vectors/hostile/hostile.py "$work/hostile"
for program in permutation product convolution steps; do
    cmp "$work/hostile/$program" "tests/vectors/hostile/$program" || fail "$program is not what its generator writes"
    mkdir "$work/$program"
    cp "$work/hostile/$program" "$work/$program/program"
    echo '{"data":[],"verde":1}' > "$work/$program/data.json"
done
"$verde" keygen "$work/client" > /dev/null

daemon default --memory 100G --client-bytes 1T
refused 'the job takes [0-9]* s by an estimate from its program, and the limit is 86400 (--job-seconds)' steps
refused 'a step of the job, or its initialisation, takes about [0-9]* s by its program, and a referee waits for no more than 1800 .*' convolution
daemon short --memory 100G --job-seconds 5
refused 'the job takes [0-9]* s by an estimate from its program, and the limit is 5 (--job-seconds)' permutation
refused 'the job takes [0-9]* s by an estimate from its program, and the limit is 5 (--job-seconds)' product
daemon small --memory 1G
refused 'the job takes [0-9]* bytes of memory, and the limit is 1000000000 (--memory)' product

# A referee can wait for a step of seconds once, not a hundred times.
python3 - "$work" << 'END'
import sys
sys.path.insert(0, "tests/vectors/hostile")
import hostile
open(f"{sys.argv[1]}/permutation/program", "wb").write(hostile.permutation(1 << 28, 100))
open(f"{sys.argv[1]}/steps/program", "wb").write(hostile.product(256, 1000000))
END
daemon patient --memory 100G
refused 'a step of the job, or its initialisation, takes about [0-9]* s by its program, and a referee waits for no more than 3 .*' permutation

# An operator who states a faster machine accepts what was refused.
daemon slow --job-seconds 5
refused 'the job takes [0-9]* s by an estimate from its program, and the limit is 5 (--job-seconds)' steps
provide fast 127.0.0.1:0 --job-seconds 5 --cores 1000000
url=$fast
expect 0 '^[0-9a-f]\{64\}$' python3 "$client" "$url" "$work/client" submit "$work/steps"
expect 0 '^200 ' python3 "$client" "$url" "$work/client" request POST "/v1/jobs/$(cat "$work/out")/cancel"
echo "$count answers of daemons"
