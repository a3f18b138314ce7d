package engine

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"till"
	"till/provider"
	"till/store"
	"till/store/flows"
)

// addressPoll is how soon an operator that holds a request is asked again for the address
// that its customer goes to, and addressTime for how long: the customer waits for it.
const (
	addressPoll = 2 * time.Second
	addressTime = time.Minute
)

// codeLabel names the key that one-time codes are sealed with.
const codeLabel = "authorization code"

// flowOf returns how the customer of a subject approves.
func flowOf(p store.Subject) till.Flow {
	if p.Noun != till.NounPayment {
		return till.FlowPush
	}
	return till.FlowOf(p.Method, p.Country, p.Amount.Currency)
}

// SealCode returns a one-time code as a payment's row has it. Its key derives from the root:
// a code lives for minutes, so there is nothing to seal anew when the secret is rotated.
func (w *Worker) SealCode(code provider.OneTimeCode, payment store.Ref) ([]byte, error) {
	if code == "" {
		return nil, nil
	}
	if w.codes == nil {
		return nil, errors.New("there is no secret to seal a one-time code with")
	}
	return w.codes.Seal([]byte(code), payment.ID[:]), nil
}

// CodeMAC is Keys.CodeMAC.
func (w *Worker) CodeMAC(client till.ID, code string) string { return w.keys.CodeMAC(client, code) }

// CodeMAC returns what stands for a one-time code in the hash of a body: a plain hash of a code of
// six digits could be tried out.
func (k Keys) CodeMAC(client till.ID, code string) string {
	return hex.EncodeToString(k.derive(codeLabel, client[:], []byte(code)))
}

// errNoCode says that a payment cannot be sent, because its one-time code is gone.
var errNoCode = fmt.Errorf("%w: the customer's code is not there any more", provider.ErrNotSent)

// loadFlows adds what the payments among instructions have that are not approved by a prompt.
func (p *Processor[R]) loadFlows(ctx context.Context, tx *store.Tx, jobs map[store.Ref]*Instruction) error {
	var refs []store.Ref
	for ref, j := range jobs {
		if q := &j.Request; !j.Final && j.Noun == till.NounPayment && till.FlowOf(q.Method, q.Country, q.Amount.Currency) == till.FlowCode {
			refs = append(refs, ref)
		}
	}
	found, err := flows.Of(ctx, tx, refs)
	for ref, f := range found {
		if f.Code == nil || p.codes == nil {
			continue
		}
		code, err := p.codes.Open(f.Code, ref.ID[:])
		if err != nil {
			p.c.Log.Error("one-time code not opened", p.kindName(), ref.ID, "error", err)
			continue // it is not sent without it
		}
		jobs[ref].Request.Code = provider.OneTimeCode(code)
	}
	return err
}

// withoutCode returns an instruction to keep in memory. A check does not need the code.
func (j *Instruction) withoutCode() *Instruction {
	if j.Request.Code == "" {
		return j
	}
	c := *j
	c.Request.Code = ""
	return &c
}

// readFlows reads what the rows of answers have that are not approved by a prompt. Other rows
// cost nothing.
func (b *Recording[R]) readFlows(ctx context.Context) (err error) {
	var refs []store.Ref
	for ref, row := range b.Rows {
		if flowOf(row.Subject()) != till.FlowPush {
			refs = append(refs, ref)
		}
	}
	b.flows, err = flows.Of(ctx, b.Tx, store.SortedRefs(refs))
	return err
}

