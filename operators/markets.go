package operators

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"till"
	"till/internal/logs"
	"till/internal/loop"
	"till/provider"
	"till/store"
	"till/store/admin"
)

// How often operators are asked what their accounts may do, and how often each instance reads
// what they said.
const (
	// MarketsEvery is the interval of the turn. Each connection is asked once an hour, and one
	// whose last read failed at each turn.
	MarketsEvery = 5 * time.Minute
	// MarketsLease is how long the turn may take.
	MarketsLease = 10 * time.Minute

	marketsAge    = time.Hour - MarketsEvery
	marketsFollow = 10 * time.Second
)

// Markets is what operators say that the accounts of connections may do. One instance asks
// them and keeps what they said in the database; every instance reads it there.
type Markets struct {
	store   *store.Store
	log     *slog.Logger
	readers map[string]marketReader
	views   atomic.Pointer[map[string]marketView]
}

// marketReader asks the operator of a connection.
type marketReader struct {
	account string // its fingerprint
	ask     func(ctx context.Context) ([]provider.MarketInfo, error)
}

// marketView is what an operator said, as it was read from the database.
type marketView struct {
	readAt  till.Time
	account string
	markets provider.Markets
}

// NewMarkets returns what asks the operators that say what an account may do.
func NewMarkets(s *store.Store, payments, payouts map[string]provider.Provider, log *slog.Logger) *Markets {
	m := &Markets{store: s, log: log, readers: map[string]marketReader{}}
	m.views.Store(&map[string]marketView{})
	for _, side := range []map[string]provider.Provider{payouts, payments} {
		for name, p := range side {
			if ask := askMarkets(p); ask != nil {
				m.readers[name] = marketReader{p.Fingerprint(), ask}
			}
		}
	}
	return m
}

// askMarkets returns how a provider's operator is asked, nil if it does not say.
func askMarkets(p provider.Provider) func(ctx context.Context) ([]provider.MarketInfo, error) {
	if r, ok := p.(interface{ renewable() *renewed }); ok {
		if _, ok := r.renewable().get().(provider.MarketReader); ok {
			return r.renewable().askMarkets
		}
		return nil
	}
	if r, ok := p.(provider.MarketReader); ok {
		return r.Markets
	}
	return nil
}

// Any reports whether there is an operator to ask.
func (m *Markets) Any() bool { return len(m.readers) > 0 }

// Asks reports whether the operator of a connection says what the account may do.
func (m *Markets) Asks(connection string) bool { _, ok := m.readers[connection]; return ok }

// Of returns what the operator of a connection said of the account that is configured, nil if
// it has said nothing. It reads memory only.
func (m *Markets) Of(connection string) provider.Markets {
	return (*m.views.Load())[connection].markets
}

// Run follows what is in the database, until ctx ends.
func (m *Markets) Run(ctx context.Context) {
	loop.Run(ctx, loop.Options{Interval: marketsFollow, Jitter: 0.1, Step: func(ctx context.Context) time.Duration {
		if err := m.Load(ctx); err != nil && ctx.Err() == nil {
			m.log.Warn("operators' markets not read", "error", err)
		}
		return -1
	}})
}

