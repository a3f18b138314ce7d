package operators

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
)

// owned is a provider whose operator tells whose account it is.
type owned struct {
	*plain
	by   string
	told chan struct{}
}

func (o *owned) Company(context.Context) (string, bool, error) {
	defer close(o.told)
	return o.by, false, nil
}

// Two instances with tokens of two companies ask for the first time, at once: the answer of
// one is kept, and the other sees it.
func TestOneFirstCompanyIsKept(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		err := s.Update(ctx, func(tx *store.Tx) error {
			return admin.InsertInstallation(ctx, tx, &admin.Installation{LogID: till.NewID(tx.Now()), SecretCheck: []byte("check"), CreatedAt: tx.Now()})
		})
		if err != nil {
			t.Fatal(err)
		}
		theirs := &owned{&plain{}, "Theirs SA", make(chan struct{})}
		other := newCompany(s, slog.New(slog.DiscardHandler), "pawapay", till.SubjectPayment, theirs)
		asked := make(chan error, 1)
		err = s.Update(ctx, func(tx *store.Tx) error { // as ask does
			if err := admin.LockInstallation(ctx, tx); err != nil {
				return err
			}
			if _, err := compareCompany(ctx, tx, "pawapay", "plain", "Ours SARL", false); err != nil {
				return err
			}
			go func() { asked <- other.confirm(context.WithoutCancel(ctx)) }()
			<-theirs.told
			time.Sleep(200 * time.Millisecond) // the other one would read by now that there is none
			return admin.SetConnectionCompany(ctx, tx, "pawapay", "plain", "Ours SARL")
		})
		if err != nil {
			t.Fatal(err)
		}
		if err, want := <-asked, (provider.OtherCompany{Told: "Theirs SA", Want: "Ours SARL"}); !errors.Is(err, want) {
			t.Errorf("the second one is told %v, want %v", err, want)
		}
		storetest.View(t, s, func(ctx context.Context, tx *store.Tx) error {
			_, kept, err := admin.ConnectionCompany(ctx, tx, "pawapay")
			if kept != "Ours SARL" {
				t.Errorf("kept is %q", kept)
			}
			return err
		})
	})
}
