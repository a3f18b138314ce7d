package store

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"

	"till"
	"till/internal/db"
)

// paymentFields are read with the payment's step, if it has one. Part of what a
// client sees of a payment is the state of its step.
const paymentFields = `p.client_id, p.id, p.idempotency_key, p.idempotency_key_sent, p.body_hash, p.body_version,
	p.status, p.previous_status, p.method, p.country, p.amount, p.currency, p.fee, p.phone, p.reference, p.document,
	p.provider_reference, p.failure_reason, p.failure_code, p.failure_message, p.failure_retryable,
	p.created_at, p.updated_at, p.expires_at, p.approval_window, p.connection, p.fingerprint, p.attention,
	p.checked_at, p.calls, p.pending_event, p.processing_event, p.final_event, p.late_event, p.reversed_event, p.updated_event,
	s.due_at, s.calls, s.checked_at, s.sends, s.acked, `

var (
	paymentColumns      = paymentFields + toldAt("late_event") + `, ` + toldAt("reversed_event")
	paymentColumnsByKey = paymentFields + toldAtByKey("late_event") + `, ` + toldAtByKey("reversed_event") // over arrays; see db.SQL

	// Without the document.
	LeanColumns      = strings.Replace(paymentColumns, "p.document", "NULL", 1)
	leanColumnsByKey = strings.Replace(paymentColumnsByKey, "p.document", "NULL", 1)
)

// toldAt is when the event was made that a column of p numbers. Few rows have
// one, and only those are looked up, by the key of the log, whatever the planner
// believes.
func toldAt(column string) string {
	return `CASE WHEN p.` + column + ` > 0 THEN (SELECT told.created_at FROM events told WHERE told.client_id = p.client_id AND told.sequence = p.` + column + `) END`
}

// toldAtByKey is toldAt in texts over arrays; see db.SQL.
func toldAtByKey(column string) string {
	return `CASE WHEN p.` + column + ` > 0 THEN (SELECT told.created_at FROM events told WHERE told.client_id = ANY(ARRAY[p.client_id]) AND told.sequence = p.` + column + `) END`
}

const insertPayment = `INSERT INTO payments (client_id, id, idempotency_key, idempotency_key_sent, body_hash, body_version,
	status, method, country, amount, currency, fee, phone, reference, document,
	created_at, updated_at, expires_at, approval_window, connection, fingerprint, pending_event)`

const paymentArrays = `
		SELECT u.a1, u.a2, u.a3, u.a4, u.a5, u.a6, 'pending', u.a7, u.a8, u.a9, u.a10, u.a11, u.a12, u.a13, u.a14, u.a15, u.a16, u.a17, u.a18, u.a19, u.a20, u.a21
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bytea[]) AS a3, unnest($4::text[]) AS a4,
			unnest($5::bytea[]) AS a5, unnest($6::bigint[]) AS a6, unnest($7::text[]) AS a7, unnest($8::text[]) AS a8,
			unnest($9::bigint[]) AS a9, unnest($10::text[]) AS a10, unnest($11::bigint[]) AS a11, unnest($12::text[]) AS a12,
			unnest($13::text[]) AS a13, unnest($14::bytea[]) AS a14, unnest($15::bigint[]) AS a15, unnest($16::bigint[]) AS a16,
			unnest($17::bigint[]) AS a17, unnest($18::bigint[]) AS a18, unnest($19::text[]) AS a19, unnest($20::text[]) AS a20,
			unnest($21::bigint[]) AS a21 LIMIT $22::bigint) AS u`

var insertPayments = db.DefineByClient(1, db.SQL{Name: "payments.insert",
	SQLite: insertPayment + `
		VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`,
	Postgres: insertPayment + paymentArrays,
	Arrays:   true})

// A row whose idempotency key is taken is left out.
var insertNewPayments = db.Define(db.SQL{Name: "payments.insertNew",
	SQLite: insertPayment + `
		VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
		ON CONFLICT (client_id, idempotency_key) DO NOTHING`,
	Postgres: insertPayment + paymentArrays + `
		ON CONFLICT (client_id, idempotency_key) DO NOTHING RETURNING id`,
	Arrays: true})

var renumberPayments = db.DefineByClient(2, db.SQL{Name: "payments.renumber",
	SQLite: `UPDATE payments SET pending_event = $1 WHERE client_id = $2 AND id = $3`,
	Postgres: `WITH changed AS (UPDATE payments SET pending_event = u.a1
		FROM (SELECT unnest($1::bigint[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bytea[]) AS a3 LIMIT $4::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a2]) AND id = u.a3
		RETURNING 1)
		SELECT till_expect_rows(count(*), $4) FROM changed`,
	Arrays: true})

