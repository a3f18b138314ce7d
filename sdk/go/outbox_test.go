package till_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	till "till/sdk/go"
	"till/sdk/go/filestore"
)

// hasty brings news between a read that finds nothing and the lapse of its wish.
type hasty struct{ *filestore.Store }

func (h hasty) Settle(ctx context.Context, s till.Settlement) (bool, error) {
	if s.State == till.StateLapsed {
		if _, err := h.Store.Settle(ctx, till.Settlement{Key: s.Key, State: till.StateTaken, RemoteID: till.Ptr("p-1")}); err != nil {
			return false, err
		}
	}
	return h.Store.Settle(ctx, s)
}

// A wish whose time is over is not said to have lapsed if news came meanwhile.
func TestNewsDuringALapse(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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
	now := time.Now()
	teller := till.NewTeller(client, till.Store[*filestore.Tx](hasty{store}), func(context.Context, *filestore.Tx, till.Change) error { return nil },
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
