package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till"
)

func TestCutoff(t *testing.T) {
	t.Parallel()
	now := till.TimeOf(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	for text, want := range map[string]string{"10y": "2016-03-01T12:00:00.000000Z", "400d": "2025-01-25T12:00:00.000000Z", "30d": "2026-01-30T12:00:00.000000Z",
		"29d": "", "y": "", "": "", "10": "", "-1y": "", "1.5y": "", "10m": "", "99999999d": "", "200y": "1970-01-01T00:00:00.000000Z"} {
		got, err := cutoff(text, now)
		if (err != nil) != (want == "") || err == nil && got.String() != want {
			t.Errorf("%q: %s, %v; want %q", text, got, err, want)
		}
	}
}

// A list is believed only as far as this installation has written it.
func TestTheListOfErasures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := newErasable(t, dir)
	list := filepath.Join(dir, "erased.jsonl")
	f.refused("--list", "erase", "--phone", "242061234567", "--by", "Awa", "--reason", "a letter")
	f.refused("one of", "erase", "--phone", "242061234567", "--older-than", "10y", "--list", list, "--by", "Awa", "--reason", "a letter")
	f.refused("--by", "erase", "--phone", "242061234567", "--list", list, "--reason", "a letter")
	f.refused("reason", "erase", "--phone", "242061234567", "--list", list, "--by", "Awa")
	f.refused("no such file", "erase", "--phone", "242061234567", "--list", filepath.Join(dir, "no", "list"), "--by", "Awa", "--reason", "a letter")
	f.refused("full form", "erase", "--phone", "0612", "--list", list, "--by", "Awa", "--reason", "a letter")
	if _, err := os.Stat(list); err == nil {
		t.Error("a list was written although nothing was erased")
	}
	if said := f.done("erase", "--phone", "+242 06 123 4567", "--dry-run"); !strings.Contains(said, "0 payments, 0 payouts and 0 checkouts to be erased") {
		t.Error(said)
	}
	f.done("erase", "--phone", "242061234567", "--metadata", "--list", list, "--by", "Awa", "--reason", "a letter")
	f.done("erase", "--older-than", "10y", "--list", list, "--by", "Awa", "--reason", "policy")
	text, err := os.ReadFile(list)
	if err != nil || bytes.Count(text, []byte("\n")) != 2 || bytes.Contains(text, []byte("242061234567")) || !bytes.Contains(text, []byte(`"token":"~`)) {
		t.Errorf("%v; the list is %s", err, text)
	}
	f.done("erase", "--again", list, "--by", "Awa", "--reason", "restored")
	write := func(b []byte) {
		if err := os.WriteFile(list, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(append(bytes.Clone(text), `{"token":"~ab`...)) // the machine stopped here, before anything was erased
	f.done("erase", "--again", list, "--by", "Awa", "--reason", "restored")
	write(bytes.Replace(text, []byte(`"before":"20`), []byte(`"before":"90`), 1))
	f.refused("line 2", "erase", "--again", list, "--by", "Awa", "--reason", "restored")
	f.refused("line 2", "restored", "--lost-from", "2020-01-01T00:00:00Z", "--keys-reviewed", "--erased", list)
	write(append([]byte("something else\n"), text...))
	f.refused("line 1", "erase", "--again", list, "--by", "Awa", "--reason", "restored")
	write(append(bytes.Repeat([]byte("x"), maxErasedLine), '\n'))
	f.refused("line 1", "erase", "--again", list, "--by", "Awa", "--reason", "restored")
}

// erasable is a database that was started once.
type erasable struct {
	t        *testing.T
	database string
}

func newErasable(t *testing.T, dir string) *erasable {
	t.Helper()
	e := &erasable{t, filepath.Join(dir, "till.db")}
	k := &killing{t: t, dir: dir, database: e.database, book: filepath.Join(dir, "operator.db"), answered: map[string]string{}}
	k.end(k.start(), 15)
	return e
}

func (e *erasable) run(args []string) (int, string) {
	var out, errs bytes.Buffer
	code := run(e.t.Context(), append(args, "--database", e.database), &out, &errs)
	return code, out.String() + errs.String()
}

func (e *erasable) done(args ...string) string {
	e.t.Helper()
	code, said := e.run(args)
	if code != 0 {
		e.t.Errorf("till %s ends with %d: %s", strings.Join(args, " "), code, said)
	}
	return said
}

func (e *erasable) refused(want string, args ...string) {
	e.t.Helper()
	if code, said := e.run(args); code == 0 || !strings.Contains(said, want) {
		e.t.Errorf("till %s ends with %d: %s; want %q", strings.Join(args, " "), code, said, want)
	}
}
