package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"till/store"
	"till/webhook"
)

// webhookBaseline posts the same signed bytes as the last backlog of a webhookRun by a loop of
// net/http, and nothing else.
type webhookBaseline struct {
	like   *webhookRun
	client *http.Client
	costs  postCosts
	rates  []float64
}

// signed is one webhook, ready to be posted.
type signed struct {
	header http.Header
	body   []byte
}

func newWebhookBaseline(like *webhookRun) *webhookBaseline {
	return &webhookBaseline{like: like, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: hookPosts, DisableCompression: true}}}
}

func (b *webhookBaseline) round(ctx context.Context, counts bool) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU()))
	defer debug.SetGCPercent(debug.SetGCPercent(servedGCPercent))
	all, err := b.read(ctx)
	if err != nil {
		return err
	}
	receiver := b.like.receiver
	if err := receiver.resetArrivals(ctx); err != nil {
		return err
	}
	sender, taking := selfCPU(), receiver.cpu()
	if err := b.post(ctx, hooksURL(receiver.addr), all); err != nil {
		return err
	}
	sender, taking = selfCPU()-sender, receiver.cpu()-taking
	got, err := receiver.awaitArrivals(ctx, len(all))
	if err != nil {
		return err
	}
	if counts {
		b.costs.add(len(all), sender, 0, taking)
		b.rates = append(b.rates, got.rate(len(all)))
		b.like.r.logf("%-28s %8.0f/s", "bare loop", got.rate(len(all)))
	}
	return nil
}

// read returns the backlog as it goes over the wire.
func (b *webhookBaseline) read(ctx context.Context) (all []signed, err error) {
	err = b.like.s.View(ctx, func(tx *store.Tx) error {
		for after := b.like.from; after < b.like.to; {
			rows, err := tx.EventBodies(ctx, b.like.h.client.ID, after, 1000)
			if err != nil {
				return err
			}
			for _, e := range rows {
				if after = e.Sequence; after <= b.like.to {
					all = append(all, b.sign(e))
				}
			}
			if len(rows) == 0 {
				return fmt.Errorf("the log ends at %d, before %d", after, b.like.to)
			}
		}
		return nil
	})
	return all, err
}

func (b *webhookBaseline) sign(e *store.EventRow) signed {
	body := e.AppendJSON(nil)
	h := webhook.Sign(e.ID().String(), time.Now(), body, b.like.secret)
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "Till-Webhooks/1")
	return signed{h, body}
}

// post posts everything, so many at once as Till does to one endpoint.
func (b *webhookBaseline) post(ctx context.Context, url string, all []signed) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, hookPosts)
	for w := range hookPosts {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(all) && errs[w] == nil; i = int(next.Add(1)) - 1 {
				errs[w] = b.postOne(ctx, url, &all[i])
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *webhookBaseline) postOne(ctx context.Context, url string, s *signed) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(s.body))
	if err != nil {
		return err
	}
	req.Header = s.header
	resp, err := b.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the receiver answered %s", resp.Status)
	}
	return nil
}
