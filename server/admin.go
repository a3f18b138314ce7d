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

	"till/books"
	"till/store"
	"till/store/admin"
)

// admin serves what is for the people who run the program, and for machines that watch it:
// healthz fails if a loop is stuck, readyz if no create can be taken, status is what 'till
// status' says, metrics is for Prometheus, debug/log has the last lines of the log, and
// debug/pprof shows where time and memory go. Health is for everybody, the rest for
// operators. The command line of pprof is left out: it may hold the database's password.
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
		if err := s.checkReady(); err != nil {
			writeText(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		writeText(w, http.StatusOK, "ready")
	})
	mux.Handle("GET /status", s.forOperators(s.serveStatus))
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

// Why an instance is not ready: no create can be taken. The texts are shown to anybody.
var (
	errNoDatabase  = errors.New("the database does not answer")
	errDiskFull    = errors.New(books.DiskFullText)
	errJournalSync = errors.New(books.JournalStopsText)
)

// checkReady returns why no create can be taken. Whether the database answers is known from
// the last quarter of a second; what refuses creates here is seen at once.
func (s *Server) checkReady() error {
	switch {
	case s.answers.get() != nil:
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
		_, err := admin.ReadInstallation(ctx, tx)
		return err
	})
	if err != nil {
		s.log.Warn("database not ready", "error", err)
	}
	return err
}

// How long what was read is shown again, so that frequent requests cost nothing.
const (
	readyCacheTime  = 250 * time.Millisecond
	statusCacheTime = time.Second
)

// kept shares one read among concurrent requests.
type kept[T any] struct {
	read func() T
	time time.Duration

	mu    sync.Mutex
	at    time.Time // when the last read ended
	value T
}

func (k *kept[T]) get() T {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.at.IsZero() || time.Since(k.at) >= k.time {
		k.value = k.read()
		k.at = time.Now()
	}
	return k.value
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}

// serveLog answers with the lines that are kept.
func (s *Server) serveLog(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Write(s.c.LogRing.Last())
}
