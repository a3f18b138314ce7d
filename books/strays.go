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
)

// Limits of strays.
const (
	// MaxStrays is how many strays of one connection may be open. More are not
	// lost payments but somebody else's, or a mistake of a mapping.
	MaxStrays = 10_000
	// MaxStrayBody is how long the body of a callback may be to be kept.
	MaxStrayBody = 4 << 10
	// MaxStrayPage is how many strays are read at once.
	MaxStrayPage = 1_000
	// maxStrayText is how long a receipt may be; a longer one is none.
	maxStrayText = 255
)

// strayLabel names the use that bodies of callbacks are sealed for.
const strayLabel = "till strays"

// Strays writes down money that names us and that we do not know, as callbacks
// tell of it.
type Strays struct {
	store  *store.Store
	sealer *seal.Sealer
}

// NewStrays returns the book of strays of an installation.
func NewStrays(s *store.Store, secret []byte) (*Strays, error) {
	sealer, err := seal.New(secret, strayLabel)
	if err != nil {
		return nil, err
	}
	return &Strays{s, sealer}, nil
}

// ErrManyStrays says that so many strays of a connection are open that no more
// are kept.
var ErrManyStrays = fmt.Errorf("%d strays of the connection are open, and no more are kept: close some with 'till strays'", MaxStrays)

// Record writes down a callback about something that is not here, once, however
// often it comes. What it says is a claim. If what it is about is here after all,
// under another id or a reference, it is returned and nothing is written. It
// returns ErrManyStrays.
func (b *Strays) Record(ctx context.Context, s *store.Stray, body []byte) (here *store.Found, fresh bool, err error) {
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
		there, err := tx.FindStrays(ctx, []store.StrayKey{s.Key()})
		known = len(there) > 0
		return err
	})
	if err != nil || here != nil || known {
		return here, false, err
	}
	s.Source, s.ID = store.StrayCallback, till.NewID(b.store.Now())
	if len(body) > 0 && len(body) <= MaxStrayBody {
		s.Sealed = b.sealer.Seal(body, s.ID[:])
	}
	if fresh, err = insertStray(ctx, b.store, s); err != nil || !fresh {
		return nil, false, err
	}
	_, _, err = closeIfBooked(ctx, b.store, s.ID, namedClient(s))
	return nil, true, err
}

// Body returns the callback that a stray was seen by, nil if it was not kept.
func (b *Strays) Body(s *store.Stray) ([]byte, error) {
	if len(s.Sealed) == 0 {
		return nil, nil
	}
	return b.sealer.Open(s.Sealed, s.ID[:])
}

func namedClient(s *store.Stray) []till.ID {
	if s.Client.IsZero() {
		return nil
	}
	return []till.ID{s.Client}
}

// dropInvalid leaves out what cannot be kept: somebody else wrote it.
func dropInvalid(s *store.Stray) {
	if _, known := till.CurrencyDecimals(s.Amount.Currency); !known || s.Amount.Minor <= 0 {
		s.Amount = till.Money{}
	}
	s.Receipt = strings.TrimSpace(s.Receipt)
	if len(s.Receipt) > maxStrayText || !utf8.ValidString(s.Receipt) || strings.ContainsFunc(s.Receipt, unicode.IsControl) {
		s.Receipt = ""
	}
}

// insertStray writes a stray down, unless too many are open.
func insertStray(ctx context.Context, s *store.Store, stray *store.Stray) (fresh bool, err error) {
	again, err := retryUnknown(ctx, s.Update, func(tx *store.Tx, _ bool) error {
		open, err := tx.OpenStrays(ctx, stray.Connection, MaxStrays)
		if err != nil {
			return err
		}
		if open >= MaxStrays {
			return ErrManyStrays
		}
		stray.SeenAt = tx.Now()
		fresh, err = tx.InsertStray(ctx, stray)
		return err
	})
	// A second run finds what the first has written.
	return fresh || again && err == nil, err
}

