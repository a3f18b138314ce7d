package people

import (
	"bytes"
	"context"

	"till"
	"till/store"
	"till/store/access"
)

const stepCode = "sign in: code"

// SignIn checks a login and a password. An unknown login takes as long as a
// wrong password. If the person has a second factor, the Entry has a Step for
// SignInCode. stay asks for a cashier's phone to stay signed in for 30 days. It
// refuses with WrongCredentials, WaitFirst, Busy and NotFromHere.
func (p *People) SignIn(ctx context.Context, v Visit, login, password string, stay bool) (Entry, error) {
	login, err := cleanLogin(login)
	if err != nil {
		login = "" // no login at all; it takes as long as another
	}
	if err := p.admit(ctx, v, login); err != nil {
		return Entry{}, err
	}
	var person *access.Person
	var memberships []till.Membership
	var strict bool
	err = p.c.Store.View(ctx, func(tx *store.Tx) (err error) {
		if person, err = access.PersonByLogin(ctx, tx, login); err != nil || person == nil {
			return err
		}
		memberships, strict, err = access.Memberships(ctx, tx, person.ID)
		return err
	})
	if err != nil {
		return Entry{}, err
	}
	same, err := p.verifyPassword(ctx, person, password)
	if err != nil {
		return Entry{}, err
	}
	if !same || !person.DisabledAt.IsZero() {
		return Entry{}, p.refuseSignIn(ctx, person, memberships, "wrong password", WrongCredentials)
	}
	if !p.mayBeAt(v, memberships) {
		return Entry{}, p.refuseSignIn(ctx, person, memberships, "from outside of the house's networks", NotFromHere)
	}
	if err := p.renewHash(ctx, person, password); err != nil {
		return Entry{}, err
	}
	if person.HasTOTP || person.Passkeys > 0 && factorNeeded(memberships, strict) {
		text, err := p.sealStep(stepCode, step{Person: person.ID, Bound: bind(person.Password), Stay: stay})
		if err != nil {
			return Entry{}, err
		}
		err = p.commit(ctx, nil, func(tx *store.Tx) ([]entry, error) { return nil, p.forgive(ctx, tx, v, login, false) })
		return Entry{Step: text}, err
	}
	return p.enter(ctx, v, person, stay, "by password", nil)
}

// refuseSignIn writes the audit rows of a refused sign-in. For a login that
// nobody has it commits as well, so that both take as long.
func (p *People) refuseSignIn(ctx context.Context, person *access.Person, memberships []till.Membership, why string, code RefusalCode) error {
	logs := logsOf(memberships)
	err := p.commit(ctx, logs, func(*store.Tx) ([]entry, error) {
		if person == nil {
			return nil, nil
		}
		return inEach(logs, entry{actor: person.Actor(), action: "sign_in.refuse", subject: person.ID, detail: why}), nil
	})
	if err != nil {
		return err
	}
	return refuse(code)
}

// SignInCode ends what SignIn began, with a TOTP code or a recovery code. It
// refuses with WrongCode, WaitFirst and StepOver.
func (p *People) SignInCode(ctx context.Context, v Visit, stepText, code string) (Entry, error) {
	st, err := p.openStep(stepCode, stepText)
	if err != nil {
		return Entry{}, err
	}
	person, memberships, err := p.readPerson(ctx, st.Person)
	if err != nil {
		return Entry{}, err
	}
	if person == nil || !bytes.Equal(bind(person.Password), st.Bound) || !person.DisabledAt.IsZero() {
		return Entry{}, refuse(StepOver)
	}
	if err := p.admit(ctx, v, person.Login); err != nil {
		return Entry{}, err
	}
	if !p.mayBeAt(v, memberships) {
		return Entry{}, p.refuseSignIn(ctx, person, memberships, "from outside of the house's networks", NotFromHere)
	}
	e, err := p.enter(ctx, v, person, st.Stay, "by password and code", func(tx *store.Tx) error {
		return p.useCode(ctx, tx, person, code)
	})
	if r := RefusalOf(err); r != nil && r.Code == WrongCode {
		return Entry{}, p.refuseSignIn(ctx, person, memberships, "wrong code", WrongCode)
	}
	return e, err
}

// readPerson returns a person with their roles, nil if there is none.
func (p *People) readPerson(ctx context.Context, id till.ID) (person *access.Person, memberships []till.Membership, err error) {
	err = p.c.Store.View(ctx, func(tx *store.Tx) error {
		if person, err = access.PersonByID(ctx, tx, id); err != nil || person == nil {
			return err
		}
		memberships, _, err = access.Memberships(ctx, tx, id)
		return err
	})
	return person, memberships, err
}

// enter starts a session of somebody whose credentials were right when person
// was read. also, if not nil, uses up what counts once, in the same commit. It
// refuses with StepOver if the credentials have changed meanwhile.
func (p *People) enter(ctx context.Context, v Visit, person *access.Person, stay bool, how string, also func(tx *store.Tx) error) (Entry, error) {
	_, memberships, err := p.readPerson(ctx, person.ID)
	if err != nil {
		return Entry{}, err
	}
	logs := logsOf(memberships)
	var token string
	err = p.commit(ctx, logs, func(tx *store.Tx) ([]entry, error) {
		if _, err := access.LockPerson(ctx, tx, person.ID); err != nil {
			return nil, err
		}
		now, err := access.PersonByID(ctx, tx, person.ID)
		if err != nil {
			return nil, err
		}
		if now == nil || now.Password != person.Password || now.HasTOTP != person.HasTOTP || !now.DisabledAt.IsZero() {
			return nil, refuse(StepOver)
		}
		if also != nil {
			if err := also(tx); err != nil {
				return nil, err
			}
		}
		if err := p.forgive(ctx, tx, v, person.Login, true); err != nil {
			return nil, err
		}
		current, _, err := access.Memberships(ctx, tx, person.ID)
		if err != nil {
			return nil, err
		}
		if token, err = p.startSession(ctx, tx, v, person.ID, current, stay, true); err != nil {
			return nil, err
		}
		return inEach(logs, entry{actor: person.Actor(), action: "sign_in", subject: person.ID, detail: signInDetail(how, v)}), nil
	})
	if err != nil {
		return Entry{}, err
	}
	return p.entered(ctx, v, token)
}

func signInDetail(how string, v Visit) string {
	detail := how + ", from " + v.Address.String()
	if d := device(v); d != "" {
		detail += ", " + d
	}
	return detail
}
