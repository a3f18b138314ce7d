package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"till"
	"till/api"
	"till/books"
	"till/certificates"
	"till/console/shell"
	"till/engine"
	"till/internal/logs"
	"till/internal/loop"
	"till/internal/seal"
	"till/internal/trace"
	"till/journal"
	"till/meter"
	"till/operators"
	"till/pay"
	"till/people"
	"till/provider/sandbox"
	"till/reference"
	"till/sdk"
	"till/secret"
	"till/store"
	"till/upkeep"
	"till/webhook"
)

// Server is the program, started but not yet running.
type Server struct {
	c   Config
	log *slog.Logger
	id  till.ID // of this instance, new with each start

	listener, adminListener, consoleListener, payListener, httpListener net.Listener // nil if there is none
	baseURL                                                             string

	certificates certificates.Source // nil: no TLS
	reloads      *loop.Waker         // a person asks to check certificates now
	reloadNow    atomic.Bool
	pulses       *loop.Waker // what this instance holds has changed
	credentials  *operators.Credentials
	markets      *operators.Markets

	store     *store.Store
	secret    []byte // the root of ring
	ring      *seal.Ring
	sandbox   *sandbox.Operator
	operators *operators.Operators
	*Joined
	people    *people.People  // nil where there is no console
	console   *shell.Console  // the same
	pages     *reference.Site // for developers; nil if they are off
	packages  http.Handler    // of the SDKs; nil if the pages are off
	pay       *pay.Pages      // for customers; nil if they are off
	payStop   chan struct{}   // closed when they stop waiting
	payOnce   sync.Once
	demo      *Demo
	liveDemo  *Demo
	demoToken string // "": the demo has no people

	inherited map[string]net.Listener // sockets that systemd has opened, by name
	draining  atomic.Bool             // a stop has begun

	meter   *meter.Meter    // nil: nothing is counted
	tracer  *trace.Tracer   // nil: nothing is traced
	journal *journal.Writer // nil: there is none
	loops   loops
	answers *kept[error]  // the database
	status  *kept[[]byte] // in JSON; nil: the database does not answer

	// What the turns have shown of the books, to notice what is new. Only the loop of turns
	// uses them.
	noticedAt    till.Time
	noticed      map[string]float64
	noticedCases map[string]int64 // open cases by kind

	undo  undoStack
	close func() error
}

// How long the parts of a stop may take. A longer request is cut off. A longer call to an
// operator is checked after the next start.
const (
	requestsTimeout = 10 * time.Second
	callsTimeout    = engine.Lease
)

// analyzeInterval is how soon a table is analyzed after its first rows, shrinkInterval how
// long a cache has time to be of use.
const (
	analyzeInterval = 2 * time.Second
	shrinkInterval  = 5 * time.Second
)

// New locks the database, opens everything and binds the addresses. If something fails, it
// undoes what it has done. The caller runs the Server or closes it.
func New(ctx context.Context, c Config) (*Server, error) {
	if err := c.setDefaults(); err != nil {
		return nil, err
	}
	if !store.IsPostgres(c.Database) {
		if err := os.MkdirAll(filepath.Dir(c.Database), 0o700); err != nil {
			return nil, fmt.Errorf("make the folder of the database: %w", err)
		}
	}
	log, endFaults := logs.CountFaults(c.Log)
	s := &Server{c: c, log: log, id: till.NewID(till.TimeOf(time.Now())), reloads: loop.NewWaker(), pulses: loop.NewWaker()}
	s.answers, s.status = &kept[error]{read: s.checkDatabase, time: readyCacheTime}, &kept[[]byte]{read: s.readStatus, time: statusCacheTime}
	s.close = sync.OnceValue(s.undo.run)
	s.undo.push(func() error { endFaults(); return nil }) // the last
	steps := []func(context.Context) error{
		s.extendPhonePatterns, s.openMeter, s.openTracer, s.lock, s.inherit, s.listen, s.openStore, s.openSecret, s.openJournal, s.openCertificates, s.openSandbox, s.openOperators,
		s.registerConnections, s.warnOrphans, s.build, s.openDemos, s.warnExposed,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			if undone := s.close(); undone != nil {
				s.log.Error("startup not undone", "error", undone)
			}
			return nil, err
		}
	}
	return s, nil
}

// undoStack holds what to undo, in reverse order.
type undoStack []func() error

func (u *undoStack) push(f func() error) { *u = append(*u, f) }

