package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"till/internal/dev/loadgen"
)

// How the pages that customers pay on are measured.
const (
	pagesShare  = 10              // one checkout for so many payments
	pagesReads  = 1_000           // pages that are read in a round, one after the other
	pagesAsks   = 30              // forms that are posted in a round
	pagesPace   = time.Second / 8 // between two of them: fewer than a client may ask for in a second
	pagesAge    = 1100 * time.Millisecond
	pagesWaits  = 200                    // pages that wait, each read again and again
	pagesEvery  = 800 * time.Millisecond // so often: 250 reads a second, as of 1 000 customers whose page reads itself every 4 s
	pagesMethod = "mtn_momo.CG"
)

// measurePages reads and posts the pages of orders, each another one, in a database with many
// payments, and creates payments beside pages that wait for their operator.
func measurePages(ctx context.Context, r *engineRun) error {
	bed, err := r.newTestbed(ctx, "pages")
	if err != nil {
		return err
	}
	if r.report.Seeding, err = bed.seedBooks(ctx, r.rows, r.logf); err != nil {
		return err
	}
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	var running processes
	defer running.stop()
	server, err := running.add(start(ctx, "till", addr, bed.apiKey, filepath.Join(bed.dir, "till.log"), r.in.program, "serve", "--role", "api", "--rate-limit", "0", "--test-quota", "0",
		"--listen", addr, "--admin-listen", "", "--database", bed.url, "--secret-file", bed.secretFile(), "--base-url", "http://"+addr+"/v1"))
	if err != nil {
		return err
	}
	p := &payers{server: server, number: 242061000000}
	p.http = http.Client{Timeout: loadgen.AnswerTime, Transport: &http.Transport{MaxIdleConnsPerHost: pagesWaits}}
	p.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if err := p.order(ctx, r, max(int(r.rows)/pagesShare, 2*(r.rounds+1)*pagesAsks+2*pagesWaits)); err != nil {
		return err
	}
	if err := p.readAndPost(ctx, r); err != nil {
		return err
	}
	return p.createBeside(ctx, r)
}

// payers are customers who open pages.
type payers struct {
	server *process
	http   http.Client
	orders []string // addresses that nobody has opened yet
	asked  []string // addresses of asks
	number int64    // the last that was typed
}

// order makes checkouts as a shop does, over several connections.
func (p *payers) order(ctx context.Context, r *engineRun, n int) error {
	p.orders = make([]string, n)
	var next atomic.Int64
	errs := make([]error, r.connections)
	var wg sync.WaitGroup
	began := time.Now()
	for w := range errs {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[w] == nil; i = int(next.Add(1)) - 1 {
				var made struct{ URL string }
				body := fmt.Appendf(nil, `{"amount":{"value":"5000","currency":"XAF"},"reference":"ORDER-%d","description":"Two loaves","idempotency_key":%q,"expires_in_seconds":86400}`, i, loadgen.NewKey())
				errs[w] = p.server.call(ctx, http.MethodPost, "/v1/checkouts", body, http.StatusCreated, &made)
				p.orders[i] = made.URL
			}
		})
	}
	wg.Wait()
	r.logf("%d checkouts made, %.0f/s", n, float64(n)/time.Since(began).Seconds())
	return errors.Join(errs...)
}

// next returns an address that nobody has opened.
func (p *payers) next() (address string) {
	address, p.orders = p.orders[0], p.orders[1:]
	return address
}

var formOfPage = regexp.MustCompile(`name="form" value="([^"]+)"`)

// get reads a page.
func (p *payers) get(ctx context.Context, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	res, err := p.http.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("a page is answered %s", res.Status)
	}
	return string(b), err
}

