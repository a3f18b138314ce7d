package people

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"till"
	"till/internal/limit"
	"till/internal/seal"
	"till/store"
	"till/store/access"
)

// Config is what People are made of.
type Config struct {
	Store  *store.Store
	Secret []byte     // the installation's root; without it only the functions for commands work, those that end in As
	Ring   *seal.Ring // seals; nil means one generation, which is Secret

	// Origin is where browsers see the console, "https://pay.example.com".
	// Passkeys are bound to it. "" leaves passkeys unused.
	Origin string

	// HouseNetworks bound where the installation's staff may sign in from; none
	// means anywhere.
	HouseNetworks []netip.Prefix

	// Now is the clock, for tests; nil means the database's.
	Now func() till.Time

	Log *slog.Logger // nil means silence
}

// Visit is where a request came from.
type Visit struct {
	Address netip.Addr
	Tokens  []string // of devices that the browser was given: see NewDevice
	Device  string   // what the person reads in the list of sessions: "Firefox, Android"; at most MaxDevice bytes are kept
	Quiet   bool     // a page asks by itself, nobody does: the session's idle time does not move
}

// maxDevice is the longest description of a device, in bytes.
const maxDevice = 120

// People is who may use the console. It is safe for concurrent use.
type People struct {
	c Config
	*ceremonies
	*devices
	recoveryCodes
	totp    *seal.Sealer
	hashing chan struct{}                // a slot for each password that is being hashed
	guesses *limit.Buckets[netip.Prefix] // of who signs in
	links   *limit.Buckets[netip.Prefix] // of who opens links

	// decoy is what the password of an unknown login is compared with.
	decoy func() string

	looksMu sync.Mutex
	looks   map[look]int64 // the day of the last one

	demoMu    sync.Mutex
	demoToken string
	demo      []DemoPerson
}

// The labels separate the keys from every other key of the installation's
// secret.
const (
	TOTPLabel = "till TOTP secrets v1"
	stepLabel = "till console steps v1"
	codeLabel = "till recovery codes v1"
)

// New returns the people of an installation.
func New(c Config) (*People, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = c.Store.Now
	}
	p := &People{c: c, ceremonies: &ceremonies{forms: &forms{now: c.Now}, log: c.Log}, devices: &devices{now: c.Now}, hashing: make(chan struct{}, maxHashing),
		guesses: limit.NewBuckets[netip.Prefix](addressBurst, addressRefill), links: limit.NewBuckets[netip.Prefix](addressBurst, addressRefill)}
	if c.Secret == nil {
		return p, nil
	}
	var err error
	if c.Ring == nil {
		c.Ring = seal.Single(c.Secret)
	}
	if p.totp, err = c.Ring.Sealer(TOTPLabel); err != nil {
		return nil, fmt.Errorf("people: %w", err)
	}
	if p.forms.sealer, err = c.Ring.BriefSealer(stepLabel); err != nil {
		return nil, fmt.Errorf("people: %w", err)
	}
	if p.devices.sealer, err = c.Ring.BriefSealer(deviceLabel); err != nil {
		return nil, fmt.Errorf("people: %w", err)
	}
	if p.recoveryCodes.key, err = seal.Key(c.Secret, codeLabel); err != nil {
		return nil, fmt.Errorf("people: %w", err)
	}
	if p.webauthn, err = newWebAuthn(c.Origin); err != nil {
		return nil, fmt.Errorf("people: passkeys of %s: %w", c.Origin, err)
	}
	p.decoy = sync.OnceValue(func() string { return hashPassword(newToken()) })
	return p, nil
}

func (p *People) now() till.Time { return p.c.Now() }

// Origin returns where browsers see the console.
func (p *People) Origin() string { return p.c.Origin }

// entry is one audit row to write. Client is the log; the zero one is the
// installation's.
type entry struct {
	client  till.ID
	actor   string
	action  string
	subject till.ID
	detail  string
}

// markWindow is how long a commit can be found by its mark.
const markWindow = time.Hour

