package people

import (
	"context"

	"till"
)

// Ceremony is one exchange with a browser's authenticator.
type Ceremony struct {
	Options []byte // JSON for navigator.credentials: {"publicKey": …}
	Step    string // for the call that ends it, in a hidden field; valid for StepWindow, once
}

// Passkey is one passkey of a person, as the profile lists it.
type Passkey struct {
	ID        till.ID
	Name      string // "Passkey of 14 Nov 2026" unless the person renames it
	CreatedAt till.Time
	UsedAt    till.Time
}

// BeginPasskeySignIn begins a sign-in without a login: the authenticator says
// who it is. It stores nothing.
func (p *People) BeginPasskeySignIn(ctx context.Context) (*Ceremony, error) { return nil, errUnbuilt }

// SignInPasskey ends it. answer is the browser's, as JSON. It refuses with
// PasskeyRefused, StepOver, WaitFirst and NotFromHere.
func (p *People) SignInPasskey(ctx context.Context, v Visit, step string, answer []byte, stay bool) (Entry, error) {
	return Entry{}, errUnbuilt
}

// BeginPasskey begins the making of a further passkey.
func (p *People) BeginPasskey(ctx context.Context, s *Session) (*Ceremony, error) {
	return nil, errUnbuilt
}

// AddPasskey ends it and ends the person's other sessions. s needs fresh proof,
// or FactorMissing. The session goes on under a new token.
func (p *People) AddPasskey(ctx context.Context, v Visit, s *Session, step string, answer []byte, name string) (Entry, error) {
	return Entry{}, errUnbuilt
}

// Passkeys returns the person's passkeys, oldest first, at most MaxPasskeys.
func (p *People) Passkeys(ctx context.Context, person till.ID) ([]*Passkey, error) {
	return nil, errUnbuilt
}

// MaxPasskeys is how many passkeys a person may have.
const MaxPasskeys = 10

// RemovePasskey removes one. s needs fresh proof. It refuses with LastFactor,
// also if the person has no password and this is the last passkey.
func (p *People) RemovePasskey(ctx context.Context, v Visit, s *Session, id till.ID) (Entry, error) {
	return Entry{}, errUnbuilt
}
