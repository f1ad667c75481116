#!/bin/sh
# Debian's packages in fresh Debian 12s: lintian finds nothing; they are installed, upgraded while the daemon runs, and used: two
# providers as systemd's services under their own user, one of whom cheats, and a client; their own tests (debian/tests) pass; a purge
# leaves nothing. Needs root, and some 3 GB.
# DEBS=folder: packages that `make deb` has made in BUILD/deb, and their source, instead of new ones.
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "a system is installed by root alone"; exit 77; }
for tool in mmdebstrap systemd-nspawn dpkg-buildpackage lintian autopkgtest; do
    command -v $tool > /dev/null || { echo "no $tool"; exit 77; }
done
work=$PWD/$build/tests/packages
rm -rf "$work"
mkdir -p "$work/old" "$work/new"
version=$(sed -n 's/^#define RO_VERSION *"\(.*\)"/\1/p' repops/include/repops/repops.h)
ours='librepops1 librepops-dev librepops-cuda1 verde python3-repops'
booted=

fail() {
    echo "$*"
    exit 1
}
# Shuts down all booted systems: systemd takes this signal for a power button.
cleanup() {
    for pid in $booted; do kill "$pid" 2> /dev/null || true; done
    wait
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# within ROOT COMMAND...: runs the command in that system, which is not booted, with this machine's network.
within() {
    root=$1
    shift
    systemd-nspawn -q -D "$work/$root" --register=no --keep-unit --resolv-conf=copy-host --as-pid2 --console=pipe \
        --bind-ro="$work/new:/new" --bind-ro="$work/old:/old" --setenv=DEBIAN_FRONTEND=noninteractive "$@" < /dev/null
}
# leader ROOT: prints the process id of its systemd.
leader() { pgrep -P "$(cat "$work/$1.pid")" | head -n 1; }
# install ROOT FILE...: installs these packages in it.
install() {
    root=$1
    shift
    within "$root" apt-get install -qq --no-install-recommends "$@" >> "$work/apt.txt" 2>&1 || { tail -n 20 "$work/apt.txt"; fail "$root: apt-get install $*"; }
}
# boot ROOT: boots it; `on ROOT COMMAND...` then runs a command in it.
boot() {
    systemd-nspawn -q -b -D "$work/$1" --register=no --keep-unit --resolv-conf=copy-host --console=pipe --bind-ro="$work/new:/new" \
        < /dev/null > "$work/$1.boot.txt" 2>&1 &
    echo $! > "$work/$1.pid"
    booted="$booted $!"
    until_true "the system $1 does not boot" on "$1" systemctl is-system-running --quiet --wait
}
on() {
    root=$1
    shift
    pid=$(leader "$root") && [ -n "$pid" ] || return 1
    nsenter --target "$pid" --mount --uts --ipc --pid env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@" < /dev/null
}
# until_true WHY COMMAND...: waits up to half a minute until the command succeeds.
until_true() {
    why=$1 tries=0
    shift
    until "$@" > /dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 60 ] || fail "$why"
        sleep 0.5
    done
}
# files ROOT: lists its files, except the records of apt, dpkg and systemd, caches and logs.
files() {
    (cd "$work/$1" && find . -xdev \( -path ./var/cache -o -path ./var/log -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./tmp \
        -o -path ./run -o -path ./var/tmp -o -path ./root -o -path ./var/lib/systemd -o -path ./new -o -path ./old \) -prune -o -print |
        grep -vE '^\./etc/(passwd|group|shadow|gshadow|subuid|subgid)-$|^\./etc/(\.pwd\.lock|\.updated|machine-id|resolv\.conf|ld\.so\.cache)$|^\./var/\.updated$|^\./var/lib/dbus/machine-id$|/__pycache__' | sort)
    cat "$work/$1/etc/passwd" "$work/$1/etc/group" | cut -d: -f1 | sort
}

# ---- the packages, and older ones: of tag v0.9, or, until that exists, the same sources with a lower version ----

if [ -n "${DEBS:-}" ]; then
    debs=$(cd "$DEBS" && pwd)
else
    env -u MAKEFLAGS make -s deb BUILD="$build" > "$work/deb.txt" 2>&1 || { cat "$work/deb.txt"; fail "make deb fails"; }
    debs=$PWD/$build/deb
fi
cp "$debs"/*_"${version}"_*.deb "$work/new"
lintian --allow-root --fail-on error,warning "$debs"/repops_"${version}"_*.changes > "$work/lintian.txt" 2>&1 || { cat "$work/lintian.txt"; fail "lintian finds faults"; }
[ ! -s "$work/lintian.txt" ] || { cat "$work/lintian.txt"; fail "lintian has something to say"; }

if git rev-parse -q --verify v0.9 > /dev/null 2>&1; then
    git clone -q --shared --branch v0.9 . "$work/before"
    env -u MAKEFLAGS make -s -C "$work/before" deb > "$work/deb_old.txt" 2>&1 || { cat "$work/deb_old.txt"; fail "make deb of v0.9 fails"; }
    cp "$work"/before/build/deb/*.deb "$work/old"
else
    for package in "$work"/new/*.deb; do
        dpkg-deb --raw-extract "$package" "$work/again"
        sed -i "s/^Version: .*/Version: $version~before/; s/(= $version)/(= $version~before)/g" "$work/again/DEBIAN/control"
        dpkg-deb --build --root-owner-group -Znone "$work/again" "$work/old" > /dev/null
        rm -rf "$work/again"
    done
