package rehearse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"till/webhook"
)

// The limits of a rehearsal.
const (
	postTimeout  = 15 * time.Second // as the service has it
	maxAnswer    = 64 << 10         // bytes of an answer that are looked at
	maxHeader    = 16 << 10
	defaultSlow  = 5 * time.Second
	defaultWait  = 5 * time.Second
	observePause = 100 * time.Millisecond
)

// Observe returns how often a payment was acted on, and the amount that is kept of it, "" if
// that is not known.
type Observe func(ctx context.Context, payment, reference string) (acted int, amount string, err error)

// Config says which handler is tested, and how.
type Config struct {
	URL      string
	Secret   webhook.Secret
	Observe  Observe       // nil: what only the effect can show is not seen
	Only     []string      // names of checks; none means all
	Anywhere bool          // also to other machines
	Slow     time.Duration // longest good answer; 0 means 5 s
	Wait     time.Duration // for a handler that answers first and acts later; 0 means 5 s
}

// Result is what one check has shown.
type Result struct {
	Number  int
	Name    string
	Title   string
	Verdict Verdict
	Status  string // of the answers, each once; "none" for no answer
	Acted   int    // -1 if it was not seen
	Advice  string
	See     string // a page for developers, as /docs/webhooks#order
}

// rehearsal is a running test of a handler.
type rehearsal struct {
	Config
	client  *http.Client
	all     []answer
	slowest time.Duration
}

// errElsewhere says that an address is not on this machine.
var errElsewhere = errors.New("the handler is not on this machine: say --anywhere to send invented events there")

// names returns the names of all checks.
func names() (names []string) {
	for _, c := range checks {
		names = append(names, c.name)
	}
	return names
}

// Run tests a handler and returns the checks in their order. The handler must not be one
// that ships: it is sent payments that nobody made.
func Run(ctx context.Context, c Config) ([]Result, error) {
	for _, name := range c.Only {
		if !slices.Contains(names(), name) {
			return nil, fmt.Errorf("there is no check %q: %s", name, strings.Join(names(), ", "))
		}
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is no address of a handler, such as http://localhost:3000/till", c.URL)
	}
	if c.Slow == 0 {
		c.Slow = defaultSlow
	}
	if c.Wait == 0 {
		c.Wait = defaultWait
	}
	r := &rehearsal{Config: c, client: newClient(c.Anywhere)}
	defer r.client.CloseIdleConnections()
	sent := make([]*seen, len(checks))
	builders := make([]*builder, len(checks))
	for i := range checks {
		builders[i] = newBuilder(i+1, time.Now(), c.Secret)
		if !r.needs(&checks[i]) {
			continue
		}
		if sent[i], err = r.play(ctx, &checks[i], builders[i]); err != nil {
			return nil, err
		}
	}
	good := sent[0].answers[0]
	if good.problem == errElsewhere.Error() {
		return nil, errElsewhere
	}
	if good.accepted() {
		if err := r.observe(ctx, sent, builders); err != nil {
			return nil, err
		}
	}
	return r.results(sent), nil
}

// carriers are sent whatever --only says: the other checks are about their answers too.
var carriers = []string{"good", "wrong-secret", "one-byte"}

func (r *rehearsal) needs(c *check) bool {
	return len(r.Only) == 0 || slices.Contains(r.Only, c.name) || slices.Contains(carriers, c.name)
}

// play sends the deliveries of a check.
func (r *rehearsal) play(ctx context.Context, c *check, b *builder) (*seen, error) {
	s := &seen{r: r}
	if c.send == nil {
		return s, nil
	}
	for _, step := range c.send(b) {
		answers := make([]answer, len(step))
		var ready, done sync.WaitGroup
		ready.Add(1)
		for i, d := range step {
			done.Go(func() { ready.Wait(); answers[i] = r.post(ctx, d) })
		}
		ready.Done()
		done.Wait()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s.answers = append(s.answers, answers...)
	}
	r.all = append(r.all, s.answers...)
	for _, a := range s.answers {
		r.slowest = max(r.slowest, a.took)
	}
	return s, nil
}

