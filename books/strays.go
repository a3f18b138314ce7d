package books

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"till"
	"till/internal/seal"
	"till/store"
	"till/store/matching"
)

// Limits of strays.
const (
	// MaxStrays is how many strays of one connection may be open. More are not
	// lost payments: they are another system's, or the mapping is wrong.
	MaxStrays = 10_000
	// MaxStrayBody is the largest body of a callback that is kept, in bytes.
	MaxStrayBody = 4 << 10
	// MaxStrayPage is how many strays are read at once.
	MaxStrayPage = 1_000
	// maxStrayText is the longest receipt; a longer one is dropped.
	maxStrayText = 255
)

// StrayLabel separates the key for callback bodies from other derived keys.
const StrayLabel = "till strays"

// Strays records strays from callbacks.
type Strays struct {
	store  *store.Store
	sealer *seal.Sealer
}

// NewStrays returns the Strays of an installation.
func NewStrays(s *store.Store, ring *seal.Ring) (*Strays, error) {
	sealer, err := ring.Sealer(StrayLabel)
	if err != nil {
		return nil, err
	}
	return &Strays{s, sealer}, nil
}

// ErrManyStrays means that too many strays of a connection are open to record
// another.
var ErrManyStrays = fmt.Errorf("%d strays of the connection are open, and no more are kept: close some with 'till strays'", MaxStrays)

// Record stores a callback about a subject that is not here, once, however
// often it comes. Its content is only a claim. If the subject is here under
// another id or reference, Record returns it and stores nothing. It returns
// ErrManyStrays.
func (b *Strays) Record(ctx context.Context, s *matching.Stray, body []byte) (here *store.CallbackTarget, fresh bool, err error) {
	dropInvalid(s)
	if s.Reference.IsZero() && s.Subject.IsZero() && s.Receipt == "" {
		return nil, false, errors.New("the callback names nothing")
	}
	known := false
	err = b.store.View(ctx, func(tx *store.Tx) error {
		found, err := findSubjects(ctx, tx, s, namedClient(s))
		if err != nil || len(found) > 0 {
			if len(found) > 0 {
				here = &found[0]
			}
			return err
		}
		there, err := matching.FindStrays(ctx, tx, []matching.StrayKey{s.Key()})
		known = len(there) > 0
		return err
	})
	if err != nil || here != nil || known {
		return here, false, err
	}
	s.Source, s.ID = matching.StrayCallback, till.NewID(b.store.Now())
	if len(body) > 0 && len(body) <= MaxStrayBody {
		s.Sealed = b.sealer.Seal(body, s.ID[:])
	}
	if fresh, err = insertStray(ctx, b.store, s); err != nil || !fresh {
		return nil, false, err
	}
	_, _, err = closeIfBooked(ctx, b.store, s.ID, namedClient(s))
	return nil, true, err
}

// Body returns the callback of a stray, nil if it was not kept.
func (b *Strays) Body(s *matching.Stray) ([]byte, error) {
	if len(s.Sealed) == 0 {
		return nil, nil
	}
	return b.sealer.Open(s.Sealed, s.ID[:])
}

func namedClient(s *matching.Stray) []till.ID {
	if s.Client.IsZero() {
		return nil
	}
	return []till.ID{s.Client}
}

// dropInvalid removes values that cannot be stored: somebody else wrote them.
func dropInvalid(s *matching.Stray) {
	if _, known := till.CurrencyDecimals(s.Amount.Currency); !known || s.Amount.Minor <= 0 {
		s.Amount = till.Money{}
	}
	s.Receipt = strings.TrimSpace(s.Receipt)
	if len(s.Receipt) > maxStrayText || !utf8.ValidString(s.Receipt) || strings.ContainsFunc(s.Receipt, unicode.IsControl) {
		s.Receipt = ""
	}
}

// insertStray stores a stray, unless too many are open.
func insertStray(ctx context.Context, s *store.Store, stray *matching.Stray) (fresh bool, err error) {
	again, err := store.RetryUnknown(ctx, s.Update, func(tx *store.Tx, _ bool) error {
		open, err := matching.OpenStrays(ctx, tx, stray.Connection, MaxStrays)
		if err != nil {
			return err
		}
		if open >= MaxStrays {
			return ErrManyStrays
		}
		stray.SeenAt = tx.Now()
		fresh, err = matching.InsertStray(ctx, tx, stray)
		return err
	})
	// A second run finds what the first has written.
	return fresh || again && err == nil, err
}

