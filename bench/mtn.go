package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"till/internal/dev/loadgen"
	"till/provider"
	"till/provider/mtnmomo"
)

// mtnAnswers is how long the simulated MTN takes for each answer.
const mtnAnswers = 50 * time.Millisecond

// mtnPoll is how long after a send Till asks, by what the adapter says.
var mtnPoll = sync.OnceValues(func() (time.Duration, error) {
	o, err := mtnmomo.New(mtnmomo.Config{BaseURL: "http://127.0.0.1", TargetEnvironment: "mtncongo", APIUser: "user", APIKey: "key", CollectionKey: "key"},
		provider.Deps{Tokens: provider.MemoryTokens()})
	if err != nil {
		return 0, err
	}
	return o.Payments().Traits().Poll, nil
})

// mtn is the simulator of MTN, slowed down, with a record of when it was
// called. While it is down it takes requests and never answers: worse than one
// that refuses them.
type mtn struct {
	sim  http.Handler
	poll time.Duration

	mu       sync.Mutex
	stats    mtnStats
	down     bool
	answered map[string]time.Time // requests that were not asked about yet
	late     loadgen.Histogram
	open     map[string]bool // connections that MTN was called over
}

// mtnStats is what it reports.
type mtnStats struct {
	Submits     int64     `json:"submits"`
	First, Last time.Time // submits
	Asked       int64     `json:"asked"` // requests that were asked about
	P50, P99    time.Duration
	Connections int `json:"connections"` // the most at once
}

// serveMTN is the hidden subcommand.
func serveMTN(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("an address is missing")
	}
	sim, err := mtnmomo.NewSimulator(mtnmomo.SimConfig{Decide: time.Second})
	if err != nil {
		return err
	}
	defer sim.Close()
	m := &mtn{sim: sim, answered: map[string]time.Time{}, open: map[string]bool{}}
	if m.poll, err = mtnPoll(); err != nil {
		return err
	}
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/payments", emptyList)
	mux.HandleFunc("POST /bench", m.serveStats)
	mux.Handle("/", m)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ConnState: m.hangUp}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	if err := s.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}

func (m *mtn) hangUp(c net.Conn, state http.ConnState) {
	if state != http.StateClosed {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.open, c.RemoteAddr().String())
}

// serveStats answers with the counts and, on request, resets them.
func (m *mtn) serveStats(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.stats
	out.Asked, out.P50, out.P99 = m.late.N, m.late.Quantile(0.5), m.late.Quantile(0.99)
	if r.URL.Query().Has("anew") {
		m.stats = mtnStats{Connections: len(m.open)}
		m.late = loadgen.Histogram{}
		clear(m.answered)
	}
	m.down = m.down || r.URL.Query().Has("down")
	b, _ := json.Marshal(out)
	w.Write(b)
}

// ServeHTTP plays MTN.
func (m *mtn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	came := time.Now()
	m.mu.Lock()
	down := m.down
	m.open[r.RemoteAddr] = true
	m.stats.Connections = max(m.stats.Connections, len(m.open))
	m.mu.Unlock()
	if down {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		return
	}
	at, reference, asks := strings.Cut(r.URL.Path, "/requesttopay/")
	if asks {
		m.mu.Lock()
		if t, ok := m.answered[reference]; ok {
			m.late.Record(came.Sub(t) - m.poll)
			delete(m.answered, reference)
		}
		m.mu.Unlock()
	}
	time.Sleep(mtnAnswers)
	m.sim.ServeHTTP(w, r)
	if !asks && strings.HasSuffix(at, "/requesttopay") {
		m.mu.Lock()
		if m.stats.Submits++; m.stats.First.IsZero() {
			m.stats.First = came
		}
		m.stats.Last = came
		m.answered[r.Header.Get("X-Reference-Id")] = time.Now()
		m.mu.Unlock()
	}
}

// mtnStats asks it for what was counted; how is "", "anew" or "down".
func (p *process) mtnStats(ctx context.Context, how string) (s mtnStats, err error) {
	ctx, cancel := context.WithTimeout(ctx, loadgen.AnswerTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.addr+"/bench?"+how, nil)
	if err != nil {
		return s, err
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, err
	}
	defer res.Body.Close()
	return s, json.NewDecoder(res.Body).Decode(&s)
}
