package store

import (
	"context"
	"time"

	"till"
)

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

// Delivery is an event on its way to an endpoint that did not arrive at once,
// or that somebody asked for.
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

	Last Try // the last attempt; its SentAt is zero if there was none
}

// Try is one attempt to deliver and what came of it.
type Try struct {
	SentAt  till.Time
	URL     string
	Took    time.Duration
	Code    int    // 0: there was no answer
	Text    string // the beginning of the answer
	Problem string // why there was none
}

const deliveryColumns = `endpoint_id, sequence, kind, id, subject_id, status, attempts, due_at, lease_until, created_at, updated_at,
	sent_at, sent_url, took, answer_code, answer_text, problem`

func scanDelivery(r row) (*Delivery, error) {
	d := &Delivery{}
	var took int64
	err := r.Scan(idDest(&d.ClientID), idDest(&d.EndpointID), &d.Sequence, &d.Kind, idDest(&d.ID), idDest(&d.SubjectID), &d.Status, &d.Attempts,
		&d.DueAt, &d.LeaseUntil, &d.CreatedAt, &d.UpdatedAt, intDest(&d.Last.SentAt), textDest(&d.Last.URL), intDest(&took),
		intDest(&d.Last.Code), textDest(&d.Last.Text), textDest(&d.Last.Problem))
	d.Last.Took = time.Duration(took) * time.Microsecond
	return d, err
}

// Sending reports whether an attempt is under way that nobody has given up.
func (d *Delivery) Sending(now till.Time) bool {
	return d.Status == DeliveryPending && d.LeaseUntil > now
}

