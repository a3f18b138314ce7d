package privacy

import (
	"context"
	"fmt"
	"strings"

	"till"
	"till/engine"
	"till/internal/request"
	"till/store"
	"till/store/lookup"
	"till/store/refunds"
)

// eraseRows is how many payments or payouts are erased in one commit.
const eraseRows = 50

// Erasure says whose data is taken out. Phone, Token or Before is set.
type Erasure struct {
	Phone  string    // of this number
	Token  string    // of the number that has this instead of a phone, as after an earlier erasure
	Before till.Time // of everybody, in what was created before this time
	Texts  bool      // description and metadata, too
}

// EraseRequest is a person's wish to have data erased.
type EraseRequest struct {
	Secret     []byte
	Erasures   []Erasure
	By, Reason string
	DryRun     bool // count, and change nothing
}

// EraseResult is what Erase did, or with DryRun would do.
type EraseResult struct {
	Payments, Payouts, Checkouts int
	// Left are those that have not ended, that have an open case or refund, or whose late reads
	// are not over, and the checkouts that asked for such payments. They are erased by a later run.
	Left int
}

// ActErase is the audit action of an erasure.
const ActErase = "person.erase"

// ErasedToken returns what the rows of a phone have instead of it once they are erased.
func ErasedToken(secret []byte, phone string) string {
	return engine.NewKeys(till.SubjectPayment, secret).ErasedPhone(phone)
}

// Erase takes data of persons out of payments, payouts and checkouts that have ended: the phone, the
// other members of customer or recipient, receivers' answers, and what the body's hash could
// be tried out with. Amounts, ids, receipts, statuses, events and the ledger stay, so the
// books verify as before, and a retry of the create call is still recognised. Events and
// webhooks that are sent later have the erased members. Each commit has its audit row. It may
// be interrupted and repeated, beside a running server.
func Erase(ctx context.Context, s *store.Store, r EraseRequest) (*EraseResult, error) {
	e := &eraser{EraseRequest: r, s: s, keys: engine.NewKeys(till.SubjectPayment, r.Secret), out: &EraseResult{}, tokens: map[string]Erasure{}}
	var err error
	if e.phones, err = lookup.NewPhoneKey(r.Secret); err != nil {
		return nil, err
	}
	for _, x := range r.Erasures {
		switch {
		case x.Phone != "":
			if err := e.eraseNumber(ctx, x); err != nil {
				return e.out, err
			}
		case x.Token != "":
			// Of two erasures of one number, the one that took more counts.
			x.Texts = x.Texts || e.tokens[x.Token].Texts
			e.tokens[x.Token] = x
		default:
			e.before = append(e.before, x)
		}
	}
	if len(e.tokens) > 0 || len(e.before) > 0 {
		if err := e.eraseAll(ctx); err != nil {
			return e.out, err
		}
	}
	return e.out, e.auditHouse(ctx)
}

// eraser takes data of persons out.
type eraser struct {
	EraseRequest
	s      *store.Store
	keys   engine.Keys
	phones lookup.PhoneKey
	out    *EraseResult

	tokens map[string]Erasure // by token
	before []Erasure
}

// eraseNumber erases all rows of a number.
func (e *eraser) eraseNumber(ctx context.Context, x Erasure) error {
	var batch eraseBatch
	asked := checkoutBatch{wants: func(row lookup.PhoneRow) (texts, wanted bool) { return x.Texts, row.Phone == x.Phone }}
	err := PersonData(ctx, e.s, e.phones, x.Phone, func(r *PersonRecord) error {
		if r.Checkout != nil { // its payments come first
			if err := e.flush(ctx, &batch); err != nil {
				return err
			}
			return e.addCheckout(ctx, &asked, r.Checkout.Ref())
		}
		ref, payouts := store.Ref{Client: r.Client}, r.Payment == nil
		if payouts {
			ref.ID = r.Payout.ID
		} else {
			ref.ID = r.Payment.ID
		}
		if len(batch.refs) == eraseRows || len(batch.refs) > 0 && (batch.client != r.Client || batch.payouts != payouts) {
			if err := e.flush(ctx, &batch); err != nil {
				return err
			}
		}
		batch.add(ref, payouts, x.Texts)
		return nil
	})
	if err != nil {
		return err
	}
	if err := e.flush(ctx, &batch); err != nil {
		return err
	}
	return e.flushCheckouts(ctx, &asked)
}