func (u *undoStack) run() error {
	var errs []error
	for i := len(*u) - 1; i >= 0; i-- {
		errs = append(errs, (*u)[i]())
	}
	return errors.Join(errs...)
}

func (s *Server) lock(context.Context) error {
	if store.IsPostgres(s.c.Database) {
		return nil
	}
	l, err := takeLock(s.c.Database)
	if err == nil {
		s.undo.push(l.release)
	}
	return err
}

func (s *Server) openStore(ctx context.Context) (err error) {
	if s.store, err = store.Open(ctx, store.Config{
		Path: s.c.Database, NoNotify: s.c.NoNotify && store.IsPostgres(s.c.Database), PlainSQL: s.c.PlainSQL, Observer: s.meter.NewDatabase(), Log: s.log,
	}); err != nil {
		return fmt.Errorf("the database cannot be opened: %w", err)
	}
	s.undo.push(s.store.Close)
	s.meterStore()
	if err := s.refuseStop(ctx); err != nil {
		return err
	}
	applied, err := s.store.Migrate(ctx)
	if n := len(applied); n > 0 {
		s.logChanged("migration", applied[n-1], "", "applied", fmt.Sprintf("%d migrations, the first is %s", n, applied[0]))
	}
	return err
}

func (s *Server) openSecret(ctx context.Context) (err error) {
	if s.ring, err = secret.Open(ctx, s.store, s.c.SecretFile, s.c.databaseName()); err == nil {
		s.secret = s.ring.Root()
	}
	return err
}

func (s *Server) openSandbox(ctx context.Context) (err error) {
	s.sandbox, err = sandbox.Open(ctx, sandbox.Config{
		Path: s.c.SandboxPath, Window: s.c.ApprovalWindow, Post: s.postCallback, Log: s.log,
	})
	if err == nil {
		s.undo.push(s.sandbox.Close)
	}
	return err
}

// build connects the parts.
func (s *Server) build(context.Context) (err error) {
	o := s.opened()
	allow, err := webhook.ParseAllowed(s.c.WebhookAllow)
	if err != nil {
		return err
	}
	proxy, err := webhook.ParseProxy(s.c.WebhookProxy)
	if err != nil {
		return err
	}
	o.Sender = webhook.SenderConfig{Allow: allow, Proxy: proxy}
	o.Engine = engine.Config{LogEnded: s.c.LogEnded, Lease: s.c.Lease, MaxBatch: s.c.MaxBatch}
	if s.journal != nil {
		o.Engine.Journal = s.journal
	}
	if !s.c.NoDocs {
		s.pages = reference.New(reference.Config{OpenAPI: api.OpenJSON, BaseURL: s.baseURL, Log: s.log})
		s.packages = sdk.Handler(strings.TrimSuffix(s.baseURL, "/v1") + sdk.Prefix)
	}
	o.API = api.Config{ErrorPages: s.errorPages(), RateLimit: s.c.RateLimit, TestQuota: s.c.TestQuota, Beside: s.beside}
	j, err := Join(o)
	if err != nil {
		return err
	}
	s.Joined = j
	s.undo.push(func() error { j.Close(callsTimeout); return nil })
	if err := s.buildPay(); err != nil {
		return err
	}
	return s.buildConsole()
}

// opened returns what the parts are joined from.
func (s *Server) opened() *Opened {
	return &Opened{
		Store: s.store, Ring: s.ring, Operators: s.operators, Sandbox: s.sandbox, Operator: s.c.Operator, BaseURL: s.baseURL, PageURL: s.payBase(), PageHosts: s.payHosts(),
		AcceptOnly: !s.c.Role.works(), Markets: s.markets.Of, Meter: s.meter, Tracer: s.tracer, Log: s.log,
	}
}

// Close undoes New for a Server that was never run.
func (s *Server) Close() error { return s.close() }

