package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"till/internal/dev/loadgen"
)

const (
	submitsAtOnce = 3000 // payments of a round of submits
	dueRounds     = 2    // of questions: each takes as long as the adapter waits before it asks
	dueRate       = 50   // payments per second whose questions are measured
	duePayments   = 1000
	outageRate    = 100 // payments per second for the operator that is down
	operatorsWait = time.Minute
	operatorsLook = 100 * time.Millisecond
)

// operators is what calls to operators cost each other.
type operators struct {
	Submits     spread  `json:"submits_per_second"`
	Connections int     `json:"connections"`
	Micros      float64 `json:"cpu_us_per_submit"` // of Till's process, the create included
	Idle        waits   `json:"due_idle"`
	Down        waits   `json:"due_while_another_is_down"`
}

// waits are how late questions came that were due.
type waits struct {
	Asked int64  `json:"asked"`
	P50Ms spread `json:"p50_ms"`
	P99Ms spread `json:"p99_ms"`
	p50   []float64
	p99   []float64
}

// outage is two clients, each with an operator of its own.
type outage struct {
	r           *engineRun
	till        *process
	lost, well  *process // operators
	lostKey     string   // of the client whose operator will be down
	wellKey     string
	operators   operators
	submitRates []float64
	sent        int64
	cpu         time.Duration
}

// measureOperators measures how many submits one instance makes, and how late
// it asks one operator while another does not answer. The adapters are the
// shipped ones.
func measureOperators(ctx context.Context, r *engineRun) error {
	var running processes
	defer running.stop()
	o := &outage{r: r}
	var err error
	if o.lost, err = running.add(r.in.serveHelper(ctx, "serve-mtn")); err != nil {
		return err
	}
	if o.well, err = running.add(r.in.serveHelper(ctx, "serve-mtn")); err != nil {
		return err
	}
	bed, err := r.newTestbed(ctx, "operators")
	if err != nil {
		return err
	}
	config, err := o.configure(ctx, bed)
	if err != nil {
		return err
	}
	if o.till, err = running.add(bed.serve(ctx, "till", "--role", "all", "--config", config)); err != nil {
		return err
	}
	for range dueRounds {
		if err := o.due(ctx, "idle", &o.operators.Idle); err != nil {
			return fmt.Errorf("%w%s", err, o.till.tail())
		}
	}
	if err := inTurns(ctx, r.rounds, o.submits); err != nil {
		return fmt.Errorf("%w%s", err, o.till.tail())
	}
	if err := o.underOutage(ctx); err != nil {
		return fmt.Errorf("%w%s", err, o.till.tail())
	}
	f := &o.operators
	f.Submits, f.Micros = spreadOf(o.submitRates), micros(o.cpu)/float64(max(o.sent, 1))
	for _, w := range []*waits{&f.Idle, &f.Down} {
		w.P50Ms, w.P99Ms = spreadOf(w.p50), spreadOf(w.p99)
	}
	r.record(goalSubmits, o.submitRates)
	r.record(goalOutage, ratios(f.Down.p99, f.Idle.p99))
	r.report.Operators = f
	return nil
}

// configure makes the clients and a configuration that leads each to its
// operator.
func (o *outage) configure(ctx context.Context, s *testbed) (string, error) {
	text := &bytes.Buffer{}
	for name, secret := range map[string]string{"user": "c72025f5-5cd1-4630-99e4-8ba4722fad56", "key": "simulated-api-key", "sub": "simulated-collection-key"} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(secret), 0o600); err != nil {
			return "", err
		}
	}
	for _, c := range []struct {
		name     string
		operator *process
		key      *string
	}{{"lost", o.lost, &o.lostKey}, {"well", o.well, &o.wellKey}} {
		b, err := s.in.till(ctx, "client", "create", "--name", c.name, "--mode", "live", "--database", s.url, "--json")
		if err != nil {
			return "", err
		}
		var made struct {
			ClientID string `json:"client_id"`
			APIKey   string `json:"api_key"`
		}
		if err := json.Unmarshal(b, &made); err != nil {
			return "", err
		}
		if _, err := s.in.till(ctx, "client", "methods", made.ClientID, "--enable", "mtn_momo", "--database", s.url); err != nil {
			return "", err
		}
		*c.key = made.APIKey
		fmt.Fprintf(text, "[[connection]]\nname = %[1]q\noperator = \"mtnmomo\"\nbase_url = \"http://%[2]s\"\n[connection.mtnmomo]\n"+
			"target_environment = \"mtncongo\"\napi_user_file = \"user\"\napi_key_file = \"key\"\ncollection_subscription_key_file = \"sub\"\n"+
			"[[route]]\nmethod = \"mtn_momo\"\nkind = \"payment\"\nclients = [%[3]q]\nconnections = [%[1]q]\n", c.name, c.operator.addr, made.ClientID)
	}
	file := filepath.Join(s.dir, "till.toml")
	return file, os.WriteFile(file, text.Bytes(), 0o600)
}

