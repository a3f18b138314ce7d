package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"till"
	"till/collect"
	"till/engine"
	"till/journal"
	"till/payout"
	"till/store"
	"till/store/admin"
	"till/store/lookup"
)

// Limits of Remake: records that are looked up at once, and rows in a commit.
const (
	remakeLookups = 200
	remakeRows    = 100
)

// remakeMargin is how far before the time from which everything is lost a record may have
// been created and still be lost: its commit came later.
const remakeMargin = time.Hour

// RemakeRequest says which journals to make lost payments and payouts from.
type RemakeRequest struct {
	Secret      []byte
	Folders     []string
	LostFrom    till.Time
	SkipDamaged bool // go on with what can be read
	By          string
}

// RemakeResult is what Remake did.
type RemakeResult struct {
	Report            *journal.Report
	Payments, Payouts int // made again
	Clients           int // the same; they have no key
	Retried           int // made again by their clients' retries, and from now on not sent
	Waiting           int // payouts that wait for money
}

// DamagedError means that parts of a journal cannot be read. Nothing was changed.
type DamagedError struct{ Report *journal.Report }

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the journal is damaged in %d places, the first is %s: it was altered, or the disk fails", len(e.Report.Damaged), e.Report.Damaged[0])
}

// lostKey names a payment or payout by what its client knows.
type lostKey struct {
	kind        till.SubjectKind
	client, key till.ID
}

func keyOf(r *journal.Record) lostKey {
	key, _ := till.ParseID(r.Row.IdempotencyKey) // checked when it was read
	return lostKey{r.Kind, r.Client.ID, key}
}

// remaker makes lost rows again.
type remaker struct {
	RemakeRequest
	s            *store.Store
	installation till.Time
	keys         map[till.SubjectKind]engine.Keys
	phones       lookup.PhoneKey
	out          *RemakeResult

	// lost are the ids that are to be made again. Of two creates with one key, the later
	// was committed: the earlier one has failed, or the later would have found it.
	lost map[lostKey]till.ID
	// retried are open rows that clients' retries have made after the restore.
	retried []store.Ref
	clients int // made by the commit under way
}

