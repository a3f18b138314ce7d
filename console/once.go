package console

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

// shownAgain is how long after the act a repeated form shows the secret.
const shownAgain = 10 * time.Second

// newAct returns the word of a form's act.
func (v *visit) newAct() string { return till.NewID(v.now).String() }

// seedOf returns the random bytes of an act of this person with this merchant.
func (v *visit) seedOf(act string) []byte {
	mac := hmac.New(sha256.New, v.k.Secret)
	mac.Write([]byte("console act shown once\x00"))
	mac.Write(v.client.ID[:])
	mac.Write(v.session.Person.ID[:])
	mac.Write([]byte(v.route.Path + "\x00" + act))
	return mac.Sum(nil)
}

// readAct returns the word of the act that a form is about. Forms without one
// were not made by us.
func (v *visit) readAct() (string, error) {
	act := v.r.PostFormValue("act")
	if _, err := till.ParseID(act); err != nil {
		return "", errInput
	}
	return act, nil
}

// oncePage shows a secret, once.
type oncePage struct {
	*Frame
	Lead   string
	Secret string
	Label  string
	Notes  []string
	Shows  []Choice // how it is used: a name and a text
	Back   string
}

// showOnce answers with a secret: not compressed, not kept by the browser, and
// taken off the page when it is left.
func (v *visit) showOnce(p *oncePage) error {
	v.plain = true
	return v.page("once", p)
}

// overlaps are how long an old secret or key goes on beside its successor, in
// hours; the first is offered first.
var overlaps = []int{24, 1, 168, 0}

// readOverlap returns the chosen overlap.
func (v *visit) readOverlap() time.Duration {
	hours := v.r.PostFormValue("overlap")
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
