package shell

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"till"
	"till/people"
)

// ProofForm is what somebody is asked for whose proof is not fresh. The part
// "proof" has its fields, for the form of an act; "prove" is a form of its own.
type ProofForm struct {
	*Frame
	Code, Password bool
	Passkey        *PasskeyForm
}

// ProofForm returns what an act's form must ask for; nil if nothing.
func (v *Visit) ProofForm() (*ProofForm, error) {
	if v.Session.Fresh() {
		return nil, nil
	}
	p := &ProofForm{Frame: &Frame{Catalogue: v.Words, Address: v.R.URL.Path}}
	var byPasskey bool
	byPasskey, p.Code, p.Password = v.Session.ProofBy()
	if byPasskey && v.Console.People.CanPasskey() {
		c, err := v.Console.People.BeginProof(v.R.Context(), v.Session)
		if err != nil {
			return nil, err
		}
		p.Passkey = CeremonyForm(c)
	}
	return p, nil
}

// prove takes the proof from the form of an act. The session goes on under a new
// token, whatever becomes of the act.
func (v *Visit) prove() error {
	proof := people.Proof{Code: v.R.PostFormValue("proof_code"), Password: v.R.PostFormValue("proof_password"),
		Step: v.R.PostFormValue("proof_step"), Answer: []byte(v.R.PostFormValue("proof_answer"))}
	if proof.Code == "" && proof.Password == "" && len(proof.Answer) == 0 {
		return &people.Refusal{Code: people.ProofNeeded}
	}
	e, err := v.Console.People.Prove(v.R.Context(), v.From, v.Session, proof)
	if err != nil {
		return err
	}
	v.Renewed(e)
	return nil
}

// Renewed gives the browser the new token of a session that goes on. A cookie
// that lasts keeps lasting.
func (v *Visit) Renewed(e people.Entry) {
	v.Session = e.Session
	if e.Session.ExpiresAt.Sub(e.Session.StartedAt) > lastingSession {
		v.SetLastingToken(e.Token, int(e.Session.ExpiresAt.Sub(v.Now).Seconds()))
	} else {
		v.SetToken(e.Token)
	}
}

// Back leads to one of our pages after an act: with what was done, or with what
// was refused.
func (v *Visit) Back(path, done string, err error) error {
	r := people.RefusalOf(err)
	if err != nil && (r == nil || r.Code == people.SessionOver) {
		return err
	}
	q := url.Values{}
	if r != nil {
		q.Set("refused", string(r.Code))
		if r.Wait > 0 {
			q.Set("wait", strconv.Itoa(int(r.Wait.Seconds())))
		}
	} else {
		q.Set("done", done)
	}
	mark := "?"
	if strings.Contains(path, "?") {
		mark = "&"
	}
	return v.Redirect(path + mark + q.Encode())
}

// Outcome returns what back said: done and refused.
func (v *Visit) Outcome() (done, refused string) {
	q := v.R.URL.Query()
	if d := q.Get("done"); d != "" && v.Words.Has("done."+d) {
		done = v.Words.T("done." + d)
	}
	if r := q.Get("refused"); r != "" && v.Words.Has("refusal."+r) {
		wait, _ := strconv.Atoi(q.Get("wait"))
		refused = v.Words.T("refusal."+r, "n", int64(wait))
	}
	return done, refused
}

// PasskeyForm is a ceremony as templates take it; nil where there are no
// passkeys.
type PasskeyForm struct{ Options, Step string }

func CeremonyForm(c *people.Ceremony) *PasskeyForm {
	if c == nil {
		return nil
	}
	return &PasskeyForm{string(c.Options), c.Step}
}

// lastingSession is longer than any session but that of a cashier's phone.
const lastingSession = 8 * 24 * time.Hour

// After leads to a page after an act, with what was done or what is in the way.
// Other errors have a page of their own.
func (v *Visit) After(path, done string, err error) error {
	refused := ""
	switch till.ErrorCode(err) {
	case till.CodeEndpointDisabled:
		refused = "endpoint_disabled"
	case till.CodeValidationFailed:
		refused = "value_invalid"
		var e *till.Error
		if errors.As(err, &e) && len(e.Fields) > 0 && e.Fields[0].Code == till.FieldTooMany {
			refused = "too_many"
		}
	}
	switch {
	case refused != "":
		return v.Redirect(path + "?refused=" + refused)
	case err != nil:
		return err
	}
	return v.Redirect(path + "?done=" + done)
}
