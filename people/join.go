package people

import (
	"context"
	"errors"
	"slices"

	"till"
	"till/store"
	"till/store/access"
)

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

// check completes what somebody has filled in and refuses mistakes.
func (j *Joining) check(inv *access.Invitation) (err error) {
	if inv.Login != "" {
		j.Login = inv.Login
	}
	if j.Login, err = cleanLogin(j.Login); err != nil {
		return err
	}
	if inv.Kind == string(KindReset) {
		j.Name = inv.Name
	}
	if j.Name, err = cleanName(j.Name); err != nil {
		return err
	}
	if !checkLanguage(j.Language) || !checkZone(j.Zone) {
		return refuse(ValueInvalid)
	}
	return nil
}

// BeginJoin begins the making of a passkey behind a link, for the browser. It
// spends nothing. It refuses like Join.
func (p *People) BeginJoin(ctx context.Context, v Visit, token string, j Joining) (*Ceremony, error) {
	inv, err := p.invitation(ctx, v, token)
	if err != nil {
		return nil, err
	}
	if err := j.check(inv); err != nil {
		return nil, err
	}
	if err := p.checkLoginFree(ctx, v, inv, j.Login); err != nil {
		return nil, err
	}
	h := &holder{id: inv.Person, login: j.Login, name: j.Name}
	if inv.Kind == string(KindJoin) {
		h.id = till.NewID(p.now())
	}
	return p.beginRegistration(stepPasskeyJoin, h, step{Bound: bind(token + " " + j.Login)})
}

// checkLoginFree refuses a login that somebody has, before they make a passkey
// in vain. Join decides. A login that the visitor chooses is a guess at who has an
// account: it counts against the address and the link until it is free.
func (p *People) checkLoginFree(ctx context.Context, v Visit, inv *access.Invitation, login string) error {
	if inv.Kind == string(KindReset) {
		return nil
	}
	link := "link " + inv.ID.String()
	if inv.Login == "" {
		if err := p.admit(ctx, v, link); err != nil {
			return err
		}
	}
	err := p.c.Store.View(ctx, func(tx *store.Tx) error {
		person, err := access.PersonByLogin(ctx, tx, login)
		if err == nil && person != nil {
			err = refuse(LoginTaken)
		}
		return err
	})
	if err != nil || inv.Login != "" {
		return err
	}
	return p.commit(ctx, nil, func(tx *store.Tx) ([]entry, error) { return nil, p.forgive(ctx, tx, v, link, false) })
}

// Join spends a link: it makes the person with the role, or replaces what the
// person signs in with, and signs in. If the role needs a second factor and a
// password was set, the Session has FactorMissing. It refuses like Invitation,
// and with LoginTaken, LoginInvalid, NameInvalid and the refusals of passwords
// and passkeys; a refusal spends nothing.
func (p *People) Join(ctx context.Context, v Visit, token string, j Joining) (Entry, error) {
	inv, err := p.invitation(ctx, v, token)
	if err != nil {
		return Entry{}, err
	}
	if err := j.check(inv); err != nil {
		return Entry{}, err
	}
	if err := p.checkLoginFree(ctx, v, inv, j.Login); err != nil {
		return Entry{}, err
	}
	n, err := p.newcomer(ctx, inv, token, j)
	if err != nil {
		return Entry{}, err
	}
	if n.memberships, err = p.membershipsOf(ctx, n.id); err != nil {
		return Entry{}, err
	}
	logs := logsOf(append(slices.Clone(n.memberships), till.Membership{Client: inv.Client}))
	var session string
	err = p.commit(ctx, logs, func(tx *store.Tx) (entries []entry, err error) {
		session, entries, err = p.spend(ctx, tx, v, inv, n)
		return entries, err
	})
	if errors.Is(err, store.ErrConstraint) {
		return Entry{}, refuse(LoginTaken) // somebody else was faster
	}
	if err != nil {
		return Entry{}, err
	}
	return p.entered(ctx, v, session)
}

