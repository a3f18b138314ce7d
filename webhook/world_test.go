package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/collect"
	"till/internal/seal"
	"till/provider"
	"till/store"
	"till/store/storetest"
	"till/store/webhooks"
)

// world is a database, the deliverer and endpoints on a network in memory, in
// virtual time: days pass in milliseconds, and nothing of it is a mock.
type world struct {
	t         *testing.T
	store     *store.Store
	path      string // of the database
	collector *collect.Collector
	client    *till.Client
	vault     *SecretSealer
	sender    *Sender
	acts      *Endpoints
	d         *Dispatcher
	stop      func()

	ahead atomic.Int64 // how much the database's clock is
	mu    sync.Mutex
	shops map[string]*shop // by address
}

// inWorld plays a story in virtual time, on every engine, and proves the
// books at its end.
func inWorld(t *testing.T, change func(c *Config), tell func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			database := e.Config(t)
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, database)
				w.start(change)
				tell(t, w)
				w.stop()
				for _, s := range w.shops {
					s.close()
				}
				w.sender.Close()
				storetest.CheckInvariants(t, w.store)
			})
		})
	}
}

func newWorld(t *testing.T, database store.Config) *world {
	t.Helper()
	// A database server lives outside the bubble; its clock does not.
	w := &world{t: t, path: database.Path, shops: map[string]*shop{}}
	database.Now = func() till.Time { return till.TimeOf(time.Now().Add(time.Duration(w.ahead.Load()))) }
	database.NoNotify = true
	w.store = storetest.Open(t, database)
	w.collector, w.client = storetest.NewCollector(t, w.store), storetest.NewClient(t, w.store, till.Test)
	var err error
	if w.vault, err = NewSecretSealer(seal.Single([]byte("a secret for tests only"))); err != nil {
		t.Fatal(err)
	}
	w.sender = NewSender(SenderConfig{Dial: w.dial})
	w.acts = &Endpoints{Store: w.store, Secrets: w.vault, Sender: w.sender, asLive: true, Wake: func(ctx context.Context, c till.ID) { w.d.Wake(ctx, c) }}
	return w
}

// start brings a deliverer up, as a process would after a crash.
func (w *world) start(change func(c *Config)) {
	c := Config{Store: w.store, Secrets: w.vault, Sender: w.sender, NoHints: true, SweepInterval: 15 * time.Second, Log: slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))}
	if change != nil {
		change(&c)
	}
	d := New(c)
	w.d = d
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { d.Run(ctx); close(done) }()
	w.stop = func() {
		cancel()
		<-done
		if err := d.Close(context.Background()); err != nil {
			w.t.Error(err)
		}
	}
}

func (w *world) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	w.mu.Lock()
	s := w.shops[addr]
	w.mu.Unlock()
	if s == nil || s.isDown() {
		return nil, &net.OpError{Op: "dial", Err: errors.New("nobody listens")}
	}
	ours, theirs := net.Pipe()
	select {
	case s.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// shop is a client's side: it verifies, keeps a book and answers.
type shop struct {
	w       *world
	e       *webhooks.Endpoint
	conns   chan net.Conn
	server  *http.Server
	over    chan struct{}
	mu      sync.Mutex
	secrets []Secret
	down    bool
	answer  func(r *receipt) int // nil: 200; a status, or a negative one for none at all
	after   string               // Retry-After of refusals
	book    []*receipt
	refused int // deliveries that did not verify
	tries   int
}

// receipt is one delivery that was verified, and what was answered.
type receipt struct {
	ID, Type string
	Sequence int64
	Data     struct {
		Payment *struct {
			ID     string
			Status string
		}
		Endpoint map[string]any `json:"webhook_endpoint"`
	}
	at     time.Time
	age    time.Duration
	n      int // which delivery of this id
	status int
}

// shop registers an endpoint at an address of its own.
func (w *world) shop(events ...string) *shop { w.t.Helper(); return w.shopOf(w.client, events...) }

func (w *world) shopOf(client *till.Client, events ...string) *shop {
	w.t.Helper()
	if events == nil {
		events = []string{"*"}
	}
	s := w.listen()
	url := fmt.Sprintf("http://%s/hooks", s.addr())
	made, err := w.acts.Create(context.Background(), client, &Request{URL: &url, Events: &events}, awa)
	if err != nil {
		w.t.Fatal(err)
	}
	s.e, s.secrets = made.Endpoint, []Secret{made.Secret}
	return s
}

func (s *shop) addr() string {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for addr, other := range s.w.shops {
		if other == s {
			return strings.TrimSuffix(addr, ":80")
		}
	}
	return ""
}

func (w *world) listen() *shop {
	s := &shop{w: w, conns: make(chan net.Conn), over: make(chan struct{})}
	s.server = &http.Server{Handler: s, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go s.server.Serve(s)
	w.mu.Lock()
	w.shops[fmt.Sprintf("93.184.%d.%d:80", 1+len(w.shops)/250, 1+len(w.shops)%250)] = s
	w.mu.Unlock()
	return s
}

// Accept, Close and Addr make the shop a net.Listener.
func (s *shop) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.over:
		return nil, net.ErrClosed
	}
}

