package people

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"till"
	"till/internal/door"
	"till/store"
	"till/store/access"
)

// Invitation is a link that lets somebody in: into a role, or back in.
type Invitation struct {
	ID         till.ID
	Kind       InvitationKind
	Client     till.ID // till.House: the installation
	ClientName string  // "" for the installation
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
	joinWindow  = 72 * time.Hour
	resetWindow = 24 * time.Hour
)

// maxInvitations is how many open invitations a client may have.
const maxInvitations = 50

func shownInvitation(i *access.Invitation) *Invitation {
	return &Invitation{ID: i.ID, Kind: InvitationKind(i.Kind), Client: i.Client, ClientName: i.ClientName, Role: i.Role, Name: i.Name, Login: i.Login,
		Person: i.Person, InvitedBy: i.InvitedBy, CreatedAt: i.CreatedAt, ExpiresAt: i.ExpiresAt}
}

// Invite makes a link that gives a role with a client, or with the installation if c is
// nil. The token is for /console/join/{token} and is shown this once. s needs
// PeopleManage with the client (HousePeople with the installation) and fresh proof.
// login may be "": then the invited choose theirs. It refuses with NotAllowed,
// ProofNeeded, NameInvalid, LoginInvalid, ValueInvalid, TooMany and
// AlreadyMember.
func (p *People) Invite(ctx context.Context, s *Session, c *till.Client, role till.Role, name, login string) (*Invitation, string, error) {
	if err := p.mayManage(ctx, s, c, "person.invite"); err != nil {
		return nil, "", err
	}
	if c != nil && s.RoleIn(c.ID) == "" && role != till.RoleOwner {
		return nil, "", p.notAllowed(ctx, s, c, "person.invite", PeopleManage) // the installation's staff invite owners, who invite the rest
	}
	return p.InviteAs(ctx, s.Actor(), clientID(c), role, name, login)
}

// InviteAs is Invite for a command, whose user may do anything.
func (p *People) InviteAs(ctx context.Context, actor string, client till.ID, role till.Role, name, login string) (*Invitation, string, error) {
	if !role.Valid(client) {
		return nil, "", refuse(ValueInvalid)
	}
	name, err := cleanName(name)
	if err != nil {
		return nil, "", err
	}
	if login != "" {
		if login, err = cleanLogin(login); err != nil {
			return nil, "", err
		}
	}
	token := newToken()
	inv := &access.Invitation{TokenHash: hashOf(token), Kind: string(KindJoin), Client: client, Role: role, Name: name, Login: login, InvitedBy: actor}
	err = p.commit(ctx, []till.ID{client}, func(tx *store.Tx) ([]entry, error) {
		now := p.now()
		if err := checkRoom(ctx, tx, client, login, now); err != nil {
			return nil, err
		}
		if client != till.House {
			c, err := tx.Client(ctx, client)
			if err != nil {
				return nil, err
			}
			inv.ClientName = c.Name
		}
		inv.ID, inv.CreatedAt, inv.ExpiresAt = till.NewID(now), now, now.Add(joinWindow)
		if err := access.InsertInvitation(ctx, tx, inv); err != nil {
			return nil, err
		}
		return []entry{{client: client, actor: actor, action: "person.invite", subject: inv.ID, detail: fmt.Sprintf("%s as %s", name, role)}}, nil
	})
	if err != nil {
		return nil, "", err
	}
	return shownInvitation(inv), token, nil
}

// checkRoom refuses an invitation that would be one too many, or for somebody
// who is there already.
func checkRoom(ctx context.Context, tx *store.Tx, client till.ID, login string, now till.Time) error {
	open, err := access.OpenInvitations(ctx, tx, client, now, maxInvitations)
	if err != nil {
		return err
	}
	n, err := access.CountColleagues(ctx, tx, client)
	if err != nil {
		return err
	}
	if len(open) >= maxInvitations || n >= MaxColleagues {
		return refuse(TooMany)
	}
	if login == "" {
		return nil
	}
	person, err := access.PersonByLogin(ctx, tx, login)
	if err != nil || person == nil {
		return err
	}
	_, _, err = colleague(ctx, tx, client, person.ID)
	switch {
	case err == nil:
		return refuse(AlreadyMember)
	case RefusalOf(err) != nil:
		return nil
	}
	return err
}

