package webhooks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"till"
	"till/internal/db"
	"till/store"
)

const endpointColumns = `client_id, id, url, description, events, enabled, disabled_at, disabled_why, created_at, updated_at,
	secret, old_secret, old_until, start_sequence, listed_from, cursor_sequence, lease_until, lease_version, blocked_until,
	next_retry, replay_at, drain_to, failing_since, failures, last_success_at, cursor_at, answered, keeps_answers`

// is not locked with them.
const endpointsWithLogEnd = `SELECT ` + endpointColumns + `,
	(SELECT h.last_event FROM client_heads h WHERE h.client_id = e.client_id) FROM webhook_endpoints e `

var insertEndpoint = db.Define(db.SQL{Name: "endpoints.insert",
	SQLite: `INSERT INTO webhook_endpoints (url, description, events, enabled, disabled_at, disabled_why, updated_at,
		secret, old_secret, old_until, listed_from, cursor_sequence, lease_until, lease_version, blocked_until,
		next_retry, replay_at, drain_to, failing_since, failures, last_success_at, cursor_at, answered, client_id, id, created_at, start_sequence, keeps_answers)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28)`})

var saveEndpoints = db.Define(db.SQL{Name: "endpoints.save",
	SQLite: `UPDATE webhook_endpoints SET url = $1, description = $2, events = $3, enabled = $4, disabled_at = $5, disabled_why = $6, updated_at = $7,
		secret = $8, old_secret = $9, old_until = $10, listed_from = $11, cursor_sequence = $12, lease_until = $13, lease_version = $14, blocked_until = $15,
		next_retry = $16, replay_at = $17, drain_to = $18, failing_since = $19, failures = $20, last_success_at = $21, cursor_at = $22, answered = $23
		WHERE client_id = $24 AND id = $25`,
	Postgres: `WITH changed AS (UPDATE webhook_endpoints SET url = u.a1, description = u.a2, events = u.a3, enabled = u.a4, disabled_at = u.a5, disabled_why = u.a6, updated_at = u.a7,
			secret = u.a8, old_secret = u.a9, old_until = u.a10, listed_from = u.a11, cursor_sequence = u.a12, lease_until = u.a13, lease_version = u.a14, blocked_until = u.a15,
			next_retry = u.a16, replay_at = u.a17, drain_to = u.a18, failing_since = u.a19, failures = u.a20, last_success_at = u.a21, cursor_at = u.a22, answered = u.a23
		FROM (SELECT unnest($1::text[]) AS a1, unnest($2::text[]) AS a2, unnest($3::text[]) AS a3, unnest($4::bigint[]) AS a4,
			unnest($5::bigint[]) AS a5, unnest($6::text[]) AS a6, unnest($7::bigint[]) AS a7, unnest($8::bytea[]) AS a8,
			unnest($9::bytea[]) AS a9, unnest($10::bigint[]) AS a10, unnest($11::bigint[]) AS a11, unnest($12::bigint[]) AS a12,
			unnest($13::bigint[]) AS a13, unnest($14::bigint[]) AS a14, unnest($15::bigint[]) AS a15, unnest($16::bigint[]) AS a16,
			unnest($17::bigint[]) AS a17, unnest($18::bigint[]) AS a18, unnest($19::bigint[]) AS a19, unnest($20::bigint[]) AS a20,
			unnest($21::bigint[]) AS a21, unnest($22::bigint[]) AS a22, unnest($23::bigint[]) AS a23, unnest($24::bytea[]) AS a24,
			unnest($25::bytea[]) AS a25 LIMIT $26::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a24]) AND id = u.a25
		RETURNING 1)
		SELECT till_expect_rows(count(*), $26) FROM changed`,
	Arrays: true})

var lockEndpoints = db.Define(db.SQL{Name: "endpoints.lock",
	SQLite:   `SELECT ` + endpointColumns + `, 0 FROM webhook_endpoints WHERE client_id = $1 AND id = $2`,
	Postgres: `SELECT ` + endpointColumns + `, 0 FROM webhook_endpoints WHERE client_id = $1 AND id = $2 FOR UPDATE`})

