package people

import "context"

// TOTPSetup is what an authenticator app needs.
type TOTPSetup struct {
	Secret string // Base32, in groups of four, to be typed
	URI    string // otpauth://…, for a QR code
	Step   string // for ConfirmTOTP, in a hidden field
}

// BeginTOTP draws a secret. Nothing is stored yet.
func (p *People) BeginTOTP(ctx context.Context, s *Session) (*TOTPSetup, error) {
	return nil, errUnbuilt
}

// ConfirmTOTP stores the secret if the code is right, and ends the person's
// other sessions. It returns recovery codes if there were none, to be shown
// once. s needs fresh proof, or FactorMissing. The session goes on under a new
// token.
func (p *People) ConfirmTOTP(ctx context.Context, v Visit, s *Session, step, code string) (Entry, []string, error) {
	return Entry{}, nil, errUnbuilt
}

// RemoveTOTP removes TOTP and the recovery codes. s needs fresh proof. It
// refuses with LastFactor.
func (p *People) RemoveTOTP(ctx context.Context, v Visit, s *Session) (Entry, error) {
	return Entry{}, errUnbuilt
}

// NewRecoveryCodes replaces the recovery codes by RecoveryCodes new ones and
// returns them, to be shown once. s needs fresh proof.
func (p *People) NewRecoveryCodes(ctx context.Context, s *Session) ([]string, error) {
	return nil, errUnbuilt
}

// RecoveryCodes is how many recovery codes there are.
const RecoveryCodes = 8
