package people

import (
	"context"
	"crypto/subtle"
	"slices"

	"till"
	"till/store"
	"till/store/access"
)

// DemoPerson is one of the people that till dev makes.
type DemoPerson struct {
	ID   till.ID
	Name string
	Role till.Role // with the demo client, or with the installation
}

// demoPeople are who till dev shows around. They have no password: the only way
// in is the token of the process.
var demoPeople = []struct {
	login, name string
	role        till.Role
}{
	{"awa@demo.invalid", "Awa", owner},
	{"brice@demo.invalid", "Brice", cashier},
	{"chantal@demo.invalid", "Chantal", accountant},
	{"didier@demo.invalid", "Didier", developer},
	{"esther@demo.invalid", "Esther", finance},
	{"felix@demo.invalid", "Félix", finance},
	{"grace@demo.invalid", "Grâce", admin},
}

const demoActor = "till dev"

// OpenDemo makes the demo people, with roles in these clients and in the installation,
// unless they are there, and returns the token that lets anybody on this
// machine in as one of them while the process runs. Only till dev calls it.
func (p *People) OpenDemo(ctx context.Context, clients ...till.ID) (string, error) {
	var demo []DemoPerson
	logs := append([]till.ID{till.House}, clients...)
	err := p.commit(ctx, logs, func(tx *store.Tx) ([]entry, error) {
		demo = nil
		var entries []entry
		for _, d := range demoPeople {
			person, err := access.PersonByLogin(ctx, tx, d.login)
			if err != nil {
				return nil, err
			}
			now := p.now()
			if person == nil {
				person = &access.Person{Person: till.Person{ID: till.NewID(now), Login: d.login, Name: d.name, Language: "en", CreatedAt: now}}
				if err := access.InsertPerson(ctx, tx, person); err != nil {
					return nil, err
				}
			}
			in := clients
			if d.role.OfHouse() {
				in = []till.ID{till.House}
			}
			made, err := p.joinDemo(ctx, tx, person, d.role, in)
			if err != nil {
				return nil, err
			}
			entries = append(entries, made...)
			demo = append(demo, DemoPerson{person.ID, person.Name, d.role})
		}
		return entries, nil
	})
	if err != nil {
		return "", err
	}
	p.demoMu.Lock()
	defer p.demoMu.Unlock()
	p.demo, p.demoToken = demo, newToken()
	return p.demoToken, nil
}

func (p *People) joinDemo(ctx context.Context, tx *store.Tx, person *access.Person, role till.Role, in []till.ID) (entries []entry, err error) {
	have, _, err := access.Memberships(ctx, tx, person.ID)
	if err != nil {
		return nil, err
	}
	for _, client := range in {
		if slices.ContainsFunc(have, func(m till.Membership) bool { return m.Client == client }) {
			continue
		}
		if err := grant(ctx, tx, &till.Membership{Client: client, Person: person.ID, Role: role, GrantedAt: p.now(), GrantedBy: demoActor}); err != nil {
			return nil, err
		}
		entries = append(entries, entry{client: client, actor: demoActor, action: "role.set", subject: person.ID, detail: person.Name + ": " + string(role)})
	}
	return entries, nil
}

// DemoPeople returns the demo people, for the buttons of the sign-in page. It
// returns none where there is no demo.
func (p *People) DemoPeople() []DemoPerson {
	p.demoMu.Lock()
	defer p.demoMu.Unlock()
	return slices.Clone(p.demo)
}

func (p *People) isDemo(person till.ID) bool {
	p.demoMu.Lock()
	defer p.demoMu.Unlock()
	return slices.ContainsFunc(p.demo, func(d DemoPerson) bool { return d.ID == person })
}

// EnterDemo signs a demo person in by the token of the process, as often as
// wanted, from loopback only. The zero person is the first. It refuses with
// LinkUnknown.
func (p *People) EnterDemo(ctx context.Context, v Visit, token string, person till.ID) (Entry, error) {
	p.demoMu.Lock()
	demo, want := p.demo, p.demoToken
	p.demoMu.Unlock()
	if want == "" || !v.Address.Unmap().IsLoopback() || subtle.ConstantTimeCompare([]byte(token), []byte(want)) != 1 {
		return Entry{}, refuse(LinkUnknown)
	}
	if person.IsZero() {
		person = demo[0].ID
	}
	if !p.isDemo(person) {
		return Entry{}, refuse(LinkUnknown)
	}
	found, _, err := p.readPerson(ctx, person)
	if err != nil {
		return Entry{}, err
	}
	if found == nil || !found.DisabledAt.IsZero() {
		return Entry{}, refuse(LinkUnknown)
	}
	return p.enter(ctx, v, found, false, "by the demo's link", nil)
}

// DemoToken returns the token of the process, for the buttons of the sign-in
// page; "" where there is no demo, or the visitor is not on this machine.
func (p *People) DemoToken(v Visit) string {
	p.demoMu.Lock()
	defer p.demoMu.Unlock()
	if !v.Address.Unmap().IsLoopback() {
		return ""
	}
	return p.demoToken
}
