package store

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"

	"till"
)

// Ref names a row of a client.
type Ref struct{ Client, ID till.ID }

// PaymentRow is a payment with what only the service needs to know of it.
type PaymentRow struct {
	till.Payment

	BodyHash    [32]byte // of the request, to tell a retry from a reused key
	BodyVersion int      // the list of members that BodyHash covers
	Attention   bool     // a person has to look at it

	// The sequences of its events; zero while there is none.
	PendingEvent, ProcessingEvent, FinalEvent, LateEvent, ReversedEvent, UpdatedEvent int64

	was paymentVersion // as the database has it
}

// paymentVersion tells a row from what it was before: whatever moves it, or
// the end of its window, or puts it on the attention list, changes one of these.
type paymentVersion struct {
	updatedAt, expiresAt till.Time
	attention            bool
}

func (p *PaymentRow) version() paymentVersion {
	return paymentVersion{p.UpdatedAt, p.ExpiresAt, p.Attention}
}

// Copy returns a row to be changed, for one that is taken to be what the
// database has. If it is not, the change will be refused.
func (p *PaymentRow) Copy() *PaymentRow {
	c := *p
	c.was = c.version()
	return &c
}

// Lean returns the row without its document, for whoever keeps it: a document
// is as long as the client likes, and nothing is decided by it.
func (p *PaymentRow) Lean() *PaymentRow {
	if p.Document == nil {
		return p
	}
	c := *p
	c.Document = nil
	return &c
}

// sortedRefs returns the distinct refs in order.
func sortedRefs(refs []Ref) []Ref {
	out := slices.Clone(refs)
	slices.SortFunc(out, func(a, b Ref) int {
		return cmp.Or(bytes.Compare(a.Client[:], b.Client[:]), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return slices.Compact(out)
}

func refArgs(refs []Ref) [][]any {
	args := make([][]any, len(refs))
	for i := range refs {
		args[i] = []any{refs[i].Client[:], refs[i].ID[:]}
	}
	return args
}

// InsertPayments writes new payments with their first steps and events, and
// reports for each whether it is new: a row whose idempotency key is taken is left out.
// It reads nothing first; the unique index decides. Only a row that is new
// takes a number of its client's event log, so the log has no gap.
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
			p.Method, orNull(p.Country), p.Amount.Minor, p.Amount.Currency, p.Fee, p.Phone, orNull(p.Reference), p.Document,
			int64(p.CreatedAt), int64(p.UpdatedAt), int64(p.ExpiresAt), int64(p.ApprovalWindow), p.Connection, p.Fingerprint, p.PendingEvent}
	}
	inserted, err := tx.insertNew(ctx, args)
	if err != nil {
		return nil, err
	}
	var renumbered, leased [][]any
	spans := make(map[till.ID]*[2]till.ID, len(heads))
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
			leased = append(leased, steps[i].first())
		}
		if spans[p.ClientID] == nil {
			spans[p.ClientID] = &[2]till.ID{p.ID}
		}
		spans[p.ClientID][1] = p.ID
	}
	if err := tx.setAll(ctx, `UPDATE payments SET pending_event = ? WHERE client_id = ? AND id = ?`, renumbered); err != nil {
		return nil, err
	}
	if err := tx.set(ctx, insertStep, leased); err != nil {
		return nil, err
	}
	if tx.s.e.remote() {
		return inserted, tx.sendFirsts(ctx, rows, steps, inserted)
	}
	return inserted, tx.insertFirsts(ctx, spans, len(leased) > 0)
}