// Load reads what operators said. If it cannot be read, what was read before stays.
func (m *Markets) Load(ctx context.Context) error {
	if !m.Any() {
		return nil
	}
	var rows []admin.ConnectionMarkets
	err := m.store.View(ctx, func(tx *store.Tx) (err error) {
		rows, err = admin.Markets(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}
	before, views := *m.views.Load(), map[string]marketView{}
	for i := range rows {
		row := &rows[i]
		reader, asks := m.readers[row.Connection]
		if !asks || row.Account != reader.account || row.ReadAt.IsZero() {
			continue // of another account
		}
		if old := before[row.Connection]; old.readAt == row.ReadAt && old.account == row.Account {
			views[row.Connection] = old
			continue
		}
		markets, err := decodeMarkets(row.Markets)
		if err != nil { // of another release
			m.log.Warn("an operator's markets not understood", "connection", row.Connection, "error", err)
			views[row.Connection] = before[row.Connection]
			continue
		}
		views[row.Connection] = marketView{row.ReadAt, row.Account, markets}
	}
	m.views.Store(&views)
	return nil
}

func decodeMarkets(text string) (provider.Markets, error) {
	var all []provider.MarketInfo
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, err
	}
	return provider.NewMarkets(all)
}

// Read is the turn: it asks the operators whose last answer is an hour old or that could not be
// asked, one after the other. What they do not say, or what cannot be, changes nothing.
func (m *Markets) Read(ctx context.Context) (result string, err error) {
	var rows []admin.ConnectionMarkets
	var now till.Time
	err = m.store.View(ctx, func(tx *store.Tx) (err error) {
		rows, err = admin.Markets(ctx, tx)
		now = tx.Now()
		return err
	})
	if err != nil {
		return "", err
	}
	last := map[string]*admin.ConnectionMarkets{}
	for i := range rows {
		last[rows[i].Connection] = &rows[i]
	}
	var errs []error
	for name := range last {
		if !m.Asks(name) {
			errs = append(errs, m.update(ctx, func(tx *store.Tx) error { return admin.DeleteMarkets(ctx, tx, name) }))
		}
	}
	asked, failed := 0, 0
	for _, name := range m.due(last, now) {
		if ctx.Err() != nil {
			break
		}
		asked++
		good, err := m.read(ctx, name, last[name])
		if !good {
			failed++
		}
		errs = append(errs, err)
	}
	return fmt.Sprintf(`{"asked":%d,"failed":%d}`, asked, failed), errors.Join(errs...)
}

// due returns the connections whose operators are to be asked, the one that was asked the
// longest time ago first.
func (m *Markets) due(last map[string]*admin.ConnectionMarkets, now till.Time) (out []string) {
	tried := func(name string) till.Time {
		if row := last[name]; row != nil {
			return row.TriedAt
		}
		return 0
	}
	for name, reader := range m.readers {
		row := last[name]
		if row == nil || row.Account != reader.account || !row.FailingSince.IsZero() || row.ReadAt > now || now.Sub(row.ReadAt) >= marketsAge {
			out = append(out, name)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		if x, y := tried(a), tried(b); x != y {
			return int(x - y)
		}
		return strings.Compare(a, b)
	})
	return out
}

// read asks one operator and keeps what it said. good reports whether it was understood.
func (m *Markets) read(ctx context.Context, name string, before *admin.ConnectionMarkets) (good bool, err error) {
	reader := m.readers[name]
	asking, cancel := context.WithTimeout(ctx, TestTimeout)
	defer cancel()
	text, markets, err := ask(asking, reader)
	if ctx.Err() != nil {
		return true, nil // we stop
	}
	if err != nil {
		problem := provider.CleanText(logs.Redact(err.Error()), provider.MaxMessage)
		m.log.Warn("an operator's markets not read", "connection", name, "error", problem)
		return false, m.update(ctx, func(tx *store.Tx) error {
			return admin.SaveMarketsProblem(ctx, tx, name, reader.account, problem)
		})
	}
	if before == nil || before.Markets != text {
		m.log.Info("an operator's markets changed", "connection", name, "markets", len(markets), "closed", closedIn(markets))
	}
	return true, m.update(ctx, func(tx *store.Tx) error {
		return admin.SaveMarkets(ctx, tx, name, reader.account, text)
	})
}

// ask asks an operator and returns what it said, as it is kept.
func ask(ctx context.Context, reader marketReader) (text string, markets provider.Markets, err error) {
	defer func() { // an adapter that an answer brings down must not end the turn
		if v := recover(); v != nil {
			err = fmt.Errorf("the answer was not understood: %v", v)
		}
	}()
	all, err := reader.ask(ctx)
	if err != nil {
		return "", nil, err
	}
	slices.SortFunc(all, func(a, b provider.MarketInfo) int { // the same answer is the same text
		return strings.Compare(a.Method+" "+a.Country+" "+a.Currency, b.Method+" "+b.Country+" "+b.Currency)
	})
	if markets, err = provider.NewMarkets(all); err != nil {
		return "", nil, err
	}
	b, err := json.Marshal(all)
	return string(b), markets, err
}

// closedIn names the markets in which no payments are taken.
func closedIn(markets provider.Markets) string {
	var closed []string
	for _, m := range markets {
		if m.Payments != nil && m.Payments.State != provider.MarketOpen {
			closed = append(closed, m.Method+" "+m.Country+" "+m.Currency)
		}
	}
	slices.Sort(closed)
	return strings.Join(closed, ", ")
}

func (m *Markets) update(ctx context.Context, f func(tx *store.Tx) error) error {
	return m.store.UpdateBackground(ctx, f)
}
