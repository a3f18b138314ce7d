package store

import (
	"context"

	"till"
	"till/internal/db"
)

var countOpenKinds = db.Define(db.SQL{Name: "waiting.countOpenKinds",
	SQLite: `SELECT o.kind, count(*), min(o.opened_at) FROM (SELECT kind, opened_at FROM cases WHERE closed_at IS NULL ORDER BY opened_at LIMIT $1) AS o
		GROUP BY o.kind ORDER BY o.kind`})

var sumPutAside = db.Define(db.SQL{Name: "waiting.sumPutAside",
	SQLite: `SELECT s.currency, CAST(sum(s.amount) AS BIGINT), count(*) FROM postings s WHERE s.suspended = 1
		AND NOT EXISTS (SELECT 1 FROM transactions t JOIN postings o ON o.client_id = t.client_id AND o.entry_id = t.id AND o.account = 'suspense'
			WHERE t.client_id = s.client_id AND t.payment_id = s.payment_id AND t.money_in = 1)
		GROUP BY s.currency ORDER BY s.currency`})

var selectWebhookBacklog = db.Define(db.SQL{Name: "waiting.selectWebhookBacklog",
	SQLite: `SELECT coalesce(sum(CASE WHEN e.enabled = 1 THEN 1 END), 0),
		CAST(coalesce(sum(CASE WHEN e.enabled = 1 AND h.last_event > e.cursor_sequence THEN h.last_event - e.cursor_sequence END), 0) AS BIGINT),
		coalesce(sum(CASE WHEN e.enabled = 1 AND e.failing_since IS NOT NULL THEN 1 END), 0),
		min(CASE WHEN e.enabled = 1 THEN e.failing_since END),
		coalesce(sum(CASE WHEN e.enabled = 0 AND e.disabled_why <> 'client' THEN 1 END), 0)
		FROM webhook_endpoints e JOIN client_heads h ON h.client_id = e.client_id`})

var countRetries = db.Define(db.SQL{Name: "waiting.countRetries",
	SQLite: `SELECT count(*) FROM (SELECT 1 FROM webhook_deliveries WHERE status = 'pending' LIMIT $1) AS w`})

// OpenKind is how many cases of a kind are open, over all clients.
type OpenKind struct {
	Kind   string
	Count  int64
	Oldest till.Time // when the longest open one was opened
}

// OpenKinds counts the open cases by kind, the longest open ones up to most.
func (tx *Tx) OpenKinds(ctx context.Context, most int) ([]OpenKind, error) {
	var out []OpenKind
	err := tx.db.Query(ctx, countOpenKinds, []any{most}, func(r db.Row) error {
		var k OpenKind
		err := r.Scan(&k.Kind, &k.Count, &k.Oldest)
		out = append(out, k)
		return err
	})
	return out, err
}

// Aside is money that came in, is not what was asked for, and was not credited
// since.
type Aside struct {
	Currency string
	Minor    int64
	Payments int64
}

// PutAside sums what is put aside, over all clients. SQLite looks at every
// posting for it, PostgreSQL at few.
func (tx *Tx) PutAside(ctx context.Context) ([]Aside, error) {
	var out []Aside
	err := tx.db.Query(ctx, sumPutAside, nil, func(r db.Row) error {
		var a Aside
		err := r.Scan(&a.Currency, &a.Minor, &a.Payments)
		out = append(out, a)
		return err
	})
	return out, err
}

// WebhookBacklog is how far endpoints are behind, over all clients.
type WebhookBacklog struct {
	Endpoints int64     // that are enabled
	Behind    int64     // events beyond their cursors, subscribed or not
	Retries   int64     // events that are to be sent again, counted up to a bound
	Failing   int64     // enabled endpoints that nothing reaches
	Since     till.Time // when the longest of them began to fail; zero: none does
	Disabled  int64     // endpoints that were disabled because they failed or are gone
}

// WebhookBacklog adds up the backlog. It counts at most so many retries.
func (tx *Tx) WebhookBacklog(ctx context.Context, most int) (b WebhookBacklog, err error) {
	_, err = tx.db.QueryRow(ctx, selectWebhookBacklog, nil,
		&b.Endpoints, &b.Behind, &b.Failing, intDest(&b.Since), &b.Disabled)
	if err != nil {
		return b, err
	}
	_, err = tx.db.QueryRow(ctx, countRetries, []any{most}, &b.Retries)
	return b, err
}
