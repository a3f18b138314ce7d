package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"

	"till"
	"till/engine"
	"till/internal/escape"
	"till/internal/logs"
	"till/provider"
	"till/server"
	"till/store"
	"till/store/access"
	"till/store/admin"
	"till/store/matching"
	"till/store/storetest"
	"till/webhook"
)

// hostile is what a client, an operator or a file may say: it ends its line,
// forges one, erases the screen, turns the direction, hides.
const hostile = "x\nFORGED line\r\tFORGED\x1b[2J\x1b]0;t\x07\u202e0005\u2066\u2028FORGED\u200b\u0085\u009b31m\u007f\u061c\ufeff\U000e0041y"

// shownHostile is a part of it that is there wherever it is shown.
const shownHostile = "FORGED line"

// hostileArgs are arguments for every command that ends: those that show what
// others say must show it (shows), all of them must be safe. A new command is
// added here.
type hostileArgs struct {
	args  []string
	shows bool
}

// TestNoCommandLetsTextForgeALine runs every command on a database, and with
// arguments, that are hostile in every text that somebody else chooses.
func TestNoCommandLetsTextForgeALine(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	ran := map[string]bool{}
	for _, c := range h.commands() {
		for _, more := range [][]string{nil, {"--json"}} {
			args := append(slices.Clone(c.args), more...)
			root := newRoot()
			cmd, _, err := root.Find(args)
			if err != nil {
				t.Fatalf("%q: %v", args, err)
			}
			ran[cmd.CommandPath()] = true
			if cmd.Flags().Lookup("database") != nil {
				args = append(args, "--database", h.database)
			}
			var out, errs bytes.Buffer
			code := run(t.Context(), args, &out, &errs)
			told := out.String() + errs.String()
			checkSafe(t, strings.Join(args, " "), told)
			if c.shows && !strings.Contains(told, shownHostile) {
				t.Errorf("%q ends with %d and shows nothing of it: %q", args, code, told)
			}
			if more != nil && out.Len() > 0 {
				for line := range strings.Lines(out.String()) {
					if !json.Valid([]byte(line)) {
						t.Errorf("%q prints what is no JSON: %q", args, line)
					}
				}
			}
		}
	}
	for _, name := range []string{"all.csv", "all.jsonl", "differences.csv"} {
		text, err := os.ReadFile(filepath.Join(h.dir, name))
		if err != nil || !strings.Contains(string(text), shownHostile) {
			t.Errorf("%s is %q, %v", name, text, err)
		}
		checkSafe(t, name, string(text))
	}
	for _, path := range []string{"till dev", "till serve", "till simulate", "till bench", "till proxy"} {
		ran[path] = true // they run until they are stopped, or need a server; what they print is their own, and the rule about printing holds for them
	}
	each(newRoot(), func(cmd *cobra.Command) {
		if cmd.Runnable() && !cmd.HasSubCommands() && !ran[cmd.CommandPath()] {
			t.Errorf("%s is not tried with hostile text; say how", cmd.CommandPath())
		}
	})
}

// checkSafe fails the test with whatever of a text a terminal would obey.
func checkSafe(t *testing.T, what, told string) {
	t.Helper()
	for _, line := range strings.Split(told, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "FORGED") {
			t.Errorf("%q has a forged line: %q", what, line)
		}
		for _, r := range strings.TrimSuffix(line, "\r") {
			if !unicode.IsGraphic(r) || unicode.Is(unicode.Cf, r) {
				t.Errorf("%q lets %U through: %q", what, r, line)
				break
			}
		}
	}
}

func TestNoLogLineIsForged(t *testing.T) {
	t.Parallel()
	for _, asJSON := range []bool{false, true} {
		var b bytes.Buffer
		log := logs.New(escape.NewWriter(&b), asJSON, slog.LevelInfo)
		log.With(hostile, hostile).WithGroup(hostile).Error(hostile, "reference", hostile, "error", errors.New(hostile), "any", []string{hostile})
		checkSafe(t, "the log", b.String())
		if n := strings.Count(b.String(), "\n"); n != 1 || !strings.Contains(b.String(), shownHostile) || asJSON && !json.Valid(b.Bytes()) {
			t.Errorf("the log has %d lines: %q", n, b.String())
		}
	}
}

// hostileBooks is a database in which every text that others choose is hostile.
type hostileBooks struct {
	t                                                   *testing.T
	text                                                string // what others say
	dir, database                                       string
	client, payment, payout, open, caseID, stray, other till.ID
	key                                                 string
}

func newHostile(t *testing.T) *hostileBooks {
	dir := t.TempDir()
	return newBooksOf(t, hostile, dir, filepath.Join(dir, "till.db"))
}

