package people

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"testing"
	"time"

	"till"
)

// authenticator is a phone or a key with passkeys on it: ES256, no attestation,
// user verification.
type authenticator struct {
	origin  string
	id      []byte
	key     *ecdsa.PrivateKey
	handle  []byte
	counter uint32
	flags   byte // user present and verified
	synced  bool // it is on several devices, so nobody counts
}

func newAuthenticator(t *testing.T) *authenticator {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id := make([]byte, 32)
	rand.Read(id)
	return &authenticator{origin: origin, id: id, key: key, flags: 0x05}
}

func text64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// asked is what a ceremony's options ask for.
type asked struct {
	PublicKey struct {
		Challenge string `json:"challenge"`
		User      struct {
			ID string `json:"id"`
		} `json:"user"`
		RPID             string                  `json:"rpId"`
		UserVerification string                  `json:"userVerification"`
		Allow            []struct{ ID string }   `json:"allowCredentials"`
		Exclude          []struct{ ID string }   `json:"excludeCredentials"`
		Parameters       []struct{ Type string } `json:"pubKeyCredParams"`
	} `json:"publicKey"`
}

func (a *authenticator) read(t *testing.T, c *Ceremony) asked {
	t.Helper()
	var q asked
	if err := json.Unmarshal(c.Options, &q); err != nil {
		t.Fatal(err)
	}
	return q
}

func (a *authenticator) clientData(kind, challenge string) []byte {
	b, _ := json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": a.origin, "crossOrigin": false})
	return b
}

func (a *authenticator) data(flags byte) []byte {
	rp := sha256.Sum256([]byte("pay.example.com"))
	out := append(rp[:], flags)
	return binary.BigEndian.AppendUint32(out, a.counter)
}

// create makes a passkey.
func (a *authenticator) create(t *testing.T, c *Ceremony) []byte {
	t.Helper()
	q := a.read(t, c)
	a.handle, _ = base64.RawURLEncoding.DecodeString(q.PublicKey.User.ID)
	point, err := a.key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		t.Fatal(err)
	}
	cose := append([]byte{0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20}, point[1:33]...)
	cose = append(append(cose, 0x22, 0x58, 0x20), point[33:]...)
	data := append(a.data(a.flags|0x40), make([]byte, 16)...)
	data = binary.BigEndian.AppendUint16(data, uint16(len(a.id)))
	data = append(append(data, a.id...), cose...)
	object := []byte{0xa3, 0x63, 'f', 'm', 't', 0x64, 'n', 'o', 'n', 'e', 0x67, 'a', 't', 't', 'S', 't', 'm', 't', 0xa0, 0x68, 'a', 'u', 't', 'h', 'D', 'a', 't', 'a', 0x58, byte(len(data))}
	object = append(object, data...)
	out, _ := json.Marshal(map[string]any{"id": text64(a.id), "rawId": text64(a.id), "type": "public-key", "clientExtensionResults": map[string]any{},
		"response": map[string]any{"clientDataJSON": text64(a.clientData("webauthn.create", q.PublicKey.Challenge)), "attestationObject": text64(object)}})
	return out
}

