package store

import (
	"cmp"
	"context"
	"database/sql"

	"till"
	"till/internal/db"
)

// payoutFields are read with the payout's step, as those of a payment are.
const payoutFields = `p.client_id, p.id, p.idempotency_key, p.idempotency_key_sent, p.body_hash, p.body_version,
	p.status, p.previous_status, p.method, p.country, p.amount, p.fee, p.currency, p.phone, p.reference, p.document,
	p.provider_reference, p.failure_reason, p.failure_code, p.failure_message, p.failure_retryable,
	p.created_at, p.updated_at, p.expires_at, p.send_window, p.connection, p.fingerprint, p.attention,
	p.checked_at, p.calls, p.pending_event, p.processing_event, p.final_event, p.late_event, p.payment_id, p.road, p.reason,
	s.due_at, s.calls, s.checked_at, s.sends, s.acked, `

const payoutFrom = ` FROM payouts p LEFT JOIN steps s ON s.client_id = p.client_id AND s.subject_id = p.id `

var insertPayouts = db.DefineByClient(1, db.SQL{Name: "payouts.insert",
	SQLite: `INSERT INTO payouts (client_id, id, idempotency_key, idempotency_key_sent, body_hash, body_version,
		status, method, country, amount, fee, currency, phone, reference, document,
		created_at, updated_at, expires_at, send_window, connection, fingerprint, pending_event, payment_id, road, reason)
		VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24)`,
	Postgres: `INSERT INTO payouts (client_id, id, idempotency_key, idempotency_key_sent, body_hash, body_version,
			status, method, country, amount, fee, currency, phone, reference, document,
			created_at, updated_at, expires_at, send_window, connection, fingerprint, pending_event, payment_id, road, reason)
		SELECT u.a1, u.a2, u.a3, u.a4, u.a5, u.a6, 'pending', u.a7, u.a8, u.a9, u.a10, u.a11, u.a12, u.a13, u.a14, u.a15, u.a16, u.a17, u.a18, u.a19, u.a20, u.a21, u.a22, u.a23, u.a24
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bytea[]) AS a3, unnest($4::text[]) AS a4,
			unnest($5::bytea[]) AS a5, unnest($6::bigint[]) AS a6, unnest($7::text[]) AS a7, unnest($8::text[]) AS a8,
			unnest($9::bigint[]) AS a9, unnest($10::bigint[]) AS a10, unnest($11::text[]) AS a11, unnest($12::text[]) AS a12,
			unnest($13::text[]) AS a13, unnest($14::bytea[]) AS a14, unnest($15::bigint[]) AS a15, unnest($16::bigint[]) AS a16,
			unnest($17::bigint[]) AS a17, unnest($18::bigint[]) AS a18, unnest($19::text[]) AS a19, unnest($20::text[]) AS a20,
			unnest($21::bigint[]) AS a21, unnest($22::bytea[]) AS a22, unnest($23::text[]) AS a23, unnest($24::text[]) AS a24 LIMIT $25::bigint) AS u`,
	Arrays: true})

var insertPayoutEvents = db.DefineByClient(1, db.SQL{Name: "payouts.insertEvents",
	SQLite: `INSERT INTO events (client_id, sequence, kind, subject_id, created_at, status, expires_at, resolution)
		VALUES ($1, $2, $3, $4, $5, 'pending', $6, 'waiting')`,
	Postgres: `INSERT INTO events (client_id, sequence, kind, subject_id, created_at, status, expires_at, resolution)
		SELECT u.a1, u.a2, u.a3, u.a4, u.a5, 'pending', u.a6, 'waiting'
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bigint[]) AS a2, unnest($3::text[]) AS a3, unnest($4::bytea[]) AS a4,
			unnest($5::bigint[]) AS a5, unnest($6::bigint[]) AS a6 LIMIT $7::bigint) AS u`,
	Arrays: true})

