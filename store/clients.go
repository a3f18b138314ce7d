package store

import (
	"bytes"
	"context"
	"slices"

	"till"
	"till/internal/db"
)

var lockHeads = db.Define(db.SQL{Name: "clients.lockHeads",
	SQLite:   `SELECT last_time, last_event, last_audit FROM client_heads WHERE client_id = $1`,
	Postgres: `SELECT last_time, last_event, last_audit FROM client_heads WHERE client_id = $1 FOR UPDATE`})

var saveHeads = db.Define(db.SQL{Name: "clients.saveHeads",
	SQLite: `UPDATE client_heads SET last_time = $1, last_event = $2, last_audit = $3 WHERE client_id = $4`,
	Postgres: `WITH changed AS (UPDATE client_heads SET last_time = u.a1, last_event = u.a2, last_audit = u.a3
		FROM (SELECT unnest($1::bigint[]) AS a1, unnest($2::bigint[]) AS a2, unnest($3::bigint[]) AS a3, unnest($4::bytea[]) AS a4 LIMIT $5::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a4])
		RETURNING 1)
		SELECT till_expect_rows(count(*), $5) FROM changed`,
	Arrays: true})

var insertClient = db.Define(db.SQL{Name: "clients.insert",
	SQLite: `INSERT INTO clients (client_id, name, mode, suspended, created_at) VALUES ($1, $2, $3, 0, $4)`})

var insertHead = db.Define(db.SQL{Name: "clients.insertHead",
	SQLite: `INSERT INTO client_heads (client_id, last_time, last_event, last_audit) VALUES ($1, $2, 0, 0)`})

var selectClient = db.Define(db.SQL{Name: "clients.selectClient",
	SQLite: `SELECT name, mode, suspended, created_at FROM clients WHERE client_id = $1`})

var selectClients = db.Define(db.SQL{Name: "clients.selectClients",
	SQLite: `SELECT client_id, name, mode, suspended, created_at FROM clients WHERE client_id > $1 ORDER BY client_id LIMIT $2`})

var selectClientNames = db.Define(db.SQL{Name: "clients.selectNames",
	SQLite: `SELECT coalesce(nullif(p.name, ''), c.name), c.mode FROM clients c LEFT JOIN client_profiles p ON p.client_id = c.client_id WHERE c.client_id = $1`,
	Postgres: `SELECT u.nth, coalesce(nullif(p.name, ''), c.name), c.mode
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bigint[]) AS nth LIMIT $3::bigint) AS u,
		LATERAL (SELECT * FROM clients WHERE client_id = u.a1 OFFSET 0) AS c
		LEFT JOIN LATERAL (SELECT * FROM client_profiles WHERE client_id = c.client_id OFFSET 0) AS p ON TRUE`,
	Arrays: true})

var setSuspended = db.Define(db.SQL{Name: "clients.setSuspended",
	SQLite: `UPDATE clients SET suspended = $1 WHERE client_id = $2`})

var enableMethod = db.Define(db.SQL{Name: "clients.enableMethod",
	SQLite: `INSERT INTO client_methods (client_id, method) VALUES ($1, $2) ON CONFLICT DO NOTHING`})

var disableMethod = db.Define(db.SQL{Name: "clients.disableMethod",
	SQLite: `DELETE FROM client_methods WHERE client_id = $1 AND method = $2`})

var selectClientMethods = db.Define(db.SQL{Name: "clients.selectMethods",
	SQLite: `SELECT method FROM client_methods WHERE client_id = $1 ORDER BY method`})

var selectClientFees = db.Define(db.SQL{Name: "fees.selectClientFees",
	SQLite: `SELECT kind, method, currency, flat, basis_points FROM client_fees WHERE client_id = $1 ORDER BY kind, method, currency`})

