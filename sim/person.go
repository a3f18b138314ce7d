package sim

import (
	"context"
	"errors"
	"net"
	"time"

	"till"
	"till/books"
	"till/collect"
	"till/engine"
	"till/internal/db"
	"till/internal/db/dbfault"
	"till/payout"
	"till/provider"
	"till/store"
)

// Command runs what a person does by a command: in a process of its own, on the same
// database. One that fails because of a fault, or crashes, is run again, as the person would. An
// error of another kind is the command's word, and returned.
func (w *World) Command(f func(ctx context.Context, s *store.Store) error) error {
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Second) {
		err := w.commandOnce(f)
		known := err == nil || !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknownCommit) && !errors.Is(err, errCrashed)
		if known || time.Now().After(end) {
			return err
		}
		w.log.Warn("command not finished", "error", err)
	}
}

var errCrashed = errors.New("the command crashed")

func (w *World) commandOnce(f func(ctx context.Context, s *store.Store) error) (err error) {
	i := &instance{w: w, gone: make(chan struct{}), conns: map[net.Conn]bool{}}
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{Path: w.path, NoNotify: true, Log: w.log, Wrap: func(db.Engine) db.Engine {
		i.engine = dbfault.New(w.base, dbfault.Config{Next: func(place string) dbfault.Fault { return w.next(i, place) }, Hang: hang, Shared: true})
		return i.engine
	}})
	if err != nil {
		return err
	}
	defer s.Close()
	err = f(ctx, s)
	if i.isDead() {
		return errCrashed
	}
	return err
}

// Resolve ends an order by a person's decision.
func (w *World) Resolve(o *Order, r engine.Resolution) error {
	id, err := till.ParseID(o.ID)
	if err != nil {
		return err
	}
	r.By, r.Evidence, r.Digest = "Awa", "letter.pdf", make([]byte, 32)
	ref := store.Ref{Client: w.client.ID, ID: id}
	return w.Command(func(ctx context.Context, s *store.Store) error {
		c := engine.Config{Store: s, Secret: secretText, Ring: w.ring, Connections: map[string]provider.Provider{}, AcceptOnly: true}
		end, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if o.Kind == "payout" {
			d := payout.New(c)
			return errors.Join(d.Resolve(ctx, ref, r), d.Close(end))
		}
		d := collect.New(c)
		return errors.Join(d.Resolve(ctx, ref, r), d.Close(end))
	})
}

// Fund gives the client money to pay out, before effects count.
func (w *World) Fund(amount int64) {
	_, err := books.Adjust(context.Background(), w.store, books.Adjustment{Client: w.client.ID, ID: till.NewID(w.store.Now()),
		Amount: till.Money{Minor: amount, Currency: "XAF"}, Reason: "to pay out", By: "test"})
	if err != nil {
		w.T.Fatal(err)
	}
}

// must fails the test.
func (w *World) must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Error(err)
	}
}
