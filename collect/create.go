package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"till"
	"till/engine"
	"till/internal/request"
	"till/provider"
	"till/store"
	"till/store/flows"
)

// Collector accepts payments and records what becomes of them.
type Collector struct {
	*engine.Processor[*store.PaymentRow]
	c engine.Config
}

// New returns a Collector. Close it when nothing calls it any more.
func New(c engine.Config) *Collector {
	col := &Collector{c: c}
	col.Processor = engine.New(c, &engine.PaymentTable, newRules, col.insert)
	return col
}

// ReferenceOf returns the reference under which a payment is submitted.
func (c *Collector) ReferenceOf(p *till.Payment) till.ID {
	return c.Reference(p.ClientID, p.IdempotencyKey)
}

// Created is the result of Create: the payment as it was created, which a replay also gets.
type Created struct {
	Payment  *till.Payment
	Replayed bool
}

// Create records that a client wants a payment, in one commit. It returns
// CodeValidationFailed with all mistakes of the body, a missing route included, and
// CodeKeyReused if the key belongs to another body. It returns CodeMethodUnavailable if the
// method's operators do not answer now, and CodeServiceUnavailable if the database is
// unavailable or the queue is full.
func (c *Collector) Create(ctx context.Context, who engine.Client, r *Request) (Created, error) {
	var v checker
	hash := r.hasher(func(code string) string { return c.CodeMAC(who.ID, code) })
	call := &createCall{Client: who, Parsed: r.check(&v), Party: r.party(), Hash: hash,
		CheckFlow: r.checkFlow(who.Mode != till.Test, c.c.Hosts), Code: provider.OneTimeCode(request.TextOf(r.AuthorizationCode))}
	name, row, replayed, err := c.Admit(ctx, call, &v)
	if name == "" {
		return createdFrom(row, replayed, err)
	}
	sum, ok := hash(r.version())
	if !ok {
		return Created{}, fmt.Errorf("hash the body of a create call")
	}
	p := c.c.Connections[name]
	amount := till.Money{Minor: call.Amount, Currency: call.Currency}
	call.Row = &store.PaymentRow{
		Payment: till.Payment{
			ClientID: who.ID, IdempotencyKey: call.SentKey, Status: till.Pending,
			Method: call.Method, Country: call.Country, Amount: amount, Fee: till.FeeFor(who.Fees, till.PaymentFee, call.Method, amount),
			Phone: call.Phone, Reference: request.TextOf(r.Reference), Document: r.document(),
			ApprovalWindow: p.Traits().ApprovalWindow,
			Connection:     name, Fingerprint: p.Fingerprint(),
			Resolution: till.Resolution{State: till.Waiting},
		},
		BodyHash: sum, BodyVersion: r.version(),
	}
	if who.Actor != "" { // a person's act has a row in the audit log; that of a key is the payment itself
		call.Audit = &store.AuditRow{Actor: who.Actor, Cause: store.CauseOf(ctx)}
	}
	if p.Traits().ClientReference {
		call.Permit = c.SendPermit(name)
	}
	if r.Ask != nil {
		call.Body = r.Ask
	}
	return createdFrom(c.Accept(ctx, call))
}

// createdFrom returns what a client sees of a row.
func createdFrom(row *store.PaymentRow, replayed bool, err error) (Created, error) {
	if err != nil {
		return Created{}, err
	}
	return Created{Payment: &row.Payment, Replayed: replayed}, nil
}

type createCall = engine.CreateCall[*store.PaymentRow]

// insert is the one commit of a batch of creates. It reads nothing first, but for asks of
// checkouts: the index of idempotency keys decides what is new.
func (c *Collector) insert(ctx context.Context, tx *store.Tx, heads map[till.ID]*store.Head, calls []*createCall) error {
	calls, err := admitAsks(ctx, tx, calls)
	if err == nil {
		calls, err = admitFlows(ctx, tx, calls)
	}
	if err != nil || len(calls) == 0 {
		return err
	}
	rows, steps := make([]*store.PaymentRow, 0, len(calls)), make([]*store.Step, 0, len(calls))
	for _, call := range calls {
		stamp(call, heads[call.Row.ClientID].NextTime(), tx.Now())
		rows, steps = append(rows, call.Row), append(steps, &call.Step)
	}
	inserted, err := tx.InsertPayments(ctx, heads, rows, steps)
	if err != nil {
		return err
	}
	return c.finishCreates(ctx, tx, heads, calls, inserted)
}

