package operators

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
)

// telling is a provider whose operator says what the account may do.
type telling struct {
	*plain
	account string
	all     []provider.MarketInfo
	fails   error
	panics  bool
	asked   int
}

func (o *telling) Fingerprint() string { return o.account }

func (o *telling) Markets(context.Context) ([]provider.MarketInfo, error) {
	o.asked++
	if o.panics {
		panic("an answer that nobody thought of")
	}
	return o.all, o.fails
}

func congo(state provider.MarketState) []provider.MarketInfo {
	return []provider.MarketInfo{{Method: "mtn_momo", Country: "CG", Currency: "XAF", Payments: &provider.MarketTerms{State: state, Max: 500_000}}}
}

// marketsWorld is two instances of a service whose one operator says what the account may do.
type marketsWorld struct {
	t          *testing.T
	s          *store.Store
	clock      *storetest.Clock
	operator   *telling
	asks, hear *Markets // one asks, the other only reads the database
}

func inMarketsWorld(t *testing.T, tell func(w *marketsWorld)) {
	noon := till.TimeOf(time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC))
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		w := &marketsWorld{t: t, s: s, clock: clock, operator: &telling{plain: &plain{}, account: "account 1", all: congo(provider.MarketOpen)}}
		w.asks, w.hear = w.instance(), w.instance()
		tell(w)
	})
}

func (w *marketsWorld) instance() *Markets {
	return NewMarkets(w.s, map[string]provider.Provider{"pawapay": w.operator, "other": &plain{}}, map[string]provider.Provider{}, slog.New(slog.DiscardHandler))
}

