# One way through the guide, on a copy of this machine: walk.sh TESTDATA RELEASE STEPS sqlite|postgres
# Run it in namespaces of its own for mounts, processes and the network; see install_test.go.
set -eu
testdata=$1 release=$2 steps=$3 engine=$4
if [ "${5:-}" != inside ]; then
	root=$(mktemp -d)
	mount -t tmpfs -o mode=755 none "$root"
	mkdir "$root/upper" "$root/work" "$root/machine"
	mount -t overlay overlay -o "lowerdir=/,upperdir=$root/upper,workdir=$root/work" "$root/machine"
	mount -t proc proc "$root/machine/proc"
	mount --rbind /dev "$root/machine/dev"
	# The copy sees what is on the root's own disk: another disk's files are brought in.
	mount --bind "$testdata" "$root/machine/mnt" && mkdir "$root/upper/steps" "$root/upper/release" && cp -r "$steps/." "$root/machine/steps" && cp -r "$release/." "$root/machine/release"
	cp "$testdata/install/systemctl" "$root/machine/usr/local/sbin/systemctl" && chmod 755 "$root/machine/usr/local/sbin/systemctl"
	exec chroot "$root/machine" bash "/mnt/install/walk.sh" /mnt /release /steps "$engine" inside
fi
exec </dev/null
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
for v in $(env | sed -n 's/^\(TILL_[A-Z_]*\|AWS_[A-Z_]*\|MTN_[A-Z_]*\)=.*/\1/p'); do unset "$v"; done
ip link set lo up
mkdir -p /run/systemd/system /walk && chmod 1777 /walk
rm -rf /etc/till /var/lib/till /backup /opt/till
if [ "$engine" = postgres ]; then
	rm -f /var/run/postgresql/.s.* /var/run/postgresql/*.pid
	pg_createcluster -p 5432 15 guide >/dev/null
	pg_ctlcluster 15 guide start
fi

# step WHO NAME FILE: what a person does. It has what the person's shell had before, and leaves what it has.
step() {
	local who=$1 name=$2 file=$3 out
	echo "== $who: $name"
	case $who in root) out=/walk/root ;; till) out=/walk/till ;; esac
	mkdir -p "$out/out" && { [ "$who" = root ] || chown -R till: "$out"; }
	{
		echo "export OUT=$out/out ADDRESS=127.0.0.1:8080 BASE=http://127.0.0.1:8080/v1 MACHINE= SERVER="
		echo ". /mnt/guide/prelude.sh; unset -f systemctl"
		echo "[ ! -e $out/vars ] || . $out/vars; [ ! -e $out/cwd ] || cd \"\$(cat $out/cwd)\""
		echo "{ :"
		cat "$file"
		echo "} >\$OUT/last 2>\$OUT/err || { cat \$OUT/last \$OUT/err; exit 1; }"
		[ ! -s "$file.after" ] || cat "$file.after"
		echo "export CLIENT=\${CLIENT:-} KEY=\${KEY:-} PUBLIC=\${PUBLIC:-}; export -p | grep -v ' \\(OUT\\|SERVER\\|PWD\\|OLDPWD\\)=' >$out/vars; pwd >$out/cwd"
	} >"$out/script"
	if [ "$who" = root ]; then
		(cd /release && bash "$out/script") || fail_step "$out" "$name"
	else
		su -s /bin/bash - till <"$out/script" || fail_step "$out" "$name"
	fi
	sed 's/^/   /' "$out/out/last" | cut -c1-160 | head -n 12
}
fail_step() { echo "STUMBLED at $2"; tail -n 40 "$1/out/last" "$1/out/err"; tail -n 20 /walk/*.log; exit 1; }

# server WHO NAME FILE: what a person starts and leaves running.
server() {
	echo "== $1: $2"
	su -s /bin/bash - till <"$3" >/walk/server.log 2>&1 &
	until grep -q 'Stop with Ctrl-C' /walk/server.log; do kill -0 $! || fail_step /walk/till "$2"; sleep 0.1; done
}

. /steps/steps

if [ "$engine" = sqlite ]; then # a PostgreSQL of this machine lets the user till in and nobody else
	echo "== root runs commands too, and leaves nothing that the service cannot open"
	(set -a && . /etc/till/till.env && set +a && till status && till doctor && till verify) >/walk/as-root 2>&1 || { cat /walk/as-root; exit 1; }
	systemctl stop till
	(set -a && . /etc/till/till.env && till verify) >/dev/null
	systemctl start till
fi
! find /var/lib/till ! -user till | grep . || { echo "these files are not Till's"; exit 1; }
if [ "$engine" = sqlite ]; then
	echo "== the unit of the hourly backup"
	before=$(ls /backup)
	systemctl start till-backup.service
	[ "$(ls /backup)" != "$before" ] || { ls -l /backup; exit 1; }
fi
systemctl start till-verify.service
stat -c '%A %U:%G %n' /etc/till /etc/till/* /var/lib/till /var/lib/till/*
systemctl stop till.socket till.service