func (s *shop) Close() error   { return nil }
func (s *shop) Addr() net.Addr { return &net.TCPAddr{} }

func (s *shop) close() {
	close(s.over)
	s.server.Close()
}

func (s *shop) isDown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		s.tries++
	}
	return s.down
}

func (s *shop) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// goDown makes the shop refuse connections, also on those that are open.
func (s *shop) goDown(down bool) {
	s.set(func() { s.down = down })
	if down {
		s.w.sender.Close()
	}
}

func (s *shop) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.tries++
	if err := Verify(r.Header, text, time.Now(), Tolerance, s.secrets...); err != nil {
		s.refused++
		s.mu.Unlock()
		rw.WriteHeader(http.StatusUnauthorized)
		return
	}
	rc := &receipt{at: time.Now()}
	if err := json.Unmarshal(text, rc); err != nil {
		s.w.t.Errorf("body %s: %v", text, err)
	}
	if rc.ID != r.Header.Get(HeaderID) {
		s.w.t.Errorf("webhook-id %s of event %s", r.Header.Get(HeaderID), rc.ID)
	}
	sent, _ := strconv.ParseInt(r.Header.Get(HeaderTimestamp), 10, 64)
	rc.age = time.Since(time.Unix(sent, 0))
	for _, other := range s.book {
		if other.ID == rc.ID {
			rc.n++
		}
	}
	answer := s.answer
	s.book = append(s.book, rc)
	s.mu.Unlock()
	status := http.StatusOK
	if answer != nil {
		status = answer(rc)
	}
	s.mu.Lock()
	rc.status = status
	after := s.after
	s.mu.Unlock()
	if status < 0 {
		panic(http.ErrAbortHandler)
	}
	if after != "" && status >= 400 {
		rw.Header().Set("Retry-After", after)
	}
	rw.WriteHeader(status)
	io.WriteString(rw, "thank you for "+rc.Type)
}

// got lists what was received and answered with 2xx: sequences in order.
func (s *shop) got() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, r := range s.book {
		if r.status >= 200 && r.status < 300 {
			out = append(out, strconv.FormatInt(r.Sequence, 10))
		}
	}
	return strings.Join(out, " ")
}

