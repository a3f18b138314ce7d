package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"till/internal/load"
)

// The goals, as the project states them.
const (
	goalRatio      = 0.30
	goalReadyMs    = 1000
	goalIdleMemory = 40_000_000
	goalListRatio  = 5
)

// report is all that a run found. It names no machine, path or user.
type report struct {
	Date        string  `json:"date"`
	Command     string  `json:"command"`
	Machine     machine `json:"machine"`
	Role        string  `json:"role"`
	Connections int     `json:"connections"`
	Rounds      int     `json:"rounds"`
	Seconds     float64 `json:"seconds_per_round"`
	BodyBytes   int     `json:"body_bytes"`

	Engines []*engineReport `json:"engines"`
}

// engineReport is what was found on one engine.
type engineReport struct {
	Engine     string      `json:"engine"`
	Comparison *comparison `json:"comparison,omitempty"`
	Readiness  *readiness  `json:"readiness,omitempty"`
	Lists      *lists      `json:"lists,omitempty"`
}

type machine struct {
	Cores    int    `json:"cores"`
	CPU      string `json:"cpu"`
	System   string `json:"system"`
	Go       string `json:"go"`
	MemoryGB int64  `json:"memory_gb,omitempty"`

	// Load is the load average before the run: what else the machine was busy
	// with. Anything near the number of cores spoils the figures.
	Load float64 `json:"load_before"`
}

// comparison is what the rounds found.
type comparison struct {
	Base           figures `json:"base"`
	Till           figures `json:"till"`
	Ratio          float64 `json:"ratio"`
	PaymentsBefore int64   `json:"payments_before"`
	Payments       int64   `json:"payments_after"`
	Settled        int64   `json:"payments_succeeded"`
	DatabaseBytes  int64   `json:"database_bytes"`
}

// figures are those of one server.
type figures struct {
	Requests   int64   `json:"requests"`
	RatePerSec spread  `json:"requests_per_second"`
	P50Ms      float64 `json:"p50_ms"`
	P99Ms      float64 `json:"p99_ms"`
	MaxMs      float64 `json:"max_ms"`

	// Quantiles are the latencies of plotQuantiles, for the plot.
	Quantiles []float64 `json:"quantiles_ms"`

	CPUMicros       float64 `json:"server_cpu_us_per_request"`
	DatabaseMicros  float64 `json:"database_cpu_us_per_request,omitempty"`
	GeneratorMicros float64 `json:"generator_cpu_us_per_request"`
	IdleMemoryBytes int64   `json:"idle_memory_bytes"`
	PeakMemoryBytes int64   `json:"peak_memory_bytes"`
	ReadyMs         float64 `json:"ready_ms"`
}

// readiness is how Till starts on a large database.
type readiness struct {
	Payments        int64  `json:"payments"`
	DatabaseBytes   int64  `json:"database_bytes"`
	ReadyMs         spread `json:"ready_ms"`
	IdleMemoryBytes spread `json:"idle_memory_bytes"`
}

func newReport(o options) *report {
	return &report{
		Date: time.Now().UTC().Format(time.DateOnly), Command: o.command, Role: o.role,
		Connections: o.connections, Rounds: o.rounds, Seconds: o.seconds, BodyBytes: len(load.Body),
		Machine: machine{
			Cores: runtime.NumCPU(), CPU: procLine("/proc/cpuinfo", "model name"), Go: runtime.Version(),
			System: runtime.GOOS + "/" + runtime.GOARCH, MemoryGB: (totalMemory() + 1<<29) >> 30, Load: loadAverage(),
		},
	}
}