// submits makes many payments at once and waits until the last was sent.
func (o *outage) submits(ctx context.Context, counts bool) error {
	if _, err := o.lost.mtnStats(ctx, "anew"); err != nil {
		return err
	}
	cpu := o.till.cpu()
	res, err := loadgen.Closed{Addr: o.till.addr, APIKey: o.lostKey, Connections: o.r.connections, Requests: submitsAtOnce}.Run(ctx)
	if err != nil {
		return err
	}
	s, err := o.lost.awaitMTN(ctx, func(s mtnStats) bool { return s.Submits >= res.Accepted })
	if err != nil || !counts {
		return err
	}
	rate := float64(s.Submits) / s.Last.Sub(s.First).Seconds()
	o.submitRates = append(o.submitRates, rate)
	o.sent, o.cpu = o.sent+s.Submits, o.cpu+o.till.cpu()-cpu
	o.operators.Connections = max(o.operators.Connections, s.Connections)
	o.r.logf("%-28s %8.0f/s over %d connections", "submits", rate, s.Connections)
	return nil
}

// underOutage measures questions while the other operator does not answer:
// what was sent to it is due to be asked about, and more comes.
func (o *outage) underOutage(ctx context.Context) error {
	if _, err := o.lost.mtnStats(ctx, "down"); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	more := make(chan error, 1)
	go func() {
		_, err := loadgen.Open{BaseURL: "http://" + o.till.addr + "/v1", APIKey: o.lostKey, Rate: outageRate, Duration: loadgen.MaxTime, Connections: 4}.Run(ctx)
		more <- err
	}()
	var err error
	for range dueRounds {
		if err = o.due(ctx, "another operator is down", &o.operators.Down); err != nil {
			break
		}
	}
	cancel()
	if stopped := <-more; err == nil {
		err = stopped
	}
	return err
}

// due makes payments at a steady pace and waits until each was asked about.
func (o *outage) due(ctx context.Context, name string, w *waits) error {
	if _, err := o.well.mtnStats(ctx, "anew"); err != nil {
		return err
	}
	res, err := loadgen.Open{BaseURL: "http://" + o.till.addr + "/v1", APIKey: o.wellKey, Rate: dueRate,
		Duration: duePayments * time.Second / dueRate, Connections: 4}.Run(ctx)
	if err != nil {
		return err
	}
	if res.Accepted < res.Due {
		return fmt.Errorf("of %d payments %d were accepted: %v", res.Due, res.Accepted, res.Failures)
	}
	s, err := o.well.awaitMTN(ctx, func(s mtnStats) bool { return s.Asked >= res.Accepted })
	if err != nil {
		return err
	}
	w.Asked += s.Asked
	w.p50, w.p99 = append(w.p50, ms(s.P50)), append(w.p99, ms(s.P99))
	o.r.logf("%-28s p50 %.1f ms, p99 %.1f ms after it was due", "question, "+name, ms(s.P50), ms(s.P99))
	return nil
}

// awaitMTN returns what was counted once it is enough.
func (p *process) awaitMTN(ctx context.Context, enough func(mtnStats) bool) (mtnStats, error) {
	for end := time.Now().Add(operatorsWait); ; {
		s, err := p.mtnStats(ctx, "")
		switch {
		case err != nil || enough(s):
			return s, err
		case time.Now().After(end):
			return s, fmt.Errorf("after %v the operator has %d submits, and was asked about %d", operatorsWait, s.Submits, s.Asked)
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(operatorsLook):
		}
	}
}

// print renders them.
func (o *operators) print(b *bytes.Buffer) {
	fmt.Fprintf(b, "### Calls to operators\n\n%.0f submits per second (%.0f–%.0f) to an operator that takes %v for each, over at most %d connections; %.0f µs of CPU in Till for each, the create and "+
		"whatever was asked meanwhile included.\n\n"+
		"| questions, after they were due | asked | p50 ms, median (range) | p99 ms, median (range) |\n|---|---|---|---|\n",
		o.Submits.Median, o.Submits.Min, o.Submits.Max, mtnAnswers, o.Connections, o.Micros)
	for _, w := range []struct {
		name string
		waits
	}{{"nothing else to do", o.Idle}, {"another operator is down", o.Down}} {
		fmt.Fprintf(b, "| %s | %d | %.1f (%.1f–%.1f) | %.1f (%.1f–%.1f) |\n", w.name, w.Asked, w.P50Ms.Median, w.P50Ms.Min, w.P50Ms.Max,
			w.P99Ms.Median, w.P99Ms.Min, w.P99Ms.Max)
	}
	fmt.Fprintln(b)
}
