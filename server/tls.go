package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"till/certificates"
	"till/internal/loop"
)

// usesTLS reports whether the API and the console are served by TLS.
func (c *Config) usesTLS() bool { return c.TLSCert != "" || len(c.ACME.Hosts) > 0 }

func (c *Config) checkTLS() error {
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key go together: the one is useless without the other")
	case c.TLSCert != "" && len(c.ACME.Hosts) > 0:
		return errors.New("--tls-cert and --acme-host exclude each other: choose files, or a certificate authority")
	case c.HTTPListen != "" && !c.usesTLS():
		return errors.New("--http-listen is for redirects to HTTPS: it needs --tls-cert or --acme-host")
	}
	return c.ACME.Validate()
}

// baseURL returns the address at which clients reach the API.
func (c *Config) baseURL(reachable string) string {
	switch {
	case c.BaseURL != "":
		return c.BaseURL
	case len(c.ACME.Hosts) > 0:
		return "https://" + c.ACME.Hosts[0] + "/v1"
	case c.usesTLS():
		return "https://" + reachable + "/v1"
	}
	return "http://" + reachable + "/v1"
}

// openCertificates opens the certificates of an instance that serves requests.
func (s *Server) openCertificates(context.Context) (err error) {
	if !s.c.usesTLS() || !s.c.Role.serves() {
		return nil
	}
	if s.c.TLSCert != "" {
		s.certificates, err = certificates.OpenFiles(s.c.TLSCert, s.c.TLSKey, s.log)
	} else {
		s.certificates, err = certificates.NewACME(s.c.ACME, s.store, s.ring, s.log)
	}
	if err != nil {
		return err
	}
	name := s.certificates.Name()
	s.meter.Gauge("certificate_expiry_timestamp_seconds", func() float64 {
		_, ends := s.certificates.Validity()
		return max(0, float64(ends.Unix())) // the zero time is before 1970
	}, name)
	s.meter.Gauge("certificate_life_seconds", func() float64 {
		begins, ends := s.certificates.Validity()
		return ends.Sub(begins).Seconds()
	}, name)
	return nil
}

// lookAtCertificates checks for newer certificates once a minute, and when Reload says so.
func (s *Server) lookAtCertificates(ctx context.Context) {
	loop.Run(ctx, loop.Options{Interval: certificates.LookInterval, MaxStep: certificates.MaxLook, Wake: s.reloads.C(), Step: func(ctx context.Context) time.Duration {
		s.certificates.Look(ctx, s.reloadNow.Swap(false))
		return -1
	}})
}

// Reload checks the certificates and reads the operators' credentials again at once.
func (s *Server) Reload() {
	s.reloadNow.Store(true)
	s.reloads.Wake()
	s.credentials.Reread()
}

// encrypted returns a listener that speaks TLS, or l itself if there is no certificate.
// HTTP/2 is not offered: the limits of api count connections and requests, one at a time
// on each.
func (s *Server) encrypted(l net.Listener) net.Listener {
	if s.certificates == nil {
		return l
	}
	protocols := []string{"http/1.1"}
	if len(s.c.ACME.Hosts) > 0 {
		protocols = append(protocols, certificates.Protocol)
	}
	return &tlsListener{l, &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols, GetCertificate: s.certificates.GetCertificate}}
}

// tlsListener accepts TLS connections. net/http's own way would hide the connection from
// api.Guard, which is above TLS and reads what was decrypted.
type tlsListener struct {
	net.Listener
	config *tls.Config
}

// Accept implements net.Listener.
func (l *tlsListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &tlsConn{Conn: tls.Server(c, l.config)}, nil
}

// handshakeTimeout is how long a handshake may take.
const handshakeTimeout = 10 * time.Second

// tlsConn is a TLS connection whose first read does the handshake.
type tlsConn struct {
	*tls.Conn
	once sync.Once
	err  error
}

// Read implements net.Conn. The deadline of the read is that of net/http; that of what the
// handshake writes is ours.
func (c *tlsConn) Read(b []byte) (int, error) {
	c.once.Do(func() {
		raw := c.Conn.NetConn()
		raw.SetWriteDeadline(time.Now().Add(handshakeTimeout))
		c.err = c.Conn.Handshake()
		var plain tls.RecordHeaderError
		if errors.As(c.err, &plain) && plain.Conn != nil && looksLikeHTTP(plain.RecordHeader) {
			fmt.Fprint(raw, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\nThis address speaks HTTPS only.\n")
		}
		raw.SetWriteDeadline(time.Time{})
	})
	if c.err != nil {
		return 0, c.err
	}
	return c.Conn.Read(b)
}

// looksLikeHTTP reports whether the first bytes of a connection are those of a request in
// plain HTTP.
func looksLikeHTTP(b [5]byte) bool {
	for _, method := range []string{"GET /", "HEAD ", "POST ", "PUT /", "DELET", "PATCH", "OPTIO"} {
		if string(b[:]) == method {
			return true
		}
	}
	return false
}

// transportSecurity is a year. It says nothing about other names of the domain.
var transportSecurity = []string{"max-age=31536000"}

// overTLS has every answer tell browsers to use HTTPS from now on, if this server does.
func (s *Server) overTLS(h *http.Server) *http.Server {
	if s.certificates == nil {
		return h
	}
	next := h.Handler
	h.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Strict-Transport-Security"] = transportSecurity
		next.ServeHTTP(w, r)
	})
	return h
}

// plainHTTP serves --http-listen: challenges of a certificate authority, and redirects.
func (s *Server) plainHTTP() http.Handler {
	var h http.Handler = http.HandlerFunc(s.redirect)
	if a, ok := s.certificates.(*certificates.ACME); ok {
		h = a.HTTPHandler(h)
	}
	return h
}

// redirect sends browsers to HTTPS. A request that carries a key is refused instead: its
// key was sent in plain text, and a redirect would hide that mistake from its author.
func (s *Server) redirect(w http.ResponseWriter, r *http.Request) {
	base, err := url.Parse(s.baseURL)
	if err != nil || r.Header.Get("X-Api-Key") != "" || r.Header.Get("Authorization") != "" || r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Connection", "close")
		writeText(w, http.StatusForbidden, "This address only redirects browsers. Use "+s.baseURL+"; a key that was sent here in plain text should be replaced.")
		return
	}
	w.Header().Set("Location", "https://"+base.Host+"/"+strings.TrimLeft(r.URL.RequestURI(), "/"))
	writeText(w, http.StatusPermanentRedirect, "See "+s.baseURL)
}
