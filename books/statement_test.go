package books_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"till"
	"till/bench/seed"
	"till/books"
	"till/ledger"
	"till/store"
	"till/store/storetest"
)

// seeded makes a client with whole books, the payments an hour apart from now
// on.
func seeded(t *testing.T, s *store.Store, payments int64) *till.Client {
	t.Helper()
	client := storetest.NewClient(t, s, till.Test)
	from := s.Now().Add(time.Hour)
	if err := seed.Payments(t.Context(), s, seed.Config{Client: client.ID, Rows: payments, From: from, To: from.Add(48 * time.Hour), Books: true}); err != nil {
		t.Fatal(err)
	}
	return client
}

// onEngines is storetest.Run without the check of invariants at the end, which
// goes in slices so small that many rows take minutes. That seeded books verify
// is tested where they are seeded.
func onEngines(t *testing.T, f func(t *testing.T, s *store.Store)) {
	t.Helper()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			f(t, storetest.Open(t, e.Config(t)))
		})
	}
}

// pages reads a statement the way a client does.
func pages(t *testing.T, s *store.Store, client till.ID, f store.TransactionFilter, ascending bool) (out []byte, lines int64) {
	t.Helper()
	for {
		var ts []*ledger.Transaction
		var total int64
		err := s.View(t.Context(), func(tx *store.Tx) (err error) {
			ts, total, err = tx.ListTransactions(t.Context(), client, f, store.Page{Limit: 200, Offset: int(lines), Ascending: ascending})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range ts {
			out = append(books.AppendTransaction(out, x), '\n')
		}
		if lines += int64(len(ts)); lines == total {
			return out, lines
		}
	}
}

func TestAnExportEqualsThePages(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, s *store.Store) {
		client := seeded(t, s, 3000) // 2 400 lines: more than a slice
		seeded(t, s, 50)             // somebody else's
		var middle till.Time
		err := s.View(t.Context(), func(tx *store.Tx) error {
			ts, _, err := tx.ListTransactions(t.Context(), client.ID, store.TransactionFilter{}, store.Page{Limit: 1, Offset: 1000})
			middle = ts[0].CreatedAt
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name string
			f    store.TransactionFilter
			none bool
		}{
			{"all", store.TransactionFilter{}, false},
			{"a type", store.TransactionFilter{Type: "collection"}, false},
			{"a rare currency", store.TransactionFilter{Currency: "KES"}, false},
			{"both", store.TransactionFilter{Type: "collection", Currency: "XAF"}, false},
			{"a reference", store.TransactionFilter{Reference: "SEED-0"}, false},
			{"from a time on", store.TransactionFilter{From: middle}, false},
			{"up to a time", store.TransactionFilter{To: middle, Currency: "XAF"}, false},
			{"nothing", store.TransactionFilter{Type: "fee"}, true},
			{"no time at all", store.TransactionFilter{From: middle, To: middle - 1}, true},
		} {
			for _, newest := range []bool{false, true} {
				var got bytes.Buffer
				n, err := books.Export(t.Context(), s, books.Statement{Client: client.ID, Filter: c.f, NewestTop: newest, Format: books.JSONL}, &got)
				if err != nil {
					t.Fatal(err)
				}
				want, lines := pages(t, s, client.ID, c.f, !newest)
				if n != lines || !bytes.Equal(got.Bytes(), want) || (n == 0) != c.none {
					t.Errorf("%s, newest first %v: %d lines, want %d; equal: %v", c.name, newest, n, lines, bytes.Equal(got.Bytes(), want))
				}
			}
		}
	})
}

// hook is a writer that does something before the first write.
type hook struct {
	bytes.Buffer
	first func() error
	calls int
}

func (h *hook) Write(b []byte) (int, error) {
	if h.calls++; h.calls == 1 && h.first != nil {
		if err := h.first(); err != nil {
			return 0, err
		}
	}
	return h.Buffer.Write(b)
}

func TestWhatIsCommittedDuringAnExportIsLeftOut(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, s *store.Store) {
		client, c := seeded(t, s, 3000), storetest.NewCollector(t, s)
		want, lines := pages(t, s, client.ID, store.TransactionFilter{}, true)
		w := &hook{first: func() error {
			for range 3 {
				storetest.Apply(t, c, s, storetest.NewPayment(t, c, client, storetest.Body{}), storetest.Succeeded)
			}
			return nil
		}}
		n, err := books.Export(t.Context(), s, books.Statement{Client: client.ID, Format: books.JSONL}, w)
		if err != nil || n != lines || !bytes.Equal(w.Bytes(), want) {
			t.Errorf("%d lines, %v; want the %d from before", n, err, lines)
		}
		if _, after := pages(t, s, client.ID, store.TransactionFilter{}, true); after != lines+3 {
			t.Errorf("%d lines afterwards, want %d", after, lines+3)
		}
	})
}

