package sandbox

import (
	"context"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"till/internal/testport"
	"till/provider"
)

func TestTheSchemaStandsBesideTheServices(t *testing.T) {
	t.Parallel()
	for searchPath, want := range map[string]string{
		"":                         "sandbox",
		`"$user", public`:          "sandbox",
		"t_abc":                    "t_abc_sandbox",
		" T_Abc , public":          "t_abc_sandbox",
		`"Odd ""name""",public`:    `Odd "name"_sandbox`,
		strings.Repeat("x", 63):    "",
		strings.Repeat("x", 63-8):  strings.Repeat("x", 63-8) + "_sandbox",
		strings.Repeat("é", 63/2):  "",
		"public":                   "public_sandbox",
		`"public", "$user", t_abc`: "public_sandbox",
	} {
		got, err := schemaBeside(searchPath)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: got %q, %v, want %q", searchPath, got, err, want)
		}
	}
}

func TestAnUnreadableURLKeepsItsPassword(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), Config{Path: "postgres://till:secret@host:port/"})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error is %v", err)
	}
}

// onPostgres runs f where there is a server.
func onPostgres(t *testing.T, f func(t *testing.T, e engine)) {
	t.Helper()
	t.Parallel()
	all := engines()
	if len(all) < 2 {
		t.Skip("TILL_TEST_POSTGRES_URL names no server")
	}
	f(t, all[1])
}

func TestTheBookIsInItsOwnSchema(t *testing.T) {
	onPostgres(t, func(t *testing.T, e engine) {
		path := e.newBook(t)
		newOperator(t, e, newClock(), Config{Path: path})
		db, err := admin()
		if err != nil {
			t.Fatal(err)
		}
		c, err := pgx.ParseConfig(path)
		if err != nil {
			t.Fatal(err)
		}
		own := c.RuntimeParams["search_path"]
		for schema, want := range map[string]int{own: 0, own + "_sandbox": 3} {
			var n int
			err := db.QueryRow(`SELECT count(*) FROM pg_tables WHERE schemaname = $1`, schema).Scan(&n)
			if err != nil || n != want {
				t.Errorf("%s has %d tables, want %d: %v", schema, n, want, err)
			}
		}
	})
}

func TestCopiesTakenAtTheSameMomentAreAllTaken(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		const processes, sends = 2, 10
		clock := newClock()
		r := newPayment(clock, "4567")
		var sending sync.WaitGroup
		operators := startTogether(t, e, processes, Config{Now: clock.Now, NoDedup: true})
		for _, o := range operators {
			for range sends {
				sending.Go(func() {
					if result, err := o.Submit(t.Context(), r); err != nil || result.Outcome != provider.Accepted {
						t.Errorf("answered %q, %v", result.Outcome, err)
					}
				})
			}
		}
		sending.Wait()
		clock.Advance(decisionTime)
		if n := debits(t, operators[0], r.Reference); n != processes*sends {
			t.Errorf("%d debits, want %d", n, processes*sends)
		}
	})
}

