package sim

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"till/books"
	"till/store"
	"till/store/storetest"
	"till/webhook"
)

// notSent fails if an operator has any request of a kind.
func (w *World) notSent(kind string) {
	w.T.Helper()
	for name, o := range w.operators {
		for _, e := range o.book.Entries() {
			if e.Kind == kind {
				w.T.Errorf("operator's book: %s has a %s that was not to be sent", name, kind)
			}
		}
	}
}

// holdUnsent asks for a payout or a refund while its operator cannot be reached, and stops the client's
// payouts before it can be reached again.
func (w *World) holdUnsent(ask func() *Order) *Order {
	time.Sleep(5 * time.Minute) // a connection that an earlier call left open is closed
	w.net.Lose("dial mtnmomo", 1_000_000)
	o := ask()
	time.Sleep(5 * time.Second)
	w.must(w.Command(func(ctx context.Context, s *store.Store) error {
		return books.HoldPayouts(ctx, s, w.client.ID, "Awa", "why")
	}))
	time.Sleep(time.Second) // a call that was under way has ended
	w.net.Lose("dial mtnmomo", 0)
	return o
}

// wantBalance fails if the client's wallet has another balance.
func (w *World) wantBalance(want int64) {
	w.T.Helper()
	storetest.View(w.T, w.store, func(ctx context.Context, tx *store.Tx) error {
		l, err := tx.Wallet(ctx, w.client.ID, "XAF")
		if err == nil && l.Balance != want {
			w.T.Errorf("the wallet has %d, want %d", l.Balance, want)
		}
		return err
	})
}

// rotateSecret gives the receiver's endpoint a new secret; the old one signs, too, for a
// while. A client that does not get the answer asks again, and uses the last secret.
func (w *World) rotateSecret() {
	var list struct{ Items []struct{ ID string } }
	w.read("/webhook-endpoints", &list)
	if len(list.Items) != 1 {
		w.T.Fatalf("there are %d endpoints", len(list.Items))
	}
	var made struct{ Secret string }
	w.create("/webhook-endpoints/"+list.Items[0].ID+"/rotate-secret", "", &made)
	s, err := webhook.ParseSecret(made.Secret)
	w.must(err)
	w.shop.mu.Lock()
	defer w.shop.mu.Unlock()
	w.shop.secrets = append(w.shop.secrets, s)
}

// rotateKey gives the client a new key. If the answer is lost, the key has a successor that
// nobody knows: that one is rotated.
func (w *World) rotateKey() {
	for {
		var list struct {
			Items []struct{ ID, Name, Replaces string }
		}
		w.read("/api-keys", &list)
		last := ""
		for _, k := range list.Items {
			if k.Name == "all" && !slices.ContainsFunc(list.Items, func(o struct{ ID, Name, Replaces string }) bool { return o.Replaces == k.ID }) {
				last = k.ID
			}
		}
		status, answer, ok := w.do(http.MethodPost, "/api-keys/"+last+"/rotate", `{"overlap_seconds":86400}`)
		var made struct {
			APIKey string `json:"api_key"`
		}
		if ok && status == http.StatusCreated && json.Unmarshal(answer, &made) == nil {
			w.key = made.APIKey
			return
		}
		if ok && status < 500 {
			w.T.Fatalf("the key %s is not rotated: %d %s", last, status, answer)
		}
		time.Sleep(3 * time.Second)
	}
}
