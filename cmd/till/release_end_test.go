package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/provider/sandbox"
	"till/secret"
	"till/store"
	"till/store/webhooks"
	"till/webhook"
)

// release is a fixture that this program takes over.
type release struct {
	*killing
	secret string // the file
	open   []store.Subject
	kinds  map[till.ID]till.SubjectKind
}

// goOn lets this program bring to its end what was under way when the release's server was
// killed: payments and payouts by the operator's answers, or by a person where the operator
// never answers, and deliveries to the webhook receiver.
func goOn(t *testing.T, database string, a *releaseAnswers) {
	t.Helper()
	dir := t.TempDir()
	r := &release{secret: filepath.Join(dir, "till.secret"), kinds: map[till.ID]till.SubjectKind{}, killing: &killing{t: t, dir: dir, database: database,
		book: filepath.Join(dir, "sandbox.db"), admin: "127.0.0.1:0", key: a.Key, answered: map[string]string{}}}
	if err := os.WriteFile(r.secret, []byte(a.Secret), 0o600); err != nil {
		t.Fatal(err)
	}
	r.readOpen()
	r.writeBook()
	loopback := []string{"--webhook-allow", "127.0.0.0/8"}
	s := r.start(append(loopback, "--role", "api")...) // nothing is sent to the receiver's old port
	told := r.takeOver()
	r.end(s, syscall.SIGTERM)

	s = r.start(loopback...)
	r.awaitEnd("the operator has decided", func(p *store.Subject) bool { return p.Final || neverEnds(p.Phone) })
	r.resolve()
	r.awaitEnd("all have ended", func(p *store.Subject) bool { return p.Final })
	told.await(r.killing)
	r.end(s, syscall.SIGTERM)
	r.verify()
	told.compare(r.killing)
	r.compareOpen()
}

// neverEnds reports whether the sandbox's story of a phone needs a person: the operator
// never decides, or moves another amount.
func neverEnds(phone string) bool {
	return strings.HasSuffix(phone, "0014") || strings.HasSuffix(phone, "0019")
}

// view reads the database with the only client's id.
func (r *release) view(f func(ctx context.Context, tx *store.Tx, client till.ID) error) {
	r.t.Helper()
	r.withStore(func(s *store.Store) error {
		ctx := r.t.Context()
		return s.View(ctx, func(tx *store.Tx) error {
			clients, err := tx.Clients(ctx, store.EveryClient, 2)
			if err == nil && len(clients) != 1 {
				err = fmt.Errorf("%d clients", len(clients))
			}
			if err != nil {
				return err
			}
			return f(ctx, tx, clients[0].ID)
		})
	})
}

// readOpen reads what is under way. Each kind must be there, or nothing is shown.
func (r *release) readOpen() {
	r.t.Helper()
	r.view(func(ctx context.Context, tx *store.Tx, client till.ID) error {
		for _, status := range []till.Status{till.Pending, till.Processing} {
			before := len(r.open)
			payments, _, err := tx.ListPayments(ctx, client, store.PaymentFilter{Status: status}, store.Page{Limit: 100})
			if err != nil {
				return err
			}
			for _, p := range payments {
				r.open, r.kinds[p.ID] = append(r.open, p.Subject()), till.SubjectPayment
			}
			payouts, _, err := tx.ListPayouts(ctx, client, store.PaymentFilter{Status: status}, store.Page{Limit: 100})
			if err != nil {
				return err
			}
			for _, p := range payouts {
				r.open, r.kinds[p.ID] = append(r.open, p.Subject()), till.SubjectPayout
			}
			if len(payments) == 0 || len(payouts) == 0 || len(r.open) == before {
				return fmt.Errorf("the fixture has %d payments and %d payouts that are %s", len(payments), len(payouts), status)
			}
		}
		return nil
	})
}

// writeBook gives the operator what it had: the requests that were sent to it, with the
// references and at the times of then.
func (r *release) writeBook() {
	r.t.Helper()
	ctx := r.t.Context()
	var at till.Time
	o, err := sandbox.Open(ctx, sandbox.Config{Path: r.book, Now: func() till.Time { return at }})
	if err != nil {
		r.t.Fatal(err)
	}
	defer o.Close()
	known := 0
	r.view(func(ctx context.Context, tx *store.Tx, client till.ID) error {
		for _, p := range r.open {
			step, err := tx.Step(ctx, p.Ref)
			if err != nil {
				return err
			}
			if step == nil || step.Sends == 0 || strings.HasSuffix(p.Phone, "0012") { // its request never arrives
				continue
			}
			attempts, err := tx.Attempts(ctx, p.Ref)
			if err != nil || len(attempts) == 0 {
				return errors.Join(err, fmt.Errorf("%s was sent without an attempt", p.Ref.ID))
			}
			at = attempts[0].StartedAt
			submit := o.Submit
			if r.kinds[p.Ref.ID] == till.SubjectPayout {
				submit = o.Payouts().Submit
			}
			if _, err := submit(ctx, provider.Request{Client: client, ID: p.Ref.ID, Reference: attempts[0].Reference, Method: p.Method, Country: p.Country,
				Phone: p.Phone, Amount: p.Amount, ExpiresAt: p.ExpiresAt}); err != nil {
				return err
			}
			known++
		}
		return nil
	})
	if known == 0 || known == len(r.open) {
		r.t.Fatalf("the operator knows %d of %d; want some", known, len(r.open))
	}
}

