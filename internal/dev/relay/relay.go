package relay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"till"
	"till/internal/dev/remote"
	"till/webhook"
)

// The limits of a relay.
const (
	maxHeld    = 1000 // events in memory that are not accepted yet; then the log is read no further
	maxPosts   = 8    // at the same time, of different payments
	maxUnsaved = 16   // accepted events that the file does not know yet: they come again after a kill
	maxShuffle = 2 * time.Second
	endWait    = 2 * time.Second // for posts in flight, when it is stopped
)

// delays are the pauses before an event is tried again; the last one repeats.
var delays = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second}

// Config says what is relayed, and how unkindly.
type Config struct {
	Service    *remote.Client
	To         string // the handler's address
	Secret     webhook.Secret
	Kinds      []string // see CheckKinds; none means all
	Since      *int64   // relay what is after this sequence, whatever the file says; nil means what the file says
	FromNow    bool     // the same, from the end of the log
	CursorFile string

	Lose    float64 // share of events that are never posted
	Repeat  float64 // share that is posted twice
	Shuffle bool    // in any order, also of one payment
	Seed    uint64

	Started func(after int64) // called once, before the first post
	Report  func(Report)      // called for each post, one at a time
	TryNow  <-chan struct{}   // what waits for its next try is tried now
	Delays  []time.Duration   // nil means Delays
	Allow   webhook.Allowed   // networks that the handler may be in, beside the Internet
	Notice  func(text string) // called for what a person should know
}

// Report is what became of one post.
type Report struct {
	At        time.Time
	EventID   string
	Kind      string
	Sequence  int64
	Subject   string
	Reference string
	Response  webhook.Response
	Accepted  bool
	Lost      bool          // on purpose, and not posted
	Copy      bool          // a second post of what was accepted, on purpose
	Next      time.Duration // until the next try; 0 if there is none
}

// item is an event that is not accepted yet.
type item struct {
	*event
	lane     string // items of one lane go one after the other
	due      time.Time
	tries    int
	again    bool // post it once more when it is accepted
	accepted bool
	posting  bool
}

// relay is a running relay. One goroutine owns it.
type relay struct {
	Config
	sender *webhook.Sender
	file   *cursorFile
	cursor *cursor
	after  int64 // how far the log was read in this run
	random *rand.Rand
	lanes  map[string][]*item
	held   int
	posts  int

	pages   chan readResult
	results chan postResult
	saved   chan error
	dirty   bool // the file is older than the cursor
	saving  bool
	unsaved int // accepted since the file was written
	inSave  int // of those, known to the save that is under way
}

type readResult struct {
	*page
	err error
}

type postResult struct {
	*item
	webhook.Response
}

// Run relays events until ctx ends. It returns an error if the service refuses the key, or
// if the cursor cannot be kept.
func Run(ctx context.Context, c Config) (err error) {
	r := &relay{Config: c, random: rand.New(rand.NewPCG(c.Seed, c.Seed)), lanes: map[string][]*item{},
		pages: make(chan readResult, 1), results: make(chan postResult, maxPosts), saved: make(chan error, 1)}
	if r.Delays == nil {
		r.Delays = delays
	}
	r.sender = webhook.NewSender(webhook.SenderConfig{Allow: c.Allow})
	defer r.sender.Close()
	if r.file, err = openCursorFile(c.CursorFile); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.file.close()) }()
	if err := r.begin(ctx); err != nil {
		return stopped(ctx, err)
	}
	posting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	return r.loop(ctx, posting)
}

// stopped returns nil for an error that only says that the relay was stopped.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// begin finds where to begin.
func (r *relay) begin(ctx context.Context) error {
	first, err := readPage(ctx, r.Service, 0, 1, 0)
	if err != nil {
		return err
	}
	known, found := r.file.find(first.LogID, r.To)
	fresh := position{LogID: first.LogID, To: r.To}
	switch {
	case r.Since != nil:
		fresh.Read = *r.Since
		if _, err := readPage(ctx, r.Service, fresh.Read, 1, 0); err != nil {
			return err // beyond the end of the log
		}
	case r.FromNow || !found:
		if fresh.Read, err = logEnd(ctx, r.Service); err != nil {
			return err
		}
	default:
		fresh = known
	}
	r.cursor = fresh.cursor()
	r.after = r.cursor.next()
	if err := r.file.save(r.cursor.position()); err != nil {
		return err
	}
	if r.Started != nil {
		r.Started(r.after)
	}
	return nil
}