// get signs a challenge.
func (a *authenticator) get(t *testing.T, c *Ceremony) []byte {
	t.Helper()
	if !a.synced {
		a.counter++
	}
	client := a.clientData("webauthn.get", a.read(t, c).PublicKey.Challenge)
	data := a.data(a.flags)
	hashed := sha256.Sum256(client)
	digest := sha256.Sum256(append(append([]byte{}, data...), hashed[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, a.key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	out, _ := json.Marshal(map[string]any{"id": text64(a.id), "rawId": text64(a.id), "type": "public-key", "clientExtensionResults": map[string]any{},
		"response": map[string]any{"clientDataJSON": text64(client), "authenticatorData": text64(data), "signature": text64(signature), "userHandle": text64(a.handle)}})
	return out
}

// joinByPasskey brings somebody in with a passkey and no password.
func (w *world) joinByPasskey(client till.ID, role till.Role, login string) (Entry, *authenticator) {
	w.Helper()
	_, token, err := w.p.InviteAs(w.ctx(), "cli:root", client, role, "Awa", login)
	w.must(err)
	j := Joining{Name: "Awa", Language: "fr"}
	c, err := w.p.BeginJoin(w.ctx(), home, token, j)
	w.must(err)
	a := newAuthenticator(w.T)
	j.Step, j.Answer = c.Step, a.create(w.T, c)
	e, err := w.p.Join(w.ctx(), home, token, j)
	w.must(err)
	return e, a
}

// A passkey with user verification is both factors: one touch, and in.
func TestPasskeys(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		e, phone := w.joinByPasskey(w.client.ID, till.RoleOwner, "awa@shop.example")
		if e.Session.FactorMissing || e.Session.Person.Passkeys != 1 || e.Session.Person.HasPassword {
			t.Fatalf("session %+v", e.Session)
		}
		begin := func() *Ceremony {
			c, err := w.p.BeginPasskeySignIn(w.ctx())
			w.must(err)
			if q := phone.read(t, c); q.PublicKey.UserVerification != "required" || q.PublicKey.RPID != "pay.example.com" || len(q.PublicKey.Allow) != 0 {
				t.Fatalf("asked for %+v", q)
			}
			return c
		}
		c := begin()
		answer := phone.get(t, c)
		in, err := w.p.SignInPasskey(w.ctx(), away, c.Step, answer, false)
		w.must(err)
		if in.Session.Person.Login != "awa@shop.example" || !in.Session.Fresh() {
			t.Errorf("session %+v", in.Session)
		}
		// The same answer again, an answer to another challenge, a step that took
		// too long.
		_, err = w.p.SignInPasskey(w.ctx(), away, c.Step, answer, false)
		w.want(err, StepOver)
		_, err = w.p.SignInPasskey(w.ctx(), away, begin().Step, answer, false)
		w.want(err, PasskeyRefused)
		c = begin()
		w.pass(stepWindow)
		_, err = w.p.SignInPasskey(w.ctx(), away, c.Step, phone.get(t, c), false)
		w.want(err, StepOver)

		// Another site, nobody verified, another key, a key that nobody has, and
		// a copy of the key whose counter is behind.
		for what, bad := range map[string]func(a *authenticator){
			"another site":      func(a *authenticator) { a.origin = "https://pay.example.com.evil.example" },
			"nobody verified":   func(a *authenticator) { a.flags = 0x01 },
			"another key":       func(a *authenticator) { a.key = newAuthenticator(t).key },
			"an unknown key":    func(a *authenticator) { a.id = newAuthenticator(t).id },
			"an unknown person": func(a *authenticator) { id := till.NewID(1); a.handle = id[:] },
			"no person":         func(a *authenticator) { a.handle = []byte("x") },
			"a copy":            func(a *authenticator) { a.counter = 0 },
		} {
			forged := *phone
			bad(&forged)
			c := begin()
			_, err := w.p.SignInPasskey(w.ctx(), away, c.Step, forged.get(t, c), false)
			if r := RefusalOf(err); r == nil || r.Code != PasskeyRefused {
				t.Errorf("%s: %v", what, err)
			}
		}
		c = begin()
		for _, garbage := range []string{"", "{}", "null", `{"id":"AA","rawId":"AA","type":"public-key","response":{}}`} {
			_, err := w.p.SignInPasskey(w.ctx(), home, c.Step, []byte(garbage), false)
			w.want(err, PasskeyRefused)
		}
	})
}

// An answer is good once, in whatever spelling its step comes back: a synced
// passkey has no counter that would show it.
func TestAPasskeysAnswerIsGoodOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		_, phone := w.joinByPasskey(w.client.ID, till.RoleOwner, "awa@shop.example")
		phone.synced, phone.counter = true, 0
		c, err := w.p.BeginPasskeySignIn(w.ctx())
		w.must(err)
		answer := phone.get(t, c)
		_, err = w.p.SignInPasskey(w.ctx(), away, c.Step, answer, false)
		w.must(err)
		all := respelled(t, c.Step)
		all["nothing changed"] = c.Step
		for how, step := range all {
			_, err = w.p.SignInPasskey(w.ctx(), away, step, answer, false)
			if r := RefusalOf(err); r == nil || r.Code != StepOver {
				t.Errorf("%s: %v", how, err)
			}
		}
	})
}

