package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"till/internal/dev/loadgen"
)

// singleCreate is what one create at a time is made of.
type singleCreate struct {
	FlushMs spread    `json:"flush_p50_ms"`
	Sides   []figures `json:"sides"`
}

// measureSingleCreate compares one create at a time with what it cannot do without:
// one flush of the same disk and one request that stores nothing.
func measureSingleCreate(ctx context.Context, r *engineRun) error {
	var running processes
	defer running.stop()
	base, err := running.add(r.in.serveBase(ctx))
	if err != nil {
		return err
	}
	bed, err := r.newTestbed(ctx, "alone")
	if err != nil {
		return err
	}
	till, err := running.add(bed.serve(ctx, "till"))
	if err != nil {
		return err
	}
	disk, err := openDisk(r.db.dir)
	if err != nil {
		return err
	}
	defer disk.close()
	length := r.length() / createTurns
	plain := &contender{name: "nothing stored, alone", servers: []*process{base}, connections: 1, length: length, say: r.logf}
	durable := &contender{name: "till, alone", servers: []*process{till}, db: r.db, connections: 1, length: length, say: r.logf}
	var flushes []float64
	err = inTurns(ctx, createTurns*r.rounds, func(ctx context.Context, counts bool) error {
		p50, err := disk.flush(ctx, length/2)
		if counts {
			flushes = append(flushes, ms(p50))
			r.logf("%-28s p50 %.3f ms", "a flush of 4 KiB", ms(p50))
		}
		return err
	}, plain.round, durable.round)
	if err != nil {
		return err
	}
	least := make([]float64, len(flushes))
	for i := range least {
		least[i] = flushes[i] + plain.medians[i]
	}
	r.record(goalAlone, ratios(durable.medians, least))
	r.report.Alone = &singleCreate{FlushMs: spreadOf(flushes), Sides: []figures{plain.figures(), durable.figures()}}
	return till.checkTotal(ctx, durable.sent)
}

// disk is a file that is written to like a log whose space is there already.
type disk struct {
	f    *os.File
	page [4096]byte
}

func openDisk(dir string) (*disk, error) {
	f, err := os.CreateTemp(dir, "till-flush-")
	if err != nil {
		return nil, err
	}
	d := &disk{f: f}
	_, err = f.Write(d.page[:])
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *disk) close() {
	d.f.Close()
	os.Remove(filepath.Clean(d.f.Name()))
}

// flush overwrites the page and flushes it, again and again, and returns how
// long that takes in the median.
func (d *disk) flush(ctx context.Context, length time.Duration) (time.Duration, error) {
	var h loadgen.Histogram
	for began := time.Now(); time.Since(began) < length && ctx.Err() == nil; {
		d.page[0]++
		start := time.Now()
		if _, err := d.f.WriteAt(d.page[:], 0); err != nil {
			return 0, err
		}
		if err := flush(d.f); err != nil {
			return 0, err
		}
		h.Record(time.Since(start))
	}
	return h.Quantile(0.5), ctx.Err()
}