// eraseAll reads the phones of all rows and erases those that an erasure by token or by
// age concerns.
func (e *eraser) eraseAll(ctx context.Context) error {
	return e.s.EachPageOfClients(ctx, func(clients []till.ID) error {
		for _, client := range clients {
			for _, payouts := range []bool{false, true} {
				if err := e.eraseClient(ctx, client, payouts); err != nil {
					return err
				}
			}
			if err := e.eraseCheckoutsOf(ctx, client); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *eraser) eraseClient(ctx context.Context, client till.ID, payouts bool) error {
	end := e.end()
	var batch eraseBatch
	for after := (till.ID{}); ; {
		var rows []lookup.PhoneRow
		err := e.s.View(ctx, func(tx *store.Tx) (err error) {
			rows, err = lookup.PhonesAfter(ctx, tx, client, payouts, after, end, personScanned)
			return err
		})
		if err != nil {
			return err
		}
		for _, row := range rows {
			after = row.ID
			texts, wanted := e.wants(row)
			if !wanted {
				continue
			}
			batch.add(store.Ref{Client: client, ID: row.ID}, payouts, texts)
			if len(batch.refs) == eraseRows {
				if err := e.flush(ctx, &batch); err != nil {
					return err
				}
			}
		}
		if len(rows) < personScanned {
			return e.flush(ctx, &batch)
		}
	}
}

// end returns the id before which rows are read: only by age, nothing younger is.
func (e *eraser) end() till.ID {
	if len(e.tokens) > 0 {
		return lastID
	}
	var newest till.Time
	for _, x := range e.before {
		newest = max(newest, x.Before)
	}
	return till.FirstID(newest)
}

// wants reports whether a row is to be erased, and whether its texts are.
func (e *eraser) wants(row lookup.PhoneRow) (texts, wanted bool) {
	if strings.HasPrefix(row.Phone, engine.ErasedMark) {
		return false, false
	}
	for _, x := range e.before {
		if row.ID.Time() < x.Before {
			texts, wanted = texts || x.Texts, true
		}
	}
	if len(e.tokens) > 0 {
		if x, found := e.tokens[e.keys.ErasedPhone(row.Phone)]; found {
			texts, wanted = texts || x.Texts, true
		}
	}
	return texts, wanted
}

// eraseBatch is some payments, or some payouts, of one client.
type eraseBatch struct {
	client  till.ID
	payouts bool
	refs    []store.Ref
	texts   map[till.ID]bool
}

func (b *eraseBatch) add(ref store.Ref, payouts, texts bool) {
	if len(b.refs) == 0 {
		b.client, b.payouts, b.texts = ref.Client, payouts, map[till.ID]bool{}
	}
	b.refs, b.texts[ref.ID] = append(b.refs, ref), texts
}

// flush erases a batch in one commit, with its audit row, and empties it.
func (e *eraser) flush(ctx context.Context, b *eraseBatch) error {
	if len(b.refs) == 0 {
		return nil
	}
	done, err := e.commit(ctx, b.client, func(tx *store.Tx) (done, left int, err error) { return e.eraseBatch(ctx, tx, b) })
	if b.payouts {
		e.out.Payouts += done
	} else {
		e.out.Payments += done
	}
	b.refs = nil
	return err
}

// commit erases in one commit, or only counts. It returns how many were erased, and adds up
// those that were left.
func (e *eraser) commit(ctx context.Context, client till.ID, erase func(tx *store.Tx) (done, left int, err error)) (done int, err error) {
	run, left := e.s.UpdateBackground, 0
	if e.DryRun {
		run = e.s.View
	}
	if _, err := store.RetryUnknown(ctx, run, func(tx *store.Tx, _ bool) error {
		n, l, err := erase(tx)
		done, left = max(done, n), l // after an unknown commit the first run may have done it
		return err
	}); err != nil {
		return 0, fmt.Errorf("erase rows of client %s: %w", client, err)
	}
	e.out.Left += left
	return done, nil
}

func (e *eraser) eraseBatch(ctx context.Context, tx *store.Tx, b *eraseBatch) (done, left int, err error) {
	if !e.DryRun { // no refund is made meanwhile
		if _, err := tx.LockHeads(ctx, []till.ID{b.client}); err != nil {
			return 0, 0, err
		}
		if err := lookup.LockWords(ctx, tx, b.client); err != nil {
			return 0, 0, err
		}
	}
	rows, err := subjectsIn(ctx, tx, b)
	if err != nil {
		return 0, 0, err
	}
	sums, err := refunds.Sums(ctx, tx, b.refs)
	if err != nil {
		return 0, 0, err
	}
	tokens := map[string]bool{}
	for _, row := range rows {
		if strings.HasPrefix(row.Phone, engine.ErasedMark) {
			continue
		}
		busy, err := isBusy(ctx, tx, row, sums)
		if err != nil {
			return 0, 0, err
		}
		if busy {
			left++
			continue
		}
		if done++; e.DryRun {
			continue
		}
		x, err := e.erased(row, b)
		if err != nil {
			return 0, 0, fmt.Errorf("%s: %w", row.Ref.ID, err)
		}
		if _, err := lookup.Erase(ctx, tx, x, e.phones); err != nil {
			return 0, 0, err
		}
		tokens[x.ErasedPhone] = true
	}
	if done == 0 || e.DryRun {
		return done, left, nil
	}
	kind := "payments"
	if b.payouts {
		kind = "payouts"
	}
	return done, left, store.AuditClients(ctx, tx, []till.ID{b.client}, e.By, ActErase, e.detail(kind, done, tokens))
}

// isBusy reports whether the number of a payment or payout is still needed.
func isBusy(ctx context.Context, tx *store.Tx, row store.Subject, sums map[store.Ref]till.RefundSums) (bool, error) {
	busy, err := lookup.HasOpenWork(ctx, tx, row.Ref)
	return busy || !row.Final || sums[row.Ref].Refunding > 0, err
}

// subjectsIn reads the rows of a batch, in its order.
func subjectsIn(ctx context.Context, tx *store.Tx, b *eraseBatch) (out []store.Subject, err error) {
	payments, payouts := map[store.Ref]*store.PaymentRow{}, map[store.Ref]*store.PayoutRow{}
	if b.payouts {
		payouts, err = tx.Payouts(ctx, b.refs)
	} else {
		payments, err = tx.Payments(ctx, b.refs)
	}
	for _, ref := range b.refs {
		if p := payments[ref]; p != nil {
			out = append(out, p.Subject())
		}
		if p := payouts[ref]; p != nil {
			out = append(out, p.Subject())
		}
	}
	return out, err
}

// erased returns a row without its person.
func (e *eraser) erased(row store.Subject, b *eraseBatch) (*lookup.Erased, error) {
	x := &lookup.Erased{Ref: row.Ref, Payout: b.payouts, ErasedPhone: e.keys.ErasedPhone(row.Phone),
		Before: lookup.WordRow{Ref: row.Ref, Phone: row.Phone, Reference: row.Reference, Amount: row.Amount, Document: row.Document}}
	x.BodyHash, x.BodyVersion = e.keys.ErasedHash(row.BodyHash, row.BodyVersion)
	party := "customer"
	if b.payouts {
		party = "recipient"
	}
	var err error
	x.Document, err = request.EraseDocument(row.Document, party, x.ErasedPhone, b.texts[row.Ref.ID])
	return x, err
}

// detail describes a commit for the audit log of its client.
func (e *eraser) detail(kind string, n int, tokens map[string]bool) string {
	whose := fmt.Sprintf("%d numbers", len(tokens))
	if len(tokens) == 1 {
		for token := range tokens {
			whose = token
		}
	}
	return fmt.Sprintf("%d %s of %s; %s", n, kind, whose, e.Reason)
}

// auditHouse writes the act into the installation's log, also if nothing was found.
func (e *eraser) auditHouse(ctx context.Context) error {
	if e.DryRun {
		return nil
	}
	whose := fmt.Sprintf("%d erasures", len(e.Erasures))
	if len(e.Erasures) == 1 {
		switch x := e.Erasures[0]; {
		case x.Phone != "":
			whose = e.keys.ErasedPhone(x.Phone)
		case x.Token != "":
			whose = x.Token
		default:
			whose = "everybody before " + x.Before.String()
		}
	}
	detail := fmt.Sprintf("%s: %d payments, %d payouts, %d checkouts, %d left; %s", whose, e.out.Payments, e.out.Payouts, e.out.Checkouts, e.out.Left, e.Reason)
	return e.s.Update(ctx, func(tx *store.Tx) error {
		return store.AuditClients(ctx, tx, []till.ID{till.House}, e.By, ActErase, detail)
	})
}
