package console

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"till"
	"till/books"
	"till/store"
	"till/store/auditlog"
	"till/store/storetest"
	"till/story"
)

// Wallets, a statement with its balances, and its table, on each engine.
func TestWalletsAndStatements(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, e)
			for _, c := range []struct{ path, want string }{{"/wallets", "No wallet yet"}, {"/wallets/XAF", "Nothing matches"}} {
				if page := w.get(w.path(c.path)); !strings.Contains(page, c.want) {
					t.Errorf("%s lacks %q", c.path, c.want)
				}
			}
			first := w.pay("242061230001", 5000, "=1+1", "loaves")
			w.until(first, till.Success)
			second := w.pay("242061230001", 700, hostile, hostile)
			w.until(second, till.Success)
			w.adjust(-200)
			page := w.get(w.path("/wallets"))
			for _, want := range []string{"5,500<", "/wallets/XAF", "Reserved", "Owed"} {
				if !strings.Contains(page, want) {
					t.Errorf("the wallets lack %q", want)
				}
			}
			page = w.get(w.path("/wallets/XAF"))
			checkPage(t, "statement", page)
			for _, want := range []string{"3 lines", "/payments/" + first.String(), "+5,000<", "+700<", "\u2212200<", "Adjustment", "Payment received", "5,700<", "Opening balance", "Closing balance"} {
				if !strings.Contains(strings.ReplaceAll(page, "&#43;", "+"), want) {
					t.Errorf("the statement lacks %q", want)
				}
			}
			if page := w.get(w.path("/wallets/XAF?state=adjustment")); strings.Contains(page, first.String()) || !strings.Contains(page, "1 line<") {
				t.Error("the type does not narrow the statement")
			}
			if page := w.get(w.path("/wallets/XAF?range=yesterday")); !strings.Contains(page, "Nothing matches") {
				t.Error("yesterday has lines")
			}
			printed := w.get(w.path("/wallets/XAF?print=1"))
			checkPage(t, "printed", printed)
			if strings.Index(printed, "+5,000<") > strings.Index(printed, "\u2212200<") || !strings.Contains(printed, `class="a4page"`) || !strings.Contains(printed, "TEST · no real money") {
				t.Error("what is printed is not the oldest first, or not marked")
			}
			w.checkTable(first)
			for path, want := range map[string]int{"/wallets/KES": 200, "/wallets/QQQ": 404, "/wallets/xaf": 404, "/wallets/QQQ/statement.csv": 404} {
				if a := w.do(request(http.MethodGet, w.path(path), nil)); a.Code != want {
					t.Errorf("%s: %d, want %d", path, a.Code, want)
				}
			}
		})
	}
}

func (w *world) adjust(minor int64) {
	w.t.Helper()
	_, err := books.Adjust(context.Background(), w.store, books.Adjustment{Client: w.client.ID, ID: till.NewID(w.store.Now()), Amount: till.Money{Minor: minor, Currency: "XAF"}, Reason: "a test", By: "person:A test"})
	if err != nil {
		w.t.Fatal(err)
	}
}

// checkTable reads the statement's table as a program and as Excel do.
func (w *world) checkTable(first till.ID) {
	t := w.t
	t.Helper()
	a := w.do(request(http.MethodGet, w.path("/wallets/XAF/statement.csv"), nil))
	rows, err := csv.NewReader(a.Body).ReadAll()
	if err != nil || len(rows) != 4 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	cell := func(row int, name string) string { return rows[row][column[name]] }
	for _, c := range []struct{ got, want string }{
		{cell(1, "credit"), "5000"}, {cell(1, "debit"), ""}, {cell(1, "balance"), "5000"}, {cell(1, "reference"), "'=1+1"}, {cell(1, "payment_id"), first.String()}, {cell(1, "line"), "1"},
		{cell(3, "credit"), ""}, {cell(3, "debit"), "200"}, {cell(3, "balance"), "5500"}, {cell(3, "type"), "adjustment"}, {cell(3, "payment_id"), ""}, {cell(1, "zone"), "Africa/Brazzaville"},
	} {
		if c.got != c.want {
			t.Errorf("a cell is %q, want %q", c.got, c.want)
		}
	}
	utc, _ := time.Parse(time.RFC3339Nano, cell(1, "created_utc"))
	if local, err := time.Parse("2006-01-02 15:04:05", cell(1, "created_local")); err != nil || local.Sub(utc).Round(time.Minute) != time.Hour {
		t.Errorf("%s is not an hour before %s", cell(1, "created_utc"), cell(1, "created_local"))
	}
	q := request(http.MethodGet, w.path("/wallets/XAF/statement.csv?for=excel"), nil)
	q.Header.Set("Accept-Encoding", "gzip")
	a = w.do(q)
	z, err := gzip.NewReader(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil || !bytes.HasPrefix(text, []byte("\ufeff\"line\";\"created_utc\";")) || bytes.Count(text, []byte("\r\n")) != 4 || !strings.Contains(a.Header().Get("Content-Disposition"), "attachment") {
		t.Errorf("for Excel: %v %s", err, text)
	}
	exports := 0
	err = w.store.View(context.Background(), func(tx *store.Tx) error {
		rows, err := auditlog.Read(context.Background(), tx, w.client.ID, 0, 1000)
		for _, r := range rows {
			if r.Action == "export.statement" && r.Actor == w.visitor.Actor() && strings.Contains(r.Detail, "XAF, 3 lines") {
				exports++
			}
		}
		return err
	})
	if err != nil || exports != 2 {
		t.Errorf("%d exports in the audit log, %v", exports, err)
	}
}

// A note is written once and shown in the timeline.
func TestNotesOnAPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	id := w.pay("242061230003", 2500, "ORDER-1042", "loaves").String()
	path := w.path("/payments/" + id + "/note")
	page := w.get(path)
	form := url.Values{"key": {fieldOf(t, hiddenKey, page)}, "text": {hostile[:27] + "\r\nsecond line"}}
	to := w.post(path, form)
	if again := w.post(path, form); again != to {
		t.Errorf("posted twice it leads to %s and %s", to, again)
	}
	page = w.get(to)
	checkPage(t, "a payment with a note", page)
	if strings.Count(page, "Note by Awa N.") != 1 || !strings.Contains(page, "second line") || !strings.Contains(page, "The note is saved.") || strings.Contains(page, story.ActNote) {
		t.Errorf("the timeline does not show the note once:\n%s", page)
	}
	form.Set("text", "something else")
	if page := w.do(request(http.MethodPost, path, form)).Body.String(); !strings.Contains(page, "This note is saved already") || fieldOf(t, hiddenKey, page) == form.Get("key") {
		t.Error("a note that was changed afterwards is not told")
	}
	for _, text := range []string{"", strings.Repeat("x", 501), "a\x00b", strings.Repeat("\n", 20)} {
		form.Set("text", text)
		a := w.do(request(http.MethodPost, path, form))
		if a.Code != http.StatusOK || !strings.Contains(a.Body.String(), "A note has 1 to 500") {
			t.Errorf("%.10q: %d", text, a.Code)
		}
		checkPage(t, "note", a.Body.String())
	}
	w.be(till.RoleCashier, "fr")
	checkPage(t, "note fr", w.get(path))
	w.console.Now = func() till.Time { return w.store.Now().Add(3 * 24 * time.Hour) }
	if a := w.do(request(http.MethodPost, path, form)); a.Code != http.StatusNotFound {
		t.Errorf("a cashier's note on an old payment: %d", a.Code)
	}
}