// SaveDeliveries writes deliveries as they stand in memory, new ones and
// known ones alike. The endpoint is locked in this transaction.
func (tx *Tx) SaveDeliveries(ctx context.Context, rows []*Delivery) error {
	args := make([][]any, len(rows))
	for i, d := range rows {
		t := &d.Last
		args[i] = []any{d.ClientID[:], d.EndpointID[:], d.Sequence, string(d.Kind), d.ID[:], d.SubjectID[:], string(d.Status), d.Attempts,
			int64(d.DueAt), int64(d.LeaseUntil), int64(d.CreatedAt), int64(d.UpdatedAt), orNull(t.SentAt), orNull(t.URL), orNull(t.Took.Microseconds()),
			orNull(int64(t.Code)), orNull(clean(t.Text, maxAnswerText)), orNull(clean(t.Problem, maxProblemText))}
	}
	return tx.set(ctx, `INSERT INTO webhook_deliveries (client_id, `+deliveryColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (client_id, endpoint_id, sequence, kind) DO UPDATE SET id = excluded.id, status = excluded.status, attempts = excluded.attempts,
		due_at = excluded.due_at, lease_until = excluded.lease_until, updated_at = excluded.updated_at, sent_at = excluded.sent_at,
		sent_url = excluded.sent_url, took = excluded.took, answer_code = excluded.answer_code, answer_text = excluded.answer_text,
		problem = excluded.problem`, args)
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

func (tx *Tx) deliveries(ctx context.Context, query string, args ...any) (out []*Delivery, err error) {
	err = tx.rows(ctx, query, args, func(r row) error {
		d, err := scanDelivery(r)
		out = append(out, d)
		return err
	})
	return out, err
}

// DueDeliveries returns up to limit pending deliveries of an endpoint that
// are due, longest due first.
func (tx *Tx) DueDeliveries(ctx context.Context, ref Ref, limit int) ([]*Delivery, error) {
	return tx.deliveries(ctx, `SELECT client_id, `+deliveryColumns+` FROM webhook_deliveries
		WHERE client_id = ? AND endpoint_id = ? AND status = 'pending' AND due_at <= ? ORDER BY due_at, sequence LIMIT ?`,
		ref.Client[:], ref.ID[:], int64(tx.Now()), limit)
}

// PendingOf returns the pending deliveries of an endpoint about some payments.
func (tx *Tx) PendingOf(ctx context.Context, ref Ref, subjects []till.ID) (out []*Delivery, err error) {
	args := make([][]any, len(subjects))
	for i := range subjects {
		args[i] = []any{ref.Client[:], ref.ID[:], subjects[i][:]}
	}
	err = tx.rowsOf(ctx, `SELECT client_id, `+deliveryColumns+` FROM webhook_deliveries WHERE client_id = ? AND endpoint_id = ? AND subject_id = ?
		AND status = 'pending' ORDER BY sequence`, args,
		func(_ int, r row) error {
			d, err := scanDelivery(r)
			out = append(out, d)
			return err
		})
	return out, err
}

// PendingFrom returns the pending deliveries of an endpoint that were written
// after a time.
func (tx *Tx) PendingFrom(ctx context.Context, ref Ref, at till.Time) ([]*Delivery, error) {
	return tx.deliveries(ctx, `SELECT client_id, `+deliveryColumns+` FROM webhook_deliveries
		WHERE client_id = ? AND endpoint_id = ? AND status = 'pending' AND updated_at > ?`, ref.Client[:], ref.ID[:], int64(at))
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
func (tx *Tx) DeliveriesByKey(ctx context.Context, ref Ref, keys []DeliveryKey) (map[DeliveryKey]*Delivery, error) {
	args := make([][]any, len(keys))
	for i, k := range keys {
		args[i] = []any{ref.Client[:], ref.ID[:], k.Sequence, string(k.Kind)}
	}
	out := make(map[DeliveryKey]*Delivery, len(keys))
	err := tx.rowsOf(ctx, `SELECT client_id, `+deliveryColumns+` FROM webhook_deliveries WHERE client_id = ? AND endpoint_id = ? AND sequence = ? AND kind = ?`, args,
		func(i int, r row) (err error) { out[keys[i]], err = scanDelivery(r); return err })
	return out, err
}

// NextRetry returns the least due time of an endpoint's pending deliveries,
// zero if there is none.
func (tx *Tx) NextRetry(ctx context.Context, ref Ref) (due till.Time, err error) {
	_, err = tx.one(ctx, `SELECT min(due_at) FROM webhook_deliveries WHERE client_id = ? AND endpoint_id = ? AND status = 'pending'`,
		[]any{ref.Client[:], ref.ID[:]}, intDest(&due))
	return due, err
}

// MakeDue makes the pending deliveries of an endpoint that are not being sent
// due now.
func (tx *Tx) MakeDue(ctx context.Context, ref Ref, at till.Time) error {
	_, err := tx.exec(ctx, `UPDATE webhook_deliveries SET due_at = ? WHERE client_id = ? AND endpoint_id = ? AND status = 'pending' AND due_at > ? AND lease_until <= ?`,
		int64(at), ref.Client[:], ref.ID[:], int64(at), int64(at))
	return err
}

// MakeWaitingDue makes the deliveries due now that waited for an older state
// of the same payment to be sent.
func (tx *Tx) MakeWaitingDue(ctx context.Context, ref Ref, subject till.ID, at till.Time) error {
	_, err := tx.exec(ctx, `UPDATE webhook_deliveries SET due_at = ? WHERE client_id = ? AND endpoint_id = ? AND subject_id = ?
		AND status = 'pending' AND attempts = 0 AND due_at > ? AND lease_until <= ?`,
		int64(at), ref.Client[:], ref.ID[:], subject[:], int64(at), int64(at))
	return err
}

// DisablePending gives up the pending deliveries of an endpoint that is being
// disabled.
func (tx *Tx) DisablePending(ctx context.Context, ref Ref, at till.Time) error {
	_, err := tx.exec(ctx, `UPDATE webhook_deliveries SET status = 'disabled', lease_until = 0, updated_at = ?
		WHERE client_id = ? AND endpoint_id = ? AND status = 'pending'`, int64(at), ref.Client[:], ref.ID[:])
	return err
}

// RetryFailed makes the exhausted and disabled deliveries of an endpoint
// pending again, as if they had never been tried, and returns how many.
func (tx *Tx) RetryFailed(ctx context.Context, ref Ref, at till.Time) (int64, error) {
	return tx.exec(ctx, `UPDATE webhook_deliveries SET status = 'pending', attempts = 0, due_at = ?, lease_until = 0, updated_at = ?
		WHERE client_id = ? AND endpoint_id = ? AND (status = 'exhausted' OR status = 'disabled')`,
		int64(at), int64(at), ref.Client[:], ref.ID[:])
}

// CountPending returns how many deliveries of an endpoint are pending that
// were asked for by hand.
func (tx *Tx) CountPending(ctx context.Context, ref Ref) (n int, err error) {
	_, err = tx.one(ctx, `SELECT count(*) FROM webhook_deliveries WHERE client_id = ? AND endpoint_id = ? AND status = 'pending' AND kind <> 'event'`,
		[]any{ref.Client[:], ref.ID[:]}, &n)
	return n, err
}

// UndeliveredKinds returns the kinds of the events that wait to be sent to an
// endpoint, or that a replay would send.
func (tx *Tx) UndeliveredKinds(ctx context.Context, ref Ref) (kinds []till.EventKind, err error) {
	err = tx.rows(ctx, `SELECT DISTINCT e.kind FROM webhook_deliveries d JOIN events e ON e.client_id = d.client_id AND e.sequence = d.sequence
		WHERE d.client_id = ? AND d.endpoint_id = ? AND d.kind <> 'test' AND (d.status = 'pending' OR d.status = 'exhausted' OR d.status = 'disabled')`,
		[]any{ref.Client[:], ref.ID[:]}, func(r row) error {
			var k till.EventKind
			err := r.Scan(&k)
			kinds = append(kinds, k)
			return err
		})
	return kinds, err
}

// DeliveriesBetween returns the rows of an endpoint for a stretch of the log,
// both ends included, newest first.
func (tx *Tx) DeliveriesBetween(ctx context.Context, ref Ref, from, to int64) ([]*Delivery, error) {
	return tx.deliveries(ctx, `SELECT client_id, `+deliveryColumns+` FROM webhook_deliveries
		WHERE client_id = ? AND endpoint_id = ? AND sequence BETWEEN ? AND ? ORDER BY sequence DESC, kind`,
		ref.Client[:], ref.ID[:], from, to)
}

// DeliveriesOf returns up to limit rows of an endpoint before a sequence,
// newest first; with a status only those that have it.
func (tx *Tx) DeliveriesOf(ctx context.Context, ref Ref, status DeliveryStatus, before int64, limit int) ([]*Delivery, error) {
	return tx.deliveries(ctx, `SELECT client_id, `+deliveryColumns+` FROM webhook_deliveries
		WHERE client_id = ? AND endpoint_id = ? AND sequence < ? AND status = ? ORDER BY sequence DESC, kind LIMIT ?`,
		ref.Client[:], ref.ID[:], before, string(status), limit)
}
