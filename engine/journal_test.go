package engine_test

import (
	"errors"
	"testing"

	"till"
	"till/engine"
	"till/store"
	"till/store/storetest"
)

// fakeDisk is a journal that fails on demand.
type fakeDisk struct {
	sync      bool
	err       error
	before    []till.ID
	committed []till.ID
}

func (f *fakeDisk) Synchronous() bool { return f.sync }

func (f *fakeDisk) Committing(_ till.SubjectKind, entries []engine.JournalEntry) error {
	for _, e := range entries {
		f.before = append(f.before, e.Row.Ref.ID)
	}
	return f.err
}

func (f *fakeDisk) Committed(_ till.SubjectKind, entries []engine.JournalEntry) {
	for _, e := range entries {
		f.committed = append(f.committed, e.Row.Ref.ID)
	}
}

// A create that the journal cannot take is refused and is not there; its retry makes it. A
// replay is no create, on an engine that finds out late that a key is taken as well.
func TestCreatesAndTheJournal(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		client := storetest.NewClient(t, s, till.Test)
		disk := &fakeDisk{sync: true, err: errors.New("no space left")}
		journaled := func(c *engine.Config) { c.Journal = disk }
		c, m := storetest.NewCollector(t, s, journaled), storetest.NewDisburser(t, s, journaled)
		body := storetest.Body{Key: till.NewID(s.Now()).String()}
		if _, err := storetest.CreatePayment(t, c, client, body); till.ErrorCode(err) != till.CodeServiceUnavailable {
			t.Errorf("without a journal: %v", err)
		}
		err := s.View(ctx, func(tx *store.Tx) error {
			key, _ := till.ParseID(body.Key)
			p, err := tx.PaymentByKey(ctx, client.ID, key)
			if p != nil {
				t.Errorf("a create that was refused is there: %+v", p)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		disk.err, disk.before, disk.committed = nil, nil, nil
		made, err := storetest.CreatePayment(t, c, client, body)
		if err != nil || made.Replayed || len(disk.before) != 1 || disk.before[0] != made.Payment.ID {
			t.Errorf("%+v, %v; the journal has %v", made, err, disk.before)
		}
		if again, err := storetest.CreatePayment(t, c, client, body); err != nil || !again.Replayed || len(disk.before) != 1 {
			t.Errorf("a replay: %+v, %v; the journal has %v", again, err, disk.before)
		}
		storetest.Apply(t, c, s, made.Payment, storetest.Succeeded)
		out := storetest.NewPayout(t, m, client, storetest.Body{Value: "1000"}, 0)
		if len(disk.before) != 2 || disk.before[1] != out.ID {
			t.Errorf("the journal has %v, and not payout %s", disk.before, out.ID)
		}
		if _, err := storetest.CreatePayout(t, m, client, storetest.Body{Value: "1000000"}, 0); till.ErrorCode(err) != till.CodeInsufficientBalance || len(disk.before) != 2 {
			t.Errorf("%v; the journal has a payout that was refused: %v", err, disk.before)
		}
		if len(disk.committed) != 2 {
			t.Errorf("%d were committed", len(disk.committed))
		}

		disk.sync, disk.err, disk.committed = false, errors.New("it is not asked"), nil
		behind := storetest.NewPayment(t, c, client, storetest.Body{})
		if len(disk.before) != 2 || len(disk.committed) != 1 || disk.committed[0] != behind.ID {
			t.Errorf("behind the commit: %v and %v", disk.before, disk.committed)
		}
	})
}
