package people

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"till"
	"till/store"
	"till/store/access"
)

// Session is somebody who is signed in, as one request sees them. It is read
// anew for each request, so that a change counts at once.
type Session struct {
	ID          till.ID // for lists, not the secret
	Person      till.Person
	Memberships []till.Membership // by client; the installation first
	StartedAt   till.Time
	SeenAt      till.Time // kept to the minute
	ExpiresAt   till.Time // at the latest
	ProvedAt    till.Time // the last fresh proof; signing in with all factors is one
	Device      string
	Address     string

	// FactorMissing says that a role needs a second factor and the person has
	// none: May and MayHouse say no to everything until it is set up.
	FactorMissing bool

	hash [32]byte  // SHA-256 of the token
	now  till.Time // when it was read
}

// May returns how far the person may do something in a merchant, None if not
// at all. Member is any role there, or a role of the installation that may view merchants.
func (s *Session) May(c *till.Client, p Permission) Grant {
	if s.FactorMissing {
		return None
	}
	return grantIn(s.Memberships, c.ID, c.Mode, p)
}

// MayHouse reports whether the person may do something in the installation. Member
// is any role there.
func (s *Session) MayHouse(p Permission) bool {
	return !s.FactorMissing && grantInHouse(s.Memberships, p)
}

// RoleIn returns the person's own role with a client, or with the installation if it
// is till.House; "" if there is none.
func (s *Session) RoleIn(client till.ID) till.Role {
	for _, m := range s.Memberships {
		if m.Client == client {
			return m.Role
		}
	}
	return ""
}

// Looks reports whether the person sees a merchant by a role of the installation and
// none of the merchant's: pages show a banner, and NoteLook is called.
func (s *Session) Looks(client till.ID) bool {
	return s.RoleIn(client) == "" && s.MayHouse(ClientsLook)
}

// Actor returns how the audit log names the person.
func (s *Session) Actor() string { return s.Person.Actor() }

// ProofWindow is how long a proof is fresh.
const ProofWindow = 10 * time.Minute

// Fresh reports whether the last proof is fresh at the time of the request.
func (s *Session) Fresh() bool {
	return !s.ProvedAt.IsZero() && s.now < s.ProvedAt.Add(ProofWindow)
}

// ProofBy says which proofs the person can give: a passkey, TOTP or a recovery
// code, and, where neither is had, the password.
func (s *Session) ProofBy() (passkey, code, password bool) {
	passkey, code = s.Person.Passkeys > 0, s.Person.HasTOTP
	return passkey, code, !passkey && !code
}

// Entry is what signing in returns: a session, or a second step.
type Entry struct {
	Token   string   // for the cookie; "" if a second step is needed
	Session *Session // nil if a second step is needed
	Step    string   // for SignInCode, in a hidden field; valid for StepWindow; "" if none is needed
}

// stepWindow is how long a form of several steps may take.
const stepWindow = 10 * time.Minute

const (
	// maxSessions is how many sessions a person may have; one more ends the
	// oldest.
	maxSessions = 20

	// touchInterval is how exactly it is known when a session was last used.
	touchInterval = time.Minute
	touchTimeout  = 250 * time.Millisecond
)

// Session returns who a cookie's token belongs to, and moves the idle time on
// unless the visit is quiet.
// It refuses with SessionOver, or NotFromHere for one of the installation's staff outside
// of its networks.
func (p *People) Session(ctx context.Context, v Visit, token string) (*Session, error) {
	if len(token) != tokenLength {
		return nil, refuse(SessionOver)
	}
	s, err := p.readSession(ctx, v, hashOf(token))
	if err == nil && !v.Quiet && s.now >= s.SeenAt.Add(touchInterval) {
		p.touch(ctx, v, s)
	}
	return s, err
}

// tokenLength is how long the text of a token is.
var tokenLength = len(newToken())

func (p *People) readSession(ctx context.Context, v Visit, hash [32]byte) (out *Session, err error) {
	err = p.c.Store.View(ctx, func(tx *store.Tx) error {
		row, person, memberships, strict, err := access.SessionByHash(ctx, tx, hash)
		if err != nil {
			return err
		}
		now := p.now()
		if row == nil || row.Over(now) || !person.DisabledAt.IsZero() {
			return refuse(SessionOver)
		}
		out = newSession(row, now)
		out.Person, out.Memberships = person.Person, memberships
		out.FactorMissing = factorNeeded(memberships, strict) && !person.HasFactor()
		if p.isDemo(person.ID) {
			out.FactorMissing, out.ProvedAt = false, now
		}
		if !p.mayBeAt(v, memberships) {
			return refuse(NotFromHere)
		}
		return nil
	})
	return out, err
}

