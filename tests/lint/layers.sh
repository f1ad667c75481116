#!/bin/sh
# Dependencies point downward only, and the project uses nothing that changes bits or that it must not
# depend on.
set -u
bad=0

# The layers above: libraries that do the commands' work, and the commands. Nothing below includes them.
work="tell|load|run|serve|client|audit|delegate"

# forbid WHERE PATTERN WHY: no file under WHERE may match. ABOVE in the pattern means any of these
# layers.
forbid() {
    pattern=$(printf "%s\n" "$2" | sed "s/ABOVE/$work|cli/")
    # shellcheck disable=SC2086
    hits=$(grep -rnE --include='*.[ch]' --include='*.cu' --include='*.cuh' "$pattern" $1 2>/dev/null | grep -vE '^[^:]+:[0-9]+: *(/\*|\*)')
    [ -z "$hits" ] || { echo "$3:"; echo "$hits"; bad=1; }
}

forbid repops '#include "(verde|models)/' "repops knows nothing above it"
forbid verde/base '#include "(repops|models|verde/(graph|commit|weights|log|exec|team|protocol|net|job|page|ABOVE))/' "base is the lowest layer of verde"
forbid verde/graph '#include "(models|verde/(commit|weights|log|exec|team|protocol|net|job|page|ABOVE))/' "graph uses base and repops"
forbid models '#include "(repops/([^o]|o[^p])|verde/(commit|weights|log|exec|team|protocol|net|job|page|ABOVE))/' "models use graph and operators' numbers only"
forbid verde/commit '#include "(models|verde/(graph|weights|log|exec|team|protocol|net|job|page|ABOVE))/' "commit uses base and repops"
forbid verde/weights '#include "(models|verde/(graph|log|exec|team|protocol|net|job|page|ABOVE))/' "weights uses commit, base and repops"
forbid verde/log '#include "(models|verde/(weights|team|protocol|net|job|page|ABOVE))/' "log uses exec and below"
forbid verde/exec '#include "(models|verde/(weights|log|team|protocol|net|job|page|ABOVE))/' "exec uses commit and graph: it knows backends by their table alone"
forbid verde/team '#include "(models|verde/(weights|log|protocol|net|job|delivery|provide|ABOVE))/' "team uses exec and below"
forbid verde/protocol '#include "(repops|models|verde/(weights|team|net|job|page|ABOVE))/' "protocol uses exec and below, never repops"
forbid verde/protocol '\b(socket|connect|fopen|clock_gettime|time|open|read|write)\(' "protocol has no sockets, clock or files"
forbid verde/page '#include "(models|verde/(weights|team|net|job|delivery|provide|ABOVE))/' "page uses protocol and below"
forbid verde/net '#include "(repops|models|verde/(graph|weights|log|exec|team|protocol|job|page|ABOVE))/' "net knows bytes only"
forbid verde/job '#include "verde/log/[^l]' "job uses the format of logs alone, which needs no exec"
forbid verde/job '#include "(verde/(exec|team|protocol|net|delivery|ABOVE))/' "job uses models and below"
forbid verde/delivery '#include "(repops|models|verde/(job|ABOVE))/' "delivery uses net, protocol, exec and below"
forbid verde/provide '#include "(repops|models|verde/(job|ABOVE))/' "provide uses delivery, net, protocol, exec and below"
forbid verde/tell '#include "(repops|models|verde/([^bct]|b[^a]|c[^o]))' "tell uses commit and base"
forbid verde/load '#include "verde/(team|net|delivery|provide|run|serve|client|audit|delegate|cli)/' "load uses job, page, protocol and below"
forbid verde/run '#include "verde/(net|provide|serve|client|audit|delegate|cli)/' "run uses load, delivery, team and below"
forbid verde/serve '#include "verde/(client|audit|delegate|cli)/' "serve uses run, provide and below"
forbid verde/client '#include "verde/(provide|serve|audit|delegate|cli)/' "client uses run, net, delivery and below"
forbid verde/audit '#include "verde/(provide|serve|delegate|cli)/' "audit uses client and below"
forbid verde/delegate '#include "verde/(provide|serve|cli)/' "delegate uses audit, client and below"
forbid 'verde/protocol verde/net verde/delivery verde/provide' '\bvd_machine\b|vd_machine_here|vd_run_log_state' "what a run states of its machines is sent to nobody"
forbid 'repops/src repops/ref repops/cpu' '#include <math.h>' "no libm in an operator"
forbid 'repops/src repops/ref repops/cpu' '\b(fmaf?|sqrtf?|expf?|logf?|tanhf?|powf?|sinf?|cosf?)\(' "no libm in an operator"
# Examples are separate programs that only use repops.
forbid examples '#include "|#include <(verde|models)/' "the example uses repops's public headers"
libraries="repops/src repops/ref repops/cpu verde/base verde/graph verde/commit verde/weights verde/log verde/exec verde/team verde/protocol verde/page verde/wasm verde/net verde/job verde/delivery verde/provide models/*.[ch]"
forbid "$libraries" '\b(exit|abort)\(' "a library never exits"
# Layers between libraries and commands: they report progress on standard error.
workers="verde/$(echo "$work" | sed 's:|: verde/:g')"
forbid "$workers" '\b(exit|abort)\(' "a command ends, not what it calls"
forbid "$workers" '\b(printf|puts|putchar)\(|\bstdout\b' "what work comes to is printed by verde/cli alone"
forbid "$libraries" '\b(printf|puts|perror)\(|fprintf\(std' "a library never prints"

flags=$(grep -rnE -- '-ffast-math|-Ofast|-funsafe-math|-ffp-contract=(fast|on)' Makefile tests/*.mk tests/*/*.mk bench/*.mk repops verde models 2>/dev/null |
    grep -vE '#error|^[^:]+:[0-9]+: *(/\*|\*)')
[ -z "$flags" ] || { echo "flags that change bits:"; echo "$flags"; bad=1; }

# If two headers have the same guard, a file that includes both gets the second one empty.
guards=$(grep -rhE --include='*.h' --include='*.cuh' '^#ifndef [A-Z0-9_]+_H$' repops models verde bench tests | sort | uniq -d)
[ -z "$guards" ] || { echo "several headers have one guard:"; echo "$guards"; bad=1; }

for dir in models repops verde/*/; do
    [ -n "$(find "$dir" -name '*.[ch]')" ] || continue
    grep -q "^    ${dir%/} " README.md || { echo "README.md: its layers lack ${dir%/}"; bad=1; }
done

[ $bad -eq 0 ] && echo "layers and flags are as they should be"
exit $bad