var selectPayouts = db.DefineByClient(1, db.SQL{Name: "payouts.select",
	SQLite: `SELECT ` + payoutFields + toldAt("late_event") + payoutFrom + `WHERE p.client_id = $1 AND p.id = $2`,
	Citus:  db.OfClient(`SELECT `+payoutFields+toldAt("late_event")+payoutFrom+`WHERE p.client_id = $1 AND p.id = $2`, "$1"),
	Postgres: `SELECT u.nth, ` + payoutFields + toldAtByKey("late_event") + `
		FROM payouts p LEFT JOIN steps s ON s.client_id = ANY(ARRAY[p.client_id]) AND s.subject_id = p.id,
		(SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u
		WHERE p.client_id = ANY(ARRAY[u.a1]) AND p.id = u.a2`,
	Arrays: true})

var selectPayoutsByKey = db.DefineByClient(1, db.SQL{Name: "payouts.selectByKey",
	SQLite: `SELECT ` + payoutFields + toldAt("late_event") + payoutFrom + `WHERE p.client_id = $1 AND p.idempotency_key = $2`,
	Citus:  db.OfClient(`SELECT `+payoutFields+toldAt("late_event")+payoutFrom+`WHERE p.client_id = $1 AND p.idempotency_key = $2`, "$1"),
	Postgres: `SELECT u.nth, ` + payoutFields + toldAtByKey("late_event") + `
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u,
		LATERAL (SELECT * FROM payouts WHERE client_id = u.a1 AND idempotency_key = u.a2 OFFSET 0) AS p
		LEFT JOIN steps s ON s.client_id = ANY(ARRAY[p.client_id]) AND s.subject_id = p.id`,
	Arrays: true})

var updatePayouts = db.DefineByClient(19, db.SQL{Name: "payouts.update",
	SQLite: `UPDATE payouts SET status = $1, previous_status = $2, provider_reference = $3,
		failure_reason = $4, failure_code = $5, failure_message = $6, failure_retryable = $7,
		updated_at = $8, attention = $9, checked_at = $10, calls = $11,
		processing_event = $12, final_event = $13, late_event = $14,
		callbacks = callbacks + $15, callback_at = CASE WHEN callback_at > 0 THEN callback_at ELSE $16 END,
		last_callback_at = CASE WHEN last_callback_at > $17 THEN last_callback_at ELSE $18 END
		WHERE client_id = $19 AND id = $20`,
	Postgres: `WITH changed AS (UPDATE payouts SET status = u.a1, previous_status = u.a2, provider_reference = u.a3,
			failure_reason = u.a4, failure_code = u.a5, failure_message = u.a6, failure_retryable = u.a7,
			updated_at = u.a8, attention = u.a9, checked_at = u.a10, calls = u.a11,
			processing_event = u.a12, final_event = u.a13, late_event = u.a14,
			callbacks = callbacks + u.a15, callback_at = CASE WHEN callback_at > 0 THEN callback_at ELSE u.a16 END,
			last_callback_at = CASE WHEN last_callback_at > u.a17 THEN last_callback_at ELSE u.a17 END
		FROM (SELECT unnest($1::text[]) AS a1, unnest($2::text[]) AS a2, unnest($3::text[]) AS a3, unnest($4::text[]) AS a4, unnest($5::text[]) AS a5,
			unnest($6::text[]) AS a6, unnest($7::bigint[]) AS a7, unnest($8::bigint[]) AS a8, unnest($9::bigint[]) AS a9,
			unnest($10::bigint[]) AS a10, unnest($11::bigint[]) AS a11, unnest($12::bigint[]) AS a12, unnest($13::bigint[]) AS a13,
			unnest($14::bigint[]) AS a14, unnest($15::bigint[]) AS a15, unnest($16::bigint[]) AS a16, unnest($17::bigint[]) AS a17,
			unnest($18::bigint[]) AS a18, unnest($19::bytea[]) AS a19, unnest($20::bytea[]) AS a20 LIMIT $21::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a19]) AND id = u.a20
		RETURNING 1)
		SELECT till_expect_rows(count(*), $21) FROM changed`,
	Arrays: true})