// sequences is what was received and answered with 2xx, each once, sorted.
func (s *shop) sequences() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[int64]bool{}
	for _, r := range s.book {
		if r.status >= 200 && r.status < 300 && r.Sequence > 0 {
			seen[r.Sequence] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// receipts is the shop's book as it is now.
func (s *shop) receipts() []*receipt {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*receipt, len(s.book))
	for i, r := range s.book {
		copied := *r
		out[i] = &copied
	}
	return out
}

// refusals is how many deliveries did not verify.
func (s *shop) refusals() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// endpoint reads the state of the shop's endpoint.
func (s *shop) endpoint() (e *webhooks.Endpoint) {
	s.w.t.Helper()
	s.w.view(func(ctx context.Context, tx *store.Tx) (err error) {
		e, err = webhooks.ReadEndpoint(ctx, tx, s.e.Ref())
		return err
	})
	return e
}

// rows lists the rows of the shop's endpoint: "sequence kind status attempts".
func (s *shop) rows() string {
	s.w.t.Helper()
	var out []string
	s.w.view(func(ctx context.Context, tx *store.Tx) error {
		rows, err := webhooks.DeliveriesBetween(ctx, tx, s.e.Ref(), 0, 1<<40)
		slices.SortFunc(rows, func(a, b *webhooks.Delivery) int { return cmp.Compare(a.Sequence, b.Sequence) })
		for _, r := range rows {
			out = append(out, fmt.Sprintf("%d %s %s %d", r.Sequence, r.Kind, r.Status, r.Attempts))
		}
		return err
	})
	return strings.Join(out, ", ")
}

// everythingArrived proves that each event of the log reached the shop, or
// that its row says what became of it; and that a state that was superseded
// is older than one that arrived.
func (s *shop) everythingArrived() {
	s.w.t.Helper()
	got := s.sequences()
	s.w.view(func(ctx context.Context, tx *store.Tx) error {
		e, err := webhooks.ReadEndpoint(ctx, tx, s.e.Ref())
		if err != nil {
			return err
		}
		events, err := tx.Events(ctx, s.w.client.ID, e.Start, 1_000_000)
		if err != nil {
			return err
		}
		rows, err := webhooks.DeliveriesBetween(ctx, tx, s.e.Ref(), 0, 1<<40)
		if err != nil {
			return err
		}
		arrived := map[till.ID]int64{}
		for _, ev := range events {
			if slices.Contains(got, ev.Sequence) {
				arrived[ev.SubjectID] = max(arrived[ev.SubjectID], ev.Sequence)
			}
		}
		for _, ev := range events {
			superseded := slices.ContainsFunc(rows, func(r *webhooks.Delivery) bool {
				return r.Sequence == ev.Sequence && r.Status == webhooks.DeliverySuperseded
			})
			if _, found := slices.BinarySearch(got, ev.Sequence); !found && e.Subscribed(ev.Kind) && !(superseded && arrived[ev.SubjectID] > ev.Sequence) {
				s.w.t.Errorf("event %d, %s, did not arrive and was not superseded by one that did", ev.Sequence, ev.Kind)
			}
		}
		return nil
	})
}

func (w *world) view(f func(ctx context.Context, tx *store.Tx) error) {
	w.t.Helper()
	ctx := context.Background()
	if err := w.store.View(ctx, func(tx *store.Tx) error { return f(ctx, tx) }); err != nil {
		w.t.Fatal(err)
	}
}

// pay makes a payment: one event.
func (w *world) pay() *till.Payment { w.t.Helper(); return w.payTo(w.client) }

func (w *world) payTo(client *till.Client) *till.Payment {
	w.t.Helper()
	defer w.d.Wake(context.Background(), client.ID)
	return storetest.NewPayment(w.t, w.collector, client, storetest.Body{})
}

// move brings an operator's word: one more event.
func (w *world) move(p *till.Payment, r provider.Result) {
	w.t.Helper()
	storetest.Apply(w.t, w.collector, w.store, p, r)
	w.d.Wake(context.Background(), w.client.ID)
}

// cases lists the open cases of an endpoint.
func (w *world) cases(id till.ID) string {
	w.t.Helper()
	var kinds []string
	w.view(func(ctx context.Context, tx *store.Tx) error {
		cs, err := tx.Cases(ctx, store.CaseFilter{Limit: 1000})
		for _, c := range cs {
			if c.SubjectID == id {
				kinds = append(kinds, c.Kind)
			}
		}
		return err
	})
	slices.Sort(kinds)
	return strings.Join(kinds, " ")
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}