// pass lets time pass, and each instance do what it does.
func (w *marketsWorld) pass(d time.Duration) {
	w.t.Helper()
	w.clock.Set(w.clock.Now().Add(d))
	if _, err := w.asks.Read(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	for _, m := range []*Markets{w.asks, w.hear} {
		if err := m.Load(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// is checks what both instances know, and what people are told.
func (w *marketsWorld) is(when string, state provider.MarketState, old bool, problem string) {
	w.t.Helper()
	for _, m := range []*Markets{w.asks, w.hear} {
		got := provider.MarketState("")
		if info := m.Of("pawapay").Find("mtn_momo", "CG", "XAF"); info != nil {
			got = info.Payments.State
		}
		if got != state {
			w.t.Errorf("%s: the market is %q, want %q", when, got, state)
		}
	}
	row := w.row()
	if row == nil || row.Old(w.clock.Now()) != old || !strings.Contains(row.Problem, problem) || (problem == "") != (row.Problem == "") {
		w.t.Errorf("%s: people are told %+v, want old %t, %q", when, row, old, problem)
	}
}

func (w *marketsWorld) row() (row *admin.ConnectionMarkets) {
	w.t.Helper()
	err := w.s.View(w.t.Context(), func(tx *store.Tx) error {
		rows, err := admin.MarketReads(w.t.Context(), tx)
		for i := range rows {
			if rows[i].Connection == "pawapay" {
				row = &rows[i]
			}
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return row
}

// What an operator says is known to every instance within the hour.
func TestMarketsAreReadOnceAnHour(t *testing.T) {
	t.Parallel()
	inMarketsWorld(t, func(w *marketsWorld) {
		if w.asks.Of("pawapay") != nil || !w.asks.Any() || !w.asks.Asks("pawapay") || w.asks.Asks("other") {
			w.t.Error("something is known before anybody was asked")
		}
		w.pass(0)
		w.is("at first", provider.MarketOpen, false, "")
		w.operator.all = congo(provider.MarketClosed)
		for range 10 {
			w.pass(MarketsEvery)
		}
		if w.is("within the hour", provider.MarketOpen, false, ""); w.operator.asked != 1 {
			w.t.Errorf("asked %d times in 50 minutes", w.operator.asked)
		}
		w.pass(MarketsEvery)
		w.is("after an hour", provider.MarketClosed, false, "")
		w.operator.all = congo(provider.MarketDelayed)
		w.pass(time.Hour)
		w.is("an hour later", provider.MarketDelayed, false, "")
		if w.operator.asked != 3 {
			w.t.Errorf("asked %d times", w.operator.asked)
		}
		w.pass(-time.Hour) // the clock was set back
		if w.operator.asked != 4 {
			w.t.Error("a clock that was set back stops the reading")
		}
	})
}

// A read that fails, or an answer that cannot be, changes nothing, and after a day people are
// told. It is tried again soon.
func TestMarketsThatCannotBeReadChangeNothing(t *testing.T) {
	t.Parallel()
	negative := congo(provider.MarketOpen)
	negative[0].Payments.Min = -5
	for name, c := range map[string]struct {
		change  func(o *telling)
		problem string
	}{
		"no answer":              {func(o *telling) { o.fails = errors.New("the operator is away") }, "is away"},
		"nothing":                {func(o *telling) { o.all = nil }, "no market"},
		"negative bounds":        {func(o *telling) { o.all = negative }, "bounds"},
		"100 000 markets":        {func(o *telling) { o.all = make([]provider.MarketInfo, 100_000) }, "100000 markets"},
		"a panic of the adapter": {func(o *telling) { o.panics = true }, "not understood"},
		"an endless problem":     {func(o *telling) { o.fails = errors.New(strings.Repeat("é\x00", 10_000)) }, "é"},
	} {
		for _, before := range []provider.MarketState{provider.MarketOpen, provider.MarketClosed, ""} {
			t.Run(name+" after "+string(before), func(t *testing.T) {
				inMarketsWorld(t, func(w *marketsWorld) {
					good := congo(before)
					if before != "" {
						w.operator.all = good
						w.pass(0)
					}
					c.change(w.operator)
					w.pass(time.Hour)
					w.is("an hour later", before, false, c.problem)
					asked := w.operator.asked
					w.pass(MarketsEvery)
					if w.operator.asked != asked+1 {
						w.t.Error("it is not tried again soon")
					}
					w.pass(22 * time.Hour)
					w.is("23 hours later", before, false, c.problem)
					w.pass(2 * time.Hour)
					w.is("25 hours later", before, true, c.problem)
					if before == "" {
						good = congo(provider.MarketOpen)
					}
					w.operator.all, w.operator.fails, w.operator.panics = good, nil, false
					w.pass(MarketsEvery)
					w.is("once it is read again", good[0].Payments.State, false, "")
				})
			})
		}
	}
}

// If nobody asks at all, people are told after a day.
func TestMarketsThatNobodyReads(t *testing.T) {
	t.Parallel()
	inMarketsWorld(t, func(w *marketsWorld) {
		w.pass(0)
		w.clock.Set(w.clock.Now().Add(25 * time.Hour))
		w.is("a day later", provider.MarketOpen, true, "")
	})
}

// What was said of one account holds for no other, and what is not configured is forgotten.
func TestMarketsAreOfOneAccount(t *testing.T) {
	t.Parallel()
	inMarketsWorld(t, func(w *marketsWorld) {
		w.operator.all = congo(provider.MarketClosed)
		w.pass(0)
		w.is("at first", provider.MarketClosed, false, "")
		w.operator.account, w.operator.fails = "account 2", errors.New("the operator is away")
		w.hear, w.asks = w.instance(), w.instance()
		w.pass(time.Minute)
		w.is("with another account", "", false, "is away")
		w.operator.all, w.operator.fails = congo(provider.MarketOpen), nil
		w.pass(time.Minute)
		w.is("once that was read", provider.MarketOpen, false, "")
		w.asks = NewMarkets(w.s, map[string]provider.Provider{"new": w.operator}, nil, slog.New(slog.DiscardHandler))
		w.pass(time.Minute)
		if row := w.row(); row != nil || w.asks.Of("new") == nil || w.hear.Of("pawapay") != nil {
			w.t.Errorf("a connection that is gone is still known: %+v", row)
		}
	})
}

// An operator is asked by the provider that is in use, also after its credentials changed.
func TestMarketsAreAskedByTheProviderInUse(t *testing.T) {
	t.Parallel()
	first, second := &telling{plain: &plain{}, account: "a", fails: provider.ErrCredentials}, &telling{plain: &plain{}, account: "a", all: congo(provider.MarketOpen)}
	var noted []error
	r := newRenewed(first, nil, func(err error) { noted = append(noted, err) })
	m := NewMarkets(nil, map[string]provider.Provider{"pawapay": r.asProvider(), "plain": newRenewed(&plain{}, nil, nil).asProvider()}, nil, slog.New(slog.DiscardHandler))
	if !m.Asks("pawapay") || m.Asks("plain") {
		t.Error("it is not known who says what an account may do")
	}
	if _, err := m.readers["pawapay"].ask(t.Context()); !errors.Is(err, provider.ErrCredentials) || len(noted) != 1 || !errors.Is(noted[0], provider.ErrCredentials) {
		t.Errorf("refused credentials: %v, noted %v", err, noted)
	}
	r.swap(second, nil)
	if all, err := m.readers["pawapay"].ask(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}
