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

	"till/internal/dev/loadgen"
)

// report is all that a run found. It names no machine, path or user.
type report struct {
	Date        string  `json:"date"`
	Command     string  `json:"command"`
	Machine     machine `json:"machine"`
	Connections int     `json:"connections"`
	Rounds      int     `json:"rounds"`
	Seconds     float64 `json:"seconds_per_round"`
	Rows        int64   `json:"rows"`
	BodyBytes   int     `json:"body_bytes"`
	Minutes     float64 `json:"minutes"`

	Engines []*engineReport `json:"engines"`
}

// engineReport is what was found on one engine.
type engineReport struct {
	Engine     string        `json:"engine"`
	Measures   []measure     `json:"measures"`
	Creates    []figures     `json:"creates,omitempty"`
	Alone      *singleCreate `json:"alone,omitempty"`
	Settlement *settlement   `json:"settlement,omitempty"`
	Life       *lifecycle    `json:"life,omitempty"`
	Deployment *deployment   `json:"deployment,omitempty"`
	Metrics    *metricsCost  `json:"metrics,omitempty"`
	Seeding    *seeding      `json:"seeding,omitempty"`
	Operators  *operators    `json:"operators,omitempty"`
	Webhooks   *webhooks     `json:"webhooks,omitempty"`
	Floods     *floods       `json:"floods,omitempty"`
	Lists      *lists        `json:"lists,omitempty"`
	BusyHour   *busyHour     `json:"busy_hour,omitempty"`
	Scale      []figures     `json:"scale,omitempty"`
	Readiness  *readiness    `json:"readiness,omitempty"`

	Console *consoleFigures `json:"console,omitempty"`
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

func newReport(o options) *report {
	return &report{
		Date: time.Now().UTC().Format(time.DateOnly), Command: o.command,
		Connections: o.connections, Rounds: o.rounds, Seconds: o.seconds, Rows: o.rows, BodyBytes: len(loadgen.Body),
		Machine: machine{
			Cores: runtime.NumCPU(), CPU: procLine("/proc/cpuinfo", "model name"), Go: runtime.Version(),
			System: runtime.GOOS + "/" + runtime.GOARCH, MemoryGB: (totalMemory() + 1<<29) >> 30, Load: loadAverage(),
		},
	}
}

// text returns what a goal measures in this run.
func (r *report) text(g *goal) string {
	return strings.NewReplacer("{rows}", count(r.Rows), "{half}", count(r.Rows/2), "{dead}", count(int64(deadEvents(r.Rows))),
		"{lines}", count(min(r.Rows, reconcileLines))).Replace(g.what)
}

// count writes a large number so that it can be read.
func count(n int64) string {
	for _, u := range []struct {
		unit int64
		name string
	}{{1_000_000, " million"}, {1_000, " thousand"}} {
		if n >= u.unit {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/float64(u.unit)), ".0") + u.name
		}
	}
	return fmt.Sprint(n)
}

// tables renders the figures as Markdown, which also reads well on a terminal.
func (r *report) tables() string {
	b := &bytes.Buffer{}
	fmt.Fprintf(b, "## Speed and memory\n\n")
	r.goalTable(b)
	for _, e := range r.Engines {
		fmt.Fprintf(b, "## %s\n\n", engineNames[e.Engine])
		e.print(b)
	}
	return b.String()
}

func (e *engineReport) print(b *bytes.Buffer) {
	if len(e.Creates) > 0 {
		fmt.Fprintf(b, "### Creates under full load\n\n")
		printFigures(b, e.Creates)
	}
	if a := e.Alone; a != nil {
		fmt.Fprintf(b, "### One create at a time\n\nA flush of 4 KiB takes %.3f ms (%.3f–%.3f) in the median.\n\n",
			a.FlushMs.Median, a.FlushMs.Min, a.FlushMs.Max)
		printFigures(b, a.Sides)
	}
	if s := e.Settlement; s != nil {
		fmt.Fprintf(b, "### Settlement of one hot client\n\n| | answers per second, median (range) |\n|---|---|\n"+
			"| %d in a commit | %.0f (%.0f–%.0f) |\n| one in a commit, %d at once | %.0f (%.0f–%.0f) |\n\n",
			s.Batch, s.BatchedPerSec.Median, s.BatchedPerSec.Min, s.BatchedPerSec.Max,
			s.Writers, s.SinglePerSec.Median, s.SinglePerSec.Min, s.SinglePerSec.Max)
	}
	if e.Life != nil {
		e.Life.print(b)
	}
	if e.Metrics != nil {
		e.Metrics.print(b)
	}
	if e.Deployment != nil {
		e.Deployment.print(b)
	}
	if e.Operators != nil {
		e.Operators.print(b)
	}
	if e.Webhooks != nil {
		e.Webhooks.print(b)
	}
	if e.Floods != nil {
		e.Floods.print(b)
	}
	if s := e.Seeding; s != nil {
		fmt.Fprintf(b, "### The large database\n\nSeeded by SQL: %d payments in %.0f s (%.0f/s), of which %.0f s of CPU; %s, %d bytes each.\n\n",
			s.Rows, s.Seconds, float64(s.Rows)/max(s.Seconds, 0.001), s.CPU, megabytes(s.Bytes), s.Bytes/max(s.Rows, 1))
	}
	if len(e.Scale) > 0 {
		fmt.Fprintf(b, "### Creates in a small and in the large database\n\n")
		printFigures(b, e.Scale)
	}
	if e.Readiness != nil {
		e.Readiness.print(b)
	}
	if e.Lists != nil {
		e.Lists.print(b)
	}
	if e.BusyHour != nil {
		e.BusyHour.print(b)
	}
	if e.Console != nil {
		e.Console.print(b)
	}
}