var extendPayout = db.Define(db.SQL{Name: "payouts.extend",
	SQLite: `UPDATE payouts SET expires_at = $1 WHERE client_id = $2 AND id = $3 AND final_event IS NULL`})

var selectOpenCasesOf = db.DefineByClient(1, db.SQL{Name: "payouts.selectOpenCasesOf",
	SQLite: `SELECT opened_at FROM cases WHERE client_id = $1 AND subject_id = $2 AND kind = $3 AND closed_at IS NULL`,
	Postgres: `SELECT u.nth, found.* FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::text[]) AS a3, unnest($4::bigint[]) AS nth LIMIT $5::bigint) AS u,
		LATERAL (SELECT opened_at FROM cases WHERE client_id = u.a1 AND subject_id = u.a2 AND kind = u.a3 AND closed_at IS NULL OFFSET 0) AS found`,
	Arrays: true})

// PayoutRow is a payout, or a refund, with what only the service needs to know of it.
type PayoutRow struct {
	till.Payout

	BodyHash    [32]byte // of the request, distinguishes a retry from a reused key
	BodyVersion int      // the list of members that BodyHash covers
	Attention   bool     // a person has to check it

	// The sequences of its events; zero while there is none.
	PendingEvent, ProcessingEvent, FinalEvent, LateEvent int64

	ended Callbacks // of steps that have ended, to be added when the row is written
}

// Subject returns what the payout has in common with a payment. If it was
// cancelled before any send began, nothing can come after.
func (p *PayoutRow) Subject() Subject {
	return Subject{
		Ref: Ref{p.ClientID, p.ID}, Noun: p.Noun(), PaymentID: p.PaymentID, Road: p.Road, Reason: p.Reason,
		IdempotencyKey: p.IdempotencyKey, BodyHash: p.BodyHash, BodyVersion: p.BodyVersion,
		Method: p.Method, Country: p.Country, Amount: p.Amount, Fee: p.Fee, Phone: p.Phone, Reference: p.Reference, Document: p.Document,
		Connection: p.Connection, Fingerprint: p.Fingerprint, CreatedAt: p.CreatedAt,
		Status: string(p.Status), Final: p.Status.Final(),
		Settled: p.Paid() || p.Status == till.PayoutCancelled && p.Resolution.Attempts == 0, Booked: p.Paid(),
		ExpiresAt: p.ExpiresAt, Window: p.SendWindow, UpdatedAt: &p.UpdatedAt, ProviderReference: &p.ProviderReference,
		FailureReason: &p.FailureReason, FailureDetail: &p.FailureDetail, Resolution: &p.Resolution, Attention: &p.Attention,
		ProcessingEvent: &p.ProcessingEvent, FinalEvent: &p.FinalEvent, LateEvent: &p.LateEvent, Ended: &p.ended,
	}
}

// Paid reports whether the payout's money was paid, in time or late.
func (p *PayoutRow) Paid() bool { return p.Status == till.PayoutSuccess || p.LateEvent != 0 }

// MoveTo changes the status, if it may.
func (p *PayoutRow) MoveTo(to string) error {
	if err := p.Status.CanBecome(till.PayoutStatus(to)); err != nil {
		return err
	}
	p.PreviousStatus, p.Status = p.Status, till.PayoutStatus(to)
	return nil
}

// AsCreated returns the row as it was created, whatever has happened since.
func (p *PayoutRow) AsCreated() *PayoutRow {
	c := *p
	c.Payout = *p.Payout.AsCreated()
	return &c
}