var insertDueSteps = db.DefineByClient(1, db.SQL{Name: "payments.insertDueSteps",
	SQLite: `INSERT INTO steps (client_id, subject_id, kind, lane, due_at) VALUES ($1, $2, 'payment', $3, $4)`,
	Postgres: `INSERT INTO steps (client_id, subject_id, kind, lane, due_at)
		SELECT u.a1, u.a2, 'payment', u.a3, u.a4
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::text[]) AS a3, unnest($4::bigint[]) AS a4 LIMIT $5::bigint) AS u`,
	Arrays: true})

var insertPendingEvents = db.DefineByClient(1, db.SQL{Name: "payments.insertPendingEvents",
	SQLite: `INSERT INTO events (client_id, sequence, kind, subject_id, created_at, status, expires_at, resolution)
		VALUES ($1, $2, 'payment.pending', $3, $4, 'pending', $5, 'waiting')`,
	Postgres: `INSERT INTO events (client_id, sequence, kind, subject_id, created_at, status, expires_at, resolution)
		SELECT u.a1, u.a2, 'payment.pending', u.a3, u.a4, 'pending', u.a5, 'waiting'
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bigint[]) AS a2, unnest($3::bytea[]) AS a3, unnest($4::bigint[]) AS a4,
			unnest($5::bigint[]) AS a5 LIMIT $6::bigint) AS u`,
	Arrays: true})

const paymentFrom = ` FROM payments p LEFT JOIN steps s ON s.client_id = p.client_id AND s.subject_id = p.id `

const paymentFromByKey = ` FROM payments p LEFT JOIN steps s ON s.client_id = ANY(ARRAY[p.client_id]) AND s.subject_id = p.id,
		(SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u
		WHERE p.client_id = ANY(ARRAY[u.a1]) AND p.id = u.a2`

var selectPayments = db.DefineByClient(1, db.SQL{Name: "payments.select",
	SQLite:   `SELECT ` + paymentColumns + paymentFrom + `WHERE p.client_id = $1 AND p.id = $2`,
	Postgres: `SELECT u.nth, ` + paymentColumnsByKey + paymentFromByKey,
	Citus:    db.OfClient(`SELECT `+paymentColumns+paymentFrom+`WHERE p.client_id = $1 AND p.id = $2`, "$1"),
	Arrays:   true})

var selectLeanPayments = db.DefineByClient(1, db.SQL{Name: "payments.selectLean",
	SQLite:   `SELECT ` + LeanColumns + paymentFrom + `WHERE p.client_id = $1 AND p.id = $2`,
	Postgres: `SELECT u.nth, ` + leanColumnsByKey + paymentFromByKey,
	Citus:    db.OfClient(`SELECT `+LeanColumns+paymentFrom+`WHERE p.client_id = $1 AND p.id = $2`, "$1"),
	Arrays:   true})

var selectPaymentByKey = db.Define(db.SQL{Name: "payments.selectByKey",
	SQLite: `SELECT ` + paymentColumns + paymentFrom + `WHERE p.client_id = $1 AND p.idempotency_key = $2`,
	Citus:  db.OfClient(`SELECT `+paymentColumns+paymentFrom+`WHERE p.client_id = $1 AND p.idempotency_key = $2`, "$1")})

