package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"till"
	"till/account"
	"till/books"
	"till/internal/seal"
	"till/internal/testport"
	"till/operators"
	"till/provider/airtel"
	"till/provider/mpesa"
	"till/provider/mtnmomo"
	"till/provider/pawapay"
	"till/provider/simulator"
	"till/secret"
	"till/store"
)

// TestStorm sends payments and payouts through every adapter to its simulated
// operator, of whose calls and callbacks a tenth goes wrong in each way there
// is, and kills the service three times in the middle. At the end the
// operators' books decide: nobody paid or was paid twice, and Till says success
// exactly where money moved. TILL_PAYMENTS and TILL_PAYOUTS say how many.
func TestStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("make quick leaves it out: it runs servers for many seconds")
	}
	t.Parallel() // it mostly waits: what a killed process held is left alone until its lease ends
	payments, payouts := asked("TILL_PAYMENTS", 80), asked("TILL_PAYOUTS", 30)
	s := newStorm(t)
	s.start()
	s.open()
	s.place(orders(payments, payouts), 3)
	// What an operator never took is sent three times, and given up after that: with
	// every third call going wrong, this alone may take two minutes.
	s.settle(time.Duration(240+(payments+payouts)/10) * time.Second)
	s.stop(syscall.SIGTERM)
	s.compare(true)
	verifyHere(t, s.database)
	if t.Failed() {
		t.Logf("the log of the service ends with\n%s", s.tail())
	}
}

// storm is a service, its operators, and what its client asked for.
type storm struct {
	t        *testing.T
	dir      string
	database string // a file or a URL
	faults   simulator.Faults
	env      []string // of the service, beside the operators' secrets
	addr     string   // of the service: the same after a restart, for it is in the operators' portals
	key      string
	client   till.ID
	stages   simulatorServers
	books    map[string]*simulator.Book // by connection
	cmd      *exec.Cmd
	kills    int
}

// stormy is what goes wrong in a storm. What is slow takes longer than anybody
// waits.
var stormy = simulator.Faults{LostRequest: 0.1, LostResponse: 0.1, ServerError: 0.1, LostCallback: 0.1, DuplicateCallback: 0.1,
	LateSuccess: 0.1, Slow: 0.1, SlowBy: 2500 * time.Millisecond, Tokens: true}

