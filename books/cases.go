package books

import (
	"context"
	"encoding/hex"
	"fmt"

	"till"
	"till/ledger"
	"till/store"
	"till/store/refunds"
	"till/store/webhooks"
)

// Limits of cases.
const (
	MaxCases  = 1_000 // of one page
	MaxReason = 500   // characters of the reason for closing
	maxLines  = 200   // transactions and audit rows shown with a case
)

// Cases returns a page of cases: the open ones, the longest open first, or
// with closed ones the newest first. A limit of 0, or above MaxCases, means
// MaxCases.
func Cases(ctx context.Context, s *store.Store, f store.CaseFilter) (out []*store.Case, err error) {
	if f.Limit <= 0 || f.Limit > MaxCases {
		f.Limit = MaxCases
	}
	err = s.View(ctx, func(tx *store.Tx) error {
		out, err = tx.Cases(ctx, f)
		return err
	})
	return out, err
}

// CaseDetail is a case with all that a person needs to decide. Its subject is
// a payment, a payout, an endpoint, or none of them; then only the lists are
// filled.
type CaseDetail struct {
	*store.Case
	Payment      *store.PaymentRow
	Payout       *store.PayoutRow
	Endpoint     *webhooks.Endpoint
	Attempts     []*store.Attempt
	Events       []*store.EventRow
	Transactions []*ledger.Transaction // the first maxLines of them
	Suspended    till.Money            // money in suspense; zero if there is none
	Owed         []store.Owing         // what the client owes because of it
	Handle       string                // the operator's own id of the request, if it gave one
	HeldAt       till.Time             // since when it is held; zero: it is not
	Refunds      till.RefundSums       // of the payment, or of the one that is given back; zero if there are none
	Audit        []*store.AuditRow     // the newest maxLines of them
	Others       []*store.Case         // open cases about the same subject

	// RemainingCause says why the cause of an open case is still there, "" if
	// it is not, or if only a person can know.
	RemainingCause string
}

var errNoCase = till.Errorf(till.CodeNotFound, "there is no such case")

// SubjectDetail returns a payment or payout with all that is known of it
// except the audit log. Others are its open cases.
func SubjectDetail(ctx context.Context, s *store.Store, ref store.Ref) (*CaseDetail, error) {
	f := &CaseDetail{Case: &store.Case{ClientID: ref.Client, SubjectID: ref.ID}}
	return f, s.View(ctx, func(tx *store.Tx) error { return f.read(ctx, tx) })
}

// CaseDetailOf returns a case with its evidence. It returns CodeNotFound.
func CaseDetailOf(ctx context.Context, s *store.Store, id till.ID) (*CaseDetail, error) {
	f := &CaseDetail{}
	err := s.View(ctx, func(tx *store.Tx) (err error) {
		if f.Case, err = tx.Case(ctx, id); err != nil {
			return err
		}
		if f.Case == nil {
			return errNoCase
		}
		return f.read(ctx, tx)
	})
	if err != nil {
		return nil, err
	}
	ref := store.Ref{Client: f.ClientID, ID: f.SubjectID}
	err = EachAudit(ctx, s, ref.Client, AuditFilter{Subject: ref.ID, From: ref.ID.Time()}, func(a *store.AuditRow) error {
		if len(f.Audit) == maxLines {
			f.Audit = f.Audit[1:]
		}
		f.Audit = append(f.Audit, a)
		return nil
	})
	return f, err
}

// read fills the detail from one snapshot.
func (f *CaseDetail) read(ctx context.Context, tx *store.Tx) (err error) {
	ref := store.Ref{Client: f.ClientID, ID: f.SubjectID}
	if f.Endpoint, err = webhooks.ReadEndpoint(ctx, tx, ref); err != nil {
		return err
	}
	if f.Attempts, err = tx.Attempts(ctx, ref); err != nil {
		return err
	}
	same, err := tx.Cases(ctx, store.CaseFilter{Client: ref.Client, Subject: ref.ID, Limit: MaxCases})
	if err != nil {
		return err
	}
	for _, c := range same {
		if c.ID != f.ID {
			f.Others = append(f.Others, c)
		}
	}
	// The lines of a payment, or of a payout: an id is of one of them.
	for _, filter := range []store.TransactionFilter{{PaymentID: ref.ID}, {PayoutID: ref.ID}} {
		lines, _, err := tx.ListTransactions(ctx, ref.Client, filter, store.Page{Limit: maxLines, Ascending: true})
		if err != nil {
			return err
		}
		f.Transactions = append(f.Transactions, lines...)
	}
	aside, err := tx.Suspended(ctx, []store.Ref{ref})
	if err != nil {
		return err
	}
	f.Suspended = aside[ref].Held()
	if f.Owed, err = tx.OwedFor(ctx, ref); err != nil {
		return err
	}
	step, err := tx.Step(ctx, ref)
	if err != nil {
		return err
	}
	if step != nil {
		f.Handle, f.HeldAt = step.Handle, step.HeldAt
	}
	if err := f.readSubject(ctx, tx, ref); err != nil {
		return err
	}
	f.RemainingCause = f.remainingCause()
	return nil
}

