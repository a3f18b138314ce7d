package main

import (
	"fmt"
	"strings"
	"time"

	"till"
	"till/engine"
	"till/provider/simulator"
	"till/secret"
	"till/store"
)

// order is one payment or payout that the storm's client asks for.
type order struct {
	path, method, country, currency string
	phone, party                    string
	amount                          int
	key                             till.ID
}

func (o *order) body() map[string]any {
	return map[string]any{"method": o.method, "country": o.country, "idempotency_key": o.key.String(),
		"amount": map[string]string{"value": fmt.Sprint(o.amount), "currency": o.currency}, o.party: map[string]string{"phone": o.phone}}
}

// market is where an order can go, with the numbers of its operator: one for
// each order that goes well, and those that do not.
type market struct {
	method, country, currency, well string // well with five digits of the order's own
	payment, payout                 []string
}

var markets = []market{
	{"mtn_momo", "CG", "XAF", "2420651%05d", []string{"242063123451", "242063123452", "242063123470", "242063123473", "242063123474", "242063123454"},
		[]string{"242063123451", "242063123455", "242063123473", "242063123474"}},
	{"airtel_money", "CG", "XAF", "2420551%05d", []string{"242051230002", "242051230004", "242051230013", "242051230022", "242051230014"},
		[]string{"242051230005", "242051230004", "242051230013", "242051230023"}},
	{"mpesa", "KE", "KES", "254711%05d5", []string{"254710001032", "254710100001", "254710001037", "254710000129"},
		[]string{"254710002040", "254710100008"}},
	{"mtn_momo", "CM", "XAF", "237671%05d0", []string{"237671111039", "237671111049", "237671111129"},
		[]string{"237671111089", "237671111119"}},
}

// orders are payments and payouts in turns over all markets; every fourth goes
// to a number with which it goes badly.
func orders(payments, payouts int) []order {
	now := till.TimeOf(time.Now())
	var all []order
	for i := range payments + payouts {
		m := &markets[i%len(markets)]
		o := order{path: "/payments", party: "customer", method: m.method, country: m.country, currency: m.currency,
			amount: 100 * (10 + i), key: till.NewID(now)}
		bad := m.payment
		// The payouts are spread over the payments.
		if (i+1)*payouts/(payments+payouts) > i*payouts/(payments+payouts) {
			o.path, o.party, bad = "/payouts", "recipient", m.payout
		}
		o.phone = fmt.Sprintf(m.well, 55_000+i)
		if n := i / len(markets); n%4 == 3 && m.method != "mpesa" || n%8 == 3 {
			o.phone = bad[(n/4)%len(bad)]
		}
		all = append(all, o)
	}
	return all
}

// standing is a payment or payout as Till has it.
type standing struct {
	kind, id, reference, status, connection string
	final, paid, attention                  bool
}

// standings reads all of them.
func (s *storm) standings() (all []standing) {
	s.t.Helper()
	ctx := s.t.Context()
	db, err := store.Open(ctx, store.Config{Path: s.database, Readers: 1})
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	secret, err := secret.Read(s.secretFile())
	if err != nil {
		s.t.Fatal(err)
	}
	in, out := engine.NewKeys(till.SubjectPayment, secret), engine.NewKeys(till.SubjectPayout, secret)
	const page = 200
	err = db.View(ctx, func(tx *store.Tx) error {
		for offset := 0; ; offset += page {
			rows, _, err := tx.ListPayments(ctx, s.client, store.PaymentFilter{}, store.Page{Limit: page, Offset: offset})
			if err != nil {
				return err
			}
			for _, p := range rows {
				all = append(all, standing{"payment", p.ID.String(), in.Reference(p.ClientID, p.IdempotencyKey).String(), string(p.Status), p.Connection, p.Status.Final(), p.Status == till.Success || p.LateEvent != 0, p.Attention})
			}
			if len(rows) < page {
				break
			}
		}
		for offset := 0; ; offset += page {
			rows, _, err := tx.ListPayouts(ctx, s.client, store.PaymentFilter{}, store.Page{Limit: page, Offset: offset})
			if err != nil {
				return err
			}
			for _, p := range rows {
				all = append(all, standing{"payout", p.ID.String(), out.Reference(p.ClientID, p.IdempotencyKey).String(), string(p.Status), p.Connection, p.Status.Final(), p.Status == till.PayoutSuccess || p.LateEvent != 0, p.Attention})
			}
			if len(rows) < page {
				return nil
			}
		}
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// tail12 is what all operators are told of an id, or of a reference, each in its
// own way: M-Pesa takes no more of a payment than its last twelve digits.
func tail12(id string) string {
	id = strings.ToLower(strings.ReplaceAll(id, "-", ""))
	return id[max(0, len(id)-12):]
}

// entry is what the operators have of a payment or payout.
type entry struct {
	taken, moved int
	connection   string
	never        bool // it is never decided
}

func (s *storm) entries() map[string]*entry {
	out := map[string]*entry{}
	for name, book := range s.books {
		now := book.Now()
		for _, e := range book.Entries() {
			key := e.Kind + " " + tail12(e.External)
			if out[key] == nil {
				out[key] = &entry{}
			}
			x := out[key]
			x.taken++
			x.connection, x.never = name, e.Plan.State == simulator.Open
			if state, _ := e.StateAt(now); state == simulator.Success {
				x.moved++
			}
		}
	}
	return out
}

// settle waits until nothing is left to find out.
func (s *storm) settle(most time.Duration) {
	s.t.Helper()
	for end := time.Now().Add(most); s.compare(false) > 0 && !s.t.Failed(); {
		if time.Now().After(end) {
			return // the last comparison shows what is left
		}
		<-time.After(500 * time.Millisecond)
	}
}

// compare holds what Till says against the operators' books. What must never
// be is an error at once; the rest is counted, and an error at the end.
func (s *storm) compare(last bool) (unsettled int) {
	t := s.t
	t.Helper()
	standings := s.standings() // before the books, in which money moves before Till can know of it
	entries := s.entries()
	counts := map[string]int{}
	for _, p := range standings {
		x := entries[p.kind+" "+tail12(p.id)]
		if x == nil {
			x = entries[p.kind+" "+tail12(p.reference)]
		}
		if x == nil {
			x = &entry{}
		}
		what := fmt.Sprintf("%s %s on %s is %s (paid %v, attention %v); the operator took it %d times, and money moved %d times",
			p.kind, p.id, p.connection, p.status, p.paid, p.attention, x.taken, x.moved)
		switch {
		case x.taken > 1, x.moved > 1:
			t.Errorf("twice: %s", what)
		case x.taken == 1 && x.connection != p.connection:
			t.Errorf("elsewhere, on %s: %s", x.connection, what)
		case p.paid && x.moved == 0:
			t.Errorf("invented: %s", what)
		}
		counts[p.kind+" "+p.status]++
		if p.paid && !strings.Contains(p.status, "success") {
			counts[p.kind+" paid late"]++
		}
		// The answer to a push may be lost with its callback, or the push itself:
		// M-Pesa can be asked by no name of ours, so a person must check.
		lost := p.connection == "mpesa" && p.kind == "payment" && !p.final && p.attention
		if lost && !x.never {
			counts["lost pushes"]++
		}
		settled := p.final && p.paid == (x.moved == 1) || !p.final && x.never || lost
		switch {
		case !settled:
			unsettled++
			if last {
				t.Errorf("unsettled: %s", what)
			}
		case last && !p.final:
			t.Logf("open, as it should be: %s", what)
		}
	}
	if last {
		t.Logf("%d kills, %v", s.kills, counts)
	}
	return unsettled
}
