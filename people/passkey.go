package people

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"till"
	"till/store"
	"till/store/access"
)

// Ceremony is one exchange with a browser's authenticator.
type Ceremony struct {
	Options []byte // JSON for navigator.credentials: {"publicKey": …}
	Step    string // for the call that ends it, in a hidden field; valid for StepWindow, once
}

// Passkey is one passkey of a person, as the profile lists it.
type Passkey struct {
	ID        till.ID
	Name      string
	CreatedAt till.Time
	UsedAt    till.Time
}

const (
	// maxPasskeys is how many passkeys a person may have.
	maxPasskeys = 10
	// maxPasskeyName is the longest name of one, in characters.
	maxPasskeyName = 60
	// maxAnswer is the longest answer of an authenticator, in bytes.
	maxAnswer = 64 << 10

	stepPasskeySignIn = "passkey: sign in"
	stepPasskeyAdd    = "passkey: add"
	stepPasskeyJoin   = "passkey: join"
	stepPasskeyProof  = "passkey: proof"
)

var errNoPasskeys = errors.New("people: passkeys need an origin")

// relyingParty is our side of ceremonies.
type relyingParty = webauthn.WebAuthn

// newWebAuthn returns nil where passkeys cannot be: without an origin, or where
// its host is an IP address, which browsers refuse.
func newWebAuthn(origin string) (*relyingParty, error) {
	if origin == "" {
		return nil, nil
	}
	u, err := url.Parse(origin)
	if err != nil {
		return nil, err
	}
	host := u.Hostname()
	if host == "" || strings.Contains(host, ":") || strings.Trim(host, "0123456789.") == "" {
		return nil, nil
	}
	return webauthn.New(&webauthn.Config{
		RPID: host, RPDisplayName: totpIssuer, RPOrigins: []string{origin},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, RequireResidentKey: protocol.ResidentKeyRequired(),
			UserVerification: protocol.VerificationRequired,
		},
	})
}

// ceremonies are the exchanges in which a browser makes a passkey, or proves one.
type ceremonies struct {
	*forms
	webauthn *relyingParty // nil: no passkeys
	log      *slog.Logger
}

// CanPasskey reports whether passkeys work at this installation's address.
func (p *ceremonies) CanPasskey() bool { return p.webauthn != nil }

// holder is a person as the library knows one. The records of passkeys are kept
// whole: a flag that is dropped locks people out later.
type holder struct {
	id          till.ID
	login, name string
	credentials []webauthn.Credential
	passkeys    []*access.Passkey // beside credentials
}

func (h *holder) WebAuthnID() []byte                         { return h.id[:] }
func (h *holder) WebAuthnName() string                       { return h.login }
func (h *holder) WebAuthnDisplayName() string                { return h.name }
func (h *holder) WebAuthnCredentials() []webauthn.Credential { return h.credentials }

func readHolder(ctx context.Context, tx *store.Tx, id till.ID) (*holder, *access.Person, error) {
	person, err := access.PersonByID(ctx, tx, id)
	if err != nil || person == nil {
		return nil, nil, err
	}
	h := &holder{id: id, login: person.Login, name: person.Name}
	if h.passkeys, err = access.Passkeys(ctx, tx, id); err != nil {
		return nil, nil, err
	}
	for _, k := range h.passkeys {
		var c webauthn.Credential
		if err := json.Unmarshal([]byte(k.Record), &c); err != nil {
			return nil, nil, err
		}
		h.credentials = append(h.credentials, c)
	}
	return h, person, nil
}

// ceremony seals the library's session data into a step.
func (p *ceremonies) ceremony(kind string, options any, data *webauthn.SessionData, st step) (*Ceremony, error) {
	var err error
	c := &Ceremony{}
	if c.Options, err = json.Marshal(options); err != nil {
		return nil, err
	}
	if st.Data, err = json.Marshal(data); err != nil {
		return nil, err
	}
	c.Step, err = p.sealStep(kind, st)
	return c, err
}

func (p *ceremonies) openCeremony(kind, stepText string) (*step, *webauthn.SessionData, error) {
	if p.webauthn == nil {
		return nil, nil, errNoPasskeys
	}
	st, err := p.openStep(kind, stepText)
	if err != nil {
		return nil, nil, err
	}
	data := &webauthn.SessionData{}
	if err := json.Unmarshal(st.Data, data); err != nil {
		return nil, nil, err
	}
	return st, data, nil
}

// spendStep lets a step end one ceremony only.
func spendStep(ctx context.Context, tx *store.Tx, st *step) error {
	first, err := access.UseOnce(ctx, tx, st.mark, st.Expires)
	if err == nil && !first {
		err = refuse(StepOver)
	}
	return err
}

// BeginPasskeySignIn begins a sign-in without a login: the authenticator says
// who it is. It stores nothing.
func (p *People) BeginPasskeySignIn(context.Context) (*Ceremony, error) {
	if p.webauthn == nil {
		return nil, errNoPasskeys
	}
	options, data, err := p.webauthn.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, err
	}
	return p.ceremony(stepPasskeySignIn, options, data, step{})
}

