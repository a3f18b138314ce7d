package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"till/cmd/till/internal/cli"
	"till/internal/escape"
	"till/server"
)

// topFlags are the flags of 'till top'.
type topFlags struct {
	admin        string
	adminToken   string // the file of its token
	every        time.Duration
	once, asJSON bool
}

func newTop() *cobra.Command {
	var o topFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch operators and requests of a running server",
		Long: `Show once a second what a running server does: a line for requests, one for
money, and one for each connection. It reads /metrics and /status of the admin address
of one instance. Use it while something is wrong; dashboards show the past.

The line of money is read from the database each time. If the database does not answer,
the numbers of the last minute stand there, with their age.

Rates are of the time between two reads. p50 and p95 are how long the operator took
to answer, in the histogram's steps. DELAY is how late 99 % of the steps began.`,
		Example: `  till top --admin-listen 127.0.0.1:8081
  till top --once --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.every < 100*time.Millisecond || o.every > time.Hour {
				return errors.New("--every must be between 100ms and 1h")
			}
			if o.admin == "" {
				return errors.New("the server has no admin address (--admin-listen is empty)")
			}
			return o.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.admin, "admin-listen", "127.0.0.1:8081", "the server's admin address")
	f.StringVar(&o.adminToken, "admin-token-file", "", adminTokenUsage)
	f.DurationVar(&o.every, "every", time.Second, "time between two reads")
	f.BoolVar(&o.once, "once", false, "read twice, print once and end")
	cli.AddJSON(cmd, &o.asJSON)
	return cmd
}

func (o *topFlags) run(ctx context.Context, w io.Writer) error {
	before, err := scrapeMetrics(ctx, o.admin, o.adminToken)
	if err != nil {
		return err
	}
	for {
		select {
		case <-time.After(o.every):
		case <-ctx.Done():
			return nil
		}
		after, err := scrapeMetrics(ctx, o.admin, o.adminToken)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		v := newTopView(before, after)
		if v.Ready == 0 {
			v.Why = whyNotReady(ctx, o.admin, o.adminToken)
		}
		if err := v.readBooks(ctx, o.admin, o.adminToken); err != nil {
			v.AgeBecause = err.Error()
		}
		if err := o.print(w, v); err != nil || o.once {
			return err
		}
		before = after
	}
}

func (o *topFlags) print(w io.Writer, v *topView) error {
	if o.asJSON {
		return cli.PrintJSON(w, v)
	}
	if !o.once {
		clearScreen(w)
	}
	cli.Printf(w, "Requests %s/s, 5xx %s/s, creates p95 %s, in flight %.0f, queue %.0f\n", tenth(v.Requests), tenth(v.Errors), seconds(v.CreateP95), v.InFlight, v.Queue)
	if v.Ready == 0 {
		cli.Printf(w, "NOT READY: %s\n", v.Why)
	}
	age := "now"
	switch {
	case v.AgeBecause == "":
	case v.Age == nil:
		age = "nobody has read them yet: " + v.AgeBecause
	default:
		age = fmt.Sprintf("%s old: %s", seconds(max(*v.Age, 0.001)), v.AgeBecause)
	}
	cli.Printf(w, "From the books (%s): open %.0f, oldest unknown %s, cases %.0f, strays %.0f, payouts held %.0f; trouble: %s\n\n",
		age, v.Open, seconds(v.OldestUnknown), v.Cases, v.Strays, v.Held, cmp.Or(strings.Join(v.Troubles, ", "), "none"))
	err := cli.Table(w, func(row func(cells ...any)) {
		row("CONNECTION", "STATE", "CALLS/S", "NO ANSWER/S", "P50", "P95", "IN FLIGHT", "SHORT/S", "CALLBACKS/S", "DELAY", "OLDEST DUE")
		for _, c := range v.Connections {
			row(c.Name, c.State, tenth(c.Calls), tenth(c.NoAnswer), seconds(c.P50), seconds(c.P95), fmt.Sprintf("%.0f", c.InFlight), tenth(c.Short), tenth(c.Callbacks), seconds(c.Delay), seconds(c.OldestDue))
		}
	})
	if err == nil {
		_, err = cli.PrintLine(w, "")
	}
	return err
}

// clearScreen begins a terminal anew. Elsewhere one view follows the other.
func clearScreen(w io.Writer) {
	if e, ok := w.(*escape.Writer); ok {
		w = e.Raw()
	}
	if cli.IsTerminal(w) {
		cli.Printf(w, "\x1b[H\x1b[2J")
	}
}

func tenth(n float64) string { return fmt.Sprintf("%.1f", n) }

func seconds(s float64) string {
	if s <= 0 {
		return "-"
	}
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
}

// topView is what is shown. Rates are a second's, times are seconds.
type topView struct {
	Requests      float64         `json:"requests_per_second"`
	Errors        float64         `json:"errors_per_second"`
	CreateP95     float64         `json:"create_p95_seconds"`
	InFlight      float64         `json:"in_flight"`
	Queue         float64         `json:"queue"`
	Open          float64         `json:"open"`
	OldestUnknown float64         `json:"oldest_unknown_seconds"`
	Cases         float64         `json:"cases_open"`
	Strays        float64         `json:"strays_open"`
	Held          float64         `json:"payouts_held"`
	Ready         float64         `json:"ready"`
	Why           string          `json:"why_not_ready"`
	Age           *float64        `json:"books_age_seconds"` // of the values from open to payouts_held; null: nobody has read it
	AgeBecause    string          `json:"books_age_because"` // why they were not read now; empty: they were
	Troubles      []string        `json:"troubles"`          // of the same age, as 'till status' names them
	Connections   []topConnection `json:"connections"`
}

type topConnection struct {
	Name      string  `json:"name"`
	State     string  `json:"state"` // the worse one of payments and payouts
	Calls     float64 `json:"calls_per_second"`
	NoAnswer  float64 `json:"no_answer_per_second"`
	P50       float64 `json:"p50_seconds"`
	P95       float64 `json:"p95_seconds"`
	InFlight  float64 `json:"in_flight"`
	Short     float64 `json:"short_per_second"`
	Callbacks float64 `json:"callbacks_per_second"`
	Delay     float64 `json:"delay_p99_seconds"`
	OldestDue float64 `json:"oldest_due_seconds"`
}

var breakerStates = []string{"passing", "probing", "stopped"}

// newTopView compares two reads.
func newTopView(before, after *scraped) *topView {
	d := &difference{before, after, after.at.Sub(before.at).Seconds()}
	v := &topView{
		Requests: d.rate("till_http_requests_total", nil), Errors: d.rate("till_http_requests_total", matches("code", "500", "503")),
		CreateP95: d.quantile(0.95, "till_http_request_duration_seconds", matches("route", "POST /payments")),
		InFlight:  after.sum("till_http_in_flight", nil), Queue: after.sum("till_batch_queue", nil),
		Open: after.sum("till_open", nil), OldestUnknown: after.most("till_oldest_unknown_seconds", nil), Cases: after.sum("till_cases_open", nil),
		Strays: after.sum("till_strays_open", nil), Held: after.sum("till_payouts_held", nil), Ready: after.sum("till_ready", nil),
	}
	if read := after.most("till_gauges_timestamp_seconds", nil); read > 0 {
		age := max(0, float64(after.at.UnixMicro())/1e6-read)
		v.Age = &age
	}
	v.Troubles = []string{}
	for _, s := range after.all["till_trouble"] {
		if s.value > 0 {
			v.Troubles = append(v.Troubles, s.label("name"))
		}
	}
	for _, name := range after.values("till_operator_in_flight", "connection") {
		of := matches("connection", name)
		calls := func(s *series) bool { return of(s) && s.label("outcome") != "lease_over" }
		v.Connections = append(v.Connections, topConnection{
			Name: name, State: breakerStates[min(2, max(0, int(after.most("till_operator_state", of))))],
			Calls: d.rate("till_operator_calls_total", calls), NoAnswer: d.rate("till_operator_calls_total", func(s *series) bool { return of(s) && s.label("outcome") == "error" }),
			P50: d.quantile(0.5, "till_operator_call_seconds", of), P95: d.quantile(0.95, "till_operator_call_seconds", of),
			InFlight: after.sum("till_operator_in_flight", of), Short: d.rate("till_operator_short_total", of), Callbacks: d.rate("till_callbacks_total", of),
			Delay: d.quantile(0.99, "till_step_delay_seconds", of), OldestDue: after.most("till_step_oldest_due_seconds", of),
		})
	}
	return v
}

// readBooks replaces what the metrics say of the books by what the database says now.
func (v *topView) readBooks(ctx context.Context, admin, tokenFile string) error {
	body, err := readAdmin(ctx, admin, tokenFile, "/status", maxScrape)
	if err != nil {
		return err
	}
	var s server.StatusJSON
	if err := json.Unmarshal(body, &s); err != nil || s.At == "" {
		return fmt.Errorf("/status of %s is no status", admin)
	}
	at, err := time.Parse(time.RFC3339Nano, s.At)
	if err != nil {
		return fmt.Errorf("/status of %s is no status", admin)
	}
	v.Open, v.OldestUnknown, v.Cases, v.Strays, v.Held, v.Age, v.Troubles = 0, 0, 0, 0, 0, new(float64), s.Troubles
	for _, p := range []*server.PartJSON{&s.PartJSON, &s.Test} {
		for _, o := range p.Open {
			v.Open += float64(o.All)
		}
		for _, c := range p.Cases {
			v.Cases += float64(c.Count)
		}
		v.Strays += float64(p.Strays)
		if p.Unknown == nil {
			continue
		}
		if since, err := time.Parse(time.RFC3339Nano, *p.Unknown); err == nil {
			v.OldestUnknown = max(v.OldestUnknown, at.Sub(since).Seconds())
		}
	}
	if s.Held {
		v.Held = 1
	}
	return nil
}

// matches returns a condition: a label is one of some values.
func matches(label string, values ...string) func(*series) bool {
	return func(s *series) bool { return slices.Contains(values, s.label(label)) }
}

// topTimeout is how long a read may take, maxScrape how long it may be.
const (
	topTimeout = 10 * time.Second
	maxScrape  = 8 << 20
)

// scrapeMetrics reads /metrics of an admin address.
func scrapeMetrics(ctx context.Context, admin, tokenFile string) (*scraped, error) {
	body, err := readAdmin(ctx, admin, tokenFile, "/metrics", maxScrape)
	if err != nil {
		return nil, err
	}
	return parseMetrics(strings.NewReader(string(body)), time.Now())
}

// whyNotReady returns what a server says of itself when it takes no payments.
func whyNotReady(ctx context.Context, admin, tokenFile string) string {
	text, err := readAdmin(ctx, admin, tokenFile, "/readyz", 1<<10)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}

// adminTokenUsage is about a server on another machine.
const adminTokenUsage = "the file of the token that the server's admin address asks other machines for (default none)"

// readAdmin reads a page of a server's admin address, with the token of a file if one is
// named.
func readAdmin(ctx context.Context, admin, tokenFile, path string, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, topTimeout)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+reachableFrom(admin)+path, nil)
	if err != nil {
		return nil, fmt.Errorf("--admin-listen %q is no address", admin)
	}
	if tokenFile != "" {
		token, err := server.ReadAdminToken(tokenFile)
		if err != nil {
			return nil, err
		}
		q.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Timeout: topTimeout}
	resp, err := client.Do(q)
	if err != nil {
		return nil, fmt.Errorf("the server does not answer on %s: %w", admin, errors.Unwrap(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s of %s: %w", path, admin, err)
	case resp.StatusCode == http.StatusUnauthorized:
		return nil, fmt.Errorf("%s of %s needs the server's token: give it with --admin-token-file", path, admin)
	case path == "/readyz": // its text says why not
		return body, nil
	case resp.StatusCode == http.StatusServiceUnavailable:
		return nil, errors.New(strings.TrimSpace(string(body[:min(len(body), 200)])))
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s of %s answers %d", path, admin, resp.StatusCode)
	case int64(len(body)) > most:
		return nil, fmt.Errorf("%s of %s is longer than %d bytes", path, admin, most)
	}
	return body, nil
}
