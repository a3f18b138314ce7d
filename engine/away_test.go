package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"till"
	"till/collect"
	"till/engine"
	"till/internal/db/pgtest"
	"till/payout"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// outage is a database that a test can make unreachable.
type outage struct {
	s          *store.Store
	begin, end func()
}

// sealedFiles is set in the process in which no file may be written.
const sealedFiles = "TILL_TEST_SEALED_FILES"

// inOutage runs f on each engine with a database that can be unreachable. PostgreSQL is
// reached through a proxy, which hangs. SQLite is unreachable when no
// file can be written; that is a limit of the whole process, so the test runs in one of
// its own. To forbid only growth would not do: a log that starts again from its
// beginning does not grow.
func inOutage(t *testing.T, f func(t *testing.T, o *outage)) {
	t.Helper()
	t.Parallel()
	if os.Getenv(sealedFiles) != "" {
		signal.Ignore(syscall.SIGXFSZ)
		s := storetest.Open(t, store.Config{Path: t.TempDir() + "/till.db"})
		limit := func(size uint64) {
			var l syscall.Rlimit
			if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
				t.Error(err)
			}
			l.Cur = min(size, l.Max)
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
				t.Error(err)
			}
		}
		f(t, &outage{s: s, end: func() { limit(1 << 62) }, begin: func() { limit(0) }})
		return
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$", "-test.count=1")
		cmd.Env = append(os.Environ(), sealedFiles+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	if all := storetest.Engines(); len(all) > 1 {
		t.Run("postgres", func(t *testing.T) {
			t.Parallel()
			proxy, through, err := pgtest.NewProxy(all[1].Config(t).Path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(proxy.Close)
			f(t, &outage{
				s:     storetest.Open(t, store.Config{Path: through + "&connect_timeout=1", NoNotify: true}),
				begin: func() { proxy.Hang(true); proxy.CutAll() },
				end:   func() { proxy.Hang(false) },
			})
		})
	}
}

// byHandle is an operator that can be asked only by the handle that its answer
// to the send gave, as M-Pesa: if that is lost, nobody ever learns what became
// of the money.
type byHandle struct {
	name   string
	answer func(r provider.Request) // called before a send is answered
}

func (o *byHandle) Submit(_ context.Context, r provider.Request) (provider.Result, error) {
	if o.answer != nil {
		o.answer(r)
	}
	return provider.Result{Outcome: provider.Accepted, Handle: "H" + r.ID.String()}, nil
}

func (o *byHandle) Check(_ context.Context, q provider.Query) (provider.Result, error) {
	if q.Handle != "H"+q.ID.String() {
		return provider.Result{}, errors.New("nobody knows what to ask about")
	}
	return provider.Result{Outcome: provider.Success, Receipt: "R" + q.ID.String(), Amount: q.Amount}, nil
}

func (o *byHandle) Fingerprint() string { return o.name }

func (o *byHandle) Traits() provider.Traits {
	return provider.Traits{ApprovalWindow: time.Hour, SubmitTimeout: 10 * time.Second, CheckTimeout: time.Second, NotFoundDelay: time.Second,
		Poll: 100 * time.Millisecond, PollMax: time.Second, Grace: time.Hour, NeedsCallbackBody: true, NoBreaker: true}
}

// journal is a log that a test can wait for.
type journal struct {
	slog.Handler
	mu    sync.Mutex
	lines []string
	new   chan struct{}
}

func newJournal() *journal {
	return &journal{Handler: slog.DiscardHandler, new: make(chan struct{}, 1)}
}

func (j *journal) Enabled(context.Context, slog.Level) bool { return true }

func (j *journal) WithAttrs([]slog.Attr) slog.Handler { return j }

func (j *journal) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	j.mu.Lock()
	j.lines = append(j.lines, line)
	j.mu.Unlock()
	select {
	case j.new <- struct{}{}:
	default:
	}
	return nil
}

