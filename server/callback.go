package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// postCallback passes the sandbox's callbacks to the API inside this process, so they need
// no network and work behind any base URL. Only the part after /callbacks/ counts: a
// callback that was planned before a restart under another address arrives too. The sandbox
// can call nothing else.
func (s *Server) postCallback(ctx context.Context, url string, body []byte) (err error) {
	_, token, found := strings.Cut(url, "/v1/callbacks/")
	if !found {
		return errors.New("the sandbox calls back to this service only")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/v1/callbacks/"+token, bytes.NewReader(body))
	if err != nil {
		return errors.New("the callback's address cannot be read")
	}
	r.Header.Set("Content-Type", "application/json")
	r.RequestURI, r.RemoteAddr = r.URL.RequestURI(), "127.0.0.1:0"

	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the callback's handler panicked: %v", v)
		}
	}()
	w := &discardWriter{header: make(http.Header)}
	s.handler.ServeHTTP(w, r)
	if w.status < 200 || w.status > 299 {
		return fmt.Errorf("the callback was answered %d", w.status)
	}
	return nil
}

// discardWriter is a response that keeps the status and discards the body.
type discardWriter struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (w *discardWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *discardWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Write implements http.ResponseWriter.
func (w *discardWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return len(b), nil
}
