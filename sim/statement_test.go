package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"till"
	"till/books"
	"till/collect"
	"till/engine"
	"till/payout"
	"till/provider"
	"till/provider/simulator"
	"till/reconcile"
	"till/store"
	"till/store/matching"
)

const statementHeader = "time,reference,external_id,receipt,amount,currency,status,direction"

var statementMapping = reconcile.Mapping{Success: []string{"Done"}, Incoming: []string{"in"}, Outgoing: []string{"out"}}

// statement returns the operator's statement, written of its book.
func (w *World) statement(operator string) (lines []string) {
	o := w.operators[operator]
	for _, e := range o.book.Entries() {
		if state, _ := e.StateAt(o.book.Now()); state == simulator.Success {
			direction := map[string]string{"payment": "in", "payout": "out"}[e.Kind]
			lines = append(lines, fmt.Sprintf("%s,%s,,%s,%s,%s,Done,%s", e.At.UTC().Format(time.RFC3339), e.Reference, e.Receipt, e.Amount, e.Currency, direction))
		}
	}
	return lines
}

// apply compares a statement of MTN's with our books and applies it. A person whose command did
// not do everything runs it again.
func (w *World) apply(lines []string) {
	w.T.Helper()
	text := statementHeader + "\n" + strings.Join(lines, "\n") + "\n"
	from, to := w.store.Now().Add(-24*time.Hour), w.store.Now().Add(time.Hour)
	w.must(w.Command(func(ctx context.Context, s *store.Store) error {
		c := engine.Config{Store: s, Secret: secretText, Ring: w.ring, Connections: map[string]provider.Provider{}, AcceptOnly: true}
		in, out := collect.New(c), payout.New(c)
		end, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		defer func() { in.Close(end); out.Close(end) }()
		r, err := reconcile.Compare(ctx, s, reconcile.Options{Connection: "mtnmomo", Mapping: statementMapping, File: strings.NewReader(text), From: from, To: to, Plan: true, All: true})
		if err != nil {
			return err
		}
		done, err := reconcile.Apply(ctx, s, r, reconcile.ApplyOptions{By: "Awa", Name: "april.csv", Payments: in.ResolveAll, Payouts: out.ResolveAll})
		if err == nil && done.Refused > 0 {
			w.log.Warn("statement not applied", "refusals", done.Refusals)
			err = fmt.Errorf("%w: %d lines were refused", errCrashed, done.Refused)
		}
		return err
	}))
}

// openStray returns the only open stray.
func (w *World) openStray() (id till.ID) {
	all, err := books.ListStrays(context.Background(), w.store, matching.StrayFilter{Limit: 10})
	if err != nil || len(all) != 1 {
		w.T.Fatalf("%d strays are open, %v", len(all), err)
	}
	return all[0].ID
}

// attribute gives a stray's money to the client.
func (w *World) attribute(id till.ID) {
	w.must(w.Command(func(ctx context.Context, s *store.Store) error {
		_, err := books.AttributeStray(ctx, s, books.Attribution{Stray: id, Client: w.client.ID, By: "Awa", Evidence: make([]byte, 32), Named: "letter.pdf"})
		return err
	}))
}

func init() {
	stories = append(stories, []story{
		{name: "reconcile and apply", options: Options{Receiver: true, Poll: time.Minute}, settles: 3 * time.Hour, prepare: funded, tell: func(w *World) {
			w.net.Lose("answer mtnmomo GET /collection/v1_0/requesttopay/*", 40)
			w.net.Lose("answer mtnmomo GET /disbursement/v1_0/transfer/*", 40)
			w.Pay("mtnmomo", mtnSilent, 1000)
			w.Send("mtnmomo", mtnSilent, 500)
			time.Sleep(5 * time.Minute)
			lines := w.statement("mtnmomo")
			w.apply(lines)
			w.apply(slices.Clone(lines))
		}},
		{name: "late money of a statement", options: Options{Poll: time.Minute}, settles: time.Minute, tell: func(w *World) {
			o := w.Pay("mtnmomo", mtnLate, 1000)
			time.Sleep(2 * time.Minute)
			w.apply(w.statement("mtnmomo"))
			w.AwaitPaid(o, 3*time.Hour)
			w.apply(w.statement("mtnmomo"))
		}},
		{name: "stray attributed", options: Options{Poll: time.Minute}, tell: func(w *World) {
			w.Pay("mtnmomo", mtnWell, 1000)
			time.Sleep(time.Minute)
			lost := fmt.Sprintf("%s,5f5e1000-0000-4000-8000-00000000000f,,9911223344,700,XAF,Done,in", time.Now().UTC().Format(time.RFC3339))
			w.apply(append(w.statement("mtnmomo"), lost))
			id := w.openStray()
			w.attribute(id)
			w.attribute(id) // once
			w.wantBalance(1700)
		}},
	}...)
}