// noteFlow keeps the address that an answer brings, and erases the code once it has done its
// work. The first address that is recorded is the one that is shown: a customer may have
// gone there. A later one is dropped.
func (b *Recording[R]) noteFlow(row R, a *Answer) {
	p, f := row.Subject(), b.flows[a.Ref]
	if f == nil {
		return
	}
	was := *f
	if f.Code != nil && (p.Final || a.Err == nil && a.Result.Outcome.ProvesReceived()) {
		f.Code = nil
	}
	switch r := &a.Result; {
	case p.Final:
		f.NextURL, f.NextUntil = "", 0
	case a.Err == nil && a.Action.calls() && r.Outcome.ProvesReceived() && r.NextURL != "" && f.Event == 0 && flowOf(p) == till.FlowRedirect:
		f.NextURL, f.NextUntil = r.NextURL, r.NextUntil
		b.tellAddress(row, f)
	}
	if f.Event != was.Event || f.NextURL != was.NextURL || (f.Code == nil) != (was.Code == nil) {
		b.flowsChanged[a.Ref] = f
	}
}

// tellAddress writes the event that the customer has to go somewhere.
func (b *Recording[R]) tellAddress(row R, f *flows.Row) {
	p := row.Subject()
	head := b.Heads[p.Ref.Client]
	*p.UpdatedAt = head.NextTime()
	f.Event = head.NextEvent()
	b.addMoveEvent(row, "action_required", f.Event)
	next := till.NextAction{URL: f.NextURL, ExpiresAt: nextEnd(f.NextUntil, p.ExpiresAt)}
	b.events[len(b.events)-1].Document = string(next.AppendJSON(nil))
}

// nextEnd returns when an address stops being shown: with the customer's time, or before.
func nextEnd(until, expires till.Time) till.Time {
	if until.IsZero() {
		return expires
	}
	return min(until, expires)
}

// awaitsAddress reports whether the operator holds a request whose customer waits for an
// address.
func (b *Recording[R]) awaitsAddress(row R, s *store.Step, now till.Time) bool {
	p := row.Subject()
	f := b.flows[p.Ref]
	return f != nil && f.Event == 0 && flowOf(p) == till.FlowRedirect && s.Acked && now < p.ExpiresAt && now < s.SendStartedAt.Add(addressTime)
}

// writeFlows writes what this batch has changed.
func (b *Recording[R]) writeFlows(ctx context.Context) error {
	rows := make([]*flows.Row, 0, len(b.flowsChanged))
	for _, f := range b.flowsChanged {
		rows = append(rows, f)
	}
	return flows.Save(ctx, b.Tx, rows)
}

// NextActions sets what the customers of open payments have to do, where the operator has
// said it and the customers' time is not over.
func NextActions(ctx context.Context, tx *store.Tx, payments []*store.PaymentRow) error {
	var refs []store.Ref
	for _, p := range payments {
		if !p.Status.Final() && tx.Now() < p.ExpiresAt && flowOf(p.Subject()) == till.FlowRedirect {
			refs = append(refs, store.Ref{Client: p.ClientID, ID: p.ID})
		}
	}
	found, err := flows.Of(ctx, tx, refs)
	if err != nil || len(found) == 0 {
		return err
	}
	for _, p := range payments {
		f := found[store.Ref{Client: p.ClientID, ID: p.ID}]
		if f == nil || f.NextURL == "" {
			continue
		}
		if end := nextEnd(f.NextUntil, p.ExpiresAt); tx.Now() < end {
			p.NextAction = &till.NextAction{URL: f.NextURL, ExpiresAt: end}
		}
	}
	return nil
}

// InsertFlows writes what new payments have that are not approved by a prompt. The calls are
// those that made their rows.
func (p *Processor[R]) InsertFlows(ctx context.Context, tx *store.Tx, calls []*CreateCall[R]) error {
	var rows []*flows.Row
	for _, call := range calls {
		if call.Flow == till.FlowPush || call.Flow == "" {
			continue
		}
		f := &flows.Row{Ref: call.Row.Subject().Ref}
		var err error
		if f.Code, err = p.SealCode(call.Code, f.Ref); err != nil {
			return errors.Join(errors.New("seal a one-time code"), err)
		}
		rows = append(rows, f)
	}
	if len(rows) == 0 {
		return nil
	}
	return flows.Insert(ctx, tx, rows)
}
