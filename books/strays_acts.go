package books

import (
	"context"
	"encoding/hex"
	"fmt"

	"till"
	"till/ledger"
	"till/store"
	"till/store/matching"
)

// ListStrays returns the open strays, the longest open first, or all strays,
// newest first. A limit of 0, or above MaxStrayPage, means MaxStrayPage.
func ListStrays(ctx context.Context, s *store.Store, f matching.StrayFilter) (out []*matching.Stray, err error) {
	if f.Limit <= 0 || f.Limit > MaxStrayPage {
		f.Limit = MaxStrayPage
	}
	err = s.View(ctx, func(tx *store.Tx) error {
		out, err = matching.Strays(ctx, tx, f)
		return err
	})
	return out, err
}

var errNoStray = till.Errorf(till.CodeNotFound, "there is no such stray")

// ShowStray returns a stray. It returns CodeNotFound.
func ShowStray(ctx context.Context, s *store.Store, id till.ID) (out *matching.Stray, err error) {
	err = s.View(ctx, func(tx *store.Tx) error {
		if out, err = matching.ReadStray(ctx, tx, id); err == nil && out == nil {
			err = errNoStray
		}
		return err
	})
	return out, err
}

// CountOpenStrays returns how many strays are open, at most MaxStrays.
func CountOpenStrays(ctx context.Context, s *store.Store) (n int, err error) {
	err = s.View(ctx, func(tx *store.Tx) error {
		n, err = matching.OpenStrays(ctx, tx, "", MaxStrays)
		return err
	})
	return n, err
}

// OpenStraysText says how many strays are open.
func OpenStraysText(n int) string {
	if n >= MaxStrays {
		return fmt.Sprintf("%d strays or more are open", n)
	}
	return till.Count(n, "stray is open", "strays are open")
}

// Attribution is a person's decision whose money a stray is.
type Attribution struct {
	Stray  till.ID
	Client till.ID

	// Amount and Direction are what the evidence shows; unset if the stray has
	// them. They cannot differ from what a statement has confirmed.
	Amount    till.Money
	Direction string

	By       string
	Evidence []byte // SHA-256 of the file
	Named    string // the file's name
}

// AttributeResult is the result of an attribution.
type AttributeResult struct {
	*matching.Stray
	Wallet ledger.Wallet // as it is now
	Before bool          // it was made by an earlier call
}

// AttributeStray gives a stray's money to a client, or takes it if it went
// out, by an adjustment with the stray's id. The balance is no limit: what is
// not available is owed. If the payment is credited later, the same commit
// takes the adjustment back. It returns CodeNotFound, CodeClientNotFound, or
// CodeValidationFailed if the stray is closed, if its payment is here, or if
// the amount is unknown.
func AttributeStray(ctx context.Context, s *store.Store, a Attribution) (AttributeResult, error) {
	if a.By == "" || len(a.Evidence) == 0 {
		return AttributeResult{}, till.Errorf(till.CodeValidationFailed, "an attribution has a name and evidence")
	}
	clients, err := allClients(ctx, s)
	if err != nil {
		return AttributeResult{}, err
	}
	closed, open, err := closeIfBooked(ctx, s, a.Stray, clients)
	switch {
	case err != nil:
		return AttributeResult{}, err
	case closed != nil:
		return AttributeResult{}, till.Errorf(till.CodeValidationFailed, "its payment or payout %s is here and has the money: the stray is closed now", closed.Settled)
	case open != nil:
		return AttributeResult{}, till.Errorf(till.CodeValidationFailed, "its %s %s is here and not decided: it will have the money, or resolve it with evidence", open.kind, open.Ref.ID)
	}
	var done AttributeResult
	again, err := store.RetryUnknown(ctx, s.Update, func(tx *store.Tx, _ bool) (err error) { done, err = attribute(ctx, tx, a); return err })
	if again && err == nil {
		done.Before = false // the first run made it: nobody else attributed it at the same moment
	}
	return done, err
}

// allClients lists the clients: nobody knows whose a stray is.
func allClients(ctx context.Context, s *store.Store) (out []till.ID, err error) {
	for after := (till.ID{}); ; {
		var page []*till.Client
		err := s.View(ctx, func(tx *store.Tx) (err error) { page, err = tx.Clients(ctx, after, MaxStrayPage); return err })
		if err != nil || len(page) == 0 {
			return out, err
		}
		for _, c := range page {
			out = append(out, c.ID)
		}
		after = page[len(page)-1].ID
	}
}

