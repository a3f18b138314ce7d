package sim

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"till"
	"till/account"
	"till/config"
	"till/internal/db"
	"till/internal/db/dbfault"
	"till/internal/seal"
	"till/operators"
	"till/provider/airtel"
	"till/provider/mpesa"
	"till/provider/mtnmomo"
	"till/provider/pawapay"
	"till/provider/simulator"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
)

// World is the service and all that it has to do with.
type World struct {
	T    *testing.T
	Plan *dbfault.Plan

	// wrong is told what the books contradict; T.Errorf but where a test wants it.
	wrong func(format string, args ...any)

	path  string
	base  db.Engine    // of all instances
	store *store.Store // straight to it, for people who look: no fault comes there
	ring  *seal.Ring
	file  *config.File
	other *config.File // of the second instance; nil: the same
	net   *network
	log   *slog.Logger
	text  *lockedBuffer

	operators map[string]*operator // by connection
	stopAPI   func()
	shop      *receiver // nil: the client has no endpoint
	client    *till.Client
	accounts  *account.Accounts // of whom nothing fails
	key       string
	answers   book // what the client was told

	mu        sync.Mutex
	poll      time.Duration
	instances []*instance  // nil: it is down
	removed   map[int]bool // those that are not started again
	restarts  int
	away      chan struct{} // a fault has come that may stay
	ending    chan struct{}
	ended     sync.Once
	supervise sync.WaitGroup
}

// operator is a simulated operator and its book.
type operator struct {
	name string
	book *simulator.Book
	stop func()
}

const (
	baseURL = "http://till.test/v1"
	// restartAfter is how long a process that has crashed is down: less than its leases.
	restartAfter = 2 * time.Second
	// awayFor is how long the database and the network are away, if faults stay.
	awayFor = 90 * time.Second
)

// Secret is the installation's.
var secretText = []byte("a secret of the worlds of tests!")

// lockedBuffer is a buffer that many write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// simulated are the operators: how each is opened and configured, and its address.
var simulated = []struct {
	name, addr, settings string
	open                 func(dial simulator.Dial, callbackURL string) (simulatedOperator, error)
}{
	{"mtnmomo", "127.0.0.1:1001", strings.Replace(mtnmomo.SimSettings, "127.0.0.1", "till.test", 1), func(dial simulator.Dial, _ string) (simulatedOperator, error) {
		return mtnmomo.NewSimulator(mtnmomo.SimConfig{Dial: dial})
	}},
	{"airtel", "127.0.0.1:1002", airtel.SimSettings, func(dial simulator.Dial, url string) (simulatedOperator, error) {
		return airtel.NewSimulator(airtel.SimConfig{Dial: dial, CallbackURL: url})
	}},
	{"mpesa", "127.0.0.1:1003", mpesa.SimSettings, func(dial simulator.Dial, _ string) (simulatedOperator, error) {
		// The real one refuses the same amount for two minutes. Here a second push would show.
		return mpesa.NewSimulator(mpesa.SimConfig{Dial: dial, Repeats: true})
	}},
	{"pawapay", "127.0.0.1:1004", pawapay.SimSettings, func(dial simulator.Dial, url string) (simulatedOperator, error) {
		return pawapay.NewSimulator(pawapay.SimConfig{Dial: dial, DepositCallback: url, PayoutCallback: url, RefundCallback: url})
	}},
}

type simulatedOperator interface {
	http.Handler
	Book() *simulator.Book
	Close() error
}

// otherUser is the user of another account at MTN.
const otherUser = "SIM_MTN_OTHER_USER"