// Invitations returns the open invitations of a client, or of the installation if c is
// nil, newest first, at most MaxInvitations.
func (p *People) Invitations(ctx context.Context, c *till.Client) (out []*Invitation, err error) {
	err = p.c.Store.View(ctx, func(tx *store.Tx) error {
		out = nil
		rows, err := access.OpenInvitations(ctx, tx, clientID(c), p.now(), maxInvitations)
		for _, i := range rows {
			out = append(out, shownInvitation(i))
		}
		return err
	})
	return out, err
}

// Withdraw ends an open invitation. s needs what Invite needs.
func (p *People) Withdraw(ctx context.Context, s *Session, c *till.Client, id till.ID) error {
	if err := p.mayManage(ctx, s, c, "person.withdraw"); err != nil {
		return err
	}
	log := clientID(c)
	return p.commit(ctx, []till.ID{log}, func(tx *store.Tx) ([]entry, error) {
		there, err := access.WithdrawInvitation(ctx, tx, log, id, p.now())
		if err != nil || !there {
			return nil, err
		}
		return []entry{{client: log, actor: s.Actor(), action: "person.withdraw", subject: id}}, nil
	})
}

// Invitation returns what a link is for, and spends nothing: chats and scanners
// open links first. It refuses with LinkUnknown, LinkExpired, LinkUsed,
// LinkWithdrawn and WaitFirst.
func (p *People) Invitation(ctx context.Context, v Visit, token string) (*Invitation, error) {
	inv, err := p.invitation(ctx, v, token)
	if err != nil {
		return nil, err
	}
	return shownInvitation(inv), nil
}

