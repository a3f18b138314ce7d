package people

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"till/internal/seal"

	"till"
)

// step is what a form of several steps carries from one to the next, sealed:
// the server keeps nothing of a form that is never sent.
type step struct {
	Expires till.Time
	Person  till.ID
	Session till.ID // the session it belongs to; zero before there is one
	Bound   []byte  // what must be unchanged when it comes back: a hash
	Stay    bool
	Secret  []byte          // of TOTP
	Data    json.RawMessage // of a ceremony

	mark [32]byte // of its bytes, whatever text they came in; set by openStep
}

// forms seals what forms carry from one step to the next.
type forms struct {
	sealer *seal.Sealer
	now    func() till.Time
}

// sealStep returns a step as text, for one kind of form.
func (p *forms) sealStep(kind string, s step) (string, error) {
	s.Expires = p.now().Add(stepWindow)
	text, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(p.sealer.Seal(text, []byte(kind))), nil
}

// maxStep is the longest text of a step.
const maxStep = 16 << 10

// openStep reads what sealStep made for the same kind of form. It refuses with
// StepOver, also another spelling of the same bytes: a lenient decoder skips line
// breaks and spare bits.
func (p *forms) openStep(kind, text string) (*step, error) {
	if len(text) > maxStep {
		return nil, refuse(StepOver)
	}
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	spelling := base64.RawURLEncoding.EncodeToString(sealed)
	if err != nil || spelling != text {
		return nil, refuse(StepOver)
	}
	plain, err := p.sealer.Open(sealed, []byte(kind))
	if err != nil {
		return nil, refuse(StepOver)
	}
	s := &step{mark: hashOf(spelling)}
	if err := json.Unmarshal(plain, s); err != nil || p.now() >= s.Expires {
		return nil, refuse(StepOver)
	}
	return s, nil
}

// bind returns a short hash of what must stay unchanged between two steps.
func bind(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:16]
}
