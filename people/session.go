package people

import (
	"context"
	"errors"
	"time"

	"till"
)

// Session is somebody who is signed in, as one request sees them. It is read
// anew for each request, so that a change counts at once.
type Session struct {
	ID          till.ID // for lists, not the secret
	Person      till.Person
	Memberships []till.Membership // by client; the house first
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
// at all. Member is any role there, or a house role that looks into merchants.
func (s *Session) May(c *till.Client, p Permission) Grant {
	if s.FactorMissing {
		return None
	}
	return grantIn(s.Memberships, c.ID, c.Mode, p)
}

// MayHouse reports whether the person may do something in the house. Member
// is any role of the house.
func (s *Session) MayHouse(p Permission) bool {
	return !s.FactorMissing && grantInHouse(s.Memberships, p)
}

// RoleIn returns the person's own role with a client, or with the house if it
// is till.House; "" if there is none.
func (s *Session) RoleIn(client till.ID) till.Role {
	for _, m := range s.Memberships {
		if m.Client == client {
			return m.Role
		}
	}
	return ""
}

// Looks reports whether the person sees a merchant by a role of the house and
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

var errUnbuilt = errors.New("people: not built yet")

// Entry is what signing in returns: a session, or a second step.
type Entry struct {
	Token   string   // for the cookie; "" if a second step is needed
	Session *Session // nil if a second step is needed
	Step    string   // for SignInCode, in a hidden field; valid for StepWindow; "" if none is needed
}

// StepWindow is how long a form of several steps may take.
const StepWindow = 10 * time.Minute

// Session returns who a cookie's token belongs to, and moves the idle time on.
// It refuses with SessionOver, or NotFromHere for a person of the house outside
// of its networks.
func (p *People) Session(ctx context.Context, v Visit, token string) (*Session, error) {
	return nil, errUnbuilt
}

// SignIn checks a login and a password. An unknown login takes as long as a
// wrong password. If the person has a second factor, the Entry has a Step for
// SignInCode. stay asks for a cashier's phone to stay signed in for 30 days. It
// refuses with WrongCredentials, WaitFirst, Busy and NotFromHere.
func (p *People) SignIn(ctx context.Context, v Visit, login, password string, stay bool) (Entry, error) {
	return Entry{}, errUnbuilt
}

// SignInCode ends what SignIn began, with a TOTP code or a recovery code. It
// refuses with WrongCode, WaitFirst and StepOver.
func (p *People) SignInCode(ctx context.Context, v Visit, step, code string) (Entry, error) {
	return Entry{}, errUnbuilt
}

// SignOut ends the session itself.
func (p *People) SignOut(ctx context.Context, s *Session) error { return errUnbuilt }

// Sessions returns where a person is signed in, newest first, at most
// MaxSessions.
func (p *People) Sessions(ctx context.Context, person till.ID) ([]*Session, error) {
	return nil, errUnbuilt
}

// MaxSessions is how many sessions a person may have; one more ends the oldest.
const MaxSessions = 20

// EndSession ends one session of the person's own, by its ID.
func (p *People) EndSession(ctx context.Context, s *Session, id till.ID) error { return errUnbuilt }

// EndOthers ends all sessions of the person but this one.
func (p *People) EndOthers(ctx context.Context, s *Session) error { return errUnbuilt }

// EndSessionsOf ends one session of a colleague, or all if id is zero. s needs
// PeopleManage with the client (HousePeople with the house) and fresh proof.
func (p *People) EndSessionsOf(ctx context.Context, s *Session, c *till.Client, person, id till.ID) error {
	return errUnbuilt
}
