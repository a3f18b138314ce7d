package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"till"
	"till/internal/load"
	"till/store"
)

// How long and how often one page is asked for.
const (
	listWarmUp = 5
	listLeast  = 20
	listMost   = 200
	listTime   = 2 * time.Second
	listLimit  = 20
	listDays   = 90
)

// lists is what asking for pages of many payments found.
type lists struct {
	Rows        int64       `json:"rows"`
	SeedSeconds float64     `json:"seed_seconds"`
	FirstP50Ms  float64     `json:"first_page_p50_ms"`
	SlowestMs   float64     `json:"slowest_p99_ms"`
	MedianRatio float64     `json:"slowest_p50_to_first_p50"`
	Ratio       float64     `json:"slowest_p99_to_first_p50"`
	Pages       []*listPage `json:"pages"`
}

// listPage is one filter at one offset.
type listPage struct {
	Filter  string  `json:"filter"`
	Where   string  `json:"position"`
	Offset  int64   `json:"offset"`
	Total   int64   `json:"total"`
	P50Ms   float64 `json:"p50_ms"`
	P99Ms   float64 `json:"p99_ms"`
	NaiveMs float64 `json:"naive_ms"`
}

// listFilter is a row of the table, for the API and for the store.
type listFilter struct {
	name   string
	filter store.PaymentFilter
}

// listFilters are the combinations that are asked for. The dates cut months,
// days and hours at both ends.
func listFilters(from, to till.Time) []listFilter {
	lo, hi := from.Add(9*24*time.Hour+7*time.Hour+13*time.Minute+5*time.Second), to.Add(-6*24*time.Hour-5*time.Hour-41*time.Minute-7*time.Second)
	return []listFilter{
		{"none", store.PaymentFilter{}},
		{"status=success (80 %)", store.PaymentFilter{Status: till.Success}},
		{"success, airtel_money (24 %)", store.PaymentFilter{Status: till.Success, Method: "airtel_money"}},
		{"status=pending (0.4 %)", store.PaymentFilter{Status: till.Pending}},
		{"method=mpesa (10 %)", store.PaymentFilter{Method: "mpesa"}},
		{"ragged dates", store.PaymentFilter{From: lo, To: hi}},
		{"expired, mpesa, ragged dates (0.7 %)", store.PaymentFilter{Status: till.Expired, Method: "mpesa", From: lo, To: hi}},
		{"pending, mpesa (0.04 %)", store.PaymentFilter{Status: till.Pending, Method: "mpesa"}},
		{"pending, mpesa, ragged dates (0.04 %)", store.PaymentFilter{Status: till.Pending, Method: "mpesa", From: lo, To: hi}},
	}
}

// query renders the filter for the API.
func (f listFilter) query() string {
	q := url.Values{"limit": {strconv.Itoa(listLimit)}}
	for name, value := range map[string]string{"status": string(f.filter.Status), "method": f.filter.Method} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if !f.filter.From.IsZero() {
		q.Set("from_date", f.filter.From.String())
		q.Set("to_date", f.filter.To.String())
	}
	return q.Encode()
}

// measureLists seeds one client and asks for pages through the API, then for
// the same pages naively.
func measureLists(ctx context.Context, o options, in *installation, progress io.Writer) (*lists, error) {
	s, err := store.Open(ctx, store.Config{Path: in.db.url, Readers: 1})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	client, err := in.clientID(ctx, s)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	from, to, err := seed(ctx, s, client, int64(o.rows), progress)
	if err != nil {
		return nil, err
	}
	l := &lists{Rows: int64(o.rows), SeedSeconds: time.Since(began).Seconds()}
	till, err := in.serve(ctx, "api")
	if err != nil {
		return nil, err
	}
	defer till.stop()
	for _, f := range listFilters(from, to) {
		pages, err := measureFilter(ctx, till, s, client, f, progress)
		if err != nil {
			return nil, err
		}
		l.Pages = append(l.Pages, pages...)
	}
	l.FirstP50Ms = l.Pages[0].P50Ms
	for _, p := range l.Pages {
		l.SlowestMs = max(l.SlowestMs, p.P99Ms)
		l.MedianRatio = max(l.MedianRatio, p.P50Ms/l.FirstP50Ms)
	}
	l.Ratio = l.SlowestMs / l.FirstP50Ms
	return l, nil
}

// seed fills the client with payments of the last days and returns between
// which times they were made.
func seed(ctx context.Context, s *store.Store, client till.ID, rows int64, progress io.Writer) (from, to till.Time, err error) {
	to = s.Now().Add(-time.Hour)
	from = to.Add(-listDays * 24 * time.Hour)
	began := time.Now()
	return from, to, s.Seed(ctx, store.Seed{Client: client, Rows: rows, From: from, To: to, Progress: func(n int64) {
		if n%500_000 == 0 || n == rows {
			fmt.Fprintf(progress, "seeded %d payments (%.0f s)\n", n, time.Since(began).Seconds())
		}
	}})
}

// seedFirst fills the database before creates are measured.
func (in *installation) seedFirst(ctx context.Context, rows int64, progress io.Writer) error {
	s, err := store.Open(ctx, store.Config{Path: in.db.url, Readers: 1})
	if err != nil {
		return err
	}
	defer s.Close()
	client, err := in.clientID(ctx, s)
	if err != nil {
		return err
	}
	_, _, err = seed(ctx, s, client, rows, progress)
	return err
}

