package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"till"
	"till/internal/db"
)

const eventColumns = `e.sequence, e.kind, e.subject_id, e.created_at, e.status, e.expires_at, e.provider_reference,
	e.failure_reason, e.failure_code, e.failure_message, e.failure_retryable, e.resolution, e.checked_at, e.next_check_at, e.calls, e.document`

// eventBody is the part of a payment that an event's body needs. An event may be
// about something else, so the payment is found by a LEFT JOIN.
const eventBody = `, p.id, p.idempotency_key, p.idempotency_key_sent, p.method, p.country, p.amount, p.currency, p.fee,
	p.phone, p.reference, p.document, p.created_at, p.approval_window, `

var insertEvents = db.DefineByClient(1, db.SQL{Name: "events.insert",
	SQLite: `INSERT INTO events (client_id, sequence, kind, subject_id, created_at, status, expires_at,
		provider_reference, failure_reason, failure_code, failure_message, failure_retryable, resolution, checked_at, next_check_at, calls, document)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
	Postgres: `INSERT INTO events (client_id, sequence, kind, subject_id, created_at, status, expires_at,
			provider_reference, failure_reason, failure_code, failure_message, failure_retryable, resolution, checked_at, next_check_at, calls, document)
		SELECT u.a1, u.a2, u.a3, u.a4, u.a5, u.a6, u.a7, u.a8, u.a9, u.a10, u.a11, u.a12, u.a13, u.a14, u.a15, u.a16, u.a17
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bigint[]) AS a2, unnest($3::text[]) AS a3, unnest($4::bytea[]) AS a4,
			unnest($5::bigint[]) AS a5, unnest($6::text[]) AS a6, unnest($7::bigint[]) AS a7, unnest($8::text[]) AS a8,
			unnest($9::text[]) AS a9, unnest($10::text[]) AS a10, unnest($11::text[]) AS a11, unnest($12::bigint[]) AS a12,
			unnest($13::text[]) AS a13, unnest($14::bigint[]) AS a14, unnest($15::bigint[]) AS a15, unnest($16::bigint[]) AS a16,
			unnest($17::text[]) AS a17 LIMIT $18::bigint) AS u`,
	Arrays: true})

var selectEvents = db.Define(db.SQL{Name: "events.select",
	SQLite: `SELECT ` + eventColumns + ` FROM events e WHERE e.client_id = $1 AND e.sequence > $2 ORDER BY e.sequence LIMIT $3`})

var bodiesAfter = `SELECT ` + eventColumns + eventBody + toldAt("late_event") + `, ` + toldAt("reversed_event") + `
		FROM (SELECT * FROM events WHERE client_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3) e
		LEFT JOIN payments p ON p.client_id = e.client_id AND p.id = e.subject_id ORDER BY e.sequence`

var bodiesAt = `SELECT ` + eventColumns + eventBody + toldAt("late_event") + `, ` + toldAt("reversed_event") + `
		FROM events e LEFT JOIN payments p ON p.client_id = e.client_id AND p.id = e.subject_id WHERE e.client_id = $1 AND e.sequence = $2`

var selectEventBodies = db.Define(db.SQL{Name: "events.selectBodies",
	SQLite: bodiesAfter,
	Citus:  db.OfClient(bodiesAfter, "$1")})

var selectEventBodiesAt = db.DefineByClient(1, db.SQL{Name: "events.selectBodiesAt",
	SQLite: bodiesAt,
	Citus:  db.OfClient(bodiesAt, "$1"),
	Postgres: `SELECT u.nth, ` + eventColumns + eventBody + toldAtByKey("late_event") + `, ` + toldAtByKey("reversed_event") + `
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bigint[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u,
		LATERAL (SELECT * FROM events WHERE client_id = u.a1 AND sequence = u.a2 OFFSET 0) AS e
		LEFT JOIN LATERAL (SELECT * FROM payments WHERE client_id = e.client_id AND id = e.subject_id OFFSET 0) AS p ON TRUE`,
	Arrays: true})

var selectEventsAt = db.DefineByClient(1, db.SQL{Name: "events.selectAt",
	SQLite: `SELECT ` + eventColumns + ` FROM events e WHERE e.client_id = $1 AND e.sequence = $2`,
	Postgres: `SELECT u.nth, ` + eventColumns + `
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bigint[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u,
		LATERAL (SELECT * FROM events WHERE client_id = u.a1 AND sequence = u.a2 OFFSET 0) AS e`,
	Arrays: true})

var SelectEventMade = db.DefineByClient(1, db.SQL{Name: "events.selectMade",
	SQLite: `SELECT created_at FROM events WHERE client_id = $1 AND sequence = $2`,
	Postgres: `SELECT u.nth, created_at FROM events,
		(SELECT unnest($1::bytea[]) AS a1, unnest($2::bigint[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a1]) AND sequence = u.a2`,
	Arrays: true})

var selectEventBefore = db.Define(db.SQL{Name: "events.selectBefore",
	SQLite: SearchBefore("events", "created_at", "last_event") + ` SELECT max(low) FROM search`})

// maxCountedKinds is how many kinds countEvents takes. There are fewer.
const maxCountedKinds = 32

var countEvents = db.Define(db.SQL{Name: "events.count",
	SQLite: `SELECT count(*) FROM events WHERE client_id = $1 AND sequence BETWEEN $2 AND $3
		AND kind IN (` + db.Placeholders(4, maxCountedKinds) + `)`})

var selectPaymentEvents = db.Define(db.SQL{Name: "events.selectPaymentEvents",
	SQLite: `SELECT pending_event, processing_event, final_event, late_event, reversed_event, updated_event FROM payments WHERE client_id = $1 AND id = $2`})

var selectPayoutEvents = db.Define(db.SQL{Name: "events.selectPayoutEvents",
	SQLite: `SELECT pending_event, processing_event, final_event, late_event, NULL, NULL FROM payouts WHERE client_id = $1 AND id = $2`})

var insertAttentionEvents = db.DefineByClient(1, db.SQL{Name: "events.insertAttention",
	SQLite: `INSERT INTO attention_events (client_id, subject_id, sequence) VALUES ($1, $2, $3)`,
	Postgres: `INSERT INTO attention_events (client_id, subject_id, sequence)
		SELECT u.a1, u.a2, u.a3 FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS a3 LIMIT $4::bigint) AS u`,
	Arrays: true})

var selectAttentionEvents = db.Define(db.SQL{Name: "events.selectAttention",
	SQLite: `SELECT sequence FROM attention_events WHERE client_id = $1 AND subject_id = $2 ORDER BY sequence DESC LIMIT $3`})

var selectActionEvent = db.Define(db.SQL{Name: "events.selectAction",
	SQLite: `SELECT event FROM payment_flows WHERE client_id = $1 AND payment_id = $2 AND event IS NOT NULL`})

// maxAttentionEvents is how many of them are listed with the other events of a
// payment or payout, the latest ones. The log has all.
const maxAttentionEvents = 50

var selectLogEnd = db.Define(db.SQL{Name: "events.selectLogEnd",
	SQLite: `SELECT h.last_event, (SELECT i.log_id FROM installation i WHERE i.one = 1) FROM client_heads h WHERE h.client_id = $1`})

// InsertEvents appends to the clients' logs. The sequences were given out by
// the locked heads. The events of creations come with InsertPayments.
func (tx *Tx) InsertEvents(ctx context.Context, events []*till.Event) error {
	args := make([][]any, len(events))
	for i, e := range events {
		code, message, retryable := failureArgs(e.FailureDetail)
		args[i] = []any{e.ClientID[:], e.Sequence, string(e.Kind), e.SubjectID[:], int64(e.CreatedAt), string(e.Status), int64(e.ExpiresAt),
			db.OrNull(e.ProviderReference), db.OrNull(e.FailureReason), code, message, retryable,
			string(e.Resolution.State), db.OrNull(e.Resolution.LastCheckedAt), db.OrNull(e.Resolution.NextCheckAt), e.Resolution.Attempts, db.OrNull(e.Document)}
	}
	return tx.db.Defer(insertEvents, args)
}

// AttentionEvent names an event about a person's attention.
type AttentionEvent struct {
	Ref
	Sequence int64
}

// InsertAttentionEvents names such events of the log with what they are about.
func (tx *Tx) InsertAttentionEvents(ctx context.Context, events []AttentionEvent) error {
	args := make([][]any, len(events))
	for i, e := range events {
		args[i] = []any{e.Client[:], e.ID[:], e.Sequence}
	}
	return tx.db.Defer(insertAttentionEvents, args)
}

// scanEvent reads eventColumns, and more after them.
func scanEvent(r db.Row, e *till.Event, more ...any) error {
	var code, message string
	var retryable sql.NullBool
	err := r.Scan(append([]any{&e.Sequence, &e.Kind, db.ID(&e.SubjectID), &e.CreatedAt, &e.Status, &e.ExpiresAt, db.Text(&e.ProviderReference),
		db.Text(&e.FailureReason), db.Text(&code), db.Text(&message), &retryable,
		&e.Resolution.State, db.Int(&e.Resolution.LastCheckedAt), db.Int(&e.Resolution.NextCheckAt), &e.Resolution.Attempts, db.Text(&e.Document)}, more...)...)
	if e.FailureReason != "" {
		e.FailureDetail = &till.FailureDetail{ProviderCode: code, ProviderMessage: message, Retryable: retryable.Bool}
	}
	return err
}

// Events returns up to limit events of a client beyond a sequence, ascending.
func (tx *Tx) Events(ctx context.Context, client till.ID, after int64, limit int) ([]*till.Event, error) {
	var out []*till.Event
	err := tx.db.Query(ctx, selectEvents,
		[]any{client[:], after, limit}, func(r db.Row) error {
			e := &till.Event{ClientID: client}
			out = append(out, e)
			return scanEvent(r, e)
		})
	return out, err
}

// EventsAt returns the events of a client that have one of the sequences, in one
// statement.
func (tx *Tx) EventsAt(ctx context.Context, client till.ID, sequences []int64) ([]*till.Event, error) {
	args, out := make([][]any, len(sequences)), make([]*till.Event, 0, len(sequences))
	for i, n := range sequences {
		args[i] = []any{client[:], n}
	}
	err := tx.db.QueryEach(ctx, selectEventsAt, args, func(_ int, r db.Row) error {
		e := &till.Event{ClientID: client}
		out = append(out, e)
		return scanEvent(r, e)
	})
	return out, err
}

// EventKey names an event of a client's log by its place.
type EventKey struct {
	Client   till.ID
	Sequence int64
}

// EventMade returns when the event at a sequence was made, zero if there is
// none: with client and sequence that is the event's id.
func (tx *Tx) EventMade(ctx context.Context, client till.ID, sequence int64) (made till.Time, err error) {
	_, err = tx.db.QueryRow(ctx, SelectEventMade, []any{client[:], sequence}, &made)
	return made, err
}

// EventBefore returns the sequence of a client's last event from before a moment, 0 if there
// is none.
func (tx *Tx) EventBefore(ctx context.Context, client till.ID, at till.Time) (n int64, err error) {
	_, err = tx.db.QueryRow(ctx, selectEventBefore, []any{client[:], int64(at)}, &n)
	return n, err
}

// CountEvents returns how many events of some kinds a stretch of a client's log
// has, both ends included.
func (tx *Tx) CountEvents(ctx context.Context, client till.ID, from, to int64, kinds []till.EventKind) (n int64, err error) {
	if len(kinds) > maxCountedKinds {
		return 0, fmt.Errorf("%d kinds of events, at most %d are counted", len(kinds), maxCountedKinds)
	}
	args := []any{client[:], from, to}
	for i := range maxCountedKinds {
		args = append(args, string(kinds[min(i, len(kinds)-1)])) // the last one again where there are fewer
	}
	_, err = tx.db.QueryRow(ctx, countEvents, args, &n)
	return n, err
}

// EventRow is an event with what it is about.
type EventRow struct {
	till.Event
	// Payment, Payout and Checkout hold the part that never changes, and the client's own
	// words; nil if the event is about something else.
	Payment  *till.Payment
	Payout   *till.Payout // a refund too
	Checkout *till.Checkout
}

// AppendJSON appends the event's body: what the log shows and a webhook sends.
func (e *EventRow) AppendJSON(b []byte) []byte {
	if e.Payout != nil {
		return e.Event.AppendPayoutJSON(b, e.Payout)
	}
	if e.Checkout != nil {
		return e.Event.AppendCheckoutJSON(b, e.Checkout)
	}
	return e.Event.AppendJSON(b, e.Payment)
}

// ofPayout reports whether an event is about a payout or a refund, which are in one table.
func ofPayout(k till.EventKind) bool {
	noun := till.Noun(k.Subject())
	return noun == till.NounPayout || noun == till.NounRefund
}

// readPayoutsOf adds the payouts to events that are about one. Few events are,
// so they cost a statement of their own, and the others nothing.
func (tx *Tx) readPayoutsOf(ctx context.Context, events []*EventRow) error {
	var refs []Ref
	for _, e := range events {
		if ofPayout(e.Kind) {
			refs = append(refs, Ref{e.ClientID, e.SubjectID})
		}
	}
	if len(refs) == 0 {
		return nil
	}
	scale := tx.scale
	tx.scale = nil // they were weighed with their events
	rows, err := tx.Payouts(ctx, refs)
	tx.scale = scale
	if err != nil {
		return err
	}
	for _, e := range events {
		if p := rows[Ref{e.ClientID, e.SubjectID}]; p != nil {
			e.Payout = &p.Payout
		}
	}
	return nil
}

func scanEventBody(r db.Row, client till.ID) (*EventRow, error) {
	e, p := &EventRow{Event: till.Event{ClientID: client}}, &till.Payment{ClientID: client}
	var key till.ID
	var sent string
	err := scanEvent(r, &e.Event, db.ID(&p.ID), db.ID(&key), db.Text(&sent), db.Text(&p.Method), db.Text(&p.Country),
		db.Int(&p.Amount.Minor), db.Text(&p.Amount.Currency), db.Int(&p.Fee), db.Text(&p.Phone), db.Text(&p.Reference), &p.Document,
		db.Int(&p.CreatedAt), db.Duration(&p.ApprovalWindow), db.Int(&p.LateSuccessAt), db.Int(&p.ReversedAt))
	if p.IdempotencyKey = sent; sent == "" {
		p.IdempotencyKey = key.String()
	}
	if !p.ID.IsZero() {
		e.Payment = p
	}
	return e, err
}

// EventBodies returns up to limit events of a client beyond a sequence, ascending,
// each with its subject. It returns fewer if the function given to Weigh returns
// ErrEnough.
func (tx *Tx) EventBodies(ctx context.Context, client till.ID, after int64, limit int) ([]*EventRow, error) {
	var out []*EventRow
	// The events first: what follows looks up each of their payments.
	err := tx.db.Query(ctx, selectEventBodies,
		[]any{client[:], after, limit}, func(r db.Row) error {
			e, err := scanEventBody(r, client)
			if err != nil {
				return err
			}
			out = append(out, e)
			return tx.weigh(e.documents())
		})
	if err != nil && !errors.Is(err, ErrEnough) {
		return nil, err
	}
	return out, tx.readSubjectsOf(ctx, out)
}

// EventBodiesAt returns the events of a client that have one of the sequences,
// ascending, each with its subject. It returns fewer if the function given to
// Weigh returns ErrEnough.
func (tx *Tx) EventBodiesAt(ctx context.Context, client till.ID, sequences []int64) ([]*EventRow, error) {
	args := make([][]any, len(sequences))
	for i, n := range sequences {
		args[i] = []any{client[:], n}
	}
	var out []*EventRow
	err := tx.db.QueryEach(ctx, selectEventBodiesAt, args,
		func(_ int, r db.Row) error {
			e, err := scanEventBody(r, client)
			if err != nil {
				return err
			}
			out = append(out, e)
			return tx.weigh(e.documents())
		})
	if err != nil && !errors.Is(err, ErrEnough) {
		return nil, err
	}
	slices.SortFunc(out, func(a, b *EventRow) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return out, tx.readSubjectsOf(ctx, out)
}

// PaymentEvents returns the events of a payment, ascending. It returns
// CodePaymentNotFound if there is no such payment of the client. The payment
// names its events, so no index of the log by payment is needed.
func (tx *Tx) PaymentEvents(ctx context.Context, ref Ref) ([]*EventRow, error) {
	found, events, err := tx.eventsOf(ctx, selectPaymentEvents, ref)
	if err == nil && !found {
		err = till.Errorf(till.CodePaymentNotFound, "there is no such payment")
	}
	return events, err
}

// PayoutEvents is PaymentEvents for a payout.
func (tx *Tx) PayoutEvents(ctx context.Context, ref Ref) ([]*EventRow, error) {
	found, events, err := tx.eventsOf(ctx, selectPayoutEvents, ref)
	if err == nil && !found {
		err = till.Errorf(till.CodePayoutNotFound, "there is no such payout")
	}
	return events, err
}

// eventsOf returns the events that a row names.
func (tx *Tx) eventsOf(ctx context.Context, q *db.SQL, ref Ref) (found bool, events []*EventRow, err error) {
	var numbers [6]int64
	found, err = tx.db.QueryRow(ctx, q, []any{ref.Client[:], ref.ID[:]},
		&numbers[0], db.Int(&numbers[1]), db.Int(&numbers[2]), db.Int(&numbers[3]), db.Int(&numbers[4]), db.Int(&numbers[5]))
	if err != nil || !found {
		return false, nil, err
	}
	named := slices.DeleteFunc(numbers[:], func(n int64) bool { return n == 0 })
	add := func(r db.Row) error {
		var n int64
		err := r.Scan(&n)
		named = append(named, n)
		return err
	}
	if err = tx.db.Query(ctx, selectAttentionEvents, []any{ref.Client[:], ref.ID[:], maxAttentionEvents}, add); err != nil {
		return true, nil, err
	}
	if q == selectPaymentEvents {
		if err = tx.db.Query(ctx, selectActionEvent, []any{ref.Client[:], ref.ID[:]}, add); err != nil {
			return true, nil, err
		}
	}
	events, err = tx.EventBodiesAt(ctx, ref.Client, named)
	return true, events, err
}

// LogEnd returns the sequence of a client's last event, 0 if there is none,
// and the id of the log.
func (tx *Tx) LogEnd(ctx context.Context, client till.ID) (last int64, log till.ID, err error) {
	_, err = tx.db.QueryRow(ctx, selectLogEnd,
		[]any{client[:]}, &last, db.ID(&log))
	return last, log, err
}