// printFigures renders sides that were compared.
func printFigures(b *bytes.Buffer, sides []figures) {
	fmt.Fprintf(b, "| side | requests/s, median (range) | p50 ms | p99 ms | max ms | CPU µs/request: server | database | generator | peak memory |\n")
	fmt.Fprintf(b, "|---|---|---|---|---|---|---|---|---|\n")
	for _, f := range sides {
		fmt.Fprintf(b, "| %s | %.0f (%.0f–%.0f) | %.2f | %.2f | %.1f | %.1f | %.1f | %.1f | %s |\n", f.Name,
			f.RatePerSec.Median, f.RatePerSec.Min, f.RatePerSec.Max, f.P50Ms, f.P99Ms, f.MaxMs,
			f.CPUMicros, f.DatabaseMicros, f.GeneratorMicros, megabytes(f.PeakMemoryBytes))
	}
	fmt.Fprintln(b)
}

// print renders whole lives and what each leaves behind.
func (l *lifecycle) print(b *bytes.Buffer) {
	fmt.Fprintf(b, "### Whole lives\n\n%d payments, %.0f per second (%.0f–%.0f) from the first request to the last success; "+
		"creates alone %.0f per second. The load took %.0f %% of the time, the rest was waiting for the last to succeed. "+
		"Peak memory %s.\n\n", l.Payments, l.PerSec.Median, l.PerSec.Min, l.PerSec.Max, l.Creates.RatePerSec.Median,
		100*l.LoadShare.Median, megabytes(l.PeakMemoryBytes))
	fmt.Fprintf(b, "For arithmetic, per payment: CPU %.0f µs in Till, %.0f µs in the database server, %.0f µs in the operator's process; "+
		"%.0f bytes in the database", l.Micros.Till, l.Micros.Database, l.Micros.Operator, l.DatabaseBytes)
	if l.LogBytes > 0 {
		fmt.Fprintf(b, ", %.0f bytes of write-ahead log", l.LogBytes)
	}
	if l.WrittenBytes > 4096 { // below, it is Till's own log file
		fmt.Fprintf(b, ", %.0f bytes written to the disk by Till's process", l.WrittenBytes)
	}
	made, sum := int64(1), int64(0)
	for _, t := range l.Tables {
		sum += t.Bytes
		if t.Table == "payments" {
			made = max(t.Rows, 1)
		}
	}
	fmt.Fprintf(b, ".\n\n| table | rows | rows per payment | bytes per payment, with indexes |\n|---|---|---|---|\n")
	for _, t := range l.Tables {
		if t.Bytes >= sum/100 { // the others are a few rows each
			fmt.Fprintf(b, "| %s | %d | %.2f | %.0f |\n", t.Table, t.Rows, float64(t.Rows)/float64(made), float64(t.Bytes)/float64(made))
		}
	}
	fmt.Fprintln(b)
}

// print renders the table of pages.
func (l *lists) print(b *bytes.Buffer) {
	fmt.Fprintf(b, "### Pages of a long list\n\nPages of %d out of %d payments of one client over %d days. First page's p50 %.2f ms; slowest p99 %.2f ms (%s).\n\n",
		listLimit, l.Rows, seedDays, l.FirstP50Ms, l.SlowestMs, l.Slowest)
	fmt.Fprintf(b, "| filter | page | offset | total | p50 ms | p99 ms | naive ms | naive / p50 |\n|---|---|---|---|---|---|---|---|\n")
	for _, p := range l.Pages {
		naive, times := "", ""
		if p.NaiveMs > 0 {
			naive, times = fmt.Sprintf("%.1f", p.NaiveMs), fmt.Sprintf("%.0f", p.NaiveMs/max(p.P50Ms, 1e-9))
		}
		fmt.Fprintf(b, "| %s | %s | %d | %d | %.2f | %.2f | %s | %s |\n", p.Filter, p.Where, p.Offset, p.Total, p.P50Ms, p.P99Ms, naive, times)
	}
	fmt.Fprintln(b)
}

func megabytes(n int64) string {
	if n == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// write puts the report into a folder: its text, its figures and its plots,
// all under one name.
func (r *report) write(dir, name string) error {
	r.fillGoals()
	files := map[string][]byte{}
	for plot, svg := range r.plots() {
		files[name+"-"+plot+".svg"] = svg
	}
	j, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	files[name+".md"], files[name+".json"] = r.markdown(name), append(j, '\n')
	for file, b := range files {
		if err := os.WriteFile(filepath.Join(dir, file), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
