package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"till"
	"till/books"
	"till/engine"
	"till/store"
	"till/store/storetest"
)

var update = flag.Bool("update", false, "rewrite the answers in testdata")

// TestGolden plays the stories in testdata: requests and the answers to them,
// byte for byte, in virtual time. A file is a txtar archive of sections:
//
//	request          the request line, headers, an empty line, the body
//	create [KEY]     POST /payments with a good body, changed by lines of
//	                 "/pointer = JSON" or "/pointer -"
//	pay [KEY]        the same for POST /payouts
//	response         the answer to the request before it
//	wait DURATION    time passes
//	suspend, resume, enable, disable, revoke, close, open, stop, start
//	                 an act on the account or the service
//
// Braces name what differs from run to run: {test} is the key of the client
// test, {id1} the first id that an answer showed, {time1} the first time.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		for _, e := range storetest.Engines() {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+e.Name, func(t *testing.T) {
				t.Parallel()
				database := e.Config(t)
				synctest.Test(t, func(t *testing.T) { tell(t, file, database, e.Name) })
			})
		}
	}
}

// tell runs one file on a database: every engine gives the same answers, byte
// for byte. On a cluster due steps are found a little later, so that times may differ
// which are the same elsewhere.
func tell(t *testing.T, file string, database store.Config, engine string) {
	story, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	o := optionsOf(t, string(story.Comment))
	o.database = database
	s := newTeller(t, o)
	s.anyTime = engine == "citus"
	for i := range story.Files {
		s.section(&story.Files[i])
	}
	s.world.stop()
	if *update && engine == "sqlite" {
		if err := os.WriteFile(file, txtar.Format(story), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// optionsOf reads "option: rate=2" lines.
func optionsOf(t *testing.T, comment string) (o options) {
	for _, line := range strings.Split(comment, "\n") {
		option, ok := strings.CutPrefix(line, "option: ")
		if !ok {
			continue
		}
		var err error
		switch name, value, _ := strings.Cut(option, "="); name {
		case "rate":
			o.rate, err = strconv.ParseFloat(value, 64)
		case "deliver":
			o.deliver = true
		case "no-sandbox":
			o.noSandbox = true
		default:
			err = fmt.Errorf("no option %q", name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// teller plays one story.
type teller struct {
	t       *testing.T
	world   *world
	names   *names
	creates int
	answer  string // the last one, not yet compared
	anyTime bool   // which times are equal is not compared
}

func newTeller(t *testing.T, o options) *teller {
	s := &teller{t: t, world: newWorld(t, o), names: newNames()}
	for name, key := range s.world.keys {
		s.names.know(name, key)
		s.names.know(name+".id", strings.Split(key, "_")[2])
	}
	return s
}

func (s *teller) section(f *txtar.File) {
	words := strings.Fields(f.Name)
	switch words[0] {
	case "request":
		s.send(parseRequest(s.t, s.names.expand(string(f.Data))))
	case "create", "pay":
		key := "test"
		if len(words) > 1 {
			key = words[1]
		}
		s.send(s.create(words[0], s.world.keys[key], s.names.expand(string(f.Data))))
	case "response":
		if *update {
			f.Data = []byte(s.answer)
			break
		}
		got, want := s.answer, string(f.Data)
		if s.anyTime {
			got, want = namedTime.ReplaceAllString(got, "{time}"), namedTime.ReplaceAllString(want, "{time}")
		}
		if diff := cmp.Diff(got, want); diff != "" {
			s.t.Errorf("answer (-got +want):\n%s", diff)
		}
	case "wait":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			s.t.Fatal(err)
		}
		time.Sleep(d)
	default:
		s.act(words)
	}
	synctest.Wait()
}

// act does what no request can.
func (s *teller) act(words []string) {
	w, ctx := s.world, context.Background()
	var err error
	switch words[0] {
	case "suspend":
		err = w.accounts.Suspend(ctx, w.clients[words[1]].ID, "a test")
	case "resume":
		err = w.accounts.Resume(ctx, w.clients[words[1]].ID, "a test")
	case "enable", "disable":
		err = w.accounts.EnableMethod(ctx, w.clients[words[1]].ID, words[2], words[0] == "enable", "a test")
	case "revoke":
		_, err = w.accounts.RevokeKey(ctx, w.clients[words[1]].ID, s.names.expand("{"+words[2]+".id}"), false, "a test")
	case "close", "open":
		w.closed.Store(words[0] == "close")
	case "stop", "start":
		w.unready.Store(words[0] == "stop")
	case "verify":
		storetest.CheckInvariants(s.t, w.store)
	case "fee", "adjust", "paid":
		err = s.money(ctx, words)
	case "hold", "release":
		err = w.store.Update(ctx, func(tx *store.Tx) error {
			if words[0] == "hold" {
				return tx.HoldPayouts(ctx, store.Hold{Client: store.EveryClient, Cause: store.HoldRestored, By: "a test"})
			}
			return tx.ReleasePayouts(ctx, store.EveryClient, store.HoldRestored)
		})
	default:
		err = fmt.Errorf("no section %q", words[0])
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// money does what people decide about a client's money: its fees in XAF, a
// correction of its wallet, and that a payout was paid whatever was said of it.
func (s *teller) money(ctx context.Context, words []string) error {
	w, client := s.world, s.world.clients[words[1]]
	if words[0] == "paid" {
		id, err := till.ParseID(s.names.expand(words[2]))
		if err != nil {
			return err
		}
		return w.payouts.Resolve(ctx, store.Ref{Client: client.ID, ID: id}, engine.Resolution{Success: true, Receipt: "LETTER-1", By: "a test", Evidence: "a letter"})
	}
	amount, err := strconv.ParseInt(words[len(words)-1], 10, 64)
	if err != nil {
		return err
	}
	if words[0] == "fee" {
		return w.accounts.SetFee(ctx, client.ID, till.Fee{Kind: till.FeeKind(words[2]), Method: "mtn_momo", Currency: "XAF", Flat: amount}, "a test")
	}
	_, err = books.Adjust(ctx, w.store, books.Adjustment{Client: client.ID, ID: till.NewID(1), Amount: till.Money{Minor: amount, Currency: "XAF"}, Reason: "a test", By: "a test"})
	return err
}

// parseRequest reads a request as it is written in a file. The made-up header
// Escaped says that the body is written like a Go string.
func parseRequest(t *testing.T, text string) *http.Request {
	t.Helper()
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(strings.TrimSuffix(head, "\n"), "\n")
	method, target, _ := strings.Cut(lines[0], " ")
	body = strings.TrimSuffix(body, "\n")
	header := http.Header{}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Escaped" {
			var err error
			if body, err = strconv.Unquote(`"` + body + `"`); err != nil {
				t.Fatalf("body %s: %v", body, err)
			}
			continue
		}
		header.Add(name, value)
	}
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if body == "" {
		r.Body = http.NoBody
	}
	r.Header = header
	return r
}

// create makes the request of a create or pay section.
func (s *teller) create(what, key, changes string) *http.Request {
	s.creates++
	path, who := "/v1/payments", "customer"
	if what == "pay" {
		path, who = "/v1/payouts", "recipient"
	}
	body := fmt.Sprintf(`{"method":"mtn_momo","country":"CG","amount":{"value":"5000","currency":"XAF"},`+
		`"idempotency_key":"00000000-0000-4000-8000-%012d","%s":{"phone":"242064000001"}}`, s.creates, who)
	var v any = decodeJSON(s.t, body)
	for _, line := range strings.Split(strings.TrimSpace(changes), "\n") {
		if line == "" {
			continue
		}
		pointer, value, set := strings.Cut(line, " = ")
		if !set {
			pointer = strings.TrimSuffix(line, " -")
		}
		v = change(s.t, v, strings.Split(pointer, "/")[1:], value, set)
	}
	b, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(b))
	r.Header.Set("X-Api-Key", key)
	r.Header.Set("Content-Type", "application/json")
	return r
}

func decodeJSON(t *testing.T, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// change sets or deletes one member.
func change(t *testing.T, v any, path []string, value string, set bool) any {
	t.Helper()
	if len(path) == 0 {
		return decodeJSON(t, value)
	}
	switch in := v.(type) {
	case map[string]any:
		if len(path) == 1 && !set {
			delete(in, path[0])
			return in
		}
		in[path[0]] = change(t, in[path[0]], path[1:], value, set)
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil {
			t.Fatal(err)
		}
		in[i] = change(t, in[i], path[1:], value, set)
	default:
		t.Fatalf("nothing to change at %v", path)
	}
	return v
}

// send sends a request and keeps what is to be compared of the answer.
func (s *teller) send(r *http.Request) {
	s.t.Helper()
	var sent []byte
	if r.Body != nil {
		buf := &bytes.Buffer{}
		if _, err := buf.ReadFrom(r.Body); err != nil {
			s.t.Fatal(err)
		}
		sent = buf.Bytes()
		r.Body = struct {
			*bytes.Reader
			nopCloser
		}{bytes.NewReader(sent), nopCloser{}}
		if len(sent) == 0 {
			r.Body = http.NoBody
		}
	}
	a := httptest.NewRecorder()
	s.world.handler.ServeHTTP(a, r)
	checkAnswer(s.t, r, sent, a)
	s.names.given(r.URL.RequestURI() + string(sent))
	s.answer = s.names.hide(show(s.t, a))
}

type nopCloser struct{}

func (nopCloser) Close() error { return nil }

// common are the headers that checkAnswer reads, and that say nothing new.
var common = []string{"X-Request-Id", "Api-Version", "Cache-Control", "X-Content-Type-Options", "Content-Length", "Date"}

// show writes an answer as it is written in a file: JSON is indented, which the
// check that it was compact makes harmless.
func show(t *testing.T, a *httptest.ResponseRecorder) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s\n", a.Code, http.StatusText(a.Code))
	var names []string
	for name := range a.Header() {
		if !slices.Contains(common, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(a.Header()[name], ", "))
	}
	if a.Body.Len() == 0 {
		return b.String()
	}
	b.WriteByte('\n')
	switch kind := a.Header().Get("Content-Type"); {
	case strings.HasPrefix(kind, "text/csv"), kind == "application/jsonl", kind == "application/x-ndjson":
		return b.String() + strings.ReplaceAll(a.Body.String(), "\r\n", "\n")
	case !strings.HasSuffix(kind, "json"):
		return b.String() + "(text)\n"
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, a.Body.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(indented.String(), a.Header().Get("X-Request-Id"), "{request}")
	return b.String() + reads.ReplaceAllString(text, "${1}{n}") + "\n"
}