// attribute is the transaction of an attribution.
func attribute(ctx context.Context, tx *store.Tx, a Attribution) (AttributeResult, error) {
	heads, err := tx.LockHeads(ctx, []till.ID{a.Client})
	if err != nil {
		return AttributeResult{}, err
	}
	head := heads[a.Client]
	if head == nil {
		return AttributeResult{}, till.Errorf(till.CodeClientNotFound, "there is no such client")
	}
	stray, err := matching.ReadStray(ctx, tx, a.Stray)
	if err != nil {
		return AttributeResult{}, err
	}
	if stray == nil {
		return AttributeResult{}, errNoStray
	}
	again := stray.Why == matching.StrayAttributed && stray.Owner == a.Client && till.SameActor(stray.ClosedBy, a.By)
	if stray.Why != "" && !again {
		return AttributeResult{}, till.Errorf(till.CodeValidationFailed, "the stray is closed: %s by %s", stray.Why, stray.ClosedBy)
	}
	if err := a.fillFromEvidence(stray); err != nil {
		return AttributeResult{}, err
	}
	w, err := tx.Wallet(ctx, a.Client, stray.Amount.Currency)
	switch {
	case err != nil:
		return AttributeResult{}, err
	case w == nil:
		return AttributeResult{}, till.Errorf(till.CodeValidationFailed, "the client has no wallet in %q", stray.Amount.Currency)
	case again:
		return AttributeResult{stray, *w, true}, nil
	}
	minor := stray.Amount.Minor
	if stray.Direction == matching.StrayOut {
		minor = -minor
	}
	if minor > ledger.MaxBalance-w.Balance {
		return AttributeResult{}, till.Errorf(till.CodeValidationFailed, "the wallet cannot hold so much")
	}
	proof := fmt.Sprintf("%s sha256:%s", a.Named, hex.EncodeToString(a.Evidence))
	b := &adjustmentTx{tx: tx, head: head, w: w, evidence: a.Evidence}
	entry := ledger.Correct(w, minor, stray.ID.String())
	if err := b.post(&entry, a.By, "stray "+stray.ID.String()+" of "+stray.Connection+"; "+proof); err != nil {
		return AttributeResult{}, err
	}
	if e, owes := ledger.Repay(w); owes {
		if err := b.post(&e, a.By, "what was owed is paid first"); err != nil {
			return AttributeResult{}, err
		}
	}
	stray.Why, stray.ClosedAt, stray.ClosedBy, stray.Owner, stray.Given = matching.StrayAttributed, entry.CreatedAt, a.By, a.Client, a.Client
	stray.Reason, stray.Evidence = proof, a.Evidence
	b.audit = append(b.audit, &store.AuditRow{ClientID: a.Client, Sequence: head.NextAudit(), At: head.NextTime(), Actor: a.By, Action: "stray.attribute",
		SubjectID: stray.ID, Detail: fmt.Sprintf("%s %s of %s, receipt %q; %s", stray.Amount.Value(), stray.Amount.Currency, stray.Connection, stray.Receipt, proof), Evidence: a.Evidence})
	row := store.Adjustment{ClientID: a.Client, ID: stray.ID, EntryID: entry.ID, Amount: till.Money{Minor: minor, Currency: w.Currency},
		Reason: "stray of " + stray.Connection + ": " + proof, Actor: a.By, CreatedAt: entry.CreatedAt}
	if err := b.write(ctx, heads, &row); err != nil {
		return AttributeResult{}, err
	}
	return AttributeResult{stray, *w, false}, matching.CloseStrays(ctx, tx, "", []*matching.Stray{stray})
}

// fillFromEvidence adds to a stray what only the evidence shows.
func (a *Attribution) fillFromEvidence(s *matching.Stray) error {
	said := a.Amount.Currency != ""
	switch {
	case s.ConfirmedAt.IsZero() && s.Why == "" && !said:
		return till.Errorf(till.CodeValidationFailed, "no statement has confirmed the stray: say the amount and the currency that the evidence shows")
	case !s.ConfirmedAt.IsZero() && said && a.Amount != s.Amount:
		return till.Errorf(till.CodeValidationFailed, "the statement says %s %s", s.Amount.Value(), s.Amount.Currency)
	case said && (a.Amount.Minor <= 0 || a.Amount.Minor > till.MaxMinor):
		return till.Errorf(till.CodeValidationFailed, "the amount is from 1 to %d minor units", till.MaxMinor)
	case a.Direction != "" && a.Direction != matching.StrayIn && a.Direction != matching.StrayOut:
		return till.Errorf(till.CodeValidationFailed, "the direction is in or out")
	case s.Direction == "" && a.Direction == "":
		return till.Errorf(till.CodeValidationFailed, "nobody says whether the money came in or went out: say it as the evidence shows it")
	case s.Direction != "" && a.Direction != "" && s.Direction != a.Direction:
		return till.Errorf(till.CodeValidationFailed, "the stray's money went %s", s.Direction)
	}
	if said && s.Why == "" {
		s.Amount = a.Amount
	}
	if s.Direction == "" {
		s.Direction = a.Direction
	}
	return nil
}

// CloseForeignStray closes a stray whose money is not ours. It returns
// CodeNotFound, or CodeValidationFailed if the stray is closed for another
// reason.
func CloseForeignStray(ctx context.Context, s *store.Store, id till.ID, act CaseAction) (out *matching.Stray, err error) {
	if act.By == "" || act.Reason == "" {
		return nil, till.Errorf(till.CodeValidationFailed, "whoever closes a stray gives a name and a reason")
	}
	_, err = store.RetryUnknown(ctx, s.Update, func(tx *store.Tx, _ bool) error {
		out, err = matching.ReadStray(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case out == nil:
			return errNoStray
		case out.Why == matching.StrayForeign:
			return nil
		case out.Why != "":
			return till.Errorf(till.CodeValidationFailed, "the stray is closed: %s by %s", out.Why, out.ClosedBy)
		}
		heads, err := tx.LockHeads(ctx, namedClient(out))
		if err != nil {
			return err
		}
		out.Why, out.ClosedAt, out.ClosedBy, out.Reason, out.Evidence = matching.StrayForeign, tx.Now(), act.By, act.Reason, act.Evidence
		if h := heads[out.Client]; h != nil { // a stray that names no client has no audit log, only its own row
			err := tx.InsertAudit(ctx, []*store.AuditRow{{ClientID: out.Client, Sequence: h.NextAudit(), At: h.NextTime(), Actor: act.By,
				Action: "stray.foreign", SubjectID: out.ID, Detail: act.Reason, Evidence: act.Evidence}})
			if err != nil {
				return err
			}
			if err := tx.SaveHeads(ctx, heads); err != nil {
				return err
			}
		}
		return matching.CloseStrays(ctx, tx, "", []*matching.Stray{out})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
