package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"till/api"
	"till/internal/system"
)

// listen binds the addresses of this role. Clients that connect before Run wait in the
// kernel's queue.
func (s *Server) listen(ctx context.Context) (err error) {
	if s.c.Role.serves() {
		if s.listener, err = s.bindOrInherit(ctx, socketAPI, s.c.Listen, "--listen", s.c.LoopbackOnly); err != nil {
			return err
		}
		s.undo.push(closeQuietly(s.listener))
	}
	if s.c.AdminListen != "" {
		if s.adminListener, err = s.bindOrInherit(ctx, socketAdmin, s.c.AdminListen, "--admin-listen", false); err != nil {
			return err
		}
		s.undo.push(closeQuietly(s.adminListener))
	}
	if s.c.ConsoleListen != "" && !s.c.NoConsole && s.c.Role.serves() {
		if s.consoleListener, err = s.bindOrInherit(ctx, socketConsole, s.c.ConsoleListen, "--console-listen", s.c.LoopbackOnly); err != nil {
			return err
		}
		s.undo.push(closeQuietly(s.consoleListener))
	}
	if s.c.PayListen != "" && !s.c.NoPages && s.c.Role.serves() {
		if s.payListener, err = s.bindOrInherit(ctx, socketPay, s.c.PayListen, "--pay-listen", s.c.LoopbackOnly); err != nil {
			return err
		}
		s.undo.push(closeQuietly(s.payListener))
	}
	if s.c.HTTPListen != "" && s.c.Role.serves() {
		if s.httpListener, err = s.bindOrInherit(ctx, socketHTTP, s.c.HTTPListen, "--http-listen", false); err != nil {
			return err
		}
		s.undo.push(closeQuietly(s.httpListener))
	}
	s.baseURL = s.c.baseURL(s.reachable())
	return nil
}

// closeQuietly closes a listener, which its HTTP server may have done already.
func closeQuietly(l net.Listener) func() error {
	return func() error {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}

// errNotLoopback says that other machines could reach an address.
var errNotLoopback = errors.New("other machines can reach it")

// refuseNonLoopback refuses to listen on an address that other machines can reach. It gets
// the resolved address before it is bound.
func refuseNonLoopback(_, address string, _ syscall.RawConn) error {
	if !system.IsLoopback(address) {
		return errNotLoopback
	}
	return nil
}

// bind listens on an address. Its error says why it cannot and what to do.
func bind(ctx context.Context, address, flag string, loopbackOnly bool) (net.Listener, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%s %q is not an address such as 127.0.0.1:8080", flag, address)
	}
	config := net.ListenConfig{}
	if loopbackOnly {
		config.Control = refuseNonLoopback
	}
	l, err := config.Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, errNotLoopback):
		return nil, fmt.Errorf("%s %s can be reached from other machines: choose 127.0.0.1:%s, or allow it with --insecure-listen", flag, address, port)
	case system.IsInUse(err):
		return nil, fmt.Errorf("port %s is in use; choose another with %s", port, flag)
	case system.IsForbidden(err):
		return nil, fmt.Errorf("this user may not listen on port %s; choose another with %s", port, flag)
	case err != nil:
		return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	return l, nil
}

// reachable returns the API's address in a form that works on this machine.
func (s *Server) reachable() string {
	address := s.c.Listen
	if s.listener != nil {
		address = s.listener.Addr().String()
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// httpServers is the HTTP servers while they run.
type httpServers struct {
	servers []*httpServer
	errs    chan error // at most one per server
}

type httpServer struct {
	*http.Server
	listener net.Listener
	accepted chan struct{} // closed when it accepts no more
	fresh    sync.Map      // connections that have sent no request yet
}

// newConnections is how long a stop waits for the first requests of new connections.
const newConnections = time.Second

// noteState keeps fresh.
func (h *httpServer) noteState(c net.Conn, s http.ConnState) {
	if s == http.StateNew {
		h.fresh.Store(c, nil)
	} else {
		h.fresh.Delete(c)
	}
}

// stopAccepting accepts no more connections. Shutdown drops a request that it has not seen
// begin, so those of connections that were accepted already are let in first.
func (h *httpServer) stopAccepting() {
	h.listener.Close()
	<-h.accepted
	for end := time.Now().Add(newConnections); time.Now().Before(end); time.Sleep(time.Millisecond) {
		waiting := false
		h.fresh.Range(func(any, any) bool { waiting = true; return false })
		if !waiting {
			return
		}
	}
}

// serve starts an HTTP server on each address.
func (s *Server) serve() *httpServers {
	w := &httpServers{errs: make(chan error, 5)}
	proxies := s.operators.File.TrustedProxies
	if s.listener != nil {
		h := api.Server(s.handler)
		h.Handler = s.watchForwarded(h.Handler)
		if s.console != nil {
			h.RegisterOnShutdown(s.console.Stop)
		}
		if s.pay != nil {
			h.RegisterOnShutdown(s.stopPay)
		}
		w.start(s.log, s.overTLS(h), api.Guard(s.encrypted(s.listener), proxies...))
	}
	if s.consoleListener != nil {
		h := api.Server(s.console)
		h.Handler = s.watchForwarded(h.Handler)
		h.RegisterOnShutdown(s.console.Stop)
		w.start(s.log, s.overTLS(h), api.Guard(s.encrypted(s.consoleListener), proxies...))
	}
	if s.payListener != nil && s.pay != nil {
		h := api.Server(s.pay)
		h.Handler = s.watchForwarded(h.Handler)
		h.RegisterOnShutdown(s.stopPay)
		w.start(s.log, s.overTLS(h), api.Guard(s.encrypted(s.payListener), proxies...))
	}
	if s.httpListener != nil {
		w.start(s.log, api.Server(s.plainHTTP()), api.Guard(s.httpListener, proxies...))
	}
	if s.adminListener != nil {
		w.start(s.log, api.Server(s.admin()), api.Guard(s.adminListener))
	}
	return w
}

func (w *httpServers) start(log *slog.Logger, h *http.Server, l net.Listener) {
	if h.ErrorLog == nil {
		h.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	}
	started := &httpServer{Server: h, listener: l, accepted: make(chan struct{})}
	next := h.ConnState // api.Server's
	h.ConnState = func(c net.Conn, s http.ConnState) {
		started.noteState(c, s)
		if next != nil {
			next(c, s)
		}
	}
	w.servers = append(w.servers, started)
	go func() {
		defer close(started.accepted)
		if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			w.errs <- fmt.Errorf("serve %s: %w", l.Addr(), err)
		}
	}()
}

// stop accepts no more requests and lets those under way finish. The admin address stops
// last, so that a monitor can follow the stop.
func (w *httpServers) stop(log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), requestsTimeout)
	defer cancel()
	for _, h := range w.servers {
		h.stopAccepting()
		if err := h.Shutdown(ctx); err != nil {
			log.Warn("requests aborted", "error", err)
			h.Close()
		}
	}
}

func addrOf(l net.Listener) net.Addr {
	if l == nil {
		return nil
	}
	return l.Addr()
}