var setClientFee = db.Define(db.SQL{Name: "fees.setClientFee",
	SQLite: `INSERT INTO client_fees (client_id, kind, method, currency, flat, basis_points) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (client_id, kind, method, currency) DO UPDATE SET flat = excluded.flat, basis_points = excluded.basis_points`})

var removeClientFee = db.Define(db.SQL{Name: "fees.removeClientFee",
	SQLite: `DELETE FROM client_fees WHERE client_id = $1 AND kind = $2 AND method = $3 AND currency = $4`})

var selectProfile = db.Define(db.SQL{Name: "profiles.select",
	SQLite: `SELECT name, zone, country, language, receipt_head, receipt_foot, pay_name FROM client_profiles WHERE client_id = $1`})

var saveProfile = db.Define(db.SQL{Name: "profiles.save",
	SQLite: `INSERT INTO client_profiles (client_id, name, zone, country, language, receipt_head, receipt_foot, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (client_id) DO UPDATE SET name = excluded.name, zone = excluded.zone, country = excluded.country, language = excluded.language,
		receipt_head = excluded.receipt_head, receipt_foot = excluded.receipt_foot, updated_at = excluded.updated_at`})

// Head is the row of a client that orders its writes. The transaction that has
// locked it gives out the client's times and sequences; SaveHeads writes them
// back.
type Head struct {
	ClientID  till.ID
	LastTime  till.Time
	LastEvent int64
	LastAudit int64

	now  till.Time
	seen int64 // LastEvent when it was locked
}

// NextTime returns the client's next time. It is the database's clock, or one
// microsecond after the last time if the clock did not advance.
func (h *Head) NextTime() till.Time {
	h.LastTime = max(h.now, h.LastTime+1)
	return h.LastTime
}

// NextEvent returns the next number of the client's event log.
func (h *Head) NextEvent() int64 { h.LastEvent++; return h.LastEvent }

// NextAudit returns the next number of the client's audit log.
func (h *Head) NextAudit() int64 { h.LastAudit++; return h.LastAudit }

// LockHeads locks the heads of the clients, in the order of their ids, and
// returns those that exist. The installation is no client: for it, call
// LockLogs.
func (tx *Tx) LockHeads(ctx context.Context, clients []till.ID) (map[till.ID]*Head, error) {
	if slices.Contains(clients, till.House) {
		clients = slices.DeleteFunc(slices.Clone(clients), till.ID.IsZero)
	}
	return tx.lockHeads(ctx, nil, clients)
}

// LockMakers is LockHeads for creates, and says which of the clients are
// suspended. It reads that after the locks are held, in the same round trip: who
// suspends a client holds its head, too.
func (tx *Tx) LockMakers(ctx context.Context, clients []till.ID) (heads map[till.ID]*Head, suspended map[till.ID]bool, err error) {
	ids := SortedIDs(clients)
	suspended = make(map[till.ID]bool)
	heads, err = tx.lockHeads(ctx, nil, ids, db.Statement{SQL: selectHoldsOf, Rows: IDArgs(ids),
		Scan: func(i int, r db.Row) error {
			h, err := scanHold(r)
			suspended[ids[i]] = suspended[ids[i]] || h.Cause == HoldSuspended
			return err
		}})
	return heads, suspended, err
}

// LockLogs is LockHeads for callers that only write audit rows: the installation has a log
// too.
func (tx *Tx) LockLogs(ctx context.Context, clients []till.ID) (map[till.ID]*Head, error) {
	return tx.lockHeads(ctx, nil, clients)
}

// lockHeads is LockHeads, and then some reads in the same round trip.
func (tx *Tx) lockHeads(ctx context.Context, before []db.Statement, clients []till.ID, after ...db.Statement) (map[till.ID]*Head, error) {
	heads := make(map[till.ID]*Head, 1)
	ids := SortedIDs(clients)
	// The clock is read after the locks are held.
	err := tx.LockThenRead(ctx, before, db.Statement{
		SQL: lockHeads, Rows: IDArgs(ids),
		Scan: func(i int, r db.Row) error {
			h := &Head{ClientID: ids[i]}
			heads[ids[i]] = h
			err := r.Scan(&h.LastTime, &h.LastEvent, &h.LastAudit)
			h.seen = h.LastEvent
			return err
		}}, after...)
	for _, h := range heads {
		h.now = tx.Now()
	}
	return heads, err
}