// Remake makes the payments and payouts again that are in a journal and not in the
// database, under their own ids and keys, after MarkRestored. Each counts as possibly sent:
// the engine asks its operator, and never sends it. A payout whose money came in after the
// backup waits until that is credited; run Remake again then. Release refuses until nothing
// is left. A row that a client's retry has made meanwhile is not sent any more. It commits in
// slices and may be interrupted and repeated, also while the service runs.
func Remake(ctx context.Context, s *store.Store, r RemakeRequest) (*RemakeResult, error) {
	m := &remaker{RemakeRequest: r, s: s, keys: keysOf(r.Secret), out: &RemakeResult{}, lost: map[lostKey]till.ID{}}
	var err error
	if m.phones, err = lookup.NewPhoneKey(r.Secret); err != nil {
		return nil, err
	}
	err = s.View(ctx, func(tx *store.Tx) error {
		i, err := admin.ReadInstallation(ctx, tx)
		if err != nil || i == nil {
			return errors.Join(err, errNeverStarted)
		}
		m.installation = i.CreatedAt
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := m.find(ctx); err != nil {
		return nil, err
	}
	if err := m.note(ctx); err != nil {
		return nil, err
	}
	if err := m.makeAll(ctx); err != nil {
		return m.out, err
	}
	if err := m.markRetried(ctx); err != nil {
		return m.out, err
	}
	m.out.Waiting = len(m.lost)
	return m.out, m.note(ctx)
}

// note writes down how many rows are still to be made.
func (m *remaker) note(ctx context.Context) error {
	return m.s.Update(ctx, func(tx *store.Tx) error { return admin.SetJournalLeft(ctx, tx, len(m.lost)) })
}

// each reads the journal in slices of records that may be lost.
func (m *remaker) each(size int, wanted func(r *journal.Record) bool, f func(slice []*journal.Record) error) (*journal.Report, error) {
	var slice []*journal.Record
	report, err := journal.Read(m.Folders, m.Secret, m.installation, func(r *journal.Record) error {
		if r.Row.CreatedAt < m.LostFrom.Add(-remakeMargin) || !wanted(r) {
			return nil
		}
		if slice = append(slice, r); len(slice) < size {
			return nil
		}
		err := f(slice)
		slice = nil
		return err
	})
	if err == nil && len(slice) > 0 {
		err = f(slice)
	}
	return report, err
}

// find reads all of the journal, changes nothing, and learns what is lost.
func (m *remaker) find(ctx context.Context) (err error) {
	all := func(*journal.Record) bool { return true }
	m.out.Report, err = m.each(remakeLookups, all, func(slice []*journal.Record) error {
		var known map[lostKey]store.Subject
		err := m.s.View(ctx, func(tx *store.Tx) (err error) {
			known, err = knownOf(ctx, tx, slice)
			return err
		})
		if err != nil {
			return err
		}
		for _, r := range slice {
			k, id := keyOf(r), r.Row.Ref.ID
			row, found := known[k]
			switch {
			case !found:
				if before, twice := m.lost[k]; !twice || before.Time() < id.Time() {
					m.lost[k] = id
				}
			case row.Ref.ID != id && !row.Final:
				m.retried = append(m.retried, row.Ref)
			}
		}
		return nil
	})
	if err == nil && len(m.out.Report.Damaged) > 0 && !m.SkipDamaged {
		err = &DamagedError{m.out.Report}
	}
	return err
}

// knownOf returns those of some records whose keys the database has.
func knownOf(ctx context.Context, tx *store.Tx, records []*journal.Record) (map[lostKey]store.Subject, error) {
	out := make(map[lostKey]store.Subject, len(records))
	var payouts []store.Ref
	for _, r := range records {
		k := keyOf(r)
		if r.Kind == till.SubjectPayout {
			payouts = append(payouts, store.Ref{Client: k.client, ID: k.key})
			continue
		}
		p, err := tx.PaymentByKey(ctx, k.client, k.key)
		if err != nil {
			return nil, err
		}
		if p != nil {
			out[k] = p.Subject()
		}
	}
	found, err := tx.PayoutsByKey(ctx, payouts)
	for ref, p := range found {
		out[lostKey{till.SubjectPayout, ref.Client, ref.ID}] = p.Subject()
	}
	return out, err
}

// makeAll makes what is lost again.
func (m *remaker) makeAll(ctx context.Context) error {
	isLost := func(r *journal.Record) bool { return m.lost[keyOf(r)] == r.Row.Ref.ID }
	_, err := m.each(remakeRows, isLost, func(slice []*journal.Record) error {
		// A record may be there twice, if a write was repeated.
		slice = slices.CompactFunc(sortedByID(slice), func(a, b *journal.Record) bool { return a.Row.Ref == b.Row.Ref })
		var made []*journal.Record
		_, err := store.RetryUnknown(ctx, m.s.UpdateBackground, func(tx *store.Tx, _ bool) (err error) {
			m.clients = 0
			made, err = m.makeSlice(ctx, tx, slice)
			return err
		})
		if err != nil {
			return err
		}
		m.out.Clients += m.clients
		for _, r := range made {
			delete(m.lost, keyOf(r))
			if r.Kind == till.SubjectPayout {
				m.out.Payouts++
			} else {
				m.out.Payments++
			}
		}
		return nil
	})
	return err
}

func sortedByID(records []*journal.Record) []*journal.Record {
	slices.SortFunc(records, func(a, b *journal.Record) int {
		return slices.Compare(append(a.Row.Ref.ID.Bytes(), a.Row.Ref.Client[:]...), append(b.Row.Ref.ID.Bytes(), b.Row.Ref.Client[:]...))
	})
	return records
}

// makeSlice makes records again in one commit, and returns those that are made.
func (m *remaker) makeSlice(ctx context.Context, tx *store.Tx, slice []*journal.Record) (made []*journal.Record, err error) {
	heads, err := m.lockClients(ctx, tx, slice)
	if err != nil {
		return nil, err
	}
	known, err := knownOf(ctx, tx, slice)
	if err != nil {
		return nil, err
	}
	var payments []*store.PaymentRow
	var payouts []*store.PayoutRow
	for _, r := range slice {
		if _, found := known[keyOf(r)]; found {
			made = append(made, r) // by an earlier run of this commit, or by its client
		} else if r.Kind == till.SubjectPayout {
			payouts = append(payouts, r.Payout())
		} else {
			payments = append(payments, r.Payment())
		}
	}
	if err := collect.Remake(ctx, tx, heads, m.keys[till.SubjectPayment], payments, m.By); err != nil {
		return nil, err
	}
	poor, err := payout.Remake(ctx, tx, heads, m.keys[till.SubjectPayout], payouts, m.By)
	if err != nil {
		return nil, err
	}
	left := make(map[till.ID]bool, len(poor))
	for _, p := range poor {
		left[p.ID] = true
	}
	var written []*journal.Record
	for _, r := range slice {
		if _, found := known[keyOf(r)]; !found && !left[r.Row.Ref.ID] {
			written = append(written, r)
		}
	}
	if err := m.follow(ctx, tx, written); err != nil {
		return nil, err
	}
	return append(made, written...), tx.SaveHeads(ctx, heads)
}

// lockClients locks the heads of the records' clients. A client that was lost as well is made
// again, without a key and with the wallets that the records need.
func (m *remaker) lockClients(ctx context.Context, tx *store.Tx, slice []*journal.Record) (map[till.ID]*store.Head, error) {
	var ids []till.ID
	for _, r := range slice {
		ids = append(ids, r.Client.ID)
	}
	there, err := tx.ClientNames(ctx, ids)
	if err != nil {
		return nil, err
	}
	absent := map[till.ID]*till.Client{}
	for _, r := range slice {
		if _, found := there[r.Client.ID]; !found && absent[r.Client.ID] == nil {
			c := r.Client
			c.CreatedAt = c.ID.Time()
			absent[c.ID] = &c
			if err := tx.InsertClient(ctx, &c); err != nil {
				return nil, err
			}
		}
	}
	heads, err := tx.LockHeads(ctx, ids)
	if err != nil {
		return nil, err
	}
	var audit []*store.AuditRow
	for _, c := range absent {
		h := heads[c.ID]
		audit = append(audit, &store.AuditRow{ClientID: c.ID, Sequence: h.NextAudit(), At: h.NextTime(), SubjectID: c.ID, Actor: m.By,
			Action: "client.remake", Detail: string(c.Mode) + " client, made again from the journal without a key"})
	}
	type wallet struct {
		client   till.ID
		currency string
	}
	ensured := map[wallet]bool{}
	for _, r := range slice {
		if w := (wallet{r.Client.ID, r.Row.Amount.Currency}); !ensured[w] {
			ensured[w] = true
			if err := tx.EnsureWallet(ctx, w.client, w.currency, heads[w.client].NextTime()); err != nil {
				return nil, err
			}
		}
	}
	if len(audit) == 0 {
		return heads, nil
	}
	m.clients = len(audit)
	return heads, tx.InsertAudit(ctx, audit)
}

// follow writes what relies on rows being made in the order of their ids: the indexes of
// phones and words, and the parts of busy hours.
func (m *remaker) follow(ctx context.Context, tx *store.Tx, written []*journal.Record) error {
	first := map[till.ID]till.Time{}
	for _, r := range written {
		client, at := r.Client.ID, r.Row.CreatedAt
		if err := lookup.InsertPhones(tx, client, m.phones, r.Kind == till.SubjectPayout, []lookup.PhoneRow{{ID: r.Row.Ref.ID, Phone: r.Row.Phone}}); err != nil {
			return err
		}
		word := &lookup.WordRow{Ref: r.Row.Ref, Phone: r.Row.Phone, Reference: r.Row.Reference, Amount: r.Row.Amount, Document: r.Row.Document}
		if err := lookup.InsertWords(tx, m.phones, r.Kind == till.SubjectPayout, []*lookup.WordRow{word}); err != nil {
			return err
		}
		if before, found := first[client]; !found || at < before {
			first[client] = at
		}
	}
	for client, at := range first {
		if err := tx.ForgetParts(ctx, client, at); err != nil {
			return err
		}
	}
	return nil
}

// markRetried keeps rows from being sent that clients' retries have made: what they repeat
// may have been sent before the loss.
func (m *remaker) markRetried(ctx context.Context) error {
	for _, ref := range m.retried {
		marked := false
		err := m.s.UpdateBackground(ctx, func(tx *store.Tx) error {
			marked = false
			steps, err := admin.LockOpenSteps(ctx, tx, ref.Client, before(ref.ID), true, 1)
			if err != nil || len(steps) == 0 || steps[0].SubjectID != ref.ID || !engine.Unsent(steps[0]) {
				return err
			}
			rows, err := subjectsOf(ctx, tx, steps)
			if err != nil {
				return err
			}
			row, found := rows[ref.ID]
			if !found || row.Final {
				return nil
			}
			st := steps[0]
			engine.MarkRestored(st, row.Connection, tx.Now())
			marked = true
			if err := admin.MarkRestored(ctx, tx, steps); err != nil {
				return err
			}
			return tx.InsertSends(ctx, []*store.Attempt{engine.RestoredSend(st, row, m.keys[st.Kind])})
		})
		if err != nil {
			return err
		}
		if marked {
			m.out.Retried++
		}
	}
	return nil
}

// before returns the id right before another.
func before(id till.ID) till.ID {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]--; id[i] != 0xff {
			break
		}
	}
	return id
}
