package webhook

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"till"
	"till/internal/seal"
	"till/store"
	"till/store/storetest"
)

// BenchmarkDeliver compares deliveries of a backlog to one endpoint on this
// machine that answers at once with a loop that posts the same signed bytes,
// at the same concurrency:
//
//	go test ./webhook -run '^$' -bench Deliver -benchtime 10000x
func BenchmarkDeliver(b *testing.B) {
	for _, e := range storetest.Engines() {
		for _, concurrency := range []int{16, 64} {
			b.Run(e.Name+"/"+strconv.Itoa(concurrency), func(b *testing.B) {
				deliverAll(b, storetest.Open(b, e.Config(b)), concurrency)
			})
		}
	}
}

// cpu returns the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var bare = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

func deliverAll(b *testing.B, s *store.Store, concurrency int) {
	var arrived atomic.Int64
	done := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if arrived.Add(1) == int64(b.N) {
			done <- struct{}{}
		}
	}))
	defer server.Close()
	vault, err := NewSecretSealer(seal.Single([]byte("a made.Secret for tests only")))
	if err != nil {
		b.Fatal(err)
	}
	allow, err := ParseAllowed(Loopback)
	if err != nil {
		b.Fatal(err)
	}
	sender := NewSender(SenderConfig{Allow: allow})
	defer sender.Close()
	client := storetest.NewClient(b, s, till.Test)
	acts := &Endpoints{Store: s, Secrets: vault, Sender: sender, Allow: allow}
	made, err := acts.Create(b.Context(), client, &Request{URL: &server.URL, Events: &[]string{"*"}}, awa)
	if err != nil {
		b.Fatal(err)
	}
	collector := storetest.NewCollector(b, s)
	var makers sync.WaitGroup
	for n := range 64 {
		makers.Go(func() {
			for range (b.N + 63 - n) / 64 {
				storetest.NewPayment(b, collector, client, storetest.Body{})
			}
		})
	}
	makers.Wait()

	body := make([]byte, 0)
	if err := s.View(b.Context(), func(tx *store.Tx) error {
		rows, err := tx.EventBodies(b.Context(), client.ID, 0, 1)
		if err == nil {
			body = rows[0].AppendJSON(body)
		}
		return err
	}); err != nil {
		b.Fatal(err)
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	var posters sync.WaitGroup
	start, begun := time.Now(), cpu()
	for range concurrency {
		posters.Go(func() {
			for left.Add(-1) >= 0 {
				r, _ := http.NewRequest(http.MethodPost, server.URL, bytes.NewReader(body))
				r.Header = Sign("an-id", time.Now(), body, made.Secret)
				res, err := bare.Do(r)
				if err != nil {
					b.Error(err)
					return
				}
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		})
	}
	posters.Wait()
	<-done
	plain := time.Since(start)
	plainCPU := cpu() - begun
	arrived.Store(0)

	d := New(Config{Store: s, Secrets: vault, Sender: sender, PerEndpoint: concurrency})
	ctx, cancel := context.WithCancel(b.Context())
	var run sync.WaitGroup
	b.ResetTimer()
	start, begun = time.Now(), cpu()
	run.Go(func() { d.Run(ctx) })
	<-done
	took, tookCPU := time.Since(start), cpu()-begun
	b.StopTimer()
	cancel()
	run.Wait()
	if err := d.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/took.Seconds(), "deliveries/s")
	b.ReportMetric(float64(b.N)/plain.Seconds(), "bare/s")
	b.ReportMetric(plain.Seconds()/took.Seconds(), "share")
	b.ReportMetric(plainCPU.Seconds()/tookCPU.Seconds(), "cpu-share") // steadier where others use the machine, too
}
