package meter

import "strings"

// Kind says how a metric is counted.
type Kind string

// The kinds. Fast, Life and Size are histograms.
const (
	Counter Kind = "counter"
	Gauge   Kind = "gauge"
	Fast    Kind = "fast" // 1 ms to 10 s
	Life    Kind = "life" // 1 s to 72 h
	Size    Kind = "size" // 1 to 512
)

// buckets are the upper bounds of each kind of histogram, 13 for times and 10 for sizes.
var buckets = map[Kind][]float64{
	Fast: {.001, .0025, .005, .01, .025, .05, .1, .15, .5, 1, 2.5, 5, 10},
	Life: {1, 5, 15, 30, 60, 120, 300, 900, 3600, 14400, 43200, 86400, 259200},
	Size: {1, 2, 4, 8, 16, 32, 64, 128, 256, 512},
}

// prefix begins every name.
const prefix = "till_"

// Metric is one row of the table.
type Metric struct {
	Name   string // without the prefix
	Kind   Kind
	Labels string // in order, separated by spaces
	Bound  string // the list that each label comes from
	Help   string // one sentence
	Books  bool   // read from the database, once a minute, by one instance
}

// FullName returns the name as it is scraped.
func (m *Metric) FullName() string { return prefix + m.Name }

// labels returns the names of the labels.
func (m *Metric) labels() []string { return strings.Fields(m.Labels) }

// The lists that labels come from.
var (
	codes        = []string{"2xx", "4xx", "429", "500", "503", "gone", "closed"}
	authReasons  = []string{"missing", "malformed", "unknown", "ended", "suspended", "address", "in_url"}
	batches      = []string{"create", "payout", "wake", "answer", "delivery"}
	transactions = []string{"read", "first", "behind"}
	txResults    = []string{"ok", "again", "refused", "disk_full", "unavailable", "unknown_commit"}
	outcomes     = []string{"accepted", "duplicate", "rejected", "open", "not_found", "unrecognised", "asked", "success", "failed", "expired", "reversed", "error", "lease_over"}
	callbacks    = []string{"woken", "stray", "network", "forged", "unreadable", "unavailable"}
	deliveries   = []string{"delivered", "refused", "timeout", "unreachable", "gone", "guarded"}
	panicPlaces  = []string{"request", "loop", "call", "step", "delivery"}
	modes        = []string{"live", "test"}
	certificates = []string{"acme", "file"}

	journalResults = []string{"written", "missing"}
)

const (
	byConnection = "connection: those of the configuration, `sandbox`, or `other`"
	byOperation  = byConnection + "; operation: submit, check, payout_submit, payout_check"
	byKind       = "kind: payment, payout"
	byNoun       = "kind: payment, payout, refund"
	byCurrency   = "currency: ISO 4217"
	byMode       = "mode: live, test"
)

func oneOf(label string, list []string) string { return label + ": " + strings.Join(list, ", ") }