// newBooksOf makes a database with a row of every kind, in which every text that others
// choose is the same.
func newBooksOf(t *testing.T, text, dir, database string) *hostileBooks {
	h := &hostileBooks{t: t, text: text, dir: dir, database: database}
	made, err := server.New(t.Context(), server.Config{Database: h.database, Listen: "127.0.0.1:0", SecretFile: filepath.Join(dir, "till.secret")})
	if err != nil {
		t.Fatal(err)
	}
	made.Close()
	s := storetest.Open(t, store.Config{Path: h.database, Readers: 1})
	client := storetest.NewClient(t, s, till.Test)
	h.client, h.key = client.ID, "hostilekey00"
	quoted, err := json.Marshal(h.text)
	if err != nil {
		t.Fatal(err)
	}
	reference := strings.Trim(string(quoted), `"`)
	c, m := storetest.NewCollector(t, s), storetest.NewDisburser(t, s)
	paid := storetest.NewPayment(t, c, client, storetest.Body{Reference: reference, Rest: `"description": ` + string(quoted)})
	storetest.Apply(t, c, s, paid, provider.Result{Outcome: provider.Success, Receipt: "R" + h.text, Amount: paid.Amount, Message: h.text, Code: h.text})
	open := storetest.NewPayment(t, c, client, storetest.Body{Reference: reference, Value: "700"})
	storetest.Apply(t, c, s, open, provider.Result{Outcome: provider.Success, Receipt: "S" + h.text, Amount: till.Money{Minor: 9, Currency: "XAF"}, Message: h.text, Code: h.text})
	out := storetest.NewPayout(t, m, client, storetest.Body{Reference: h.text, Value: "100"}, 0)
	storetest.ApplyPayout(t, m, s, out, provider.Result{Outcome: provider.Success, Receipt: "P" + h.text, Amount: out.Amount, Message: h.text})
	h.payment, h.payout, h.open = paid.ID, out.ID, open.ID
	h.addRows(s)
	return h
}

