package collect

import (
	"bytes"
	"context"

	"till"
	"till/engine"
	"till/internal/jsonx"
	"till/store"
)

// Resolve ends a payment on a person's evidence, through the same Apply as
// every other answer. It returns CodePaymentNotFound, or CodeValidationFailed
// if the payment has ended in a way that the evidence cannot change. Late
// money that was credited already is not credited again, nor is what was taken
// back taken twice: its case is closed.
func (c *Collector) Resolve(ctx context.Context, ref store.Ref, r engine.Resolution) error {
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
	a := c.engine.AnswerOf(p.Subject(), r)
	c.Apply(ctx, []*engine.Answer{a})
	return a.Refused
}

// ResolveAll ends payments on evidence, like Resolve, all in one commit where
// that works; see engine.ResolveAll.
func (c *Collector) ResolveAll(ctx context.Context, settlements []*engine.Settlement) error {
	return engine.ResolveAll(ctx, c.engine, &engine.PaymentTable, settlements, c.Apply)
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
	charge, tax := checkCharge(&c, d.Charge), checkTax(&c, d.Tax)
	return append(c.Fields, till.CheckCharge(p.Amount.Minor, charge, tax)...)
}
