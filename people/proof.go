package people

import "context"

// Proof is what somebody gives on a confirmation page: one of the three that
// ProofBy names.
type Proof struct {
	Code     string // TOTP, or a recovery code
	Password string
	Step     string // of BeginProof
	Answer   []byte // the browser's, as JSON
}

// BeginProof begins a proof by passkey.
func (p *People) BeginProof(ctx context.Context, s *Session) (*Ceremony, error) {
	return nil, errUnbuilt
}

// Prove checks a proof. The session goes on under a new token, and is fresh. It
// refuses with WrongCode, WrongPassword, PasskeyRefused, StepOver and
// WaitFirst.
func (p *People) Prove(ctx context.Context, v Visit, s *Session, proof Proof) (Entry, error) {
	return Entry{}, errUnbuilt
}