// Run serves and works until ctx ends, an address fails, or another release has migrated
// the database. Then it stops in order and closes the Server. It returns nil after a clean
// stop. A Server runs once.
func (s *Server) Run(ctx context.Context) error {
	// The work goes on until the last request has been answered.
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	var workers sync.WaitGroup
	for name, run := range s.workers() {
		workers.Go(func() { s.keepRunning(work, name, run) })
	}
	changed, lacking := make(chan error, 1), make(chan error, 1)
	workers.Go(func() {
		s.keepRunning(work, "schema", func(ctx context.Context) { s.watchSchema(ctx, changed) })
	})
	workers.Go(func() {
		s.keepRunning(work, "keyring", func(ctx context.Context) { s.keyring().Run(ctx, lacking) })
	})
	web := s.serve()
	s.tell("READY=1")
	s.logChanged("start", s.id.String(), "", s.c.Version, string(s.c.Role))
	if f := s.c.Operators; f != nil {
		s.logChanged("configuration", filepath.Base(f.Path), "", f.Digest, "read at the start")
	}
	workers.Go(func() { s.watchdog(work) })
	s.log.Info("ready", "base_url", s.baseURL, "role", string(s.c.Role), "database", s.c.databaseName())

	var failure error
	select {
	case <-ctx.Done():
		s.drain()
	case failure = <-web.errs:
	case failure = <-changed:
		s.log.Error("database migrated by another release", "error", failure)
	case failure = <-lacking:
		s.log.Error("generation of the secret missing", "error", failure)
	}
	s.log.Info("stopping")
	web.stop(s.log)
	stopWork()
	workers.Wait()
	err := errors.Join(failure, s.close())
	s.logChanged("stop", s.id.String(), s.c.Version, "", errorText(failure))
	s.log.Info("stopped")
	return err
}

// workers returns what runs beside the requests.
func (s *Server) workers() map[string]func(context.Context) {
	w := s.Joined.Workers()
	maps.Copy(w, map[string]func(context.Context){
		"audit chains": func(ctx context.Context) { books.RunChains(ctx, s.store, s.sealKey, s.log, s.logActs) },
		"audit heads":  func(ctx context.Context) { books.RunHeads(ctx, s.store, s.log) },
		"phones":       func(ctx context.Context) { upkeep.RunIndexes(ctx, s.store, s.phoneKey, s.log) },
		"rollup":       func(ctx context.Context) { upkeep.RunRollUp(ctx, s.store, s.log) },
		"statistics":   s.analyzeTables,
		"memory":       s.shrinkCaches,
		"pulse":        s.pulse,
		"turns":        s.takeTurns,
	})
	if s.journal != nil {
		w["journal"] = s.journal.Run
	}
	if s.tracer != nil {
		w["traces"] = s.tracer.Run
	}
	if s.certificates != nil {
		w["certificates"] = s.lookAtCertificates
	}
	if s.people != nil {
		w["people"] = s.people.Run
	}
	if s.markets.Any() {
		w["markets"] = s.markets.Run
	}
	if s.credentials.Any() {
		w["credentials"] = s.credentials.Run
	}
	return w
}

// keyring returns what follows the generations of the secret.
func (s *Server) keyring() *secret.Watch {
	return &secret.Watch{
		Store: s.store, Ring: s.ring, File: s.c.SecretFile, Reseals: s.c.Role.works(), Held: s.pulses.Wake, Log: s.log,
		Used: func(before, now int) {
			s.logChanged("secret", "generation", strconv.Itoa(before), strconv.Itoa(now), "")
		},
	}
}

// analyzeTables runs ANALYZE on new tables as soon as they have rows.
func (s *Server) analyzeTables(ctx context.Context) {
	loop.Run(ctx, loop.Options{Interval: analyzeInterval, Step: func(ctx context.Context) time.Duration {
		tables, err := s.store.AnalyzeNewTables(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("tables not analyzed", "error", err)
		}
		if len(tables) > 0 {
			s.log.Info("tables analyzed", "tables", tables)
		}
		return -1
	}})
}

// shrinkCaches gives back the database's caches that nobody used for a while.
func (s *Server) shrinkCaches(ctx context.Context) {
	loop.Run(ctx, loop.Options{Interval: shrinkInterval, Step: func(context.Context) time.Duration {
		s.store.Shrink()
		return -1
	}})
}

// Addr returns the API's address, nil if it is not served.
func (s *Server) Addr() net.Addr { return addrOf(s.listener) }

// AdminAddr returns the address of the health checks, nil if there is none.
func (s *Server) AdminAddr() net.Addr { return addrOf(s.adminListener) }

// HTTPAddr returns the address of --http-listen, nil if there is none.
func (s *Server) HTTPAddr() net.Addr { return addrOf(s.httpListener) }

// BaseURL returns the address at which clients reach the API.
func (s *Server) BaseURL() string { return s.baseURL }

// Demo returns the demo client, nil if none was requested.
func (s *Server) Demo() *Demo { return s.demo }

// LiveDemo returns the live demo client, nil if none was requested.
func (s *Server) LiveDemo() *Demo { return s.liveDemo }