// statementKeyOf is what a stray's payment or payout is looked for by. Where the stray has
// a reference, a receipt counts for nothing: see store.StrayKey.
func statementKeyOf(s *store.Stray) (out store.Sought) {
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

// findSubjects finds the payments and payouts that a stray is about: by its receipt, by
// its reference on connections that are called at one address, and among the
// clients by all that it names.
func findSubjects(ctx context.Context, tx *store.Tx, s *store.Stray, clients []till.ID) (out []store.Found, err error) {
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
		k := store.Receipt{Connection: s.Connection, Text: receipt}
		for _, kind := range []string{store.KindPayment, store.KindPayout} {
			owners, err := tx.ReceiptOwners(ctx, kind, []store.Receipt{k})
			if err != nil {
				return nil, err
			}
			if ref, had := owners[k]; had && (s.Direction == "" || s.Direction == directionOf(kind)) {
				refs = append(refs, ref)
			}
		}
	}
	for _, client := range clients {
		some, err := tx.Seek(ctx, s.Connection, client, []store.Sought{statementKeyOf(s)})
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
		out = append(out, store.Found{Ref: r.Ref, Kind: r.kind})
	}
	return out, err
}

// foundSubject is a payment or payout that a stray is about.
type foundSubject struct {
	store.Subject
	kind string
}

// readSubjects reads those of the rows that are on the stray's connection and go
// its way.
func readSubjects(ctx context.Context, tx *store.Tx, s *store.Stray, refs []store.Ref) (out []foundSubject, err error) {
	take := func(p store.Subject, kind string) {
		if p.Connection == s.Connection {
			out = append(out, foundSubject{p, kind})
		}
	}
	if s.Direction != store.StrayOut {
		rows, err := tx.Payments(ctx, refs)
		if err != nil {
			return nil, err
		}
		for _, p := range rows {
			take(p.Subject(), store.KindPayment)
		}
	}
	if s.Direction != store.StrayIn {
		rows, err := tx.Payouts(ctx, refs)
		if err != nil {
			return nil, err
		}
		for _, p := range rows {
			take(p.Subject(), store.KindPayout)
		}
	}
	return out, nil
}

// closeIfBooked looks once more whether what a stray is about is here, under the
// locks that whoever credits it holds, and closes the stray if its money is
// booked. It returns what is here and not booked: its credit will close the
// stray. A credit that was being committed while the stray was written did not
// see it; this sees that.
func closeIfBooked(ctx context.Context, s *store.Store, id till.ID, clients []till.ID) (closed *store.Stray, open *foundSubject, err error) {
	_, err = retryUnknown(ctx, s.Update, func(tx *store.Tx, _ bool) error {
		closed, open = nil, nil
		stray, err := tx.Stray(ctx, id)
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
			if !r.Settled {
				open = &r
				continue
			}
			head := heads[r.Ref.Client]
			at := head.Tick()
			stray.Why, stray.ClosedAt, stray.ClosedBy, stray.Owner, stray.Settled = store.StrayCredited, at, "engine", r.Ref.Client, r.Ref.ID
			stray.Direction = directionOf(r.kind)
			err := tx.InsertAudit(ctx, []*store.AuditRow{{ClientID: r.Ref.Client, Sequence: head.NextAudit(), At: at, Actor: "engine",
				Action: "stray.credited", SubjectID: r.Ref.ID, Detail: "it is the money of stray " + stray.ID.String()}})
			if err != nil {
				return err
			}
			if err := tx.CloseStrays(ctx, "", []*store.Stray{stray}); err != nil {
				return err
			}
			closed, open = stray, nil
			return tx.SaveHeads(ctx, heads)
		}
		return nil
	})
	return closed, open, err
}

func directionOf(kind string) string {
	if kind == store.KindPayout {
		return store.StrayOut
	}
	return store.StrayIn
}
