package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"till/internal/dev/loadgen"
)

// What disturbs, and what the client asks for that is disturbed.
const (
	floodConnections = 2500 // with invented keys
	floodAddresses   = 250  // that they come from, where they come from many
	floodClient      = 64   // connections of the other client
	victimRate       = 40   // requests a second of the client that is measured
	floodTimes       = 2    // as long as other rounds: a flood begins with its largest wave
)

// floods is what one client notices while others flood the server.
type floods struct {
	Sides []*floodSide `json:"sides"`
}

// floodSide is one kind of flood, or none.
type floodSide struct {
	Name     string           `json:"name"`
	P50Ms    float64          `json:"p50_ms"`
	P95Ms    spread           `json:"p95_ms"` // of the rounds
	MaxMs    float64          `json:"max_ms"`
	Requests int64            `json:"requests"`
	Failed   int64            `json:"failed"`  // of them, answered with an error
	Flood    map[string]int64 `json:"answers"` // of the flood, by status
	Server   float64          `json:"server_cpu_percent"`
	Database float64          `json:"database_cpu_percent"`

	args []string // of the attack; nil: none
	p95s []float64
	took loadgen.Histogram
	cpu  time.Duration
	db   time.Duration
	time time.Duration
}

// measureFloods measures how long one client's requests take while nobody else
// asks, while somebody tries out keys over many connections, from one address
// and from many, and while another client sends all it can. The server is as it
// is shipped, rate limit included.
func measureFloods(ctx context.Context, r *engineRun) error {
	bed, err := r.newTestbed(ctx, "flood")
	if err != nil {
		return err
	}
	_, other, err := bed.newClient(ctx, "other")
	if err != nil {
		return err
	}
	var running processes
	defer running.stop()
	server, err := running.add(bed.serve(ctx, "till", "--rate-limit", "100"))
	if err != nil {
		return err
	}
	f := &floods{Sides: []*floodSide{
		{Name: "idle"},
		{Name: fmt.Sprintf("%d connections with invented keys", floodConnections),
			args: []string{"-connections", strconv.Itoa(floodConnections)}},
		{Name: fmt.Sprintf("the same from %d addresses", floodAddresses),
			args: []string{"-connections", strconv.Itoa(floodConnections), "-addresses", strconv.Itoa(floodAddresses)}},
		{Name: fmt.Sprintf("another client's flood over %d connections", floodClient),
			args: []string{"-connections", strconv.Itoa(floodClient), "-key", other}},
	}}
	var rounds []func(context.Context, bool) error
	for _, s := range f.Sides {
		s.Flood = make(map[string]int64)
		rounds = append(rounds, func(ctx context.Context, counts bool) error { return s.round(ctx, r, server, counts) })
	}
	if err := inTurns(ctx, r.rounds, rounds...); err != nil {
		return fmt.Errorf("%w%s", err, server.tail())
	}
	for _, s := range f.Sides {
		s.summarise()
	}
	r.record(goalKeysTried, ratios(f.Sides[1].p95s, f.Sides[0].p95s))
	r.record(goalKeysMany, ratios(f.Sides[2].p95s, f.Sides[0].p95s))
	r.record(goalFlood, ratios(f.Sides[3].p95s, f.Sides[0].p95s))
	r.report.Floods = f
	return nil
}

// round measures the client once, under the flood of this side.
func (s *floodSide) round(ctx context.Context, r *engineRun, server *process, counts bool) error {
	var a *attack
	if s.args != nil {
		var err error
		if a, err = startAttack(ctx, r.in, append([]string{"-addr", server.addr}, s.args...)...); err != nil {
			return err
		}
	}
	began, cpu, db := time.Now(), server.cpu(), r.db.cpu()
	took, failed, err := victim(ctx, server, floodTimes*r.length())
	cpu, db = server.cpu()-cpu, r.db.cpu()-db
	elapsed := time.Since(began)
	if a != nil {
		answers, stopped := a.stop()
		if err == nil {
			err = stopped
		}
		for status, n := range answers {
			if counts {
				s.Flood[status] += n
			}
		}
	}
	if err != nil || !counts {
		return err
	}
	s.p95s = append(s.p95s, ms(took.Quantile(0.95)))
	s.took.Merge(took)
	s.Requests, s.Failed = s.Requests+took.N, s.Failed+failed
	s.cpu, s.db, s.time = s.cpu+cpu, s.db+db, s.time+elapsed
	r.logf("%-48s p50 %.2f ms, p95 %.2f ms, max %.1f ms, %d failed", s.Name, ms(took.Quantile(0.5)), ms(took.Quantile(0.95)), ms(took.Max), failed)
	return nil
}

// victim asks as a shop does, at a steady pace: it creates a payment, lists
// payments, and reads payouts, for which its key is read from the database. How
// long an answer took counts from when its request was due.
func victim(ctx context.Context, server *process, length time.Duration) (*loadgen.Histogram, int64, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: loadgen.AnswerTime}
	defer client.CloseIdleConnections()
	took, failed := &loadgen.Histogram{}, int64(0)
	began := time.Now()
	for i := range int(length.Seconds() * victimRate) {
		due := began.Add(time.Duration(i) * time.Second / victimRate)
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			return took, failed, ctx.Err()
		}
		req, err := victimRequest(ctx, server, i)
		if err != nil {
			return took, failed, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return took, failed, err
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode >= 300 {
			failed++
		}
		took.Record(time.Since(due))
	}
	return took, failed, nil
}

func victimRequest(ctx context.Context, server *process, i int) (req *http.Request, err error) {
	base := "http://" + server.addr + "/v1"
	switch i % 3 {
	case 0:
		body := strings.Replace(loadgen.Body, loadgen.KeyPlaceholder, loadgen.NewKey(), 1)
		if req, err = http.NewRequestWithContext(ctx, http.MethodPost, base+"/payments", strings.NewReader(body)); err == nil {
			req.Header.Set("Content-Type", "application/json")
		}
	case 1:
		req, err = http.NewRequestWithContext(ctx, http.MethodGet, base+"/payments?limit=20", nil)
	default:
		req, err = http.NewRequestWithContext(ctx, http.MethodGet, base+"/payouts?limit=20", nil)
	}
	if err == nil {
		req.Header.Set("X-Api-Key", server.apiKey)
	}
	return req, err
}

func (s *floodSide) summarise() {
	s.P50Ms, s.P95Ms, s.MaxMs = ms(s.took.Quantile(0.5)), spreadOf(s.p95s), ms(s.took.Max)
	if s.time > 0 {
		s.Server, s.Database = 100*s.cpu.Seconds()/s.time.Seconds(), 100*s.db.Seconds()/s.time.Seconds()
	}
}

// print renders what the client noticed.
func (f *floods) print(b *bytes.Buffer) {
	fmt.Fprintf(b, "### A client while others flood\n\n| | requests | failed | p50 ms | p95 ms, median (range) | max ms | CPU of a core: server | database | answers to the flood |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range f.Sides {
		var answers []string
		for status, n := range s.Flood {
			answers = append(answers, fmt.Sprintf("%s: %d", status, n))
		}
		slices.Sort(answers)
		fmt.Fprintf(b, "| %s | %d | %d | %.2f | %.2f (%.2f–%.2f) | %.1f | %.0f %% | %.0f %% | %s |\n", s.Name, s.Requests, s.Failed,
			s.P50Ms, s.P95Ms.Median, s.P95Ms.Min, s.P95Ms.Max, s.MaxMs, s.Server, s.Database, strings.Join(answers, ", "))
	}
	fmt.Fprintln(b)
}
