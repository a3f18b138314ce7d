package main

import (
	"bytes"
	"fmt"
	"math"
)

// The names of the goals.
const (
	goalCreate     = "create"
	goalBatch      = "batch"
	goalSettle     = "settle"
	goalAlone      = "alone"
	goalLife       = "life"
	goalLists      = "lists"
	goalNaive      = "naive"
	goalBusyHour   = "busy_hour"
	goalScale      = "scale"
	goalInstances  = "instances"
	goalMemory     = "memory"
	goalLifeMemory = "life_memory"
	goalReady      = "ready"
	goalIdle       = "idle"
	goalHooks      = "webhooks"
	goalHookWait   = "webhook_wait"
	goalHookDead   = "webhook_dead"
	goalHookCreate = "webhook_create"
	goalSubmits    = "submits"
	goalOutage     = "outage"
	goalReconcile  = "reconcile"
	goalReconcileM = "reconcile_memory"
	goalKeysTried  = "keys_tried"
	goalKeysMany   = "keys_tried_many"
	goalFlood      = "flood"

	goalConsoleCreates = "console_creates"
	goalConsoleMemory  = "console_memory"
	goalConsoleStart   = "console_start"
	goalTraces         = "traces"
	goalRefundCreate   = "refund_create"
	goalRefundLists    = "refund_lists"
	goalRefundVerify   = "refund_verify"
	goalPageRead       = "page_read"
	goalPageReadLate   = "page_read_late"
	goalPagePost       = "page_post"
	goalPagePostLate   = "page_post_late"
	goalPagesWait      = "pages_wait"
	goalPagesCreate    = "pages_create"
	goalCitusLife      = "citus_life"
	goalCitusCreate    = "citus_create"
	goalCitusMany      = "citus_create_many"
)

// goal is one row of the table "Speed and memory".
type goal struct {
	name     string
	what     string               // {rows} stands for the number of rows, {dead} for that of a dead endpoint's events, {lines} for a statement's lines
	more     bool                 // more is better
	sqlite   [2]float64           // what must be reached, and the aim
	postgres [2]float64           // zero: not measured on this engine
	show     func(float64) string // how a value is written
}

func mustAim(must, aim float64) [2]float64 { return [2]float64{must, aim} }

