package privacy

import (
	"bytes"
	"context"
	"fmt"

	"till"
	"till/store"
	"till/store/checkouts"
	"till/store/lookup"
)

// lastID is beyond every id that is made.
var lastID = till.ID(bytes.Repeat([]byte{0xff}, len(till.ID{})))

// PersonRecord is a payment or a payout about a phone, with its events, or a checkout that
// names the phone or has asked it. One of the three is set.
type PersonRecord struct {
	Client   till.ID
	Payment  *store.PaymentRow
	Payout   *store.PayoutRow
	Checkout *checkouts.Row // its phone is empty if it is another's
	Asks     []till.Ask     // of the checkout: all, and the phones of others are empty
	Events   []*store.EventRow
}

// The limits of one read of PersonData.
const (
	personClients = 1_000
	personRefs    = 100    // payments or payouts that are read at once
	personScanned = 10_000 // rows whose phones are compared at once, where there is no index yet
)

// PersonData calls each with every payment, payout and checkout about a phone, client by client,
// each kind oldest first. It reads in many snapshots; what is made meanwhile may be missing.
func PersonData(ctx context.Context, s *store.Store, key lookup.PhoneKey, phone string, each func(r *PersonRecord) error) error {
	return personData(ctx, s, personReader{key: key, phone: phone, each: each, refs: personRefs, scanned: personScanned})
}

func personData(ctx context.Context, s *store.Store, reader personReader) error {
	for after, more := (till.ID{}), true; more; {
		var clients []*till.Client
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			clients, err = tx.Clients(ctx, after, personClients)
			return err
		})
		if err != nil {
			return fmt.Errorf("read the clients: %w", err)
		}
		for _, c := range clients {
			p := reader
			p.s, p.client = s, c.ID
			if err := p.readAll(ctx); err != nil {
				return fmt.Errorf("read what client %s has: %w", c.ID, err)
			}
			after = c.ID
		}
		more = len(clients) == personClients
	}
	return nil
}

// personReader reads what one client has about a phone.
type personReader struct {
	s      *store.Store
	key    lookup.PhoneKey
	phone  string
	client till.ID
	each   func(r *PersonRecord) error

	refs, scanned int // personRefs and personScanned; a test has less
}

// readAll reads what the index has, and then the rows that it does not have yet. Where it
// ends is read first: a row that enters the index meanwhile is read once.
func (p *personReader) readAll(ctx context.Context) error {
	var cursor lookup.Cursor
	err := p.s.View(ctx, func(tx *store.Tx) (err error) {
		cursor, err = lookup.ReadPhoneCursor(ctx, tx, p.client)
		return err
	})
	if err != nil {
		return err
	}
	for _, k := range []struct {
		payouts bool
		end     till.ID
	}{{false, cursor.Payment}, {true, cursor.Payout}} {
		indexed := func(tx *store.Tx, after till.ID) (refs []store.Ref, next till.ID, more bool, err error) {
			refs, err = lookup.RefsByPhoneAfter(ctx, tx, p.client, p.key.Mark(p.phone), k.payouts, after, k.end, p.refs)
			if len(refs) > 0 {
				next = refs[len(refs)-1].ID
			}
			return refs, next, len(refs) == p.refs, err
		}
		if err := p.pages(ctx, k.payouts, till.ID{}, indexed); err != nil {
			return err
		}
		scanned := func(tx *store.Tx, after till.ID) (refs []store.Ref, next till.ID, more bool, err error) {
			rows, err := lookup.PhonesAfter(ctx, tx, p.client, k.payouts, after, lastID, p.scanned)
			for i, r := range rows {
				next = r.ID
				if r.Phone != p.phone {
					continue
				}
				if refs = append(refs, store.Ref{Client: p.client, ID: r.ID}); len(refs) == p.refs {
					return refs, next, i < len(rows)-1 || len(rows) == p.scanned, nil
				}
			}
			return refs, next, len(rows) == p.scanned, err
		}
		if err := p.pages(ctx, k.payouts, k.end, scanned); err != nil {
			return err
		}
	}
	return p.readCheckouts(ctx)
}

// readCheckouts reads the checkouts about the phone. Their own indexes have them all.
func (p *personReader) readCheckouts(ctx context.Context) error {
	for after, more := (till.ID{}), true; more; {
		var found []*PersonRecord
		err := p.s.View(ctx, func(tx *store.Tx) error {
			ids, err := checkouts.OfPhone(ctx, tx, p.client, p.phone, after, p.refs)
			if more = len(ids) == p.refs; err != nil {
				return err
			}
			found = nil
			for _, id := range ids {
				r, err := p.checkout(ctx, tx, store.Ref{Client: p.client, ID: id})
				if err != nil {
					return err
				}
				found = append(found, r)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, r := range found {
			after = r.Checkout.ID
			if err := p.each(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkout reads a checkout, without the phones of others.
func (p *personReader) checkout(ctx context.Context, tx *store.Tx, ref store.Ref) (*PersonRecord, error) {
	row, err := checkouts.Get(ctx, tx, ref)
	if err != nil {
		return nil, err
	}
	r := &PersonRecord{Client: p.client, Checkout: row}
	if r.Asks, err = checkouts.Asks(ctx, tx, ref); err != nil {
		return nil, err
	}
	if row.Phone != p.phone {
		row.Phone = ""
	}
	for i := range r.Asks {
		if r.Asks[i].Phone != p.phone {
			r.Asks[i].Phone = ""
		}
	}
	return r, nil
}

// pages reads pages of payments, or of payouts, until there is none.
func (p *personReader) pages(ctx context.Context, payouts bool, after till.ID, page func(tx *store.Tx, after till.ID) (refs []store.Ref, next till.ID, more bool, err error)) error {
	for more := true; more; {
		var found []*PersonRecord
		err := p.s.View(ctx, func(tx *store.Tx) error {
			refs, next, left, err := page(tx, after)
			if err != nil {
				return err
			}
			after, more = next, left
			found, err = p.records(ctx, tx, payouts, refs)
			return err
		})
		if err != nil {
			return err
		}
		for _, r := range found {
			if err := p.each(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// records reads payments, or payouts, with their events. A mark may be another phone's too.
func (p *personReader) records(ctx context.Context, tx *store.Tx, payouts bool, refs []store.Ref) (out []*PersonRecord, err error) {
	if len(refs) == 0 {
		return nil, nil
	}
	if payouts {
		rows, err := tx.Payouts(ctx, refs)
		if err != nil {
			return nil, err
		}
		for _, ref := range refs {
			if row := rows[ref]; row != nil && row.Phone == p.phone {
				r := &PersonRecord{Client: p.client, Payout: row}
				if r.Events, err = tx.PayoutEvents(ctx, ref); err != nil {
					return nil, err
				}
				out = append(out, r)
			}
		}
		return out, nil
	}
	rows, err := tx.Payments(ctx, refs)
	if err != nil {
		return nil, err
	}
	for _, ref := range refs {
		if row := rows[ref]; row != nil && row.Phone == p.phone {
			r := &PersonRecord{Client: p.client, Payment: row}
			if r.Events, err = tx.PaymentEvents(ctx, ref); err != nil {
				return nil, err
			}
			out = append(out, r)
		}
	}
	return out, nil
}