// A further passkey needs fresh proof, which a passkey gives; the last way in
// cannot be removed.
func TestFurtherPasskeys(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		e, phone := w.joinByPasskey(w.client.ID, till.RoleOwner, "awa@shop.example")
		other, err := func() (Entry, error) {
			c, err := w.p.BeginPasskeySignIn(w.ctx())
			w.must(err)
			return w.p.SignInPasskey(w.ctx(), away, c.Step, phone.get(t, c), false)
		}()
		w.must(err)
		w.pass(ProofWindow)
		s, err := w.again(home, e)
		w.must(err)
		key := newAuthenticator(t)
		c, err := w.p.BeginPasskey(w.ctx(), s)
		w.must(err)
		if len(key.read(t, c).PublicKey.Exclude) != 1 {
			t.Error("the first passkey is not excluded")
		}
		_, err = w.p.AddPasskey(w.ctx(), home, s, c.Step, key.create(t, c), "key ring")
		w.want(err, ProofNeeded)
		proof, err := w.p.BeginProof(w.ctx(), s)
		w.must(err)
		stolen, err := w.again(away, other)
		w.must(err)
		answer := phone.get(t, proof)
		_, err = w.p.Prove(w.ctx(), away, stolen, Proof{Step: proof.Step, Answer: answer})
		w.want(err, StepOver) // it is another session's
		e, err = w.p.Prove(w.ctx(), home, s, Proof{Step: proof.Step, Answer: answer})
		w.must(err)
		if !e.Session.Fresh() {
			t.Fatal("not fresh")
		}
		_, err = w.p.Prove(w.ctx(), home, e.Session, Proof{Step: proof.Step, Answer: answer})
		w.want(err, StepOver)
		c, err = w.p.BeginPasskey(w.ctx(), e.Session)
		w.must(err)
		e, err = w.p.AddPasskey(w.ctx(), home, e.Session, c.Step, key.create(t, c), "key ring")
		w.must(err)
		_, err = w.again(away, other)
		w.want(err, SessionOver)
		keys, err := w.p.Passkeys(w.ctx(), e.Session.Person.ID)
		w.must(err)
		if len(keys) != 2 || keys[1].Name != "key ring" || keys[0].UsedAt.IsZero() {
			t.Fatalf("%d passkeys", len(keys))
		}
		e, err = w.p.RemovePasskey(w.ctx(), home, e.Session, keys[0].ID)
		w.must(err)
		_, err = w.p.RemovePasskey(w.ctx(), home, e.Session, keys[1].ID)
		w.want(err, LastFactor)
		c, err = w.p.BeginPasskeySignIn(w.ctx())
		w.must(err)
		_, err = w.p.SignInPasskey(w.ctx(), home, c.Step, phone.get(t, c), false)
		w.want(err, PasskeyRefused) // it was removed
		w.pass(time.Second)
	})
}

// Where browsers refuse passkeys, there are none.
func TestPasskeysNeedAName(t *testing.T) {
	t.Parallel()
	for origin, can := range map[string]bool{
		"https://pay.example.com": true, "http://localhost:8080": true, "http://127.0.0.1:8080": false, "http://[::1]:8080": false, "": false,
	} {
		p, err := newWebAuthn(origin)
		if err != nil || (p != nil) != can {
			t.Errorf("%q: %v, %v", origin, p != nil, err)
		}
	}
}