// admitAsks returns the calls but for those of asks that may not be made any more.
func admitAsks(ctx context.Context, tx *store.Tx, calls []*createCall) ([]*createCall, error) {
	var out []*createCall
	for i, call := range calls {
		ask, is := call.Body.(*Ask)
		if !is {
			if out != nil {
				out = append(out, call)
			}
			continue
		}
		err := ask.Admit(ctx, tx)
		var refusal *till.Error
		switch {
		case errors.As(err, &refusal):
			if call.Reject(err); out == nil {
				out = append(make([]*createCall, 0, len(calls)), calls[:i]...)
			}
		case err != nil:
			return nil, err
		case out != nil:
			out = append(out, call)
		}
	}
	if out == nil {
		return calls, nil
	}
	return out, nil
}

// admitFlows returns the calls but for those that an older release, which may run beside this
// one, would send without what they need.
func admitFlows(ctx context.Context, tx *store.Tx, calls []*createCall) ([]*createCall, error) {
	push := func(call *createCall) bool { return call.Flow == till.FlowPush || call.Flow == "" }
	if !slices.ContainsFunc(calls, func(call *createCall) bool { return !push(call) }) {
		return calls, nil
	}
	may, err := flows.MayWrite(ctx, tx)
	if err != nil || may {
		return calls, err
	}
	var out []*createCall
	for _, call := range calls {
		if push(call) {
			out = append(out, call)
			continue
		}
		call.Reject(&till.Error{Code: till.CodeServiceUnavailable, Told: true,
			Detail: "Payments by this method are not taken yet: the level of this service has not been raised since its upgrade. Try again later with the same key."})
	}
	return out, nil
}

// stamp sets a new payment's time, its id and its first step. What is due, how long a lease
// lasts and when the window ends depends on the clock alone: a client's own time runs ahead
// after the clock was set back.
func stamp(call *createCall, at, now till.Time) {
	p := call.Row
	p.ID = till.NewID(at)
	p.CreatedAt, p.UpdatedAt, p.ExpiresAt = at, at, engine.WindowFrom(at, now).Add(p.ApprovalWindow)
	call.Step = store.Step{ClientID: p.ClientID, SubjectID: p.ID, Kind: till.SubjectPayment, Lane: store.Lane(p.Connection, store.OpSubmit), DueAt: now}
	if call.Permit != nil {
		call.Permit.Lease(&call.Step, now)
		call.Step.Lane = store.Lane(p.Connection, store.OpCheck)
	}
	call.RecordTry()
}

// finishCreates writes what follows from the new rows, and reads back the existing ones.
func (c *Collector) finishCreates(ctx context.Context, tx *store.Tx, heads map[till.ID]*store.Head, calls []*createCall, inserted []bool) error {
	var counts store.CounterDelta
	var sends []*store.Attempt
	var audit []*store.AuditRow
	var made []*createCall
	for i, call := range calls {
		p := call.Row
		if !inserted[i] {
			found, err := tx.PaymentByKey(ctx, p.ClientID, call.Key)
			if err != nil {
				return err
			}
			call.AdoptExisting(found, engine.PaymentTable.AsCreated)
			continue
		}
		made = append(made, call)
		counts.AddPayment(&p.Payment, till.Pending, 1)
		counts.AddStored(p.ClientID, p.CreatedAt, call.Stored)
		if call.Audit != nil {
			audit = append(audit, auditOf(call, heads[p.ClientID].NextAudit()))
		}
		if call.Permit != nil {
			sends = append(sends, call.Permit.Attempt(&call.Step, c.ReferenceOf(&p.Payment)))
		}
	}
	if err := c.InsertFlows(ctx, tx, made); err != nil {
		return err
	}
	if err := tx.InsertSends(ctx, sends); err != nil {
		return err
	}
	if err := tx.AddCounts(ctx, &counts); err != nil {
		return err
	}
	if len(audit) > 0 {
		if err := tx.InsertAudit(ctx, audit); err != nil {
			return err
		}
	}
	return tx.SaveHeads(ctx, heads)
}

// auditOf returns the audit row of a payment that a person made.
func auditOf(call *createCall, sequence int64) *store.AuditRow {
	p, a := call.Row, *call.Audit // a copy: the call may be written again
	a.ClientID, a.Sequence, a.At, a.SubjectID = p.ClientID, sequence, p.CreatedAt, p.ID
	a.Action, a.Detail = "payment.create", p.Amount.Value()+" "+p.Amount.Currency+" asked from "+till.MaskPhone(p.Phone)+" by "+p.Method
	return &a
}
