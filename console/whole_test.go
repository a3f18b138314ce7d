package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"till"
	"till/console/look"
	"till/console/shell"
	"till/people"
	"till/store"
	"till/store/auditlog"
)

// A table with whole phones is for who proves to be an owner or accountant, and
// leaves a row. Every other table has them masked.
func TestWholeNumbersNeedProof(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	w.pay("242061230003", 2500, "=ORDER-1", "loaves")
	w.pay("242061230004", 700, "ORDER-2", "coffee")
	path := w.path("/payments/export?amount=2500&currency=XAF")
	if page := w.get(w.path("/payments")); !strings.Contains(page, `href="`+w.path("/payments/export")+`"`) || !strings.Contains(page, "payments.csv?for=excel") {
		t.Error("the list does not lead to its tables")
	}
	page := w.get(path)
	if !strings.Contains(page, "1 payment") || !strings.Contains(page, "Take 1 payment") || strings.Contains(page, "242061230003") {
		t.Errorf("the page does not say what is taken, or shows it:\n%s", page)
	}
	a := w.do(request(http.MethodPost, path, url.Values{"for": {"excel"}}))
	table := a.Body.String()
	if a.Code != http.StatusOK || !strings.HasPrefix(table, "\ufeff\"id\";") || strings.Count(table, "\n") != 2 || !strings.Contains(table, `;"242061230003";`) || !strings.Contains(table, `;"'=ORDER-1";`) {
		t.Errorf("the table is answered %d: %s", a.Code, table)
	}
	if row := w.lastAct("export.payments"); row == nil || row.Detail != "1 rows, phones whole" || row.Actor != w.visitor.Actor() {
		t.Errorf("the log has %v", row)
	}
	if table := w.get(w.path("/payments.csv")); strings.Contains(table, "242061230003") {
		t.Error("the plain table has a whole phone")
	}
	w.visitor.ProvedAt = 0
	a = w.do(request(http.MethodPost, path, url.Values{"back": {path}}))
	if to := a.Header().Get("Location"); a.Code != http.StatusSeeOther || !strings.HasPrefix(to, path+"&refused=") {
		t.Errorf("without proof: %d to %q", a.Code, to)
	}
	if a := w.do(request(http.MethodPost, path, url.Values{})); a.Code != http.StatusForbidden || strings.Contains(a.Body.String(), "242061230003") {
		t.Errorf("without proof and a way back: %d", a.Code)
	}
}

