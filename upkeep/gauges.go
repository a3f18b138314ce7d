package upkeep

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"till"
	"till/books"
	"till/internal/jsonx"
	"till/store"
	"till/store/admin"
)

// Gauge is one number about money, with the name and labels of package meter's table.
type Gauge struct {
	Name   string
	Labels []string
	Value  float64
}

// gaugesEvery is how often the gauges are read, by one instance.
const gaugesEvery = time.Minute

// GaugesTurn is the turn that reads the gauges.
const GaugesTurn = "gauges"

// NewGaugesTurn returns the turn that reads all gauges in one snapshot.
func NewGaugesTurn(s *store.Store) Turn {
	return Turn{Name: GaugesTurn, Every: gaugesEvery, Lease: 2 * gaugesEvery, Run: func(ctx context.Context) (string, error) {
		var all []Gauge
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			all, err = ReadGauges(ctx, tx)
			return err
		})
		return EncodeGauges(all), err
	}}
}

// gaugeReader collects gauges from one snapshot.
type gaugeReader struct {
	ctx    context.Context
	tx     *store.Tx
	status *books.Status
	all    []Gauge
}

func (g *gaugeReader) add(name string, value float64, labels ...string) {
	g.all = append(g.all, Gauge{name, labels, value})
}

// age returns how long ago a time was, in seconds; 0 for none.
func (g *gaugeReader) age(t till.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return max(0, g.tx.Now().Sub(t).Seconds())
}