// Table is every metric of the program.
var Table = []Metric{
	{"http_requests_total", Counter, "route code", "route: the routes of the API, or `none`; " + oneOf("code", codes), "Requests that were answered. A client that went away before its answer is `gone`; a 503 because no operator of the method can be reached, or because payouts are held, is `closed`.", false},
	{"http_request_duration_seconds", Fast, "route", "route: the routes of payments, payouts, events, wallets and callbacks, `none`, `other`, and `wait` for long polls", "How long requests took, from the header to the last byte.", false},
	{"http_in_flight", Gauge, "", "", "Requests that are being served.", false},
	{"polls_waiting", Gauge, "", "", "Requests that wait for an event or a status.", false},
	{"exports_running", Gauge, "", "", "Statements that are being exported.", false},
	{"auth_refused_total", Counter, "why", oneOf("why", authReasons), "Requests that were refused because of their key, or because of their address's failures.", false},
	{"rate_limited_total", Counter, "", "", "Requests beyond a client's rate limit.", false},
	{"unknown_members_total", Counter, "mode", byMode, "Members of requests' bodies that Till does not know: typing mistakes. Test clients get 422; of a live client they are ignored, and the header `Till-Warning` names them.", false},

	{"batch_size", Size, "batch", oneOf("batch", batches), "Items in a group commit.", false},
	{"batch_wait_seconds", Fast, "batch", oneOf("batch", batches), "How long the first item of a group commit waited.", false},
	{"batch_queue", Gauge, "batch", oneOf("batch", batches), "Items that wait for a group commit.", false},
	{"batch_full_total", Counter, "batch", oneOf("batch", batches), "Items that found the queue full; a create then gets 503.", false},

	{"db_transactions_total", Counter, "kind result", oneOf("kind", transactions) + "; " + oneOf("result", txResults), "Transactions. `first` writes are requests', `behind` are workers'. `disk_full` ones found no room and changed nothing; after `unknown_commit` nobody knows whether COMMIT happened.", false},
	{"db_transaction_seconds", Fast, "kind", oneOf("kind", transactions), "How long transactions took, without the wait for their turn.", false},
	{"db_gate_wait_seconds", Fast, "queue", "queue: first, behind", "How long write transactions waited for their turn.", false},
	{"db_sessions", Gauge, "pool state", "pool: read, write; state: used, idle", "Connections to the database.", false},
	{"db_bytes", Gauge, "part", "part: main, wal", "Size of the SQLite file and of its log.", false},
	{"disk_free_bytes", Gauge, "folder", "folder: data, journal", "Free space for this user where the SQLite file is, and where the journal is.", false},
	{"disk_size_bytes", Gauge, "folder", "folder: data, journal", "Size of that file system.", false},
	{"journal_failing", Gauge, "", "", "1 if the journal could not be written at the last try.", false},
	{"journal_records_total", Counter, "result", oneOf("result", journalResults), "Creates that the journal has, and creates that it lacks or refused.", false},
	{"db_clock_offset_seconds", Gauge, "", "", "The database's clock minus this machine's.", false},
	{"hints_live", Gauge, "", "", "1 if other processes' hints arrive, 0 if their work is noticed by polling.", false},

	{"operator_calls_total", Counter, "connection operation outcome", byOperation + "; " + oneOf("outcome", outcomes), "Calls to operators. `lease_over` calls were not made.", false},
	{"operator_call_seconds", Fast, "connection operation", byOperation, "How long operators took to answer, or not to.", false},
	{"operator_in_flight", Gauge, "connection", byConnection, "Calls that are under way or wait to be recorded.", false},
	{"operator_state", Gauge, "connection kind", byConnection + "; " + byKind, "The circuit breaker: 0 passing, 1 probing, 2 stopped.", false},
	{"operator_short_total", Counter, "connection operation", byOperation, "Due steps that had to wait for the operator's rate limit.", false},
	{"operator_timeout_seconds", Gauge, "connection operation", byOperation, "How long a call may take.", false},
	{"operator_token_expiry_timestamp_seconds", Gauge, "connection", byConnection, "When the operator's access token that ends first will end; 0 if this instance has none.", false},
	{"callbacks_total", Counter, "connection result", byConnection + "; " + oneOf("result", callbacks), "Operators' callbacks. `woken` ones made a check due, `stray` ones are about money that is not here.", false},
	{"step_delay_seconds", Fast, "connection operation", byOperation, "From the time when a step was due to the time when it was begun.", false},
	{"step_oldest_due_seconds", Gauge, "connection operation", byOperation, "For how long the oldest due step has waited.", false},

	{"moves_total", Counter, "kind method status", byNoun + "; method: those of the method table and of the configuration, or `other`; status: those of payments and payouts", "Changes of status, creations included.", false},
	{"time_to_final_seconds", Life, "kind connection result", byNoun + "; " + byConnection + "; result: success, other", "From creation to the final status.", false},
	{"late_total", Counter, "kind connection", byNoun + "; " + byConnection, "Money that moved after the end without success.", false},
	{"reversed_total", Counter, "kind connection", byNoun + "; " + byConnection, "Money that the operator took back.", false},
	{"owed_total", Counter, "kind connection", byNoun + "; " + byConnection, "Times that a client came to owe money.", false},

	{"webhook_attempts_total", Counter, "result", oneOf("result", deliveries), "Attempts to deliver events.", false},
	{"webhook_attempt_seconds", Fast, "", "", "How long attempts took.", false},
	{"webhook_first_attempt_delay_seconds", Fast, "", "", "From the commit of an event to its first attempt.", false},

	{"open", Gauge, "kind connection", byNoun + "; " + byConnection, "Payments, payouts and refunds that are not final. A refund is not counted among the payouts, here and wherever `kind` has the value.", true},
	{"open_minor", Gauge, "kind mode currency", byNoun + "; " + byMode + "; " + byCurrency, "Their sum, in minor units.", true},
	{"steps_due", Gauge, "connection operation", byOperation, "Steps that are due and that nobody has begun.", true},
	{"oldest_unknown_seconds", Gauge, "kind connection", byNoun + "; " + byConnection, "**The first number to look at**: the age of the oldest that may have been sent and is not final.", true},
	{"refunding_minor", Gauge, "mode currency", byMode + "; " + byCurrency, "What is on its way back to customers: the sum of the open refunds, in minor units.", true},
	{"refund_oldest_unknown_seconds", Gauge, "mode", byMode, "Age of the oldest refund that may have been sent and is not final.", true},
	{"refunded_day_minor", Gauge, "mode currency", byMode + "; " + byCurrency, "What went back to customers within the last 24 hours, to the hour, in minor units.", true},
	{"collected_week_minor", Gauge, "mode currency", byMode + "; " + byCurrency, "What was collected within the last 7 days, to the hour, in minor units.", true},
	{"wallets_minor", Gauge, "mode currency", byMode + "; " + byCurrency, "What wallets hold, in minor units.", true},
	{"reserved_minor", Gauge, "mode currency", byMode + "; " + byCurrency, "What of it is reserved for payouts and refunds.", true},
	{"owed_minor", Gauge, "mode currency", byMode + "; " + byCurrency, "What clients owe.", true},
	{"suspense_minor", Gauge, "mode currency", byMode + "; " + byCurrency, "Money that came in and belongs to no wallet yet.", true},
	{"suspense_oldest_seconds", Gauge, "mode currency", byMode + "; " + byCurrency, "Age of the oldest payment with money in suspense.", true},
	{"cases_open", Gauge, "mode kind", byMode + "; kind: the kinds of cases", "Cases that nobody has closed.", true},
	{"case_oldest_seconds", Gauge, "mode kind", byMode + "; kind: the kinds of cases", "Age of the oldest open case.", true},
	{"strays_open", Gauge, "connection direction", byConnection + "; direction: in, out, unknown", "Money that names us and that we do not know.", true},
	{"strays_minor", Gauge, "connection direction currency", byConnection + "; direction: in, out, unknown; " + byCurrency, "Its sum, in minor units.", true},
	{"seal_lag_seconds", Gauge, "", "", "Age of the oldest audit row that is not in its chain.", true},
	{"fold_lag_seconds", Gauge, "", "", "Age of the oldest hour whose tallies are not rolled up and should be.", true},
	{"webhook_endpoints", Gauge, "mode state", byMode + "; state: ok, failing, disabled", "Endpoints.", true},
	{"webhook_pending", Gauge, "mode state", byMode + "; state: ok, failing", "Endpoints that events wait for.", true},
	{"webhook_oldest_pending_seconds", Gauge, "mode state", byMode + "; state: ok, failing", "Age of the oldest event that waits, of living endpoints apart from failing ones.", true},
	{"markets_age_seconds", Gauge, "connection", byConnection, "Age of what the operator last said that the account may do, of those that say it.", true},
	{"payouts_held", Gauge, "", "", "1 if no new payouts are taken.", true},
	{"restored_timestamp_seconds", Gauge, "", "", "When an old database was put back that is not released yet; 0 if there is none.", true},
	{"instances", Gauge, "version", "version: of the instances that were seen within a minute", "Instances that run.", true},
	{"verify_timestamp_seconds", Gauge, "result", "result: sound, broken", "When a verify last found the books sound, and when one last found them broken, whoever ran it; 0 if none did.", true},
	{"verify_problems", Gauge, "", "", "Invariants that the last verify found broken.", true},
	{"statement_until_timestamp_seconds", Gauge, "connection", byConnection, "The end of the latest operator's statement that was compared.", true},
	{"statement_differences", Gauge, "connection class", byConnection + "; class: those of `till reconcile`", "Differences that the comparisons of statements have left.", true},
	{"statement_difference_minor", Gauge, "connection class currency", byConnection + "; class: those of `till reconcile`; " + byCurrency, "Unreconciled money: what both sides of these differences lie apart, in minor units.", true},
	{"backup_timestamp_seconds", Gauge, "result", "result: ok, failed", "When the last backup ended well, and when the last one failed; 0 if there was none. On SQLite only: PostgreSQL is saved by its own tools.", true},
	{"backup_bytes", Gauge, "", "", "Size of the last backup.", true},
	{"backup_seconds", Gauge, "", "", "How long the last backup took.", true},
	{"drill_timestamp_seconds", Gauge, "result", "result: ok, failed", "When a backup was last restored and verified, and when that failed; 0 if there was none. On SQLite only.", true},
	{"archive_timestamp_seconds", Gauge, "result", "result: ok, failed", "When PostgreSQL last archived a part of its log, and when that last failed; 0 if it never did. On PostgreSQL only.", true},
	{"trouble", Gauge, "name", "name: those of `till status`", "1 if this trouble of live money is there, as `till status` says.", true},
	{"gauges_timestamp_seconds", Gauge, "", "", "When the numbers from the books were read.", true},

	{"ready", Gauge, "", "", "1 if /readyz says so: the database answers, its disk is not full, and no journal that creates wait for fails.", false},
	{"loop_timestamp_seconds", Gauge, "loop", "loop: the program's loops", "When a loop last finished a step.", false},
	{"loop_late", Gauge, "loop", "loop: the program's loops", "1 if a loop is ten intervals late.", false},
	{"panics_total", Counter, "where", oneOf("where", panicPlaces), "Panics that were caught.", false},
	{"certificate_expiry_timestamp_seconds", Gauge, "name", oneOf("name", certificates), "When the certificate that this instance serves ends; of several, the first to end; 0 if there is none.", false},
	{"certificate_life_seconds", Gauge, "name", oneOf("name", certificates), "How long it is valid in all.", false},
	{"trace_dropped_total", Counter, "", "", "Spans that were dropped, because the collector does not take them fast enough.", false},
	{"build_info", Gauge, "version revision", "one of each", "Always 1.", false},
	{"schema_level", Gauge, "", "", "Number of the newest migration.", false},
}