// goals are those that the project has set itself, in the order of the table.
var goals = []goal{
	{goalCreate, "durable create at 64 connections, `--role api` / handler that stores nothing", true, mustAim(0.33, 0.50), mustAim(0.33, 0.50), ratioText},
	{goalBatch, "durable create / the same code with batches of one", true, mustAim(2.5, 3), mustAim(2.5, 3), ratioText},
	{goalSettle, "settlement of one hot client, batched / one by one", true, mustAim(4, 6), mustAim(10, 15), ratioText},
	{goalAlone, "one create at a time: p50 / (one flush + one request that stores nothing)", false, mustAim(5, 2.5), mustAim(5, 2.5), ratioText},
	{goalLife, "full life (create, submit, check, success, credit, event) per second / create only", true, mustAim(0.20, 0.35), mustAim(0.20, 0.35), ratioText},
	{goalLists, "list page of {rows} payments, any filter, any offset: slowest p99 / first page's p50", false, mustAim(5, 2), mustAim(5, 2), ratioText},
	{goalNaive, "page at offset {half} / naive `count(*)` + `OFFSET`", false, mustAim(0.01, 0.001), mustAim(0.01, 0.001), fractionText},
	{goalBusyHour, "list page deep inside one busy hour, any filter, any offset: slowest p50 / first page's p50", false, mustAim(5, 3), mustAim(5, 3), ratioText},
	{goalScale, "create at {rows} rows / at 10 thousand rows, cost per operation", false, mustAim(1.5, 1.2), mustAim(1.5, 1.2), ratioText},
	{goalInstances, "two instances' creates per second / one instance's, same cores", true, [2]float64{}, mustAim(0.9, 1), ratioText},
	{goalMemory, "memory of one instance under full load of creates", false, mustAim(200, 120), mustAim(200, 120), memoryText},
	{goalLifeMemory, "memory of one instance under full load of whole lives", false, mustAim(200, 120), mustAim(200, 120), memoryText},
	{goalReady, "start on {rows} payments, to the first good answer", false, mustAim(1000, 1000), mustAim(1000, 1000), timeText},
	{goalIdle, "memory of one idle instance on {rows} payments", false, mustAim(40, 40), mustAim(40, 40), memoryText},
	{goalSubmits, "submits of one instance to an operator that takes 50 ms, at most 64 connections", true, mustAim(500, 800), mustAim(500, 800), rateText},
	{goalOutage, "p99 of a due question while another operator is down / idle", false, mustAim(2, 1.2), mustAim(2, 1.2), ratioText},
	{goalHooks, "webhooks per second to an endpoint that answers at once / a bare `net/http` loop, the same signed bytes, 16 at once", true, mustAim(0.35, 0.60), mustAim(0.35, 0.60), ratioText},
	{goalHookWait, "from event to first byte at the endpoint, idle system: p99", false, mustAim(50, 50), mustAim(50, 50), timeText},
	{goalHookDead, "webhooks per second beside a dead endpoint with {dead} events / without it", true, mustAim(0.9, 1), mustAim(0.9, 1), ratioText},
	{goalHookCreate, "durable create of a client with 3 endpoints / with none", true, mustAim(0.9, 1), mustAim(0.9, 1), ratioText},
	{goalKeysTried, "p95 of a client's requests beside 2 500 connections with invented keys / idle", false, mustAim(2, 1.2), mustAim(2, 1.2), ratioText},
	{goalKeysMany, "the same, the connections from 250 addresses / idle", false, mustAim(2, 1.2), mustAim(2, 1.2), ratioText},
	{goalFlood, "p95 of a client's requests beside another client that creates, lists and reads without pause over 64 connections / idle", false, mustAim(2, 1.2), mustAim(2, 1.2), ratioText},
	{goalConsoleCreates, "durable create beside 50 open consoles of the same merchant / beside none", true, mustAim(0.97, 1), mustAim(0.97, 1), ratioText},
	{goalConsoleMemory, "idle memory with the console, after its first page, more than without", false, mustAim(8, 4), mustAim(8, 4), memoryText},
	{goalConsoleStart, "start with the console, longer than without", false, mustAim(20, 10), mustAim(20, 10), timeText},
	{goalTraces, "durable create with traces of 1 % sent to a collector / without traces", true, mustAim(0.99, 1), mustAim(0.99, 1), ratioText},
	{goalRefundCreate, "create of a refund / create of a payout, the same number at once, cost per operation", false, mustAim(1.2, 1.1), mustAim(1.2, 1.1), ratioText},
	{goalRefundLists, "list page of payments with what went back of each / of payments of which nothing can, {rows} payments: p50", false, mustAim(1.1, 1.05), mustAim(1.1, 1.05), ratioText},
	{goalRefundVerify, "verify of a million refunds, CPU beyond that of a million payouts", false, mustAim(5000, 2500), mustAim(5000, 2500), timeText},
	{goalPageRead, "page to pay of an order, read, {rows} payments and a tenth as many checkouts: p50", false, mustAim(3, 2), mustAim(3, 2), shortTimeText},
	{goalPageReadLate, "the same: p99", false, mustAim(20, 10), mustAim(20, 10), shortTimeText},
	{goalPagePost, "its form, posted, to the answer that leads to the ask: p50", false, mustAim(15, 8), mustAim(15, 8), shortTimeText},
	{goalPagePostLate, "the same: p99", false, mustAim(60, 30), mustAim(60, 30), shortTimeText},
	{goalPagesWait, "processors taken by pages that wait, 250 read a second, as of 1 000 customers", false, mustAim(0.1, 0.05), mustAim(0.1, 0.05), ratioText},
	{goalPagesCreate, "durable create beside these / beside none", true, mustAim(0.97, 1), mustAim(0.97, 1), ratioText},
	{goalCitusLife, "full life on Citus, 8 shards / on one PostgreSQL", true, [2]float64{}, mustAim(0.35, 0.5), ratioText},
	{goalCitusCreate, "durable create on Citus, one client / on one PostgreSQL", true, [2]float64{}, mustAim(0.5, 0.7), ratioText},
	{goalCitusMany, "durable create on Citus, 16 clients / on one PostgreSQL", true, [2]float64{}, mustAim(0.35, 0.5), ratioText},
	{goalReconcile, "an operator's statement of {lines} lines compared with payments and ledger", false, mustAim(60_000, 30_000), mustAim(60_000, 30_000), timeText},
	{goalReconcileM, "memory of that comparison", false, mustAim(300, 200), mustAim(300, 200), memoryText},
}

