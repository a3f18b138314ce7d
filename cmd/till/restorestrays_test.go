package main

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"time"

	"till/books"
	"till/cmd/till/internal/money"
	"till/provider/simulator"
	"till/store"
	"till/store/matching"
)

// applyStatements applies every operator's statement: what its book says that it
// moved. What is lost here and was not asked for again is a stray afterwards.
func (r *restoration) applyStatements() {
	r.t.Helper()
	for connection, book := range r.books {
		file := filepath.Join(r.dir, connection+".csv")
		f, err := os.Create(file)
		if err != nil {
			r.t.Fatal(err)
		}
		w := csv.NewWriter(f)
		w.Write([]string{"time", "reference", "external_id", "receipt", "amount", "currency", "status", "direction"})
		for _, e := range book.Entries() {
			if state, _ := e.StateAt(book.Now()); state != simulator.Success {
				continue
			}
			w.Write([]string{e.At.UTC().Format(time.RFC3339), e.Reference, e.External, e.Receipt, e.Amount, e.Currency, "success",
				map[string]string{"payment": "in", "payout": "out"}[e.Kind]})
		}
		w.Flush()
		if err := w.Error(); err != nil {
			r.t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			r.t.Fatal(err)
		}
		// 1: there are differences left, the strays.
		r.till(1, "reconcile", "--connection", connection, "--statement", file, "--from", "2020-01-01", "--to", "2099-12-31",
			"--apply", "--by", "Awa", "--secret-file", r.secretFile())
	}
}

// strays returns the open strays.
func (r *restoration) strays() (all []*matching.Stray) {
	r.t.Helper()
	r.withStore(func(s *store.Store) (err error) {
		all, err = books.ListStrays(r.t.Context(), s, matching.StrayFilter{})
		return err
	})
	return all
}

// attributeStrays gives each stray to the shop whose customer's number the
// operator shows, and wants one for each order that moved money and is not here.
func (r *restoration) attributeStrays() {
	r.t.Helper()
	open := r.strays()
	for _, sh := range r.shops {
		for _, o := range sh.orders {
			entries, moved := r.entriesOf(o)
			if r.standing(sh, o) != nil || moved == 0 {
				continue
			}
			n := 0
			for _, s := range open {
				if !namedBy(s, &entries[0]) {
					continue
				}
				n++
				r.till(0, "strays", "attribute", s.ID.String(), "--client", sh.client.String(), "--by", "Awa", "--evidence", r.evidence())
				o.found = true
			}
			// The end of an id that has no letter cannot be distinguished from an account
			// number of somebody else's.
			if end := entries[0].External; n != 1 && !(o.method == "mpesa" && o.path == "/payments" && !strings.ContainsAny(end, "ABCDEF")) {
				r.t.Errorf("%s %s of %s moved money, is not here, and is %d strays", o.path, o.phone, sh.name, n)
			}
		}
	}
	if left := r.strays(); len(left) > 0 {
		r.t.Errorf("%d strays are nobody's, such as %s of %s: %s", len(left), left[0].ID, left[0].Connection, money.IdentifiersText(left[0]))
	}
}

// namedBy reports whether a stray is about what an operator has in its book.
func namedBy(s *matching.Stray, e *simulator.Entry) bool {
	plain := func(id string) string { return strings.ReplaceAll(id, "-", "") }
	return e.Receipt != "" && s.Receipt == e.Receipt || e.Reference != "" && plain(s.Reference.String()) == plain(e.Reference)
}
