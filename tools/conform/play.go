package conform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	"till/internal/dev/faulty"
)

// runnerSteps are done by the runner; all others are commands of the driver.
var runnerSteps = []string{
	"kill", "faults", "sleep", "until", "event", "prompt", "deliver", "endpoint", "reserve", "rotate_secret", "rotate_key", "revoke_key", "break_key", "fill", "churn", "refund_elsewhere",
	"pay", "come_back", "run_out", "checkout_elsewhere",
	"stop_service", "start_service", "backup", "restore", "together",
}

// play is a scenario that is being played.
type play struct {
	Scenario
	service *service
	proxy   *faulty.Proxy
	front   *http.Server
	address string // of the proxy, with /v1
	books   books
	driver  *driver
	mutant  string
	folder  string

	client   string // its id
	addr     string // where the driver receives webhooks
	endpoint string
	secrets  []string // newest first
	served   bool
	running  bool
	churn    func() // ends what changes payments meanwhile
	listed   map[string]bool
	pages    map[string]string // where the driver said that orders are paid
}

// mostTime is how long a scenario may take. The machine may be busy.
const mostTime = 5 * time.Minute

// newPlay makes a client, a proxy and a driver for a scenario.
func newPlay(s Scenario, on *service, program []string, mutant, folder string) (*play, error) {
	p := &play{Scenario: s, service: on, mutant: mutant, folder: folder, driver: &driver{program: program}, pages: map[string]string{}}
	var err error
	if p.client, p.books.key, err = on.client(s.Payouts); err != nil {
		return nil, err
	}
	p.books.base = on.base
	if p.proxy, err = faulty.New("http://"+on.listen, 7, s.Faults...); err == nil {
		p.proxy.KeepBodies()
	}
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.address = "http://" + l.Addr().String() + "/v1"
	p.front = &http.Server{Handler: p.proxy, ReadHeaderTimeout: time.Minute}
	go func() { _ = p.front.Serve(l) }()
	if err := os.WriteFile(p.keyFile(), []byte(p.books.key), 0o600); err != nil {
		return nil, err
	}
	return p, p.begin(context.Background())
}

func (p *play) keyFile() string { return filepath.Join(p.folder, "key") }

func (p *play) close() {
	if p.churn != nil {
		p.churn()
	}
	p.driver.kill()
	_ = p.front.Close()
	p.proxy.Close()
}

// begin starts the driver, as after a crash: with the same store.
func (p *play) begin(ctx context.Context) error {
	if err := p.driver.start(); err != nil {
		return err
	}
	if err := p.command(ctx, map[string]any{"do": "new", "base_url": p.address, "key_file": p.keyFile(), "state": filepath.Join(p.folder, "shop"), "mutant": p.mutant, "options": p.options(), "expect": "test"}); err != nil {
		return err
	}
	if p.served {
		if err := p.serve(ctx); err != nil {
			return err
		}
	}
	if p.running {
		return p.command(ctx, map[string]any{"do": "run"})
	}
	return nil
}

func (p *play) command(ctx context.Context, c map[string]any) error {
	result, err := p.driver.do(ctx, c)
	if err == nil && result["error"] != nil {
		err = fmt.Errorf("%v: %v", c["do"], result)
	}
	return err
}

func (p *play) serve(ctx context.Context) error {
	return p.command(ctx, map[string]any{"do": "serve", "addr": p.addr, "secrets": p.secrets})
}

// run plays the steps and judges the end.
func (p *play) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, mostTime)
	defer cancel()
	for i, s := range p.Steps {
		if err := p.step(ctx, &s); err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, s.Do, err)
		}
	}
	if p.churn != nil {
		p.churn()
		p.churn = nil
	}
	return p.judge(ctx)
}

// defaults are the members of a wish that most scenarios do not care about.
var defaults = map[string]any{"method": "mtn_momo", "country": "CG", "value": "5000", "currency": "XAF", "phone": "242061234567"}

