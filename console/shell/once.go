package shell

import (
	"crypto/hmac"
	"crypto/sha256"
	"strconv"
	"time"

	"till"
)

// An act that shows a secret carries a word of its own in its form. The secret
// is made from it, so that a form that is sent twice is one act. The secret is
// shown again only to a double click: a minute later, a page that somebody
// went back to shows nothing.

// ShownAgain is how long after the act a repeated form shows the secret.
const ShownAgain = 10 * time.Second

// NewAct returns the word of a form's act.
func (v *Visit) NewAct() string { return till.NewID(v.Now).String() }

// SeedOf returns the random bytes of an act of this person with this merchant.
func (v *Visit) SeedOf(act string) []byte {
	mac := hmac.New(sha256.New, v.Console.Secret)
	mac.Write([]byte("console act shown once\x00"))
	mac.Write(v.Client.ID[:])
	mac.Write(v.Session.Person.ID[:])
	mac.Write([]byte(v.Route.Path + "\x00" + act))
	return mac.Sum(nil)
}

// ReadAct returns the word of the act that a form is about. Forms without one
// were not made by us.
func (v *Visit) ReadAct() (string, error) {
	act := v.R.PostFormValue("act")
	if _, err := till.ParseID(act); err != nil {
		return "", ErrInput
	}
	return act, nil
}

// OncePage shows a secret, once.
type OncePage struct {
	*Frame
	Lead   string
	Secret string
	Label  string
	Notes  []string
	Shows  []Choice // how it is used: a name and a text
	Back   string
}

// ShowOnce answers with a secret: not compressed, not kept by the browser, and
// taken off the page when it is left.
func (v *Visit) ShowOnce(p *OncePage) error {
	v.Plain = true
	return v.Page("once", p)
}

// overlaps are how long an old secret or key goes on beside its successor, in
// hours; the first is offered first.
var overlaps = []int{24, 1, 168, 0}

// ReadOverlap returns the chosen overlap.
func (v *Visit) ReadOverlap() time.Duration {
	hours := v.R.PostFormValue("overlap")
	for _, h := range overlaps {
		if strconv.Itoa(h) == hours {
			return time.Duration(h) * time.Hour
		}
	}
	return time.Duration(overlaps[0]) * time.Hour
}

// Overlaps are the choices of a form that replaces a secret or a key.
func (f *Frame) Overlaps() []Choice {
	out := make([]Choice, len(overlaps))
	for i, h := range overlaps {
		out[i] = Choice{Text: f.T("overlap.for_" + strconv.Itoa(h)), Path: strconv.Itoa(h)}
	}
	return out
}