// newcomer is who joins, with what they sign in with from now on.
type newcomer struct {
	Joining
	id          till.ID
	phc         string          // the password; "" if there is a passkey
	passkey     *access.Passkey // nil if there is a password
	ceremony    *step
	memberships []till.Membership // before
}

// newcomer checks the password or the passkey.
func (p *People) newcomer(ctx context.Context, inv *access.Invitation, token string, j Joining) (n *newcomer, err error) {
	n = &newcomer{Joining: j, id: inv.Person}
	if len(j.Answer) == 0 {
		if n.id.IsZero() {
			n.id = till.NewID(p.now())
		}
		n.phc, err = p.newPassword(ctx, j.Password, j.Login, j.Name)
		return n, err
	}
	st, data, err := p.openCeremony(stepPasskeyJoin, j.Step)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(st.Bound, bind(token+" "+j.Login)) || !inv.Person.IsZero() && st.Person != inv.Person {
		return nil, refuse(StepOver)
	}
	n.id, n.ceremony = st.Person, st
	n.passkey, err = p.register(&holder{id: n.id, login: j.Login, name: j.Name}, data, j.Answer, "")
	return n, err
}

func (p *People) membershipsOf(ctx context.Context, person till.ID) (out []till.Membership, err error) {
	err = p.c.Store.View(ctx, func(tx *store.Tx) error { out, _, err = access.Memberships(ctx, tx, person); return err })
	return out, err
}

// spend writes what a link does, and the session.
func (p *People) spend(ctx context.Context, tx *store.Tx, v Visit, inv *access.Invitation, n *newcomer) (token string, entries []entry, err error) {
	now := p.now()
	if err := spendLink(ctx, tx, inv, n.id, now); err != nil {
		return "", nil, err
	}
	if n.ceremony != nil {
		if err := spendStep(ctx, tx, n.ceremony); err != nil {
			return "", nil, err
		}
	}
	person := till.Person{ID: n.id, Login: n.Login, Name: n.Name, Language: n.Language, Zone: n.Zone, CreatedAt: now}
	if inv.Kind == string(KindReset) {
		entries, err = resetPerson(ctx, tx, &person, n, now)
	} else {
		entries, err = makePerson(ctx, tx, inv, &person, n, now)
	}
	if err != nil {
		return "", nil, err
	}
	if n.passkey != nil {
		if err := access.InsertPasskey(ctx, tx, n.passkey); err != nil {
			return "", nil, err
		}
	}
	if err := p.forgive(ctx, tx, v, n.Login, true); err != nil {
		return "", nil, err
	}
	memberships, _, err := access.Memberships(ctx, tx, n.id)
	if err != nil {
		return "", nil, err
	}
	token, err = p.startSession(ctx, tx, v, n.id, memberships, false, true)
	return token, entries, err
}

// spendLink spends a link, if its maker could still make it. It locks the person
// first, as everything does that changes a person's access.
func spendLink(ctx context.Context, tx *store.Tx, inv *access.Invitation, person till.ID, now till.Time) error {
	if _, err := access.LockPerson(ctx, tx, person); err != nil {
		return err
	}
	spent, err := access.SpendInvitation(ctx, tx, inv.TokenHash, person, now)
	if err != nil {
		return err
	}
	if !spent {
		return refuse(LinkUsed)
	}
	given, err := stillGiven(ctx, tx, inv)
	if err == nil && !given {
		err = refuse(LinkWithdrawn)
	}
	return err
}

// grant gives a role. Open resets of the person end with it: who made them may
// not be allowed to give this role.
func grant(ctx context.Context, tx *store.Tx, m *till.Membership) error {
	if err := access.SetMembership(ctx, tx, m); err != nil {
		return err
	}
	return access.WithdrawResets(ctx, tx, m.Person, m.GrantedAt)
}

