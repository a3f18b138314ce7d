package books

import (
	"context"

	"till"
	"till/store"
	"till/store/proof"
)

// verifyEndpoints proves what the database can show of I7: each event is
// behind an endpoint's cursor, or a row or a range of the log says what
// happened to it; and nothing pending is forgotten. Only the receivers can
// show that events behind the cursor arrived.
func (v *verifier) verifyEndpoints(ctx context.Context) error {
	var all []*proof.VerifyEndpoint
	err := v.view(ctx, func(tx *store.Tx) (err error) {
		all, err = proof.VerifyEndpoints(ctx, tx, v.client)
		return err
	})
	if err != nil {
		return err
	}
	for _, e := range all {
		v.Endpoints++
		check := func(holds bool, format string, args ...any) { v.check(holds, "I7", e.ID, format, args...) }
		check(e.Start <= e.Cursor && e.Cursor <= e.LastEvent, "the cursor %d is not between its start %d and the log's end %d", e.Cursor, e.Start, e.LastEvent)
		check(e.CursorAt.IsZero() || e.CursorAt == e.CursorMade, "it was sent an event of %s as number %d, and the log has one of %s there: events were lost, and the new ones were not sent", e.CursorAt, e.Cursor, e.CursorMade)
		check(e.Enabled || e.Pending == 0, "it is disabled and has %d pending deliveries", e.Pending)
		check(e.Pending == 0 || !e.NextRetry.IsZero() && e.NextRetry <= e.FirstDue, "deliveries are pending from %s on, and it is looked at from %s on", e.FirstDue, e.NextRetry)
		check(e.StrayLeases == 0, "%d deliveries that have ended are said to be being sent", e.StrayLeases)
		check(e.Ahead == 0, "%d deliveries are of events that are not behind its cursor", e.Ahead)
		check(e.Newest == 0, "%d deliveries are superseded by nothing newer", e.Newest)
		check((e.OpenReplays > 0) == !e.ReplayAt.IsZero(), "%d replays are open, and it goes on with them at %s", e.OpenReplays, e.ReplayAt)
		check(e.BeyondLog == 0, "%d stretches end after the log", e.BeyondLog)
		if e.DisableReason == till.DisabledAsGone || e.DisableReason == till.DisabledAsFailing {
			check(e.ToldDisabled, "it was disabled at %s, and the log does not tell", e.DisabledAt)
			check(e.Case, "it was disabled, and nobody was told to look at it")
		}
	}
	return nil
}