func ratioText(v float64) string  { return fmt.Sprintf("%.3g", v) }
func rateText(v float64) string   { return fmt.Sprintf("%.0f/s", v) }
func memoryText(v float64) string { return fmt.Sprintf("%.0f MB", v) }
func timeText(v float64) string   { return fmt.Sprintf("%.0f ms", v) }

func shortTimeText(v float64) string { return fmt.Sprintf("%.1f ms", v) }

// fractionText writes a small ratio as one part of many.
func fractionText(v float64) string {
	if v <= 0 || v >= 0.5 {
		return ratioText(v)
	}
	return fmt.Sprintf("1/%.0f", math.Round(1/v))
}

// limits returns what must be reached on an engine, and the aim.
func (g *goal) limits(engine string) (must, aim float64) {
	l := g.sqlite
	if engine == enginePostgres {
		l = g.postgres
	}
	return l[0], l[1]
}

// verdict says how far a value came.
func (g *goal) verdict(engine string, v float64) string {
	must, aim := g.limits(engine)
	switch {
	case g.more && v >= aim, !g.more && v <= aim:
		return "aim reached"
	case g.more && v >= must, !g.more && v <= must:
		return "reached"
	}
	return "**missed**"
}

// measure is the result for a goal on one engine.
type measure struct {
	Goal   string `json:"goal"`
	Rounds int    `json:"rounds"`
	Found  spread `json:"found"`

	// Set when the report is made.
	What    string  `json:"what"`
	Must    float64 `json:"must"`
	Aim     float64 `json:"aim"`
	Verdict string  `json:"verdict"`
}

// fillGoals copies the goals' texts and limits into the measures.
func (r *report) fillGoals() {
	for _, e := range r.Engines {
		for i := range e.Measures {
			m := &e.Measures[i]
			for j := range goals {
				if g := &goals[j]; g.name == m.Goal {
					m.What, m.Verdict = r.text(g), g.verdict(e.Engine, m.Found.Median)
					m.Must, m.Aim = g.limits(e.Engine)
				}
			}
		}
	}
}

// goalTable renders the table for all engines.
func (r *report) goalTable(b *bytes.Buffer) {
	fmt.Fprintf(b, "| What | Engine | Must reach | Aim | Found: median (range) | Rounds | |\n|---|---|---|---|---|---|---|\n")
	for i := range goals {
		g := &goals[i]
		for _, e := range r.Engines {
			for _, m := range e.Measures {
				if m.Goal != g.name {
					continue
				}
				must, aim := g.limits(e.Engine)
				found := "**" + g.show(m.Found.Median) + "**"
				if m.Rounds > 1 {
					found += " (" + g.show(m.Found.Min) + " – " + g.show(m.Found.Max) + ")"
				}
				fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %d | %s |\n", r.text(g), engineNames[e.Engine],
					g.show(must), g.show(aim), found, m.Rounds, g.verdict(e.Engine, m.Found.Median))
			}
		}
	}
	fmt.Fprintln(b)
}