func newSession(row *access.Session, now till.Time) *Session {
	return &Session{ID: row.ID, Person: till.Person{ID: row.Person}, StartedAt: row.StartedAt, SeenAt: row.SeenAt, ExpiresAt: row.ExpiresAt, ProvedAt: row.ProvedAt,
		Device: row.Device, Address: row.Address, hash: row.TokenHash, now: now}
}

// touch records that the session was used. A page is not refused because this
// cannot be written.
func (p *People) touch(ctx context.Context, v Visit, s *Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), touchTimeout)
	defer cancel()
	s.SeenAt = s.now
	err := p.c.Store.UpdateBackground(ctx, func(tx *store.Tx) error {
		return access.TouchSession(ctx, tx, &access.Session{TokenHash: s.hash, Person: s.Person.ID, SeenAt: s.now, Address: v.Address.String()})
	})
	if err != nil {
		p.c.Log.Debug("session use not recorded", "error", err)
	}
}

// factorNeeded reports whether somebody with these roles needs a second factor.
func factorNeeded(memberships []till.Membership, strict bool) bool {
	return strict || slices.ContainsFunc(memberships, func(m till.Membership) bool { return needsFactor(m.Role) })
}

// mayBeAt reports whether somebody with these roles may use the console from an
// address.
func (p *People) mayBeAt(v Visit, memberships []till.Membership) bool {
	if len(p.c.HouseNetworks) == 0 || !slices.ContainsFunc(memberships, func(m till.Membership) bool { return m.Client == till.House }) {
		return true
	}
	return slices.ContainsFunc(p.c.HouseNetworks, func(n netip.Prefix) bool { return n.Contains(v.Address.Unmap()) })
}

// startSession writes a new session of a person and returns its token. The
// caller's transaction has locked the person.
func (p *People) startSession(ctx context.Context, tx *store.Tx, v Visit, person till.ID, memberships []till.Membership, stay, proved bool) (string, error) {
	token, now := newToken(), p.now()
	live, err := liveClients(ctx, tx, memberships)
	if err != nil {
		return "", err
	}
	last := lifetimeOf(memberships, live, stay)
	s := &access.Session{TokenHash: hashOf(token), ID: till.NewID(now), Person: person, StartedAt: now, SeenAt: now,
		ExpiresAt: now.Add(last.total), Idle: last.idle, Device: device(v), Address: v.Address.String()}
	if proved {
		s.ProvedAt = now
	}
	if err := access.InsertSession(ctx, tx, s); err != nil {
		return "", err
	}
	if err := access.TouchSession(ctx, tx, s); err != nil { // the person is seen
		return "", err
	}
	return token, access.KeepSessions(ctx, tx, person, maxSessions)
}

// liveClients says which of the clients that somebody develops for are live.
func liveClients(ctx context.Context, tx *store.Tx, memberships []till.Membership) (func(till.ID) bool, error) {
	live := map[till.ID]bool{}
	for _, m := range memberships {
		if m.Role != developer {
			continue
		}
		c, err := tx.Client(ctx, m.Client)
		if err != nil {
			return nil, err
		}
		live[c.ID] = c.Mode == till.Live
	}
	return func(client till.ID) bool { return live[client] }, nil
}

