package people

import (
	"context"

	"till/store"
	"till/store/access"
)

// Proof is what somebody gives on a confirmation page: one of the three that
// ProofBy names.
type Proof struct {
	Code     string // TOTP, or a recovery code
	Password string
	Step     string // of BeginProof
	Answer   []byte // the browser's, as JSON
}

// Prove checks a proof. The session goes on under a new token, and is fresh. It
// refuses with WrongCode, WrongPassword, PasskeyRefused, StepOver and
// WaitFirst.
func (p *People) Prove(ctx context.Context, v Visit, s *Session, proof Proof) (Entry, error) {
	if err := p.admitSession(ctx, s); err != nil {
		return Entry{}, err
	}
	use, err := p.checkProof(ctx, s, proof)
	if err == nil {
		var token string
		err = p.commit(ctx, nil, func(tx *store.Tx) ([]entry, error) {
			if _, err := access.LockPerson(ctx, tx, s.Person.ID); err != nil {
				return nil, err
			}
			if err := use(tx); err != nil {
				return nil, err
			}
			if err := access.ForgetGuesses(ctx, tx, sessionName(s.ID)); err != nil {
				return nil, err
			}
			var err error
			token, err = renewToken(ctx, tx, v, s, p.now(), p.now())
			return nil, err
		})
		if err == nil {
			return p.entered(ctx, v, token)
		}
	}
	if r := RefusalOf(err); r != nil && (r.Code == WrongCode || r.Code == WrongPassword || r.Code == PasskeyRefused) {
		return Entry{}, p.noteRefusal(ctx, s, logsOf(s.Memberships), "proof.refuse", string(r.Code), err)
	}
	return Entry{}, err
}

// checkProof checks a proof as far as nothing is used up by it, and returns what
// uses it up.
func (p *People) checkProof(ctx context.Context, s *Session, proof Proof) (use func(tx *store.Tx) error, err error) {
	byPasskey, byCode, byPassword := s.ProofBy()
	switch {
	case len(proof.Answer) > 0 && byPasskey:
		return p.checkPasskeyProof(ctx, s, proof)
	case proof.Code != "" && (byCode || s.Person.RecoveryCodes > 0):
		return func(tx *store.Tx) error {
			person, err := access.PersonByID(ctx, tx, s.Person.ID)
			if err != nil {
				return err
			}
			return p.useCode(ctx, tx, person, proof.Code)
		}, nil
	case byPassword:
		person, _, err := p.readPerson(ctx, s.Person.ID)
		if err != nil {
			return nil, err
		}
		same, err := p.verifyPassword(ctx, person, proof.Password)
		if err == nil && !same {
			err = refuse(WrongPassword)
		}
		return func(tx *store.Tx) error {
			now, err := access.PersonByID(ctx, tx, s.Person.ID)
			if err == nil && now.Password != person.Password {
				err = refuse(WrongPassword)
			}
			return err
		}, err
	}
	return nil, refuse(WrongCode)
}