var updatePayments = db.DefineByClient(21, db.SQL{Name: "payments.update",
	SQLite: `UPDATE payments SET status = $1, previous_status = $2, provider_reference = $3,
		failure_reason = $4, failure_code = $5, failure_message = $6, failure_retryable = $7,
		updated_at = $8, attention = $9, checked_at = $10, calls = $11,
		processing_event = $12, final_event = $13, late_event = $14, reversed_event = $15, updated_event = $16,
		callbacks = callbacks + $17, callback_at = CASE WHEN callback_at > 0 THEN callback_at ELSE $18 END,
		last_callback_at = CASE WHEN last_callback_at > $19 THEN last_callback_at ELSE $20 END
		WHERE client_id = $21 AND id = $22 AND updated_at = $23 AND attention = $24 AND expires_at = $25`,
	Postgres: `WITH changed AS (UPDATE payments SET status = u.a1, previous_status = u.a2, provider_reference = u.a3,
			failure_reason = u.a4, failure_code = u.a5, failure_message = u.a6, failure_retryable = u.a7,
			updated_at = u.a8, attention = u.a9, checked_at = u.a10, calls = u.a11,
			processing_event = u.a12, final_event = u.a13, late_event = u.a14, reversed_event = u.a15, updated_event = u.a16,
			callbacks = callbacks + u.a17, callback_at = CASE WHEN callback_at > 0 THEN callback_at ELSE u.a18 END,
			last_callback_at = CASE WHEN last_callback_at > u.a19 THEN last_callback_at ELSE u.a19 END
		FROM (SELECT unnest($1::text[]) AS a1, unnest($2::text[]) AS a2, unnest($3::text[]) AS a3, unnest($4::text[]) AS a4, unnest($5::text[]) AS a5,
			unnest($6::text[]) AS a6, unnest($7::bigint[]) AS a7, unnest($8::bigint[]) AS a8, unnest($9::bigint[]) AS a9,
			unnest($10::bigint[]) AS a10, unnest($11::bigint[]) AS a11, unnest($12::bigint[]) AS a12, unnest($13::bigint[]) AS a13,
			unnest($14::bigint[]) AS a14, unnest($15::bigint[]) AS a15, unnest($16::bigint[]) AS a16, unnest($17::bigint[]) AS a17,
			unnest($18::bigint[]) AS a18, unnest($19::bigint[]) AS a19, unnest($20::bigint[]) AS a20, unnest($21::bytea[]) AS a21,
			unnest($22::bytea[]) AS a22, unnest($23::bigint[]) AS a23, unnest($24::bigint[]) AS a24, unnest($25::bigint[]) AS a25 LIMIT $26::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a21]) AND id = u.a22 AND updated_at = u.a23 AND attention = u.a24 AND expires_at = u.a25
		RETURNING 1)
		SELECT till_expect_rows(count(*), $26) FROM changed`,
	Arrays: true})

var extendPayment = db.Define(db.SQL{Name: "payments.extend",
	SQLite: `UPDATE payments SET expires_at = $1 WHERE client_id = $2 AND id = $3 AND final_event IS NULL`})

// Ref names a row of a client.
type Ref struct{ Client, ID till.ID }

// PaymentRow is a payment with what only the service needs to know of it.
type PaymentRow struct {
	till.Payment

	BodyHash    [32]byte // of the request, distinguishes a retry from a reused key
	BodyVersion int      // the list of members that BodyHash covers
	Attention   bool     // a person has to check it

	// The sequences of its events; zero while there is none.
	PendingEvent, ProcessingEvent, FinalEvent, LateEvent, ReversedEvent, UpdatedEvent int64

	readVersion paymentVersion // as the database has it
	ended       Callbacks      // of steps that have ended, to be added when the row is written
}

// paymentVersion says whether a row has changed. Every transition, every move of
// its window and every case about it changes one of these fields.
type paymentVersion struct {
	updatedAt, expiresAt till.Time
	attention            bool
}

func (p *PaymentRow) version() paymentVersion {
	return paymentVersion{p.UpdatedAt, p.ExpiresAt, p.Attention}
}

// ForUpdate returns a row to be changed, for one that is taken to be what the
// database has. If it is not, the change will be refused.
func (p *PaymentRow) ForUpdate() *PaymentRow {
	c := *p
	c.readVersion = c.version()
	return &c
}

// Lean returns the row without its document, for a cache. A document's size is the
// client's choice, and no decision uses it.
func (p *PaymentRow) Lean() *PaymentRow {
	if p.Document == nil {
		return p
	}
	c := *p
	c.Document = nil
	return &c
}

