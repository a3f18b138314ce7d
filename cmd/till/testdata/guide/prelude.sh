# What the hidden parts of guide pages may use. Each page runs in one shell,
# in an empty folder; see guide_test.go.
set -eu -o pipefail

SOURCE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../../.." && pwd) # the reader's clone

exec 9>&2 # where the test listens, whatever a block's output goes to
fail() { echo "$*" >&9; exit 1; }

# printed PATTERN: what the group of a sed pattern takes from the output of the last block.
printed() { sed -n "s/.*$1.*/\1/p" "$OUT/last" | head -n 1; }

# ready PID TEXT FILE…: wait until a server has said so in one of its files.
ready() {
	local pid=$1 text=$2
	shift 2
	until grep -qsF "$text" "$@"; do
		kill -0 "$pid" 2>/dev/null || { cat "$@" >&9; fail "the server has ended"; }
		sleep 0.05
	done
}

# dev [FLAG…]: a server for pages that take one for granted, with BASE, KEY, CLIENT and TILL_DATABASE.
dev() {
	till dev --json "$@" >dev.json 2>dev.log &
	SERVER=$!
	ready $SERVER client_id dev.json dev.log
	KEY=$(member api_key dev.json) CLIENT=$(member client_id dev.json)
	export TILL_DATABASE="$PWD/till-data/till.db"
}

# serve FLAG…: a server for pages that have shown how to start one.
serve() {
	till serve --json "$@" >serve.json 2>serve.log &
	SERVER=$!
	ready $SERVER base_url serve.json serve.log
}

# member NAME [FILE]: the first string member of that name in JSON.
member() { grep -o "\"$1\": *\"[^\"]*\"" "${2:--}" | head -n 1 | cut -d'"' -f4; }

# stop: end the server of dev or of a block that starts one, in order.
stop() { kill "$SERVER"; wait "$SERVER" || true; }

# as KEY VERB PATH [BODY]: a request; refused ones end the page.
as() {
	local key=$1 verb=$2 path=$3
	shift 3
	curl -sS --fail-with-body -X "$verb" "$BASE$path" -H "X-Api-Key: $key" ${1:+-H 'Content-Type: application/json' -d "$1"}
}

uuid() { cat /proc/sys/kernel/random/uuid; }

# pay PHONE [AMOUNT]: ask for a payment and print its id.
pay() {
	as "$KEY" POST /payments '{"method": "mtn_momo", "country": "CG", "amount": {"value": "'"${2:-5000}"'", "currency": "XAF"},
		"customer": {"phone": "'"$1"'"}, "idempotency_key": "'"$(uuid)"'"}' | member id
}

# until_shows TEXT COMMAND…: repeat a command until its output holds the text.
until_shows() {
	local text=$1 shown
	shift
	for _ in $(seq 300); do
		shown=$("$@" 2>&1) || true
		case $shown in *"$text"*) return 0 ;; esac
		sleep 0.05
	done
	fail "$* never shows $text, but: $shown"
}

# paid [AMOUNT]: a payment that has succeeded; prints its id.
paid() {
	local id
	id=$(pay 242061234567 "${1:-5000}")
	until_shows '"status":"success"' as "$KEY" GET "/payments/$id"
	echo "$id"
}

# customer REFERENCE: wait for the page of an order, read it, and pay on it.
customer() {
	local url='' form
	until [ -n "$url" ]; do
		url=$(as "$KEY" GET "/checkouts?state=open&reference=$1" | member url) || true
		sleep 0.1
	done
	form=$(curl -sS "$url" | sed -n 's/.*name="form" value="\([^"]*\)".*/\1/p')
	sleep 1.1 # who posts what they have not read is a program
	curl -sS -o customer.html --data-urlencode "form=$form" -d phone=%2B242061234567 -d sure=242061234567 "$url"
}

# pay_out PHONE: ask for a payout of 100 francs, with a key that may, and print its id.
pay_out() {
	as "$KEY" POST /payouts '{"method": "mtn_momo", "country": "CG", "amount": {"value": "100", "currency": "XAF"},
		"recipient": {"phone": "'"$1"'"}, "idempotency_key": "'"$(uuid)"'"}' | member id
}

