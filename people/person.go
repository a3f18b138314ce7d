package people

import (
	"context"

	"till"
)

// Colleague is a person with the role they have where one looks.
type Colleague struct {
	Person   till.Person
	Role     till.Role
	Sessions int // where they are signed in now
}

// People is who may use the console. It is safe for concurrent use.
type People struct{ c Config }

// New returns the people of an installation.
func New(c Config) (*People, error) { return &People{c}, nil }

// Any reports whether somebody can sign in: without people the console shows
// the command that invites the first.
func (p *People) Any(ctx context.Context) (bool, error) { return false, errUnbuilt }

// Colleagues returns the people of a client, or of the house if c is nil, by
// name, at most MaxColleagues.
func (p *People) Colleagues(ctx context.Context, c *till.Client) ([]*Colleague, error) {
	return nil, errUnbuilt
}

// MaxColleagues is how many people one client, or the house, may have.
const MaxColleagues = 500

// Clients returns the clients that a person has a role with, by name, at most
// MaxMemberships. A house role that looks into merchants adds none: account
// lists them all.
func (p *People) Clients(ctx context.Context, s *Session) ([]*till.Client, error) {
	return nil, errUnbuilt
}

// MaxMemberships is how many roles one person may have.
const MaxMemberships = 100

// SetRole gives a colleague another role, or takes the role away if role is "".
// It ends their sessions. s needs PeopleManage with the client (HousePeople
// with the house) and fresh proof, and cannot be the colleague.
func (p *People) SetRole(ctx context.Context, s *Session, c *till.Client, person till.ID, role till.Role) error {
	return errUnbuilt
}

// SetDisabled keeps a person from signing in anywhere, or lets them in again,
// and ends their sessions. s needs HousePeople and fresh proof. A merchant's
// owner takes the role away instead.
func (p *People) SetDisabled(ctx context.Context, s *Session, person till.ID, disabled bool) error {
	return errUnbuilt
}

// RequireFactor says whether a merchant asks all its people for a second
// factor, whatever their role.
func (p *People) RequireFactor(ctx context.Context, c *till.Client) (bool, error) {
	return false, errUnbuilt
}

// SetRequireFactor sets RequireFactor. s needs PolicySet and fresh proof.
func (p *People) SetRequireFactor(ctx context.Context, s *Session, c *till.Client, required bool) error {
	return errUnbuilt
}

// Profile is what people change about themselves.
type Profile struct {
	Name, Language, Zone, Theme string
	NoKeys                      bool
}

// SetProfile changes it. It refuses with NameInvalid and ValueInvalid.
func (p *People) SetProfile(ctx context.Context, s *Session, profile Profile) error {
	return errUnbuilt
}

// Act is what NoteAct writes: see store.AuditRow.
type Act struct {
	Action  string
	Subject till.ID
	Detail  string // never a secret, never a whole phone number
}

// NoteAct appends to the audit log of a client, or of the house if c is nil, in
// a commit of its own: for reveals, exports and refused pages. An act that
// changes something writes its row in its own commit.
func (p *People) NoteAct(ctx context.Context, s *Session, c *till.Client, a Act) error {
	return errUnbuilt
}

// NoteLook appends the one row a day which says that a person of the house looks
// into a merchant; further calls of the same UTC day do nothing.
func (p *People) NoteLook(ctx context.Context, s *Session, c *till.Client) error { return errUnbuilt }

// Run deletes what has expired until ctx ends: sessions, old invitations,
// counts of failures.
func (p *People) Run(ctx context.Context) {}