// statementKeyOf returns what a stray's subject is looked up by. If the stray
// has a reference, its receipt does not count: see store.StrayKey.
func statementKeyOf(s *matching.Stray) (out matching.StatementKey) {
	for _, id := range []till.ID{s.Reference, s.Subject} {
		if !id.IsZero() {
			out.References = append(out.References, id)
		}
	}
	if s.Reference.IsZero() {
		out.Receipt = s.Receipt
	}
	return out
}

// findSubjects finds the subjects of a stray: by its receipt, by its reference
// on connections with one callback address, and among the clients by all its
// names.
func findSubjects(ctx context.Context, tx *store.Tx, s *matching.Stray, clients []till.ID) (out []store.CallbackTarget, err error) {
	var refs []store.Ref
	if !s.Reference.IsZero() {
		f, err := tx.FindByReference(ctx, s.Connection, s.Reference)
		if err != nil {
			return nil, err
		}
		if f != nil {
			refs = append(refs, f.Ref)
		}
	}
	if receipt := statementKeyOf(s).Receipt; receipt != "" {
		for _, kind := range []till.SubjectKind{till.SubjectPayment, till.SubjectPayout} {
			if s.Direction != "" && s.Direction != directionOf(kind) {
				continue
			}
			owners, err := tx.OwnersOfReceipt(ctx, kind, s.Connection, receipt)
			if err != nil {
				return nil, err
			}
			refs = append(refs, owners...)
		}
	}
	for _, client := range clients {
		some, err := matching.FindByStatement(ctx, tx, s.Connection, client, []matching.StatementKey{statementKeyOf(s)})
		if err != nil {
			return nil, err
		}
		refs = append(refs, some...)
	}
	if len(refs) == 0 {
		return nil, nil
	}
	rows, err := readSubjects(ctx, tx, s, refs)
	for _, r := range rows {
		if r.Aggregated() && s.Reference.IsZero() && s.Subject != r.Ref.ID {
			continue // two countries of an aggregator may have one receipt: alone it says nothing
		}
		out = append(out, store.CallbackTarget{Ref: r.Ref, Kind: r.kind})
	}
	return out, err
}

// foundSubject is a payment or payout that a stray is about.
type foundSubject struct {
	store.Subject
	kind till.SubjectKind
}

// readSubjects reads the subjects that are on the stray's connection and have
// its direction.
func readSubjects(ctx context.Context, tx *store.Tx, s *matching.Stray, refs []store.Ref) (out []foundSubject, err error) {
	take := func(p store.Subject, kind till.SubjectKind) {
		if p.Connection == s.Connection {
			out = append(out, foundSubject{p, kind})
		}
	}
	if s.Direction != matching.StrayOut {
		rows, err := tx.Payments(ctx, refs)
		if err != nil {
			return nil, err
		}
		for _, p := range rows {
			take(p.Subject(), till.SubjectPayment)
		}
	}
	if s.Direction != matching.StrayIn {
		rows, err := tx.Payouts(ctx, refs)
		if err != nil {
			return nil, err
		}
		for _, p := range rows {
			take(p.Subject(), till.SubjectPayout)
		}
	}
	return out, nil
}