# three_cases: a payment and a payout that need a person's word, and a case; with the files that hold it.
three_cases() {
	for f in call statement letter; do echo yes >$f.pdf; done
	paid >/dev/null
	pay 242061230021 >/dev/null
	PAYMENT=$(pay 242061230019) PAYOUT=$(pay_out 242061230014)
	until_shows reversed till cases
	CASE=$(till cases --kind reversed --json | member case_id)
	until_shows "$PAYMENT" till cases
	until_shows '"status":"processing"' as "$KEY" GET "/payouts/$PAYOUT"
}

# systemd is played: the service is till serve with the settings in till.env, as the unit has it.
systemctl() {
	case "$*" in
	"stop till") SERVER=${SERVICE:-$SERVER} && stop ;;
	"start till" | "enable --now till.socket till.service")
		(set -a && . "$MACHINE/etc/till/till.env" && exec till serve) >service.log 2>&1 &
		SERVER=$! SERVICE=$!
		;;
	"restart till") systemctl stop till && systemctl start till ;;
	daemon-reload) ;;
	*) fail "systemctl $* is not played here" ;;
	esac
}

# ready_within ADDRESS: the service says on its admin address that it is ready.
ready_within() { until_shows ready curl -s --fail "http://$1/readyz"; }

# served: a server starts with the file of connections $CONFIG.
served() {
	serve --config "$CONFIG" --database "$OUT/config/till.db" --listen 127.0.0.1:0
	stop
}

# simulated: the credentials, connection and routes that a simulator has printed are taken, and it lets us in with them.
simulated() {
	eval "$(grep '^export ' "$OUT/last")"
	CONFIG=$PWD/simulated.toml
	sed -n '/^\[\[connection/,/^Stop/{/^Stop/!p}' "$OUT/last" >"$CONFIG"
	served
	till doctor --config "$CONFIG" --database "$OUT/config/till.db" --base-url "$BASE" | tee "$OUT/err"
	grep -q 'the operator lets us in' "$OUT/err"
}

# a_day_at_mtn: the payments that the statement of reconcile.md is about, on a connection mtn-congo. The
# statement gets their references and receipts, and today is the day that it is about.
a_day_at_mtn() {
	till simulate mtnmomo --listen 127.0.0.1:0 >simulate.log &
	ready $! 'Stop with' simulate.log
	eval "$(grep '^export ' simulate.log)"
	sed -n '/^\[\[connection/,/^Stop/{/^Stop/!p}' simulate.log | sed 's/"mtnmomo"\(.*\)$/"mtn-congo"\1/; s/operator = "mtn-congo"/operator = "mtnmomo"/' >connections.toml
	export TILL_DATABASE=$PWD/till.db
	serve --config connections.toml
	CLIENT=$(till client create --name Shop --mode live --json | member client_id)
	till client methods "$CLIENT" --enable mtn_momo >/dev/null
	KEY=$(till key create --client "$CLIENT" --json | member api_key)
	late=$(pay 242063123453 7000)
	good=$(pay 242061234567 5000)
	extra=$(pay 242061234567 1200)
	for p in $good $extra; do until_shows '"status":"success"' as "$KEY" GET "/payments/$p"; done
	until_shows '"status":"processing"' as "$KEY" GET "/payments/$late"
	TODAY=$(TZ=Africa/Brazzaville date +%F) DAY_BEFORE=$(TZ=Africa/Brazzaville date -d yesterday +%F)
	sed -i "s/0b7e6f0e-57e5-4a54-9f0d-5f8a37a4f3b1/$good/; s/77f5a0a4-9a36-4f0e-8d10-3f2c9b1c0d52/$late/" 2026-11-14.csv
	sed -i "s/EM100201/$(as "$KEY" GET "/payments/$good" | member provider_reference)/; s,14/11/2026 [0-9:]*,$(TZ=Africa/Brazzaville date '+%d/%m/%Y %H:%M:%S'),"  2026-11-14.csv
	mv 2026-11-14.csv "$TODAY.csv"
	till() { command till "${@//2026-11-14/$TODAY}" | sed "s/$TODAY/2026-11-14/g; s/$DAY_BEFORE/2026-11-13/g"; }
}
