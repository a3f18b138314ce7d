#!/usr/bin/env bash
# Does what docs/guide/backup.md says about PostgreSQL and pgBackRest, on a server of its own:
# a full backup, payments of which some are open, a restore to a moment between them, 'till restored',
# 'till verify', and the service goes on: what was open ends, and payouts wait for the release.
# usage, as root on Debian: deploy/pgbackrest.sh TILL
set -euo pipefail
till=$(realpath "$1")
bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)
dir=$(mktemp -d); server=
as_postgres() { (cd "$dir" && runuser -u postgres -- "$@"); }
finish() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	as_postgres "$bin/pg_ctl" -D "$dir/data" -m immediate stop >/dev/null 2>&1 || true
	rm -rf "$dir"
}
trap finish EXIT
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
port=$(free_port)
mkdir "$dir"/{repo,log,spool,lock}; mkdir -m 700 "$dir/till"
cat >"$dir/pgbackrest.conf" <<END
[global]
repo1-path=$dir/repo
repo1-retention-full=2
repo1-cipher-type=aes-256-cbc
repo1-cipher-pass=$(head -c 32 /dev/urandom | base64)
archive-async=y
spool-path=$dir/spool
log-path=$dir/log
lock-path=$dir/lock
start-fast=y

[till]
pg1-path=$dir/data
pg1-port=$port
pg1-socket-path=$dir
END
chown -R postgres "$dir"; chown root "$dir/till"; chmod 755 "$dir"
rest() { as_postgres pgbackrest "--config=$dir/pgbackrest.conf" --stanza=till "$@"; }
query() { as_postgres "$bin/psql" -h "$dir" -p "$port" -Atc "$1" "${2:-till}"; }
begin() { as_postgres "$bin/pg_ctl" -D "$dir/data" -l "$dir/log/postgresql.log" -w start >/dev/null; }

as_postgres "$bin/initdb" -D "$dir/data" -A trust >/dev/null
cat >>"$dir/data/postgresql.conf" <<END
port = $port
unix_socket_directories = '$dir'
listen_addresses = '127.0.0.1'
archive_mode = on
archive_command = 'pgbackrest --config=$dir/pgbackrest.conf --stanza=till archive-push %p'
archive_timeout = 60
END
begin
query 'CREATE DATABASE till' postgres >/dev/null
rest stanza-create
rest check
rest --type=full backup

url="postgres://postgres@127.0.0.1:$port/till?sslmode=disable"
member() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$dir/till/ready.json" "$1"; }
serve() {
	rm -f "$dir/till/ready.json"
	"$till" dev --database "$url" --data "$dir/till" --listen 127.0.0.1:0 --approval-window 10s --json >"$dir/till/ready.json" &
	server=$!
	for _ in $(seq 120); do [ -s "$dir/till/ready.json" ] && break; kill -0 "$server"; sleep 1; done
	key=$(member api_key); base=$(member base_url)
}
serve
pay() {
	curl -sf "$base/payments" -H "X-Api-Key: $key" -H 'Content-Type: application/json' -d '{
		"method": "mtn_momo", "country": "CG", "amount": {"value": "5000", "currency": "XAF"},
		"customer": {"phone": "24206123'"${1:-4567}"'"}, "idempotency_key": "'"$(cat /proc/sys/kernel/random/uuid)"'"}' >/dev/null
}
succeeded() { query "SELECT count(*) FROM payments WHERE status = 'success'"; }
await() { for _ in $(seq 120); do [ "$(succeeded)" = "$1" ] && return; sleep 1; done; echo "there are $(succeeded) payments, not $1"; exit 1; }
open_ones() { query "SELECT count(*) FROM payments WHERE status IN ('pending', 'processing')"; }
for _ in 1 2 3; do pay; done; await 3
for _ in 1 2; do pay 0003; pay 0011; done # in flight: customers who do not answer, and a lost answer
moment=$(query "SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')")
before=$(query 'SELECT count(*) FROM payments')
pay; pay; await 7 # with both whose answer was lost
query 'SELECT pg_switch_wal()' >/dev/null
kill "$server"; wait "$server" || true; server=

# The disk is lost.
as_postgres "$bin/pg_ctl" -D "$dir/data" -m fast -w stop >/dev/null
rm -rf "$dir/data"; as_postgres mkdir -m 700 "$dir/data"
target=${moment/T/ }
rest --type=time "--target=${target/Z/+00}" --target-action=promote restore
begin
for _ in $(seq 120); do [ "$(query 'SELECT pg_is_in_recovery()')" = f ] && break; sleep 1; done
[ "$(succeeded)" -ge 3 ] && [ "$(open_ones)" -ge 2 ] || { echo "$(succeeded) payments and $(open_ones) open ones came back"; exit 1; }
"$till" restored --database "$url" --secret-file "$dir/till/till.secret" --lost-from "$moment" --keys-reviewed
"$till" verify --database "$url" --secret-file "$dir/till/till.secret"
rest verify
serve
for _ in $(seq 120); do [ "$(open_ones)" = 0 ] && break; sleep 1; done
[ "$(open_ones)" = 0 ] && [ "$(succeeded)" = 5 ] || { echo "$(open_ones) payments are open, $(succeeded) succeeded, not 5"; exit 1; }
[ "$(query 'SELECT count(*) FROM payments')" = "$before" ]
"$till" restored --database "$url" --secret-file "$dir/till/till.secret" --release --by "Awa N."
"$till" verify --database "$url" --secret-file "$dir/till/till.secret"
echo "restored to $moment: $before of $((before + 2)) payments, what was open has ended, and the books are sound"
