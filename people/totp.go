package people

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"
	"time"

	"till"
	"till/store"
	"till/store/access"
)

// TOTP is RFC 6238 with SHA-1, 6 digits and 30 s, which every app speaks. The
// codes of the step before and after count too.
const (
	totpPeriod     = 30 * time.Second
	totpSecretSize = 20
	totpIssuer     = "Till"
	stepTOTP       = "set up TOTP"
)

// TOTPSetup is what an authenticator app needs.
type TOTPSetup struct {
	Secret string // Base32, in groups of four, to be typed
	URI    string // otpauth://…, for a QR code
	Step   string // for ConfirmTOTP, in a hidden field
}

// totpCode returns the code of a step (RFC 4226).
func totpCode(secret []byte, step int64) string {
	var counter [8]byte
	binary.BigEndian.PutUint64(counter[:], uint64(step))
	h := hmac.New(sha1.New, secret)
	h.Write(counter[:])
	sum := h.Sum(nil)
	offset := sum[len(sum)-1] & 0x0f
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[offset:])&0x7fffffff%1_000_000)
}

// totpStep returns the step that a code is of, 0 if it is of none around now.
func totpStep(secret []byte, code string, now till.Time) int64 {
	current := int64(now) / totpPeriod.Microseconds()
	found := int64(0)
	for step := current - 1; step <= current+1; step++ {
		if subtle.ConstantTimeCompare([]byte(totpCode(secret, step)), []byte(code)) == 1 {
			found = step
		}
	}
	return found
}

var base32Text = base32.StdEncoding.WithPadding(base32.NoPadding)

// BeginTOTP draws a secret. Nothing is stored yet.
func (p *People) BeginTOTP(ctx context.Context, s *Session) (*TOTPSetup, error) {
	secret := make([]byte, totpSecretSize)
	rand.Read(secret)
	text, err := p.sealStep(stepTOTP, step{Person: s.Person.ID, Session: s.ID, Secret: secret})
	if err != nil {
		return nil, err
	}
	setup := &TOTPSetup{Step: text}
	setup.show(s.Person.Login, secret)
	return setup, nil
}

// ShowTOTP returns a setup again whose code was wrong: the app has the secret
// already. It refuses with StepOver.
func (p *People) ShowTOTP(s *Session, stepText string) (*TOTPSetup, error) {
	st, err := p.openStep(stepTOTP, stepText)
	if err != nil || st.Session != s.ID {
		return nil, refuse(StepOver)
	}
	setup := &TOTPSetup{Step: stepText}
	setup.show(s.Person.Login, st.Secret)
	return setup, nil
}

func (t *TOTPSetup) show(login string, secret []byte) {
	text := base32Text.EncodeToString(secret)
	query := url.Values{"secret": {text}, "issuer": {totpIssuer}, "algorithm": {"SHA1"}, "digits": {"6"}, "period": {"30"}}
	t.URI = "otpauth://totp/" + totpIssuer + ":" + url.PathEscape(login) + "?" + query.Encode()
	for i := 0; i < len(text); i += 4 {
		t.Secret += text[i:min(i+4, len(text))] + " "
	}
	t.Secret = strings.TrimSpace(t.Secret)
}

// ConfirmTOTP stores the secret if the code is right, and ends the person's
// other sessions. It returns recovery codes if there were none, to be shown
// once. s needs fresh proof, or FactorMissing. The session goes on under a new
// token. It refuses with ProofNeeded, WrongCode, WaitFirst and StepOver.
func (p *People) ConfirmTOTP(ctx context.Context, v Visit, s *Session, stepText, code string) (Entry, []string, error) {
	if !s.Fresh() && !s.FactorMissing {
		return Entry{}, nil, refuse(ProofNeeded)
	}
	st, err := p.openStep(stepTOTP, stepText)
	if err != nil {
		return Entry{}, nil, err
	}
	if st.Session != s.ID {
		return Entry{}, nil, refuse(StepOver)
	}
	if err := p.admitSession(ctx, s); err != nil {
		return Entry{}, nil, err
	}
	used := totpStep(st.Secret, cleanCode(code), p.now())
	if used == 0 {
		return Entry{}, nil, refuse(WrongCode)
	}
	var codes []string
	e, err := p.changeAccess(ctx, v, s, "totp.set", "", func(tx *store.Tx, _ till.Time) error {
		person, err := access.PersonByID(ctx, tx, s.Person.ID)
		if err != nil {
			return err
		}
		if codes = nil; person.RecoveryCodes == 0 {
			var hashes [][32]byte
			codes, hashes = p.newCodes(person.ID)
			if err := access.SetRecoveryCodes(ctx, tx, person.ID, hashes); err != nil {
				return err
			}
		}
		if err := access.ForgetGuesses(ctx, tx, sessionName(s.ID)); err != nil {
			return err
		}
		return access.SetTOTP(ctx, tx, person.ID, p.totp.Seal(st.Secret, person.ID[:]), used)
	})
	return e, codes, err
}