// takeOver listens in the place of the receiver that the enabled endpoint had. It knows the
// secret that the release sealed.
func (r *release) takeOver() *receiver {
	r.t.Helper()
	told := &receiver{t: r.t, path: "/hooks/taken-over", book: map[int64]int{}, refused: map[int64]bool{}}
	var sealed *webhooks.Endpoint
	r.withStore(func(s *store.Store) error {
		ring, err := secret.OpenRing(r.t.Context(), s, r.secret)
		if err != nil {
			return err
		}
		sealer, err := webhook.NewSecretSealer(ring)
		if err != nil {
			return err
		}
		return s.View(r.t.Context(), func(tx *store.Tx) error {
			clients, err := tx.Clients(r.t.Context(), store.EveryClient, 1)
			if err != nil {
				return err
			}
			all, err := webhooks.Endpoints(r.t.Context(), tx, clients[0].ID, 10)
			for _, e := range all {
				if e.Enabled {
					sealed = e
				}
			}
			if err != nil || sealed == nil {
				return errors.Join(err, errors.New("no endpoint is enabled"))
			}
			rows, err := webhooks.DeliveriesBetween(r.t.Context(), tx, sealed.Ref(), 0, sealed.LastEvent)
			for _, d := range rows {
				if d.Status == webhooks.DeliveryPending && (told.from == 0 || d.Sequence <= told.from) {
					told.from = d.Sequence - 1
				}
			}
			if err != nil || told.from == 0 || sealed.Cursor == sealed.LastEvent {
				return errors.Join(err, errors.New("nothing is left to deliver"))
			}
			told.id = sealed.ID.String()
			told.secret, err = sealer.Open(sealed.Secret, sealed.ClientID, sealed.ID)
			return err
		})
	})
	told.server = httptest.NewServer(told)
	r.t.Cleanup(told.server.Close)
	r.call(http.MethodPatch, "/webhook-endpoints/"+told.id, `{"url":"`+told.server.URL+told.path+`"}`, &struct{}{})
	return told
}

// awaitEnd waits until something holds of all that was under way.
func (r *release) awaitEnd(what string, done func(p *store.Subject) bool) {
	r.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; <-time.After(200 * time.Millisecond) {
		var left []string
		for _, p := range r.read() {
			if !done(&p) {
				left = append(left, p.Phone+" "+p.Status)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("it does not come that %s: %v", what, left)
		}
	}
}

// read reads again what was under way.
func (r *release) read() (all []store.Subject) {
	r.t.Helper()
	r.view(func(ctx context.Context, tx *store.Tx, _ till.ID) error {
		all = nil // the transaction may be tried again
		for _, was := range r.open {
			if r.kinds[was.Ref.ID] == till.SubjectPayout {
				p, err := tx.Payout(ctx, was.Ref)
				if err != nil {
					return err
				}
				all = append(all, p.Subject())
				continue
			}
			p, err := tx.Payment(ctx, was.Ref)
			if err != nil {
				return err
			}
			all = append(all, p.Subject())
		}
		return nil
	})
	return all
}

// resolve ends by hand what the operator never decides: as a success where it moved money.
func (r *release) resolve() {
	r.t.Helper()
	evidence := filepath.Join(r.dir, "letter.txt")
	if err := os.WriteFile(evidence, []byte("the operator's letter"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	n := 0
	for _, p := range r.read() {
		if p.Final {
			continue
		}
		as := "failed"
		if strings.HasSuffix(p.Phone, "0019") {
			as = "success"
		}
		if code, out := r.run("", string(r.kinds[p.Ref.ID]), "resolve", p.Ref.ID.String(), "--as", as, "--evidence", evidence, "--by", "Anne",
			"--database", r.database, "--secret-file", r.secret); code != 0 {
			r.t.Fatalf("resolve a %s of %s: %d %s", r.kinds[p.Ref.ID], p.Phone, code, out)
		}
		n++
	}
	if n == 0 {
		r.t.Error("nothing needed a person")
	}
}

// compareOpen holds the ends against the operator's book (I8), and wants that no money is
// held any more.
func (r *release) compareOpen() {
	r.t.Helper()
	ctx := r.t.Context()
	o, err := sandbox.Open(ctx, sandbox.Config{Path: r.book})
	if err != nil {
		r.t.Fatal(err)
	}
	defer o.Close()
	moved := map[till.ID]int{}
	debits, err := o.Debits(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, d := range debits {
		moved[d.Payment]++
	}
	credits, err := o.Credits(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, c := range credits {
		moved[c.Payout]++
	}
	ends := map[string]int{}
	for _, p := range r.read() {
		want := 0
		if p.Status == string(till.Success) {
			want = 1
		}
		if moved[p.Ref.ID] != want {
			r.t.Errorf("%s %s (%s) is %s, and the operator moved money %d times", r.kinds[p.Ref.ID], p.Ref.ID, p.Phone, p.Status, moved[p.Ref.ID])
		}
		ends[string(r.kinds[p.Ref.ID])+" "+p.Status]++
	}
	r.view(func(ctx context.Context, tx *store.Tx, client till.ID) error {
		w, err := tx.Wallet(ctx, client, "XAF")
		if err == nil && w.Reserved != 0 {
			r.t.Errorf("%d are reserved, and no payout is open", w.Reserved)
		}
		return err
	})
	r.t.Logf("%d were under way; %v", len(r.open), ends)
}