// await waits for a line that holds all of some words.
func (j *journal) await(t *testing.T, words ...string) {
	t.Helper()
	end := time.After(40 * time.Second)
	for {
		j.mu.Lock()
		for _, line := range j.lines {
			if holds(line, words) {
				j.mu.Unlock()
				return
			}
		}
		j.mu.Unlock()
		select {
		case <-j.new:
		case <-end:
			t.Fatalf("nothing in the log of %d lines says %q; it ends with\n%s", len(j.lines), words, strings.Join(j.lines[max(0, len(j.lines)-10):], "\n"))
		}
	}
}

func holds(line string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(line, w) {
			return false
		}
	}
	return true
}

// subjectKinds are payments and payouts as a test of both needs them: an instance that
// works, and how to make one and to see it.
var subjectKinds = []struct {
	name string
	open func(t *testing.T, s *store.Store, client *till.Client, p provider.Provider, log *slog.Logger) (create func() store.Ref, wake func(ref store.Ref, body []byte) error, end func(ctx context.Context) error)
	find func(ctx context.Context, tx *store.Tx, ref store.Ref) (status, receipt string, err error)
}{
	{string(till.SubjectPayment), func(t *testing.T, s *store.Store, client *till.Client, p provider.Provider, log *slog.Logger) (func() store.Ref, func(store.Ref, []byte) error, func(context.Context) error) {
		c := collect.New(engine.Config{Store: s, Secret: []byte("a secret for tests"), PollInterval: 20 * time.Millisecond, Log: log,
			Connections: map[string]provider.Provider{"by handle": p}, Routes: engine.ByMode(func(till.Mode, string, string, string) string { return "by handle" })})
		run(t, c.Run)
		return func() store.Ref {
				p := storetest.NewPayment(t, c, client, storetest.Body{})
				return store.Ref{Client: client.ID, ID: p.ID}
			}, func(ref store.Ref, body []byte) error {
				return c.RecordCallback(context.Background(), "by handle", ref, body)
			}, c.Close
	}, func(ctx context.Context, tx *store.Tx, ref store.Ref) (string, string, error) {
		p, err := tx.Payment(ctx, ref)
		if err != nil {
			return "", "", err
		}
		return string(p.Status), p.ProviderReference, nil
	}},
	{string(till.SubjectPayout), func(t *testing.T, s *store.Store, client *till.Client, p provider.Provider, log *slog.Logger) (func() store.Ref, func(store.Ref, []byte) error, func(context.Context) error) {
		c := storetest.NewCollector(t, s)
		storetest.Apply(t, c, s, storetest.NewPayment(t, c, client, storetest.Body{Value: "50000"}), storetest.Succeeded)
		m := payout.New(engine.Config{Store: s, Secret: []byte("a secret for tests"), PollInterval: 20 * time.Millisecond, Log: log,
			Connections: map[string]provider.Provider{"by handle": p}, Routes: engine.ByMode(func(till.Mode, string, string, string) string { return "by handle" })})
		run(t, m.Run)
		return func() store.Ref {
				p := storetest.NewPayout(t, m, client, storetest.Body{}, 0)
				return store.Ref{Client: client.ID, ID: p.ID}
			}, func(ref store.Ref, body []byte) error {
				return m.RecordCallback(context.Background(), "by handle", ref, body)
			}, m.Close
	}, func(ctx context.Context, tx *store.Tx, ref store.Ref) (string, string, error) {
		p, err := tx.Payout(ctx, ref)
		if err != nil {
			return "", "", err
		}
		return string(p.Status), p.ProviderReference, nil
	}},
}

