package store

import (
	"context"
	"strings"
	"time"

	"till"
)

// Endpoint is a webhook endpoint with its cursor into the client's log and
// all that says when it is the next one to be sent to.
type Endpoint struct {
	till.Endpoint
	Secret, OldSecret []byte    // sealed
	OldUntil          till.Time // zero: there is no old secret

	Start  int64 // the log's end when it was made: what is older is not its own
	Listed int64 // the log's end when its list of kinds last changed
	Cursor int64 // all up to here is delivered, not subscribed, or in a row
	// CursorAt is when the event at the cursor was made, as it was sent; zero:
	// the cursor was not put there by sending. 'till verify' compares it.
	CursorAt till.Time

	LeaseUntil   till.Time
	LeaseVersion int64     // fences permissions: moves with every claim, record and change
	BlockedUntil till.Time // nothing is sent before
	NextRetry    till.Time // the least due time of its pending rows; zero: it has none
	ReplayAt     till.Time // when an open replay goes on; zero: none is open
	DrainTo      int64     // a backlog up to here is sent at a bounded pace; 0: none
	Answered     int       // times that it answered 2xx since it got its address, as far as they are counted

	LastEvent int64 // the log's end, as it was read with the endpoint
}

// Ref names the endpoint.
func (e *Endpoint) Ref() Ref { return Ref{e.ClientID, e.ID} }

const endpointColumns = `client_id, id, url, description, events, enabled, disabled_at, disabled_why, created_at, updated_at,
	secret, old_secret, old_until, start_sequence, listed_from, cursor_sequence, lease_until, lease_version, blocked_until,
	next_retry, replay_at, drain_to, failing_since, failures, last_success_at, cursor_at, answered`

// selectEndpoints reads endpoints with the end of their client's log, which
// is not locked with them.
const selectEndpoints = `SELECT ` + endpointColumns + `,
	(SELECT h.last_event FROM client_heads h WHERE h.client_id = e.client_id) FROM webhook_endpoints e `

func scanEndpoint(r row) (*Endpoint, error) {
	e := &Endpoint{}
	var kinds string
	err := r.Scan(idDest(&e.ClientID), idDest(&e.ID), &e.URL, textDest(&e.Description), &kinds, boolDest(&e.Enabled), intDest(&e.DisabledAt),
		textDest(&e.DisableReason), &e.CreatedAt, &e.UpdatedAt, &e.Secret, &e.OldSecret, intDest(&e.OldUntil), &e.Start, &e.Listed, &e.Cursor,
		&e.LeaseUntil, &e.LeaseVersion, &e.BlockedUntil, intDest(&e.NextRetry), intDest(&e.ReplayAt), &e.DrainTo,
		intDest(&e.FailingSince), &e.Failures, intDest(&e.LastSuccessAt), intDest(&e.CursorAt), &e.Answered, intDest(&e.LastEvent))
	if kinds != till.AllEvents {
		for _, k := range strings.Fields(kinds) {
			e.Events = append(e.Events, till.EventKind(k))
		}
	}
	e.Backlog = max(0, e.LastEvent-e.Cursor)
	return e, err
}

// changing returns the columns that can change, in the order of SaveEndpoints.
func (e *Endpoint) changing() []any {
	return []any{e.URL, orNull(e.Description), strings.Join(e.Kinds(), " "), e.Enabled, orNull(e.DisabledAt), orNull(string(e.DisableReason)), int64(e.UpdatedAt),
		e.Secret, bytesOrNull(e.OldSecret), orNull(e.OldUntil), e.Listed, e.Cursor, int64(e.LeaseUntil), e.LeaseVersion, int64(e.BlockedUntil),
		orNull(e.NextRetry), orNull(e.ReplayAt), e.DrainTo, orNull(e.FailingSince), e.Failures, orNull(e.LastSuccessAt), orNull(e.CursorAt), e.Answered}
}