// commit runs f in one transaction and writes the audit rows that it returns,
// with the heads of these logs locked first, whatever f locks after them. f may
// run more than once. If nobody knows whether COMMIT happened, a mark in the
// transaction says.
func (p *People) commit(ctx context.Context, logs []till.ID, f func(tx *store.Tx) ([]entry, error)) error {
	var mark [32]byte
	rand.Read(mark[:])
	run := func(tx *store.Tx) error {
		heads := map[till.ID]*store.Head{}
		if len(logs) > 0 {
			var err error
			if heads, err = tx.LockLogs(ctx, logs); err != nil {
				return err
			}
		}
		entries, err := f(tx)
		if err != nil {
			return err
		}
		if _, err := access.UseOnce(ctx, tx, mark, p.now().Add(markWindow)); err != nil {
			return err
		}
		return writeAudit(ctx, tx, heads, entries)
	}
	err := p.c.Store.Update(ctx, run)
	if !errors.Is(err, store.ErrUnknownCommit) {
		return err
	}
	happened := false
	if viewErr := p.c.Store.View(ctx, func(tx *store.Tx) (err error) { happened, err = access.Used(ctx, tx, mark); return err }); viewErr != nil {
		return err
	}
	if happened {
		return nil
	}
	return p.c.Store.Update(ctx, run)
}

func writeAudit(ctx context.Context, tx *store.Tx, heads map[till.ID]*store.Head, entries []entry) error {
	if len(entries) == 0 {
		return nil
	}
	var rows []*store.AuditRow
	var counts store.CounterDelta
	for _, e := range entries {
		head := heads[e.client]
		if head == nil {
			return till.Errorf(till.CodeClientNotFound, "There is no such client.")
		}
		row := &store.AuditRow{ClientID: e.client, Sequence: head.NextAudit(), At: head.NextTime(),
			Actor: e.actor, Action: e.action, SubjectID: e.subject, Detail: e.detail}
		rows = append(rows, row)
		if e.client != till.House {
			counts.AddStored(e.client, row.At, row.Size())
		}
	}
	if err := tx.InsertAudit(ctx, rows); err != nil {
		return err
	}
	if err := tx.AddCounts(ctx, &counts); err != nil {
		return err
	}
	return tx.SaveHeads(ctx, heads)
}

// logsOf returns the logs that say what a person did with their own access:
// those of the clients they have roles with, or the installation's if there is none.
func logsOf(memberships []till.Membership) []till.ID {
	if len(memberships) == 0 {
		return []till.ID{till.House}
	}
	out := make([]till.ID, len(memberships))
	for i, m := range memberships {
		out[i] = m.Client
	}
	return out
}

// inEach returns the same entry for each log.
func inEach(logs []till.ID, e entry) []entry {
	out := make([]entry, len(logs))
	for i, client := range logs {
		out[i] = e
		out[i].client = client
	}
	return out
}

// clientID returns a client's id, till.House for nil.
func clientID(c *till.Client) till.ID {
	if c == nil {
		return till.House
	}
	return c.ID
}

// newToken draws 32 random bytes as text.
func newToken() string {
	var b [32]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// hashOf returns what is stored of a token.
func hashOf(token string) [32]byte { return sha256.Sum256([]byte(token)) }

// cleanInterval is how often what has expired is deleted, guessesKept how long
// counts of failures are kept, and linksKept how long old invitations are.
const (
	cleanInterval = 10 * time.Minute
	guessesKept   = 24 * time.Hour
	linksKept     = 30 * 24 * time.Hour
)

// Run deletes what has expired until ctx ends: sessions, old invitations,
// counts of failures.
func (p *People) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(cleanInterval):
		}
		if err := p.clean(ctx); err != nil && ctx.Err() == nil {
			p.c.Log.Warn("expired sessions not deleted", "error", err)
		}
	}
}

func (p *People) clean(ctx context.Context) error {
	now := p.now()
	return p.c.Store.UpdateBackground(ctx, func(tx *store.Tx) error {
		if err := access.DeleteExpiredAccess(ctx, tx, now, now.Add(-guessesKept)); err != nil {
			return err
		}
		return access.DeleteInvitations(ctx, tx, now.Add(-linksKept))
	})
}