// InsertPayouts writes new payouts with their first steps and events. The
// caller has looked their keys up under the locks of their clients' heads; the
// database refuses one that is taken all the same.
func (tx *Tx) InsertPayouts(ctx context.Context, heads map[till.ID]*Head, rows []*PayoutRow, steps []*Step) error {
	args, events, first := make([][]any, len(rows)), make([][]any, len(rows)), make([][]any, len(rows))
	for i, p := range rows {
		key, sent := splitKey(p.IdempotencyKey)
		p.PendingEvent = heads[p.ClientID].NextEvent()
		args[i] = []any{p.ClientID[:], p.ID[:], key[:], sent, p.BodyHash[:], p.BodyVersion,
			p.Method, db.OrNull(p.Country), p.Amount.Minor, p.Fee, p.Amount.Currency, p.Phone, db.OrNull(p.Reference), p.Document,
			int64(p.CreatedAt), int64(p.UpdatedAt), int64(p.ExpiresAt), p.SendWindow.Microseconds(), p.Connection, p.Fingerprint, p.PendingEvent,
			db.BytesOrNull(paymentOf(p)), string(cmp.Or(p.Road, till.RoadTransfer)), db.OrNull(p.Reason)}
		events[i] = []any{p.ClientID[:], p.PendingEvent, string(p.Noun()) + ".pending", p.ID[:], int64(p.UpdatedAt), int64(p.CreatedAt.Add(p.SendWindow))}
		first[i] = steps[i].first()
	}
	if err := tx.db.Defer(insertPayouts, args); err != nil {
		return err
	}
	if err := tx.db.Defer(insertStep, first); err != nil {
		return err
	}
	return tx.db.Defer(insertPayoutEvents, events)
}

// paymentOf returns the id of the payment that a refund gives back, nil of a plain payout.
func paymentOf(p *PayoutRow) []byte {
	if p.IsRefund() {
		return p.PaymentID[:]
	}
	return nil
}