func bytesOrNull(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

// InsertEndpoint writes a new endpoint.
func (tx *Tx) InsertEndpoint(ctx context.Context, e *Endpoint) error {
	args := append(e.changing(), e.ClientID[:], e.ID[:], int64(e.CreatedAt), e.Start)
	_, err := tx.exec(ctx, `INSERT INTO webhook_endpoints (url, description, events, enabled, disabled_at, disabled_why, updated_at,
		secret, old_secret, old_until, listed_from, cursor_sequence, lease_until, lease_version, blocked_until,
		next_retry, replay_at, drain_to, failing_since, failures, last_success_at, cursor_at, answered, client_id, id, created_at, start_sequence)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, args...)
	return err
}

// SaveEndpoints writes endpoints back as they stand in memory, after they
// were locked in this transaction.
func (tx *Tx) SaveEndpoints(ctx context.Context, endpoints []*Endpoint) error {
	args := make([][]any, len(endpoints))
	for i, e := range endpoints {
		args[i] = append(e.changing(), e.ClientID[:], e.ID[:])
	}
	return tx.setAll(ctx, `UPDATE webhook_endpoints SET url = ?, description = ?, events = ?, enabled = ?, disabled_at = ?, disabled_why = ?, updated_at = ?,
		secret = ?, old_secret = ?, old_until = ?, listed_from = ?, cursor_sequence = ?, lease_until = ?, lease_version = ?, blocked_until = ?,
		next_retry = ?, replay_at = ?, drain_to = ?, failing_since = ?, failures = ?, last_success_at = ?, cursor_at = ?, answered = ?
		WHERE client_id = ? AND id = ?`, args)
}

// LockEndpoints locks and returns those of the named endpoints that exist, and
// when the named events were made, those that there are. Heads are locked
// before endpoints, never after.
func (tx *Tx) LockEndpoints(ctx context.Context, refs []Ref, events []EventKey) (map[Ref]*Endpoint, map[EventKey]till.Time, error) {
	refs = sortedRefs(refs)
	out := make(map[Ref]*Endpoint, len(refs))
	clients := make([]till.ID, len(refs))
	for i := range refs {
		clients[i] = refs[i].Client
	}
	clients = sortedIDs(clients)
	ends := make(map[till.ID]int64, len(clients))
	made, keys := make(map[EventKey]till.Time, len(events)), make([][]any, len(events))
	for i, k := range events {
		keys[i] = []any{k.Client[:], k.Sequence}
	}
	err := tx.ses.lockFirst(ctx, nil, read{
		query: `SELECT ` + endpointColumns + `, 0 FROM webhook_endpoints WHERE client_id = ? AND id = ?` + tx.s.e.lock(), args: refArgs(refs),
		scan: func(i int, r row) (err error) { out[refs[i]], err = scanEndpoint(r); return err },
	}, read{
		query: `SELECT last_event FROM client_heads WHERE client_id = ?`, args: idArgs(clients),
		scan: func(i int, r row) error {
			var n int64
			err := r.Scan(&n)
			ends[clients[i]] = n
			return err
		},
	}, read{
		query: selectEventMade, args: keys,
		scan: func(i int, r row) error {
			var at till.Time
			err := r.Scan(&at)
			made[events[i]] = at
			return err
		},
	})
	for ref, e := range out {
		e.LastEvent = ends[ref.Client]
		e.Backlog = max(0, e.LastEvent-e.Cursor)
	}
	return out, made, err
}

// Endpoint returns one endpoint, nil if there is none.
func (tx *Tx) Endpoint(ctx context.Context, ref Ref) (e *Endpoint, err error) {
	err = tx.rows(ctx, selectEndpoints+`WHERE e.client_id = ? AND e.id = ?`, []any{ref.Client[:], ref.ID[:]},
		func(r row) (err error) { e, err = scanEndpoint(r); return err })
	return e, err
}

// Endpoints returns up to limit endpoints of a client, by id.
func (tx *Tx) Endpoints(ctx context.Context, client till.ID, limit int) ([]*Endpoint, error) {
	return tx.endpoints(ctx, selectEndpoints+`WHERE e.client_id = ? ORDER BY e.id LIMIT ?`, client[:], limit)
}

func (tx *Tx) endpoints(ctx context.Context, query string, args ...any) (out []*Endpoint, err error) {
	err = tx.rows(ctx, query, args, func(r row) error {
		e, err := scanEndpoint(r)
		out = append(out, e)
		return err
	})
	return out, err
}

// Free reports whether nobody holds the endpoint and nothing keeps it from
// being sent to.
func (e *Endpoint) Free(now till.Time) bool {
	return e.Enabled && e.LeaseUntil <= now && e.BlockedUntil <= now
}

// Due reports whether there is something to send.
func (e *Endpoint) Due(now till.Time) bool {
	return e.Cursor < e.LastEvent || !e.NextRetry.IsZero() && e.NextRetry <= now || !e.ReplayAt.IsZero() && e.ReplayAt <= now
}

// DueEndpoints returns up to limit endpoints of all clients, beyond one of
// them by client and id, that have something to be sent and that nobody
// holds.
func (tx *Tx) DueEndpoints(ctx context.Context, after Ref, limit int) ([]*Endpoint, error) {
	now := int64(tx.Now())
	return tx.endpoints(ctx, `SELECT `+endpointColumns+`, last_event
		FROM (SELECT e.*, h.last_event FROM webhook_endpoints e JOIN client_heads h ON h.client_id = e.client_id
			WHERE e.enabled = 1 AND e.lease_until <= ? AND e.blocked_until <= ?
			AND (e.client_id > ? OR e.client_id = ? AND e.id > ?)) AS d
		WHERE cursor_sequence < last_event OR next_retry <= ? OR replay_at <= ?
		ORDER BY client_id, id LIMIT ?`, now, now, after.Client[:], after.Client[:], after.ID[:], now, now, limit)
}

// EndpointsAhead returns up to limit enabled endpoints of all clients, beyond one
// of them, that wait for a time to come, or whose lease ends later than one that is
// taken now.
func (tx *Tx) EndpointsAhead(ctx context.Context, after Ref, lease time.Duration, limit int) ([]*Endpoint, error) {
	soon, end := int64(tx.Now().Add(ClockSlack)), int64(tx.Now().Add(lease+ClockSlack))
	return tx.endpoints(ctx, selectEndpoints+`WHERE e.enabled = 1 AND (e.client_id > ? OR e.client_id = ? AND e.id > ?)
		AND (e.lease_until > ? OR e.blocked_until > ? OR e.next_retry > ? OR e.replay_at > ?) ORDER BY e.client_id, e.id LIMIT ?`,
		after.Client[:], after.Client[:], after.ID[:], end, soon, soon, soon, limit)
}

// DeleteEndpoint removes an endpoint with all that belongs to it.
func (tx *Tx) DeleteEndpoint(ctx context.Context, ref Ref) error {
	for _, query := range []string{
		`DELETE FROM webhook_spans WHERE client_id = ? AND endpoint_id = ?`,
		`DELETE FROM webhook_deliveries WHERE client_id = ? AND endpoint_id = ?`,
		`DELETE FROM webhook_endpoints WHERE client_id = ? AND id = ?`,
	} {
		if _, err := tx.exec(ctx, query, ref.Client[:], ref.ID[:]); err != nil {
			return err
		}
	}
	return nil
}
