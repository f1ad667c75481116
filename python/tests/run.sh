#!/bin/sh
# Installs the wheel in a fresh virtual environment and runs the tests there, not in the sources.
# usage: run.sh WHEELS VENV PACKAGES_VENV PACKAGES [arguments of pytest]
set -eu
wheels=$1 venv=$2 packages_venv=$3 packages=$4
shift 4
top=$(pwd)
# Some tests compare with the command, if VERDE names one.
[ -z "${VERDE:-}" ] || VERDE=$(cd "$(dirname "$VERDE")" && pwd)/$(basename "$VERDE")
export VERDE="${VERDE:-}"
case $venv in /*) ;; *) venv=$top/$venv ;; esac
rm -rf "$venv"
"$PYTHON" -m venv "$venv"
if [ -n "$packages_venv" ]; then
    found=$("$packages_venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    own=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    echo "import site; site.addsitedir('$found')" > "$own/packages.pth" # its own .pth files count too
else
    "$venv/bin/pip" install -q $packages
fi
"$venv/bin/pip" install -q --no-index --no-deps "$wheels"/*.whl
unset REPOPS_LIBRARY PYTHONPATH
cd python/tests
REPOPS_TOP=$top exec "$venv/bin/python" -m pytest -q -p no:cacheprovider "$@"
