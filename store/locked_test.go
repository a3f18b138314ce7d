package store_test

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"till"
	"till/store"
	"till/store/storetest"
)

// connect opens a connection of its own to the server, past the store.
func connect(t *testing.T, path string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// The head is what all writers for a client wait for, so a writer that changes a row
// locks its step first: what can be done without the head is done before.
func TestStepsAreLockedBeforeHeads(t *testing.T) {
	t.Parallel()
	eachPostgres(t, func(t *testing.T, config store.Config, one, two *store.Store) {
		client := storetest.NewClient(t, one, till.Test)
		ref := store.Ref{Client: client.ID, ID: storetest.NewPayment(t, storetest.NewCollector(t, one), client, storetest.Body{}).ID}
		raw := connect(t, config.Path)
		free := func() (n int) {
			if err := raw.QueryRow(t.Context(), `SELECT count(*) FROM (SELECT 1 FROM steps WHERE client_id = $1 AND subject_id = $2
				FOR UPDATE SKIP LOCKED) AS free`, ref.Client[:], ref.ID[:]).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		if free() != 1 {
			t.Fatal("the step is locked before anybody came")
		}
		changed := make(chan error, 1)
		err := one.Update(t.Context(), func(tx *store.Tx) error {
			if _, err := tx.LockHeads(t.Context(), []till.ID{client.ID}); err != nil {
				return err
			}
			go func() {
				changed <- two.Update(t.Context(), func(tx *store.Tx) error {
					l, err := tx.LockSubjects(t.Context(), till.SubjectPayment, []store.Ref{ref}, store.Cached{}, nil)
					if err == nil && (l.Steps[ref] == nil || l.Payments[ref] == nil || l.Heads[client.ID] == nil) {
						t.Errorf("it has locked %+v", l)
					}
					return err
				})
			}()
			for end := time.Now().Add(time.Minute); free() != 0; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Error("it waits for the head and has not locked the step")
					break
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-changed; err != nil {
			t.Fatal(err)
		}
	})
}

// Many are locked by one statement, which PostgreSQL need not take because it
// took the one about a single row.
func TestManyAreLockedAtOnce(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client := storetest.NewClient(t, s, till.Test)
		collector := storetest.NewCollector(t, s)
		var refs []store.Ref
		for range 3 {
			refs = append(refs, store.Ref{Client: client.ID, ID: storetest.NewPayment(t, collector, client, storetest.Body{}).ID})
		}
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			l, err := tx.LockSubjects(t.Context(), till.SubjectPayment, refs, store.Cached{}, nil)
			if err == nil && (len(l.Steps) != 3 || len(l.Payments) != 3 || len(l.Heads) != 1) {
				t.Errorf("it has locked %+v", l)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// What is known to be a row's second call is written down together with others,
// no matter who holds the head.
func TestSecondCallsAreWrittenBeforeHeadsAreLocked(t *testing.T) {
	t.Parallel()
	eachPostgres(t, func(t *testing.T, config store.Config, one, two *store.Store) {
		client := storetest.NewClient(t, one, till.Test)
		collector := storetest.NewCollector(t, one)
		var refs []store.Ref
		var calls []*store.Attempt
		known := store.Cached{FirstSendOnly: map[store.Ref]bool{}}
		for range 3 {
			ref := store.Ref{Client: client.ID, ID: storetest.NewPayment(t, collector, client, storetest.Body{}).ID}
			refs, known.FirstSendOnly[ref] = append(refs, ref), true
			calls = append(calls, &store.Attempt{ClientID: ref.Client, SubjectID: ref.ID, Kind: store.AttemptCheck, Outcome: "open",
				Connection: storetest.Connection, Reference: till.NewID(7), StartedAt: 1, EndedAt: 2})
		}
		// An insert of a row that is written and not committed waits for it.
		raw := connect(t, config.Path)
		written := func(ref store.Ref) bool {
			tx, err := raw.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback(t.Context())
			if _, err := tx.Exec(t.Context(), `SET LOCAL lock_timeout = '20ms'`); err != nil {
				t.Fatal(err)
			}
			_, err = tx.Exec(t.Context(), `INSERT INTO attempts (client_id, subject_id, n, kind, connection, reference, started_at)
				VALUES ($1, $2, 2, 'check', 'x', $3, 1)`, ref.Client[:], ref.ID[:], ref.ID[:])
			var refused *pgconn.PgError
			return errors.As(err, &refused) && refused.Code == "55P03"
		}
		changed := make(chan error, 1)
		err := one.Update(t.Context(), func(tx *store.Tx) error {
			if _, err := tx.LockHeads(t.Context(), []till.ID{client.ID}); err != nil {
				return err
			}
			go func() {
				changed <- two.Update(t.Context(), func(tx *store.Tx) error {
					l, err := tx.LockSubjects(t.Context(), till.SubjectPayment, refs, known, calls)
					if err == nil && (len(l.Attempts) != 3 || l.Attempts[refs[0]].N != 2) {
						t.Errorf("the newest attempts are %+v", l.Attempts)
					}
					return err
				})
			}()
			for end := time.Now().Add(time.Minute); !written(refs[0]); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Error("it waits for the head and has written nothing")
					break
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-changed; err != nil {
			t.Fatal(err)
		}
		for _, ref := range refs {
			var attempts []*store.Attempt
			err := one.View(t.Context(), func(tx *store.Tx) (err error) { attempts, err = tx.Attempts(t.Context(), ref); return err })
			if err != nil || len(attempts) != 1 || attempts[0].N != 2 || attempts[0].Outcome != "open" {
				t.Errorf("on record are %+v, error %v", attempts, err)
			}
		}
	})
}

// PostgreSQL writes no index for a change of columns that no index has. An
// index that knew one of these would make every payment's first move as dear as
// its last.
func TestNoIndexKnowsWhatTheFirstMoveChanges(t *testing.T) {
	t.Parallel()
	changes := regexp.MustCompile(`\b(status|previous_status|updated_at|attention|checked_at|calls|processing_event)\b`)
	eachPostgres(t, func(t *testing.T, config store.Config, _, _ *store.Store) {
		rows, err := connect(t, config.Path).Query(t.Context(), `SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'payments'::regclass`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		n := 0
		for ; rows.Next(); n++ {
			var text string
			if err := rows.Scan(&text); err != nil {
				t.Fatal(err)
			}
			if word := changes.FindString(text); word != "" {
				t.Errorf("%s knows %s", text, word)
			}
		}
		if rows.Err() != nil || n < 4 {
			t.Fatalf("%d indexes were read: %v", n, rows.Err())
		}
	})
}

// eachPostgres runs f on two stores of one PostgreSQL database.
func eachPostgres(t *testing.T, f func(t *testing.T, config store.Config, one, two *store.Store)) {
	t.Helper()
	for _, e := range storetest.Engines() {
		if e.Name != "postgres" { // these tests look at the locks and plans of one server
			continue
		}
		config := e.Config(t)
		t.Run(e.Name, func(t *testing.T) {
			u, err := url.Parse(config.Path)
			if err != nil {
				t.Fatal(err)
			}
			q := u.Query()
			q.Set("application_name", t.Name())
			u.RawQuery = q.Encode()
			config.Path = u.String()
			config.Now = func() till.Time { return till.TimeOf(time.Now()) } // so that the clock need not be asked for
			one := storetest.Open(t, config)
			t.Cleanup(func() { storetest.CheckInvariants(t, one) })
			f(t, config, one, storetest.Open(t, config))
		})
	}
}