func (p *play) step(ctx context.Context, s *Step) error {
	if done, err := p.runnerStep(ctx, s); done {
		return err
	}
	c := map[string]any{}
	switch s.Do {
	case "refund":
		c["currency"] = defaults["currency"]
	case "checkout":
		c["value"], c["currency"] = defaults["value"], defaults["currency"]
	}
	if s.Do == "collect" || s.Do == "payout" {
		for name, value := range defaults {
			c[name] = value
		}
	}
	for name, value := range s.raw {
		c[name] = value
	}
	if s.Do == "get" {
		found, err := p.books.of(ctx, s.Order)
		if err != nil || found == nil {
			return fmt.Errorf("no payment of %s: %w", s.Order, err)
		}
		c["id"] = found.ID
	}
	result, err := p.driver.do(ctx, c)
	if s.Dies {
		if !errors.Is(err, errDied) {
			return fmt.Errorf("the driver lives on: %v, %w", result, err)
		}
		p.driver.kill()
		return p.begin(ctx)
	}
	if err != nil {
		return err
	}
	switch s.Do {
	case "send":
		_, moved := s.raw["moved"]
		if err := p.samePage(s.Order, result, moved); err != nil {
			return err
		}
	case "run":
		p.running = true
	case "list":
		p.listed = map[string]bool{}
		ids, _ := result["ids"].([]any)
		for _, id := range ids {
			p.listed[id.(string)] = true
		}
		delete(result, "ids")
	}
	return compare(s, result)
}

// compare holds a result against what a step wants. Without a wish it must not
// be an error.
func compare(s *Step, result map[string]any) error {
	if s.Want == nil {
		if result["error"] != nil {
			return fmt.Errorf("%v", result)
		}
		return nil
	}
	if _, wanted := s.Want["error"]; !wanted && result["error"] != nil {
		return fmt.Errorf("%v", result)
	}
	for name, want := range s.Want {
		if !reflect.DeepEqual(result[name], want) {
			return fmt.Errorf("%s is %v, want %v: %v", name, result[name], want, result)
		}
	}
	return nil
}

// runnerStep does a step of the runner's own.
func (p *play) runnerStep(ctx context.Context, s *Step) (done bool, err error) {
	switch s.Do {
	case "kill":
		p.driver.kill()
		return true, p.begin(ctx)
	case "faults":
		return true, p.proxy.SetRules(s.Faults...)
	case "sleep":
		return true, pause(ctx, time.Duration(s.Ms)*time.Millisecond)
	case "until":
		return true, p.until(ctx, s)
	case "event":
		_, err := p.event(ctx, s.Order, s.Kind)
		return true, err
	case "prompt":
		return true, p.prompt(ctx, s)
	case "deliver":
		return true, p.deliver(ctx, s)
	case "endpoint", "reserve":
		return true, p.register(ctx, s)
	case "disable_endpoint":
		return true, p.disableEndpoint(ctx)
	case "rotate_secret":
		return true, p.rotateSecret(ctx, s)
	case "rotate_key", "revoke_key", "break_key":
		return true, p.changeKey(ctx, s)
	case "fill":
		return true, p.fill(ctx, s)
	case "churn":
		return true, p.startChurn(ctx, s)
	case "refund_elsewhere":
		return true, p.refundElsewhere(ctx, s)
	case "pay":
		return true, p.pay(ctx, s)
	case "come_back":
		return true, p.comeBack(ctx, s)
	case "checkout_elsewhere":
		return true, p.checkoutElsewhere(ctx, s)
	case "run_out":
		return true, p.runOut(ctx, s)
	case "stop_service":
		return true, p.service.stop()
	case "start_service":
		return true, p.service.start()
	case "backup":
		return true, copyFolder(p.service.data, p.service.data+"-backup")
	case "restore":
		return true, copyFolder(p.service.data+"-backup", p.service.data)
	case "together":
		return true, p.together(ctx, s)
	}
	return false, nil
}