// SignInPasskey ends it. answer is the browser's, as JSON. It refuses with
// PasskeyRefused, StepOver, WaitFirst and NotFromHere.
func (p *People) SignInPasskey(ctx context.Context, v Visit, stepText string, answer []byte, stay bool) (Entry, error) {
	st, data, err := p.openCeremony(stepPasskeySignIn, stepText)
	if err != nil {
		return Entry{}, err
	}
	if err := p.admit(ctx, v, ""); err != nil {
		return Entry{}, err
	}
	parsed, err := parseAssertion(answer)
	if err != nil {
		return Entry{}, err
	}
	var h *holder
	var person *access.Person
	find := func(_, handle []byte) (webauthn.User, error) {
		if len(handle) != len(till.ID{}) {
			return nil, refuse(PasskeyRefused)
		}
		err := p.c.Store.View(ctx, func(tx *store.Tx) (err error) { h, person, err = readHolder(ctx, tx, till.ID(handle)); return err })
		if err == nil && h == nil {
			err = refuse(PasskeyRefused)
		}
		return h, err
	}
	_, credential, err := p.webauthn.ValidatePasskeyLogin(find, *data, parsed)
	if err != nil || !person.DisabledAt.IsZero() {
		return Entry{}, p.refusePasskey(ctx, person, err)
	}
	_, memberships, err := p.readPerson(ctx, person.ID)
	if err != nil {
		return Entry{}, err
	}
	if !p.mayBeAt(v, memberships) {
		return Entry{}, p.refuseSignIn(ctx, person, memberships, "from outside of the house's networks", NotFromHere)
	}
	return p.enter(ctx, v, person, stay, "by passkey", func(tx *store.Tx) error {
		if err := spendStep(ctx, tx, st); err != nil {
			return err
		}
		return p.usePasskey(ctx, tx, h, credential)
	})
}

// refusePasskey says no to an authenticator's answer, and writes it down if it
// is known whose it is.
func (p *People) refusePasskey(ctx context.Context, person *access.Person, cause error) error {
	p.c.Log.Debug("passkey refused", "error", cause)
	if person == nil {
		return refuse(PasskeyRefused)
	}
	_, memberships, err := p.readPerson(ctx, person.ID)
	if err != nil {
		return err
	}
	return p.refuseSignIn(ctx, person, memberships, "passkey refused", PasskeyRefused)
}