func (p *People) invitation(ctx context.Context, v Visit, token string) (inv *access.Invitation, err error) {
	// A guess is taken from the address before the database is asked; those who
	// sign in there have tries of their own.
	if err := try(p.links, v, p.now()); err != nil {
		return nil, err
	}
	valid := true
	err = p.c.Store.View(ctx, func(tx *store.Tx) error {
		if inv, err = access.InvitationByHash(ctx, tx, hashOf(token)); err != nil || inv == nil {
			return err
		}
		valid, err = stillGiven(ctx, tx, inv)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case inv == nil: // a guess: nobody draws 32 bytes that are right
		return nil, refuse(LinkUnknown)
	}
	p.links.Return(door.Network(v.Address), p.now().Std())
	switch {
	case !inv.SpentAt.IsZero():
		return nil, refuse(LinkUsed)
	case !inv.WithdrawnAt.IsZero():
		return nil, refuse(LinkWithdrawn)
	case p.now() >= inv.ExpiresAt:
		return nil, refuse(LinkExpired)
	case !valid:
		return nil, refuse(LinkWithdrawn)
	}
	return inv, nil
}

// stillGiven reports whether the maker of a link could make it now: people of a
// suspended merchant give no access. A reset gives no role that the person got
// after it was made: who made it may not give that one. The command line may do
// anything.
func stillGiven(ctx context.Context, tx *store.Tx, inv *access.Invitation) (bool, error) {
	var maker []till.Membership
	id, isPerson := till.PersonOfActor(inv.InvitedBy)
	if isPerson {
		person, err := access.PersonByID(ctx, tx, id)
		if err != nil || person == nil || !person.DisabledAt.IsZero() {
			return false, err
		}
		if maker, _, err = access.Memberships(ctx, tx, id); err != nil {
			return false, err
		}
		if !mayInvite(maker, inv) {
			return false, nil
		}
		if suspended, err := suspended(ctx, tx, inv.Client); err != nil || suspended {
			return false, err
		}
	}
	if inv.Kind != string(KindReset) {
		return true, nil
	}
	of, _, err := access.Memberships(ctx, tx, inv.Person)
	if err != nil {
		return false, err
	}
	inside := false
	for _, m := range of {
		if inside = inside || m.Client == inv.Client; m.GrantedAt > inv.CreatedAt || isPerson && m.Client != inv.Client && !grantInHouse(maker, HousePeople) {
			return false, nil
		}
	}
	return inside || !isPerson, nil
}

// suspended reports whether a merchant is; the installation never is.
func suspended(ctx context.Context, tx *store.Tx, client till.ID) (bool, error) {
	if client == till.House {
		return false, nil
	}
	c, err := tx.Client(ctx, client)
	if err != nil {
		return false, err
	}
	return c.Suspended, nil
}

// mayInvite reports whether somebody with these roles may make a link like
// this one: the installation's staff make owners, who make the rest.
func mayInvite(maker []till.Membership, inv *access.Invitation) bool {
	if inv.Client == till.House {
		return grantInHouse(maker, HousePeople)
	}
	staff := slices.ContainsFunc(maker, func(m till.Membership) bool { return m.Client == inv.Client })
	return grantIn(maker, inv.Client, till.Live, PeopleManage) == Full && (staff || inv.Kind == string(KindReset) || inv.Role == till.RoleOwner)
}

// Reset makes a link that lets a colleague back in with a new password or
// passkey. Until it is spent, nothing changes. s needs PeopleManage with the
// client (HousePeople with the installation) and fresh proof, and may not reset
// somebody who has a role that s could not give: of the installation, or with another
// client.
func (p *People) Reset(ctx context.Context, s *Session, c *till.Client, person till.ID) (*Invitation, string, error) {
	if err := p.mayManage(ctx, s, c, "person.reset"); err != nil {
		return nil, "", err
	}
	if person == s.Person.ID {
		return nil, "", refuse(NotYourself)
	}
	target, memberships, err := p.readPerson(ctx, person)
	if err != nil {
		return nil, "", err
	}
	inside := false
	for _, m := range memberships {
		if inside = inside || m.Client == clientID(c); m.Client != clientID(c) && !s.MayHouse(HousePeople) {
			return nil, "", p.notAllowed(ctx, s, c, "person.reset", HousePeople)
		}
	}
	if target == nil || !inside {
		return nil, "", refuse(PersonUnknown)
	}
	return p.ResetAs(ctx, s.Actor(), clientID(c), person)
}

// ResetAs is Reset for a command.
func (p *People) ResetAs(ctx context.Context, actor string, client, id till.ID) (*Invitation, string, error) {
	token := newToken()
	inv := &access.Invitation{TokenHash: hashOf(token), Kind: string(KindReset), Client: client, Person: id, InvitedBy: actor}
	err := p.commit(ctx, []till.ID{client}, func(tx *store.Tx) ([]entry, error) {
		now := p.now()
		if _, err := access.LockPerson(ctx, tx, id); err != nil {
			return nil, err
		}
		person, err := access.PersonByID(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		if person == nil || !person.DisabledAt.IsZero() {
			return nil, refuse(PersonUnknown)
		}
		if err := access.WithdrawResets(ctx, tx, id, now); err != nil { // one link at a time
			return nil, err
		}
		inv.ID, inv.Name, inv.Login, inv.CreatedAt, inv.ExpiresAt = till.NewID(now), person.Name, person.Login, now, now.Add(resetWindow)
		if given, err := stillGiven(ctx, tx, inv); err != nil || !given {
			return nil, cmp.Or(err, refuse(PersonUnknown)) // a role came or went meanwhile
		}
		if err := access.InsertInvitation(ctx, tx, inv); err != nil {
			return nil, err
		}
		return []entry{{client: client, actor: actor, action: "person.reset", subject: id, detail: person.Name}}, nil
	})
	if err != nil {
		return nil, "", err
	}
	return shownInvitation(inv), token, nil
}

// OpenReset returns the link that would let somebody in as this person; nil if
// there is none. The person sees it in their profile.
func (p *People) OpenReset(ctx context.Context, person till.ID) (out *Invitation, err error) {
	err = p.c.Store.View(ctx, func(tx *store.Tx) error {
		out = nil
		inv, err := access.OpenReset(ctx, tx, person, p.now())
		if inv != nil {
			out = shownInvitation(inv)
		}
		return err
	})
	return out, err
}
