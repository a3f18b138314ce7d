package sim

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"till/internal/db/dbfault"
)

// network connects instances, operators and receivers in memory.
type network struct {
	ask   func(i *instance, place string) dbfault.Fault
	mu    sync.Mutex
	hosts map[string]*host         // by address
	lost  map[string]int           // places that fail so many times, as the story says
	slow  map[string]time.Duration // places that are slow once
}

// effect lets the story and then the plan decide what becomes of an effect.
func (n *network) effect(i *instance, place string) dbfault.Fault {
	n.mu.Lock()
	lost, slow := n.lost[place] > 0, n.slow[place]
	if lost {
		n.lost[place]--
	}
	delete(n.slow, place)
	n.mu.Unlock()
	time.Sleep(slow)
	if lost {
		return dbfault.Error
	}
	return n.ask(i, place)
}

// Lose lets the next effects at a place fail.
func (n *network) Lose(place string, times int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lost[place] = times
}

// Delay lets the next effect at a place take a while.
func (n *network) Delay(place string, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slow[place] = d
}

// host listens at an address: it is a net.Listener.
type host struct {
	name  string
	conns chan net.Conn
	over  chan struct{}
	end   sync.Once
}

var errRefused = &net.OpError{Op: "dial", Err: errors.New("connection refused")}

// listen makes a host.
func (n *network) listen(name, addr string) *host {
	h := &host{name: name, conns: make(chan net.Conn), over: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[addr] = h
	return h
}

// serve serves a handler at an address until the returned function is called: by TLS if
// there is a certificate.
func (n *network) serve(name, addr string, handler http.Handler, certificate *tls.Certificate) (stop func()) {
	h := n.listen(name, addr)
	s := &http.Server{Handler: handler, ErrorLog: discardLog}
	var l net.Listener = h
	if certificate != nil {
		l = tls.NewListener(h, &tls.Config{Certificates: []tls.Certificate{*certificate}, NextProtos: []string{"http/1.1"}})
	}
	done := make(chan struct{})
	go func() { s.Serve(l); close(done) }()
	return func() {
		h.Close()
		s.Close()
		<-done
	}
}

// Accept implements net.Listener.
func (h *host) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.over:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *host) Close() error {
	h.end.Do(func() { close(h.over) })
	return nil
}

// Addr implements net.Listener.
func (h *host) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// connect connects to an address.
func (n *network) connect(ctx context.Context, addr string) (net.Conn, string, error) {
	n.mu.Lock()
	h := n.hosts[addr]
	n.mu.Unlock()
	if h == nil {
		return nil, addr, errRefused
	}
	ours, theirs := net.Pipe()
	select {
	case h.conns <- theirs:
		return ours, h.name, nil
	case <-h.over:
		return nil, h.name, errRefused
	case <-ctx.Done():
		return nil, h.name, ctx.Err()
	}
}

// name returns who is at an address.
func (n *network) name(addr string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h := n.hosts[addr]; h != nil {
		return h.name
	}
	return addr
}

// dialer returns how an instance connects to others.
func (n *network) dialer(i *instance) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, _, addr string) (net.Conn, error) {
		if n.effect(i, "dial "+n.name(addr)) != dbfault.None || i.isDead() {
			return nil, errRefused
		}
		c, name, err := n.connect(ctx, addr)
		if err != nil {
			return nil, err
		}
		return i.hold(&conn{Conn: c, n: n, i: i, name: name}), nil
	}
}

// conn is one side of a connection, whose requests and answers are effects: of the instance
// that it belongs to.
type conn struct {
	net.Conn
	n    *network
	i    *instance
	name string

	mu    sync.Mutex
	asked string // the request whose answer was not read yet
}

var errCut = errors.New("the connection was cut")

// Write implements net.Conn. The first piece of a request is an effect; nothing of it is
// sent if that fails.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	begins := c.asked == "" || isRequest(b)
	if begins {
		c.asked = c.name + " " + requestOf(b)
	}
	asked := c.asked
	c.mu.Unlock()
	if begins && c.n.effect(c.i, "request "+asked) != dbfault.None {
		c.Conn.Close()
		return 0, errCut
	}
	return c.Conn.Write(b)
}

// Read implements net.Conn. The first piece of an answer is an effect; if that fails, the
// answer is lost.
func (c *conn) Read(b []byte) (int, error) {
	k, err := c.Conn.Read(b)
	c.mu.Lock()
	asked := c.asked
	if k > 0 {
		c.asked = ""
	}
	c.mu.Unlock()
	if k > 0 && asked != "" && c.n.effect(c.i, "answer "+asked) != dbfault.None {
		c.Conn.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return k, err
}

// isRequest reports whether a piece begins a request.
func isRequest(b []byte) bool {
	line, _, found := bytes.Cut(b, []byte("\r\n"))
	return found && bytes.HasSuffix(line, []byte(" HTTP/1.1"))
}

// requestOf returns the method and path of a request, without what differs each time.
func requestOf(b []byte) string {
	line, _, _ := bytes.Cut(b, []byte("\r\n"))
	words := strings.Fields(string(line))
	if len(words) < 2 {
		return "-"
	}
	path, _, _ := strings.Cut(words[1], "?")
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if len(p) > 20 {
			parts[i] = "*"
		}
	}
	return words[0] + " " + strings.Join(parts, "/")
}

// hang is longer than any lease.
const hang = 30 * time.Second
