package people

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"
	"unicode"

	"till"
	"till/store"
	"till/store/access"
)

// Colleague is a person with their role in one place.
type Colleague struct {
	Person   till.Person
	Role     till.Role
	Sessions int // where they are signed in now
}

// How many there may be.
const (
	MaxColleagues  = 500 // people of one client, or of the installation
	MaxMemberships = 20  // roles of one person
)

// cleanLogin returns a login as it is stored: an e-mail address in lower case,
// or a phone number with its country code as "+242061234567". It refuses with
// LoginInvalid.
func cleanLogin(text string) (string, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	if local, domain, mail := strings.Cut(text, "@"); mail {
		plain := func(r rune) bool { return r > ' ' && r < 0x7f && r != '@' && r != '<' && r != '>' && r != '"' }
		if len(text) > 254 || local == "" || domain == "" || strings.ContainsFunc(local+domain, func(r rune) bool { return !plain(r) }) {
			return "", refuse(LoginInvalid)
		}
		return text, nil
	}
	text = strings.NewReplacer(" ", "", "\u00a0", "", "\u202f", "", "-", "", ".", "", "(", "", ")", "").Replace(text)
	digits, plus := strings.CutPrefix(text, "+")
	if !plus {
		digits, plus = strings.CutPrefix(text, "00")
	}
	if !plus || len(digits) < 8 || len(digits) > 15 || strings.Trim(digits, "0123456789") != "" {
		return "", refuse(LoginInvalid)
	}
	return "+" + digits, nil
}

// cleanName returns a person's name. It refuses with NameInvalid.
func cleanName(name string) (string, error) {
	name = strings.Join(strings.Fields(name), " ")
	if _, err := till.PersonActor(name); err != nil {
		return "", refuse(NameInvalid)
	}
	return name, nil
}

func isPlain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

func checkLanguage(language string) bool { return language == "en" || language == "fr" }

// maxZone is the longest name of a time zone.
const maxZone = 64

func checkZone(zone string) bool {
	if zone == "" {
		return true
	}
	_, err := time.LoadLocation(zone)
	return err == nil && len(zone) <= maxZone && zone != "Local"
}

// Any reports whether somebody can sign in: without people the console shows
// the command that invites the first.
func (p *People) Any(ctx context.Context) (there bool, err error) {
	err = p.c.Store.View(ctx, func(tx *store.Tx) error { there, err = access.AnyPerson(ctx, tx); return err })
	return there, err
}

// Colleagues returns the people of a client, or of the installation if c is nil, by
// name, at most MaxColleagues.
func (p *People) Colleagues(ctx context.Context, c *till.Client) (out []*Colleague, err error) {
	err = p.c.Store.View(ctx, func(tx *store.Tx) error {
		out = nil
		rows, err := access.Colleagues(ctx, tx, clientID(c), p.now(), MaxColleagues)
		for _, r := range rows {
			out = append(out, &Colleague{r.Person, r.Role, r.Sessions})
		}
		return err
	})
	return out, err
}

// Clients returns the clients that a person has a role with, by name, at most
// MaxMemberships. A role of the installation that may view merchants adds none: account
// lists them all.
func (p *People) Clients(ctx context.Context, s *Session) (out []*till.Client, err error) {
	err = p.c.Store.View(ctx, func(tx *store.Tx) error {
		out, err = access.ClientsOf(ctx, tx, s.Person.ID, MaxMemberships)
		return err
	})
	return out, err
}

// mayManage refuses somebody who may not manage the people of a client, or of
// the installation if c is nil, and writes that down; and somebody whose proof is not
// fresh.
func (p *People) mayManage(ctx context.Context, s *Session, c *till.Client, action string) error {
	need, may := HousePeople, false
	if c == nil {
		may = s.MayHouse(HousePeople)
	} else {
		need, may = PeopleManage, s.May(c, PeopleManage) == Full
	}
	switch {
	case !may:
		return p.notAllowed(ctx, s, c, action, need)
	case !s.Fresh():
		return refuse(ProofNeeded)
	}
	return nil
}

func (p *People) notAllowed(ctx context.Context, s *Session, c *till.Client, action string, need Permission) error {
	return p.noteRefusal(ctx, s, []till.ID{clientID(c)}, action+".refuse", "without "+string(need), &Refusal{Code: NotAllowed, Need: need})
}