func parseAssertion(answer []byte) (*protocol.ParsedCredentialAssertionData, error) {
	if len(answer) > maxAnswer {
		return nil, refuse(PasskeyRefused)
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(answer)
	if err != nil {
		return nil, refuse(PasskeyRefused)
	}
	return parsed, nil
}

// usePasskey writes the record of a passkey as its use has changed it. A
// counter that went back means that somebody has a copy of the key: it is
// refused.
func (p *People) usePasskey(ctx context.Context, tx *store.Tx, h *holder, c *webauthn.Credential) error {
	if c.Authenticator.CloneWarning {
		return refuse(PasskeyRefused)
	}
	record, err := json.Marshal(c)
	if err != nil {
		return err
	}
	for i, k := range h.passkeys {
		if bytes.Equal(h.credentials[i].ID, c.ID) {
			there, err := access.UsePasskey(ctx, tx, &access.Passkey{Person: h.id, ID: k.ID, Record: string(record), UsedAt: p.now()})
			if err == nil && !there {
				err = refuse(PasskeyRefused)
			}
			return err
		}
	}
	return refuse(PasskeyRefused)
}

// beginRegistration begins the making of a passkey.
func (p *ceremonies) beginRegistration(kind string, h *holder, st step) (*Ceremony, error) {
	if p.webauthn == nil {
		return nil, errNoPasskeys
	}
	exclude := make([]protocol.CredentialDescriptor, len(h.credentials))
	for i := range h.credentials {
		exclude[i] = h.credentials[i].Descriptor()
	}
	options, data, err := p.webauthn.BeginRegistration(h, webauthn.WithExclusions(exclude))
	if err != nil {
		return nil, err
	}
	st.Person = h.id
	return p.ceremony(kind, options, data, st)
}

// register ends the making of a passkey and returns it, to be inserted.
func (p *ceremonies) register(h *holder, data *webauthn.SessionData, answer []byte, name string) (*access.Passkey, error) {
	if len(answer) > maxAnswer {
		return nil, refuse(PasskeyRefused)
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(answer)
	if err != nil {
		return nil, refuse(PasskeyRefused)
	}
	c, err := p.webauthn.CreateCredential(h, *data, parsed)
	if err != nil {
		p.log.Debug("passkey not made", "error", err)
		return nil, refuse(PasskeyRefused)
	}
	record, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	now := p.now()
	if name = strings.TrimSpace(name); name == "" || utf8.RuneCountInString(name) > maxPasskeyName || !isPlain(name) {
		name = now.Std().Format("2006-01-02")
	}
	return &access.Passkey{Person: h.id, ID: till.NewID(now), Name: name, Record: string(record), CreatedAt: now}, nil
}

// BeginPasskey begins the making of a further passkey.
func (p *People) BeginPasskey(ctx context.Context, s *Session) (*Ceremony, error) {
	h, err := p.holderOf(ctx, s.Person.ID)
	if err != nil {
		return nil, err
	}
	return p.beginRegistration(stepPasskeyAdd, h, step{Session: s.ID})
}

func (p *People) holderOf(ctx context.Context, person till.ID) (h *holder, err error) {
	err = p.c.Store.View(ctx, func(tx *store.Tx) (err error) { h, _, err = readHolder(ctx, tx, person); return err })
	if err == nil && h == nil {
		err = refuse(SessionOver)
	}
	return h, err
}

// AddPasskey ends it and ends the person's other sessions. s needs fresh proof,
// or FactorMissing. The session goes on under a new token. It refuses with
// ProofNeeded, PasskeyRefused, StepOver and TooMany.
func (p *People) AddPasskey(ctx context.Context, v Visit, s *Session, stepText string, answer []byte, name string) (Entry, error) {
	if !s.Fresh() && !s.FactorMissing {
		return Entry{}, refuse(ProofNeeded)
	}
	st, data, err := p.openCeremony(stepPasskeyAdd, stepText)
	if err != nil {
		return Entry{}, err
	}
	if st.Session != s.ID || st.Person != s.Person.ID {
		return Entry{}, refuse(StepOver)
	}
	h, err := p.holderOf(ctx, s.Person.ID)
	if err != nil {
		return Entry{}, err
	}
	key, err := p.register(h, data, answer, name)
	if err != nil {
		return Entry{}, err
	}
	return p.changeAccess(ctx, v, s, "passkey.add", key.Name, func(tx *store.Tx, _ till.Time) error {
		person, err := access.PersonByID(ctx, tx, s.Person.ID)
		if err != nil {
			return err
		}
		if person.Passkeys >= maxPasskeys {
			return refuse(TooMany)
		}
		if err := spendStep(ctx, tx, st); err != nil {
			return err
		}
		return access.InsertPasskey(ctx, tx, key)
	})
}

// Passkeys returns the person's passkeys, oldest first, at most MaxPasskeys.
func (p *People) Passkeys(ctx context.Context, person till.ID) (out []*Passkey, err error) {
	err = p.c.Store.View(ctx, func(tx *store.Tx) error {
		out = nil
		keys, err := access.Passkeys(ctx, tx, person)
		for _, k := range keys {
			out = append(out, &Passkey{k.ID, k.Name, k.CreatedAt, k.UsedAt})
		}
		return err
	})
	return out, err
}

// RemovePasskey removes one. s needs fresh proof. It refuses with LastFactor,
// also if the person has no password and this is the last passkey.
func (p *People) RemovePasskey(ctx context.Context, v Visit, s *Session, id till.ID) (Entry, error) {
	if !s.Fresh() {
		return Entry{}, refuse(ProofNeeded)
	}
	return p.changeAccess(ctx, v, s, "passkey.remove", "", func(tx *store.Tx, _ till.Time) error {
		if _, err := access.DeletePasskey(ctx, tx, s.Person.ID, id); err != nil {
			return err
		}
		person, err := access.PersonByID(ctx, tx, s.Person.ID)
		if err != nil {
			return err
		}
		memberships, strict, err := access.Memberships(ctx, tx, person.ID)
		if err != nil {
			return err
		}
		if !person.HasFactor() && factorNeeded(memberships, strict) || person.Passkeys == 0 && !person.HasPassword {
			return refuse(LastFactor)
		}
		return nil
	})
}

// BeginProof begins a proof by passkey.
func (p *People) BeginProof(ctx context.Context, s *Session) (*Ceremony, error) {
	if p.webauthn == nil {
		return nil, errNoPasskeys
	}
	h, err := p.holderOf(ctx, s.Person.ID)
	if err != nil {
		return nil, err
	}
	options, data, err := p.webauthn.BeginLogin(h)
	if err != nil {
		return nil, err
	}
	return p.ceremony(stepPasskeyProof, options, data, step{Person: s.Person.ID, Session: s.ID})
}

func (p *People) checkPasskeyProof(ctx context.Context, s *Session, proof Proof) (func(tx *store.Tx) error, error) {
	st, data, err := p.openCeremony(stepPasskeyProof, proof.Step)
	if err != nil {
		return nil, err
	}
	if st.Session != s.ID || st.Person != s.Person.ID {
		return nil, refuse(StepOver)
	}
	parsed, err := parseAssertion(proof.Answer)
	if err != nil {
		return nil, err
	}
	h, err := p.holderOf(ctx, s.Person.ID)
	if err != nil {
		return nil, err
	}
	credential, err := p.webauthn.ValidateLogin(h, *data, parsed)
	if err != nil {
		p.c.Log.Debug("passkey refused", "error", err)
		return nil, refuse(PasskeyRefused)
	}
	return func(tx *store.Tx) error {
		if err := spendStep(ctx, tx, st); err != nil {
			return err
		}
		return p.usePasskey(ctx, tx, h, credential)
	}, nil
}
