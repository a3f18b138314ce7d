package webhooks

import (
	"context"
	"time"

	"till"
	"till/internal/db"
	"till/store"
)

const deliveryColumns = `endpoint_id, sequence, kind, id, subject_id, status, attempts, due_at, lease_until, created_at, updated_at,
	sent_at, sent_url, took, answer_code, answer_text, problem`

var saveDeliveries = db.Define(db.SQL{Name: "deliveries.save",
	SQLite: `INSERT INTO webhook_deliveries (client_id, ` + deliveryColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
		ON CONFLICT (client_id, endpoint_id, sequence, kind) DO UPDATE SET id = excluded.id, status = excluded.status, attempts = excluded.attempts,
		due_at = excluded.due_at, lease_until = excluded.lease_until, updated_at = excluded.updated_at, sent_at = excluded.sent_at,
		sent_url = excluded.sent_url, took = excluded.took, answer_code = excluded.answer_code, answer_text = excluded.answer_text,
		problem = excluded.problem`,
	Postgres: `INSERT INTO webhook_deliveries (client_id, ` + deliveryColumns + `)
		SELECT u.a1, u.a2, u.a3, u.a4, u.a5, u.a6, u.a7, u.a8, u.a9, u.a10, u.a11, u.a12, u.a13, u.a14, u.a15, u.a16, u.a17, u.a18
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS a3, unnest($4::text[]) AS a4,
			unnest($5::bytea[]) AS a5, unnest($6::bytea[]) AS a6, unnest($7::text[]) AS a7, unnest($8::bigint[]) AS a8,
			unnest($9::bigint[]) AS a9, unnest($10::bigint[]) AS a10, unnest($11::bigint[]) AS a11, unnest($12::bigint[]) AS a12,
			unnest($13::bigint[]) AS a13, unnest($14::text[]) AS a14, unnest($15::bigint[]) AS a15, unnest($16::bigint[]) AS a16,
			unnest($17::text[]) AS a17, unnest($18::text[]) AS a18 LIMIT $19::bigint) AS u
		ON CONFLICT (client_id, endpoint_id, sequence, kind) DO UPDATE SET id = excluded.id, status = excluded.status, attempts = excluded.attempts,
			due_at = excluded.due_at, lease_until = excluded.lease_until, updated_at = excluded.updated_at, sent_at = excluded.sent_at,
			sent_url = excluded.sent_url, took = excluded.took, answer_code = excluded.answer_code, answer_text = excluded.answer_text,
			problem = excluded.problem`,
	Arrays: true})

var selectDueDeliveries = db.Define(db.SQL{Name: "deliveries.selectDueDeliveries",
	SQLite: `SELECT client_id, ` + deliveryColumns + ` FROM webhook_deliveries
		WHERE client_id = $1 AND endpoint_id = $2 AND status = 'pending' AND due_at <= $3 ORDER BY due_at, sequence LIMIT $4`})

var selectPendingForSubjects = db.DefineByClient(1, db.SQL{Name: "deliveries.selectPendingForSubjects",
	SQLite: `SELECT client_id, ` + deliveryColumns + ` FROM webhook_deliveries WHERE client_id = $1 AND endpoint_id = $2 AND subject_id = $3
		AND status = 'pending' ORDER BY sequence`,
	Postgres: `SELECT u.nth, found.* FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bytea[]) AS a3, unnest($4::bigint[]) AS nth LIMIT $5::bigint) AS u,
		LATERAL (SELECT client_id, ` + deliveryColumns + ` FROM webhook_deliveries WHERE client_id = u.a1 AND endpoint_id = u.a2 AND subject_id = u.a3 AND status = 'pending' OFFSET 0) AS found ORDER BY found.sequence`,
	Arrays: true})

var selectPendingFrom = db.Define(db.SQL{Name: "deliveries.selectPendingFrom",
	SQLite: `SELECT client_id, ` + deliveryColumns + ` FROM webhook_deliveries
		WHERE client_id = $1 AND endpoint_id = $2 AND status = 'pending' AND updated_at > $3`})

var selectDeliveriesByKey = db.DefineByClient(1, db.SQL{Name: "deliveries.selectByKey",
	SQLite: `SELECT client_id, ` + deliveryColumns + ` FROM webhook_deliveries WHERE client_id = $1 AND endpoint_id = $2 AND sequence = $3 AND kind = $4`,
	Postgres: `SELECT u.nth, client_id, ` + deliveryColumns + ` FROM webhook_deliveries,
		(SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS a3, unnest($4::text[]) AS a4,
			unnest($5::bigint[]) AS nth LIMIT $6::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a1]) AND endpoint_id = u.a2 AND sequence = u.a3 AND kind = u.a4`,
	Arrays: true})

var selectDeliveriesOfEvents = db.DefineByClient(1, db.SQL{Name: "deliveries.selectOfEvents",
	SQLite: `SELECT client_id, ` + deliveryColumns + ` FROM webhook_deliveries WHERE client_id = $1 AND endpoint_id = $2 AND sequence = $3`,
	Postgres: `SELECT u.nth, client_id, ` + deliveryColumns + ` FROM webhook_deliveries,
		(SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS a3, unnest($4::bigint[]) AS nth LIMIT $5::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a1]) AND endpoint_id = u.a2 AND sequence = u.a3`,
	Arrays: true})

var selectNextRetry = db.Define(db.SQL{Name: "deliveries.selectNextRetry",
	SQLite: `SELECT min(due_at) FROM webhook_deliveries WHERE client_id = $1 AND endpoint_id = $2 AND status = 'pending'`})

var retryNow = db.Define(db.SQL{Name: "deliveries.retryNow",
	SQLite: `UPDATE webhook_deliveries SET due_at = $1 WHERE client_id = $2 AND endpoint_id = $3 AND status = 'pending' AND due_at > $4 AND lease_until <= $5`})

var retrySubjectNow = db.Define(db.SQL{Name: "deliveries.retrySubjectNow",
	SQLite: `UPDATE webhook_deliveries SET due_at = $1 WHERE client_id = $2 AND endpoint_id = $3 AND subject_id = $4
		AND status = 'pending' AND attempts = 0 AND due_at > $5 AND lease_until <= $6`})

var disablePending = db.Define(db.SQL{Name: "deliveries.disablePending",
	SQLite: `UPDATE webhook_deliveries SET status = 'disabled', lease_until = 0, updated_at = $1
		WHERE client_id = $2 AND endpoint_id = $3 AND status = 'pending'`})

var retryFailed = db.Define(db.SQL{Name: "deliveries.retryFailed",
	SQLite: `UPDATE webhook_deliveries SET status = 'pending', attempts = 0, due_at = $1, lease_until = 0, updated_at = $2
		WHERE client_id = $3 AND endpoint_id = $4 AND (status = 'exhausted' OR status = 'disabled')`})

var countPending = db.Define(db.SQL{Name: "deliveries.countPending",
	SQLite: `SELECT count(*) FROM webhook_deliveries WHERE client_id = $1 AND endpoint_id = $2 AND status = 'pending' AND kind <> 'event'`})

var selectUndeliveredKinds = db.Define(db.SQL{Name: "deliveries.selectUndeliveredKinds",
	SQLite: `SELECT DISTINCT e.kind FROM webhook_deliveries d JOIN events e ON e.client_id = d.client_id AND e.sequence = d.sequence
		WHERE d.client_id = $1 AND d.endpoint_id = $2 AND d.kind <> 'test' AND (d.status = 'pending' OR d.status = 'exhausted' OR d.status = 'disabled')`})

var selectDeliveriesBetween = db.Define(db.SQL{Name: "deliveries.selectBetween",
	SQLite: `SELECT client_id, ` + deliveryColumns + ` FROM webhook_deliveries
		WHERE client_id = $1 AND endpoint_id = $2 AND sequence BETWEEN $3 AND $4 ORDER BY sequence DESC, kind`})

var selectDeliveriesOf = db.Define(db.SQL{Name: "deliveries.selectOf",
	SQLite: `SELECT client_id, ` + deliveryColumns + ` FROM webhook_deliveries
		WHERE client_id = $1 AND endpoint_id = $2 AND sequence < $3 AND status = $4 ORDER BY sequence DESC, kind LIMIT $5`})

// The last that went wrong is among the newest rows: older ones wait behind them, or have
// ended.
var selectTroubles = db.DefineByClient(1, db.SQL{Name: "deliveries.selectTroubles",
	SQLite: `SELECT client_id, ` + deliveryColumns + ` FROM (SELECT * FROM webhook_deliveries WHERE client_id = $1 AND endpoint_id = $2
		ORDER BY sequence DESC LIMIT 100) AS newest WHERE sent_at IS NOT NULL AND status <> 'delivered' AND status <> 'superseded' ORDER BY sent_at DESC LIMIT 1`,
	Postgres: `SELECT u.nth, found.* FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u,
		LATERAL (SELECT client_id, ` + deliveryColumns + ` FROM (SELECT * FROM webhook_deliveries WHERE client_id = u.a1 AND endpoint_id = u.a2
			ORDER BY sequence DESC LIMIT 100) AS newest WHERE sent_at IS NOT NULL AND status <> 'delivered' AND status <> 'superseded' ORDER BY sent_at DESC LIMIT 1) AS found`,
	Arrays: true})

// DeliveryKind says why something is sent to an endpoint.
type DeliveryKind string

// The kinds of deliveries. All but the first were asked for by hand.
const (
	DeliverEvent  DeliveryKind = "event"
	DeliverAgain  DeliveryKind = "redelivery"
	DeliverReplay DeliveryKind = "replay"
	DeliverTest   DeliveryKind = "test"
)

// How many bytes of foreign texts are kept.
const (
	maxAnswerText  = 1024
	maxProblemText = 255
)

// DeliveryStatus says what became of a delivery.
type DeliveryStatus string

// The states of a delivery.
const (
	DeliveryPending    DeliveryStatus = "pending"
	DeliveryDelivered  DeliveryStatus = "delivered"
	DeliverySuperseded DeliveryStatus = "superseded" // a newer state of the payment was sent
	DeliveryExhausted  DeliveryStatus = "exhausted"  // every attempt failed
	DeliveryDisabled   DeliveryStatus = "disabled"   // its endpoint was disabled before it arrived
)

// Delivery is an event that did not reach an endpoint at the first attempt, or
// that a person asked to be sent.
type Delivery struct {
	ClientID, EndpointID till.ID
	Sequence             int64
	Kind                 DeliveryKind
	ID                   till.ID // of the asking; a test's webhook-id
	SubjectID            till.ID // the payment

	Status     DeliveryStatus
	Attempts   int
	DueAt      till.Time
	LeaseUntil till.Time // it is being sent, beyond the endpoint's own lease
	CreatedAt  till.Time
	UpdatedAt  till.Time

	Last DeliveryAttempt // the last attempt; its SentAt is zero if there was none
}

// DeliveryAttempt is one attempt to deliver and what came of it.
type DeliveryAttempt struct {
	SentAt  till.Time
	URL     string
	Took    time.Duration
	Code    int    // 0: there was no answer
	Text    string // the beginning of the answer
	Problem string // why there was none
}

func scanDelivery(r db.Row) (*Delivery, error) {
	d := &Delivery{}
	var took int64
	err := r.Scan(db.ID(&d.ClientID), db.ID(&d.EndpointID), &d.Sequence, &d.Kind, db.ID(&d.ID), db.ID(&d.SubjectID), &d.Status, &d.Attempts,
		&d.DueAt, &d.LeaseUntil, &d.CreatedAt, &d.UpdatedAt, db.Int(&d.Last.SentAt), db.Text(&d.Last.URL), db.Int(&took),
		db.Int(&d.Last.Code), db.Text(&d.Last.Text), db.Text(&d.Last.Problem))
	d.Last.Took = time.Duration(took) * time.Microsecond
	return d, err
}

// Sending reports whether an attempt is under way and its lease has not ended.
func (d *Delivery) Sending(now till.Time) bool {
	return d.Status == DeliveryPending && d.LeaseUntil > now
}

// SaveDeliveries writes deliveries as they are in memory, whether they are new or
// not. The endpoint is locked in this transaction.
func SaveDeliveries(ctx context.Context, tx *store.Tx, rows []*Delivery) error {
	args := make([][]any, len(rows))
	for i, d := range rows {
		t := &d.Last
		args[i] = []any{d.ClientID[:], d.EndpointID[:], d.Sequence, string(d.Kind), d.ID[:], d.SubjectID[:], string(d.Status), d.Attempts,
			int64(d.DueAt), int64(d.LeaseUntil), int64(d.CreatedAt), int64(d.UpdatedAt), db.OrNull(t.SentAt), db.OrNull(t.URL), db.OrNull(t.Took.Microseconds()),
			db.OrNull(int64(t.Code)), db.OrNull(clean(t.Text, maxAnswerText)), db.OrNull(clean(t.Problem, maxProblemText))}
	}
	return tx.DB().Defer(saveDeliveries, args)
}

// clean cuts a text that came from outside to what the database keeps.
func clean(s string, longest int) string {
	b := make([]byte, 0, min(len(s), longest))
	for _, r := range s {
		if r == 0 {
			r = '\uFFFD'
		}
		text := string(r)
		if len(b)+len(text) > longest {
			break
		}
		b = append(b, text...)
	}
	return string(b)
}

func deliveries(ctx context.Context, tx *store.Tx, q *db.SQL, args ...any) (out []*Delivery, err error) {
	err = tx.DB().Query(ctx, q, args, func(r db.Row) error {
		d, err := scanDelivery(r)
		out = append(out, d)
		return err
	})
	return out, err
}

// DeliveriesOfEvents returns the rows of some events with some endpoints, of
// every kind.
func DeliveriesOfEvents(ctx context.Context, tx *store.Tx, client till.ID, endpoints []till.ID, sequences []int64) (out []*Delivery, err error) {
	var args [][]any
	for i := range endpoints {
		for _, n := range sequences {
			args = append(args, []any{client[:], endpoints[i][:], n})
		}
	}
	err = tx.DB().QueryEach(ctx, selectDeliveriesOfEvents, args, func(_ int, r db.Row) error {
		d, err := scanDelivery(r)
		out = append(out, d)
		return err
	})
	return out, err
}

// Troubles returns, of each endpoint, the last attempt that did not arrive, if
// it is among the newest rows.
func Troubles(ctx context.Context, tx *store.Tx, endpoints []store.Ref) (map[store.Ref]*Delivery, error) {
	out := make(map[store.Ref]*Delivery, len(endpoints))
	err := tx.DB().QueryEach(ctx, selectTroubles, store.RefArgs(endpoints), func(i int, r db.Row) (err error) {
		out[endpoints[i]], err = scanDelivery(r)
		return err
	})
	return out, err
}

// DueDeliveries returns up to limit pending deliveries of an endpoint that
// are due, longest due first.
func DueDeliveries(ctx context.Context, tx *store.Tx, ref store.Ref, limit int) ([]*Delivery, error) {
	return deliveries(ctx, tx, selectDueDeliveries,
		ref.Client[:], ref.ID[:], int64(tx.Now()), limit)
}

// PendingForSubjects returns the pending deliveries of an endpoint about some payments.
func PendingForSubjects(ctx context.Context, tx *store.Tx, ref store.Ref, subjects []till.ID) (out []*Delivery, err error) {
	args := make([][]any, len(subjects))
	for i := range subjects {
		args[i] = []any{ref.Client[:], ref.ID[:], subjects[i][:]}
	}
	err = tx.DB().QueryEach(ctx, selectPendingForSubjects, args,
		func(_ int, r db.Row) error {
			d, err := scanDelivery(r)
			out = append(out, d)
			return err
		})
	return out, err
}

// PendingFrom returns the pending deliveries of an endpoint that were written
// after a time.
func PendingFrom(ctx context.Context, tx *store.Tx, ref store.Ref, at till.Time) ([]*Delivery, error) {
	return deliveries(ctx, tx, selectPendingFrom, ref.Client[:], ref.ID[:], int64(at))
}

// DeliveryKey names a delivery of an endpoint.
type DeliveryKey struct {
	Sequence int64
	Kind     DeliveryKind
}

// Key names the delivery among those of its endpoint.
func (d *Delivery) Key() DeliveryKey { return DeliveryKey{d.Sequence, d.Kind} }

// DeliveriesByKey returns those of the named deliveries of an endpoint that
// exist.
func DeliveriesByKey(ctx context.Context, tx *store.Tx, ref store.Ref, keys []DeliveryKey) (map[DeliveryKey]*Delivery, error) {
	args := make([][]any, len(keys))
	for i, k := range keys {
		args[i] = []any{ref.Client[:], ref.ID[:], k.Sequence, string(k.Kind)}
	}
	out := make(map[DeliveryKey]*Delivery, len(keys))
	err := tx.DB().QueryEach(ctx, selectDeliveriesByKey, args,
		func(i int, r db.Row) (err error) { out[keys[i]], err = scanDelivery(r); return err })
	return out, err
}

// NextRetry returns the least due time of an endpoint's pending deliveries,
// zero if there is none.
func NextRetry(ctx context.Context, tx *store.Tx, ref store.Ref) (due till.Time, err error) {
	_, err = tx.DB().QueryRow(ctx, selectNextRetry,
		[]any{ref.Client[:], ref.ID[:]}, db.Int(&due))
	return due, err
}

// RetryNow makes the pending deliveries of an endpoint that are not being sent
// due now.
func RetryNow(ctx context.Context, tx *store.Tx, ref store.Ref, at till.Time) error {
	_, err := tx.DB().Exec(ctx, retryNow,
		int64(at), ref.Client[:], ref.ID[:], int64(at), int64(at))
	return err
}

// RetrySubjectNow makes the deliveries due now that waited for an older state
// of the same payment to be sent.
func RetrySubjectNow(ctx context.Context, tx *store.Tx, ref store.Ref, subject till.ID, at till.Time) error {
	_, err := tx.DB().Exec(ctx, retrySubjectNow,
		int64(at), ref.Client[:], ref.ID[:], subject[:], int64(at), int64(at))
	return err
}

// DisablePending gives up the pending deliveries of an endpoint that is being
// disabled.
func DisablePending(ctx context.Context, tx *store.Tx, ref store.Ref, at till.Time) error {
	_, err := tx.DB().Exec(ctx, disablePending, int64(at), ref.Client[:], ref.ID[:])
	return err
}

// RetryFailed makes the exhausted and disabled deliveries of an endpoint
// pending again, as if they had never been tried, and returns how many.
func RetryFailed(ctx context.Context, tx *store.Tx, ref store.Ref, at till.Time) (int64, error) {
	return tx.DB().Exec(ctx, retryFailed,
		int64(at), int64(at), ref.Client[:], ref.ID[:])
}

// CountPending returns how many deliveries of an endpoint are pending that
// were asked for by hand.
func CountPending(ctx context.Context, tx *store.Tx, ref store.Ref) (n int, err error) {
	_, err = tx.DB().QueryRow(ctx, countPending,
		[]any{ref.Client[:], ref.ID[:]}, &n)
	return n, err
}

// UndeliveredKinds returns the kinds of the events that wait to be sent to an
// endpoint, or that a replay would send.
func UndeliveredKinds(ctx context.Context, tx *store.Tx, ref store.Ref) (kinds []till.EventKind, err error) {
	err = tx.DB().Query(ctx, selectUndeliveredKinds,
		[]any{ref.Client[:], ref.ID[:]}, func(r db.Row) error {
			var k till.EventKind
			err := r.Scan(&k)
			kinds = append(kinds, k)
			return err
		})
	return kinds, err
}

// DeliveriesBetween returns the rows of an endpoint for a stretch of the log,
// both ends included, newest first.
func DeliveriesBetween(ctx context.Context, tx *store.Tx, ref store.Ref, from, to int64) ([]*Delivery, error) {
	return deliveries(ctx, tx, selectDeliveriesBetween,
		ref.Client[:], ref.ID[:], from, to)
}

// DeliveriesOf returns up to limit rows of an endpoint before a sequence,
// newest first; with a status only those that have it.
func DeliveriesOf(ctx context.Context, tx *store.Tx, ref store.Ref, status DeliveryStatus, before int64, limit int) ([]*Delivery, error) {
	return deliveries(ctx, tx, selectDeliveriesOf,
		ref.Client[:], ref.ID[:], before, string(status), limit)
}