// noteRefusal writes a refusal down and returns it.
func (p *People) noteRefusal(ctx context.Context, s *Session, logs []till.ID, action, detail string, refused error) error {
	err := p.commit(ctx, logs, func(*store.Tx) ([]entry, error) {
		return inEach(logs, entry{actor: s.Actor(), action: action, subject: s.Person.ID, detail: detail}), nil
	})
	if err != nil {
		return err
	}
	return refused
}

// colleague returns a person of a client with their role. It refuses with
// PersonUnknown.
func colleague(ctx context.Context, tx *store.Tx, client, id till.ID) (*access.Person, till.Role, error) {
	person, err := access.PersonByID(ctx, tx, id)
	if err != nil {
		return nil, "", err
	}
	memberships, _, err := access.Memberships(ctx, tx, id)
	if err != nil {
		return nil, "", err
	}
	for _, m := range memberships {
		if m.Client == client && person != nil {
			return person, m.Role, nil
		}
	}
	return nil, "", refuse(PersonUnknown)
}

// SetRole gives a colleague another role, or removes the role if role is "".
// It ends their sessions. s needs PeopleManage with the client (HousePeople
// with the installation) and fresh proof, and cannot be the colleague.
func (p *People) SetRole(ctx context.Context, s *Session, c *till.Client, person till.ID, role till.Role) error {
	if err := p.mayManage(ctx, s, c, "role.set"); err != nil {
		return err
	}
	switch {
	case person == s.Person.ID:
		return refuse(NotYourself)
	case c != nil && s.RoleIn(c.ID) == "" && role != "" && role != till.RoleOwner:
		return p.notAllowed(ctx, s, c, "role.set", PeopleManage) // the installation's staff make owners, who make the rest
	}
	return p.SetRoleAs(ctx, s.Actor(), clientID(c), person, role)
}

// SetRoleAs is SetRole for a command, whose user may do anything.
func (p *People) SetRoleAs(ctx context.Context, actor string, client, person till.ID, role till.Role) error {
	if role != "" && !role.Valid(client) {
		return refuse(ValueInvalid)
	}
	return p.commit(ctx, []till.ID{client}, func(tx *store.Tx) ([]entry, error) {
		if _, err := access.LockPerson(ctx, tx, person); err != nil {
			return nil, err
		}
		colleague, before, err := colleague(ctx, tx, client, person)
		if err != nil || before == role {
			return nil, err
		}
		e := entry{client: client, actor: actor, action: "role.set", subject: person, detail: fmt.Sprintf("%s: %s, before %s", colleague.Name, role, before)}
		if role == "" {
			e.action, e.detail = "role.remove", fmt.Sprintf("%s: %s", colleague.Name, before)
			if err = access.DeleteMembership(ctx, tx, client, person); err == nil {
				err = access.WithdrawResets(ctx, tx, person, p.now())
			}
		} else {
			err = grant(ctx, tx, &till.Membership{Client: client, Person: person, Role: role, GrantedAt: p.now(), GrantedBy: actor})
		}
		if err != nil {
			return nil, err
		}
		_, err = access.DeleteSessions(ctx, tx, person, till.ID{})
		return []entry{e}, err
	})
}

// SetDisabled keeps a person from signing in anywhere, or lets them in again,
// and ends their sessions. s needs HousePeople and fresh proof. A merchant's
// owner removes the role instead.
func (p *People) SetDisabled(ctx context.Context, s *Session, person till.ID, disabled bool) error {
	if err := p.mayManage(ctx, s, nil, "person.disable"); err != nil {
		return err
	}
	if person == s.Person.ID {
		return refuse(NotYourself)
	}
	return p.SetDisabledAs(ctx, s.Actor(), person, disabled)
}

