package api

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"till"
	"till/internal/door"
)

// The limits of a connection. A slower or larger request is cut off.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second
	writeTimeout      = 75 * time.Second
	idleTimeout       = 75 * time.Second
	maxHeaderBytes    = 32 << 10
	maxConns          = 20_000
)

// Server returns the HTTP server for a handler, with the limits above. Serve it on a
// guarded listener; see Guard.
func Server(h http.Handler) *http.Server {
	hs := &http.Server{
		Handler:                      refuseUnframed(h),
		ConnContext:                  withFraming,
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            readHeaderTimeout,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeaderBytes,
	}
	s, ok := h.(*server)
	hs.ConnState = func(c net.Conn, state http.ConnState) {
		if g, guarded := c.(*guardedConn); guarded {
			g.setState(state)
			if ok && state == http.StateNew {
				g.server.Store(s)
			}
		}
	}
	if ok {
		hs.RegisterOnShutdown(s.polls.stop) // a stop must not wait for long polls
		hs.RegisterOnShutdown(s.waits.stop)
		hs.RegisterOnShutdown(s.exports.stop)
		hs.RegisterOnShutdown(s.refusalLog.Flush)
	}
	return hs
}

// Guard returns a listener whose connections give every answer the API's form. What
// net/http cannot parse never reaches a handler: net/http writes plain text to the
// connection, and nothing if headers come too slowly. A guarded connection writes a problem
// with a request id instead. The guard also limits the number of connections, in all and
// of one address, unless that is a proxy's.
func Guard(l net.Listener, proxies ...netip.Prefix) net.Listener {
	return &guard{Listener: l, max: maxConns, addresses: connections{most: maxAddressConns, exempt: proxies, all: make(map[netip.Prefix]map[*guardedConn]bool)}}
}

type guard struct {
	net.Listener
	max  int64
	open atomic.Int64

	addresses connections
}

// Accept implements net.Listener. A connection beyond the limit gets an answer and is
// closed. If it waited, the service would seem to be down.
func (g *guard) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		guarded := &guardedConn{Conn: c}
		guarded.release = sync.OnceFunc(func() {
			g.addresses.leave(guarded)
			g.open.Add(-1)
		})
		if g.open.Add(1) <= g.max && g.addresses.enter(guarded) {
			return guarded, nil
		}
		c.SetWriteDeadline(time.Now().Add(time.Second))
		b, _ := rawProblem("", till.CodeServiceUnavailable)
		c.Write(b)
		c.Close()
		g.open.Add(-1)
	}
}

// guardedConn is a connection that inspects what net/http itself writes.
type guardedConn struct {
	net.Conn
	release func()

	headersRead     atomic.Bool // the headers of a request are complete
	headerBytesRead atomic.Bool // some bytes of headers have come

	idleSince atomic.Int64 // in nanoseconds; 0 while a request is under way, and before the first

	framing framing
	server  atomic.Pointer[server] // logs what never became a request
}

// refuse writes an answer that no handler gives, and logs it.
func (c *guardedConn) refuse(code till.Code) error {
	pages, s := "", c.server.Load()
	if s != nil {
		pages = s.ErrorPages
	}
	b, id := rawProblem(pages, code)
	if s != nil {
		at, _ := netip.ParseAddrPort(c.RemoteAddr().String())
		status := refusals[code].status
		s.refusalLog.Add(door.Refusal{Reason: string(code), From: at.Addr().Unmap(), Status: status, Warn: warns(string(code), status)}, id)
	}
	_, err := c.Conn.Write(b)
	return err
}

// setState follows the connection's state. net/http sets active when the headers of a
// request are read, and idle when its answer is written.
func (c *guardedConn) setState(state http.ConnState) {
	switch state {
	case http.StateActive:
		c.idleSince.Store(0)
		c.headersRead.Store(true)
	case http.StateIdle:
		c.idleSince.Store(time.Now().UnixNano())
		c.headerBytesRead.Store(false)
		c.headersRead.Store(false)
	}
}

// Read implements net.Conn. It answers a timeout in the middle of a request's headers;
// net/http would only close the connection.
func (c *guardedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.framing.feed(b[:n]) // net/http never reads concurrently
	if n > 0 && !c.headersRead.Load() {
		c.headerBytesRead.Store(true)
	}
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) && !c.headersRead.Load() && c.headerBytesRead.CompareAndSwap(true, false) {
		c.SetWriteDeadline(time.Now().Add(time.Second))
		c.refuse(till.CodeRequestTimeout)
	}
	return n, err
}

// canned is what follows the status line in each plain text answer of net/http. None of our
// answers contains it: our JSON has no raw line breaks.
var canned = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

// Write implements net.Conn.
func (c *guardedConn) Write(b []byte) (int, error) {
	code := cannedCode(b)
	if code == "" {
		return c.Conn.Write(b)
	}
	if err := c.refuse(code); err != nil {
		return 0, err
	}
	return len(b), nil
}

// cannedCode returns the code for an answer of net/http's own, "" if b is not one. HTTP
// that we do not speak (an unknown version or encoding, an expectation) counts as an
// unreadable request.
func cannedCode(b []byte) till.Code {
	const prefix = "HTTP/1.1 "
	if len(b) < len(prefix)+3 || b[len(prefix)] < '4' || string(b[:len(prefix)]) != prefix {
		return ""
	}
	status := string(b[len(prefix) : len(prefix)+3])
	line := bytes.IndexByte(b, '\r')
	switch {
	case status == "417":
		return till.CodeMalformedBody // no handler of ours sends this
	case line < 0 || !bytes.HasPrefix(b[line:], canned):
		return ""
	case status == "431":
		return till.CodeHeadersTooLarge
	}
	return till.CodeMalformedBody
}

// CloseWrite lets net/http close in two steps, so that a client that is still sending can
// read the answer.
func (c *guardedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close implements net.Conn.
func (c *guardedConn) Close() error {
	c.release()
	return c.Conn.Close()
}

// rawProblem returns a whole answer that ends its connection, and its request id.
func rawProblem(pages string, code till.Code) (b []byte, id string) {
	now := time.Now()
	id = till.NewID(till.TimeOf(now)).String()
	e := &till.Error{Code: code}
	if code == till.CodeMalformedBody {
		e = malformed("", "The request is not HTTP that can be read.")
	}
	body := appendProblem(nil, pages, e, id)
	status := refusals[code].status
	b = append([]byte("HTTP/1.1 "), strconv.Itoa(status)+" "+http.StatusText(status)...)
	b = append(b, "\r\nContent-Type: application/problem+json\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\nApi-Version: "+Version+"\r\nX-Request-Id: "+id...)
	if status == http.StatusServiceUnavailable {
		b = append(b, "\r\nRetry-After: "+retryAfter[0]...)
	}
	b = append(b, "\r\nDate: "+now.UTC().Format(http.TimeFormat)+"\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"...)
	return append(b, body...), id
}