// loop reads, posts and saves until ctx ends.
func (r *relay) loop(ctx, posting context.Context) error {
	reading := false
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if !reading && r.held < maxHeld {
			reading = true
			go r.read(ctx, r.after)
		}
		r.save()
		timer.Reset(r.post(posting))
		select {
		case <-ctx.Done():
			return r.end()
		case p := <-r.pages:
			reading = false
			if err := r.takePage(ctx, p); err != nil {
				return errors.Join(stopped(ctx, err), r.end())
			}
		case p := <-r.results:
			r.takeResult(p)
		case <-timer.C:
		case <-r.TryNow:
			for _, lane := range r.lanes {
				for _, i := range lane {
					i.due = time.Time{}
				}
			}
		case err := <-r.saved:
			if err != nil {
				return fmt.Errorf("keep the cursor: %w", err)
			}
			r.saving = false
			r.unsaved -= r.inSave
		}
	}
}

// end waits a moment for the posts in flight, whose answers count, and saves the cursor.
func (r *relay) end() error {
	late := time.NewTimer(endWait)
	defer late.Stop()
	for r.posts > 0 {
		select {
		case p := <-r.results:
			r.takeResult(p)
			continue
		case <-late.C:
		}
		break
	}
	if r.saving {
		if err := <-r.saved; err != nil {
			return err
		}
	}
	return r.file.save(r.cursor.position())
}

// save writes the cursor, if it changed, while the relay goes on.
func (r *relay) save() {
	if r.saving || !r.dirty {
		return
	}
	r.saving, r.dirty, r.inSave = true, false, r.unsaved
	p := r.cursor.position()
	go func() { r.saved <- r.file.save(p) }()
}

// readPause is how long the relay waits after the service did not answer.
const readPause = 2 * time.Second

// read reads one page. If the service does not answer, it tries until it does: the person
// may be restarting it.
func (r *relay) read(ctx context.Context, after int64) {
	for noticed := false; ; {
		p, err := readPage(ctx, r.Service, after, pageSize, maxWait)
		var refused *till.Error
		if err == nil || ctx.Err() != nil || errors.As(err, &refused) {
			r.pages <- readResult{p, err}
			return
		}
		if !noticed && r.Notice != nil {
			r.Notice(err.Error() + "; waiting for it")
		}
		noticed = true
		select {
		case <-ctx.Done():
		case <-time.After(readPause):
		}
	}
}

// takePage queues the events of a page.
func (r *relay) takePage(ctx context.Context, p readResult) error {
	switch {
	case till.ErrorCode(p.err) == till.CodeCursorAhead:
		first, err := readPage(ctx, r.Service, 0, 1, 0)
		if err != nil {
			return err
		}
		return r.restart(first.LogID)
	case p.err != nil:
		return p.err
	case p.LogID != r.cursor.log:
		return r.restart(p.LogID)
	}
	seen := map[int64]bool{}
	for _, body := range p.Items {
		e, err := readEvent(body)
		if err != nil {
			return err
		}
		seen[e.Sequence] = true
		if r.cursor.take(e.Sequence) {
			r.queue(e)
		}
	}
	for n := range r.cursor.pending { // from an earlier run, and not in the log of this key any more
		if n > r.after && n <= p.NextAfter && !seen[n] {
			delete(r.cursor.pending, n)
		}
	}
	r.after = p.NextAfter
	r.cursor.read = max(r.cursor.read, p.NextAfter)
	r.dirty = true
	return nil
}