// keptAddr returns an address for a service that is stopped and started again.
func keptAddr(t *testing.T) string {
	t.Helper()
	addr, err := testport.Free()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func newStorm(t *testing.T) *storm {
	dir := t.TempDir()
	return newStormOn(t, &storm{dir: dir, database: filepath.Join(dir, "till.db"), faults: stormy})
}

// newStormOn sets a storm up in a folder and on a database.
func newStormOn(t *testing.T, s *storm) *storm {
	s.t, s.books = t, map[string]*simulator.Book{}
	s.addr = keptAddr(t)
	s.makeClient()
	t.Cleanup(func() { s.stages.end() })
	var text strings.Builder
	for _, sim := range s.simulations() {
		st, err := startSimulator(t.Context(), &sim, "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.stages = append(s.stages, st)
		text.WriteString(sim.connection(st.url))
	}
	for _, route := range []string{`"mtn_momo"|CG|"mtnmomo", "pawapay"`, `"airtel_money"|CG|"airtel"`, `"mpesa"|KE|"mpesa"`, `"mtn_momo"|CM|"pawapay"`} {
		f := strings.Split(route, "|")
		fmt.Fprintf(&text, "[[route]]\nmethod = %s\ncountries = [%q]\nconnections = [%s]\n", f[0], f[1], f[2])
	}
	if err := os.WriteFile(filepath.Join(s.dir, "till.toml"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// makeClient makes a live client with money to pay out.
func (s *storm) makeClient() {
	s.t.Helper()
	ctx := s.t.Context()
	db, err := store.Open(ctx, store.Config{Path: s.database})
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Migrate(ctx); err != nil {
		s.t.Fatal(err)
	}
	a := account.New(db, nil)
	c, _, err := a.CreateClient(ctx, "Storm", till.Live, "test")
	if err != nil {
		s.t.Fatal(err)
	}
	s.client = c.ID
	for _, method := range []string{"mtn_momo", "airtel_money", "mpesa"} {
		if err := a.EnableMethod(ctx, c.ID, method, true, "test"); err != nil {
			s.t.Fatal(err)
		}
	}
	if s.key, _, err = a.CreateKey(ctx, c.ID, "storm", []till.Scope{"payments:write", "payments:read", "payouts:write", "payouts:read"}, 0, "test"); err != nil {
		s.t.Fatal(err)
	}
	for _, currency := range []string{"XAF", "KES"} {
		_, err := books.Adjust(ctx, db, books.Adjustment{Client: c.ID, ID: till.NewID(db.Now()), Amount: till.Money{Minor: 1_000_000_000, Currency: currency},
			Reason: "to pay out", By: "test"})
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// decide is how long simulated customers take.
const decide = 500 * time.Millisecond

// simulations are the operators.
func (s *storm) simulations() []simulation {
	f := s.faults
	return []simulation{
		{name: "mtnmomo", settings: mtnmomo.SimSettings, secrets: mtnmomo.SimSecrets,
			open: func(_ simulator.Faults, path, _ string) (http.Handler, error) {
				o, err := mtnmomo.NewSimulator(mtnmomo.SimConfig{Faults: f, Path: path, Decide: decide})
				return s.keep("mtnmomo", o, err)
			}},
		{name: "airtel", settings: airtel.SimSettings, secrets: airtel.SimSecrets,
			open: func(_ simulator.Faults, path, callbackURL string) (http.Handler, error) {
				o, err := airtel.NewSimulator(airtel.SimConfig{Faults: f, Path: path, Decide: decide, CallbackURL: callbackURL})
				return s.keep("airtel", o, err)
			}},
		{name: "pawapay", settings: pawapay.SimSettings, secrets: pawapay.SimSecrets,
			open: func(_ simulator.Faults, path, callbackURL string) (http.Handler, error) {
				o, err := pawapay.NewSimulator(pawapay.SimConfig{Faults: f, Path: path, Decide: decide, DepositCallback: callbackURL, PayoutCallback: callbackURL, RefundCallback: callbackURL})
				return s.keep("pawapay", o, err)
			}},
		{name: "mpesa", settings: mpesa.SimSettings, secrets: mpesa.SimSecrets,
			open: func(_ simulator.Faults, path, _ string) (http.Handler, error) {
				o, err := mpesa.NewSimulator(mpesa.SimConfig{Faults: f, Path: path, Decide: decide})
				return s.keep("mpesa", o, err)
			}},
	}
}

// keep remembers the book of an operator.
func (s *storm) keep(name string, o interface {
	http.Handler
	Book() *simulator.Book
}, err error) (http.Handler, error) {
	if err == nil {
		s.books[name] = o.Book()
	}
	return o, err
}

// open lets the operators answer. Their portals hold the service's addresses,
// which the secret of its first start decides.
func (s *storm) open() {
	s.t.Helper()
	secret, err := secret.Read(s.secretFile())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, st := range s.stages {
		if err := st.begin(simulator.Faults{}, "", operators.CallbackURL("http://"+s.addr+"/v1", st.simulation.name, seal.Single(secret))); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *storm) secretFile() string { return filepath.Join(s.dir, "till.secret") }

func (s *storm) logFile() string { return filepath.Join(s.dir, "till.log") }

func (s *storm) tail() string {
	b, _ := os.ReadFile(s.logFile())
	return string(b[max(0, len(b)-8000):])
}

// start starts the service with further arguments and waits until it is ready.
func (s *storm) start(args ...string) {
	s.t.Helper()
	path, err := exec.LookPath("till-hurried")
	if err != nil {
		s.t.Fatal(err)
	}
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(path, append([]string{"--json", "--database", s.database, "--secret-file", s.secretFile(), "--listen", s.addr,
		"--admin-listen", "", "--rate-limit", "0", "--config", filepath.Join(s.dir, "till.toml"), "--sandbox", filepath.Join(s.dir, "sandbox.db")}, args...)...)
	cmd.Env = append(os.Environ(), s.env...)
	for _, st := range s.stages {
		for name, value := range st.simulation.secrets {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd = cmd
	s.t.Cleanup(func() { cmd.Process.Kill() })
	ready := make(chan map[string]any, 1)
	go readReady(out, ready)
	select {
	case r := <-ready:
		if r == nil {
			s.t.Fatalf("the service did not start:\n%s", s.tail())
		}
	case <-time.After(waitTimeout):
		s.t.Fatalf("the service is not ready:\n%s", s.tail())
	}
}

// stop ends the service and waits until it is gone.
func (s *storm) stop(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil && sig == syscall.SIGTERM {
		s.t.Errorf("SIGTERM: %v, want exit 0", err)
	}
}

// placing is how long a client tries its last orders, and spacing how long it
// lets pass between two. While an operator is unreachable, which bad luck with a tenth
// of everything can make minutes, its orders wait, and the others are placed: so
// many are tried at once.
const (
	placing = 3 * time.Minute
	spacing = 60 * time.Millisecond
	placers = 512
)

// place sends the orders, each until it is accepted, while the service is
// killed so many times, at even distances.
func (s *storm) place(all []order, kills int) {
	ctx, cancel := context.WithTimeout(s.t.Context(), placing+time.Duration(len(all))*spacing)
	defer cancel()
	queue := make(chan order)
	var wg sync.WaitGroup
	for range placers {
		wg.Go(func() {
			for o := range queue {
				s.placeOne(ctx, o)
			}
		})
	}
	for i, o := range all {
		if i > 0 && i%(len(all)/(kills+1)) == 0 && s.kills < kills {
			s.stop(syscall.SIGKILL)
			s.kills++
			s.start()
		}
		queue <- o
		pause(ctx, spacing)
	}
	close(queue)
	wg.Wait()
}

func (s *storm) placeOne(ctx context.Context, o order) {
	for ; ; pause(ctx, time.Second) {
		status, body, err := s.post(ctx, o)
		switch {
		case ctx.Err() != nil:
			s.t.Errorf("%s %s was never accepted: %v %d %s", o.path, o.phone, err, status, body)
			return
		case err != nil || status == http.StatusServiceUnavailable: // killed, or an operator is unreachable: the same again
		case status == http.StatusAccepted:
			return
		default:
			s.t.Errorf("%s %s is answered %d %s", o.path, o.phone, status, body)
			return
		}
	}
}

func (s *storm) post(ctx context.Context, o order) (int, []byte, error) {
	body, err := json.Marshal(o.body())
	if err != nil {
		return 0, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.addr+"/v1"+o.path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("X-Api-Key", s.key)
	r.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer a.Body.Close()
	body, err = io.ReadAll(io.LimitReader(a.Body, 64<<10))
	return a.StatusCode, body, err
}
