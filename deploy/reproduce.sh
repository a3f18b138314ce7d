#!/bin/sh
# Build a release twice, from two clones in folders of different names, and compare every byte. The second build has an
# empty build cache, so nothing in it was compiled by the first.
#
#   deploy/reproduce.sh [OS/ARCH…]
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for n in one another-and-longer; do
	[ $n = one ] || export GOCACHE="$work/cache"
	git clone -q --no-hardlinks . "$work/$n/till"
	"$work/$n/till/deploy/release.sh" "$work/$n/dist" "$@" >/dev/null
done
diff -r "$work/one/dist" "$work/another-and-longer/dist"
echo "Two builds of $(git rev-parse --short=12 HEAD) are alike:"
cat "$work/one/dist/SHA256SUMS"