// restart relays a log from its beginning: it is another one, or it was set back by a
// restore, and its numbers mean other events now.
func (r *relay) restart(log string) error {
	if r.Notice != nil {
		r.Notice("the event log was replaced or set back by a restore; it is relayed from its beginning")
	}
	r.cursor = position{LogID: log, To: r.To}.cursor()
	r.lanes, r.held, r.after, r.dirty = map[string][]*item{}, 0, 0, true
	return nil
}

// queue appends an event to its lane.
func (r *relay) queue(e *event) {
	if !wanted(r.Kinds, e.Kind) {
		delete(r.cursor.pending, e.Sequence)
		return
	}
	i := &item{event: e, lane: e.Subject}
	i.again = r.Repeat > 0 && r.random.Float64() < r.Repeat
	if r.Lose > 0 && r.random.Float64() < r.Lose {
		delete(r.cursor.pending, e.Sequence)
		r.report(i, Report{Lost: true})
		return
	}
	if r.Shuffle {
		i.lane, i.due = e.ID, time.Now().Add(time.Duration(r.random.Int64N(int64(maxShuffle))))
	}
	r.lanes[i.lane] = append(r.lanes[i.lane], i)
	r.held++
}

// post begins what is due, and returns how long nothing else will be.
func (r *relay) post(ctx context.Context) time.Duration {
	now, wait := time.Now(), time.Hour
	for _, lane := range r.lanes {
		i := lane[0]
		switch {
		case i.posting:
		case i.due.After(now):
			wait = min(wait, i.due.Sub(now))
		case r.posts < maxPosts && r.unsaved < maxUnsaved:
			i.posting = true
			r.posts++
			go func() {
				header := webhook.Sign(i.ID, time.Now(), i.Body, r.Secret)
				r.results <- postResult{i, r.sender.Post(ctx, r.To, header, i.Body)}
			}()
		}
	}
	return wait
}

// takeResult records what became of a post.
func (r *relay) takeResult(p postResult) {
	i := p.item
	r.posts--
	i.posting = false
	if len(r.lanes[i.lane]) == 0 || r.lanes[i.lane][0] != i {
		return // the log was replaced meanwhile
	}
	ok := p.Delivered()
	out := Report{Response: p.Response, Accepted: ok, Copy: i.accepted}
	switch {
	case ok && i.again:
		i.again, i.accepted = false, true
	case ok || i.accepted: // a copy is not tried again
		r.drop(i)
	default:
		out.Next = r.Delays[min(i.tries, len(r.Delays)-1)]
		i.due = time.Now().Add(out.Next)
		i.tries++
	}
	r.report(i, out)
}

// drop forgets an item that was accepted.
func (r *relay) drop(i *item) {
	if r.lanes[i.lane] = r.lanes[i.lane][1:]; len(r.lanes[i.lane]) == 0 {
		delete(r.lanes, i.lane)
	}
	delete(r.cursor.pending, i.Sequence)
	r.held--
	r.unsaved++
	r.dirty = true
}

func (r *relay) report(i *item, out Report) {
	if r.Report == nil {
		return
	}
	out.At, out.EventID, out.Kind, out.Sequence, out.Subject, out.Reference = time.Now(), i.ID, i.Kind, i.Sequence, i.Subject, i.Reference
	r.Report(out)
}

// Words returns what a person should read about a response: the handler's own words, or
// what went wrong on the way.
func Words(p webhook.Response) string {
	switch {
	case p.Problem == webhook.ProblemConnect:
		return "nothing listens there"
	case p.Problem == webhook.ProblemTimeout:
		return "no answer in time"
	case p.Problem == webhook.ProblemReset:
		return "the connection ended without an answer"
	case p.Problem == webhook.ProblemRedirect:
		return "a redirect, which webhooks do not follow"
	case p.Problem == webhook.ProblemAddressRefused:
		return "events are not posted to this address"
	case p.Problem != "":
		return p.Problem
	case p.Body != "":
		return p.Body
	}
	return http.StatusText(p.Status)
}