func TestAnExportStopsWhenNobodyReads(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, s *store.Store) {
		client := seeded(t, s, 3000)
		gone := errors.New("gone")
		w := &hook{first: func() error { return gone }}
		if _, err := books.Export(t.Context(), s, books.Statement{Client: client.ID, Format: books.CSV}, w); !errors.Is(err, gone) || w.calls != 1 {
			t.Errorf("after %d writes: %v", w.calls, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		w = &hook{first: func() error { cancel(); return nil }}
		if _, err := books.Export(ctx, s, books.Statement{Client: client.ID, Format: books.CSV}, w); !errors.Is(err, context.Canceled) || w.calls != 1 {
			t.Errorf("after %d writes: %v", w.calls, err)
		}
		if _, err := books.Export(t.Context(), s, books.Statement{Client: till.NewID(1)}, w); till.ErrorCode(err) != till.CodeClientNotFound {
			t.Errorf("a client that does not exist: %v", err)
		}
	})
}

// raceDetector is set where it watches.
var raceDetector bool

// The memory of an export does not grow with the statement. It runs alone, so
// that nobody else's memory is counted.
func TestTheMemoryOfAnExportIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("make quick leaves it out: it exports many rows")
	}
	path := t.TempDir() + "/till.db"
	s := storetest.Open(t, store.Config{Path: path})
	client := storetest.NewClient(t, s, till.Test)
	lines := int64(300_000)
	if raceDetector {
		lines = 40_000
	}
	storetest.Exec(t, storetest.OpenRaw(t, path), `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO transactions (client_id, id, wallet_id, sequence, type, direction, amount, currency, balance_after, reference, created_at)
		SELECT w.client_id, unhex(printf('%012x7%03x80%014x', i / 1000, i % 1000, i)), w.id, i, 'adjustment', 'credit', 1, w.currency, i, 'line ' || i, i
		FROM n, wallets w WHERE w.client_id = ? AND w.currency = 'XAF'`, lines, client.ID[:])
	for _, format := range books.Formats {
		m := &meter{}
		m.begin()
		n, err := books.Export(t.Context(), s, books.Statement{Client: client.ID, Format: format}, m)
		if err != nil || n != lines {
			t.Fatalf("%d lines, %v", n, err)
		}
		// A slice of half a megabyte, and what the engine holds for it.
		if grown := m.peak - m.start; grown > 12<<20 {
			t.Errorf("%s: %d bytes were held at once for %d bytes of statement", format, grown, m.written)
		}
		if m.written < 100*lines || m.largest > 2<<20 {
			t.Errorf("%s: %d bytes in all, at most %d in one write", format, m.written, m.largest)
		}
	}
}

// meter counts what is written, and what lives meanwhile.
type meter struct {
	start, peak, written, largest int64
	calls                         int
}

func living() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func (m *meter) begin() { m.start = living() }

func (m *meter) Write(b []byte) (int, error) {
	if m.calls++; m.calls%10 == 0 {
		m.peak = max(m.peak, living())
	}
	m.written += int64(len(b))
	m.largest = max(m.largest, int64(len(b)))
	return len(b), nil
}

// unguarded takes away one apostrophe at the beginning and one after each
// separator.
func unguarded(s string) string {
	return regexp.MustCompile("(^|[,;|\t\r\n])'").ReplaceAllString(s, "$1")
}

// A text comes out of CSV as it went in, once the apostrophes of the guard are
// taken away; and no cell begins with what a spreadsheet runs, whatever it takes
// for a separator.
func TestTextsInCSV(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "plain", "=1+1", "+242", "-1", "@SUM(A1)", "\tx", "\rx", "\nx", "'quoted", "''", `say "no"`, "a,b", "two\r\nlines", "＝1", "naïve – –", `="x"`,
		"x;=1+1", "x,=1+1", "x\t@y", "x|-1", "x;;=1", "x; =1", `x;"=1"`, "x;'=1", "x;'", " =1", "x\n=1", "x;＝1", "a;b-c", "x\r\n=1",
	} {
		b := books.CSV.Append([]byte(books.CSV.Header()), &ledger.Transaction{Type: "collection", Reference: text, ProviderReference: text})
		r := csv.NewReader(bytes.NewReader(b))
		head, err := r.Read()
		if err != nil || len(head) != 15 || head[10] != "reference" {
			t.Fatalf("%q: header %v, %v", text, head, err)
		}
		cells, err := r.Read()
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		got := cells[10]
		for part := range strings.FieldsFuncSeq(got, func(r rune) bool { return strings.ContainsRune(",;|\t\r\n", r) }) {
			if strings.IndexAny(strings.Trim(part, ` "`), "=+-@＝＋－＠") == 0 {
				t.Errorf("%q stands as %q", text, got)
			}
		}
		want := strings.ReplaceAll(text, "\r\n", "\n") // as the reader has it
		if unguarded(got) != want || cells[11] != got {
			t.Errorf("%q came out as %q", text, got)
		}
		if _, err := r.Read(); err != io.EOF {
			t.Errorf("%q made two lines", text)
		}
	}
	amount := books.CSV.Append(nil, &ledger.Transaction{Amount: till.Money{Minor: ledger.MaxBalance, Currency: "XAF"}})
	if !bytes.Contains(amount, []byte(","+strconv.FormatInt(ledger.MaxBalance, 10)+",XAF,")) {
		t.Errorf("got %s", amount)
	}
}
