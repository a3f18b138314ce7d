package books

import (
	"context"

	"till"
	"till/ledger"
	"till/store"
	"till/store/proof"
)

// verifyTaken proves one half of what follows a credit: a payment with a fee
// that was credited has had it taken, and one that was taken back has a
// reversal. verifyFacts proves the other.
func (v *verifier) verifyTaken(p *proof.VerifyPayment) {
	credited := p.Status == till.Success || p.LateEvent != 0
	v.check(p.Fee >= 0 && p.Fee <= p.Amount.Minor, "I2", p.ID, "its fee is %d of %d", p.Fee, p.Amount.Minor)
	v.check(p.FeeTaken == (credited && p.Fee > 0), "I2", p.ID, "its fee is %d, it was credited: %t, and the fee was taken: %t", p.Fee, credited, p.FeeTaken)
	v.check(p.ReversedEvent == 0 || credited, "I2", p.ID, "its money was taken back and had never been credited")
	taken := !p.TakenBack.IsZero()
	v.check(taken == (p.ReversedEvent != 0), "I2", p.ID, "it was told to be taken back, and nothing was")
	v.check(!taken || p.TakenBack.Time() == p.Reversed.CreatedAt, "I2", p.ID, "its money was taken back at another time than it says")
}

// verifyFacts proves that a fee and a reversal are the payment's own, once and
// in full.
func (v *verifier) verifyFacts(ctx context.Context) error {
	var last proof.VerifyFact
	for {
		var slice []proof.VerifyFact
		err := v.view(ctx, func(tx *store.Tx) (err error) {
			slice, err = proof.VerifyFacts(ctx, tx, v.client, last, v.o.Slice)
			return err
		})
		if err != nil || len(slice) == 0 {
			return err
		}
		for _, f := range slice {
			last = f
			v.verifyFact(&f)
		}
	}
}

func (v *verifier) verifyFact(f *proof.VerifyFact) {
	if f.Payout {
		return
	}
	id := f.Ref.ID
	v.check(f.Known, "I2", id, "a %s is recorded of a payment that is not there", f.Fact)
	v.check(f.Lines > 0 && f.Subject == id && f.Currency == f.Amount.Currency, "I2", id, "the entry %s of its %s is missing or another's", f.EntryID, f.Fact)
	v.check(f.Credited, "I2", id, "a %s is recorded, and nothing was ever credited", f.Fact)
	switch f.Fact {
	case store.FactFee:
		v.check(f.Kind == string(ledger.Fee) && f.Fees == f.Fee && f.Fee > 0, "I2", id, "its fee is %d, and %d was taken as a %s", f.Fee, f.Fees, f.Kind)
	case store.FactReversal:
		v.check(f.Kind == string(ledger.CollectionReversal) && f.Operator == f.Amount.Minor && f.ReversedEvent != 0, "I2", id,
			"%d of its %d was given back to the operator as a %s, with event %d", f.Operator, f.Amount.Minor, f.Kind, f.ReversedEvent)
	}
}

// verifyAdjustments proves that every correction of a person moved what it
// says, the way it says. verifyEntries counts that there are no others.
func (v *verifier) verifyAdjustments(ctx context.Context) error {
	var last till.ID
	for {
		var slice []*proof.VerifyAdjustment
		err := v.view(ctx, func(tx *store.Tx) (err error) {
			slice, err = proof.VerifyAdjustments(ctx, tx, v.client, last, v.o.Slice)
			return err
		})
		if err != nil || len(slice) == 0 {
			return err
		}
		for _, a := range slice {
			last = a.ID
			v.check(a.Lines == 1 && a.Line && a.PostedAt == a.CreatedAt, "I1", a.ID, "the adjustment has no entry of its own")
			v.check(a.Posted.Minor == -a.Amount.Minor && a.Posted.Currency == a.Amount.Currency, "I1", a.ID,
				"the adjustment says %v, and its entry posts %v on the other side", a.Amount, a.Posted)
			v.check(a.Reason != "" && a.Actor != "", "I14", a.ID, "an adjustment has no reason or no name")
		}
	}
}

// moneyEnd is what a client's entries sum up to, read with the last of them.
type moneyEnd struct {
	wallets     []*ledger.Wallet
	adjustments int64
	facts       int64
}

func (v *verifier) readEnd(ctx context.Context, tx *store.Tx) (*moneyEnd, error) {
	wallets, err := tx.Wallets(ctx, v.client)
	if err != nil {
		return nil, err
	}
	end := &moneyEnd{wallets: wallets}
	if end.adjustments, err = proof.CountAdjustments(ctx, tx, v.client); err != nil {
		return nil, err
	}
	end.facts, err = proof.CountFacts(ctx, tx, v.client)
	return end, err
}

// onceOnly reports whether an entry of this kind has a fact that keeps it from
// being made twice. Each fact was found to name an entry of its own; if there are
// as many entries, none was made without one.
func onceOnly(kind ledger.EntryKind) bool {
	switch kind {
	case ledger.Fee, ledger.CollectionReversal, ledger.Payout, ledger.LatePayout, ledger.Refund, ledger.LateRefund:
		return true
	}
	return false
}

// verifyOwed compares debts, corrections and facts with the entries that made
// them.
func (v *verifier) verifyOwed(end *moneyEnd, owed map[string]int64, adjusting, once int64) {
	for _, w := range end.wallets {
		v.check(w.Owed == owed[w.Currency], "I3", w.ID, "%d is owed and the entries sum to %d", w.Owed, owed[w.Currency])
		v.check(w.Owed == 0 || w.Available() == 0, "I3", w.ID, "%d is available and %d is owed: what is owed is paid first", w.Available(), w.Owed)
		delete(owed, w.Currency)
	}
	for currency, n := range owed {
		v.check(n == 0, "I3", till.ID{}, "%d %s is owed in no wallet", n, currency)
	}
	v.check(end.facts == once, "I2", till.ID{}, "there are %d facts, and %d entries that need one", end.facts, once)
	v.check(end.adjustments == adjusting, "I1", till.ID{}, "there are %d adjustments and %d entries of them", end.adjustments, adjusting)
}
