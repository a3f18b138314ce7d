package books_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"till"
	"till/books"
	"till/store"
	"till/store/storetest"
)

// F35: one byte of the file is another one than was written. Either the proof
// of the books notices, or nothing about money is different: the byte is in
// room that is not used, or in a text that is only echoed.
func TestAFlippedByteInMoneyIsNoticed(t *testing.T) {
	if testing.Short() {
		t.Skip("make quick leaves it out: it verifies many damaged files")
	}
	t.Parallel()
	flips := 60
	if n, err := strconv.Atoi(os.Getenv("TILL_FLIPS")); err == nil {
		flips = n
	}
	path := filepath.Join(t.TempDir(), "till.db")
	sound := makeBooks(t, path)
	money := moneyOf(t, path)
	random := rand.New(rand.NewPCG(35, 35))
	noticed, pages := 0, 0
	for range flips {
		at, bit := random.IntN(len(sound)), byte(1)<<random.IntN(8)
		broken := bytes.Clone(sound)
		broken[at] ^= bit
		copied := filepath.Join(t.TempDir(), "till.db")
		if err := os.WriteFile(copied, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		problems, found := verifyFile(t, copied)
		if i := slices.IndexFunc(problems, func(p books.Problem) bool { return p.Invariant == "pages" }); i == 0 {
			pages++
		} else if i > 0 {
			t.Errorf("bit %#x of byte %d: damaged pages come after %d other problems", bit, at, i)
		}
		if found {
			noticed++
			continue
		}
		if got := moneyOf(t, copied); got != money {
			t.Errorf("bit %#x of byte %d changes the money, and the proof does not notice:\n%s", bit, at, firstDifference(money, got))
		}
	}
	if noticed == 0 || pages == 0 {
		t.Errorf("of %d flipped bytes %d were noticed, %d as damaged pages", flips, noticed, pages)
	}
	t.Logf("%d of %d flipped bytes were noticed, the others changed nothing about money", noticed, flips)
}

// makeBooks fills a file with payments, payouts and their ends, and returns
// its bytes.
func makeBooks(t *testing.T, path string) []byte {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := storetest.NewClient(t, s, till.Test)
	c, m := storetest.NewCollector(t, s), storetest.NewDisburser(t, s)
	for range 150 {
		storetest.Apply(t, c, s, storetest.NewPayment(t, c, client, storetest.Body{}), storetest.Succeeded)
	}
	for range 30 {
		storetest.ApplyPayout(t, m, s, storetest.NewPayout(t, m, client, storetest.Body{}, 0), storetest.Succeeded)
	}
	storetest.CheckInvariants(t, s)
	s.Close()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// verifyFile returns the problems in a file's books, and whether anything was wrong.
func verifyFile(t *testing.T, path string) ([]books.Problem, bool) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Path: path})
	if err != nil {
		return nil, true
	}
	defer s.Close()
	if s.CheckSchema(t.Context()) != nil {
		return nil, true
	}
	report, err := books.Verify(t.Context(), s, books.Options{})
	return report.Problems, err != nil || !report.Clean()
}

// moneyOf returns all that is about money in a file, as text.
func moneyOf(t *testing.T, path string) string {
	t.Helper()
	db := storetest.OpenRaw(t, path)
	defer db.Close()
	var out bytes.Buffer
	for _, query := range []string{
		`SELECT client_id, id, status, amount, currency, fee FROM payments ORDER BY client_id, id`,
		`SELECT client_id, id, status, amount, currency, fee FROM payouts ORDER BY client_id, id`,
		`SELECT client_id, currency, balance, reserved FROM wallets ORDER BY client_id, currency`,
		`SELECT client_id, sequence, type, amount, balance_after FROM transactions ORDER BY client_id, wallet_id, sequence`,
		`SELECT client_id, entry_id, account, currency, amount FROM postings ORDER BY client_id, entry_id, account, amount`,
	} {
		rows, err := db.QueryContext(t.Context(), query)
		if err != nil {
			return query + ": " + err.Error()
		}
		dump(&out, rows)
	}
	return out.String()
}

func dump(out *bytes.Buffer, rows *sql.Rows) {
	defer rows.Close()
	columns, _ := rows.Columns()
	values, places := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		places[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(places...); err != nil {
			fmt.Fprintln(out, err)
		}
		fmt.Fprintf(out, "%x\n", fmt.Sprint(values...))
	}
	fmt.Fprintln(out, rows.Err())
}

func firstDifference(a, b string) string {
	one, two := bytes.Split([]byte(a), []byte("\n")), bytes.Split([]byte(b), []byte("\n"))
	for i := range one {
		if i >= len(two) || !bytes.Equal(one[i], two[i]) {
			return fmt.Sprintf("%s\n%s", one[i], two[min(i, len(two)-1)])
		}
	}
	return "one has more lines"
}