// clientID returns the one client of the installation.
func (in *installation) clientID(ctx context.Context, s *store.Store) (id till.ID, err error) {
	err = s.View(ctx, func(tx *store.Tx) error {
		clients, err := tx.Clients(ctx, till.ID{}, 2)
		if err == nil && len(clients) != 1 {
			err = fmt.Errorf("the database has other clients")
		}
		if err == nil {
			id = clients[0].ID
		}
		return err
	})
	return id, err
}

// measureFilter asks for the first, a middle and the last page of a filter.
func measureFilter(ctx context.Context, p *process, s *store.Store, client till.ID, f listFilter, progress io.Writer) ([]*listPage, error) {
	total, err := p.page(ctx, f.query(), 0)
	if err != nil {
		return nil, err
	}
	var out []*listPage
	for _, at := range []struct {
		where  string
		offset int64
	}{{"first", 0}, {"middle", total / 2}, {"last", max(total-listLimit, 0)}} {
		l := &listPage{Filter: f.name, Where: at.where, Offset: at.offset, Total: total}
		if err := l.measure(ctx, p, f); err != nil {
			return nil, err
		}
		if err := l.measureNaively(ctx, s, client, f); err != nil {
			return nil, err
		}
		fmt.Fprintf(progress, "%s, %s: p50 %.2f ms, p99 %.2f ms, naively %.0f ms\n", f.name, at.where, l.P50Ms, l.P99Ms, l.NaiveMs)
		out = append(out, l)
	}
	return out, nil
}

// measure asks for the page again and again over one connection.
func (l *listPage) measure(ctx context.Context, p *process, f listFilter) error {
	var h load.Histogram
	query := f.query()
	began := time.Now()
	for n := 0; n < listMost && (n < listLeast || time.Since(began) < listTime); n++ {
		start := time.Now()
		total, err := p.page(ctx, query, l.Offset)
		if err != nil {
			return err
		}
		if total != l.Total {
			return fmt.Errorf("%s: the total was %d and is %d now", l.Filter, l.Total, total)
		}
		if n >= listWarmUp {
			h.Record(time.Since(start))
		}
	}
	l.P50Ms, l.P99Ms = ms(h.Quantile(0.50)), ms(h.Quantile(0.99))
	return nil
}

// measureNaively asks the database for the same by count(*) and OFFSET, twice,
// and checks that it is the same. The faster time counts.
func (l *listPage) measureNaively(ctx context.Context, s *store.Store, client till.ID, f listFilter) error {
	page := store.Page{Limit: listLimit, Offset: int(l.Offset)}
	return s.View(ctx, func(tx *store.Tx) error {
		var times []float64
		for range 2 {
			began := time.Now()
			_, total, err := tx.ListNaively(ctx, client, f.filter, page)
			if err != nil {
				return err
			}
			if total != l.Total {
				return fmt.Errorf("%s: the list says %d, counting says %d", l.Filter, l.Total, total)
			}
			times = append(times, ms(time.Since(began)))
		}
		l.NaiveMs = slices.Min(times)
		return nil
	})
}

// page asks the API for one page, reads it whole and returns its total.
func (p *process) page(ctx context.Context, query string, offset int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, load.AnswerTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.addr+"/v1/payments?"+query+"&offset="+strconv.FormatInt(offset, 10), nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-Api-Key", p.apiKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("answer %s: %.300s", resp.Status, b)
	}
	// Only the total is read: decoding the whole page would be measured too.
	i := bytes.LastIndex(b, []byte(`"total":`))
	if i < 0 {
		return 0, fmt.Errorf("the list has no total")
	}
	var total json.Number
	d := json.NewDecoder(bytes.NewReader(b[i+len(`"total":`):]))
	if err := d.Decode(&total); err != nil {
		return 0, err
	}
	return total.Int64()
}

// print renders the table of pages.
func (l *lists) print(b *bytes.Buffer) {
	fmt.Fprintf(b, "Pages of %d out of %d payments of one client over %d days (seeded in %.0f s):\n\n", listLimit, l.Rows, listDays, l.SeedSeconds)
	fmt.Fprintf(b, "| filter | page | offset | total | p50 ms | p99 ms | naive ms | naive / p50 |\n|---|---|---|---|---|---|---|---|\n")
	for _, p := range l.Pages {
		fmt.Fprintf(b, "| %s | %s | %d | %d | %.2f | %.2f | %.1f | %.0f |\n", p.Filter, p.Where, p.Offset, p.Total, p.P50Ms, p.P99Ms, p.NaiveMs, p.NaiveMs/p.P50Ms)
	}
	fmt.Fprintf(b, "\n- First page's p50 %.2f ms, slowest p99 %.2f ms, ratio **%.1f** (goal: at most %d; %s)\n",
		l.FirstP50Ms, l.SlowestMs, l.Ratio, goalListRatio, verdict(l.Ratio <= goalListRatio))
	fmt.Fprintf(b, "- Slowest p50 / first page's p50: **%.1f** (other work on the machine shows in the p99, hardly here)\n\n", l.MedianRatio)
}
