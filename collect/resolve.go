package collect

import (
	"bytes"
	"context"
	"encoding/hex"

	"till"
	"till/engine"
	"till/internal/jsonx"
	"till/provider"
	"till/store"
)

// Resolution is the operator's word brought by a person.
type Resolution struct {
	Success  bool
	Receipt  string // the operator's, where the evidence shows one
	By       string // who says so
	Evidence string // what it rests on, in words for the audit log
	Digest   []byte // SHA-256 of it
}

// Resolve ends a payment on a person's evidence, through the same Apply as
// every other answer. It returns CodePaymentNotFound, or CodeValidationFailed
// if the payment has ended in a way that the evidence cannot change. Late
// money that was credited already is not credited again: its case is closed.
func (c *Collector) Resolve(ctx context.Context, ref store.Ref, r Resolution) error {
	now := c.c.Store.Now()
	var p *store.PaymentRow
	err := c.c.Store.View(ctx, func(tx *store.Tx) (err error) {
		p, err = tx.Payment(ctx, ref)
		return err
	})
	if err != nil {
		return err
	}
	if r.Success && p.Status == till.Success {
		return till.Errorf(till.CodeValidationFailed, "the payment's money has been credited already")
	}
	a := &engine.Answer{
		Ref: ref, Action: engine.Resolve, Reference: c.keys.reference(p.ClientID, p.IdempotencyKey),
		Started: now, Ended: now, By: r.By, Evidence: r.Evidence, Digest: r.Digest,
		Result: provider.Result{Outcome: provider.Failed, Reason: till.Unspecified},
	}
	if r.Success {
		a.Result = provider.Result{Outcome: provider.Success, Receipt: r.Receipt}
	}
	c.Apply(ctx, []*engine.Answer{a})
	return a.Refused
}

// resolved records a person's act and takes the payment off the list.
func (b *change) resolved(p *store.PaymentRow, a *engine.Answer) {
	at := b.heads[p.ClientID].Tick()
	detail, reason := "resolved by "+a.By, "the payment was resolved as "+string(a.Result.Outcome)
	if a.Digest != nil {
		detail += ", evidence sha256:" + hex.EncodeToString(a.Digest)
	}
	b.attempts = append(b.attempts, &store.Attempt{
		ClientID: p.ClientID, SubjectID: p.ID, Kind: store.AttemptResolve, Connection: p.Connection, Reference: a.Reference,
		Outcome: string(a.Result.Outcome), Detail: detail, StartedAt: a.Started, EndedAt: a.Ended,
	})
	b.record(p.ClientID, p.ID, at, a.By, "resolve", "as "+string(a.Result.Outcome)+"; "+a.Evidence)
	b.closed = append(b.closed, store.Closing{Ref: store.Ref{Client: p.ClientID, ID: p.ID}, By: a.By, At: at, Reason: reason, Evidence: a.Digest})
}

// stored is what CheckStored reads of a payment's document.
type stored struct {
	Charge *ChargeRequest `json:"charge"`
	Tax    *TaxRequest    `json:"tax"`
}

// CheckStored answers with what is wrong in a stored payment's charge and
// tax: nothing, if the rules were kept when it was written (I15).
func CheckStored(p *till.Payment) []till.FieldError {
	var d stored
	if err := jsonx.Decode(bytes.Join([][]byte{[]byte("{"), p.Document, []byte("}")}, nil), &d); err != nil {
		return []till.FieldError{{Pointer: "", Code: till.CodeMalformedBody, Detail: err.Error()}}
	}
	var c checker
	o := &order{amount: p.Amount.Minor}
	o.checkCharge(&c, d.Charge)
	o.checkTax(&c, d.Tax)
	return append(c.fields, till.CheckCharge(o.amount, o.charge, o.tax)...)
}

// description returns the client's description from a payment's document.
func description(document []byte) string {
	if bytes.HasPrefix(document, []byte(`"description":null`)) {
		return ""
	}
	var d struct {
		Description *string `json:"description"`
	}
	if err := jsonx.Decode(bytes.Join([][]byte{[]byte("{"), document, []byte("}")}, nil), &d); err != nil {
		return ""
	}
	return deref(d.Description)
}