// addRows adds what only the program writes, past its checks.
func (h *hostileBooks) addRows(s *store.Store) {
	ctx := h.t.Context()
	err := s.Update(ctx, func(tx *store.Tx) error {
		now := tx.Now()
		named := &till.Client{ID: till.NewID(now), Name: h.text, Mode: till.Live, CreatedAt: now}
		h.other = named.ID
		heads, err := tx.LockHeads(ctx, []till.ID{h.client})
		if err != nil {
			return err
		}
		head := heads[h.client]
		h.stray = till.NewID(now)
		steps := []func() error{
			func() error { return tx.InsertClient(ctx, named) },
			func() error {
				return access.InsertKey(ctx, tx, &till.Key{ID: h.key, ClientID: h.client, Name: h.text, Scopes: till.DefaultScopes, CreatedAt: now, SecretHash: [32]byte{1}})
			},
			func() error {
				return tx.InsertAudit(ctx, []*store.AuditRow{{ClientID: h.client, Sequence: head.NextAudit(), At: head.NextTime(), Actor: h.text, Action: h.text, Detail: h.text, Cause: h.text}})
			},
			func() error { return tx.SaveHeads(ctx, heads) },
			func() error {
				return access.InsertPerson(ctx, tx, &access.Person{Person: till.Person{ID: till.NewID(now), Login: strings.ToLower(h.text), Name: h.text, Language: h.text, CreatedAt: now}})
			},
			func() error {
				return tx.OpenCases(ctx, []*store.Case{{ClientID: h.client, ID: till.NewID(now + 1), SubjectID: h.payment, Kind: engine.CaseUnknownStatus, Detail: h.text, OpenedAt: now}})
			},
			func() error {
				_, err := matching.InsertStray(ctx, tx, &matching.Stray{Connection: h.text, ID: h.stray, Receipt: h.text, Source: matching.StrayCallback, SeenAt: now, Claimed: h.text, Direction: matching.StrayIn})
				return err
			},
			func() error {
				return tx.OpenOperatorCase(ctx, &store.OperatorCase{Connection: h.text, Kind: store.CaseAccount, Detail: h.text, OpenedAt: now})
			},
			func() error { return admin.SetConnectionFingerprint(ctx, tx, h.text, h.text) },
			func() error {
				return tx.HoldPayouts(ctx, store.Hold{Client: h.client, Cause: store.HoldPerson, By: h.text, Reason: h.text})
			},
			func() error {
				return admin.InsertRestore(ctx, tx, &admin.Restore{At: now, LostFrom: now, By: h.text, LogID: till.NewID(now)})
			},
		}
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
		cases, err := tx.Cases(ctx, store.CaseFilter{Kind: engine.CaseUnknownStatus, Limit: 1})
		if err == nil {
			h.caseID = cases[0].ID
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// file writes a file whose name is hostile, as far as a file system lets it.
func (h *hostileBooks) file(name, text string) string {
	path := filepath.Join(h.dir, strings.ReplaceAll(hostile, "/", "")+name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// commands are in the order in which they can be run on one database.
func (h *hostileBooks) commands() []hostileArgs {
	letter := h.file("letter.txt", "evidence")
	mapping := h.file("mapping.toml", "receipt = \"ref\"\nfixed_currency = \"XAF\"\nsuccess = [\"ok\"]\n")
	quoted := `"` + strings.NewReplacer("\n", "", "\r", "").Replace(hostile) + `"` // a record is a line there
	statement := h.file("statement.csv", "ref,amount,status,time\n"+quoted+",5,ok,2026-01-02T00:00:00Z\nr,"+quoted+","+quoted+","+quoted+"\n")
	client, secret := h.client.String(), webhook.NewSecret().Reveal()
	captured := h.file("request.txt", "webhook-id: e\nwebhook-timestamp: "+quoted+"\nwebhook-signature: v1,x\n\n{}")
	list := []hostileArgs{
		{[]string{"version"}, false},
		{[]string{"client", "list"}, true},
		{[]string{"client", "create", "--name", hostile}, false},
		{[]string{"client", "methods", client, "--enable", hostile}, false},
		{[]string{"client", "fees", client, "--kind", "payment", "--method", hostile, "--currency", hostile, "--flat", "5"}, false},
		{[]string{"client", "suspend", hostile}, true},
		{[]string{"client", "resume", hostile}, true},
		{[]string{"client", "pay-name", client, "--confirm", hostile, "--by", "Anne"}, false},
		{[]string{"client", "pay-name", hostile}, true},
		{[]string{"pages", "block", hostile, "--by", "Anne", "--reason", "letter"}, false},
		{[]string{"pages", "unblock", "242061234567", "--by", "Anne", "--reason", hostile}, false},
		{[]string{"pages", "off", "--client", hostile, "--by", "Anne", "--reason", "poster"}, true},
		{[]string{"pages", "on", "--client", client, "--by", "Anne", "--reason", hostile}, false},
		{[]string{"pages", "list"}, false},
		{[]string{"key", "list", "--client", client}, true},
		{[]string{"key", "create", "--client", client, "--name", hostile}, false},
		{[]string{"key", "create", "--client", client, "--scopes", hostile}, false},
		{[]string{"key", "rotate", hostile}, false},
		{[]string{"key", "revoke", hostile}, false},
		{[]string{"person", "list"}, true},
		{[]string{"person", "roles", hostile}, true},
		{[]string{"person", "invite", "--house", hostile, "--name", hostile}, false},
		{[]string{"person", "reset", hostile}, true},
		{[]string{"person", "disable", "no" + hostile}, true},
		{[]string{"person", "disable", hostile}, false},
		{[]string{"person-data", "242061234567"}, true},
		{[]string{"person-data", hostile}, false},
		{[]string{"erase", "--older-than", hostile, "--dry-run"}, true},
		{[]string{"erase", "--phone", "242061234567", "--dry-run"}, false},
		{[]string{"erase", "--again", filepath.Join(h.dir, "no", hostile), "--by", "Anne", "--reason", "r"}, true},
		{[]string{"payment", "show", h.payment.String()}, true},
		{[]string{"payout", "show", h.payout.String()}, true},
		{[]string{"payment", "show", hostile}, true},
		{[]string{"payment", "find", "--reference", hostile}, true},
		{[]string{"payout", "find", "--client", hostile, "--receipt", hostile}, true},
		{[]string{"report", "--test"}, false},
		{[]string{"report", "--day", hostile}, true},
		{[]string{"report", "--zone", hostile}, true},
		{[]string{"status"}, true},
		{[]string{"payouts", "held"}, true},
		{[]string{"webhook", "replay", hostile, "--failed", "--by", "Anne"}, true},
		{[]string{"webhook", "check", hostile, "--secret", secret}, true},
		{[]string{"webhook", "verify", captured, "--secret", secret}, true},
		{[]string{"listen", "--forward-to", "http://127.0.0.1:3000/", "--since", hostile}, true},
		{[]string{"trigger", hostile, "--set", hostile}, true},
		{[]string{"payouts", "hold", "--client", client, "--by", "Anne", "--reason", hostile}, false},
		{[]string{"payouts", "release", "--client", hostile, "--by", "Anne", "--reason", "over"}, true},
		{[]string{"payout", "cancel", h.payout.String(), "--by", "Anne", "--reason", "a mistake"}, false},
		{[]string{"cases"}, true},
		{[]string{"cases", "show", h.caseID.String()}, true},
		{[]string{"strays"}, true},
		{[]string{"strays", "show", h.stray.String()}, true},
		{[]string{"audit", "--client", client}, true},
		{[]string{"audit", "head"}, false},
		{[]string{"audit", "--client", client, "--from", hostile}, false},
		{[]string{"statement", "--client", client, "--quiet"}, true},
		{[]string{"statement", "--client", client, "--currency", hostile, "--output", filepath.Join(h.dir, "no", hostile)}, true},
		{[]string{"statement", "--client", client, "--output", filepath.Join(h.dir, "all.csv"), "--format", "csv", "--json=false"}, false},
		{[]string{"statement", "--client", client, "--output", filepath.Join(h.dir, "all.jsonl"), "--format", "jsonl"}, false},
		{[]string{"connections"}, true},
		{[]string{"backup", "--to", filepath.Join(h.dir, "saved")}, false},
		{[]string{"backup", "--to", filepath.Join(h.dir, "saved"), "--recipient", hostile}, true},
		{[]string{"backup", "--to", hostile + "://x"}, true},
		{[]string{"drill", filepath.Join(h.dir, "no", hostile)}, true},
		{[]string{"drill", h.file("no.gz", "\x1f\x8b"+hostile), "--secret-file", hostile}, false},
		{[]string{"restore", filepath.Join(h.dir, "no", hostile)}, true},
		{[]string{"health", "--admin-listen", hostile}, true},
		{[]string{"top", "--once", "--admin-listen", hostile}, true},
		{[]string{"doctor", "--bundle", filepath.Join(h.dir, "no", hostile)}, true},
		{[]string{"restored", "--show"}, true},
		{[]string{"verify"}, false},
		{[]string{"doctor", "--secret-file", filepath.Join(h.dir, hostile)}, true},
		{[]string{"reconcile", "--connection", hostile, "--statement", statement, "--mapping", mapping, "--output", filepath.Join(h.dir, "differences.csv"), "--from", "2020-01-01", "--to", "2030-01-01"}, true},
		{[]string{"reconcile", "--connection", "no" + hostile, "--statement", statement, "--mapping", mapping}, true},
		{[]string{"cases", "resolve", h.caseID.String(), "--by", "Anne", "--reason", "seen", "--evidence", letter}, false},
		{[]string{"repair", "wallets", "--by", hostile}, true},
		{[]string{"repair", "wallets", "--by", "Anne"}, false},
		{[]string{"adjust", "--client", client, "--currency", hostile, "--amount", "5", "--reason", "r", "--by", "Anne", "--id", till.NewID(1).String()}, true},
		{[]string{"adjust", "--client", client, "--currency", "XAF", "--amount", "5", "--reason", "r", "--by", hostile, "--id", till.NewID(1).String()}, true},
		{[]string{"payment", "resolve", h.open.String(), "--as", "success", "--by", "Anne", "--evidence", letter + hostile}, true},
		{[]string{"payout", "resolve", h.payout.String(), "--as", "failed", "--by", "Anne", "--evidence", letter}, false},
		{[]string{"refund", "create", hostile, "--reason", "other", "--key", till.NewID(1).String(), "--by", "Anne"}, true},
		{[]string{"refund", "create", h.payment.String(), "--reason", hostile, "--key", hostile, "--by", "Anne"}, false},
		{[]string{"refund", "create", h.payment.String(), "--reason", "other", "--key", till.NewID(1).String(), "--by", hostile, "--secret-file", filepath.Join(h.dir, "till.secret")}, false},
		{[]string{"strays", "attribute", h.stray.String(), "--client", client, "--by", "Anne", "--evidence", letter}, false},
		{[]string{"strays", "foreign", h.stray.String(), "--by", "Anne", "--reason", hostile}, false},
		{[]string{"migrate"}, false},
		{[]string{"level"}, false},
		{[]string{"level", "raise", "--by", hostile}, true},
		{[]string{"level", "raise", "--by", "Anne"}, false},
		{[]string{"secret", "list"}, false},
		{[]string{"secret", "add", "--by", hostile}, true},
		{[]string{"secret", "add", "--by", "Anne"}, false},
		{[]string{"secret", "use", hostile, "--by", "Anne"}, false},
		{[]string{"secret", "use", "2", "--by", "Anne"}, false},
		{[]string{"secret", "reseal", "--secret-file", hostile}, true},
		{[]string{"secret", "reseal"}, false},
		{[]string{"secret", "retire", "1", "--by", "Anne"}, false},
		{[]string{"restored", "--lost-from", "2020-01-01T00:00:00Z"}, true},
		{[]string{"restored", hostile}, true},
		{[]string{"client", "list", "--" + hostile}, true},
	}
	return list
}
