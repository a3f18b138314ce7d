package store_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"till"
	"till/store"
	"till/store/storetest"
)

// guessed runs a transaction that changes nothing and returns the ends of the
// log that it saw, one for each time it ran.
func guessed(t *testing.T, s *store.Store, client *till.Client) (seen []int64) {
	t.Helper()
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		heads, err := tx.GuessHeads(t.Context(), []till.ID{client.ID})
		if err != nil {
			return err
		}
		seen = append(seen, heads[client.ID].LastEvent)
		return tx.SaveHeads(t.Context(), heads)
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// eachPostgres runs f on two stores of one PostgreSQL database.
func eachPostgres(t *testing.T, f func(t *testing.T, config store.Config, one, two *store.Store)) {
	t.Helper()
	for _, e := range storetest.Engines() {
		config := e.Config(t)
		if !store.IsPostgres(config.Path) {
			continue
		}
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

func TestAWrongGuessIsRefusedAndThenAsked(t *testing.T) {
	t.Parallel()
	eachPostgres(t, func(t *testing.T, _ store.Config, one, two *store.Store) {
		client := storetest.NewClient(t, one, till.Test)
		a, b := storetest.NewCollector(t, one), storetest.NewCollector(t, two)
		storetest.NewPayment(t, a, client, storetest.Body{})
		if seen := guessed(t, one, client); len(seen) != 1 || seen[0] != 1 {
			t.Errorf("after a commit of its own it sees %v, want the log's end once", seen)
		}
		storetest.NewPayment(t, b, client, storetest.Body{})
		// That the first run sees the old end shows that nobody was asked.
		if seen := guessed(t, one, client); len(seen) != 2 || seen[0] != 1 || seen[1] != 2 {
			t.Errorf("after another instance's commit it sees %v, want a wrong guess and then the log's end", seen)
		}
		if seen := guessed(t, one, client); len(seen) != 1 || seen[0] != 2 {
			t.Errorf("after a wrong guess it sees %v, want the log's end once", seen)
		}
		// Payments made in turns by both: CheckInvariants counts their events.
		for range 5 {
			storetest.NewPayment(t, a, client, storetest.Body{})
			storetest.NewPayment(t, b, client, storetest.Body{})
		}
		if seen := guessed(t, two, client); seen[len(seen)-1] != 12 {
			t.Errorf("after twelve payments the log ends at %v", seen)
		}
	})
}

func TestAGuessOnADeadConnectionIsMadeAgain(t *testing.T) {
	t.Parallel()
	eachPostgres(t, func(t *testing.T, config store.Config, one, two *store.Store) {
		client := storetest.NewClient(t, one, till.Test)
		c := storetest.NewCollector(t, one)
		admin, err := pgx.Connect(t.Context(), config.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer admin.Close(t.Context())
		for range 3 {
			storetest.NewPayment(t, c, client, storetest.Body{})
			var ended int
			err := admin.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE application_name = current_setting('application_name') AND pid <> pg_backend_pid()`).Scan(&ended)
			if err != nil || ended == 0 {
				t.Fatalf("ended %d sessions, %v", ended, err)
			}
		}
		storetest.NewPayment(t, c, client, storetest.Body{})
		if seen := guessed(t, two, client); seen[len(seen)-1] != 4 {
			t.Errorf("after four payments the log ends at %v", seen)
		}
	})
}

// F30 for creates that are sent in one piece.
func TestAGuessWithAnUnknownCommitIsOnePayment(t *testing.T) {
	t.Parallel()
	for name, cut := range outcomes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLink(t)
			client := storetest.NewClient(t, l.straight, till.Test)
			c := storetest.NewCollector(t, l.through)
			storetest.NewPayment(t, c, client, storetest.Body{})
			before := l.proxy.Wholes()
			l.proxy.CutNext(cut)
			storetest.NewPayment(t, c, client, storetest.Body{})
			if l.proxy.Wholes() == before {
				t.Error("the create was not sent in one piece")
			}
			storetest.NewPayment(t, c, client, storetest.Body{})
			if seen := guessed(t, l.straight, client); seen[len(seen)-1] != 3 {
				t.Errorf("after three payments the log ends at %v", seen)
			}
		})
	}
}
