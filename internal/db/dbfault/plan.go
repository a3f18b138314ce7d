package dbfault

import "sync"

// Fault is what becomes of an effect.
type Fault int

// The faults.
const (
	None  Fault = iota
	Error       // it does not happen, or its answer is lost
	Crash       // the same, and its instance does nothing any more
	Hang        // it happens after a time that is longer than any lease
)

func (f Fault) String() string { return [...]string{"none", "error", "crash", "hang"}[f] }

// Faults are those that a test can plan.
func Faults() []Fault { return []Fault{Error, Crash, Hang} }

// Plan numbers effects from 1 and says which of them fail. Its zero value lets all of them
// pass. It is safe for concurrent use.
type Plan struct {
	mu    sync.Mutex
	on    bool
	fault Fault
	at    int    // 0: none fails
	place string // only effects there are counted; "": all
	times int    // how many of them there were
	stays bool

	againFault Fault
	again      int // effects until it comes; 0: it does not

	seen   []string
	failed []string
}

// Start begins to number effects; what was before it is not numbered and does not fail.
// The n-th effect has a fault. If stays is set, each effect after it has the fault too,
// until End: the database and the network are away. n is 0 to count only.
func (p *Plan) Start(f Fault, n int, stays bool) { p.StartAt(f, "", n, stays) }

// StartAt is Start for the n-th effect at a place. Effects of several goroutines have no
// order that is the same each time; those of one place mostly do.
func (p *Plan) StartAt(f Fault, place string, n int, stays bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on, p.fault, p.at, p.stays, p.place, p.times = true, f, n, stays, place, 0
	p.seen, p.failed, p.again = nil, nil, 0
}

// Again adds a second fault: of the n-th effect behind the first one that failed.
func (p *Plan) Again(f Fault, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.againFault, p.again = f, n
}

// Stays reports whether there are faults until End.
func (p *Plan) Stays() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at > 0 && p.stays
}

// End lets everything pass from now on. The effects that follow are numbered still.
func (p *Plan) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = 0
}

// Stop ends the numbering.
func (p *Plan) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on, p.at = false, 0
}

// Next numbers an effect and returns its fault. place says what it is and where.
func (p *Plan) Next(place string) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.on {
		return None
	}
	p.seen = append(p.seen, place)
	if len(p.failed) > 0 && p.again > 0 {
		if p.again--; p.again == 0 {
			p.failed = append(p.failed, place)
			return p.againFault
		}
	}
	if p.place == "" || p.place == place {
		p.times++
	} else if p.times < p.at || !p.stays {
		return None
	}
	if p.at == 0 || p.times < p.at || len(p.failed) > 0 && !p.stays {
		return None
	}
	p.failed = append(p.failed, place)
	return p.fault
}

// Seen returns the places of the effects since Start, in their order.
func (p *Plan) Seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.seen...)
}

// Failed returns the places of the effects that had a fault.
func (p *Plan) Failed() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.failed...)
}