var selectLogEnds = db.Define(db.SQL{Name: "endpoints.selectLogEnds",
	SQLite: `SELECT last_event FROM client_heads WHERE client_id = $1`,
	Postgres: `SELECT u.nth, last_event FROM client_heads,
		(SELECT unnest($1::bytea[]) AS a1, unnest($2::bigint[]) AS nth LIMIT $3::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a1])`,
	Arrays: true})

var selectEndpoint = db.Define(db.SQL{Name: "endpoints.selectEndpoint",
	SQLite: endpointsWithLogEnd + `WHERE e.client_id = $1 AND e.id = $2`,
	Citus:  db.OfClient(endpointsWithLogEnd+`WHERE e.client_id = $1 AND e.id = $2`, "$1")})

var selectEndpoints = db.Define(db.SQL{Name: "endpoints.selectEndpoints",
	SQLite: endpointsWithLogEnd + `WHERE e.client_id = $1 ORDER BY e.id LIMIT $2`,
	Citus:  db.OfClient(endpointsWithLogEnd+`WHERE e.client_id = $1 ORDER BY e.id LIMIT $2`, "$1")})

var selectDueEndpoints = db.Define(db.SQL{Name: "endpoints.selectDueEndpoints",
	SQLite: `SELECT ` + endpointColumns + `, last_event
		FROM (SELECT e.*, h.last_event FROM webhook_endpoints e JOIN client_heads h ON h.client_id = e.client_id
			WHERE e.enabled = 1 AND e.lease_until <= $1 AND e.blocked_until <= $2
			AND (e.client_id > $3 OR e.client_id = $4 AND e.id > $5)) AS d
		WHERE cursor_sequence < last_event OR next_retry <= $6 OR replay_at <= $7
		ORDER BY client_id, id LIMIT $8`})

var deleteRanges = db.Define(db.SQL{Name: "endpoints.deleteRanges",
	SQLite: `DELETE FROM webhook_spans WHERE client_id = $1 AND endpoint_id = $2`})

var deleteDeliveries = db.Define(db.SQL{Name: "endpoints.deleteDeliveries",
	SQLite: `DELETE FROM webhook_deliveries WHERE client_id = $1 AND endpoint_id = $2`})

var deleteEndpoint = db.Define(db.SQL{Name: "endpoints.delete",
	SQLite: `DELETE FROM webhook_endpoints WHERE client_id = $1 AND id = $2`})

var selectEndpointsAhead = db.Define(db.SQL{Name: "endpoints.selectAhead",
	SQLite: endpointsWithLogEnd + `WHERE e.enabled = 1 AND (e.client_id > $1 OR e.client_id = $2 AND e.id > $3)
		AND (e.lease_until > $4 OR e.blocked_until > $5 OR e.next_retry > $6 OR e.replay_at > $7) ORDER BY e.client_id, e.id LIMIT $8`})

var selectWebhookBacklog = db.Define(db.SQL{Name: "endpoints.selectWebhookBacklog",
	SQLite: `SELECT coalesce(sum(CASE WHEN e.enabled = 1 THEN 1 END), 0),
		CAST(coalesce(sum(CASE WHEN e.enabled = 1 AND h.last_event > e.cursor_sequence THEN h.last_event - e.cursor_sequence END), 0) AS BIGINT),
		coalesce(sum(CASE WHEN e.enabled = 1 AND e.failing_since IS NOT NULL THEN 1 END), 0),
		min(CASE WHEN e.enabled = 1 THEN e.failing_since END),
		coalesce(sum(CASE WHEN e.enabled = 0 AND e.disabled_why <> 'client' THEN 1 END), 0)
		FROM webhook_endpoints e JOIN client_heads h ON h.client_id = e.client_id JOIN clients c ON c.client_id = e.client_id WHERE c.mode = $1`})

var countRetries = db.Define(db.SQL{Name: "endpoints.countRetries",
	SQLite: `SELECT count(*) FROM (SELECT client_id FROM webhook_deliveries WHERE status = 'pending' LIMIT $1) AS w JOIN clients c ON c.client_id = w.client_id WHERE c.mode = $2`})

