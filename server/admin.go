package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync"
	"time"

	"till/store"
)

// admin serves what is for whoever runs the program, and for machines that watch it:
// healthz fails if a loop is stuck, readyz if no create can be taken, metrics is for
// Prometheus, debug/log has the last lines of the log, and debug/pprof shows where time and
// memory go. Health is for everybody, the rest for operators. The command line of pprof is
// left out: it may hold the database's password.
func (s *Server) admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if late := s.loops.late(time.Now()); len(late) > 0 {
			writeText(w, http.StatusServiceUnavailable, "stuck: "+strings.Join(late, ", "))
			return
		}
		writeText(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() {
			writeText(w, http.StatusServiceUnavailable, "stopping")
			return
		}
		if err := s.ready.get(); err != nil {
			writeText(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		writeText(w, http.StatusOK, "ready")
	})
	mux.Handle("GET /metrics", s.forOperators(s.meter.Handler().ServeHTTP))
	mux.Handle("GET /debug/log", s.forOperators(s.serveLog))
	mux.Handle("GET /debug/pprof/", s.forOperators(pprof.Index))
	mux.Handle("GET /debug/pprof/profile", s.forOperators(pprof.Profile))
	mux.Handle("GET /debug/pprof/symbol", s.forOperators(pprof.Symbol))
	mux.Handle("GET /debug/pprof/trace", s.forOperators(pprof.Trace))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		mux.ServeHTTP(w, r)
	})
}

// Why an instance is not ready: no create can be taken. The texts are told to whoever asks.
var (
	errNoDatabase  = errors.New("the database does not answer")
	errDiskFull    = errors.New("the disk of the database is full")
	errJournalSync = errors.New("the journal cannot be written, and creates wait for it")
)

// checkReady returns why no create can be taken.
func (s *Server) checkReady() error {
	switch {
	case s.checkDatabase() != nil:
		return errNoDatabase
	case s.store.DiskFull():
		return errDiskFull
	case s.journal != nil && s.c.JournalSync && s.journal.Failing():
		return errJournalSync
	}
	return nil
}

// checkDatabase reads one row.
func (s *Server) checkDatabase() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := s.store.View(ctx, func(tx *store.Tx) error {
		_, err := tx.Installation(ctx)
		return err
	})
	if err != nil {
		s.log.Warn("database not ready", "error", err)
	}
	return err
}

// readyCacheTime is how long one check of the database is reused, so that frequent requests
// cost nothing.
const readyCacheTime = 250 * time.Millisecond

// readiness shares one check among concurrent requests.
type readiness struct {
	check func() error

	mu  sync.Mutex
	at  time.Time // when the last check ended
	err error
}

func (r *readiness) get() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.IsZero() || time.Since(r.at) >= readyCacheTime {
		r.err = r.check()
		r.at = time.Now()
	}
	return r.err
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}