func TestARowInOtherHandsIsNotWaitedFor(t *testing.T) {
	onPostgres(t, func(t *testing.T, e engine) {
		clock, box := newClock(), &mailbox{}
		o := newOperator(t, e, clock, Config{Post: box.post})
		submit(t, o, newPayment(clock, "4567"), provider.Accepted)
		submit(t, o, newPayment(clock, "4567"), provider.Accepted)
		clock.Advance(decisionTime)
		tx, err := o.book.writer.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := tx.Exec(`SELECT id FROM requests WHERE id = 1 FOR UPDATE`); err != nil {
			t.Fatal(err)
		}
		if n := send(t, o); n != 1 {
			t.Errorf("%d callbacks came past the lock, want 1", n)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if n := send(t, o); n != 1 {
			t.Errorf("%d callbacks came after the lock, want 1", n)
		}
	})
}

func TestADecisionThatWaitedUndoesNoExpiry(t *testing.T) {
	onPostgres(t, func(t *testing.T, e engine) {
		clock := newClock()
		path := withParam(t, e.newBook(t), "application_name", "waits-"+t.Name())
		o := newOperator(t, e, clock, Config{Path: path})
		r := newPayment(clock, "0000")
		submit(t, o, r, provider.Accepted)
		tx, err := o.book.writer.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := tx.Exec(`SELECT id FROM requests FOR UPDATE`); err != nil {
			t.Fatal(err)
		}
		decided := make(chan error, 1)
		go func() { decided <- o.Decide(t.Context(), r.Client, r.ID, Approve) }()
		waitUntilOneWaits(t, "waits-"+t.Name(), decided)
		clock.Advance(defaultWindow)
		check(t, o, r, provider.Expired)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := <-decided; err == nil {
			t.Error("it was decided after its end")
		}
		check(t, o, r, provider.Expired)
	})
}

// waitUntilOneWaits returns when a session of the application waits for a
// lock, and fails if it ends without.
func waitUntilOneWaits(t *testing.T, application string, ended <-chan error) {
	t.Helper()
	db, err := admin()
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n == 0; {
		if len(ended) > 0 {
			t.Fatal("it did not wait")
		}
		err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE application_name = $1 AND wait_event_type = 'Lock'`, application).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestABookThatIsAwayGivesNoAnswers(t *testing.T) {
	onPostgres(t, func(t *testing.T, e engine) {
		path := e.newBook(t)
		server := newRelay(t, path)
		u, err := url.Parse(path)
		if err != nil {
			t.Fatal(err)
		}
		u.Host = server.address
		clock, box := newClock(), &mailbox{}
		o := newOperator(t, e, clock, Config{Path: u.String(), Post: box.post})
		r := newPayment(clock, "4567")
		submit(t, o, r, provider.Accepted)

		server.cut()
		for _, digits := range []string{"4567", "0000", "0011", "0012", "0016"} {
			result, err := o.Submit(t.Context(), newPayment(clock, digits))
			if err == nil || result != (provider.Result{}) {
				t.Errorf("%s: submit answered %+v, %v", digits, result, err)
			}
			result, err = o.Check(t.Context(), provider.Query{Reference: r.Reference})
			if err == nil || result != (provider.Result{}) {
				t.Errorf("check answered %+v, %v", result, err)
			}
		}
		if _, _, err := o.SendCallbacks(t.Context()); err == nil {
			t.Error("callbacks were read from a book that is away")
		}

		server.listen(t)
		clock.Advance(decisionTime)
		check(t, o, r, provider.Success)
		submit(t, o, r, provider.Duplicate)
		submit(t, o, newPayment(clock, "4567"), provider.Accepted)
		if n := send(t, o); n != 1 {
			t.Errorf("%d callbacks came, want 1", n)
		}
	})
}

// relay stands between a book and its server, and can be cut.
type relay struct {
	address         string
	network, server string

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
}

func newRelay(t *testing.T, path string) *relay {
	t.Helper()
	c, err := pgx.ParseConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{}
	if r.address, err = testport.Free(); err != nil {
		t.Fatal(err)
	}
	r.network, r.server = pgconn.NetworkAddress(c.Host, c.Port)
	r.listen(t)
	t.Cleanup(r.cut)
	return r
}

// listen lets the book reach its server, at the same address as before.
func (r *relay) listen(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	r.listener = l
	r.mu.Unlock()
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := (&net.Dialer{}).DialContext(context.Background(), r.network, r.server)
			if err != nil {
				near.Close()
				continue
			}
			r.mu.Lock()
			r.conns = append(r.conns, near, far)
			r.mu.Unlock()
			go relayTo(near, far)
			go relayTo(far, near)
		}
	}()
}

func relayTo(to, from net.Conn) {
	_, _ = io.Copy(to, from) // it ends when either side does
	to.Close()
	from.Close()
}

func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listener.Close()
	for _, c := range r.conns {
		c.Close()
	}
	r.conns = nil
}
