package books_test

import (
	"flag"
	"io"
	"testing"
	"time"

	"till"
	"till/bench/seed"
	"till/books"
	"till/store"
	"till/store/storetest"
)

var benchRows = flag.Int64("rows", 100_000, "payments in the books that benchmarks read")

// newSeeded makes whole books of one client, measured and sealed.
func newSeeded(b *testing.B, e storetest.Engine) (*store.Store, *till.Client) {
	b.Helper()
	s := storetest.Open(b, e.Config(b))
	client := storetest.NewClient(b, s, till.Test)
	to := s.Now().Add(-4 * 24 * time.Hour)
	if err := seed.Payments(b.Context(), s, seed.Config{Client: client.ID, Rows: *benchRows, From: to.Add(-60 * 24 * time.Hour), To: to, Books: true}); err != nil {
		b.Fatal(err)
	}
	if _, err := books.ExtendChains(b.Context(), s, storetest.ChainKey); err != nil {
		b.Fatal(err)
	}
	if _, err := s.AnalyzeNewTables(b.Context()); err != nil {
		b.Fatal(err)
	}
	return s, client
}

// BenchmarkVerify proves books of -rows payments:
//
//	go run ./internal/db/pgtest/withpg go test ./books -run '^$' -bench Verify -benchtime 1x -timeout 30m -rows 1000000
func BenchmarkVerify(b *testing.B) {
	for _, e := range storetest.Engines() {
		b.Run(e.Name, func(b *testing.B) {
			s, _ := newSeeded(b, e)
			for b.Loop() {
				r, err := books.Verify(b.Context(), s, books.Options{})
				if err != nil || !r.Clean() || r.Payments != *benchRows {
					b.Fatalf("%d payments, %+v, %v", r.Payments, r.Problems, err)
				}
			}
		})
	}
}

// BenchmarkExport writes the statement of such books.
func BenchmarkExport(b *testing.B) {
	for _, e := range storetest.Engines() {
		b.Run(e.Name, func(b *testing.B) {
			s, client := newSeeded(b, e)
			for b.Loop() {
				if _, err := books.Export(b.Context(), s, books.Statement{Client: client.ID, Format: books.CSV}, io.Discard); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
