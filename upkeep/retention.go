package upkeep

import (
	"context"
	"fmt"
	"time"

	"till"
	"till/store"
	"till/store/webhooks"
)

// AnswersKept is how long the texts of receivers' answers to webhooks are kept. They help
// to find a receiver's mistake, and may hold what a receiver knows of a person.
const AnswersKept = 30 * 24 * time.Hour

// retentionTurn is the name of the turn that removes what is kept for a limited time.
const retentionTurn = "retention"

// The limits of a retention turn.
const (
	retentionEvery = time.Hour
	retentionLease = 10 * time.Minute
	retentionBatch = 500 // rows in a commit
)

// NewRetentionTurn returns the turn that removes what is kept for a limited time.
func NewRetentionTurn(s *store.Store) Turn {
	return Turn{Name: retentionTurn, Every: retentionEvery, Lease: retentionLease, Run: func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, retentionLease)
		defer cancel()
		n, err := clearAnswers(ctx, s, s.Now().Add(-AnswersKept))
		return fmt.Sprintf(`{"answers":%d}`, n), err
	}}
}

// clearAnswers removes the texts of receivers' answers to attempts before a time, in small
// background commits, and returns how many there were.
func clearAnswers(ctx context.Context, s *store.Store, before till.Time) (total int64, err error) {
	for n := int64(retentionBatch); n == retentionBatch; total += n {
		err := s.UpdateBackground(ctx, func(tx *store.Tx) (err error) {
			n, err = webhooks.ClearAnswers(ctx, tx, before, retentionBatch)
			return err
		})
		if err != nil {
			return total, fmt.Errorf("clear receivers' answers: %w", err)
		}
	}
	return total, nil
}
