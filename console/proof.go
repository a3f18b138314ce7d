package console

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"till"
	"till/people"
)

// proofForm is what somebody is asked for whose proof is not fresh. The part
// "proof" has its fields, for the form of an act; "prove" is a form of its own.
type proofForm struct {
	*Frame
	Code, Password bool
	Passkey        *passkeyForm
}

// proofForm returns what an act's form must ask for; nil if nothing.
func (v *visit) proofForm() (*proofForm, error) {
	if v.session.Fresh() {
		return nil, nil
	}
	p := &proofForm{Frame: &Frame{Catalogue: v.words, Address: v.r.URL.Path}}
	var byPasskey bool
	byPasskey, p.Code, p.Password = v.session.ProofBy()
	if byPasskey && v.k.People.CanPasskey() {
		c, err := v.k.People.BeginProof(v.r.Context(), v.session)
		if err != nil {
			return nil, err
		}
		p.Passkey = ceremonyForm(c)
	}
	return p, nil
}

// prove takes the proof from the form of an act. The session goes on under a new
// token, whatever becomes of the act.
func (v *visit) prove() error {
	proof := people.Proof{Code: v.r.PostFormValue("proof_code"), Password: v.r.PostFormValue("proof_password"),
		Step: v.r.PostFormValue("proof_step"), Answer: []byte(v.r.PostFormValue("proof_answer"))}
	if proof.Code == "" && proof.Password == "" && len(proof.Answer) == 0 {
		return &people.Refusal{Code: people.ProofNeeded}
	}
	e, err := v.k.People.Prove(v.r.Context(), v.from, v.session, proof)
	if err != nil {
		return err
	}
	v.renewed(e)
	return nil
}

// renewed gives the browser the new token of a session that goes on. A cookie
// that lasts keeps lasting.
func (v *visit) renewed(e people.Entry) {
	v.session = e.Session
	if e.Session.ExpiresAt.Sub(e.Session.StartedAt) > lastingSession {
		v.setLastingToken(e.Token, int(e.Session.ExpiresAt.Sub(v.now).Seconds()))
	} else {
		v.setToken(e.Token)
	}
}

// back leads to one of our pages after an act: with what was done, or with what
// was refused.
func (v *visit) back(path, done string, err error) error {
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
	return v.redirect(path + mark + q.Encode())
}

// told returns what back said: done and refused.
func (v *visit) told() (done, refused string) {
	q := v.r.URL.Query()
	if d := q.Get("done"); d != "" && v.words.Has("done."+d) {
		done = v.words.T("done." + d)
	}
	if r := q.Get("refused"); r != "" && v.words.Has("refusal."+r) {
		wait, _ := strconv.Atoi(q.Get("wait"))
		refused = v.words.T("refusal."+r, "n", int64(wait))
	}
	return done, refused
}

// passkeyForm is a ceremony as templates take it; nil where there are no
// passkeys.
type passkeyForm struct{ Options, Step string }

func ceremonyForm(c *people.Ceremony) *passkeyForm {
	if c == nil {
		return nil
	}
	return &passkeyForm{string(c.Options), c.Step}
}

// lastingSession is longer than any session but that of a cashier's phone.
const lastingSession = 8 * 24 * time.Hour

// after leads to a page after an act, with what was done or what is in the way.
// Other errors have a page of their own.
func (v *visit) after(path, done string, err error) error {
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
		return v.redirect(path + "?refused=" + refused)
	case err != nil:
		return err
	}
	return v.redirect(path + "?done=" + done)
}