// lastAct returns the newest row of an act in the client's log.
func (w *world) lastAct(action string) (last *store.AuditRow) {
	w.t.Helper()
	ctx := context.Background()
	err := w.store.View(ctx, func(tx *store.Tx) error {
		rows, err := auditlog.Read(ctx, tx, w.client.ID, 0, 1000)
		for _, r := range rows {
			if r.Action == action {
				last = r
			}
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return last
}

// How payments ended, by method; how long approvals took; why payments failed.
func TestMoreFigures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	paid, declined, waiting := w.pay("242061230001", 5000, "", ""), w.pay("242061230002", 700, "", ""), w.pay("242061230003", 2500, "", "")
	w.until(paid, till.Success)
	w.until(declined, till.Failed)
	w.until(waiting, till.Processing)
	if page := w.get(w.path("/home?range=7d")); !strings.Contains(page, w.path("/figures?range=7d")) {
		t.Error("home does not lead to more figures of its range")
	}
	page := w.get(w.path("/figures"))
	for _, want := range []string{"1 paid of 2 ended, 1 open", "50\u00a0%", "The customer declined", "fees 0\u00a0XAF", "5,000\u00a0XAF", "3 payments by how they stand", "How long 1 approval took", "nine of ten"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	w.be(till.RoleDeveloper, "fr")
	if page := w.get(w.path("/figures?range=30d")); strings.Contains(page, "Argent par moyen") || !strings.Contains(page, "Le client a refusé") {
		t.Error("a developer sees money, or no reasons")
	}
}

// The range of a page goes along to the others, as a name where they know it.
func TestRangesGoAlong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	day, yesterday, week := w.day(0), w.day(-1), w.day(-6)
	for _, c := range []struct{ at, to string }{
		{"/payments?range=today", "/payouts?range=today"}, {"/payments?range=yesterday", "/home?from=" + yesterday + "&amp;to=" + yesterday},
		{"/home?range=7d", "/payments?from=" + week + "&amp;to=" + day}, {"/home?from=2026-01-05&to=2026-01-06", "/audit?from=2026-01-05&amp;to=2026-01-06"},
		{"/payments?range=all", "/home"}, {"/home", "/payments"}, {"/payments?range=nonsense&from=x", "/home"}, {"/payments?range=all", "/payouts?range=all"},
	} {
		if page := w.get(w.path(c.at)); !strings.Contains(page, `<li><a href="`+w.path(c.to)+`"`) {
			t.Errorf("the menu of %s does not lead to %s", c.at, c.to)
		}
	}
	id := w.pay("242061230003", 2500, "", "").String()
	for from, want := range map[string]string{
		"http://localhost:8080" + w.path("/payments?state=failed"): w.path("/payments?state=failed"), "": w.path("/payments"),
		"http://evil.example" + w.path("/payments?state=failed"): w.path("/payments"), "http://localhost:8080/console/me": w.path("/payments"),
	} {
		q := request(http.MethodGet, w.path("/payments/"+id), nil)
		q.Header.Set("Referer", from)
		if page := w.do(q).Body.String(); !strings.Contains(page, `<a class="back" href="`+want+`"`) {
			t.Errorf("from %q the way back is not %s", from, want)
		}
	}
}

// day returns a day of the client's zone, so many from today.
func (w *world) day(n int) string {
	c := look.NewClock("en", "Africa/Brazzaville")
	return c.ISODay(c.StartOfDay(w.store.Now(), n))
}

// An owner sees on which devices a cashier is signed in, and ends one of them.
func TestDevicesOfAColleague(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	if a := b.send(http.MethodPost, b.invite(b.client.ID, till.RoleCashier, "brice@example.com"), url.Values{"name": {"Brice"}, "login": {"brice@example.com"}, "password": {password}}); a.Code != http.StatusSeeOther {
		t.Fatalf("joining: %d %s", a.Code, a.Body)
	}
	real := b.console.SessionOf
	b.console.SessionOf = func(*shell.Visit, string) (*people.Session, error) { s := b.visitor; return &s, nil }
	colleagues, err := b.console.People.Colleagues(context.Background(), b.client)
	if err != nil || len(colleagues) != 1 || colleagues[0].Sessions != 1 {
		t.Fatalf("colleagues: %v %v", colleagues, err)
	}
	person := colleagues[0].Person.ID
	if page := b.get(b.path("/people")); !strings.Contains(page, "/people?devices="+person.String()) || strings.Contains(page, `id="devices"`) {
		t.Error("the list does not lead to the devices")
	}
	devices := b.path("/people?devices=" + person.String())
	if page := b.get(devices); !strings.Contains(page, "Devices of Brice") || !strings.Contains(page, `name="session"`) {
		t.Error("the devices are not listed")
	}
	if page := b.get(b.path("/people?devices=" + b.client.ID.String())); strings.Contains(page, `id="devices"`) {
		t.Error("somebody who is no colleague has devices")
	}
	sessions, err := b.console.People.Sessions(context.Background(), person)
	if err != nil || len(sessions) != 1 {
		t.Fatalf("sessions: %v %v", sessions, err)
	}
	form := url.Values{"person": {person.String()}, "session": {"nonsense"}}
	if a := b.do(request(http.MethodPost, b.path("/people/end"), form)); a.Code != http.StatusBadRequest {
		t.Errorf("a session that is none: %d", a.Code)
	}
	form.Set("session", sessions[0].ID.String())
	b.world.post(b.path("/people/end"), form)
	if page := b.get(devices); !strings.Contains(page, "Signed in nowhere") {
		t.Error("the session goes on")
	}
	b.console.SessionOf = real
	if a := b.send(http.MethodGet, b.path("/payments"), nil); a.Code != http.StatusSeeOther {
		t.Errorf("the cashier's browser is answered %d", a.Code)
	}
}