// newClient returns a client that follows no redirect and, unless anywhere is set, connects
// to this machine only.
func newClient(anywhere bool) *http.Client {
	dialer := &net.Dialer{Timeout: postTimeout, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		if at, err := netip.ParseAddrPort(address); !anywhere && (err != nil || !at.Addr().Unmap().IsLoopback()) {
			return errElsewhere
		}
		return nil
	}}
	return &http.Client{
		Timeout:       postTimeout,
		Transport:     &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: atOnce, MaxResponseHeaderBytes: maxHeader, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// post sends one delivery.
func (r *rehearsal) post(ctx context.Context, d delivery) (a answer) {
	a.delivery = d
	begin := time.Now()
	defer func() { a.took = time.Since(begin) }()
	req, err := http.NewRequestWithContext(ctx, d.method, r.URL, bytes.NewReader(d.body))
	if err != nil {
		a.problem = err.Error()
		return a
	}
	req.Header = d.header.Clone()
	req.Header.Set("User-Agent", "Till-Webhooks/1 (till webhook check)")
	if d.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := r.client.Do(req)
	if err == nil {
		defer res.Body.Close()
		a.header = res.Header
		var text []byte
		text, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		a.text = string(text)
	}
	if err != nil {
		a.problem = problemText(err)
		return a
	}
	a.status = res.StatusCode
	return a
}

// problemText says why there is no answer.
func problemText(err error) string {
	var timeout net.Error
	var op *net.OpError
	switch {
	case errors.Is(err, errElsewhere):
		return errElsewhere.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		return "it took more than 15 s"
	case errors.As(err, &op) && op.Op == "dial":
		return "nothing listens at this address"
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err.Error()
}

// observe asks for the effect on each payment. The first one shows how fast the handler acts.
func (r *rehearsal) observe(ctx context.Context, sent []*seen, builders []*builder) error {
	if r.Observe == nil {
		return nil
	}
	wait := r.Wait
	for i, s := range sent {
		if s == nil || len(s.answers) == 0 || s.answers[0].method == http.MethodGet {
			continue
		}
		p := &builders[i].payment
		for deadline := time.Now().Add(wait); ; {
			var err error
			if s.acted, s.amount, err = r.Observe(ctx, p.ID.String(), p.Reference); err != nil {
				return fmt.Errorf("the command of --observe: %w", err)
			}
			s.observed = true
			if verdict := checks[i].judge(s).verdict; verdict != Failed || time.Now().After(deadline) || !s.mayChange() {
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(observePause):
			}
		}
		wait = r.Wait / 5
	}
	return nil
}

// mayChange reports whether a handler that acts later may still make it right.
func (s *seen) mayChange() bool { return s.allAccepted() && s.acted < 1 }

// results judges what was asked for.
func (r *rehearsal) results(sent []*seen) (out []Result) {
	first := sent[0].answers[0]
	for i, c := range checks {
		s := sent[i]
		if s == nil || len(r.Only) > 0 && !slices.Contains(r.Only, c.name) {
			continue
		}
		result := Result{Number: i + 1, Name: c.name, Title: c.title, Status: statuses(s.answers), Acted: -1}
		if s.observed {
			result.Acted = s.acted
		}
		ruled := c.judge(s)
		if c.name != "good" && (first.status == 0 || !first.accepted() && c.send != nil && c.name != "get") {
			// A handler that refuses what is good proves nothing by refusing the rest, and one
			// that does not answer proves nothing at all.
			ruled = ruling{verdict: NotSeen}
		}
		result.Verdict, result.Advice, result.See = ruled.verdict, ruled.advice, ruled.see
		if c.name == "fast" {
			result.Status = "max " + r.slowest.Round(time.Millisecond).String()
		}
		out = append(out, result)
	}
	return out
}

// statuses returns the statuses of answers, each once.
func statuses(answers []answer) string {
	var out []string
	for _, a := range answers {
		text := "none"
		if a.status > 0 {
			text = strconv.Itoa(a.status)
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return strings.Join(out, " ")
}

// parseSeconds reads a timestamp header.
func parseSeconds(text string) (time.Time, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(n, 0), err
}
