package proof

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
	"till/store/webhooks"
)

var selectEventAt = db.Define(db.SQL{Name: "verify.selectEventAt",
	SQLite: `SELECT created_at, subject_id, kind FROM events WHERE client_id = $1 AND sequence = $2`})

const (
	deliveriesOfEndpoint = ` FROM webhook_deliveries d WHERE d.client_id = e.client_id AND d.endpoint_id = e.id AND `
	spansOfEndpoint      = ` FROM webhook_spans s WHERE s.client_id = e.client_id AND s.endpoint_id = e.id AND `
)

var endpointsToVerify = `SELECT e.id,
		(SELECT count(*)` + deliveriesOfEndpoint + `d.status = 'pending'), (SELECT min(d.due_at)` + deliveriesOfEndpoint + `d.status = 'pending'),
		(SELECT count(*)` + deliveriesOfEndpoint + `d.status <> 'pending' AND d.lease_until > 0),
		(SELECT count(*)` + deliveriesOfEndpoint + `d.kind = 'event' AND (d.sequence > e.cursor_sequence OR d.sequence <= e.start_sequence)),
		(SELECT count(*)` + deliveriesOfEndpoint + `d.status = 'superseded' AND NOT EXISTS (SELECT 1 FROM payments p WHERE p.client_id = d.client_id AND p.id = d.subject_id
			AND (p.processing_event > d.sequence OR p.final_event > d.sequence OR p.late_event > d.sequence OR p.reversed_event > d.sequence))
			AND NOT EXISTS (SELECT 1 FROM payouts o WHERE o.client_id = d.client_id AND o.id = d.subject_id
			AND (o.processing_event > d.sequence OR o.final_event > d.sequence OR o.late_event > d.sequence))),
		(SELECT count(*)` + spansOfEndpoint + `s.why <> 'disabled' AND s.done_at IS NULL),
		(SELECT count(*)` + spansOfEndpoint + `s.to_sequence > (SELECT h.last_event FROM client_heads h WHERE h.client_id = e.client_id)),
		EXISTS (SELECT 1 FROM cases c WHERE c.client_id = e.client_id AND c.subject_id = e.id AND c.kind = 'endpoint_disabled')
		FROM webhook_endpoints e WHERE e.client_id = $1 ORDER BY e.id`

var verifyEndpoints = db.Define(db.SQL{Name: "verify.verifyEndpoints",
	SQLite: endpointsToVerify,
	Citus:  db.OfClient(endpointsToVerify, "$1")})

// VerifyEndpoint is an endpoint with what hangs on it, from one snapshot.
type VerifyEndpoint struct {
	*webhooks.Endpoint
	Pending      int64     // rows that wait or are being sent
	FirstDue     till.Time // the least due time of those
	StrayLeases  int64     // rows that are not pending and are said to be being sent
	Ahead        int64     // rows of events that the cursor has not passed, or that are not its own
	Newest       int64     // superseded rows whose payment or payout has no newer event
	OpenReplays  int64
	BeyondLog    int64     // spans that end after the log
	CursorMade   till.Time // when the event at the cursor was made
	ToldDisabled bool      // the log has an event that it was disabled, at that time
	Case         bool      // it is or was on the attention list for it
}

// VerifyEndpoints returns a client's endpoints with what hangs on them.
func VerifyEndpoints(ctx context.Context, tx *store.Tx, client till.ID) ([]*VerifyEndpoint, error) {
	var out []*VerifyEndpoint
	err := tx.DB().Query(ctx, verifyEndpoints, []any{client[:]}, func(r db.Row) error {
		v := &VerifyEndpoint{Endpoint: &webhooks.Endpoint{}}
		out = append(out, v)
		return r.Scan(db.ID(&v.ID), &v.Pending, db.Int(&v.FirstDue), &v.StrayLeases, &v.Ahead, &v.Newest, &v.OpenReplays, &v.BeyondLog, db.Bool(&v.Case))
	})
	if err != nil {
		return nil, err
	}
	for _, v := range out {
		if v.Endpoint, err = webhooks.ReadEndpoint(ctx, tx, store.Ref{Client: client, ID: v.ID}); err != nil {
			return nil, err
		}
		if v.CursorMade, err = tx.EventMade(ctx, client, v.Cursor); err != nil {
			return nil, err
		}
		if v.DisableReason == till.DisabledAsGone || v.DisableReason == till.DisabledAsFailing {
			// The event was made at the moment of disabling, and was not long ago.
			v.ToldDisabled, err = toldAt(ctx, tx, v.Ref(), v.DisabledAt)
			if err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// toldAt reports whether the log of an endpoint's client has an event about
// it of a moment. Times grow with the sequence, so it is found by halving.
func toldAt(ctx context.Context, tx *store.Tx, ref store.Ref, at till.Time) (bool, error) {
	head, err := Head(ctx, tx, ref.Client)
	if err != nil || head == nil {
		return false, err
	}
	low, high := int64(1), head.LastEvent
	for low <= high {
		mid := (low + high) / 2
		var made till.Time
		var subject till.ID
		var kind till.EventKind
		_, err := tx.DB().QueryRow(ctx, selectEventAt,
			[]any{ref.Client[:], mid}, &made, db.ID(&subject), &kind)
		switch {
		case err != nil:
			return false, err
		case made == at:
			return subject == ref.ID && kind == till.EndpointDisabled, nil
		case made < at:
			low = mid + 1
		default:
			high = mid - 1
		}
	}
	return false, nil
}