// Endpoint is a webhook endpoint with its cursor into the client's event log and
// the times that decide when it is sent to next.
type Endpoint struct {
	till.Endpoint
	Secret, OldSecret []byte    // sealed
	OldUntil          till.Time // zero: there is no old secret

	Start            int64 // the log's end when it was made: what is older is not its own
	EventsListedFrom int64 // the log's end when its list of kinds last changed
	Cursor           int64 // all up to here is delivered, not subscribed, or in a row
	// CursorAt is when the event at the cursor was made, as it was sent; zero:
	// the cursor was not put there by sending. 'till verify' compares it.
	CursorAt till.Time

	LeaseUntil    till.Time
	LeaseVersion  int64     // fences permissions: moves with every claim, record and change
	BlockedUntil  till.Time // nothing is sent before
	NextRetry     till.Time // the least due time of its pending rows; zero: it has none
	ReplayAt      till.Time // when an open replay goes on; zero: none is open
	ThrottleUntil int64     // a backlog up to here is sent at a bounded pace; 0: none
	Answered      int       // times that it answered 2xx since it got its address, as far as they are counted

	// KeepsAnswers says that what arrives at once leaves a row, too: the client is
	// a test client. It never changes.
	KeepsAnswers bool

	LastEvent int64 // the log's end, as it was read with the endpoint
}

// Ref names the endpoint.
func (e *Endpoint) Ref() store.Ref { return store.Ref{Client: e.ClientID, ID: e.ID} }

// endpointsWithLogEnd reads endpoints with the end of their client's log, which
func scanEndpoint(r db.Row) (*Endpoint, error) {
	e := &Endpoint{}
	var kinds string
	err := r.Scan(db.ID(&e.ClientID), db.ID(&e.ID), &e.URL, db.Text(&e.Description), &kinds, db.Bool(&e.Enabled), db.Int(&e.DisabledAt),
		db.Text(&e.DisableReason), &e.CreatedAt, &e.UpdatedAt, &e.Secret, &e.OldSecret, db.Int(&e.OldUntil), &e.Start, &e.EventsListedFrom, &e.Cursor,
		&e.LeaseUntil, &e.LeaseVersion, &e.BlockedUntil, db.Int(&e.NextRetry), db.Int(&e.ReplayAt), &e.ThrottleUntil,
		db.Int(&e.FailingSince), &e.Failures, db.Int(&e.LastSuccessAt), db.Int(&e.CursorAt), &e.Answered, db.Bool(&e.KeepsAnswers), db.Int(&e.LastEvent))
	if kinds != till.AllEvents {
		for _, k := range strings.Fields(kinds) {
			e.Events = append(e.Events, till.EventKind(k))
		}
	}
	e.Backlog = max(0, e.LastEvent-e.Cursor)
	return e, err
}

// mutableColumns returns the columns that can change, in the order of SaveEndpoints.
func (e *Endpoint) mutableColumns() []any {
	return []any{e.URL, db.OrNull(e.Description), strings.Join(e.Kinds(), " "), e.Enabled, db.OrNull(e.DisabledAt), db.OrNull(string(e.DisableReason)), int64(e.UpdatedAt),
		e.Secret, db.BytesOrNull(e.OldSecret), db.OrNull(e.OldUntil), e.EventsListedFrom, e.Cursor, int64(e.LeaseUntil), e.LeaseVersion, int64(e.BlockedUntil),
		db.OrNull(e.NextRetry), db.OrNull(e.ReplayAt), e.ThrottleUntil, db.OrNull(e.FailingSince), e.Failures, db.OrNull(e.LastSuccessAt), db.OrNull(e.CursorAt), e.Answered}
}

// InsertEndpoint writes a new endpoint.
func InsertEndpoint(ctx context.Context, tx *store.Tx, e *Endpoint) error {
	args := append(e.mutableColumns(), e.ClientID[:], e.ID[:], int64(e.CreatedAt), e.Start, e.KeepsAnswers)
	_, err := tx.DB().Exec(ctx, insertEndpoint, args...)
	return err
}

// SaveEndpoints writes endpoints back as they are in memory, after they were
// locked in this transaction.
func SaveEndpoints(ctx context.Context, tx *store.Tx, endpoints []*Endpoint) error {
	args := make([][]any, len(endpoints))
	for i, e := range endpoints {
		args[i] = append(e.mutableColumns(), e.ClientID[:], e.ID[:])
	}
	return tx.DB().DeferExactly(saveEndpoints, args)
}

