package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"till"
	"till/pay"
)

// payBase returns where browsers open the pages that customers pay on, "" if there are none:
// they are switched off, or nobody has said at which address customers reach the service.
func (s *Server) payBase() string {
	switch {
	case s.c.NoPages:
		return ""
	case s.c.PayURL != "":
		return s.c.PayURL
	case s.payListener != nil && s.c.BaseURL == "":
		return "http://" + s.payListener.Addr().String()
	case s.c.BaseURL != "" || s.c.DemoFile != "":
		return strings.TrimSuffix(s.baseURL, "/v1")
	}
	return ""
}

// payHosts are the names under which this service is reached: no page leads back to them.
func (s *Server) payHosts() (hosts []string) {
	for _, address := range []string{s.payBase(), s.baseURL, s.consoleBase()} {
		if u, err := url.Parse(address); err == nil && u.Hostname() != "" {
			hosts = append(hosts, strings.ToLower(u.Hostname()))
		}
	}
	return hosts
}

// buildPay makes the pages that customers pay on.
func (s *Server) buildPay() (err error) {
	if !s.c.Role.serves() || s.payBase() == "" {
		return nil
	}
	s.payStop = make(chan struct{})
	s.pay, err = pay.New(pay.Config{
		Store: s.store, Checkouts: s.checkouts, Limits: s.limits, Accounts: s.accounts, Offer: s.collector.Offer, Told: s.collector.Told, TestQuota: s.c.TestQuota,
		Ring: s.ring, URL: s.payBase(), TrustedProxies: s.operators.File.TrustedProxies, Stopping: s.payStop, Log: s.log,
	})
	return err
}

// stopPay ends the answers that wait for a change.
func (s *Server) stopPay() {
	s.payOnce.Do(func() { close(s.payStop) })
}

// DemoPage makes a checkout of the demo client as any client does, and returns the address of
// its page; "" if there are no pages.
func (s *Server) DemoPage(ctx context.Context) string {
	if s.pay == nil || s.demo == nil {
		return ""
	}
	body := fmt.Sprintf(`{"amount":{"value":"5000","currency":"XAF"},"reference":"ORDER-1","description":"Two loaves","idempotency_key":"%s"}`, demoKey())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.baseURL+"/checkouts", strings.NewReader(body))
	if err != nil {
		return ""
	}
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("X-Api-Key", s.demo.APIKey)
	r.Header.Set("Content-Type", "application/json")
	w := &recorded{header: http.Header{}}
	s.handler.ServeHTTP(w, r)
	var made struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal(w.body.Bytes(), &made); err != nil || w.status != http.StatusCreated {
		s.log.Info("demo page not made", "status", w.status)
		return ""
	}
	return made.URL
}

// demoKey draws an idempotency key.
func demoKey() string {
	var id till.ID
	rand.Read(id[:]) // never returns an error; it crashes the program instead
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id.String()
}

// recorded is an answer of our own handler.
type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorded) Header() http.Header         { return w.header }
func (w *recorded) WriteHeader(status int)      { w.status = status }
func (w *recorded) Write(b []byte) (int, error) { return w.body.Write(b) }
