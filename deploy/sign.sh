#!/bin/sh
# Sign the digests of a release with minisign, so that everybody who has the public key can tell our files from others'.
# The commit must have a tag that git verifies (gpg, or gpg.ssh.allowedSignersFile): nothing else is signed.
#
#   deploy/sign.sh OUT KEY
set -eu
out=$1 key=$2
tag=$(git describe --tags --exact-match --match 'v[0-9]*' 2>/dev/null) || { echo "this commit has no tag of a release" >&2; exit 1; }
git verify-tag "$tag" 2>/dev/null || { echo "the tag $tag is not signed by anybody whom git knows here: see git verify-tag" >&2; exit 1; }
(cd "$out" && sha256sum --check --quiet SHA256SUMS)
minisign -S -s "$key" -m "$out/SHA256SUMS" -t "till $tag"