// LockEndpoints locks and returns those of the named endpoints that exist, and
// when the named events were made, those that there are. Heads are locked
// before endpoints, never after.
func LockEndpoints(ctx context.Context, tx *store.Tx, refs []store.Ref, events []store.EventKey) (map[store.Ref]*Endpoint, map[store.EventKey]till.Time, error) {
	refs = store.SortedRefs(refs)
	out := make(map[store.Ref]*Endpoint, len(refs))
	clients := make([]till.ID, len(refs))
	for i := range refs {
		clients[i] = refs[i].Client
	}
	clients = store.SortedIDs(clients)
	ends := make(map[till.ID]int64, len(clients))
	made, keys := make(map[store.EventKey]till.Time, len(events)), make([][]any, len(events))
	for i, k := range events {
		keys[i] = []any{k.Client[:], k.Sequence}
	}
	err := tx.LockThenRead(ctx, nil, db.Statement{
		SQL: lockEndpoints, Rows: store.RefArgs(refs),
		Scan: func(i int, r db.Row) (err error) { out[refs[i]], err = scanEndpoint(r); return err },
	}, db.Statement{
		SQL: selectLogEnds, Rows: store.IDArgs(clients),
		Scan: func(i int, r db.Row) error {
			var n int64
			err := r.Scan(&n)
			ends[clients[i]] = n
			return err
		},
	}, db.Statement{
		SQL: store.SelectEventMade, Rows: keys,
		Scan: func(i int, r db.Row) error {
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

// ReadEndpoint returns one endpoint, nil if there is none.
func ReadEndpoint(ctx context.Context, tx *store.Tx, ref store.Ref) (e *Endpoint, err error) {
	err = tx.DB().Query(ctx, selectEndpoint, []any{ref.Client[:], ref.ID[:]},
		func(r db.Row) (err error) { e, err = scanEndpoint(r); return err })
	return e, err
}

// Endpoints returns up to limit endpoints of a client, by id.
func Endpoints(ctx context.Context, tx *store.Tx, client till.ID, limit int) ([]*Endpoint, error) {
	return endpoints(ctx, tx, selectEndpoints, client[:], limit)
}

func endpoints(ctx context.Context, tx *store.Tx, q *db.SQL, args ...any) (out []*Endpoint, err error) {
	err = tx.DB().Query(ctx, q, args, func(r db.Row) error {
		e, err := scanEndpoint(r)
		out = append(out, e)
		return err
	})
	return out, err
}

// Free reports whether the endpoint is enabled, not leased and not blocked.
func (e *Endpoint) Free(now till.Time) bool {
	return e.Enabled && e.LeaseUntil <= now && e.BlockedUntil <= now
}

// Due reports whether there is something to send.
func (e *Endpoint) Due(now till.Time) bool {
	return e.Cursor < e.LastEvent || !e.NextRetry.IsZero() && e.NextRetry <= now || !e.ReplayAt.IsZero() && e.ReplayAt <= now
}

// DueEndpoints returns up to limit endpoints of all clients, after one of them by
// client and id. Each has something to be sent and is not leased.
func DueEndpoints(ctx context.Context, tx *store.Tx, after store.Ref, limit int) ([]*Endpoint, error) {
	now := int64(tx.Now())
	return endpoints(ctx, tx, selectDueEndpoints, now, now, after.Client[:], after.Client[:], after.ID[:], now, now, limit)
}

// EndpointsAhead returns up to limit enabled endpoints of all clients, after one
// of them. Each waits for a time, or its lease ends later than a lease taken now
// would.
func EndpointsAhead(ctx context.Context, tx *store.Tx, after store.Ref, lease time.Duration, limit int) ([]*Endpoint, error) {
	soon, end := int64(tx.Now().Add(store.ClockSlack)), int64(tx.Now().Add(lease+store.ClockSlack))
	return endpoints(ctx, tx, selectEndpointsAhead,
		after.Client[:], after.Client[:], after.ID[:], end, soon, soon, soon, limit)
}

// DeleteEndpoint removes an endpoint with all that belongs to it.
func DeleteEndpoint(ctx context.Context, tx *store.Tx, ref store.Ref) error {
	for _, remove := range []*db.SQL{deleteRanges, deleteDeliveries, deleteEndpoint} {
		if _, err := tx.DB().Exec(ctx, remove, ref.Client[:], ref.ID[:]); err != nil {
			return err
		}
	}
	return nil
}

// Backlog is how far endpoints are behind, over all clients of a mode.
type Backlog struct {
	Endpoints int64     // that are enabled
	Behind    int64     // events beyond their cursors, subscribed or not
	Retries   int64     // events that are to be sent again, counted up to a bound
	Failing   int64     // enabled endpoints that nothing reaches
	Since     till.Time // when the longest of them began to fail; zero: none does
	Disabled  int64     // endpoints that were disabled because they failed or are gone
}

// ReadBacklog adds up the backlog. It counts at most so many retries.
func ReadBacklog(ctx context.Context, tx *store.Tx, mode till.Mode, most int) (b Backlog, err error) {
	_, err = tx.DB().QueryRow(ctx, selectWebhookBacklog, []any{string(mode)},
		&b.Endpoints, &b.Behind, &b.Failing, db.Int(&b.Since), &b.Disabled)
	if err != nil {
		return b, err
	}
	_, err = tx.DB().QueryRow(ctx, countRetries, []any{most, string(mode)}, &b.Retries)
	return b, err
}

var askNodeOfEndpoints = db.Define(db.SQL{Name: "citus.askNodeOfEndpoints",
	Postgres: store.AskNodeAbout(`shard_name(s.logicalrelid, s.shardid), shard_name(h.logicalrelid, h.shardid)`,
		`JOIN pg_dist_shard h ON h.logicalrelid = 'client_heads'::regclass AND h.shardminvalue = s.shardminvalue`, "webhook_endpoints")})

// FindDueEndpoints is DueEndpoints in a transaction of its own. It leaves out unreachable
// nodes.
func FindDueEndpoints(ctx context.Context, s *store.Store, after store.Ref, limit int) (out []*Endpoint, err error) {
	err = store.OverAll(ctx, s, func(tx *store.Tx) (err error) {
		out, err = DueEndpoints(ctx, tx, after, limit)
		return err
	}, func(tx *store.Tx, node int) ([]*Endpoint, error) {
		return dueEndpointsOf(ctx, tx, node, after, limit)
	}, func(found [][]*Endpoint) error {
		out = slices.Concat(found...)
		slices.SortFunc(out, func(a, b *Endpoint) int {
			return cmp.Or(bytes.Compare(a.ClientID[:], b.ClientID[:]), bytes.Compare(a.ID[:], b.ID[:]))
		})
		out = out[:min(len(out), limit)]
		return nil
	})
	return out, err
}

func dueEndpointsOf(ctx context.Context, tx *store.Tx, node int, after store.Ref, limit int) (out []*Endpoint, err error) {
	refs, err := tx.AskParts(ctx, askNodeOfEndpoints, dueEndpointsCommand(after, limit, tx.Now()), node)
	for _, ref := range refs {
		if err != nil {
			break
		}
		var e *Endpoint
		if e, err = ReadEndpoint(ctx, tx, ref); e != nil {
			out = append(out, e)
		}
	}
	return out, err
}

// dueEndpointsCommand is what each part of webhook_endpoints is asked, with the part of
// client_heads beside it.
func dueEndpointsCommand(after store.Ref, limit int, now till.Time) string {
	at, client, id := fmt.Sprint(int64(now)), hex.EncodeToString(after.Client[:]), hex.EncodeToString(after.ID[:])
	return `SELECT string_agg(encode(d.client_id, 'hex') || '|' || encode(d.id, 'hex'), ' ')
		FROM (SELECT e.client_id, e.id FROM %s AS e JOIN %s AS h ON h.client_id = e.client_id
			WHERE e.enabled = 1 AND e.lease_until <= ` + at + ` AND e.blocked_until <= ` + at + `
			AND (e.client_id, e.id) > ('\x` + client + `'::bytea, '\x` + id + `'::bytea)
			AND (e.cursor_sequence < h.last_event OR e.next_retry <= ` + at + ` OR e.replay_at <= ` + at + `)
			ORDER BY e.client_id, e.id LIMIT ` + strconv.Itoa(limit) + `) AS d`
}
