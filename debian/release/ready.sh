#!/bin/sh
# Does all say that this version is released, and when: CHANGELOG.md, CITATION.cff? Does what a release takes beside its tarball belong
# to it? Wheels are made of these folders' files, whether git has them or not. SOURCE_DATE_EPOCH: the release's time.
# Usage: debian/release/ready.sh VERSION [WHEEL...]
set -eu
version=$1
shift
bad=
day=$(date --utc --date="@${SOURCE_DATE_EPOCH:?is the time of the release}" +%F)
# says FILE LINE: is it a line of the file?
says() { grep -qxF -- "$2" "$1" || { echo "make release: $1: expected the line \"$2\"" >&2; bad=yes; }; }
says CHANGELOG.md "## $version ($day)"
says CITATION.cff "version: $version"
says CITATION.cff "date-released: $day"
if [ -e .git ]; then
    files=$(git -c core.quotePath=off status --porcelain --untracked-files=all -- python verde repops models)
    more=$(echo "$files" | sed -n 's/^?? //p')
    [ -z "$more" ] || { echo "$more" | sed 's/.*/make release: &: git does not have it: a wheel could, the tarball would not/' >&2; bad=yes; }
fi
for wheel in "$@"; do
    case ${wheel##*/} in
    "repops-$version-"*) ;;
    *) echo "make release: $wheel: expected a wheel of version $version: make it again, or remove it" >&2; bad=yes ;;
    esac
done
[ -z "$bad" ]