// SortedRefs returns the distinct refs in order.
func SortedRefs(refs []Ref) []Ref {
	out := slices.Clone(refs)
	slices.SortFunc(out, func(a, b Ref) int {
		return cmp.Or(bytes.Compare(a.Client[:], b.Client[:]), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return slices.Compact(out)
}

func RefArgs(refs []Ref) [][]any {
	args := make([][]any, len(refs))
	for i := range refs {
		args[i] = []any{refs[i].Client[:], refs[i].ID[:]}
	}
	return args
}

// InsertPayments writes new payments with their first steps and events, and
// reports which rows are new. A row whose idempotency key is taken is left out. It
// reads nothing first; the unique index decides. Only a new row takes a sequence
// of its client's event log, so the log has no gap.
func (tx *Tx) InsertPayments(ctx context.Context, heads map[till.ID]*Head, rows []*PaymentRow, steps []*Step) ([]bool, error) {
	next := make(map[till.ID]int64, len(heads))
	for id, h := range heads {
		next[id] = h.LastEvent
	}
	args := make([][]any, len(rows))
	for i, p := range rows {
		key, sent := splitKey(p.IdempotencyKey)
		next[p.ClientID]++
		p.PendingEvent = next[p.ClientID]
		args[i] = []any{p.ClientID[:], p.ID[:], key[:], sent, p.BodyHash[:], p.BodyVersion,
			p.Method, db.OrNull(p.Country), p.Amount.Minor, p.Amount.Currency, p.Fee, p.Phone, db.OrNull(p.Reference), p.Document,
			int64(p.CreatedAt), int64(p.UpdatedAt), int64(p.ExpiresAt), p.ApprovalWindow.Microseconds(), p.Connection, p.Fingerprint, p.PendingEvent}
	}
	inserted, err := tx.insertNew(ctx, args)
	if err != nil {
		return nil, err
	}
	var renumbered, first, due, events [][]any
	for i, p := range rows {
		if !inserted[i] {
			continue
		}
		// Rows that were not new have left holes in the numbers.
		if n := heads[p.ClientID].NextEvent(); n != p.PendingEvent {
			p.PendingEvent = n
			renumbered = append(renumbered, []any{n, p.ClientID[:], p.ID[:]})
		}
		if steps[i].LeaseVersion > 0 {
			first = append(first, steps[i].first())
		} else {
			// Due by the clock, not by the payment's own time: that runs ahead when the
			// clock was set back.
			due = append(due, []any{p.ClientID[:], p.ID[:], Lane(p.Connection, OpSubmit), int64(tx.Now())})
		}
		events = append(events, []any{p.ClientID[:], p.PendingEvent, p.ID[:], int64(p.UpdatedAt), int64(p.CreatedAt.Add(p.ApprovalWindow))})
	}
	if err := tx.db.DeferExactly(renumberPayments, renumbered); err != nil {
		return nil, err
	}
	if err := tx.db.Defer(insertStep, first); err != nil {
		return nil, err
	}
	if err := tx.db.Defer(insertDueSteps, due); err != nil {
		return nil, err
	}
	return inserted, tx.db.Defer(insertPendingEvents, events)
}

// insertNew writes payments and reports which are new. Where asking costs a
// round trip, it assumes that all are, as they almost always are. If one is not,
// the index refuses the transaction, and Update runs it once more with checkKeys.
func (tx *Tx) insertNew(ctx context.Context, args [][]any) ([]bool, error) {
	if tx.checkKeys {
		return tx.db.ExecReport(ctx, insertNewPayments, args)
	}
	tx.assumedNew = true
	inserted := make([]bool, len(args))
	for i := range inserted {
		inserted[i] = true
	}
	return inserted, tx.db.Defer(insertPayments, args)
}

// splitKey returns the key's value and, where it was not spelled in lower
// case, the spelling.
func splitKey(sent string) (till.ID, any) {
	id, _ := till.ParseID(sent) // checked before it came here
	if strings.ToLower(sent) == sent {
		return id, nil
	}
	return id, sent
}

func ScanPayment(r db.Row, now till.Time) (*PaymentRow, error) {
	p := &PaymentRow{}
	var key till.ID
	var sent, code, message string
	var hash []byte
	var retryable sql.NullBool
	var w stepView
	err := r.Scan(db.ID(&p.ClientID), db.ID(&p.ID), db.ID(&key), db.Text(&sent), &hash, &p.BodyVersion,
		&p.Status, db.Text(&p.PreviousStatus), &p.Method, db.Text(&p.Country), &p.Amount.Minor, &p.Amount.Currency, &p.Fee, &p.Phone,
		db.Text(&p.Reference), &p.Document,
		db.Text(&p.ProviderReference), db.Text(&p.FailureReason), db.Text(&code), db.Text(&message), &retryable,
		&p.CreatedAt, &p.UpdatedAt, &p.ExpiresAt, db.Duration(&p.ApprovalWindow), &p.Connection, &p.Fingerprint, db.Bool(&p.Attention),
		db.Int(&p.Resolution.LastCheckedAt), &p.Resolution.Attempts,
		&p.PendingEvent, db.Int(&p.ProcessingEvent), db.Int(&p.FinalEvent), db.Int(&p.LateEvent), db.Int(&p.ReversedEvent), db.Int(&p.UpdatedEvent),
		db.Int(&w.due), db.Int(&w.calls), db.Int(&w.checked), db.Int(&w.sends), db.Int(&w.acked),
		db.Int(&p.LateSuccessAt), db.Int(&p.ReversedAt))
	if err != nil {
		return nil, err
	}
	p.readVersion = p.version()
	copy(p.BodyHash[:], hash)
	if p.IdempotencyKey = sent; sent == "" {
		p.IdempotencyKey = key.String()
	}
	if p.FailureReason != "" {
		p.FailureDetail = &till.FailureDetail{ProviderCode: code, ProviderMessage: message, Retryable: retryable.Bool}
	}
	w.fill(&p.Resolution, p.Status.Final(), p.Attention, now > p.ExpiresAt)
	return p, nil
}

// Payment returns one payment of a client. It returns CodePaymentNotFound if
// there is none, or if it is another client's.
func (tx *Tx) Payment(ctx context.Context, ref Ref) (*PaymentRow, error) {
	rows, err := tx.Payments(ctx, []Ref{ref})
	if err != nil {
		return nil, err
	}
	if p := rows[ref]; p != nil {
		return p, nil
	}
	return nil, till.Errorf(till.CodePaymentNotFound, "there is no such payment")
}

// Payments returns those of the named payments that exist.
func (tx *Tx) Payments(ctx context.Context, refs []Ref) (map[Ref]*PaymentRow, error) {
	tx.Now() // the clock is read before the rows, which are scanned with it
	out := make(map[Ref]*PaymentRow, len(refs))
	return out, tx.db.SendAll(ctx, tx.readPayments(selectPayments, SortedRefs(refs), out))
}

// readPayments reads by selectPayments, or selectLeanPayments.
func (tx *Tx) readPayments(q *db.SQL, refs []Ref, out map[Ref]*PaymentRow) db.Statement {
	return db.Statement{SQL: q, Rows: RefArgs(refs),
		Scan: func(i int, r db.Row) error {
			p, err := ScanPayment(r, tx.Now())
			if err != nil {
				return err
			}
			out[refs[i]] = p
			return tx.weigh(len(p.Document))
		}}
}

// PaymentByKey returns the payment that an idempotency key made, or nil.
func (tx *Tx) PaymentByKey(ctx context.Context, client, key till.ID) (*PaymentRow, error) {
	tx.Now() // the clock is read before the rows, which are scanned with it
	var p *PaymentRow
	err := tx.db.Query(ctx, selectPaymentByKey, []any{client[:], key[:]},
		func(r db.Row) (err error) { p, err = ScanPayment(r, tx.Now()); return err })
	return p, err
}

// UpdatePayments writes the columns of payments that may change. The database
// rejects an illegal transition and a change of any other column. ErrConflict says
// that a row has changed since it was read.
func (tx *Tx) UpdatePayments(ctx context.Context, rows []*PaymentRow) error {
	args := make([][]any, len(rows))
	for i, p := range rows {
		code, message, retryable := failureArgs(p.FailureDetail)
		args[i] = []any{string(p.Status), string(p.PreviousStatus), db.OrNull(p.ProviderReference),
			db.OrNull(p.FailureReason), code, message, retryable,
			int64(p.UpdatedAt), p.Attention, db.OrNull(p.Resolution.LastCheckedAt), p.Resolution.Attempts,
			db.OrNull(p.ProcessingEvent), db.OrNull(p.FinalEvent), db.OrNull(p.LateEvent), db.OrNull(p.ReversedEvent), db.OrNull(p.UpdatedEvent),
			p.ended.Count, int64(p.ended.First), int64(p.ended.Last), int64(p.ended.Last), p.ClientID[:], p.ID[:],
			int64(p.readVersion.updatedAt), p.readVersion.attention, int64(p.readVersion.expiresAt)}
		p.readVersion, p.ended = p.version(), Callbacks{}
	}
	return tx.db.DeferExactly(updatePayments, args)
}

// failureArgs returns the columns of a failure's detail, null without one.
func failureArgs(d *till.FailureDetail) (code, message, retryable any) {
	if d == nil {
		return nil, nil, nil
	}
	return db.OrNull(d.ProviderCode), db.OrNull(d.ProviderMessage), d.Retryable
}

// ExtendPayment moves the end of a payment's approval window.
func (tx *Tx) ExtendPayment(ctx context.Context, ref Ref, until till.Time) error {
	_, err := tx.db.Exec(ctx, extendPayment,
		int64(until), ref.Client[:], ref.ID[:])
	return err
}