fi

# ---- fresh systems with the packages' dependencies ----

mmdebstrap --variant=minbase --include=systemd-sysv,dbus,ca-certificates bookworm "$work/base" > "$work/base.txt" 2>&1 ||
    { tail -n 5 "$work/base.txt"; echo "no Debian can be fetched"; exit 77; }
within base apt-get -qq update > "$work/apt.txt" 2>&1 || { cat "$work/apt.txt"; fail "apt-get update"; }
needed=$(within base sh -c 'apt-get install -s --no-install-recommends /new/*.deb' | sed -n 's/^Inst \([^ ]*\).*/\1/p' |
    grep -vxF "$(echo "$ours" | tr ' ' '\n')")
# shellcheck disable=SC2086
within base apt-get install -qq --no-install-recommends $needed >> "$work/apt.txt" 2>&1 || { cat "$work/apt.txt"; fail "what the packages need cannot be installed"; }
files base > "$work/files_before.txt"
for root in honest cheat client; do cp -a "$work/base" "$work/$root"; done
started=$(date +%s)

# ---- two providers as services under their own user, upgraded while they run; a client convicts one of them ----

install client "/new/$(basename "$work"/new/verde_*.deb)"
key=$(within client verde keygen /root/client)
port=18441
for root in honest cheat; do
    # shellcheck disable=SC2046
    install $root $(cd "$work/old" && printf '/old/%s ' *.deb)
    boot $root
    on $root systemctl is-active --quiet verde-provide && fail "$root: the daemon runs before anybody asked for it"
    fault=$([ $root = honest ] || echo "--fault element@7")
    on $root sh -c "mkdir /etc/verde && echo 'OPTIONS=--listen 127.0.0.1:$port --threads 1 --client $key $fault' > /etc/verde/provide.conf"
    on $root systemctl enable --quiet --now verde-provide
    until_true "$root: no URL" on $root sh -c 'journalctl -u verde-provide | grep -q "https://"'
    before=$(on $root systemctl show --property MainPID --value verde-provide)
    on $root sh -c 'apt-get install -qq --no-install-recommends /new/*.deb' >> "$work/apt.txt" 2>&1 || { tail -n 20 "$work/apt.txt"; fail "$root: no upgrade"; }
    until_true "$root: the daemon does not run after an upgrade" on $root systemctl is-active --quiet verde-provide
    after=$(on $root systemctl show --property MainPID --value verde-provide)
    [ "$before" != "$after" ] || fail "$root: an upgrade leaves the old daemon running"
    [ "$(on $root stat -c '%U %a' "/proc/$after" /var/lib/verde | tr '\n' ' ')" = '_verde 555 _verde 700 ' ] || fail "$root: the daemon is not its own user's"
    on $root journalctl -u verde-provide -o cat | grep -o 'https://[^ ]*' | tail -n 1 > "$work/$root.url"
    port=$((port + 1))
done
job=/usr/share/verde/jobs/toy.yaml
code=0
within client verde delegate $job --key /root/client --out /root/result --provider "$(cat "$work/cheat.url")" --provider "$(cat "$work/honest.url")" \
    > "$work/delegate.txt" 2>&1 || code=$?
[ $code -eq 3 ] || { cat "$work/delegate.txt"; fail "expected a conviction (exit code 3), got $code"; }
within client verde verify /root/result/verdict.json --job $job > "$work/verify.txt" || fail "the verdict does not hold"
within client verde check /root/result --verdict /root/result/verdict.json --job $job > "$work/check.txt" || fail "the model is not what the verdict accepts"
took=$(($(date +%s) - started))

# ---- the packages' own tests; a purge leaves nothing behind ----

for root in honest cheat; do
    # shellcheck disable=SC2086
    on $root apt-get purge -qq $ours >> "$work/apt.txt" 2>&1 || { tail -n 20 "$work/apt.txt"; fail "$root: no purge"; }
    ! on $root sh -c 'cat /proc/[0-9]*/comm' | grep -qx verde || fail "$root: the daemon outlives its package"
    files $root > "$work/files_after.txt"
    diff "$work/files_before.txt" "$work/files_after.txt" || fail "$root: a purge leaves this"
done
rm -rf "$work/client"
# In a mount namespace of its own, in which the new system has /proc and devices, and which disappears with it.
unshare --mount --pid --fork sh -c 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec autopkgtest "$@" -- chroot "$0"' \
    "$work/base" --quiet --no-built-binaries "$work"/new/*.deb "$debs/repops-$version" > "$work/autopkgtest.txt" 2>&1 ||
    { tail -n 30 "$work/autopkgtest.txt"; fail "the packages' own tests fail"; }
echo "$(ls "$work/new" | wc -l) packages: clean by lintian, installed, upgraded, and a cheat convicted after $took s; their tests pass; a purge leaves nothing"
