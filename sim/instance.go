package sim

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"till/config"
	"till/engine"
	"till/internal/db"
	"till/internal/db/dbfault"
	"till/operators"
	"till/provider"
	"till/server"
	"till/store"
	"till/tokens"
	"till/webhook"
)

// instance is one process of the service.
type instance struct {
	w      *World
	file   *config.File
	engine *dbfault.Engine
	store  *store.Store
	j      *server.Joined
	cancel context.CancelFunc
	loops  sync.WaitGroup

	dead atomic.Bool
	gone chan struct{} // closed when it has crashed

	mu       sync.Mutex
	conns    map[net.Conn]bool
	closed   bool           // no request comes in any more
	requests sync.WaitGroup // of clients and operators, under way
}

// startInstance starts a process. It fails where the real one would end again at once.
func (w *World) startInstance(k int) (*instance, error) {
	i := &instance{w: w, file: w.file, gone: make(chan struct{}), conns: map[net.Conn]bool{}}
	if k > 0 && w.other != nil {
		i.file = w.other
	}
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{Path: w.path, NoNotify: true, Log: w.log, Wrap: func(db.Engine) db.Engine {
		i.engine = dbfault.New(w.base, dbfault.Config{Next: func(place string) dbfault.Fault { return w.next(i, place) }, Hang: hang, Shared: true})
		return i.engine
	}})
	if err != nil {
		return nil, err
	}
	i.store = s
	if err := i.join(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	work, cancel := context.WithCancel(ctx)
	i.cancel = cancel
	for name, run := range i.j.Workers() {
		i.loops.Go(func() { i.keepRunning(work, name, run) })
	}
	return i, nil
}

// join joins the parts, as the server does.
func (i *instance) join(ctx context.Context) error {
	w := i.w
	k, err := tokens.New(i.store, w.ring, w.log)
	if err != nil {
		return err
	}
	deps := operators.DepsOf(k, baseURL, w.ring, w.log)
	ops, err := operators.Open(i.file, nil, func(c *config.Connection) provider.Deps {
		d := deps(c)
		d.Dial = w.net.dialer(i)
		return d
	})
	if err != nil {
		return err
	}
	if err := operators.Register(ctx, i.store, ops.Payments, ops.Payouts); err != nil {
		return err
	}
	if err := operators.RegisterRefunds(ctx, i.store, ops.Refunds(ops.Payments, ops.Payouts).Origins); err != nil {
		return err
	}
	i.j, err = server.Join(&server.Opened{
		Store: i.store, Ring: w.ring, Operators: ops, BaseURL: baseURL, PageURL: "https://pay.till.test", Log: w.log,
		Engine: engine.Config{PollInterval: w.poll, HealthInterval: 2 * w.poll}, FollowEvery: w.poll,
		Dispatch: webhook.Config{SweepInterval: w.poll, NoHints: true},
		Sender:   webhook.SenderConfig{Dial: w.dialReceiver(i), Roots: receiverRoots()},
	})
	return err
}

// keepRunning runs a worker until ctx ends. None may panic.
func (i *instance) keepRunning(ctx context.Context, name string, run func(context.Context)) {
	defer func() {
		if v := recover(); v != nil {
			i.w.T.Errorf("%s panicked: %v", name, v)
		}
	}()
	run(ctx)
}

// crash ends the instance in the middle of what it does: nothing reaches the database or the
// network any more, and nothing comes from there.
func (i *instance) crash() {
	if i.dead.Swap(true) {
		return
	}
	i.engine.Kill()
	i.mu.Lock()
	for c := range i.conns {
		c.Close()
	}
	i.mu.Unlock()
	close(i.gone)
}

func (i *instance) isDead() bool { return i.dead.Load() }

// hold keeps a connection, to be cut when the instance ends.
func (i *instance) hold(c net.Conn) net.Conn {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.conns[c] = true
	if i.isDead() {
		c.Close()
	}
	return c
}

// stop ends the instance: in order, or the goroutines that a crash left.
func (i *instance) stop() {
	i.mu.Lock()
	i.closed = true
	i.mu.Unlock()
	i.requests.Wait()
	i.cancel()
	i.loops.Wait()
	most := time.Minute
	if i.isDead() {
		most = 0
	}
	i.j.Close(most)
	i.mu.Lock()
	for c := range i.conns {
		c.Close()
	}
	i.mu.Unlock()
	if i.isDead() {
		return // what still runs finds the database away, and ends
	}
	if err := i.store.Close(); err != nil {
		i.w.T.Errorf("close the store: %v", err)
	}
}

// ServeHTTP serves the API. Nothing comes from an instance that has crashed.
func (i *instance) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	if i.closed {
		i.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	i.requests.Add(1)
	i.mu.Unlock()
	defer i.requests.Done()
	i.j.Handler().ServeHTTP(rw, r)
	if i.isDead() {
		panic(http.ErrAbortHandler)
	}
}

var discardLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