const insertPayment = `INSERT INTO payments (client_id, id, idempotency_key, idempotency_key_sent, body_hash, body_version,
	status, method, country, amount, currency, fee, phone, reference, document,
	created_at, updated_at, expires_at, approval_window, connection, fingerprint, pending_event)
	VALUES (?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// insertNew writes payments and reports which are new. Where asking costs a
// round trip, it trusts that all are, as they almost always are: if one is not,
// the index refuses the transaction, and it runs again without trust.
func (tx *Tx) insertNew(ctx context.Context, args [][]any) ([]bool, error) {
	if !tx.s.trusts() {
		return tx.ses.touched(ctx, insertPayment+` ON CONFLICT (client_id, idempotency_key) DO NOTHING`, args)
	}
	tx.trusted = true
	inserted := make([]bool, len(args))
	for i := range inserted {
		inserted[i] = true
	}
	return inserted, tx.set(ctx, insertPayment, args)
}

// insertFirsts gives new payments their first steps, unless they have them,
// and events. Under the lock of its client's head nobody else adds to a span of
// ids, so one statement per client copies what all of its rows say already.
func (tx *Tx) insertFirsts(ctx context.Context, spans map[till.ID]*[2]till.ID, some bool) error {
	// Due by the clock, not by the payment's own time: that runs ahead when the
	// clock was set back.
	var args, due [][]any
	for client, s := range spans {
		args = append(args, []any{client.Bytes(), s[0][:], s[1][:]})
		due = append(due, []any{int64(tx.Now()), client.Bytes(), s[0][:], s[1][:]})
	}
	insert := `INSERT INTO steps (client_id, subject_id, kind, lane, due_at)
		SELECT client_id, id, 'payment', connection || ' submit', CAST(? AS BIGINT) FROM payments WHERE client_id = ? AND id BETWEEN ? AND ?`
	if some {
		insert += ` ON CONFLICT DO NOTHING`
	}
	if err := tx.later(ctx, insert, due); err != nil {
		return err
	}
	return tx.later(ctx, `INSERT INTO events (client_id, sequence, kind, subject_id, created_at, status, expires_at, resolution)
		SELECT client_id, pending_event, 'payment.pending', id, created_at, 'pending', created_at + approval_window, 'waiting'
		FROM payments WHERE client_id = ? AND id BETWEEN ? AND ?`, args)
}

// sendFirsts is insertFirsts without reading anything back, for all clients.
func (tx *Tx) sendFirsts(ctx context.Context, rows []*PaymentRow, steps []*Step, inserted []bool) error {
	var events, due [][]any
	for i, p := range rows {
		if !inserted[i] {
			continue
		}
		events = append(events, []any{p.ClientID[:], p.PendingEvent, p.ID[:], int64(p.CreatedAt), int64(p.CreatedAt + p.ApprovalWindow)})
		if steps[i].LeaseVersion == 0 {
			due = append(due, []any{p.ClientID[:], p.ID[:], Lane(p.Connection, OpSubmit), int64(tx.Now())})
		}
	}
	if err := tx.set(ctx, `INSERT INTO steps (client_id, subject_id, kind, lane, due_at) VALUES (?, ?, 'payment', ?, ?)`, due); err != nil {
		return err
	}
	return tx.set(ctx, `INSERT INTO events (client_id, sequence, kind, subject_id, created_at, status, expires_at, resolution)
		VALUES (?, ?, 'payment.pending', ?, ?, 'pending', ?, 'waiting')`, events)
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

// paymentColumns are read with the payment's step, if it has one, because
// part of what a client sees of a payment is how it is being worked on.
var paymentColumns = `p.client_id, p.id, p.idempotency_key, p.idempotency_key_sent, p.body_hash, p.body_version,
	p.status, p.previous_status, p.method, p.country, p.amount, p.currency, p.fee, p.phone, p.reference, p.document,
	p.provider_reference, p.failure_reason, p.failure_code, p.failure_message, p.failure_retryable,
	p.created_at, p.updated_at, p.expires_at, p.approval_window, p.connection, p.fingerprint, p.attention,
	p.checked_at, p.calls, p.pending_event, p.processing_event, p.final_event, p.late_event, p.reversed_event, p.updated_event,
	s.due_at, s.calls, s.checked_at, s.sends, s.acked, ` + toldAt("late_event") + `, ` + toldAt("reversed_event")

// toldAt is when the event was made that a column of p numbers. Few rows have
// one, and only those are looked up, by the key of the log, whatever the planner
// believes.
func toldAt(column string) string {
	return `CASE WHEN p.` + column + ` > 0 THEN (SELECT told.created_at FROM events told WHERE told.client_id = p.client_id AND told.sequence = p.` + column + `) END`
}

// leanColumns are paymentColumns without the document.
var leanColumns = strings.Replace(paymentColumns, "p.document", "NULL", 1)

const paymentFrom = ` FROM payments p LEFT JOIN steps s ON s.client_id = p.client_id AND s.subject_id = p.id `

func scanPayment(r row, now till.Time) (*PaymentRow, error) {
	p := &PaymentRow{}
	var key till.ID
	var sent, code, message string
	var hash []byte
	var retryable sql.NullBool
	var w working
	err := r.Scan(idDest(&p.ClientID), idDest(&p.ID), idDest(&key), textDest(&sent), &hash, &p.BodyVersion,
		&p.Status, textDest(&p.PreviousStatus), &p.Method, textDest(&p.Country), &p.Amount.Minor, &p.Amount.Currency, &p.Fee, &p.Phone,
		textDest(&p.Reference), &p.Document,
		textDest(&p.ProviderReference), textDest(&p.FailureReason), textDest(&code), textDest(&message), &retryable,
		&p.CreatedAt, &p.UpdatedAt, &p.ExpiresAt, &p.ApprovalWindow, &p.Connection, &p.Fingerprint, boolDest(&p.Attention),
		intDest(&p.Resolution.LastCheckedAt), &p.Resolution.Attempts,
		&p.PendingEvent, intDest(&p.ProcessingEvent), intDest(&p.FinalEvent), intDest(&p.LateEvent), intDest(&p.ReversedEvent), intDest(&p.UpdatedEvent),
		intDest(&w.due), intDest(&w.calls), intDest(&w.checked), intDest(&w.sends), intDest(&w.acked),
		intDest(&p.LateSuccessAt), intDest(&p.ReversedAt))
	if err != nil {
		return nil, err
	}
	p.was = p.version()
	copy(p.BodyHash[:], hash)
	if p.IdempotencyKey = sent; sent == "" {
		p.IdempotencyKey = key.String()
	}
	if p.FailureReason != "" {
		p.FailureDetail = &till.FailureDetail{ProviderCode: code, ProviderMessage: message, Retryable: retryable.Bool}
	}
	w.tell(&p.Resolution, p.Status.Final(), p.Attention, now > p.ExpiresAt)
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
	return out, tx.ses.queryEach(ctx, tx.readPayments(paymentColumns, sortedRefs(refs), out))
}

// readPayments reads paymentColumns, or leanColumns.
func (tx *Tx) readPayments(columns string, refs []Ref, out map[Ref]*PaymentRow) read {
	return read{query: `SELECT ` + columns + paymentFrom + `WHERE p.client_id = ? AND p.id = ?`, args: refArgs(refs),
		scan: func(i int, r row) error {
			p, err := scanPayment(r, tx.Now())
			if err != nil {
				return err
			}
			out[refs[i]] = p
			return tx.weigh(len(p.Document))
		}}
}

// PaymentByKey returns the payment that an idempotency key made, or nil.
func (tx *Tx) PaymentByKey(ctx context.Context, client, key till.ID) (*PaymentRow, error) {
	var p *PaymentRow
	err := tx.rows(ctx, `SELECT `+paymentColumns+paymentFrom+`WHERE p.client_id = ? AND p.idempotency_key = ?`, []any{client[:], key[:]},
		func(r row) (err error) { p, err = scanPayment(r, tx.Now()); return err })
	return p, err
}

// UpdatePayments writes what may change of payments. The database refuses a
// move that is not legal, and a change of anything else; a row that is not as it
// was when it was read is refused here.
func (tx *Tx) UpdatePayments(ctx context.Context, rows []*PaymentRow) error {
	args := make([][]any, len(rows))
	for i, p := range rows {
		code, message, retryable := failureArgs(p.FailureDetail)
		args[i] = []any{string(p.Status), string(p.PreviousStatus), orNull(p.ProviderReference),
			orNull(p.FailureReason), code, message, retryable,
			int64(p.UpdatedAt), p.Attention, orNull(p.Resolution.LastCheckedAt), p.Resolution.Attempts,
			orNull(p.ProcessingEvent), orNull(p.FinalEvent), orNull(p.LateEvent), orNull(p.ReversedEvent), orNull(p.UpdatedEvent), p.ClientID[:], p.ID[:],
			int64(p.was.updatedAt), p.was.attention, int64(p.was.expiresAt)}
		p.was = p.version()
	}
	return tx.setAll(ctx, `UPDATE payments SET status = ?, previous_status = ?, provider_reference = ?,
		failure_reason = ?, failure_code = ?, failure_message = ?, failure_retryable = ?,
		updated_at = ?, attention = ?, checked_at = ?, calls = ?,
		processing_event = ?, final_event = ?, late_event = ?, reversed_event = ?, updated_event = ? WHERE client_id = ? AND id = ? AND updated_at = ? AND attention = ? AND expires_at = ?`, args)
}

// failureArgs returns the columns of a failure's detail, null without one.
func failureArgs(d *till.FailureDetail) (code, message, retryable any) {
	if d == nil {
		return nil, nil, nil
	}
	return orNull(d.ProviderCode), orNull(d.ProviderMessage), d.Retryable
}

// ExtendPayment moves the end of a payment's approval window.
func (tx *Tx) ExtendPayment(ctx context.Context, ref Ref, until till.Time) error {
	_, err := tx.exec(ctx, `UPDATE payments SET expires_at = ? WHERE client_id = ? AND id = ? AND final_event IS NULL`,
		int64(until), ref.Client[:], ref.ID[:])
	return err
}
