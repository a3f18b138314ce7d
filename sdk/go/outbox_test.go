package till_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	till "github.com/till-project/till/sdk/go"
	"github.com/till-project/till/sdk/go/filestore"
)

// hasty brings news between a read that finds nothing and the lapse of its wish.
type hasty struct{ *filestore.Store }

func (h hasty) Apply(ctx context.Context, subject, kind, key string, fn func(context.Context, *filestore.Tx, till.Subject, []till.Row) (till.Decision, error)) error {
	if _, err := h.Store.Settle(ctx, till.Settlement{Key: key, State: till.StateTaken, RemoteID: till.Ptr("p-1")}); err != nil {
		return err
	}
	return h.Store.Apply(ctx, subject, kind, key, fn)
}

// forgetful starts a service that knows nothing and refuses every create.
func forgetful(t *testing.T) (*till.Client, *filestore.Store) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"code":"insufficient_balance","status":422}`)
			return
		}
		_, _ = io.WriteString(w, `{"items":[],"total":0,"limit":50,"offset":0}`)
	}))
	t.Cleanup(server.Close)
	client, err := till.New(server.URL, till.Key("till_test_a_b"))
	if err != nil {
		t.Fatal(err)
	}
	store, err := filestore.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return client, store
}

// A payout that may have been sent is not over because the service does not know
// it: it may have been restored from a backup since.
func TestAPayoutThatMayHaveBeenSent(t *testing.T) {
	t.Parallel()
	client, store := forgetful(t)
	now := time.Now()
	teller := till.NewTeller(client, store, func(context.Context, *filestore.Tx, till.Change) error { return nil },
		till.WithClock(func() time.Time { return now }), till.WithSendUntil(time.Hour, time.Hour), till.WithLookAfter(0))
	payOut := func(order, value string) error {
		return store.Update(t.Context(), func(tx *filestore.Tx) error {
			return teller.PayOut(t.Context(), tx, till.PayOut{Order: order, Method: "mtn_momo", Country: "CG", Amount: till.Minor(value, "XAF"), Phone: "242061234567"})
		})
	}
	if err := payOut("o-1", "2000"); err != nil {
		t.Fatal(err)
	}
	row, err := store.Newest(t.Context(), till.KindPayout, "o-1")
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := store.Count(t.Context(), *row, now.Add(time.Millisecond), now); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if p, err := teller.SendPayOut(t.Context(), "o-1"); err != nil || p.State != till.Uncertain {
		t.Errorf("refused after a try without an answer: %+v, %v", p, err)
	}
	now = now.Add(2 * time.Hour)
	for range 2 {
		if p, err := teller.SendPayOut(t.Context(), "o-1"); err != nil || p.State != till.Lost {
			t.Errorf("after its time: %+v, %v", p, err)
		}
	}
	attention, err := store.Attention(t.Context(), time.Time{}, 9)
	if err != nil || len(attention) != 1 || attention[0].State != till.StateLost || attention[0].Problem != "stale" {
		t.Errorf("a person sees %+v, %v", attention, err)
	}
	var open *till.AttemptOpen
	if err := payOut("o-1", "2500"); !errors.As(err, &open) {
		t.Errorf("another one: %v", err)
	}
	if err := payOut("o-2", "2000"); err != nil {
		t.Fatal(err)
	}
	var refused *till.Refused
	if _, err := teller.SendPayOut(t.Context(), "o-2"); !errors.As(err, &refused) {
		t.Errorf("refused at the first try: %v", err)
	}
}

// A wish whose time is over is not said to have lapsed if news came meanwhile.
func TestNewsDuringALapse(t *testing.T) {
	t.Parallel()
	client, store := forgetful(t)
	now := time.Now()
	teller := till.NewTeller(client, till.Store[*filestore.Tx](hasty{store}), func(_ context.Context, _ *filestore.Tx, c till.Change) error {
		t.Errorf("it was told %s", c.Kind)
		return nil
	},
		till.WithClock(func() time.Time { return now }), till.WithSendUntil(time.Second, time.Second), till.WithLookAfter(0))
	if err := store.Update(t.Context(), func(tx *filestore.Tx) error { return teller.Collect(t.Context(), tx, wish("o-1")) }); err != nil {
		t.Fatal(err)
	}
	row, err := store.Newest(t.Context(), till.KindPayment, "o-1")
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := store.Count(t.Context(), *row, now.Add(time.Millisecond), now); !ok || err != nil {
		t.Fatal(ok, err)
	}
	now = now.Add(time.Minute)
	if p, err := teller.Send(t.Context(), "o-1"); err != nil || p.State != till.Uncertain {
		t.Errorf("%+v, %v", p, err)
	}
}
