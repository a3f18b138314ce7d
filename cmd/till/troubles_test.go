package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"till/books"
	"till/server"
	"till/store"
	"till/store/storetest"
	"till/upkeep"
)

// Each trouble is caused by rows beside a running server; then all that shows troubles shows
// it, and the guide has it. The console's test does the same for its page.
func TestEachTroubleIsToldEverywhere(t *testing.T) {
	t.Parallel()
	var known []books.TroubleName
	for _, c := range slices.Concat(storetest.Causes(t, "till.db"), storetest.Causes(t, "postgres://")) {
		known = append(known, c.Name)
	}
	for _, e := range storetest.Engines() {
		database := e.Config(t).Path
		t.Run(e.Name, func(t *testing.T) { t.Parallel(); tellTroubles(t, database) })
	}
	guide, err := os.ReadFile("../../docs/guide/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "## Is everything well")
	section, _, _ = strings.Cut(section, "**Look at it now.**")
	var rows []books.TroubleName
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|").FindAllStringSubmatch(section, -1) {
		rows = append(rows, books.TroubleName(m[1]))
	}
	if !slices.Equal(rows, books.TroubleNames()) {
		t.Errorf("the guide's table has %q, the program %q", rows, books.TroubleNames())
	}
	for _, name := range books.TroubleNames() {
		if !slices.Contains(known, name) {
			t.Errorf("nothing causes %q", name)
		}
	}
}

func tellTroubles(t *testing.T, database string) {
	dir := t.TempDir()
	srv, err := server.New(t.Context(), server.Config{Database: database, SecretFile: filepath.Join(dir, "till.secret"), SandboxPath: filepath.Join(dir, "sandbox.db"),
		Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	s, err := store.Open(t.Context(), store.Config{Path: database, Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d := &displays{t: t, database: database, admin: srv.AdminAddr().String(), store: s}
	awaitTop(d, "the server's pulse", func(v *topView) bool { return v.AgeBecause == "" })
	for _, c := range storetest.Causes(t, database) {
		if c.Rows != nil && slices.Contains(d.status().Troubles, string(c.Name)) {
			t.Fatalf("%s is there before its cause", c.Name)
		}
		for _, row := range c.Rows {
			storetest.Raw(t, database, row)
		}
		d.tell(c)
	}
}

// displays are all that shows troubles of one database.
type displays struct {
	t               *testing.T
	database, admin string
	store           *store.Store
}

func (d *displays) run(args ...string) string {
	d.t.Helper()
	var out, errs bytes.Buffer
	if code := run(d.t.Context(), args, &out, &errs); code == 2 {
		d.t.Fatalf("%q ends with 2: %s", args, errs.String())
	}
	return out.String()
}

func (d *displays) status() (s server.StatusJSON) {
	d.t.Helper()
	if err := json.Unmarshal([]byte(d.run("status", "--json", "--database", d.database)), &s); err != nil {
		d.t.Fatal(err)
	}
	return s
}

func (d *displays) tell(c storetest.Cause) {
	t, name := d.t, string(c.Name)
	t.Helper()
	line := regexp.MustCompile(`(?m)trouble +` + name + `: .*` + regexp.QuoteMeta(c.Says))
	for command, text := range map[string]string{"status": d.run("status", "--database", d.database), "doctor": d.run("doctor", "--admin-listen", "", "--database", d.database)} {
		if !line.MatchString(text) || !regexp.MustCompile(`A person has to look: .*\b`+name+`\b|Something is wrong`).MatchString(text) {
			t.Errorf("till %s does not tell %s:\n%s", command, name, text)
		}
	}
	if s := d.status(); s.Well || !slices.Contains(s.Troubles, name) {
		t.Errorf("till status --json does not tell %s: %q", name, s.Troubles)
	}
	err := d.store.View(t.Context(), func(tx *store.Tx) error {
		all, err := upkeep.ReadGauges(t.Context(), tx)
		if !slices.ContainsFunc(all, func(g upkeep.Gauge) bool {
			return g.Name == "trouble" && g.Value == 1 && slices.Equal(g.Labels, []string{name})
		}) {
			t.Errorf("no gauge tells %s", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	awaitTop(d, name, func(v *topView) bool {
		return slices.Contains(v.Troubles, name) && (c.Name != books.TroubleOpen || v.Open == storetest.WaitingPayments)
	})
}

// awaitTop waits until 'till top' shows something. The gauges are read once a minute, so only
// what it reads from the database now is there in time.
func awaitTop(d *displays, what string, shows func(*topView) bool) {
	d.t.Helper()
	var text string
	for end := time.Now().Add(waitTimeout / 3); time.Now().Before(end); {
		text = d.run("top", "--once", "--json", "--every", "100ms", "--admin-listen", d.admin)
		var v topView
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			d.t.Fatal(err)
		}
		if shows(&v) {
			return
		}
	}
	d.t.Errorf("till top does not show %s:\n%s", what, text)
}