// ReadGauges reads the numbers about money. They are for alarms; Verify is for books.
func ReadGauges(ctx context.Context, tx *store.Tx) ([]Gauge, error) {
	status, err := books.StatusOf(ctx, tx)
	if err != nil {
		return nil, err
	}
	g := &gaugeReader{ctx: ctx, tx: tx, status: status}
	for _, read := range []func() error{
		func() error { return g.open(till.SubjectPayment) }, func() error { return g.open(till.SubjectPayout) },
		g.flows, g.steps, g.wallets, g.suspense, g.cases, g.lags, g.endpoints, g.statements, g.verifications,
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	g.strays()
	g.markets()
	g.holds()
	g.instances()
	g.backups()
	g.troubles()
	g.add("gauges_timestamp_seconds", unixSeconds(tx.Now()))
	return g.all, nil
}

func unixSeconds(t till.Time) float64 { return float64(t) / 1e6 }

func (g *gaugeReader) open(kind till.SubjectKind) error {
	sums, err := admin.OpenSums(g.ctx, g.tx, kind)
	type place struct{ noun, connection string }
	counts, minors, oldest := map[place]int64{}, map[[3]string]int64{}, map[place]float64{}
	waits := map[string]float64{} // of refunds, by mode
	for _, s := range sums {
		at, mode := place{string(kind), s.Connection}, string(till.ModeOf(s.Connection))
		if s.Refunds {
			at.noun = string(till.NounRefund)
			waits[mode] = max(waits[mode], g.age(s.OldestSent))
		}
		counts[at] += s.Count
		minors[[3]string{at.noun, mode, s.Currency}] += s.Minor
		oldest[at] = max(oldest[at], g.age(s.OldestSent))
	}
	for at, n := range counts {
		g.add("open", float64(n), at.noun, at.connection)
		g.add("oldest_unknown_seconds", oldest[at], at.noun, at.connection)
	}
	for k, n := range minors {
		g.add("open_minor", float64(n), k[:]...)
		if k[0] == string(till.NounRefund) {
			g.add("refunding_minor", float64(n), k[1:]...)
		}
	}
	for mode, seconds := range waits {
		g.add("refund_oldest_unknown_seconds", seconds, mode)
	}
	return err
}

// flows reads what came in and what went back, to the hour.
func (g *gaugeReader) flows() error {
	now := g.tx.Now()
	day, week := store.HourOf(now.Add(-24*time.Hour)), store.HourOf(now.Add(-7*24*time.Hour))
	for _, mode := range []till.Mode{till.Live, till.Test} {
		sums, err := g.tx.ScopeSums(g.ctx, store.Scope{Mode: mode}, []string{store.SumIn, store.SumRefunded}, week, store.HourOf(now))
		if err != nil {
			return err
		}
		in, back := map[string]int64{}, map[string]int64{}
		for _, s := range sums {
			switch currency := s.B; {
			case s.Noun == store.SumIn:
				in[currency] += s.Sum.Sum
			case s.Hour >= day:
				back[currency] += s.Sum.Sum
			}
		}
		for currency, n := range back {
			g.add("refunded_day_minor", float64(n), string(mode), currency)
			in[currency] += 0 // an alert compares both
		}
		for currency, n := range in {
			g.add("collected_week_minor", float64(n), string(mode), currency)
		}
	}
	return nil
}

func (g *gaugeReader) steps() error {
	lanes, err := admin.DueStepCounts(g.ctx, g.tx)
	for lane, n := range lanes {
		if connection, operation, ok := strings.Cut(lane, " "); ok {
			g.add("steps_due", float64(n), connection, operation)
		}
	}
	return err
}

func (g *gaugeReader) wallets() error {
	sums, err := admin.WalletSums(g.ctx, g.tx)
	for _, w := range sums {
		g.add("wallets_minor", float64(w.Balance), string(w.Mode), w.Currency)
		g.add("reserved_minor", float64(w.Reserved), string(w.Mode), w.Currency)
		g.add("owed_minor", float64(w.Owed), string(w.Mode), w.Currency)
	}
	return err
}

func (g *gaugeReader) suspense() error {
	sums, err := admin.SuspenseSums(g.ctx, g.tx)
	minors, oldest := map[[2]string]int64{}, map[[2]string]float64{}
	for _, s := range sums {
		k := [2]string{string(s.Mode), s.Currency}
		minors[k] += max(s.Minor, -s.Minor)
		oldest[k] = max(oldest[k], g.age(s.Since))
	}
	for k, n := range minors {
		g.add("suspense_minor", float64(n), k[:]...)
		g.add("suspense_oldest_seconds", oldest[k], k[:]...)
	}
	return err
}

func (g *gaugeReader) cases() error {
	for _, k := range slices.Concat(g.status.Live.Cases, g.status.Test.Cases) {
		g.add("cases_open", float64(k.Count), string(k.Mode), k.Kind)
		g.add("case_oldest_seconds", g.age(k.Oldest), string(k.Mode), k.Kind)
	}
	operators, err := g.tx.OperatorCases(g.ctx, false)
	counts, oldest := map[[2]string]float64{}, map[[2]string]float64{}
	for _, c := range operators {
		k := [2]string{string(till.ModeOf(c.Connection)), c.Kind}
		counts[k]++
		oldest[k] = max(oldest[k], g.age(c.OpenedAt))
	}
	for k, n := range counts {
		g.add("cases_open", n, k[:]...)
		g.add("case_oldest_seconds", oldest[k], k[:]...)
	}
	return err
}

func (g *gaugeReader) strays() {
	counts := map[[2]string]int64{}
	for _, s := range slices.Concat(g.status.Live.Strays, g.status.Test.Strays) {
		if s.Direction == "" {
			s.Direction = "unknown"
		}
		counts[[2]string{s.Connection, s.Direction}] += s.Count
		if s.Currency != "" {
			g.add("strays_minor", float64(s.Minor), s.Connection, s.Direction, s.Currency)
		}
	}
	for k, n := range counts {
		g.add("strays_open", float64(n), k[0], k[1])
	}
}

func (g *gaugeReader) lags() error {
	unsealed, err := admin.OldestUnsealed(g.ctx, g.tx)
	if err != nil {
		return err
	}
	g.add("seal_lag_seconds", g.age(unsealed))
	tally, err := admin.OldestTally(g.ctx, g.tx)
	if !tally.IsZero() {
		tally = tally.Add(rollUpAfter) // before that, nothing is late
	}
	g.add("fold_lag_seconds", g.age(tally))
	return err
}

func (g *gaugeReader) endpoints() error {
	states, err := admin.EndpointStates(g.ctx, g.tx)
	for _, e := range states {
		g.add("webhook_endpoints", float64(e.Count), string(e.Mode), e.State)
		if e.State != "disabled" {
			g.add("webhook_pending", float64(e.Pending), string(e.Mode), e.State)
			g.add("webhook_oldest_pending_seconds", g.age(e.OldestPending), string(e.Mode), e.State)
		}
	}
	return err
}

// markets reads how old is what operators say of our accounts; of one that never said anything,
// for how long nobody could read it.
func (g *gaugeReader) markets() {
	for _, m := range g.status.Markets {
		since := m.ReadAt
		if since.IsZero() {
			since = m.FailingSince
		}
		g.add("markets_age_seconds", g.age(since), m.Connection)
	}
}

func (g *gaugeReader) holds() {
	held := 0.0
	if g.status.AllHeld() {
		held = 1
	}
	g.add("payouts_held", held)
	since := 0.0
	if restores := g.status.Restores; len(restores) > 0 {
		since = unixSeconds(restores[0].At)
	}
	g.add("restored_timestamp_seconds", since)
}

func (g *gaugeReader) instances() {
	for version, n := range g.status.Versions() {
		g.add("instances", float64(n), version)
	}
}

// statements reads what the comparisons of operators' statements have left.
func (g *gaugeReader) statements() error {
	sums, err := admin.StatementSums(g.ctx, g.tx)
	counts := map[[2]string]int64{}
	for _, s := range sums {
		if s.Class == admin.StatementLines {
			g.add("statement_until_timestamp_seconds", unixSeconds(s.Until), s.Connection)
			continue
		}
		counts[[2]string{s.Connection, s.Class}] += s.Count
		if s.Currency != "" {
			g.add("statement_difference_minor", float64(s.Minor), s.Connection, s.Class, s.Currency)
		}
	}
	for k, n := range counts {
		g.add("statement_differences", float64(n), k[0], k[1])
	}
	return err
}

// verifications reads when the books were verified and what the last run found, of any
// instance or command. A database that was never verified says so.
func (g *gaugeReader) verifications() error {
	sound, broken, err := admin.LastVerified(g.ctx, g.tx)
	if err != nil {
		return err
	}
	g.add("verify_timestamp_seconds", unixSeconds(sound), "sound")
	g.add("verify_timestamp_seconds", unixSeconds(broken), "broken")
	problems := int64(0)
	if last := g.status.Verified; last != nil {
		problems = last.Problems
	}
	g.add("verify_problems", float64(problems))
	return nil
}

// backups reads when the last backup and the last drill ended. PostgreSQL is saved by its
// own tools; of them Till sees whether the server archives its log.
func (g *gaugeReader) backups() {
	if g.status.Shared {
		g.add("archive_timestamp_seconds", unixSeconds(g.status.Archived), "ok")
		g.add("archive_timestamp_seconds", unixSeconds(g.status.ArchiveFailed), "failed")
		return
	}
	for _, kind := range []admin.BackupKind{admin.KindBackup, admin.KindDrill} {
		r := g.status.Backups[kind]
		if r == nil {
			r = &admin.BackupResult{}
		}
		g.add(string(kind)+"_timestamp_seconds", unixSeconds(r.EndedAt), "ok")
		g.add(string(kind)+"_timestamp_seconds", unixSeconds(r.FailedAt), "failed")
		if kind == admin.KindBackup {
			g.add("backup_bytes", float64(r.Bytes))
			g.add("backup_seconds", float64(r.TookMS)/1000)
		}
	}
}

// troubles says of each trouble whether it is there.
func (g *gaugeReader) troubles() {
	there := map[books.TroubleName]float64{}
	for _, t := range g.status.Troubles() {
		there[t.Name] = 1
	}
	for _, name := range books.TroubleNames() {
		g.add("trouble", there[name], string(name))
	}
}

// EncodeGauges writes gauges as the result of a turn.
func EncodeGauges(all []Gauge) string {
	b := []byte{'['}
	for i, g := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = jsonx.AppendString(b, g.Name)
		b = append(b, `,"labels":[`...)
		for j, l := range g.Labels {
			if j > 0 {
				b = append(b, ',')
			}
			b = jsonx.AppendString(b, l)
		}
		b = append(b, `],"value":`...)
		b = append(strconv.AppendFloat(b, g.Value, 'f', -1, 64), '}')
	}
	return string(append(b, ']'))
}