// together plays steps of the runner at the same time.
func (p *play) together(ctx context.Context, s *Step) error {
	var all sync.WaitGroup
	errs := make([]error, len(s.Steps))
	for i := range s.Steps {
		all.Add(1)
		go func() {
			defer all.Done()
			errs[i] = p.step(ctx, &s.Steps[i])
		}()
	}
	all.Wait()
	return errors.Join(errs...)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// eventually asks until there is no error, or time is over.
func eventually(ctx context.Context, most time.Duration, ask func() error) error {
	end := time.Now().Add(most)
	for wait := 20 * time.Millisecond; ; wait = min(wait*2, 300*time.Millisecond) {
		err := ask()
		if err == nil {
			return nil
		}
		if time.Now().After(end) || pause(ctx, wait) != nil {
			return err
		}
	}
}

// patience is how long the books may take to say what is expected.
const patience = time.Minute

// until waits for the books.
func (p *play) until(ctx context.Context, s *Step) error {
	return eventually(ctx, patience, func() error {
		find := p.books.of
		switch s.Kind {
		case "refund":
			find = p.books.refundOf
		case "checkout":
			find = p.books.pageOf
		}
		found, err := find(ctx, s.Order)
		switch {
		case err != nil:
			return err
		case found == nil:
			return fmt.Errorf("no payment of %s", s.Order)
		case s.Kind == "checkout" && found.State == s.Status, s.Status == "overpaid" && found.Overpaid,
			s.Status == "late" && found.LateSuccessAt != nil, s.Status == "reversed" && found.ReversedAt != nil,
			s.Status == "needs_attention" && found.Resolution.State == s.Status, found.Status == s.Status:
			return nil
		}
		return fmt.Errorf("%s is %s", s.Order, cmp.Or(found.Status, found.State))
	})
}

// event waits for an event of an order in the log; of several attempts, the
// first that has it.
func (p *play) event(ctx context.Context, order, kind string) (found event, err error) {
	err = eventually(ctx, patience, func() error {
		all, err := p.books.events(ctx)
		if err != nil {
			return err
		}
		for _, e := range all {
			subject := cmp.Or(e.Data.Payment, e.Data.Payout, e.Data.Refund, e.Data.Checkout)
			if subject != nil && subject.Reference == order && e.Type == kind {
				found = e
				return nil
			}
		}
		return fmt.Errorf("no %s of %s", kind, order)
	})
	return found, err
}

// prompt decides for the customer.
func (p *play) prompt(ctx context.Context, s *Step) error {
	return eventually(ctx, patience, func() error {
		found, err := p.books.of(ctx, s.Order)
		if err != nil || found == nil {
			return fmt.Errorf("no payment of %s: %w", s.Order, err)
		}
		return p.books.call(ctx, "POST", "/sandbox/prompts/"+found.ID, map[string]string{"action": s.Action}, nil)
	})
}

// changeKey rotates or revokes the API key, or breaks the file that it is in: then it is
// unknown, of a live client, or missing.
func (p *play) changeKey(ctx context.Context, s *Step) error {
	id := strings.Split(p.books.key, "_")[2]
	switch s.Do {
	case "break_key":
		if s.Kind == "missing" {
			return os.Remove(p.keyFile())
		}
		mode := map[string]string{"live": "live", "": "test"}[s.Kind]
		return os.WriteFile(p.keyFile(), []byte("till_"+mode+"_aaaaaaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"), 0o600)
	case "revoke_key":
		var made struct {
			APIKey string `json:"api_key"`
		}
		if err := p.service.till(&made, "key", "create", "--client", p.client); err != nil {
			return err
		}
		if err := p.books.call(ctx, "DELETE", "/api-keys/"+id, nil, nil); err != nil {
			return err
		}
		p.books.key = made.APIKey
		return pause(ctx, 1100*time.Millisecond) // it works everywhere within a second
	}
	var made struct {
		APIKey string `json:"api_key"`
	}
	if err := p.books.call(ctx, "POST", "/api-keys/"+id+"/rotate", map[string]int{"overlap_seconds": s.Overlap}, &made); err != nil {
		return err
	}
	p.books.key = made.APIKey
	if err := pause(ctx, time.Duration(s.Ms)*time.Millisecond); err != nil {
		return err
	}
	return os.WriteFile(p.keyFile(), []byte(p.books.key), 0o600)
}

// copyFolder replaces a folder by a copy of another.
func copyFolder(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}
