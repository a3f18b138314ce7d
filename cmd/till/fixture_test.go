package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"till"
	"till/books"
	"till/cmd/till/internal/cli"
	"till/internal/db"
	"till/store"
	"till/store/storetest"
)

// TestMakeFixture leaves what a release writes in books/testdata: a SQLite file, a dump of
// PostgreSQL, what is in them and what the API answers about it. Every later release
// migrates and verifies them, and must answer the same. TILL_FIXTURE is the release; 'make
// fixture RELEASE=v1.2.0' runs it once, when the release is tagged.
func TestMakeFixture(t *testing.T) {
	release := os.Getenv("TILL_FIXTURE")
	if release == "" {
		t.Skip("TILL_FIXTURE names no release; make fixture says one")
	}
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,40}$`).MatchString(release) {
		t.Fatalf("%q is no name of a release", release)
	}
	base := filepath.Join("..", "..", "books", "testdata", "release-"+release)
	if cli.Exists(base + ".json") {
		t.Fatalf("%s.json is there: a fixture is never changed", base)
	}
	counts, answers := map[string]books.Report{}, map[string]*releaseAnswers{}
	for _, e := range storetest.Engines() {
		dir := t.TempDir()
		k := &killing{t: t, dir: dir, database: e.Empty(t).Path, window: fixtureWindow, answered: map[string]string{}}
		beside := dir
		if k.book = k.database; e.Name == "sqlite" {
			k.book, beside = filepath.Join(dir, "sandbox.db"), filepath.Dir(k.database)
		}
		s := k.start()
		reader := k.fill()
		k.end(s, syscall.SIGKILL) // some are open for ever
		k.verify()
		counts[e.Name] = k.report()
		secret, err := os.ReadFile(filepath.Join(beside, "till.secret"))
		if err != nil {
			t.Fatal(err)
		}
		all := &releaseAnswers{Secret: string(secret), Key: reader}
		// Asking moves nothing but what is recorded behind commits; so the copy is made afterwards.
		all.Answers = askAll(t, k.database, all)
		all.check(t)
		answers[e.Name] = all
		if e.Name == "sqlite" {
			copied := filepath.Join(dir, "copy.db")
			storetest.Exec(t, storetest.OpenRaw(t, k.database), "VACUUM INTO ?", copied)
			b, err := os.ReadFile(copied)
			if err != nil {
				t.Fatal(err)
			}
			writeZipped(t, base+".db.gz", b)
		} else {
			writeZipped(t, base+".sql.gz", dumpSchema(t, k.database))
		}
	}
	if len(counts) != 2 {
		t.Fatal("a fixture is made of both engines: make fixture starts PostgreSQL")
	}
	b, err := json.Marshal(answers)
	if err != nil {
		t.Fatal(err)
	}
	writeZipped(t, base+".answers.gz", b)
	text, err := json.MarshalIndent(counts, "", "\t")
	if err == nil {
		err = os.WriteFile(base+".json", append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fixtureWindow is the customers' time: some of them let it pass.
const fixtureWindow = 12 * time.Second

// fixtureRounds is how often each story is played.
const fixtureRounds = 15

// fill plays every story of the sandbox and the acts that leave rows of other kinds: some
// 300 payments and payouts, and every status of payments, payouts, deliveries and cases. It
// returns a key that may read everything.
func (k *killing) fill() (reader string) {
	told := k.receive()
	client := k.firstClient()
	must := func(args ...string) string {
		code, out := k.run("", append(args, "--database", k.database)...)
		if code != 0 {
			k.t.Fatalf("%v: %d %s", args, code, out)
		}
		return out
	}
	newKey := func(scopes string) string {
		var made struct {
			Key string `json:"api_key"`
		}
		if err := json.Unmarshal([]byte(must("key", "create", "--client", client, "--scopes", scopes, "--json")), &made); err != nil {
			k.t.Fatal(err)
		}
		return made.Key
	}
	reader = newKey("payments:read,payouts:read,wallets:read,webhooks:manage")
	for round := range fixtureRounds {
		for i, phone := range []string{"4567", "0002", "0003", "0004", "0005", "0006", "0007", "0011", "0012", "0015", "0016", "0017", "0018"} {
			k.pay("/payments", phone, 5000+100*i+round)
		}
	}
	for i := range 4 {
		k.pay("/payments", "0013", 3000+i) // the money comes late
		k.pay("/payments", "0021", 3100+i) // the operator takes it back
	}
	must("client", "fees", client, "--kind", "payment", "--method", "mtn_momo", "--currency", "XAF", "--flat", "25", "--bps", "100")
	k.settle()
	k.awaitCases(map[string]int64{"late_money": 4, "reversed": 4})
	for i := range 6 {
		k.pay("/payments", "4567", 4000+i) // with a fee
	}
	k.settle()
	must("adjust", "--client", client, "--currency", "XAF", "--amount", "500", "--reason", "a gift", "--by", "Anne", "--id", newUUID().String())

	first := k.key
	k.key = newKey("payments:read,payouts:read,payouts:write")
	for round := range 6 {
		for i, phone := range []string{"4567", "4568", "0002", "0005", "0006", "0011", "0012", "0013", "0015", "0017"} {
			k.pay("/payouts", phone, 700+10*i+round)
		}
	}
	for i := range 3 {
		id := k.pay("/payouts", "0020", 800+i)
		k.call(http.MethodPost, "/payouts/"+id+"/cancel", "", &struct{}{})
	}
	k.awaitCases(map[string]int64{"late_money": 10})
	payer := k.key
	k.key = first
	told.await(k)
	k.fillDeliveries(told, client)

	k.closeCase("late_money", must)
	k.closeCase("reversed", must)
	for i := range 3 { // they stay open
		k.pay("/payments", "0003", 1100+i)
		k.pay("/payments", "0014", 1200+i)
		k.pay("/payments", "0019", 1300+i)
	}
	k.awaitCases(map[string]int64{"mismatch": 3, "overdue": 3})
	k.key = payer
	for i := range 2 {
		k.pay("/payouts", "0014", 900+i)
	}
	k.awaitTotal("/payouts?limit=1&status=processing", 2)
	for i := range 2 {
		k.pay("/payouts", "0020", 910+i) // sent after 5 s: by then the server is dead
	}
	k.key = first
	for i := range 4 {
		k.pay("/payments", "0003", 1400+i)
	}
	k.awaitTotal("/payments?limit=1&status=processing", 7)
	for i := range 3 {
		k.pay("/payments", "0012", 1500+i) // the call times out: pending when the server dies
	}
	return reader
}

// fillDeliveries leaves deliveries of every status: from here on the first endpoint fails,
// one delivery of it has its last attempt, and a second endpoint is disabled.
func (k *killing) fillDeliveries(told *receiver, client string) {
	second := k.receive()
	second.server.Close()
	told.server.Close()
	for i := range 4 {
		k.pay("/payments", "4567", 900+i)
	}
	k.settle()
	k.awaitTotal("/webhook-endpoints/"+told.id+"/deliveries?limit=1&status=pending", 1)
	k.awaitTotal("/webhook-endpoints/"+second.id+"/deliveries?limit=1&status=pending", 1)
	k.call(http.MethodPost, "/sandbox/webhook-endpoints/"+second.id+"/disable", "", &struct{}{})
	endpoint, err := till.ParseID(told.id)
	if err != nil {
		k.t.Fatal(err)
	}
	// Twelve attempts take days.
	k.withStore(func(s *store.Store) error {
		return s.Update(k.t.Context(), func(tx *store.Tx) error {
			_, err := tx.DB().Exec(k.t.Context(), &db.SQL{Name: "test.lastAttempt", SQLite: `UPDATE webhook_deliveries SET attempts = 11, due_at = 1
				WHERE endpoint_id = $1 AND status = 'pending' AND sequence = (SELECT min(d.sequence) FROM webhook_deliveries d WHERE d.endpoint_id = $2 AND d.status = 'pending')`},
				endpoint[:], endpoint[:])
			if err != nil {
				return err
			}
			_, err = tx.DB().Exec(k.t.Context(), &db.SQL{Name: "test.wakeEndpoint", SQLite: `UPDATE webhook_endpoints SET next_retry = 1, blocked_until = 0 WHERE id = $1`}, endpoint[:])
			return err
		})
	})
	k.awaitTotal("/webhook-endpoints/"+told.id+"/deliveries?limit=1&status=exhausted", 1)
}

// pay asks for a payment or a payout and returns its id.
func (k *killing) pay(path, phone string, value int) string {
	k.t.Helper()
	party, key := "customer", newUUID().String()
	if path == "/payouts" {
		party = "recipient"
	}
	var made struct{ ID string }
	k.call(http.MethodPost, path, fmt.Sprintf(`{"method":"mtn_momo","country":"CG","amount":{"value":"%d","currency":"XAF"},"idempotency_key":"%s","%s":{"phone":"24206123%s"}}`,
		value, key, party, phone), &made)
	if path == "/payments" {
		k.answered[key] = made.ID
	}
	return made.ID
}

func (k *killing) firstClient() (client string) {
	k.withStore(func(s *store.Store) error {
		return s.View(k.t.Context(), func(tx *store.Tx) error {
			clients, err := tx.Clients(k.t.Context(), store.EveryClient, 1)
			if err == nil {
				client = clients[0].ID.String()
			}
			return err
		})
	})
	return client
}

// awaitTotal waits until a list has at least so many items.
func (k *killing) awaitTotal(path string, least int) {
	k.t.Helper()
	for end := time.Now().Add(4 * time.Minute); ; <-time.After(200 * time.Millisecond) {
		var page listed
		if k.call(http.MethodGet, path, "", &page); page.count() >= least {
			return
		}
		if time.Now().After(end) {
			k.t.Fatalf("%s has %d items, want %d", path, page.count(), least)
		}
	}
}

// awaitCases waits until so many cases of each kind are open.
func (k *killing) awaitCases(want map[string]int64) {
	k.t.Helper()
	for end := time.Now().Add(4 * time.Minute); ; <-time.After(200 * time.Millisecond) {
		open := map[string]int64{}
		k.withStore(func(s *store.Store) error {
			return s.View(k.t.Context(), func(tx *store.Tx) error {
				kinds, err := tx.OpenKinds(k.t.Context(), 1000)
				for _, o := range kinds {
					open[o.Kind] = o.Count
				}
				return err
			})
		})
		missing := false
		for kind, n := range want {
			missing = missing || open[kind] < n
		}
		if !missing {
			return
		}
		if time.Now().After(end) {
			k.t.Fatalf("open cases are %v, want %v", open, want)
		}
	}
}

// closeCase closes one case of a kind.
func (k *killing) closeCase(kind string, must func(args ...string) string) {
	k.t.Helper()
	var id string
	k.withStore(func(s *store.Store) error {
		cases, err := books.Cases(k.t.Context(), s, store.CaseFilter{Kind: kind, Limit: 1})
		if err == nil {
			id = cases[0].ID.String()
		}
		return err
	})
	must("cases", "resolve", id, "--by", "Anne", "--reason", "looked at")
}

// report says what is in the database.
func (k *killing) report() (r books.Report) {
	k.withStore(func(s *store.Store) (err error) {
		r, err = books.Verify(k.t.Context(), s, books.Options{})
		return err
	})
	return r
}

func writeZipped(t *testing.T, path string, b []byte) {
	t.Helper()
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	_, err := z.Write(b)
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = os.WriteFile(path, out.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d bytes", path, out.Len())
}

// dumpSchema returns a dump of the schema of a URL, as if it were the schema public.
func dumpSchema(t *testing.T, database string) []byte {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	schema := q.Get("search_path")
	q.Del("search_path")
	u.RawQuery = q.Encode()
	program := "pg_dump"
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_dump"); len(found) > 0 {
		program = found[len(found)-1]
	}
	out, err := exec.Command(program, "--schema="+schema, "--no-owner", "--no-privileges", "--rows-per-insert=100", u.String()).Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	var b strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(string(out), schema, "public")) {
		if strings.HasPrefix(line, `\`) || strings.HasPrefix(line, "CREATE SCHEMA ") {
			continue // for psql alone, or there already
		}
		b.WriteString(line)
	}
	return []byte(b.String())
}