func scanPayout(r db.Row, now till.Time) (*PayoutRow, error) {
	p := &PayoutRow{}
	var key till.ID
	var sent, code, message string
	var hash []byte
	var retryable sql.NullBool
	var w stepView
	err := r.Scan(db.ID(&p.ClientID), db.ID(&p.ID), db.ID(&key), db.Text(&sent), &hash, &p.BodyVersion,
		&p.Status, db.Text(&p.PreviousStatus), &p.Method, db.Text(&p.Country), &p.Amount.Minor, &p.Fee, &p.Amount.Currency, &p.Phone,
		db.Text(&p.Reference), &p.Document,
		db.Text(&p.ProviderReference), db.Text(&p.FailureReason), db.Text(&code), db.Text(&message), &retryable,
		&p.CreatedAt, &p.UpdatedAt, &p.ExpiresAt, db.Duration(&p.SendWindow), &p.Connection, &p.Fingerprint, db.Bool(&p.Attention),
		db.Int(&p.Resolution.LastCheckedAt), &p.Resolution.Attempts,
		&p.PendingEvent, db.Int(&p.ProcessingEvent), db.Int(&p.FinalEvent), db.Int(&p.LateEvent), db.ID(&p.PaymentID), &p.Road, db.Text(&p.Reason),
		db.Int(&w.due), db.Int(&w.calls), db.Int(&w.checked), db.Int(&w.sends), db.Int(&w.acked), db.Int(&p.LateSuccessAt))
	if err != nil {
		return nil, err
	}
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

// Payout returns one payout of a client. It returns CodePayoutNotFound if
// there is none, or if it is another client's.
func (tx *Tx) Payout(ctx context.Context, ref Ref) (*PayoutRow, error) {
	rows, err := tx.Payouts(ctx, []Ref{ref})
	if err != nil {
		return nil, err
	}
	if p := rows[ref]; p != nil {
		return p, nil
	}
	return nil, till.Errorf(till.CodePayoutNotFound, "there is no such payout")
}

// Payouts returns those of the named payouts that exist.
func (tx *Tx) Payouts(ctx context.Context, refs []Ref) (map[Ref]*PayoutRow, error) {
	tx.Now() // the clock is read before the rows, which are scanned with it
	out := make(map[Ref]*PayoutRow, len(refs))
	return out, tx.db.SendAll(ctx, tx.readPayouts(SortedRefs(refs), out))
}

func (tx *Tx) readPayouts(refs []Ref, out map[Ref]*PayoutRow) db.Statement {
	return db.Statement{SQL: selectPayouts, Rows: RefArgs(refs),
		Scan: func(i int, r db.Row) error {
			p, err := scanPayout(r, tx.Now())
			if err != nil {
				return err
			}
			out[refs[i]] = p
			return tx.weigh(len(p.Document))
		}}
}

// PayoutByKey returns the payout that an idempotency key made, or nil.
func (tx *Tx) PayoutByKey(ctx context.Context, client, key till.ID) (*PayoutRow, error) {
	found, err := tx.PayoutsByKey(ctx, []Ref{{client, key}})
	return found[Ref{client, key}], err
}

// PayoutsByKey returns the payouts that idempotency keys have made, each
// under its client and key.
func (tx *Tx) PayoutsByKey(ctx context.Context, keys []Ref) (map[Ref]*PayoutRow, error) {
	tx.Now() // the clock is read before the rows, which are scanned with it
	keys = SortedRefs(keys)
	out := make(map[Ref]*PayoutRow)
	err := tx.db.QueryEach(ctx, selectPayoutsByKey, RefArgs(keys),
		func(i int, r db.Row) (err error) { out[keys[i]], err = scanPayout(r, tx.Now()); return err })
	return out, err
}

// UpdatePayouts writes what may change of payouts. The database refuses a
// move that is not legal, and a change of anything else.
func (tx *Tx) UpdatePayouts(ctx context.Context, rows []*PayoutRow) error {
	args := make([][]any, len(rows))
	for i, p := range rows {
		code, message, retryable := failureArgs(p.FailureDetail)
		args[i] = []any{string(p.Status), string(p.PreviousStatus), db.OrNull(p.ProviderReference),
			db.OrNull(p.FailureReason), code, message, retryable,
			int64(p.UpdatedAt), p.Attention, db.OrNull(p.Resolution.LastCheckedAt), p.Resolution.Attempts,
			db.OrNull(p.ProcessingEvent), db.OrNull(p.FinalEvent), db.OrNull(p.LateEvent),
			p.ended.Count, int64(p.ended.First), int64(p.ended.Last), int64(p.ended.Last), p.ClientID[:], p.ID[:]}
		p.ended = Callbacks{}
	}
	return tx.db.DeferExactly(updatePayouts, args)
}

// ExtendPayout moves the end of the time in which a payout may be sent.
func (tx *Tx) ExtendPayout(ctx context.Context, ref Ref, until till.Time) error {
	_, err := tx.db.Exec(ctx, extendPayout,
		int64(until), ref.Client[:], ref.ID[:])
	return err
}

// Mismatched returns which of the payouts have an open case about money that
// moved, but not as it was requested.
func (tx *Tx) Mismatched(ctx context.Context, refs []Ref, kind string) (map[Ref]bool, error) {
	args := make([][]any, len(refs))
	for i := range refs {
		args[i] = []any{refs[i].Client[:], refs[i].ID[:], kind}
	}
	out := make(map[Ref]bool)
	err := tx.db.QueryEach(ctx, selectOpenCasesOf, args,
		func(i int, r db.Row) error {
			var at till.Time
			out[refs[i]] = true
			return r.Scan(&at)
		})
	return out, err
}

// stepView is what a row's step says about the work on it.
type stepView struct {
	due, checked        till.Time
	calls, sends, acked int
}

// fill completes what clients see of the work.
func (w *stepView) fill(r *till.Resolution, final, attention, over bool) {
	r.NextCheckAt = w.due
	r.LastCheckedAt = max(r.LastCheckedAt, w.checked)
	r.Attempts = max(r.Attempts, w.calls)
	unclear := w.sends > 0 && w.acked == 0 && w.calls > 0
	r.State = till.NewResolutionState(final, attention, unclear || over)
}