func makePerson(ctx context.Context, tx *store.Tx, inv *access.Invitation, person *till.Person, n *newcomer, now till.Time) ([]entry, error) {
	count, err := access.CountColleagues(ctx, tx, inv.Client)
	if err != nil {
		return nil, err
	}
	if count >= MaxColleagues {
		return nil, refuse(TooMany)
	}
	if err := access.InsertPerson(ctx, tx, &access.Person{Person: *person, Password: n.phc}); err != nil {
		return nil, err
	}
	err = grant(ctx, tx, &till.Membership{Client: inv.Client, Person: person.ID, Role: inv.Role, GrantedAt: now, GrantedBy: inv.InvitedBy})
	return []entry{{client: inv.Client, actor: person.Actor(), action: "person.join", subject: person.ID, detail: "as " + string(inv.Role) + ", invited by " + till.NameOfActor(inv.InvitedBy)}}, err
}

// resetPerson replaces everything that a person signs in with.
func resetPerson(ctx context.Context, tx *store.Tx, person *till.Person, n *newcomer, now till.Time) ([]entry, error) {
	before, err := access.PersonByID(ctx, tx, person.ID)
	if err != nil {
		return nil, err
	}
	if before == nil || !before.DisabledAt.IsZero() {
		return nil, refuse(LinkWithdrawn)
	}
	steps := []func() error{
		func() error { return access.SetPassword(ctx, tx, person.ID, n.phc) },
		func() error { return access.SetTOTP(ctx, tx, person.ID, nil, before.TOTPStep) },
		func() error { return access.SetRecoveryCodes(ctx, tx, person.ID, nil) },
		func() error { return access.DeletePasskeys(ctx, tx, person.ID) },
		func() error { return access.WithdrawResets(ctx, tx, person.ID, now) },
		func() error { _, err := access.DeleteSessions(ctx, tx, person.ID, till.ID{}); return err },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return inEach(logsOf(n.memberships), entry{actor: before.Actor(), action: "person.return", subject: person.ID}), nil
}

// Accept spends an invitation as somebody who is signed in already: they get
// the role too. The session goes on under a new token. It refuses like
// Invitation, and with LinkForOther, AlreadyMember and TooMany.
func (p *People) Accept(ctx context.Context, v Visit, s *Session, token string) (Entry, error) {
	inv, err := p.invitation(ctx, v, token)
	if err != nil {
		return Entry{}, err
	}
	switch {
	case inv.Kind != string(KindJoin) || inv.Login != "" && inv.Login != s.Person.Login:
		return Entry{}, refuse(LinkForOther)
	case s.RoleIn(inv.Client) != "":
		return Entry{}, refuse(AlreadyMember)
	case len(s.Memberships) >= MaxMemberships:
		return Entry{}, refuse(TooMany)
	}
	var renewed string
	err = p.commit(ctx, []till.ID{inv.Client}, func(tx *store.Tx) ([]entry, error) {
		now := p.now()
		if err := spendLink(ctx, tx, inv, s.Person.ID, now); err != nil {
			return nil, err
		}
		if err := grant(ctx, tx, &till.Membership{Client: inv.Client, Person: s.Person.ID, Role: inv.Role, GrantedAt: now, GrantedBy: inv.InvitedBy}); err != nil {
			return nil, err
		}
		if _, err := access.DeleteSessions(ctx, tx, s.Person.ID, s.ID); err != nil {
			return nil, err
		}
		var err error
		if renewed, err = renewToken(ctx, tx, v, s, now, s.ProvedAt); err != nil {
			return nil, err
		}
		return []entry{{client: inv.Client, actor: s.Actor(), action: "person.join", subject: s.Person.ID, detail: "as " + string(inv.Role) + ", invited by " + till.NameOfActor(inv.InvitedBy)}}, nil
	})
	if err != nil {
		return Entry{}, err
	}
	return p.entered(ctx, v, renewed)
}
