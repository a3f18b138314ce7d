package server

import (
	"context"
	"fmt"
	"net"
	"time"

	"till/internal/loop"
	"till/internal/system"
)

// The names of the sockets that systemd may hand over (FileDescriptorName= of the unit).
const (
	socketAPI     = "api"
	socketAdmin   = "admin"
	socketConsole = "console"
	socketPay     = "pay"
	socketHTTP    = "http"
)

// inherit takes the sockets that systemd has opened. A client that connects while the
// program restarts waits in them.
func (s *Server) inherit(context.Context) (err error) {
	if s.inherited, err = system.InheritedListeners(); err != nil {
		return err
	}
	for name, l := range s.inherited {
		s.undo.push(closeQuietly(l))
		if name != socketAPI && name != socketAdmin && name != socketConsole && name != socketPay && name != socketHTTP {
			return fmt.Errorf("systemd hands over a socket of the name %q: FileDescriptorName= is %s, %s, %s, %s or %s", name, socketAPI, socketAdmin, socketConsole, socketPay, socketHTTP)
		}
	}
	return nil
}

// bindOrInherit returns the socket of a name that systemd has opened, or listens on an
// address.
func (s *Server) bindOrInherit(ctx context.Context, name, address, flag string, loopbackOnly bool) (net.Listener, error) {
	l := s.inherited[name]
	if l == nil {
		return bind(ctx, address, flag, loopbackOnly)
	}
	if loopbackOnly && !system.IsLoopback(l.Addr().String()) {
		return nil, fmt.Errorf("systemd's socket %s can be reached from other machines: choose 127.0.0.1 for it, or allow it with --insecure-listen", l.Addr())
	}
	return l, nil
}

// tell notifies systemd of what the program is doing. Nothing depends on it.
func (s *Server) tell(state string) {
	if err := system.Notify(state); err != nil {
		s.log.Warn("systemd not notified", "state", state, "error", err)
	}
}

// watchdog notifies systemd that the program is alive while each of its loops is, as
// healthz says. If one hangs, systemd ends the program and starts it again. An unreachable
// database is no reason: a restart would not help, and the loops' steps end nevertheless.
func (s *Server) watchdog(ctx context.Context) {
	interval := system.WatchdogInterval() / 2
	if interval <= 0 {
		return
	}
	loop.Run(ctx, loop.Options{Interval: interval, Step: func(context.Context) time.Duration {
		s.tellAlive()
		return -1
	}})
}

func (s *Server) tellAlive() {
	if late := s.loops.late(time.Now()); len(late) > 0 {
		s.log.Error("watchdog not told", "stuck", late)
		return
	}
	s.tell("WATCHDOG=1")
}

// drain says that the program stops: readyz fails from now on. Then it goes on serving for
// a while, so that load balancers notice before connections are refused.
func (s *Server) drain() {
	s.draining.Store(true)
	s.tell("STOPPING=1")
	if s.c.Drain > 0 {
		s.log.Info("draining", "seconds", s.c.Drain.Seconds())
		time.Sleep(s.c.Drain)
	}
}
