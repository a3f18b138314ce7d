package shell

import (
	"crypto/sha256"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"till"
	"till/internal/door"
	"till/internal/limit"
	"till/people"
)

// Limits of what is under way at once on this instance. Streams are counted apart.
const (
	maxPersonPages   = 4  // of one person
	maxStrangerPages = 8  // of one address, or of one device that somebody has signed in on
	maxLookups       = 2  // of sessions that are not known here, from one address
	maxPagesWaiting  = 60 // of each of them
	maxKnownSessions = 10_000

	pagesPatience = 10 * time.Second
)

// gate protects the database from strangers.
type gate struct {
	refusals  *door.Log
	delays    *door.Delays
	persons   *limit.Slots[till.ID]
	strangers *limit.Slots[string]
	lookups   *limit.Slots[string]
	tables    *limit.Slots[till.ID] // people who download a table

	mu    sync.Mutex
	known map[[sha256.Size]byte]bool // tokens of sessions that have worked here
}

func newGate(log *door.Log) *gate {
	return &gate{refusals: log, delays: door.NewDelays(),
		persons:   limit.NewSlots[till.ID](maxPersonPages, maxPagesWaiting, pagesPatience),
		strangers: limit.NewSlots[string](maxStrangerPages, maxPagesWaiting, pagesPatience),
		lookups:   limit.NewSlots[string](maxLookups, maxPagesWaiting, pagesPatience),
		tables:    limit.NewSlots[till.ID](1, 0, 0),
		known:     map[[sha256.Size]byte]bool{}}
}

// knows reports whether a session has worked here, and learn notes whether it did.
func (g *gate) knows(token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known[sha256.Sum256([]byte(token))]
}

func (g *gate) learn(token string, works bool) {
	hash := sha256.Sum256([]byte(token))
	g.mu.Lock()
	defer g.mu.Unlock()
	if !works {
		delete(g.known, hash)
		return
	}
	for other := range g.known {
		if len(g.known) < maxKnownSessions {
			break
		}
		delete(g.known, other)
	}
	g.known[hash] = true
}

// findSession finds out whose a token is. Invented ones wait behind each other, by
// address, and not before people whose session has worked here.
func (v *Visit) findSession(token string) (*people.Session, error) {
	g := v.Console.gate
	known := g.knows(token)
	if !known {
		leave, ok := g.lookups.Enter(v.R.Context(), v.network())
		if !ok {
			return nil, v.busy("sessions_waiting")
		}
		defer leave()
	}
	s, err := v.Console.SessionOf(v, token)
	over := people.RefusalOf(err)
	if works := err == nil; works || over != nil && over.Code == people.SessionOver {
		g.learn(token, works)
	}
	if !known && over != nil && over.Code == people.SessionOver {
		v.delayed = true
	}
	return s, err
}

// enterPages takes a place among the pages of the person, of the device or of
// the address. The caller gives it back.
func (v *Visit) enterPages() (leave func(), err error) {
	var ok bool
	switch {
	case v.Route.Stream:
		return func() {}, nil
	case v.Session != nil:
		leave, ok = v.Console.gate.persons.Enter(v.R.Context(), v.Session.Person.ID)
	default:
		key := v.network()
		if device := v.Console.People.KnownDevice(v.From); device != "" {
			key = device
		}
		leave, ok = v.Console.gate.strangers.Enter(v.R.Context(), key)
	}
	if !ok {
		return nil, v.busy("pages_waiting")
	}
	return leave, nil
}

// EnterTable lets the person download one table at a time: slow readers hold up
// nobody but themselves.
func (v *Visit) EnterTable() (leave func(), err error) {
	leave, ok := v.Console.gate.tables.Enter(v.R.Context(), v.Session.Person.ID)
	if !ok {
		return nil, v.busy("table_under_way")
	}
	return leave, nil
}

func (v *Visit) network() string { return door.Network(v.From.Address).String() }

// busy refuses a visit of which too many are under way.
func (v *Visit) busy(reason string) error {
	v.countRefused(reason, http.StatusTooManyRequests)
	return errBusy
}

// countRefused counts a refusal for the log.
func (v *Visit) countRefused(reason string, status int) {
	r := door.Refusal{Reason: reason, From: v.From.Address, Status: status, Route: v.R.Pattern, Warn: true,
		Proxy: door.IgnoresForwarded(v.R, v.Console.TrustedProxies)}
	if v.Session != nil {
		r.Key = v.Session.Person.ID.String()
	}
	v.Console.gate.refusals.Add(r, v.ID)
}

// notedRefusals are those of people that show an attack, or a proxy that is
// not named.
var notedRefusals = map[people.RefusalCode]bool{
	people.WrongCredentials: true, people.WrongCode: true, people.WrongPassword: true, people.WaitFirst: true, people.NotFromHere: true,
	people.LinkUnknown: true, people.PasskeyRefused: true,
}

// noteRefusal counts a refusal, and says how long to wait.
func (v *Visit) noteRefusal(r *people.Refusal) {
	if r.Code == people.WaitFirst {
		v.status, v.delayed = http.StatusTooManyRequests, true
		v.W.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(r.Wait.Seconds())))))
	}
	if notedRefusals[r.Code] {
		v.countRefused(string(r.Code), max(v.status, http.StatusOK))
	}
}

// wait delays the answer to somebody who tries things out, if there are many.
func (v *Visit) wait() {
	if v.delayed {
		v.delayed = false
		v.leaves() // a page that waits is not under way
		v.Console.gate.delays.Wait(v.R.Context(), v.Console.streams.stopping)
	}
}

// readForm reads the body of a form into PostForm, which is all that handlers
// read: files never are. Who has a session has more time.
func (v *Visit) readForm() error {
	if v.R.Method != http.MethodPost {
		_ = v.R.ParseForm() // the address alone: what of it cannot be read is as if it were not there
		return nil
	}
	if v.Session != nil {
		// Only HTTP/1 and HTTP/2 connections can set it; a test's recorder cannot.
		_ = http.NewResponseController(v.W).SetReadDeadline(time.Now().Add(readTimeout))
	}
	if err := v.R.ParseForm(); err != nil {
		return ErrInput
	}
	return nil
}

// foreignLoad reports whether another site's page loads something of ours, as an
// image or a frame. Our pages are opened by links, and loaded by themselves.
func foreignLoad(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Site") == "cross-site" && (r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document")
}