// readSubject reads the payment or payout of a case, if it has one, with its
// events.
func (f *CaseDetail) readSubject(ctx context.Context, tx *store.Tx, ref store.Ref) error {
	payments, err := tx.Payments(ctx, []store.Ref{ref})
	if err != nil {
		return err
	}
	payouts, err := tx.Payouts(ctx, []store.Ref{ref})
	if err != nil {
		return err
	}
	paid := ref
	switch f.Payment, f.Payout = payments[ref], payouts[ref]; {
	case f.Payment != nil:
		f.Events, err = tx.PaymentEvents(ctx, ref)
	case f.Payout != nil:
		paid.ID = f.Payout.PaymentID
		f.Events, err = tx.PayoutEvents(ctx, ref)
	}
	if err != nil {
		return err
	}
	sums, err := refunds.Sums(ctx, tx, []store.Ref{paid})
	f.Refunds = sums[paid]
	return err
}

// open returns the kind and status of a payment or payout that is not final.
func (f *CaseDetail) open() (kind till.SubjectKind, status string) {
	switch {
	case f.Payment != nil && !f.Payment.Status.Final():
		return till.SubjectPayment, string(f.Payment.Status)
	case f.Payout != nil && !f.Payout.Status.Final():
		return till.SubjectPayout, string(f.Payout.Status)
	}
	return "", ""
}

// remainingCause says why the cause of a case is still there.
func (f *CaseDetail) remainingCause() string {
	kind, status := f.open()
	switch {
	case kind == till.SubjectPayout:
		return fmt.Sprintf("%s %s is still %s and holds %d %s of the wallet: the case opens again when the operator's next answer does not decide it",
			f.Payout.Noun(), f.SubjectID, status, f.Payout.Reserve(), f.Payout.Amount.Currency)
	case kind != "":
		return fmt.Sprintf("%s %s is still %s: the case opens again when the operator's next answer does not decide it", kind, f.SubjectID, status)
	case f.Endpoint != nil && !f.Endpoint.Enabled:
		return fmt.Sprintf("the endpoint has been disabled since %s", f.Endpoint.DisabledAt)
	case f.Endpoint != nil && !f.Endpoint.FailingSince.IsZero():
		return fmt.Sprintf("nothing has reached the endpoint since %s", f.Endpoint.FailingSince)
	}
	return ""
}

// CaseAction is what a person says when closing a case.
type CaseAction struct {
	By       string
	Reason   string
	Evidence []byte // SHA-256 of the evidence; nil if there is none
	Named    string // the evidence's name in the audit log
}

// ResolveCase closes a case in a person's name. It ends only the case; Resolve
// of collect or payout ends a payment or payout. It returns the case with its
// subject, so that the person learns whether the cause remains. It returns
// CodeNotFound, or CodeValidationFailed if the case is closed already, or if
// nothing else would remind anybody of an open payment or payout (I9).
func ResolveCase(ctx context.Context, s *store.Store, id till.ID, a CaseAction) (*CaseDetail, error) {
	var f *CaseDetail
	_, err := store.RetryUnknown(ctx, s.Update, func(tx *store.Tx, again bool) (err error) {
		f = &CaseDetail{}
		if f.Case, err = tx.Case(ctx, id); err != nil {
			return err
		}
		if f.Case == nil {
			return errNoCase
		}
		return f.close(ctx, tx, a, again)
	})
	return f, err
}

// close closes the case. In a second run after an unknown commit, a case that is
// closed in the same words was closed by the first.
func (f *CaseDetail) close(ctx context.Context, tx *store.Tx, a CaseAction, again bool) error {
	heads, err := tx.LockHeads(ctx, []till.ID{f.ClientID})
	if err != nil {
		return err
	}
	head := heads[f.ClientID]
	if head == nil {
		return till.Errorf(till.CodeClientNotFound, "the case is of a client that does not exist")
	}
	if f.Case, err = tx.Case(ctx, f.ID); err != nil { // as it is under the lock
		return err
	}
	if !f.ClosedAt.IsZero() {
		if again && f.ClosedBy == a.By && f.Reason == a.Reason {
			return nil
		}
		return till.Errorf(till.CodeValidationFailed, "the case was closed by %s at %s", f.ClosedBy, f.ClosedAt)
	}
	if err := f.read(ctx, tx); err != nil {
		return err
	}
	ref := store.Ref{Client: f.ClientID, ID: f.SubjectID}
	if kind, _ := f.open(); kind != "" && len(f.Others) == 0 { // I9
		step, err := tx.Step(ctx, ref)
		if err != nil {
			return err
		}
		if step == nil {
			return till.Errorf(till.CodeValidationFailed, "nobody asks about the %s any more: end it with 'till %s resolve'", kind, kind)
		}
	}
	at := head.NextTime()
	f.ClosedAt, f.ClosedBy, f.Reason, f.Evidence = at, a.By, a.Reason, a.Evidence
	detail := f.Kind + ": " + a.Reason
	if a.Evidence != nil {
		detail += "; evidence " + a.Named + " sha256:" + hex.EncodeToString(a.Evidence)
	}
	if err := tx.CloseCases(ctx, []store.CaseClosure{{Ref: ref, By: a.By, At: at, Kinds: []string{f.Kind}, Reason: a.Reason, Evidence: a.Evidence}}); err != nil {
		return err
	}
	if err := tx.InsertAudit(ctx, []*store.AuditRow{{
		ClientID: f.ClientID, Sequence: head.NextAudit(), At: at, Actor: a.By, Action: "case.resolve",
		SubjectID: f.SubjectID, Detail: detail, Evidence: a.Evidence,
	}}); err != nil {
		return err
	}
	return tx.SaveHeads(ctx, heads)
}
