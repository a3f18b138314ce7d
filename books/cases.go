package books

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"till"
	"till/ledger"
	"till/store"
)

// Limits of cases.
const (
	MaxCases  = 1_000 // that one page shows
	MaxReason = 500   // characters of what a case ended with
	maxLines  = 200   // transactions and audit rows of a case that are shown
)

// Cases returns a page of the attention list: the open cases, the longest open
// first, or with closed ones the newest first. A limit of 0, or beyond
// MaxCases, means MaxCases.
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

// File is a case with all that a person needs to judge it. What it is about
// is a payment, an endpoint, or something that has neither: then only the
// lists are filled.
type File struct {
	*store.Case
	Payment      *store.PaymentRow
	Endpoint     *store.Endpoint
	Attempts     []*store.Attempt
	Events       []*store.EventRow
	Transactions []*ledger.Transaction // the first maxLines of them
	Audit        []*store.AuditRow     // the newest maxLines of them
	Others       []*store.Case         // open cases about the same subject

	// Stands says why the cause of an open case is still there, "" if it is
	// not, or if only a person can know.
	Stands string
}

var errNoCase = till.Errorf(till.CodeNotFound, "there is no such case")

// ShowCase returns a case with its evidence. It returns CodeNotFound.
func ShowCase(ctx context.Context, s *store.Store, id till.ID) (*File, error) {
	f := &File{}
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

// read fills a file from one snapshot.
func (f *File) read(ctx context.Context, tx *store.Tx) (err error) {
	ref := store.Ref{Client: f.ClientID, ID: f.SubjectID}
	if f.Endpoint, err = tx.Endpoint(ctx, ref); err != nil {
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
	f.Payment, err = tx.Payment(ctx, ref)
	switch {
	case till.ErrorCode(err) == till.CodePaymentNotFound:
		f.Payment = nil
	case err != nil:
		return err
	default:
		if f.Events, err = tx.PaymentEvents(ctx, ref); err != nil {
			return err
		}
	}
	f.Stands = f.stands()
	return nil
}

// stands says why the cause of a case is still there.
func (f *File) stands() string {
	switch {
	case f.Payment != nil && !f.Payment.Status.Final():
		return fmt.Sprintf("payment %s is still %s: the case opens again when the operator's next answer does not decide it", f.SubjectID, f.Payment.Status)
	case f.Endpoint != nil && !f.Endpoint.Enabled:
		return fmt.Sprintf("the endpoint has been disabled since %s", f.Endpoint.DisabledAt)
	case f.Endpoint != nil && !f.Endpoint.FailingSince.IsZero():
		return fmt.Sprintf("nothing has reached the endpoint since %s", f.Endpoint.FailingSince)
	}
	return ""
}

// Act is what a person says when a case is closed.
type Act struct {
	By       string
	Reason   string
	Evidence []byte // SHA-256 of what it rests on; nil where there is nothing to show
	Named    string // how the audit log names the evidence
}

// ResolveCase closes a case in a person's name. It ends nothing but the case:
// a payment is ended by collect.Resolve. It returns the case with what is known
// of its subject, so that whoever closes it can be told that its cause stands;
// CodeNotFound; or CodeValidationFailed if it is closed already, or if it is all
// that keeps an open payment from being forgotten.
func ResolveCase(ctx context.Context, s *store.Store, id till.ID, a Act) (*File, error) {
	var f *File
	unsure := false
	try := func() error {
		return s.Update(ctx, func(tx *store.Tx) (err error) {
			f = &File{}
			if f.Case, err = tx.Case(ctx, id); err != nil {
				return err
			}
			if f.Case == nil {
				return errNoCase
			}
			return f.close(ctx, tx, a, unsure)
		})
	}
	err := try()
	if errors.Is(err, store.ErrUnknownCommit) {
		unsure = true // what is closed by now was closed by us, if it says so
		err = try()
	}
	return f, err
}

func (f *File) close(ctx context.Context, tx *store.Tx, a Act, unsure bool) error {
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
		if unsure && f.ClosedBy == a.By && f.Reason == a.Reason {
			return nil
		}
		return till.Errorf(till.CodeValidationFailed, "the case was closed by %s at %s", f.ClosedBy, f.ClosedAt)
	}
	if err := f.read(ctx, tx); err != nil {
		return err
	}
	ref := store.Ref{Client: f.ClientID, ID: f.SubjectID}
	if f.Payment != nil && !f.Payment.Status.Final() && len(f.Others) == 0 { // I9
		step, err := tx.Step(ctx, ref)
		if err != nil {
			return err
		}
		if step == nil {
			return till.Errorf(till.CodeValidationFailed, "nobody asks about the payment any more: end it with 'till payment resolve'")
		}
	}
	at := head.Tick()
	f.ClosedAt, f.ClosedBy, f.Reason, f.Evidence = at, a.By, a.Reason, a.Evidence
	detail := f.Kind + ": " + a.Reason
	if a.Evidence != nil {
		detail += "; evidence " + a.Named + " sha256:" + hex.EncodeToString(a.Evidence)
	}
	if err := tx.CloseCases(ctx, []store.Closing{{Ref: ref, By: a.By, At: at, Kinds: []string{f.Kind}, Reason: a.Reason, Evidence: a.Evidence}}); err != nil {
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