// procLine returns what follows a name and a colon in a file of /proc.
func procLine(file, name string) string {
	b, _ := os.ReadFile(file)
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func totalMemory() int64 {
	var kb int64
	fmt.Sscanf(procLine("/proc/meminfo", "MemTotal"), "%d kB", &kb)
	return kb << 10
}

func loadAverage() (load float64) {
	b, _ := os.ReadFile("/proc/loadavg")
	fmt.Sscan(string(b), &load)
	return load
}

// tables renders the figures as Markdown, which also reads well on a terminal.
func (r *report) tables() string {
	b := &bytes.Buffer{}
	for _, e := range r.Engines {
		fmt.Fprintf(b, "## %s\n\n", engineNames[e.Engine])
		if e.Comparison != nil {
			r.compareTable(b, e.Comparison)
		}
		if e.Readiness != nil {
			e.Readiness.print(b)
		}
		if e.Lists != nil {
			e.Lists.print(b)
		}
	}
	return b.String()
}

var engineNames = map[string]string{engineSQLite: "SQLite", enginePostgres: "PostgreSQL"}

// compareTable renders durable creates beside the handler that stores nothing.
func (r *report) compareTable(b *bytes.Buffer, c *comparison) {
	fmt.Fprintf(b, "| server | requests/s, median (min–max) | p50 ms | p99 ms | max ms | server CPU µs/request | database CPU µs/request | generator CPU µs/request | idle memory | peak memory |\n")
	fmt.Fprintf(b, "|---|---|---|---|---|---|---|---|---|---|\n")
	rows := []struct {
		name string
		f    *figures
	}{
		{"base: net/http, nothing stored", &c.Base},
		{"till: durable, --role " + r.Role, &c.Till},
	}
	for _, row := range rows {
		f := row.f
		fmt.Fprintf(b, "| %s | %.0f (%.0f–%.0f) | %.2f | %.2f | %.1f | %.1f | %.1f | %.1f | %s | %s |\n", row.name,
			f.RatePerSec.Median, f.RatePerSec.Min, f.RatePerSec.Max, f.P50Ms, f.P99Ms, f.MaxMs,
			f.CPUMicros, f.DatabaseMicros, f.GeneratorMicros, megabytes(f.IdleMemoryBytes), megabytes(f.PeakMemoryBytes))
	}
	if r.Role == "api" {
		fmt.Fprintf(b, "\n- Ratio of the medians: **%.3f** (goal: at least %.2f; %s)\n", c.Ratio, goalRatio, verdict(c.Ratio >= goalRatio))
	} else {
		fmt.Fprintf(b, "\n- Ratio of the medians: %.3f; no goal, because the work behind takes its share in the rounds of both servers\n", c.Ratio)
		fmt.Fprintf(b, "- Payments that had succeeded when the last round ended: %d\n", c.Settled)
	}
	fmt.Fprintf(b, "- Idle memory after the start: %s (goal: below %s; %s)\n", megabytes(c.Till.IdleMemoryBytes),
		megabytes(goalIdleMemory), verdict(c.Till.IdleMemoryBytes < goalIdleMemory))
	fmt.Fprintf(b, "- Every answer was 202, and the list counts exactly as many new payments: %d before, %d after the run, the warm-up included\n",
		c.PaymentsBefore, c.Payments)
	fmt.Fprintf(b, "- Database after a clean stop: %s, %d bytes per payment\n", megabytes(c.DatabaseBytes), c.DatabaseBytes/max(c.Payments, 1))
}

func (d *readiness) print(b *bytes.Buffer) {
	fmt.Fprintf(b, "\nStarts on a database of %d payments (%s), median of %d (min–max):\n\n", d.Payments, megabytes(d.DatabaseBytes), readyStarts)
	fmt.Fprintf(b, "- Ready, from the start of the process to the first good answer: **%.0f ms** (%.0f–%.0f; goal: below %d; %s)\n",
		d.ReadyMs.Median, d.ReadyMs.Min, d.ReadyMs.Max, goalReadyMs, verdict(d.ReadyMs.Median < goalReadyMs))
	m := d.IdleMemoryBytes
	fmt.Fprintf(b, "- Idle memory: **%s** (%s–%s; goal: below %s; %s)\n", megabytes(int64(m.Median)), megabytes(int64(m.Min)),
		megabytes(int64(m.Max)), megabytes(goalIdleMemory), verdict(m.Median < goalIdleMemory))
}

func verdict(reached bool) string {
	if reached {
		return "reached"
	}
	return "**missed**"
}

func megabytes(n int64) string {
	if n == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

const remarks = `## What is compared

Both servers get the same requests from the same generator, in turns, within one run: %d connections, each asking again
as soon as it is answered, a body of %d bytes, a new random idempotency key each time. "base" is net/http with
encoding/json: it decodes the body into a struct and encodes a payment object of the same fields, and neither checks nor
stores anything. "till" is the program as it is shipped (CGO_ENABLED=0), on SQLite with synchronous=FULL or on a PostgreSQL
server of its own with fsync and synchronous_commit on: it authenticates the key, validates the whole body, and answers 202 only after the commit that holds the payment, its event, its first step
and its counters is on the disk.

The latencies are those of all counted rounds together, each under full load: with the server and the generator on the
same cores they mostly tell how long a request waits for a core. Rates of different runs, and of different machines, do not
compare; the ratio does, to about a tenth. A virtual disk may acknowledge a flush from its host's memory, which no
program can tell; on a real disk each commit takes longer, and more requests share one.
`

const listRemarks = `## What is compared

One client's payments are seeded by SQL with their exact counters, and pages of them are asked for through the API over one
connection, one after the other: authentication, the exact total and the page. "naive" is count(*) and OFFSET for the same
filter on the same data, asked of the database alone; its total must be the same.
`

// write puts the report into a folder: report.md and report.json, or
// report-all.* for the run with the sandbox working behind, report-lists.*
// for lists.
func (r *report) write(dir string) error {
	name, remarks := "report", fmt.Sprintf(remarks, r.Connections, r.BodyBytes)
	switch {
	case len(r.Engines) > 0 && r.Engines[0].Lists != nil:
		name, remarks = "report-lists", listRemarks
	case r.Role != "api":
		name += "-" + r.Role
	}
	b := &bytes.Buffer{}
	m := r.Machine
	fmt.Fprintf(b, "# Benchmark of %s\n\n", r.Date)
	fmt.Fprintf(b, "- Machine: %d cores, %s, %d GiB, %s, %s\n", m.Cores, m.CPU, m.MemoryGB, m.System, m.Go)
	fmt.Fprintf(b, "- Load average before the run, from other work on the machine: %.2f\n", m.Load)
	fmt.Fprintf(b, "- Command: `%s`\n", r.Command)
	if name != "report-lists" {
		fmt.Fprintf(b, "- Rounds: one to warm up, then %d of %v s for each server, in turns\n", r.Rounds, r.Seconds)
	}
	fmt.Fprintf(b, "\n%s\n%s", r.tables(), remarks)
	if err := os.WriteFile(filepath.Join(dir, name+".md"), b.Bytes(), 0o644); err != nil {
		return err
	}
	j, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".json"), append(j, '\n'), 0o644); err != nil {
		return err
	}
	return r.writePlots(dir)
}
