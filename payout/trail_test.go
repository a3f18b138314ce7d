package payout_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"till"
	"till/engine"
	"till/payout"
	"till/provider"
	"till/store"
	"till/store/auditlog"
	"till/store/storetest"
)

// I14: who asked for a payout, took it back or brought the operator's word,
// and every decision about its money, is in the audit log, with what made it
// happen and what it rests on.
func TestTheTrailOfAPayout(t *testing.T) {
	t.Parallel()
	failed := provider.Result{Outcome: provider.Failed, Reason: till.RecipientNotFound}
	file := bytes.Repeat([]byte{7}, 32)
	const create = "api:k1 payout.create: 1050 XAF reserved for 242******567 by mtn_momo (request 1)"
	type hand = func(ctx context.Context, m *payout.Disburser, p *till.Payout) error
	resolve := func(success bool) hand {
		return func(ctx context.Context, m *payout.Disburser, p *till.Payout) error {
			ctx = store.WithCause(ctx, "a command")
			return m.Resolve(ctx, store.Ref{Client: p.ClientID, ID: p.ID}, engine.Resolution{Success: success, By: "Ada", Evidence: "a letter", Digest: file})
		}
	}
	cancel := func(ctx context.Context, m *payout.Disburser, p *till.Payout) error {
		_, err := m.Cancel(store.WithCause(ctx, "request 2"), store.Ref{Client: p.ClientID, ID: p.ID}, "api:k2")
		return err
	}
	lives := []struct {
		name  string
		words []provider.Result
		then  hand
		want  []string
	}{
		{"paid", []provider.Result{storetest.Opened, storetest.Succeeded}, nil,
			[]string{"engine payout: 1000 XAF debited (check, word)", "engine fee: 50 XAF debited (check, word)"}},
		{"refused", []provider.Result{failed, failed}, nil, []string{"engine payout.release: 1050 XAF released (check, word)"}},
		{"paid late", []provider.Result{failed, storetest.Succeeded}, nil,
			[]string{"engine payout.release: 1050 XAF released (check, word)", "engine late_payout: 1000 XAF debited (check, word)"}},
		{"taken back", nil, cancel, []string{"api:k2 payout.cancel: 1050 XAF released (request 2)"}},
		{"resolved as paid", []provider.Result{storetest.Opened}, resolve(true),
			[]string{"engine payout: 1000 XAF debited (a command, file)", "engine fee: 50 XAF debited (a command, file)", "Ada resolve: as success; a letter (a command, file)"}},
		{"resolved as failed", []provider.Result{storetest.Opened}, resolve(false),
			[]string{"engine payout.release: 1050 XAF released (a command, file)", "Ada resolve: as failed; a letter (a command, file)"}},
	}
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		m, client := storetest.NewDisburser(t, s), storetest.NewClient(t, s, till.Test)
		fund(t, s, client, 100_000)
		who := engine.Client{Client: client, Actor: "api:k1", Enabled: func(string) bool { return true },
			Fees: []till.Fee{{Kind: till.PayoutFee, Method: "mtn_momo", Currency: "XAF", Flat: 50}}}
		for _, life := range lives {
			r := request(t, till.NewID(s.Now()).String(), "4567", "1000")
			made, err := m.Create(store.WithCause(t.Context(), "request 1"), who, r)
			if err != nil {
				t.Fatal(err)
			}
			// Who asks again is given the same, and leaves no second row.
			if again, err := m.Create(store.WithCause(t.Context(), "request 3"), who, r); err != nil || !again.Replayed {
				t.Fatalf("asked again: %+v, %v", again, err)
			}
			for _, w := range life.words {
				storetest.ApplyPayout(t, m, s, made.Payout, w)
			}
			if life.then != nil {
				if err := life.then(t.Context(), m, made.Payout); err != nil {
					t.Fatal(err)
				}
			}
			got := trail(t, s, store.Ref{Client: client.ID, ID: made.Payout.ID}, file)
			if diff := cmp.Diff(got, append([]string{create}, life.want...)); diff != "" {
				t.Errorf("%s (-got +want)\n%s", life.name, diff)
			}
		}
	})
}

// trail prints the audit log of a payout: who did what, why, and whether it
// rests on the file, or on the operator's word.
func trail(t *testing.T, s *store.Store, ref store.Ref, file []byte) (out []string) {
	t.Helper()
	err := s.View(t.Context(), func(tx *store.Tx) error {
		rows, err := auditlog.Of(t.Context(), tx, ref, 0, 1_000)
		for _, a := range rows {
			text := a.Actor + " " + a.Action + ": " + a.Detail + " (" + a.Cause
			switch {
			case bytes.Equal(a.Evidence, file):
				text += ", file"
			case a.Evidence != nil:
				text += ", word"
			}
			out = append(out, text+")")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