// readAndPost reads pages that were never read, then posts forms until their answer leads to
// the ask.
func (p *payers) readAndPost(ctx context.Context, r *engineRun) error {
	var reads, posts loadgen.Histogram
	err := inTurns(ctx, r.rounds, func(ctx context.Context, counts bool) error {
		step := max(len(p.orders)/pagesReads, 1)
		for i := 0; i < len(p.orders); i += step {
			began := time.Now()
			if _, err := p.get(ctx, p.orders[i]); err != nil {
				return err
			}
			if counts {
				reads.Record(time.Since(began))
			}
		}
		return nil
	}, func(ctx context.Context, counts bool) error { return p.ask(ctx, pagesAsks, counts, &posts) })
	if err != nil {
		return err
	}
	r.logf("a page is read in %.1f ms, p99 %.1f ms; a form is posted in %.1f ms, p99 %.1f ms (%d reads, %d forms)", ms(reads.Quantile(0.5)), ms(reads.Quantile(0.99)),
		ms(posts.Quantile(0.5)), ms(posts.Quantile(0.99)), reads.N, posts.N)
	r.record(goalPageRead, []float64{ms(reads.Quantile(0.5))})
	r.record(goalPageReadLate, []float64{ms(reads.Quantile(0.99))})
	r.record(goalPagePost, []float64{ms(posts.Quantile(0.5))})
	r.record(goalPagePostLate, []float64{ms(posts.Quantile(0.99))})
	return nil
}

// ask opens n pages, waits until their forms may be sent, and sends them, each with a number
// of its own.
func (p *payers) ask(ctx context.Context, n int, counts bool, took *loadgen.Histogram) error {
	type opened struct{ address, form string }
	var all []opened
	for range n {
		o := opened{address: p.next()}
		page, err := p.get(ctx, o.address)
		if err != nil {
			return err
		}
		m := formOfPage.FindStringSubmatch(page)
		if m == nil {
			return errors.New("a page has no form")
		}
		o.form = m[1]
		all = append(all, o)
	}
	time.Sleep(pagesAge)
	for _, o := range all {
		p.number++
		number := fmt.Sprint(p.number)
		sent := url.Values{"form": {o.form}, "phone": {number}, "market": {pagesMethod}, "sure": {number}}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.address, strings.NewReader(sent.Encode()))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		began := time.Now()
		res, err := p.http.Do(req)
		if err != nil {
			return err
		}
		res.Body.Close()
		if counts {
			took.Record(time.Since(began))
		}
		own, err := req.URL.Parse(res.Header.Get("Location"))
		if err != nil || res.StatusCode != http.StatusSeeOther || own.Path == req.URL.Path {
			return fmt.Errorf("a form is answered %s and leads to %q", res.Status, res.Header.Get("Location"))
		}
		p.asked = append(p.asked, own.String())
		time.Sleep(pagesPace)
	}
	return nil
}

// createBeside creates payments while nobody waits, and while pages of asks wait for their
// operator, which never answers.
func (p *payers) createBeside(ctx context.Context, r *engineRun) error {
	if more := pagesWaits - len(p.asked); more > 0 {
		if err := p.ask(ctx, more, false, nil); err != nil {
			return err
		}
	}
	none := &contender{name: "nobody waits", servers: []*process{p.server}, db: r.db, say: r.logf, connections: r.connections, length: r.length()}
	some := &contender{name: fmt.Sprintf("%d pages wait", pagesWaits), servers: none.servers, db: r.db, say: r.logf, connections: r.connections, length: r.length()}
	var load []float64
	err := inTurns(ctx, r.rounds, none.round, func(ctx context.Context, counts bool) error {
		waiting, stop := context.WithCancel(ctx)
		ended := p.wait(waiting)
		defer func() { stop(); <-ended }()
		before, began := p.server.cpu()+r.db.cpu(), time.Now()
		select {
		case <-time.After(r.length()):
		case <-ctx.Done():
		}
		if counts {
			load = append(load, (p.server.cpu()+r.db.cpu()-before).Seconds()/time.Since(began).Seconds())
			r.logf("%d pages that wait take %.2f of a processor", pagesWaits, load[len(load)-1])
		}
		return some.round(ctx, counts)
	})
	if err != nil {
		return err
	}
	r.record(goalPagesWait, load)
	r.record(goalPagesCreate, ratios(some.rates, none.rates))
	return nil
}

// wait reads the asks' pages again and again, until its context ends.
func (p *payers) wait(ctx context.Context) (ended chan struct{}) {
	ended = make(chan struct{})
	var wg sync.WaitGroup
	for i, address := range p.asked[:pagesWaits] {
		wg.Go(func() {
			due := time.NewTimer(pagesEvery * time.Duration(i) / pagesWaits)
			defer due.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-due.C:
				}
				due.Reset(pagesEvery)
				p.get(ctx, address) // one that fails is not read: creates say what the server can do
			}
		})
	}
	go func() { wg.Wait(); close(ended) }()
	return ended
}
