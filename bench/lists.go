package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"till"
	"till/bench/seed"
	"till/internal/dev/loadgen"
	"till/store"
)

// How pages are asked for. The times of a page are the medians of its blocks',
// and a block is short: a machine that stalls now and then, as one does whose
// host scans its memory, spoils few of them. The median of the longest
// of 69 answers is their p99.
const (
	listAsks     = 69 // for one page, in a block
	listBlocks   = 3  // of each page, in a round
	listWarmers  = 8  // ask at once before the first round
	listWarmings = 8  // times each of them asks for each page
	listLimit    = 20 // payments on a page
)

// listPlaces are where in a list pages are asked for, as shares of its length.
var listPlaces = []struct {
	name  string
	share int64 // of 4
}{{"first", 0}, {"at 25 %", 1}, {"at 50 %", 2}, {"at 75 %", 3}, {"last", 4}}

// listMiddle is the place that is also asked for naively.
const listMiddle = "at 50 %"

// lists is the result of reading pages of many payments.
type lists struct {
	Rows       int64       `json:"rows"`
	FirstP50Ms float64     `json:"first_page_p50_ms"`
	SlowestMs  float64     `json:"slowest_p99_ms"`
	Slowest    string      `json:"slowest"`
	Pages      []*listPage `json:"pages"`
}

// listPage is one filter at one offset. The times are medians of the blocks'.
type listPage struct {
	Filter  string  `json:"filter"`
	Where   string  `json:"position"`
	Offset  int64   `json:"offset"`
	Total   int64   `json:"total"`
	P50Ms   float64 `json:"p50_ms"`
	P99Ms   float64 `json:"p99_ms"`
	NaiveMs float64 `json:"naive_ms,omitempty"` // 0: not asked

	filter              listFilter
	p50s, p99s, naively []float64
}