// run runs a loop until the test has ended.
func run(t *testing.T, loop func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); loop(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

// The operator took the request and gave its only handle while the database
// was unreachable: when that is back, the answer is recorded, and the money is found.
func TestAnAnswerOutlivesTheDatabase(t *testing.T) {
	inOutage(t, func(t *testing.T, o *outage) {
		t.Cleanup(func() { storetest.CheckInvariants(t, o.s) })
		for _, kind := range subjectKinds {
			client := storetest.NewClient(t, o.s, till.Test)
			log := newJournal()
			operator := &byHandle{name: kind.name, answer: func(provider.Request) { o.begin() }}
			create, _, end := kind.open(t, o.s, client, operator, slog.New(log))
			ref := create()
			log.await(t, "record", "unavailable")
			o.end()
			awaitSuccess(t, o.s, ref, kind.find)
			if err := end(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

func awaitSuccess(t *testing.T, s *store.Store, ref store.Ref, find func(context.Context, *store.Tx, store.Ref) (string, string, error)) {
	t.Helper()
	var status, receipt string
	for end := time.Now().Add(30 * time.Second); status != "success"; time.Sleep(10 * time.Millisecond) {
		err := s.View(t.Context(), func(tx *store.Tx) (err error) {
			status, receipt, err = find(t.Context(), tx, ref)
			return err
		})
		if err != nil && !errors.Is(err, store.ErrUnavailable) {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatalf("it is %q, want success: what the operator told was lost", status)
		}
	}
	if receipt != "R"+ref.ID.String() {
		t.Errorf("receipt %q", receipt)
	}
}

// A stop waits for the database as long as it may, and then says what is lost,
// with the handle that a person needs to find the money.
func TestWhatAStopLosesIsLogged(t *testing.T) {
	inOutage(t, func(t *testing.T, o *outage) {
		for _, kind := range subjectKinds {
			client := storetest.NewClient(t, o.s, till.Test)
			log := newJournal()
			operator := &byHandle{name: kind.name, answer: func(provider.Request) { o.begin() }}
			create, _, end := kind.open(t, o.s, client, operator, slog.New(log))
			ref := create()
			log.await(t, "record", "unavailable")
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if err := end(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the stop: %v, want that it could not wait", err)
			}
			cancel()
			log.await(t, "lost", ref.ID.String(), "H"+ref.ID.String())
			o.end()
		}
	})
}

// A callback that comes while the database is unreachable is not answered with a 200,
// and yet it is not forgotten: only its body may say what to ask about.
func TestACallbackOutlivesTheDatabase(t *testing.T) {
	inOutage(t, func(t *testing.T, o *outage) {
		for _, kind := range subjectKinds {
			client := storetest.NewClient(t, o.s, till.Test)
			log := newJournal()
			sent := make(chan struct{})
			never := &byHandle{name: kind.name}
			create, wake, end := kind.open(t, o.s, client, silentAfter{never, sent}, slog.New(log))
			ref := create()
			<-sent
			o.begin()
			if err := wake(ref, []byte("the first")); till.ErrorCode(err) != till.CodeServiceUnavailable {
				t.Errorf("a callback without a database: %v, want that it is to be repeated", err)
			}
			if err := wake(ref, []byte("the second")); till.ErrorCode(err) != till.CodeServiceUnavailable {
				t.Errorf("a callback without a database: %v, want that it is to be repeated", err)
			}
			o.end()
			if err := end(t.Context()); err != nil { // it waits for what is kept
				t.Error(err)
			}
			err := o.s.View(t.Context(), func(tx *store.Tx) error {
				s, err := tx.Step(t.Context(), ref)
				if err == nil && (s == nil || string(s.CallbackBody) != "the second") {
					t.Errorf("the step is %+v, want the last callback with it", s)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// silentAfter is an operator of which nothing is heard after the first send.
type silentAfter struct {
	*byHandle
	sent chan struct{}
}

func (o silentAfter) Submit(context.Context, provider.Request) (provider.Result, error) {
	close(o.sent)
	return provider.Result{}, errors.New("no answer")
}

func (o silentAfter) Check(context.Context, provider.Query) (provider.Result, error) {
	return provider.Result{}, errors.New("no answer")
}
