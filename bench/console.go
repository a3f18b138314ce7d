package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"till/internal/dev/loadgen"
)

// How the console is measured.
const (
	consoleTabs   = 50 // open while payments are created
	tabsPerPerson = 4  // as many as listen of one person
	consoleAsks   = 69 // for one page, in a block: the longest is about the p99
	consoleStarts = 5  // with the console and without
)

// consoleFigures is what the console costs and how fast its pages are.
type consoleFigures struct {
	Rows      int64          `json:"rows"`
	Pages     []*consolePage `json:"pages"`
	Creates   []figures      `json:"creates"`
	Hints     int64          `json:"hints"`
	Fetches   int64          `json:"regions_fetched"`
	Unchanged int64          `json:"regions_unchanged"`
	MemoryMB  spread         `json:"idle_memory_more_mb"`
	StartMs   spread         `json:"start_longer_ms"`
}

// consolePage is a page that is asked for, with the times that it may take.
type consolePage struct {
	Name             string  `json:"name"`
	P50Ms            float64 `json:"p50_ms"`
	P99Ms            float64 `json:"p99_ms"`
	MustP50, MustP99 float64 `json:"-"`
	Bytes            int64   `json:"bytes_gzipped"`

	path, region string
	tag          string
	p50s, p99s   []float64
}

// measureConsole asks for pages of a merchant with many payments, creates
// payments beside open tabs and beside none, and starts the program with the
// console and without.
func measureConsole(ctx context.Context, r *engineRun) error {
	bed, err := r.newTestbed(ctx, "console")
	if err != nil {
		return err
	}
	if r.report.Seeding, err = bed.seedBooks(ctx, r.rows, r.logf); err != nil {
		return err
	}
	c := &consoleFigures{Rows: r.rows}
	r.report.Console = c
	if err := c.measureStarts(ctx, r, bed); err != nil {
		return err
	}
	var running processes
	defer running.stop()
	server, err := running.add(bed.serveConsole(ctx, "on"))
	if err != nil {
		return err
	}
	people, err := bed.newVisitors(ctx, server, (consoleTabs+tabsPerPerson-1)/tabsPerPerson)
	if err != nil {
		return err
	}
	if err := c.measurePages(ctx, r, people[0]); err != nil {
		return err
	}
	return c.measureBesideTabs(ctx, r, server, people)
}

// measureStarts compares starts and idle memory, in turns. A program with the
// console has shown its first page.
func (c *consoleFigures) measureStarts(ctx context.Context, r *engineRun, bed *testbed) error {
	var memory, times []float64
	for range consoleStarts {
		var idle, ready [2]float64
		for i, mode := range []string{"off", "on"} {
			p, err := bed.serveConsole(ctx, mode)
			if err != nil {
				return err
			}
			if mode == "on" {
				_, err = (&visitor{origin: localhost(p)}).get(ctx, &consolePage{path: "/console/enter"})
			}
			if err == nil {
				err = p.settle(ctx)
			}
			p.stop()
			if err != nil {
				return err
			}
			idle[i], ready[i] = float64(p.idle)/1e6, ms(p.readyIn)
		}
		memory, times = append(memory, idle[1]-idle[0]), append(times, ready[1]-ready[0])
		r.logf("console: %+.1f MB idle, %+.0f ms to start", idle[1]-idle[0], ready[1]-ready[0])
	}
	c.MemoryMB, c.StartMs = spreadOf(memory), spreadOf(times)
	r.record(goalConsoleMemory, memory)
	r.record(goalConsoleStart, times)
	return nil
}

