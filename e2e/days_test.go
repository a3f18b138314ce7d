package e2e

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	core "till"
	"till/account"
	"till/collect"
	"till/engine"
	body "till/internal/request"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
)

// E17: payments at 23:30 and 00:30 of a merchant's zone are on the right days of
// the list, the chart and the CSV.
func TestE17Days(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := startServe(t, data) // it makes the database
	s.stop()
	evening := time.Now().UTC().AddDate(0, 0, -3).Truncate(24 * time.Hour)
	merchants := []*merchant{{name: "Boulangerie Mapassa", zone: "Africa/Brazzaville", offset: time.Hour}, {name: "Duka la Wanjiku", zone: "Africa/Nairobi", offset: 3 * time.Hour}}
	open(t, data, evening.Add(12*time.Hour), func(w *past) {
		for _, m := range merchants {
			w.create(m)
		}
	})
	// In UTC Nairobi's midnight comes first.
	for _, m := range []*merchant{merchants[1], merchants[0]} {
		for i, local := range []time.Duration{23*time.Hour + 30*time.Minute, 24*time.Hour + 30*time.Minute} {
			open(t, data, evening.Add(local-m.offset), func(w *past) { w.pay(m, fmt.Sprintf("DAY-%d", i+1)) })
		}
	}
	s = startServe(t, data)
	for _, m := range merchants {
		s.client = m.client.ID.String()
		p := s.join("E17", "viewer", "Inès "+m.name)
		for i, want := range []string{"DAY-1", "DAY-2"} {
			day := evening.AddDate(0, 0, i).Format("2006-01-02")
			list := "/console/c/" + s.client + "/payments?from=" + day + "&to=" + day
			p.open(list)
			p.until(`document.querySelectorAll("tr[data-row]").length === 1`)
			if !p.shows(want) {
				t.Errorf("%s, %s: %s is not there", m.zone, day, want)
			}
			clock := []string{"23:30", "00:30"}[i]
			if got := p.text("tr[data-row] time"); !strings.HasPrefix(got, clock) {
				t.Errorf("%s, %s: at %s, not %s", m.zone, day, got, clock)
			}
			rows, err := csv.NewReader(strings.NewReader(p.download(p.value(`a[href*="payments.csv"]`, "href")))).ReadAll()
			if err != nil || len(rows) != 2 || !strings.Contains(strings.Join(rows[1], "|"), want) || !strings.Contains(strings.Join(rows[1], "|"), day+" "+clock) {
				t.Errorf("%s, %s: CSV %v %v", m.zone, day, rows, err)
			}
		}
		p.open("/console/c/" + s.client + "/payments?from=" + evening.Format("2006-01-02") + "&to=" + evening.AddDate(0, 0, 1).Format("2006-01-02"))
		p.until(`document.querySelectorAll("tr.day").length === 2`)
		p.look(strings.ToLower(filepath.Base(m.zone)))
		p.chartOf(m, evening)
	}
}

// chartOf holds the chart of the two days to a bar for each, whose value shows
// under the pointer and under the focus.
func (p *page) chartOf(m *merchant, evening time.Time) {
	p.t.Helper()
	next := evening.AddDate(0, 0, 1)
	p.open("/console/c/" + m.client.ID.String() + "/home?from=" + evening.Format("2006-01-02") + "&to=" + next.Format("2006-01-02"))
	p.until(`document.querySelectorAll("#home .plot .slot").length === 2`)
	for i, day := range []time.Time{evening, next} {
		want := day.Format("2 Jan") + ": 5,000 XAF MTN MoMo 5,000"
		slot := fmt.Sprintf("#home .plot .slot:nth-of-type(%d)", i+1)
		at := eval[[2]float64](p, `(() => { const r = document.querySelector(`+quote(slot)+`).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`)
		call(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: at[0], Y: at[1]})
		p.says(want)
		if i == 0 {
			p.look("pointer-" + strings.ToLower(filepath.Base(m.zone)))
		}
		call(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: 1, Y: 1})
		p.until(`!document.querySelector(".bubble")`)
		p.do(chromedp.Focus(chromedp.CSS(slot)))
		p.says(want)
		eval[bool](p, `document.activeElement.blur(), true`)
	}
}

// says waits for the value of a chart's slot.
func (p *page) says(value string) {
	p.t.Helper()
	p.until(`(document.querySelector(".bubble")?.innerText || "").replace(/\s+/g, " ") === ` + quote(value))
}

// merchant is one whose days are looked at.
type merchant struct {
	name, zone string
	offset     time.Duration
	client     *core.Client
}

// past is the same database at another time, with the parts of the program that
// make payments.
type past struct {
	t         *testing.T
	ctx       context.Context
	store     *store.Store
	accounts  *account.Accounts
	collector *collect.Collector
}

// open works on the database at a time that was.
func open(t *testing.T, data string, at time.Time, f func(*past)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	begun := time.Now()
	now := func() core.Time { return core.TimeOf(at.Add(time.Since(begun))) }
	secret, err := os.ReadFile(filepath.Join(data, "till.secret"))
	if err != nil {
		t.Fatal(err)
	}
	w := &past{t: t, ctx: ctx}
	if w.store, err = store.Open(ctx, store.Config{Path: filepath.Join(data, "till.db"), Now: now}); err != nil {
		t.Fatal(err)
	}
	operator, err := sandbox.Open(ctx, sandbox.Config{Path: filepath.Join(data, "sandbox.db"), Window: time.Minute, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	w.accounts = account.New(w.store, nil)
	w.collector = collect.New(engine.Config{Store: w.store, Secret: secret, Connections: map[string]provider.Provider{"sandbox": operator},
		Routes: engine.ByMode(func(core.Mode, string, string, string) string { return "sandbox" })})
	done := make(chan struct{}, 2)
	for _, run := range []func(context.Context){w.collector.Run, operator.Run} {
		go func() { run(ctx); done <- struct{}{} }()
	}
	f(w)
	cancel()
	<-done
	<-done
	for _, err := range []error{w.collector.Close(context.Background()), operator.Close(), w.store.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
}

func (w *past) create(m *merchant) {
	w.t.Helper()
	var err error
	if m.client, _, err = w.accounts.CreateClient(w.ctx, m.name, core.Test, "a test"); err == nil {
		err = w.accounts.SetProfile(w.ctx, &core.Profile{ClientID: m.client.ID, Zone: m.zone}, "a test")
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *past) pay(m *merchant, reference string) {
	w.t.Helper()
	w.sell(m, "mtn_momo", "242061234567", "5000", reference)
}

// sell asks for money and waits until it is paid.
func (w *past) sell(m *merchant, method, phone, amount, reference string) {
	w.t.Helper()
	text := func(s string) *string { return &s }
	created, err := w.collector.Create(w.ctx, engine.Client{Client: m.client, Enabled: func(string) bool { return true }}, &collect.Request{
		Body: body.Body{Method: &method, Country: text("CG"), IdempotencyKey: text(newUUID()), Reference: &reference,
			Amount: &body.Amount{Value: &amount, Currency: text("XAF")}},
		Customer: &collect.Customer{Phone: &phone}})
	if err != nil {
		w.t.Fatal(err)
	}
	untilTrue(w.t, "the payment is paid", func() bool {
		var p *store.PaymentRow
		err := w.store.View(w.ctx, func(tx *store.Tx) (err error) {
			p, err = tx.Payment(w.ctx, store.Ref{Client: m.client.ID, ID: created.Payment.ID})
			return err
		})
		return err == nil && p.Status == core.Success
	})
}