// RemoveTOTP removes TOTP and the recovery codes. s needs fresh proof. It
// refuses with LastFactor.
func (p *People) RemoveTOTP(ctx context.Context, v Visit, s *Session) (Entry, error) {
	if !s.Fresh() {
		return Entry{}, refuse(ProofNeeded)
	}
	return p.changeAccess(ctx, v, s, "totp.remove", "", func(tx *store.Tx, _ till.Time) error {
		person, err := access.PersonByID(ctx, tx, s.Person.ID)
		if err != nil {
			return err
		}
		memberships, strict, err := access.Memberships(ctx, tx, person.ID)
		if err != nil {
			return err
		}
		if person.Passkeys == 0 && factorNeeded(memberships, strict) {
			return refuse(LastFactor)
		}
		if err := access.SetRecoveryCodes(ctx, tx, person.ID, nil); err != nil {
			return err
		}
		return access.SetTOTP(ctx, tx, person.ID, nil, person.TOTPStep)
	})
}

// RecoveryCodes is how many recovery codes there are.
const RecoveryCodes = 8

// codeSize is how many random bytes a recovery code has: 16 letters and digits.
const codeSize = 10

// recoveryCodes draws recovery codes, and hashes them with a key.
type recoveryCodes struct{ key []byte }

// newCodes draws recovery codes and returns them as the person writes them
// down, and as they are stored.
func (p *recoveryCodes) newCodes(person till.ID) (codes []string, hashes [][32]byte) {
	for range RecoveryCodes {
		b := make([]byte, codeSize)
		rand.Read(b)
		text := strings.ToLower(base32Text.EncodeToString(b))
		hashes = append(hashes, p.codeHash(person, text))
		codes = append(codes, text[:4]+"-"+text[4:8]+"-"+text[8:12]+"-"+text[12:])
	}
	return codes, hashes
}

// codeHash is keyed: the database alone does not let anybody try codes.
func (p *recoveryCodes) codeHash(person till.ID, code string) [32]byte {
	h := hmac.New(sha256.New, p.key)
	h.Write(person[:])
	h.Write([]byte(code))
	return [32]byte(h.Sum(nil))
}

// cleanCode returns a code without what people put between its parts.
func cleanCode(code string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "-", "", "\u00a0", "", "\u202f", "").Replace(strings.TrimSpace(code)))
}

// useCode uses up a TOTP code or a recovery code. It refuses with WrongCode.
func (p *People) useCode(ctx context.Context, tx *store.Tx, person *access.Person, code string) error {
	code = cleanCode(code)
	if person.HasTOTP && len(code) == 6 {
		secret, err := p.totp.Open(person.TOTP, person.ID[:])
		if err != nil {
			return fmt.Errorf("the TOTP secret of person %s: %w", person.ID, err)
		}
		if step := totpStep(secret, code, p.now()); step > 0 {
			if fresh, err := access.UseTOTPStep(ctx, tx, person.ID, step); err != nil || fresh {
				return err
			}
		}
		return refuse(WrongCode)
	}
	there, err := access.UseRecoveryCode(ctx, tx, person.ID, p.codeHash(person.ID, code))
	if err == nil && !there {
		err = refuse(WrongCode)
	}
	return err
}

// NewRecoveryCodes replaces the recovery codes by RecoveryCodes new ones and
// returns them, to be shown once. s needs fresh proof.
func (p *People) NewRecoveryCodes(ctx context.Context, s *Session) (codes []string, err error) {
	if !s.Fresh() {
		return nil, refuse(ProofNeeded)
	}
	logs := logsOf(s.Memberships)
	err = p.commit(ctx, logs, func(tx *store.Tx) ([]entry, error) {
		var hashes [][32]byte
		codes, hashes = p.newCodes(s.Person.ID)
		err := access.SetRecoveryCodes(ctx, tx, s.Person.ID, hashes)
		return inEach(logs, entry{actor: s.Actor(), action: "codes.set", subject: s.Person.ID}), err
	})
	return codes, err
}
