#!/bin/sh
# Build the Debian package of a program that was built already. It needs dpkg-deb, and SOURCE_DATE_EPOCH.
#
#   deploy/deb/build.sh VERSION ARCH PROGRAM OUT
set -eu
export LC_ALL=C TZ=UTC
umask 022
version=$(printf %s "${1#v}" | sed 's/-\(rc\)/~\1/; s/-/+/g') arch=$2 program=$3 out=$4
here=$(cd "$(dirname "$0")/.." && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
install -D -m 755 "$program" "$root/usr/bin/till"
for unit in "$here"/systemd/*; do
	install -D -m 644 "$unit" "$root/usr/lib/systemd/system/$(basename "$unit")"
done
install -D -m 644 "$here/deb/sysusers.conf" "$root/usr/lib/sysusers.d/till.conf"
install -D -m 644 -t "$root/usr/share/till" "$here/deb/till.env" "$here/deb/till.toml" # what postinst puts into /etc/till
install -D -m 644 "$here/deb/copyright" "$root/usr/share/doc/till/copyright"
install -d -m 755 "$root/DEBIAN" "$root/usr/share/man/man1" "$root/usr/share/lintian/overrides"
# A program that needs no library of the machine is the point of it.
echo 'till: statically-linked-binary' >"$root/usr/share/lintian/overrides/till"
date=$(date -u -R -d "@$SOURCE_DATE_EPOCH")
printf 'till (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md of this release.\n\n -- The Till authors <till@example.org>  %s\n' "$version" "$date" |
	gzip -n9 >"$root/usr/share/doc/till/changelog.gz"
gzip -n9 <"$here/deb/till.1" >"$root/usr/share/man/man1/till.1.gz"
install -m 755 "$here/deb/postinst" "$here/deb/prerm" "$root/DEBIAN/"
cat >"$root/DEBIAN/control" <<CONTROL
Package: till
Version: $version
Architecture: $arch
Maintainer: The Till authors <till@example.org>
Section: net
Priority: optional
Installed-Size: $(du -sk --apparent-size "$root/usr" | cut -f1)
Depends: procps
Recommends: age
Description: collect money from mobile money wallets
 Till collects payments from mobile money wallets (MTN MoMo, Airtel Money,
 M-Pesa and others), credits each exactly once, and tells the shop. It is
 one program with one SQLite file, or several instances on one PostgreSQL.
CONTROL
find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group --threads-max=1 -Zxz --build "$root" "$out/till_${version}_$arch.deb" >/dev/null
