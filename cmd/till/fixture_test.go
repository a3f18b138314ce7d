package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"till/books"
	"till/store"
	"till/store/storetest"
)

// TestMakeFixture leaves what a release writes in books/testdata: a SQLite file, a dump of
// PostgreSQL and what is in them. Every later release migrates and verifies them. TILL_FIXTURE
// is the release; 'make fixture RELEASE=v1.2.0' runs it once, when the release is tagged.
func TestMakeFixture(t *testing.T) {
	release := os.Getenv("TILL_FIXTURE")
	if release == "" {
		t.Skip("TILL_FIXTURE names no release; make fixture says one")
	}
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,40}$`).MatchString(release) {
		t.Fatalf("%q is no name of a release", release)
	}
	base := filepath.Join("..", "..", "books", "testdata", "release-"+release)
	if exists(base + ".json") {
		t.Fatalf("%s.json is there: a fixture is never changed", base)
	}
	counts := map[string]books.Report{}
	for _, e := range storetest.Engines() {
		dir := t.TempDir()
		k := &killing{t: t, dir: dir, database: e.Empty(t).Path, answered: map[string]string{}}
		if k.book = k.database; e.Name == "sqlite" {
			k.book = filepath.Join(dir, "sandbox.db")
		}
		s := k.start()
		k.fill()
		k.end(s, syscall.SIGKILL) // some are open for ever
		k.verify()
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
		counts[e.Name] = k.report()
	}
	if len(counts) != 2 {
		t.Fatal("a fixture is made of both engines: make fixture starts PostgreSQL")
	}
	text, err := json.MarshalIndent(counts, "", "\t")
	if err == nil {
		err = os.WriteFile(base+".json", append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fill plays every story of the sandbox and the acts that leave rows of other kinds.
func (k *killing) fill() {
	told := k.receive()
	var client string
	k.withStore(func(s *store.Store) error {
		return s.View(k.t.Context(), func(tx *store.Tx) error {
			clients, err := tx.Clients(k.t.Context(), store.EveryClient, 1)
			if err == nil {
				client = clients[0].ID.String()
			}
			return err
		})
	})
	must := func(args ...string) string {
		code, out := k.run("", append(args, "--database", k.database)...)
		if code != 0 {
			k.t.Fatalf("%v: %d %s", args, code, out)
		}
		return out
	}
	pay := func(path, party, phone string, value int) {
		key := newUUID().String()
		var made struct{ ID string }
		k.call("POST", path, fmt.Sprintf(`{"method":"mtn_momo","country":"CG","amount":{"value":"%d","currency":"XAF"},"idempotency_key":"%s","%s":{"phone":"24206123%s"}}`,
			value, key, party, phone), &made)
		if path == "/payments" {
			k.answered[key] = made.ID
		}
	}
	for round := range 3 {
		for i, phone := range nasty {
			pay("/payments", "customer", phone, 5000+100*i+round)
		}
	}
	must("client", "fees", client, "--kind", "payment", "--method", "mtn_momo", "--currency", "XAF", "--flat", "25", "--bps", "100")
	k.settle()
	pay("/payments", "customer", "4567", 4000) // with a fee
	k.settle()
	must("adjust", "--client", client, "--currency", "XAF", "--amount", "500", "--reason", "a gift", "--by", "Anne", "--id", newUUID().String())
	var made struct {
		Key string `json:"api_key"`
	}
	if err := json.Unmarshal([]byte(must("key", "create", "--client", client, "--scopes", "payments:read,payouts:read,payouts:write", "--json")), &made); err != nil {
		k.t.Fatal(err)
	}
	first := k.key
	k.key = made.Key
	for i, phone := range []string{"4567", "4568", "0002", "0011"} {
		pay("/payouts", "recipient", phone, 700+i)
	}
	k.key = first
	told.await(k)
	told.server.Close() // from here on the endpoint fails
	pay("/payments", "customer", "4567", 900)
	k.settle()
	for i, phone := range []string{"0003", "0014"} { // they stay open
		pay("/payments", "customer", phone, 1100+i)
	}
}

func (k *killing) withStore(f func(s *store.Store) error) {
	k.t.Helper()
	s, err := store.Open(k.t.Context(), store.Config{Path: k.database, Readers: 1})
	if err != nil {
		k.t.Fatal(err)
	}
	defer s.Close()
	if err := f(s); err != nil {
		k.t.Fatal(err)
	}
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