// measurePages asks for pages over one connection, in blocks that take turns.
func (c *consoleFigures) measurePages(ctx context.Context, r *engineRun, v *visitor) error {
	c.Pages = []*consolePage{
		{Name: "list of payments", path: v.at("/payments"), MustP50: 8, MustP99: 40},
		{Name: "list of all time, paid", path: v.at("/payments?range=all&state=success"), MustP50: 8, MustP99: 40},
		{Name: "a payment", path: v.at("/payments/" + v.payment), MustP50: 10, MustP99: 40},
		{Name: "home, today", path: v.at("/home"), MustP50: 20, MustP99: 80},
		{Name: "home, 30 days", path: v.at("/home?range=30d"), MustP50: 20, MustP99: 80},
		{Name: "search for a reference", path: v.at("/search?q=SEED-1042"), MustP50: 15, MustP99: 80},
		{Name: "search for an id", path: v.at("/search?q=" + v.payment), MustP50: 15, MustP99: 80},
	}
	region, err := v.regionOf(ctx, v.at("/payments?range=all&state=success"), "list")
	if err != nil {
		return err
	}
	region.Name, region.MustP50, region.MustP99 = "region of a list, unchanged", 5, 20
	c.Pages = append(c.Pages, region)
	return inTurns(ctx, r.rounds, func(ctx context.Context, counts bool) error {
		for _, p := range c.Pages {
			if err := p.block(ctx, v, counts); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
		}
		return nil
	})
}

// block asks for a page several times.
func (p *consolePage) block(ctx context.Context, v *visitor, counts bool) error {
	var took loadgen.Histogram
	unchanged := 0
	for range consoleAsks {
		began := time.Now()
		a, err := v.get(ctx, p)
		if err != nil {
			return err
		}
		if p.Bytes = max(p.Bytes, a.bytes); p.region != "" {
			p.tag = a.tag
			if a.status != http.StatusNotModified {
				continue // the first, or the page's clock has gone on
			}
			unchanged++
		}
		took.Record(time.Since(began))
	}
	if p.region != "" && unchanged == 0 {
		return errors.New("a region is never unchanged")
	}
	if counts {
		p.p50s, p.p99s = append(p.p50s, ms(took.Quantile(0.50))), append(p.p99s, ms(took.Quantile(0.99)))
		p.P50Ms, p.P99Ms = spreadOf(p.p50s).Median, spreadOf(p.p99s).Median
	}
	return nil
}

// measureBesideTabs creates payments of the merchant whose pages are open.
func (c *consoleFigures) measureBesideTabs(ctx context.Context, r *engineRun, server *process, people []*visitor) error {
	none := &contender{name: "no console open", servers: []*process{server}, db: r.db, say: r.logf, connections: r.connections, length: r.length()}
	open := &contender{name: fmt.Sprintf("%d consoles open", consoleTabs), servers: none.servers, db: r.db, say: r.logf, connections: r.connections, length: r.length()}
	err := inTurns(ctx, r.rounds, none.round, func(ctx context.Context, counts bool) error {
		all, err := openTabs(ctx, people, consoleTabs)
		if err == nil {
			err = open.round(ctx, counts)
		}
		if closed := all.close(); err == nil {
			err = closed
		}
		if counts {
			c.Hints, c.Fetches, c.Unchanged = c.Hints+all.hints.Load(), c.Fetches+all.fetches.Load(), c.Unchanged+all.unchanged.Load()
		}
		return err
	})
	if err != nil {
		return err
	}
	r.record(goalConsoleCreates, ratios(open.rates, none.rates))
	c.Creates = []figures{none.figures(), open.figures()}
	return server.checkTotal(ctx, r.rows+none.sent+open.sent)
}

// print renders the tables.
func (c *consoleFigures) print(b *bytes.Buffer) {
	fmt.Fprintf(b, "### The console\n\nPages of a merchant with %d payments, over one connection, gzipped.\n\n| page | p50 ms | p99 ms | at most | bytes | |\n|---|---|---|---|---|---|\n", c.Rows)
	for _, p := range c.Pages {
		verdict := "reached"
		if p.P50Ms > p.MustP50 || p.P99Ms > p.MustP99 {
			verdict = "**missed**"
		}
		fmt.Fprintf(b, "| %s | %.1f | %.1f | %.0f / %.0f | %d | %s |\n", p.Name, p.P50Ms, p.P99Ms, p.MustP50, p.MustP99, p.Bytes, verdict)
	}
	fmt.Fprintf(b, "\nBeside open tabs: %d hints, %d regions fetched, %d of them unchanged.\n\n", c.Hints, c.Fetches, c.Unchanged)
	printFigures(b, c.Creates)
}
