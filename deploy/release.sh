#!/bin/sh
# Build what a release consists of, into a folder: archives, Debian packages, SBOMs, the SDKs' packages and SHA256SUMS. The same commit and
# toolchain give the same bytes in any folder. Run it by 'make release', in a clean checkout of the tag.
#
#   deploy/release.sh OUT [OS/ARCH…]
set -eu
export LC_ALL=C TZ=UTC CGO_ENABLED=0 GOFLAGS= GOTOOLCHAIN=local
umask 022
out=$1
shift
[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/arm64
cd "$(dirname "$0")/.."
[ -z "$(git status --porcelain --untracked-files=no)" ] || { echo "there are changes that are in no commit" >&2; exit 1; }
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
version=$(git describe --tags --exact-match --match 'v[0-9]*' 2>/dev/null || echo "v0.0.0-$(git log -1 --format=%cd --date=format:%Y%m%d)-$(git rev-parse --short=12 HEAD)")
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for target; do
	os=${target%/*} arch=${target#*/}
	name=till-$version-$os-$arch
	mkdir "$work/$name"
	# The version and the commit come from git, by the go command itself: 'till version' prints them.
	GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=true -ldflags '-s -w -buildid=' -o "$work/$name/till" ./cmd/till
	cp LICENSE README.md CHANGELOG.md "$work/$name/"
	[ "$os" != linux ] || { cp -r deploy/systemd "$work/$name/" && install -D -m 644 -t "$work/$name/etc" deploy/deb/till.env deploy/deb/till.toml; }
	find "$work/$name" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=gnu -cf - "$name" | gzip -n9 >"$out/$name.tar.gz"
	(cd tools && go run ./sbom -sum ../go.sum "$work/$name/till") >"$out/$name.cdx.json"
	[ "$os" != linux ] || deploy/deb/build.sh "$version" "$arch" "$work/$name/till" "$out"
done
# The SDKs, byte for byte as the service has them at /sdk/.
for package in sdk/packages/*.tgz sdk/packages/*.whl sdk/packages/*.tar.gz; do cp "$package" "$out/"; done
for package in sdk/packages/php/*.zip; do cp "$package" "$out/till-sdk-php-${package##*-}"; done
for package in sdk/packages/go/github.com/till-project/till/sdk/go/@v/*.zip; do cp "$package" "$out/till-sdk-go-${package##*/v}"; done
(cd "$out" && sha256sum -- *.tar.gz *.tgz *.whl *.zip *.cdx.json $(ls | grep '\.deb$' || true) >SHA256SUMS)
cat "$out/SHA256SUMS"