func IDArgs(ids []till.ID) [][]any {
	args := make([][]any, len(ids))
	for i := range ids {
		args[i] = []any{ids[i][:]}
	}
	return args
}

// SaveHeads writes back what was given out.
func (tx *Tx) SaveHeads(ctx context.Context, heads map[till.ID]*Head) error {
	args := make([][]any, 0, len(heads))
	for _, h := range heads {
		args = append(args, []any{int64(h.LastTime), h.LastEvent, h.LastAudit, h.ClientID[:]})
		if h.LastEvent != h.seen {
			tx.grew(h.ClientID)
		}
	}
	return tx.db.DeferExactly(saveHeads, args)
}

// SortedIDs returns the distinct ids in order.
func SortedIDs(ids []till.ID) []till.ID {
	out := slices.Clone(ids)
	slices.SortFunc(out, func(a, b till.ID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(out)
}

// InsertClient writes a new client with its head.
func (tx *Tx) InsertClient(ctx context.Context, c *till.Client) error {
	if _, err := tx.db.Exec(ctx, insertClient,
		c.ID[:], c.Name, string(c.Mode), int64(c.CreatedAt)); err != nil {
		return err
	}
	_, err := tx.db.Exec(ctx, insertHead,
		c.ID[:], int64(c.CreatedAt))
	return err
}

// Client returns one client. It returns CodeClientNotFound if there is none.
func (tx *Tx) Client(ctx context.Context, id till.ID) (*till.Client, error) {
	c := &till.Client{ID: id}
	found, err := tx.db.QueryRow(ctx, selectClient,
		[]any{id[:]}, &c.Name, &c.Mode, db.Bool(&c.Suspended), &c.CreatedAt)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, till.Errorf(till.CodeClientNotFound, "there is no such client")
	}
	return c, nil
}

// Clients returns up to limit clients whose id is beyond after, by id.
func (tx *Tx) Clients(ctx context.Context, after till.ID, limit int) ([]*till.Client, error) {
	return db.ReadAll(ctx, tx.db, selectClients, []any{after[:], limit}, func(r db.Row) (*till.Client, error) {
		c := &till.Client{}
		err := r.Scan(db.ID(&c.ID), &c.Name, &c.Mode, db.Bool(&c.Suspended), &c.CreatedAt)
		return c, err
	})
}

// EachPageOfClients calls f with the ids of all clients, a page at a time.
func (s *Store) EachPageOfClients(ctx context.Context, f func(clients []till.ID) error) error {
	const page = 100
	for after := (till.ID{}); ; {
		var clients []till.ID
		err := s.View(ctx, func(tx *Tx) error {
			clients = nil
			rows, err := tx.Clients(ctx, after, page)
			for _, c := range rows {
				clients = append(clients, c.ID)
			}
			return err
		})
		if err != nil || len(clients) == 0 {
			return err
		}
		after = clients[len(clients)-1]
		if err := f(clients); err != nil {
			return err
		}
	}
}

// EachClient calls f with each client, a page at a time, until f returns false.
func (s *Store) EachClient(ctx context.Context, f func(c *till.Client) (more bool, err error)) error {
	const page = 500
	for after := (till.ID{}); ; {
		var clients []*till.Client
		err := s.View(ctx, func(tx *Tx) (err error) {
			clients, err = tx.Clients(ctx, after, page)
			return err
		})
		if err != nil || len(clients) == 0 {
			return err
		}
		for _, c := range clients {
			if more, err := f(c); err != nil || !more {
				return err
			}
			after = c.ID
		}
	}
}

// ClientNames returns the clients with some ids, by the names that people call them:
// those of their profiles. Only id, name and mode are filled in.
func (tx *Tx) ClientNames(ctx context.Context, ids []till.ID) (map[till.ID]till.Client, error) {
	ids = slices.Clone(ids)
	slices.SortFunc(ids, func(a, b till.ID) int { return bytes.Compare(a[:], b[:]) })
	ids = slices.Compact(ids)
	rows, out := make([][]any, len(ids)), make(map[till.ID]till.Client, len(ids))
	for i := range ids {
		rows[i] = []any{ids[i][:]}
	}
	return out, tx.db.QueryEach(ctx, selectClientNames, rows, func(i int, r db.Row) error {
		c := till.Client{ID: ids[i]}
		err := r.Scan(&c.Name, &c.Mode)
		out[ids[i]] = c
		return err
	})
}

// SetSuspended suspends a client or lets it in again.
func (tx *Tx) SetSuspended(ctx context.Context, id till.ID, suspended bool) error {
	_, err := tx.db.Exec(ctx, setSuspended, suspended, id[:])
	return err
}

// ClientMethods returns the codes of the methods enabled for a client.
func (tx *Tx) ClientMethods(ctx context.Context, id till.ID) ([]string, error) {
	return db.ReadAll(ctx, tx.db, selectClientMethods, []any{id[:]}, func(r db.Row) (string, error) {
		var code string
		err := r.Scan(&code)
		return code, err
	})
}

// SetClientMethod enables or disables a method for a client.
func (tx *Tx) SetClientMethod(ctx context.Context, id till.ID, method string, enabled bool) error {
	change := disableMethod
	if enabled {
		change = enableMethod
	}
	_, err := tx.db.Exec(ctx, change, id[:], method)
	return err
}

// ClientFees returns a client's schedule of fees. There is one per kind,
// method and currency, so the list is short.
func (tx *Tx) ClientFees(ctx context.Context, client till.ID) ([]till.Fee, error) {
	return db.ReadAll(ctx, tx.db, selectClientFees, []any{client[:]}, func(r db.Row) (till.Fee, error) {
		var f till.Fee
		err := r.Scan(&f.Kind, &f.Method, &f.Currency, &f.Flat, &f.BasisPoints)
		return f, err
	})
}

// SetClientFee sets what is taken from a client for a kind, method and
// currency.
func (tx *Tx) SetClientFee(ctx context.Context, client till.ID, f till.Fee) error {
	_, err := tx.db.Exec(ctx, setClientFee,
		client[:], string(f.Kind), f.Method, f.Currency, f.Flat, f.BasisPoints)
	return err
}

// RemoveClientFee takes a fee off the schedule, and reports whether it was on
// it.
func (tx *Tx) RemoveClientFee(ctx context.Context, client till.ID, f till.Fee) (bool, error) {
	n, err := tx.db.Exec(ctx, removeClientFee,
		client[:], string(f.Kind), f.Method, f.Currency)
	return n == 1, err
}

// Profile returns how a client is shown to people: what was saved, or the
// defaults.
func (tx *Tx) Profile(ctx context.Context, client till.ID) (*till.Profile, error) {
	p := &till.Profile{ClientID: client, Zone: till.DefaultZone}
	_, err := tx.db.QueryRow(ctx, selectProfile, []any{client[:]}, &p.Name, &p.Zone, &p.Country, &p.Language, &p.ReceiptHead, &p.ReceiptFoot, &p.PayName)
	return p, err
}

// SaveProfile writes how a client is shown to people, all but PayName.
func (tx *Tx) SaveProfile(ctx context.Context, p *till.Profile, at till.Time) error {
	_, err := tx.db.Exec(ctx, saveProfile, p.ClientID[:], p.Name, p.Zone, p.Country, p.Language, p.ReceiptHead, p.ReceiptFoot, int64(at))
	return err
}
