package people

import (
	"context"
	"time"

	"till"
)

// Invitation is a link that lets somebody in: into a role, or back in.
type Invitation struct {
	ID         till.ID
	Kind       InvitationKind
	Client     till.ID // till.House: the house
	ClientName string  // "" for the house
	Role       till.Role
	Name       string  // of the invited
	Login      string  // "" lets the invited choose
	Person     till.ID // who is let back in; zero for an invitation
	InvitedBy  string  // an actor; till.NameOfActor shows it
	CreatedAt  till.Time
	ExpiresAt  till.Time
}

// InvitationKind says what a link does.
type InvitationKind string

// The kinds.
const (
	KindJoin  InvitationKind = "join"  // gives a role
	KindReset InvitationKind = "reset" // replaces the password and removes TOTP, recovery codes and passkeys
)

// How long links work.
const (
	JoinWindow  = 72 * time.Hour
	ResetWindow = 24 * time.Hour
)

// Invite makes a link that gives a role with a client, or with the house if c is
// nil. The token is for /console/join/{token} and is shown this once. s needs
// PeopleManage with the client (HousePeople with the house) and fresh proof.
// login may be "": then the invited choose theirs.
func (p *People) Invite(ctx context.Context, s *Session, c *till.Client, role till.Role, name, login string) (*Invitation, string, error) {
	return nil, "", errUnbuilt
}

// Invitations returns the open invitations of a client, or of the house if c is
// nil, newest first, at most MaxInvitations.
func (p *People) Invitations(ctx context.Context, c *till.Client) ([]*Invitation, error) {
	return nil, errUnbuilt
}

// MaxInvitations is how many open invitations a client may have.
const MaxInvitations = 50

// Withdraw ends an open invitation. s needs what Invite needs.
func (p *People) Withdraw(ctx context.Context, s *Session, c *till.Client, id till.ID) error {
	return errUnbuilt
}

// Invitation returns what a link is for, and spends nothing: chats and scanners
// open links first. It refuses with LinkUnknown, LinkExpired, LinkUsed,
// LinkWithdrawn and WaitFirst.
func (p *People) Invitation(ctx context.Context, v Visit, token string) (*Invitation, error) {
	return nil, errUnbuilt
}

// Joining is what somebody fills in behind a link. Either Password is set, or
// Step and Answer of a passkey (BeginJoin).
type Joining struct {
	Login    string // ignored where the invitation names it, and for a reset
	Name     string // ignored for a reset
	Language string
	Zone     string
	Password string
	Step     string // from the Ceremony
	Answer   []byte // what the browser's authenticator said, as JSON
}

// BeginJoin begins the making of a passkey behind a link, for the browser. It
// spends nothing. It refuses like Join.
func (p *People) BeginJoin(ctx context.Context, v Visit, token string, j Joining) (*Ceremony, error) {
	return nil, errUnbuilt
}

// Join spends a link: it makes the person with the role, or replaces what the
// person signs in with, and signs in. If the role needs a second factor and a
// password was set, the Session has FactorMissing. It refuses like Invitation,
// and with LoginTaken, LoginInvalid, NameInvalid and the refusals of passwords
// and passkeys; a refusal spends nothing.
func (p *People) Join(ctx context.Context, v Visit, token string, j Joining) (Entry, error) {
	return Entry{}, errUnbuilt
}

// Accept spends an invitation as somebody who is signed in already: they get
// the role too. The session goes on under a new token. It refuses like
// Invitation, and with LinkForOther and AlreadyMember.
func (p *People) Accept(ctx context.Context, v Visit, s *Session, token string) (Entry, error) {
	return Entry{}, errUnbuilt
}

// Reset makes a link that lets a colleague back in with a new password or
// passkey. Until it is spent, nothing changes. s needs PeopleManage with the
// client (HousePeople with the house) and fresh proof, and may not reset
// somebody who has a role that s could not give: of the house, or with another
// client.
func (p *People) Reset(ctx context.Context, s *Session, c *till.Client, person till.ID) (*Invitation, string, error) {
	return nil, "", errUnbuilt
}