// device returns what is kept of a device's description: one line of valid
// text.
func device(v Visit) string {
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(v.Device, ""))
	for len(text) > maxDevice {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// entered returns the Entry of a session that was just written.
func (p *People) entered(ctx context.Context, v Visit, token string) (Entry, error) {
	s, err := p.readSession(ctx, v, hashOf(token))
	return Entry{Token: token, Session: s}, err
}

// changeAccess changes what a person signs in with: it runs change with the
// person locked, ends the person's other sessions and lets this one go on under
// a new token.
func (p *People) changeAccess(ctx context.Context, v Visit, s *Session, action, detail string, change func(tx *store.Tx, now till.Time) error) (Entry, error) {
	logs := logsOf(s.Memberships)
	var token string
	err := p.commit(ctx, logs, func(tx *store.Tx) ([]entry, error) {
		now := p.now()
		if _, err := access.LockPerson(ctx, tx, s.Person.ID); err != nil {
			return nil, err
		}
		if err := change(tx, now); err != nil {
			return nil, err
		}
		if _, err := access.DeleteSessions(ctx, tx, s.Person.ID, s.ID); err != nil {
			return nil, err
		}
		if err := access.WithdrawResets(ctx, tx, s.Person.ID, now); err != nil {
			return nil, err
		}
		var err error
		if token, err = renewToken(ctx, tx, v, s, now, now); err != nil {
			return nil, err
		}
		return inEach(logs, entry{actor: s.Actor(), action: action, subject: s.Person.ID, detail: detail}), nil
	})
	if err != nil {
		return Entry{}, err
	}
	return p.entered(ctx, v, token)
}

// renewToken lets a session go on under a new token. It refuses with
// SessionOver if it has ended meanwhile.
func renewToken(ctx context.Context, tx *store.Tx, v Visit, s *Session, now, proved till.Time) (string, error) {
	row, _, memberships, _, err := access.SessionByHash(ctx, tx, s.hash)
	if err != nil {
		return "", err
	}
	if row == nil {
		return "", refuse(SessionOver)
	}
	token := newToken()
	old := row.TokenHash
	row.TokenHash, row.SeenAt, row.ProvedAt, row.Address = hashOf(token), now, proved, v.Address.String()
	// A stricter role shortens the session, and none makes it longer.
	live, err := liveClients(ctx, tx, memberships)
	if err != nil {
		return "", err
	}
	if last := lifetimeOf(memberships, live, false); last == strictLifetime {
		row.Idle, row.ExpiresAt = min(row.Idle, last.idle), min(row.ExpiresAt, row.StartedAt.Add(last.total))
	}
	replaced, err := access.ReplaceSession(ctx, tx, old, row)
	if err == nil && !replaced {
		err = refuse(SessionOver)
	}
	return token, err
}

// SignOut ends the session itself.
func (p *People) SignOut(ctx context.Context, s *Session) error {
	return p.end(ctx, s, s.ID, "sign_out")
}

// Sessions returns where a person is signed in, newest first, at most
// MaxSessions. Only what a list shows is set.
func (p *People) Sessions(ctx context.Context, person till.ID) (out []*Session, err error) {
	err = p.c.Store.View(ctx, func(tx *store.Tx) error {
		out = nil
		now := p.now()
		rows, err := access.SessionsOf(ctx, tx, person, now, maxSessions)
		for _, row := range rows {
			out = append(out, newSession(row, now))
		}
		return err
	})
	return out, err
}

// EndSession ends one session of the person's own, by its ID.
func (p *People) EndSession(ctx context.Context, s *Session, id till.ID) error {
	return p.end(ctx, s, id, "session.end")
}

func (p *People) end(ctx context.Context, s *Session, id till.ID, action string) error {
	logs := logsOf(s.Memberships)
	return p.commit(ctx, logs, func(tx *store.Tx) ([]entry, error) {
		there, err := access.DeleteSession(ctx, tx, s.Person.ID, id)
		if err != nil || !there {
			return nil, err
		}
		return inEach(logs, entry{actor: s.Actor(), action: action, subject: s.Person.ID}), nil
	})
}

// EndOthers ends all sessions of the person but this one.
func (p *People) EndOthers(ctx context.Context, s *Session) error {
	logs := logsOf(s.Memberships)
	return p.commit(ctx, logs, func(tx *store.Tx) ([]entry, error) {
		n, err := access.DeleteSessions(ctx, tx, s.Person.ID, s.ID)
		if err != nil || n == 0 {
			return nil, err
		}
		return inEach(logs, entry{actor: s.Actor(), action: "session.end", subject: s.Person.ID, detail: fmt.Sprintf("%d others", n)}), nil
	})
}

// EndSessionsOf ends one session of a colleague, or all if id is zero. s needs
// PeopleManage with the client (HousePeople with the installation) and fresh proof.
func (p *People) EndSessionsOf(ctx context.Context, s *Session, c *till.Client, person, id till.ID) error {
	if err := p.mayManage(ctx, s, c, "session.end"); err != nil {
		return err
	}
	log := clientID(c)
	return p.commit(ctx, []till.ID{log}, func(tx *store.Tx) ([]entry, error) {
		colleague, _, err := colleague(ctx, tx, log, person)
		if err != nil {
			return nil, err
		}
		if id.IsZero() {
			_, err = access.DeleteSessions(ctx, tx, person, till.ID{})
		} else {
			_, err = access.DeleteSession(ctx, tx, person, id)
		}
		return []entry{{client: log, actor: s.Actor(), action: "session.end", subject: person, detail: "of " + colleague.Name}}, err
	})
}
