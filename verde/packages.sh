#!/bin/sh
# Installs the named Debian packages that are missing, or says how to if it lacks the permission.
set -eu

if ! command -v dpkg-query > /dev/null 2>&1; then
    echo "This is no Debian, so nothing is looked for or installed. What is needed is what Debian calls: $*" >&2
    exit 0
fi
missing=
for package in "$@"; do
    state=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
    [ "$state" = "install ok installed" ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ -n "${NO_INSTALL:-}" ] || ! command -v apt-get >/dev/null 2>&1 || [ "$(id -u)" -ne 0 ]; then
    echo "Missing packages:$missing" >&2
    echo "Install them with: sudo apt-get install$missing" >&2
    exit 1
fi

log=$(mktemp)
trap 'rm -f "$log" "$log.code"' EXIT
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

# apt [OPTIONS]: installs the missing packages.
apt() {
    # shellcheck disable=SC2086
    apt-get install -y --no-install-recommends "$@" $missing
}

# lines: prints a line for each package that is fetched, unpacked and set up, and appends all of apt's output to $log.
lines() {
    set -f
    while IFS= read -r line; do
        printf '%s\n' "$line" >> "$log"
        # shellcheck disable=SC2086
        set -- $line
        case $line in
        Get:*) echo "  FETCH   ${5:-}" ;;
        "Unpacking "*) echo "  UNPACK  $2" ;;
        "Setting up "*) echo "  SET UP  $3" ;;
        esac
    done
}

echo "Installing$missing"
apt-get update -qq
archives=$(apt --print-uris -qq 2> /dev/null | grep -c "^'" || true)
packages=$(apt -s -qq 2> /dev/null | grep -c '^Inst ' || true)
{ code=0; apt -q 2>&1 || code=$?; echo $code > "$log.code"; } | lines | sh "$(dirname "$0")/number.sh" $((archives + 2 * packages))
[ "$(cat "$log.code")" -eq 0 ] || { tail -n 20 "$log" >&2; exit 1; }
