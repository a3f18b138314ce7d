package deploy_test

// The three dashboards, panel by panel. go test ./deploy -run Dashboards -update writes
// deploy/grafana/*.json from them.

// panel is one picture: what it shows, in which unit, and from which value on it is bad.
type panel struct {
	title string
	// unit is one of Grafana's: short, s, reqps, bytes, dateTimeFromNow, …
	unit string
	// shows is the description; the sentences of the metrics follow.
	shows string
	exprs []query
	kind  string  // timeseries, stat or table
	bad   float64 // from here on it is red; 0: never
	wide  int     // of 24 columns
}

// query is an expression with what its lines are called.
type query struct{ expr, legend string }

func one(expr, legend string) []query { return []query{{expr, legend}} }

// row is panels under a heading. each repeats it for every connection.
type row struct {
	title  string
	each   bool
	panels []panel
}

type dashboard struct {
	file, title, shows string
	rows               []row
}

const (
	line  = "timeseries"
	stat  = "stat"
	table = "table"
)

var dashboards = []dashboard{
	{"money.json", "Till: money", "What is undecided, late, aside or unreconciled, from the books. Amounts are in minor units. Test clients are apart: the connection sandbox, or the mode test.", []row{
		{"Look here first", false, []panel{
			{"Oldest unknown", "s", "How long money may have moved without our knowing the outcome. Payouts page after half an hour, payments after a day.", one(`max by (kind, connection) (till_oldest_unknown_seconds)`, "{{kind}} {{connection}}"), stat, 1800, 4},
			{"Broken invariants", "short", "What the last verify has found; anything but 0 wakes somebody.", one(`max(till_verify_problems)`, "problems"), stat, 1, 4},
			{"Troubles", "short", "What `till status` calls trouble.", one(`max by (name) (till_trouble) > 0 or vector(0)`, "{{name}}"), stat, 1, 4},
			{"Open cases", "short", "What of live clients waits for a person.", one(`sum(max by (kind) (till_cases_open{mode="live"}))`, "cases"), stat, 1, 4},
			{"Strays", "short", "Money that names us and that nobody has.", one(`sum(max by (connection, direction) (till_strays_open{connection!="sandbox"})) or vector(0)`, "strays"), stat, 1, 4},
			{"Payouts held", "short", "1 while no new payouts are taken.", one(`max(till_payouts_held)`, "held"), stat, 1, 4},
		}},
		{"Undecided", false, []panel{
			{"Open payments and payouts", "short", "What is not final, by connection.", one(`max by (kind, connection) (till_open)`, "{{kind}} {{connection}}"), line, 0, 8},
			{"Open money", "short", "The same in money, by currency.", one(`max by (kind, mode, currency) (till_open_minor)`, "{{mode}} {{kind}} {{currency}}"), line, 0, 8},
			{"Unknown for", "s", "The age of the oldest that may have been sent and is not final.", one(`max by (kind, connection) (till_oldest_unknown_seconds)`, "{{kind}} {{connection}}"), line, 1800, 8},
			{"Ends", "short", "Changes to a final status in five minutes.", one(`sum by (kind, status) (increase(till_moves_total{status=~"success|failed|expired|cancelled"}[5m]))`, "{{kind}} {{status}}"), line, 0, 8},
			{"Time to the end", "s", "Half of all successes end within the lower line, 95 % within the upper one.", []query{
				{`histogram_quantile(0.5, sum by (kind, le) (rate(till_time_to_final_seconds_bucket{result="success"}[15m])))`, "{{kind}} p50"},
				{`histogram_quantile(0.95, sum by (kind, le) (rate(till_time_to_final_seconds_bucket{result="success"}[15m])))`, "{{kind}} p95"}}, line, 0, 8},
			{"Late, reversed, owed", "short", "Money that moved after the end, was taken back, or is owed by a client, in an hour.", []query{
				{`sum by (kind, connection) (increase(till_late_total[1h]))`, "late {{kind}} {{connection}}"},
				{`sum by (kind, connection) (increase(till_reversed_total[1h]))`, "reversed {{kind}} {{connection}}"},
				{`sum by (kind, connection) (increase(till_owed_total[1h]))`, "owed {{kind}} {{connection}}"}}, line, 1, 8},
		}},
		{"By currency", false, []panel{
			{"Wallets", "short", "What clients have with us.", one(`max by (mode, currency) (till_wallets_minor)`, "{{mode}} {{currency}}"), line, 0, 6},
			{"Reserved for payouts", "short", "What of it waits for a payout's outcome.", one(`max by (mode, currency) (till_reserved_minor)`, "{{mode}} {{currency}}"), line, 0, 6},
			{"On the way back to customers", "short", "The sum of open refunds.", one(`max by (mode, currency) (till_refunding_minor)`, "{{mode}} {{currency}}"), line, 0, 6},
			{"Refunded within a day", "percentunit", "As a share of what was collected within 7 days; a ticket above a quarter.", one(`max by (mode, currency) (till_refunded_day_minor) / max by (mode, currency) (till_collected_week_minor)`, "{{mode}} {{currency}}"), line, 0.25, 6},
			{"Oldest unknown refund", "s", "For how long a refund's outcome is not known.", one(`max by (mode) (till_refund_oldest_unknown_seconds)`, "{{mode}}"), line, 1800, 6},
			{"Owed by clients", "short", "Debts after reversals and late payouts.", one(`max by (mode, currency) (till_owed_minor)`, "{{mode}} {{currency}}"), line, 0, 6},
			{"Suspense", "short", "Money that came in and belongs to no wallet; a ticket after a day.", one(`max by (mode, currency) (till_suspense_minor)`, "{{mode}} {{currency}}"), line, 1, 6},
			{"Oldest in suspense", "s", "For how long the oldest of it waits.", one(`max by (mode, currency) (till_suspense_oldest_seconds)`, "{{mode}} {{currency}}"), line, 86400, 6},
			{"Stray money", "short", "Strays whose amount is known.", one(`max by (connection, direction, currency) (till_strays_minor) or vector(0)`, "{{connection}} {{direction}} {{currency}}"), line, 1, 6},
			{"Cases by kind", "short", "Which cases are open.", one(`max by (mode, kind) (till_cases_open)`, "{{mode}} {{kind}}"), line, 0, 6},
			{"Oldest case", "s", "For how long somebody waits for a person; a ticket after three days.", one(`max by (mode, kind) (till_case_oldest_seconds)`, "{{mode}} {{kind}}"), line, 259200, 6},
		}},
		{"Proof", false, []panel{
			{"Statements compared until", "dateTimeFromNow", "The end of the last operator's statement that was compared.", one(`1000 * max by (connection) (till_statement_until_timestamp_seconds)`, "{{connection}}"), stat, 0, 6},
			{"Differences left", "short", "What the comparisons with operators' statements have left.", one(`max by (connection, class) (till_statement_differences) or vector(0)`, "{{connection}} {{class}}"), line, 1, 6},
			{"Unreconciled money", "short", "How far both sides lie apart.", one(`max by (connection, class, currency) (till_statement_difference_minor) or vector(0)`, "{{connection}} {{class}} {{currency}}"), line, 1, 6},
			{"Verified", "dateTimeFromNow", "When the books were last verified.", one(`1000 * max by (result) (till_verify_timestamp_seconds)`, "{{result}}"), stat, 0, 6},
			{"Backup and drill", "dateTimeFromNow", "When the last good backup and the last good drill ended (SQLite), and when PostgreSQL last archived its log.", []query{
				{`1000 * max(till_backup_timestamp_seconds{result="ok"})`, "backup"}, {`1000 * max(till_drill_timestamp_seconds{result="ok"})`, "drill"}, {`1000 * max(till_archive_timestamp_seconds{result="ok"})`, "archive"}}, stat, 0, 6},
			{"Size of the last backup", "bytes", "It grows with the database.", one(`max(till_backup_bytes)`, "backup"), stat, 0, 6},
			{"Not chained, not rolled up", "s", "How far the audit chains and the counters lie behind.", []query{
				{`max(till_seal_lag_seconds)`, "audit chain"}, {`max(till_fold_lag_seconds)`, "counters"}}, line, 10800, 6},
			{"Numbers read", "dateTimeFromNow", "When the numbers on this page were read from the books.", one(`1000 * max(till_gauges_timestamp_seconds)`, "gauges"), stat, 0, 6},
		}},
	}},
	{"operators.json", "Till: operators", "A row for each connection: how it is called, how it answers, and how late we are.", []row{
		{"All", false, []panel{
			{"State", "short", "The circuit breaker: 0 passing, 1 probing, 2 stopped.", one(`max by (connection, kind) (till_operator_state)`, "{{connection}} {{kind}}"), stat, 2, 12},
			{"Calls in flight", "short", "Calls that are under way or wait to be recorded.", one(`sum by (connection) (till_operator_in_flight)`, "{{connection}}"), line, 0, 12},
		}},
		{"$connection", true, []panel{
			{"Calls a second", "reqps", "How often the operator is called.", one(`sum by (operation) (rate(till_operator_calls_total{connection="$connection",outcome!="lease_over"}[5m]))`, "{{operation}}"), line, 0, 6},
			{"Outcomes", "reqps", "What the calls came to. `error` is no answer, `lease_over` was not called.", one(`sum by (outcome) (rate(till_operator_calls_total{connection="$connection"}[5m])) > 0`, "{{outcome}}"), line, 0, 6},
			{"Time to answer", "s", "Half of all answers come within the lower line, 95 % within the upper one.", []query{
				{`histogram_quantile(0.5, sum by (operation, le) (rate(till_operator_call_seconds_bucket{connection="$connection"}[5m])))`, "{{operation}} p50"},
				{`histogram_quantile(0.95, sum by (operation, le) (rate(till_operator_call_seconds_bucket{connection="$connection"}[5m])))`, "{{operation}} p95"}}, line, 0, 6},
			{"Timeout", "s", "How long a call may take: above half of it the operator is slow.", one(`max by (operation) (till_operator_timeout_seconds{connection="$connection"})`, "{{operation}}"), stat, 0, 6},
			{"Calls that waited for the rate limit", "reqps", "Due steps that found no token of the operator's budget.", one(`sum by (operation) (rate(till_operator_short_total{connection="$connection"}[5m]))`, "{{operation}}"), line, 0, 6},
			{"Callbacks", "reqps", "What the operator's callbacks came to.", one(`sum by (result) (rate(till_callbacks_total{connection="$connection"}[5m]))`, "{{result}}"), line, 0, 6},
			{"Begun late by", "s", "99 % of the steps were begun within this time after they were due. The objective is 5 s.", one(`histogram_quantile(0.99, sum by (operation, le) (rate(till_step_delay_seconds_bucket{connection="$connection"}[5m])))`, "{{operation}}"), line, 5, 6},
			{"Due and not begun", "short", "Steps that wait now.", one(`max by (operation) (till_steps_due{connection="$connection"}) or vector(0)`, "{{operation}}"), line, 0, 6},
			{"Oldest due step", "s", "For how long it has waited.", one(`max by (operation) (till_step_oldest_due_seconds{connection="$connection"})`, "{{operation}}"), line, 5, 6},
			{"Markets read", "s", "How old is what the operator says that the account may do; a ticket after a day.", one(`max by (connection) (till_markets_age_seconds{connection="$connection"}) or vector(0)`, "age"), stat, 86400, 6},
			{"Token ends", "dateTimeFromNow", "When the operator's access token ends; it is renewed before, if it is used.", one(`1000 * (max by (connection) (till_operator_token_expiry_timestamp_seconds{connection="$connection"}) > 0)`, "token"), stat, 0, 6},
		}},
	}},
	{"service.json", "Till: service", "Requests, group commits, the database, webhooks, loops and the process.", []row{
		{"Requests", false, []panel{
			{"Requests a second", "reqps", "By route.", one(`sum by (route) (rate(till_http_requests_total[5m])) > 0`, "{{route}}"), line, 0, 8},
			{"Errors a second", "reqps", "5xx by route and code. 503 is a full queue or the database; `closed`, which is not here, is a method without an operator.", one(`sum by (route, code) (rate(till_http_requests_total{code=~"5.."}[5m]))`, "{{route}} {{code}}"), line, 0, 8},
			{"Time to answer", "s", "99 % of the requests were answered within this time. The objective for creates is 150 ms.", one(`histogram_quantile(0.99, sum by (route, le) (rate(till_http_request_duration_seconds_bucket{route!="wait"}[5m])))`, "{{route}}"), line, 0, 8},
			{"Creates that are not 5xx", "percentunit", "The objective is 99.95 % in 30 days.", one(`1 - sum(rate(till_http_requests_total{route="POST /payments",code=~"5.."}[1h])) / sum(rate(till_http_requests_total{route="POST /payments"}[1h]))`, "creates"), stat, 0, 6},
			{"In flight", "short", "Requests, long polls and exports that are being served.", []query{{`sum(till_http_in_flight)`, "requests"}, {`sum(till_polls_waiting)`, "polls"}, {`sum(till_exports_running)`, "exports"}}, line, 0, 6},
			{"Refused keys", "reqps", "Why keys were refused. Somebody who tries keys shows as `unknown`.", one(`sum by (why) (rate(till_auth_refused_total[5m]))`, "{{why}}"), line, 10, 6},
			{"Rate limited", "reqps", "Requests beyond a client's rate.", one(`sum(rate(till_rate_limited_total[5m]))`, "429"), line, 0, 6},
			{"Unknown members", "short", "Typing mistakes in bodies, an hour. Those of live clients cost somebody something.", one(`sum by (mode) (increase(till_unknown_members_total[1h]))`, "{{mode}}"), line, 0, 6},
		}},
		{"Group commits", false, []panel{
			{"Items in a commit", "short", "The mean; more items for each commit is group commit at work.", one(`sum by (batch) (rate(till_batch_size_sum[5m])) / (sum by (batch) (rate(till_batch_size_count[5m])) > 0)`, "{{batch}}"), line, 0, 6},
			{"Wait for a commit", "s", "99 % of the commits began within this time.", one(`histogram_quantile(0.99, sum by (batch, le) (rate(till_batch_wait_seconds_bucket[5m])))`, "{{batch}}"), line, 0, 6},
			{"Queue", "short", "Items that wait.", one(`sum by (batch) (till_batch_queue)`, "{{batch}}"), line, 0, 6},
			{"Queue full", "reqps", "Items that found no place: creates get 503.", one(`sum by (batch) (rate(till_batch_full_total[5m]))`, "{{batch}}"), line, 0, 6},
		}},
		{"Database", false, []panel{
			{"Transactions a second", "reqps", "By kind and result.", one(`sum by (kind, result) (rate(till_db_transactions_total[5m])) > 0`, "{{kind}} {{result}}"), line, 0, 6},
			{"Unknown commits", "short", "Commits of which nobody knows whether they happened, in five minutes; each is run once more.", one(`sum(increase(till_db_transactions_total{result="unknown_commit"}[5m]))`, "unknown"), stat, 1, 6},
			{"Time of a transaction", "s", "99 % took less.", one(`histogram_quantile(0.99, sum by (kind, le) (rate(till_db_transaction_seconds_bucket[5m])))`, "{{kind}}"), line, 0, 6},
			{"Wait for the writer", "s", "99 % of the write transactions waited less.", one(`histogram_quantile(0.99, sum by (queue, le) (rate(till_db_gate_wait_seconds_bucket[5m])))`, "{{queue}}"), line, 0, 6},
			{"Sessions", "short", "Connections to the database.", one(`sum by (pool, state) (till_db_sessions)`, "{{pool}} {{state}}"), line, 0, 6},
			{"Size", "bytes", "The SQLite file and its log.", one(`max by (part) (till_db_bytes)`, "{{part}}"), line, 0, 6},
			{"Free disk", "percentunit", "What is left where the SQLite file is, and where the journal is.", one(`min by (folder) (till_disk_free_bytes / till_disk_size_bytes)`, "{{folder}}"), line, 0, 6},
			{"Journal", "short", "Instances that cannot write the journal of creates, and creates that it lacks, in an hour.", []query{
				{`sum(till_journal_failing) or vector(0)`, "failing"}, {`sum by (result) (increase(till_journal_records_total[1h]))`, "{{result}}"}}, line, 0, 6},
			{"Clock, hints, schema", "short", "The database's clock minus this machine's in seconds, whether hints arrive, and the newest migration.", []query{
				{`max(abs(till_db_clock_offset_seconds))`, "clock"}, {`min(till_hints_live)`, "hints"}, {`max(till_schema_level)`, "schema"}}, stat, 0, 6},
		}},
		{"Webhooks", false, []panel{
			{"Attempts a second", "reqps", "By result.", one(`sum by (result) (rate(till_webhook_attempts_total[5m]))`, "{{result}}"), line, 0, 6},
			{"Time of an attempt", "s", "99 % took less.", one(`histogram_quantile(0.99, sum by (le) (rate(till_webhook_attempt_seconds_bucket[5m])))`, "p99"), line, 0, 6},
			{"First attempt after", "s", "99 % of the events were first sent within this time after their commit. The objective is 5 s.", one(`histogram_quantile(0.99, sum by (le) (rate(till_webhook_first_attempt_delay_seconds_bucket[5m])))`, "p99"), line, 5, 6},
			{"Endpoints", "short", "Living, failing and disabled ones, and those that events wait for.", []query{
				{`max by (mode, state) (till_webhook_endpoints)`, "{{mode}} {{state}}"}, {`max by (mode, state) (till_webhook_pending)`, "{{mode}} {{state}}, events wait"}}, line, 0, 6},
			{"Oldest event that waits", "s", "For living endpoints apart from failing ones.", one(`max by (mode, state) (till_webhook_oldest_pending_seconds)`, "{{mode}} {{state}}"), line, 900, 6},
		}},
		{"Program", false, []panel{
			{"Instances", "short", "Instances by release, and whether each reaches its database.", []query{{`max by (version) (till_instances)`, "{{version}}"}, {`min by (instance) (till_ready)`, "{{instance}} ready"}}, stat, 0, 6},
			{"Loops", "s", "How long ago each loop last finished a step, and which are late.", []query{
				{`max by (loop) (time() - till_loop_timestamp_seconds)`, "{{loop}}"}, {`max by (loop) (till_loop_late) > 0`, "{{loop}} is late"}}, line, 60, 6},
			{"Panics and dropped spans", "short", "Panics that were caught, by place, and spans that were dropped, in an hour.", []query{
				{`sum by (where) (increase(till_panics_total[1h]))`, "{{where}}"}, {`sum(increase(till_trace_dropped_total[1h]))`, "spans"}}, line, 1, 6},
			{"Certificate ends", "dateTimeFromNow", "When the certificate that is served ends; empty if a proxy has it.", one(`1000 * min by (name) (till_certificate_expiry_timestamp_seconds)`, "{{name}}"), stat, 0, 6},
			{"Releases", "short", "What runs, by version and commit.", one(`count by (version, revision) (till_build_info)`, "{{version}} {{revision}}"), table, 0, 6},
			{"Processor", "percentunit", "Of one core.", one(`rate(process_cpu_seconds_total{job="till"}[5m])`, "{{instance}}"), line, 0, 6},
			{"Memory", "bytes", "Resident, and what the Go heap has in use.", []query{{`process_resident_memory_bytes{job="till"}`, "{{instance}}"}, {`go_memstats_heap_inuse_bytes{job="till"}`, "{{instance}} heap"}}, line, 0, 6},
			{"Goroutines and open files", "short", "Both grow if something leaks.", []query{{`go_goroutines{job="till"}`, "{{instance}} goroutines"}, {`process_open_fds{job="till"}`, "{{instance}} files"}}, line, 0, 6},
		}},
	}},
}
