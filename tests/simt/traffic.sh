#!/bin/sh
# Counts memory requests of kernels by source line (traffic.cc), in a step of a small GPT-2 and a small ResNet: lanes of a warp
# must read whole sectors of device memory, and words in different banks of shared memory.
# Usage: traffic.sh BUILD_DIR [all]; all: a line for each line of the source.
. tests/simt/setup
command -v addr2line > /dev/null || { echo "no addr2line: accesses were not counted"; exit 77; }
export REPOPS_CUDA_LIBRARY="$simt/traffic.so" SIMT_TRAFFIC="$temp/counts" SIMT_SMS=132

# step JOB SED_ARGUMENTS...
step() {
    job=$1
    shift
    sed -e "s|file: \.\.|file: $PWD/models|" -e "s|\.\./data/|$PWD/models/data/|" -e 's/^steps: .*/steps: 1/' -e 's/warmup: [0-9]*/warmup: 0/' \
        -e 's/^checkpoint_interval: .*/checkpoint_interval: 1/' -e '/^micro_batches/d' "$@" "models/jobs/$job.yaml" > "$temp/$job.yaml"
    "$build/bin/verde" run "$temp/$job.yaml" --out "$temp/$job" --backend cuda:0 > "$temp/log" 2>&1 || { cat "$temp/log"; fail "$job"; }
}
# A vocabulary that is not a multiple of 4, like GPT-2's.
step toy -e 's/vocab: 256, context: 32, layers: 2, heads: 2, channels: 32/vocab: 1021, context: 64, layers: 1, heads: 2, channels: 128/' \
    -e 's/^batch: .*/batch: 1/' -e 's/^sequence: .*/sequence: 64/'
step resnet-tiny -e "s/channels: 8/channels: 16/" -e 's/^batch: .*/batch: 1/'

# Finds function and line of each instruction: of inlined functions the innermost that is the kernel's, not the shim's.
cut -d ' ' -f 1 "$temp/counts" | while read -r at; do printf '%x\n' $((0x$at - 1)); done > "$temp/at"
addr2line -afiC -e "$simt/traffic.so" < "$temp/at" | awk '
    function emit() { if (seen) print (place == "" ? "? ?" : name " " place) }
    /^0x[0-9a-f]*$/ { emit(); seen = 1; n = 0; place = ""; next }
    ++n % 2 { f = $0; next }
    place == "" && /repops\/cuda\// {
        sub(/ \(discriminator.*/, ""); sub(/.*\//, ""); place = $0
        sub(/[(<].*/, "", f); sub(/.* /, "", f); name = f }
    END { emit() }' > "$temp/lines"
[ "$(wc -l < "$temp/lines")" -eq "$(wc -l < "$temp/counts")" ] || fail "addr2line named other instructions than were counted"
# Instructions that may need more, with the reasons.
paste -d ' ' "$temp/lines" "$temp/counts" | awk -v all="${2:-}" '
    BEGIN { least = 0.005 # of all sectors, or turns
        known["whole_leaf"] = known["any_leaf"] = known["leaves_kernel"] = "a thread hashes a leaf of its own, which lie 1 KiB apart"
        known["gemm_store"] = "rows that begin anywhere, or lie transposed, are stored one by one" }
    { at = $4 " " $1 " " $2; requests[at] += $5; lanes[at] += $6; taken[at] += $7; fewest[at] += $8; sum[$4] += $7; few[$4] += $8 }
    END { for (at in taken) { split(at, p, " "); many = taken[at] / fewest[at]; share = taken[at] / sum[p[1]]
            text = sprintf("%-18s %-22s %9d %6.1f lanes %10d %s %6.2f of the fewest %5.1f %% of all", p[2], p[3], requests[at], lanes[at] / requests[at],
                taken[at], p[1] == "g" ? "sectors" : "turns  ", many, 100 * share)
            if (all != "") print text
            if (share >= least && many > 1.3 && !(p[2] in known)) { print "FAILED: " text; bad++ }
            if (p[2] in known && many > 1.3) met[p[2]] = 1 }
        for (f in known) if (!(f in met)) { print "FAILED: " f " asks for no more than it needs: it need not be known"; bad++ }
        printf "%d lines of kernels: %.2f of the fewest sectors, %.2f of the fewest turns of shared memory\n", length(taken), sum["g"] / few["g"], sum["s"] / few["s"]
        exit bad > 0 || sum["g"] <= few["g"] || sum["s"] <= few["s"] } # some lines do ask for more: that is seen' > "$temp/said" || bad=1
cat "$temp/said"
exit $bad