// Configuration writes the file of connections into a folder and reads it: another account's
// at MTN, if so. The credentials of the simulators are in the environment.
func Configuration(folder string, other bool) (*config.File, error) {
	os.Setenv(otherUser, "0c2b6f6e-61a0-4f6c-9a44-6d2f1f0f7a11")
	var b strings.Builder
	for _, s := range simulated {
		fmt.Fprintf(&b, "[[connection]]\nname = %q\noperator = %q\nbase_url = \"http://%s\"\n[connection.%s]\n%s\n", s.name, s.name, s.addr, s.name, s.settings)
	}
	for _, route := range []string{"mtn_momo CG mtnmomo", "airtel_money CG airtel", "mpesa KE mpesa", "mtn_momo CM pawapay", "wave SN pawapay", "orange_money BF pawapay"} {
		f := strings.Fields(route)
		fmt.Fprintf(&b, "[[route]]\nmethod = %q\ncountries = [%q]\nconnections = [%q]\n", f[0], f[1], f[2])
	}
	for _, secrets := range []map[string]string{mtnmomo.SimSecrets, airtel.SimSecrets, mpesa.SimSecrets, pawapay.SimSecrets} {
		for name, value := range secrets {
			os.Setenv(name, value)
		}
	}
	text := b.String()
	if other {
		text = strings.Replace(text, "SIM_MTN_API_USER", otherUser, 1)
	}
	path := filepath.Join(folder, "till.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return operators.LoadConfig(path, nil)
}

// Options are what a story needs.
type Options struct {
	Instances int           // 0 means one
	Receiver  bool          // the client has an endpoint for webhooks
	Poll      time.Duration // how often instances look by themselves; 0 means 15 s
	Other     bool          // the second instance has another account at MTN
}

// NewWorld makes a world in a folder, inside of a bubble. Its instances are not started.
func NewWorld(t *testing.T, folder string, file *config.File, plan *dbfault.Plan) *World {
	t.Helper()
	w := &World{T: t, Plan: plan, wrong: t.Errorf, file: file, path: filepath.Join(folder, "till.db"), ring: seal.Single(secretText), operators: map[string]*operator{}, removed: map[int]bool{},
		text: &lockedBuffer{}, answers: newBook(), away: make(chan struct{}, 1), ending: make(chan struct{})}
	w.log = slog.New(slog.NewTextHandler(w.text, &slog.HandlerOptions{Level: slog.LevelInfo}))
	w.net = &network{ask: w.effect, hosts: map[string]*host{}, lost: map[string]int{}, slow: map[string]time.Duration{}}
	w.store = storetest.Open(t, store.Config{Path: w.path, Readers: 1, Wrap: func(e db.Engine) db.Engine {
		w.base = e
		return e
	}})
	w.stopAPI = w.net.serve("till", "till.test:80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		i := w.up()
		if i == nil {
			panic(http.ErrAbortHandler)
		}
		i.ServeHTTP(rw, r)
	}), nil)
	for _, s := range simulated {
		o, err := s.open(w.dialTill, operators.CallbackURL(baseURL, s.name, w.ring))
		if err != nil {
			t.Fatal(err)
		}
		stop := w.net.serve(s.name, s.addr, o, nil)
		w.operators[s.name] = &operator{s.name, o.Book(), func() { o.Close(); stop() }}
	}
	w.makeClient()
	return w
}

// makeClient makes a live client with a key.
func (w *World) makeClient() {
	ctx := context.Background()
	w.accounts = account.New(w.store, nil)
	err := w.store.Update(ctx, func(tx *store.Tx) error {
		return admin.InsertInstallation(ctx, tx, &admin.Installation{LogID: till.NewID(tx.Now()), SecretCheck: []byte("not looked at"), CreatedAt: tx.Now()})
	})
	if err == nil {
		w.client, w.key, err = w.accounts.CreateClient(ctx, "Shop", till.Live, "test")
	}
	if err == nil {
		w.key, _, err = w.accounts.CreateKey(ctx, w.client.ID, "all", till.Scopes, 0, "test")
	}
	for _, method := range []string{"mtn_momo", "airtel_money", "mpesa", "wave", "orange_money"} {
		if err == nil {
			err = w.accounts.EnableMethod(ctx, w.client.ID, method, true, "test")
		}
	}
	if err != nil {
		w.T.Fatal(err)
	}
}