// measureLists asks for pages through the API, one after the other, and for
// some of them naively.
func measureLists(ctx context.Context, r *engineRun) error {
	bed, err := r.largeTestbed(ctx)
	if err != nil {
		return err
	}
	var running processes
	defer running.stop()
	server, err := running.add(bed.serve(ctx, "till"))
	if err != nil {
		return err
	}
	s, client, err := bed.openForClient(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	l := &lists{Rows: r.rows}
	if err := l.find(ctx, server, r.report.Seeding); err != nil {
		return err
	}
	if err := l.warm(ctx, server); err != nil {
		return err
	}
	round := 0
	err = inTurns(ctx, r.rounds, func(ctx context.Context, counts bool) error {
		if err := l.round(ctx, server, counts); err != nil {
			return err
		}
		for _, p := range l.Pages {
			if p.naiveInRound(round) {
				if err := p.readNaively(ctx, s, client.ID); err != nil {
					return err
				}
			}
		}
		r.logf("lists: round %d of %d", round, r.rounds)
		round++
		return nil
	})
	if err != nil {
		return err
	}
	rounds := l.summarise()
	found := spreadOf(rounds)
	// In each turn some page meets other work on the machine, and that page
	// is the slowest; the median of a page's own blocks is not fooled by it.
	found.Median = l.SlowestMs / max(l.FirstP50Ms, 1e-9)
	found.Min = min(found.Min, found.Median)
	r.report.Measures = append(r.report.Measures, measure{Goal: goalLists, Rounds: len(rounds), Found: found})
	r.report.Lists = l
	for _, p := range l.Pages {
		if p.filter.isAll() && p.Where == listMiddle {
			var p50s []float64 // of rounds, as the others are
			for blocks := range slices.Chunk(p.p50s, listBlocks) {
				p50s = append(p50s, spreadOf(blocks).Median)
			}
			r.record(goalNaive, ratios(p50s, p.naively))
		}
	}
	return nil
}

// find lists the pages to ask for.
func (l *lists) find(ctx context.Context, server *process, seeded *seeding) error {
	for _, f := range listFilters(seeded.from, seeded.to) {
		total, err := server.page(ctx, f.query(), 0)
		if err != nil {
			return err
		}
		for _, place := range listPlaces {
			offset := min(total/4*place.share, max(total-listLimit, 0))
			l.Pages = append(l.Pages, &listPage{Filter: f.name, Where: place.name, Offset: offset, Total: total, filter: f})
		}
	}
	return nil
}

// naiveInRound reports whether the page is also asked for naively: the page
// that is compared in every round, the others of the whole list and the middle
// of each filter once, because each may take many seconds.
func (p *listPage) naiveInRound(round int) bool {
	switch {
	case p.filter.isAll() && p.Where == listMiddle:
		return round > 0
	case p.filter.isAll() || p.Where == listMiddle:
		return round == 1
	}
	return false
}

// summarise takes the medians of each page's blocks, and returns the ratio that
// each turn would give alone: its slowest p99 to the p50 of its first page.
func (l *lists) summarise() (found []float64) {
	for _, p := range l.Pages {
		p.P50Ms, p.P99Ms, p.NaiveMs = spreadOf(p.p50s).Median, spreadOf(p.p99s).Median, spreadOf(p.naively).Median
		if p.P99Ms > l.SlowestMs {
			l.SlowestMs, l.Slowest = p.P99Ms, p.Filter+", "+p.Where
		}
	}
	l.FirstP50Ms = l.Pages[0].P50Ms
	for i, first := range l.Pages[0].p50s {
		slowest := 0.0
		for _, p := range l.Pages {
			slowest = max(slowest, p.p99s[i])
		}
		found = append(found, slowest/max(first, 1e-9))
	}
	return found
}

// warm asks for all pages at once from many sides, so that each connection of
// the server to its database has met them: one that is used for the first time
// has to plan everything.
func (l *lists) warm(ctx context.Context, server *process) error {
	errs := make(chan error, listWarmers)
	for range listWarmers {
		go func() {
			var err error
			for range listWarmings {
				for _, p := range l.Pages {
					if _, failed := server.page(ctx, p.filter.query(), p.Offset); failed != nil {
						err = failed
					}
				}
			}
			errs <- err
		}()
	}
	var all []error
	for range listWarmers {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// round reads all pages in turn, block by block, over one connection.
func (l *lists) round(ctx context.Context, server *process, counts bool) error {
	for range listBlocks {
		for _, p := range l.Pages {
			if err := p.block(ctx, server, counts); err != nil {
				return err
			}
		}
	}
	return nil
}

// block reads the page several times.
func (p *listPage) block(ctx context.Context, server *process, counts bool) error {
	var took loadgen.Histogram
	query := p.filter.query()
	for range listAsks {
		start := time.Now()
		total, err := server.page(ctx, query, p.Offset)
		if err != nil {
			return err
		}
		if total != p.Total {
			return fmt.Errorf("%s: the total was %d and is %d now", p.Filter, p.Total, total)
		}
		took.Record(time.Since(start))
	}
	if counts {
		p.p50s = append(p.p50s, ms(took.Quantile(0.50)))
		p.p99s = append(p.p99s, ms(took.Quantile(0.99)))
	}
	return nil
}

// readNaively asks the database for the page by count(*) and OFFSET, and checks that
// the total is the same.
func (p *listPage) readNaively(ctx context.Context, s *store.Store, client till.ID) error {
	return s.View(ctx, func(tx *store.Tx) error {
		began := time.Now()
		_, total, err := seed.ListNaively(ctx, tx, client, p.filter.filter, store.Page{Limit: listLimit, Offset: int(p.Offset)})
		if err == nil && total != p.Total {
			err = fmt.Errorf("%s: the list says %d, counting says %d", p.Filter, p.Total, total)
		}
		p.naively = append(p.naively, ms(time.Since(began)))
		return err
	})
}

// page asks the API for one page, reads it whole and returns its total.
func (p *process) page(ctx context.Context, query string, offset int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, loadgen.AnswerTime)
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
