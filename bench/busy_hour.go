package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"till"
	"till/bench/seed"
	"till/store"
)

// What is made within a minute of one hour, and how often each page of it is read in a
// round.
const (
	busyRows  = 300_000
	busyReads = 25
)

// busyWait is how long a server may take to count the parts of the hour.
const busyWait = 2 * time.Minute

// busyHour is what reading pages deep inside one busy hour found.
type busyHour struct {
	FirstP50Ms   float64     `json:"first_page_p50_ms"`
	SlowestP50Ms float64     `json:"slowest_p50_ms"`
	Slowest      string      `json:"slowest"`
	Pages        []*listPage `json:"pages"`
}

// measureBusyHour reads pages of payments that one client made within a minute,
// with any filter, at any offset and in both directions.
func measureBusyHour(ctx context.Context, r *engineRun) error {
	bed, err := r.newTestbed(ctx, "busy")
	if err != nil {
		return err
	}
	s, client, err := bed.openForClient(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	hour := till.TimeOf(s.Now().Std().Truncate(time.Hour))
	from := hour.Add(-time.Hour + 20*60*time.Second)
	to := from.Add(60 * time.Second)
	if err := seed.Payments(ctx, s, seed.Config{Client: client.ID, Rows: busyRows, From: from, To: to}); err != nil {
		return err
	}
	if err := bed.db.vacuum(ctx, bed.name); err != nil {
		return err
	}
	var running processes
	defer running.stop()
	server, err := running.add(bed.serve(ctx, "till"))
	if err != nil {
		return err
	}
	began := time.Now()
	if err := awaitParts(ctx, s, client.ID); err != nil {
		return err
	}
	r.logf("busy hour: the server counted its parts in %.1f s", time.Since(began).Seconds())

	l := &lists{Rows: busyRows}
	if err := l.findBusy(ctx, server, from, to); err != nil {
		return err
	}
	err = inTurns(ctx, r.rounds, func(ctx context.Context, counts bool) error {
		for _, p := range l.Pages {
			if err := p.readBusy(ctx, server, counts); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b := l.busyHour()
	r.report.BusyHour = b
	r.record(goalBusyHour, []float64{b.SlowestP50Ms / max(b.FirstP50Ms, 1e-9)})
	return nil
}

// awaitParts waits until the server has counted the parts of every busy hour.
func awaitParts(ctx context.Context, s *store.Store, client till.ID) error {
	for end := time.Now().Add(busyWait); ; time.Sleep(100 * time.Millisecond) {
		var left []store.BusyHour
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			left, err = tx.HoursNeverSplit(ctx, client)
			return err
		})
		switch {
		case err != nil || len(left) == 0:
			return err
		case time.Now().After(end):
			return fmt.Errorf("the server did not count the parts of the busy hour")
		}
	}
}

// findBusy lists the pages to read.
func (l *lists) findBusy(ctx context.Context, server *process, from, to till.Time) error {
	lo, hi := from.Add(7*time.Second)+123_456, to.Add(-11*time.Second)-654_321
	for _, f := range []listFilter{
		{"none", store.PaymentFilter{}, false},
		{"status=success (80 %)", store.PaymentFilter{Status: till.Success}, false},
		{"status=processing (0.6 %)", store.PaymentFilter{Status: till.Processing}, false},
		{"method=mtn_momo (60 %)", store.PaymentFilter{Method: "mtn_momo"}, false},
		{"success, airtel_money (24 %)", store.PaymentFilter{Status: till.Success, Method: "airtel_money"}, false},
		{"seconds of the minute", store.PaymentFilter{From: lo, To: hi}, false},
		{"success, seconds of the minute", store.PaymentFilter{Status: till.Success, From: lo, To: hi}, false},
		{"mpesa, seconds of the minute", store.PaymentFilter{Method: "mpesa", From: lo, To: hi}, false},
	} {
		total, err := server.page(ctx, f.query(), 0)
		if err != nil {
			return err
		}
		for _, order := range []string{"", ", oldest first"} {
			f := f
			f.name, f.ascending = f.name+order, order != ""
			for _, place := range listPlaces {
				offset := min(total/4*place.share+total/16, max(total-listLimit, 0))
				if place.share == 0 {
					offset = 0
				}
				l.Pages = append(l.Pages, &listPage{Filter: f.name, Where: place.name, Offset: offset, Total: total, filter: f})
			}
		}
	}
	return nil
}

// readBusy reads the page some times.
func (p *listPage) readBusy(ctx context.Context, server *process, counts bool) error {
	var took []float64
	for range busyReads {
		began := time.Now()
		total, err := server.page(ctx, p.filter.query(), p.Offset)
		if err == nil && total != p.Total {
			err = fmt.Errorf("%s: the total was %d and is %d now", p.Filter, p.Total, total)
		}
		if err != nil {
			return err
		}
		took = append(took, ms(time.Since(began)))
	}
	if counts {
		p.p50s = append(p.p50s, spreadOf(took).Median)
	}
	return nil
}

// busyHour sums up what was found: medians of medians.
func (l *lists) busyHour() *busyHour {
	b := &busyHour{Pages: l.Pages}
	for _, p := range l.Pages {
		p.P50Ms = spreadOf(p.p50s).Median
		b.FirstP50Ms = l.Pages[0].P50Ms
		if p.P50Ms > b.SlowestP50Ms {
			b.SlowestP50Ms, b.Slowest = p.P50Ms, p.Filter+", "+p.Where
		}
	}
	return b
}

func (h *busyHour) print(b *bytes.Buffer) {
	fmt.Fprintf(b, "### Pages inside a busy hour\n\nPages of %d out of %d payments that one client made within a minute. First page's p50 %.2f ms; slowest p50 %.2f ms (%s).\n\n",
		listLimit, busyRows, h.FirstP50Ms, h.SlowestP50Ms, h.Slowest)
	fmt.Fprintf(b, "| filter | page | offset | total | p50 ms |\n|---|---|---|---|---|\n")
	for _, p := range h.Pages {
		fmt.Fprintf(b, "| %s | %s | %d | %d | %.2f |\n", p.Filter, p.Where, p.Offset, p.Total, p.P50Ms)
	}
	fmt.Fprintln(b)
}