// closeIfBooked reads a stray's subject again, under the locks of a
// credit, and closes the stray if its money is booked. It returns a subject
// that is here and not booked: its credit will close the stray. A payout that
// was cancelled unsent is neither: it never has money. A credit that was
// committed while the stray was written did not see the stray; this sees the
// credit.
func closeIfBooked(ctx context.Context, s *store.Store, id till.ID, clients []till.ID) (closed *matching.Stray, open *foundSubject, err error) {
	_, err = store.RetryUnknown(ctx, s.Update, func(tx *store.Tx, _ bool) error {
		closed, open = nil, nil
		stray, err := matching.ReadStray(ctx, tx, id)
		if err != nil || stray == nil || stray.Why != "" {
			return err
		}
		found, err := findSubjects(ctx, tx, stray, clients)
		if err != nil || len(found) == 0 {
			return err
		}
		refs, owners := make([]store.Ref, len(found)), make([]till.ID, len(found))
		for i, f := range found {
			refs[i], owners[i] = f.Ref, f.Ref.Client
		}
		heads, err := tx.LockHeads(ctx, owners)
		if err != nil {
			return err
		}
		rows, err := readSubjects(ctx, tx, stray, refs)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if !r.Booked {
				if !r.Settled {
					open = &r
				}
				continue
			}
			head := heads[r.Ref.Client]
			at := head.NextTime()
			stray.Why, stray.ClosedAt, stray.ClosedBy, stray.Owner, stray.Settled = matching.StrayCredited, at, "engine", r.Ref.Client, r.Ref.ID
			stray.Direction = directionOf(r.kind)
			err := tx.InsertAudit(ctx, []*store.AuditRow{{ClientID: r.Ref.Client, Sequence: head.NextAudit(), At: at, Actor: "engine",
				Action: "stray.credited", SubjectID: r.Ref.ID, Detail: "it is the money of stray " + stray.ID.String()}})
			if err != nil {
				return err
			}
			if err := matching.CloseStrays(ctx, tx, "", []*matching.Stray{stray}); err != nil {
				return err
			}
			closed, open = stray, nil
			return tx.SaveHeads(ctx, heads)
		}
		return nil
	})
	return closed, open, err
}

func directionOf(kind till.SubjectKind) string {
	if kind == till.SubjectPayout {
		return matching.StrayOut
	}
	return matching.StrayIn
}

// RecordStrayOfLine records the stray of a statement's line, or confirms the open one.
func RecordStrayOfLine(ctx context.Context, db *store.Store, s *matching.Stray) (changed bool, err error) {
	dropInvalid(s)
	again, err := store.RetryUnknown(ctx, db.UpdateBackground, func(tx *store.Tx, _ bool) error {
		changed = false
		found, err := matching.FindStrays(ctx, tx, []matching.StrayKey{s.Key()})
		if err != nil {
			return err
		}
		for _, there := range found[0] {
			s.ID = there.ID
			if there.Why != "" || !there.ConfirmedAt.IsZero() {
				return nil
			}
		}
		s.SeenAt, s.ConfirmedAt = tx.Now(), tx.Now()
		if len(found[0]) > 0 {
			there := found[0][0]
			s.ID = there.ID
			mergeStray(s, there)
			changed, err = matching.ConfirmStray(ctx, tx, s)
			return err
		}
		open, err := matching.OpenStrays(ctx, tx, s.Connection, MaxStrays)
		if err != nil {
			return err
		}
		if open >= MaxStrays {
			return ErrManyStrays
		}
		s.ID = till.NewID(tx.Now())
		changed, err = matching.InsertStray(ctx, tx, s)
		return err
	})
	return changed || again && err == nil, err
}

// mergeStray copies what a line does not say from the recorded stray.
func mergeStray(s, there *matching.Stray) {
	if s.Reference.IsZero() {
		s.Reference = there.Reference
	}
	if s.Subject.IsZero() {
		s.Subject = there.Subject
	}
	if s.Receipt == "" {
		s.Receipt = there.Receipt
	}
	if s.Direction == "" {
		s.Direction = there.Direction
	}
}

// CloseBookedStrays closes new strays whose payment was booked while the
// statement was compared.
func CloseBookedStrays(ctx context.Context, s *store.Store, strays []*matching.Stray, clients []till.ID) error {
	if len(strays) == 0 {
		return nil
	}
	all := make([]matching.StatementKey, len(strays))
	for i, stray := range strays {
		all[i] = statementKeyOf(stray)
	}
	for _, client := range clients {
		var refs []store.Ref
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			refs, err = matching.FindByStatement(ctx, tx, strays[0].Connection, client, all)
			return err
		})
		if err != nil {
			return err
		}
		for _, stray := range strays {
			if len(refs) == 0 {
				break
			}
			if _, _, err := closeIfBooked(ctx, s, stray.ID, []till.ID{client}); err != nil {
				return fmt.Errorf("stray %s: %w", stray.ID, err)
			}
		}
	}
	return nil
}