// SetDisabledAs is SetDisabled for a command.
func (p *People) SetDisabledAs(ctx context.Context, actor string, id till.ID, disabled bool) error {
	return p.commit(ctx, []till.ID{till.House}, func(tx *store.Tx) ([]entry, error) {
		if _, err := access.LockPerson(ctx, tx, id); err != nil {
			return nil, err
		}
		person, err := access.PersonByID(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		if person == nil {
			return nil, refuse(PersonUnknown)
		}
		if disabled == !person.DisabledAt.IsZero() {
			return nil, nil
		}
		action, since := "person.enable", till.Time(0)
		if disabled {
			action, since = "person.disable", p.now()
		}
		if err := access.SetDisabled(ctx, tx, id, since); err != nil {
			return nil, err
		}
		if err := access.WithdrawResets(ctx, tx, id, p.now()); err != nil {
			return nil, err
		}
		_, err = access.DeleteSessions(ctx, tx, id, till.ID{})
		return []entry{{client: till.House, actor: actor, action: action, subject: id, detail: person.Name}}, err
	})
}

// RequireFactor says whether a merchant asks all its people for a second
// factor, whatever their role.
func (p *People) RequireFactor(ctx context.Context, c *till.Client) (required bool, err error) {
	err = p.c.Store.View(ctx, func(tx *store.Tx) error { required, err = access.FactorRule(ctx, tx, c.ID); return err })
	return required, err
}

// SetRequireFactor sets RequireFactor. s needs PolicySet and fresh proof.
func (p *People) SetRequireFactor(ctx context.Context, s *Session, c *till.Client, required bool) error {
	switch {
	case s.May(c, PolicySet) != Full:
		return p.notAllowed(ctx, s, c, "policy.factor", PolicySet)
	case !s.Fresh():
		return refuse(ProofNeeded)
	}
	return p.commit(ctx, []till.ID{c.ID}, func(tx *store.Tx) ([]entry, error) {
		err := access.SetFactorRule(ctx, tx, c.ID, required)
		return []entry{{client: c.ID, actor: s.Actor(), action: "policy.factor", detail: fmt.Sprintf("second factor for all: %t", required)}}, err
	})
}

// Profile is what people change about themselves.
type Profile struct {
	Name, Language, Zone, Theme string
	NoKeys                      bool
}

// renameName is the count of a person's new names: each is a row in the logs of
// others.
func renameName(person till.ID) [32]byte { return sha256.Sum256([]byte("rename " + person.String())) }

// SetProfile changes it. It refuses with NameInvalid, ValueInvalid and, after
// many names, WaitFirst.
func (p *People) SetProfile(ctx context.Context, s *Session, profile Profile) error {
	name, err := cleanName(profile.Name)
	if err != nil {
		return err
	}
	theme := profile.Theme
	if !checkLanguage(profile.Language) || !checkZone(profile.Zone) || theme != "" && theme != "light" && theme != "dark" {
		return refuse(ValueInvalid)
	}
	person := s.Person
	person.Name, person.Language, person.Zone, person.Theme, person.NoKeys = name, profile.Language, profile.Zone, theme, profile.NoKeys
	if name != s.Person.Name {
		if err := p.count(ctx, renameName(person.ID)); err != nil {
			return err
		}
	}
	logs := logsOf(s.Memberships)
	return p.commit(ctx, logs, func(tx *store.Tx) ([]entry, error) {
		if err := access.UpdateProfile(ctx, tx, &person); err != nil || name == s.Person.Name {
			return nil, err // only a name is somebody else's concern
		}
		return inEach(logs, entry{actor: s.Actor(), action: "person.rename", subject: person.ID, detail: name}), nil
	})
}

// Act is what NoteAct writes: see store.AuditRow.
type Act struct {
	Action  string
	Subject till.ID
	Detail  string // never a secret, never a whole phone number
}

// NoteAct appends to the audit log of a client, or of the installation if c is nil, in
// a commit of its own: for reveals, exports and refused pages. An act that
// changes something writes its row in its own commit.
func (p *People) NoteAct(ctx context.Context, s *Session, c *till.Client, a Act) error {
	log := clientID(c)
	return p.commit(ctx, []till.ID{log}, func(*store.Tx) ([]entry, error) {
		return []entry{{client: log, actor: s.Actor(), action: a.Action, subject: a.Subject, detail: a.Detail}}, nil
	})
}

// NoteLook appends the one row a day which says that one of the installation's staff
// viewed a merchant; further calls of the same UTC day do nothing.
func (p *People) NoteLook(ctx context.Context, s *Session, c *till.Client) error {
	if p.looked(s.Person.ID, c.ID) {
		return nil
	}
	err := p.commit(ctx, []till.ID{c.ID}, func(tx *store.Tx) ([]entry, error) {
		first, err := access.InsertLook(ctx, tx, c.ID, s.Person.ID, p.now())
		if err != nil || !first {
			return nil, err
		}
		return []entry{{client: c.ID, actor: s.Actor(), action: "client.look", subject: c.ID, detail: "as " + string(s.RoleIn(till.House))}}, nil
	})
	if err == nil {
		p.rememberLook(s.Person.ID, c.ID)
	}
	return err
}