// Start starts the instances. From now on they are started again when they crash.
func (w *World) Start(o Options) {
	w.poll = cmp.Or(o.Poll, 15*time.Second)
	w.instances = make([]*instance, max(1, o.Instances))
	for k := range w.instances {
		w.bringUp(k)
		w.supervise.Go(func() { w.keepUp(k) })
	}
}

// bringUp starts an instance, and again until it stays.
func (w *World) bringUp(k int) {
	for {
		i, err := w.startInstance(k)
		w.mu.Lock()
		gone := w.removed[k]
		if err == nil && !gone {
			w.instances[k] = i
		}
		w.mu.Unlock()
		switch {
		case gone && err == nil:
			i.crash()
			i.stop()
			return
		case gone, err == nil:
			return
		}
		w.log.Warn("instance not started", "error", err)
		select {
		case <-time.After(restartAfter):
		case <-w.ending:
			return
		}
	}
}

// keepUp starts an instance again whenever it has crashed, and ends faults that stay.
func (w *World) keepUp(k int) {
	for {
		i := w.instance(k)
		if i == nil {
			return // the world ends
		}
		select {
		case <-i.gone:
		case <-w.away:
			if !w.Plan.Stays() {
				continue
			}
			select {
			case <-time.After(awayFor):
			case <-i.gone:
			case <-w.ending:
				return
			}
		case <-w.ending:
			return
		}
		w.Restart(k, restartAfter)
	}
}

// Restart ends an instance, in order if it has not crashed, and starts it after a while.
func (w *World) Restart(k int, after time.Duration) {
	w.mu.Lock()
	i := w.instances[k]
	w.instances[k] = nil
	w.restarts++
	w.mu.Unlock()
	i.stop()
	time.Sleep(after)
	w.Plan.End()
	w.bringUp(k)
}

func (w *World) instance(k int) *instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.instances[k]
}

// up returns an instance that serves, nil if there is none.
func (w *World) up() *instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range w.instances {
		if i != nil && !i.isDead() {
			return i
		}
	}
	return nil
}

// next asks the plan about an effect of an instance.
func (w *World) next(i *instance, place string) dbfault.Fault {
	f := w.Plan.Next(place)
	switch f {
	case dbfault.None:
		return f
	case dbfault.Crash:
		i.crash()
	default:
		select {
		case w.away <- struct{}{}:
		default:
		}
	}
	w.log.Warn("planned fault", "fault", f.String(), "place", place)
	return f
}

// effect is next for the network, where what hangs goes on later.
func (w *World) effect(i *instance, place string) dbfault.Fault {
	f := w.next(i, place)
	if f == dbfault.Hang {
		time.Sleep(hang)
		return dbfault.None
	}
	return f
}

// dialTill connects an operator to an instance that serves.
func (w *World) dialTill(ctx context.Context, _, addr string) (net.Conn, error) {
	i := w.up()
	if i == nil {
		return nil, errRefused
	}
	return w.net.dialer(i)(ctx, "tcp", addr)
}

// Remove ends an instance for good.
func (w *World) Remove(k int) {
	w.mu.Lock()
	i := w.instances[k]
	w.removed[k] = true
	w.mu.Unlock()
	if i != nil {
		i.crash()
	}
}

// End ends the world. No fault comes any more.
func (w *World) End() { w.ended.Do(w.end) }

func (w *World) end() {
	w.Plan.Stop()
	close(w.ending)
	w.supervise.Wait()
	for _, i := range w.instances {
		if i != nil {
			i.stop()
		}
	}
	time.Sleep(2 * hang) // what hangs ends
	for _, o := range w.operators {
		o.stop()
	}
	w.stopAPI()
	if w.shop != nil {
		w.shop.stop()
	}
}

// Close closes the database.
func (w *World) Close() {
	if err := w.store.Close(); err != nil {
		w.T.Error(err)
	}
}
