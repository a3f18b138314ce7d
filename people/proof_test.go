package people

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"till"
)

// Proof is fresh for ten minutes. Who has TOTP proves by it, and not by the
// password; who has neither proves by the password.
func TestProof(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		e, secret, codes := w.secured(w.client.ID, till.RoleOwner, "awa@shop.example")
		w.pass(ProofWindow - time.Second)
		s, err := w.again(home, e)
		w.must(err)
		if !s.Fresh() {
			t.Error("stale before its time")
		}
		w.pass(time.Second)
		if s, err = w.again(home, e); err != nil || s.Fresh() {
			t.Errorf("fresh for ever: %v", err)
		}
		_, err = w.p.Prove(w.ctx(), home, s, Proof{Password: goodPassword})
		w.want(err, WrongCode)
		_, err = w.p.Prove(w.ctx(), home, s, Proof{Code: "000000"})
		w.want(err, WrongCode)
		e, err = w.p.Prove(w.ctx(), home, s, Proof{Code: w.code(secret)})
		w.must(err)
		_, err = w.p.Prove(w.ctx(), home, e.Session, Proof{Code: w.code(secret)})
		w.want(err, WrongCode)
		e, err = w.p.Prove(w.ctx(), home, e.Session, Proof{Code: strings.ToUpper(codes[0])})
		w.must(err)

		cashier := w.join(w.client.ID, till.RoleCashier, "brice@shop.example")
		w.pass(ProofWindow)
		s, err = w.again(home, cashier)
		w.must(err)
		if _, _, password := s.ProofBy(); !password || s.Fresh() {
			t.Error("a cashier has no other proof than the password")
		}
		_, err = w.p.Prove(w.ctx(), home, s, Proof{Password: otherPassword})
		w.want(err, WrongPassword)
		proved, err := w.p.Prove(w.ctx(), home, s, Proof{Password: goodPassword})
		w.must(err)
		if !proved.Session.Fresh() || proved.Session.ExpiresAt != s.ExpiresAt {
			t.Error("the proof is not fresh, or it made the session longer")
		}
	})
}

// A merchant may ask everybody for a second factor.
func TestRequireFactor(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		owner, _, _ := w.secured(w.client.ID, till.RoleOwner, "awa@shop.example")
		cashier := w.join(w.client.ID, till.RoleCashier, "brice@shop.example")
		if cashier.Session.FactorMissing {
			t.Fatal("a cashier needs a second factor")
		}
		w.want(w.p.SetRequireFactor(w.ctx(), cashier.Session, w.client, true), NotAllowed)
		w.must(w.p.SetRequireFactor(w.ctx(), owner.Session, w.client, true))
		s, err := w.again(home, cashier)
		w.must(err)
		if required, err := w.p.RequireFactor(w.ctx(), w.client); err != nil || !required || !s.FactorMissing || s.May(w.client, Collect) != None {
			t.Errorf("required %v, %v; the cashier %+v", required, err, s)
		}
		setup, err := w.p.BeginTOTP(w.ctx(), s)
		w.must(err)
		shown, err := w.p.ShowTOTP(s, setup.Step)
		w.must(err)
		if shown.URI != setup.URI || !strings.HasPrefix(setup.URI, "otpauth://totp/Till:brice@shop.example?") {
			t.Errorf("the app is told %s", setup.URI)
		}
		_, _, err = w.p.ConfirmTOTP(w.ctx(), home, s, setup.Step, "123456")
		w.want(err, WrongCode)
		st, err := w.p.openStep(stepTOTP, setup.Step)
		w.must(err)
		_, _, err = w.p.ConfirmTOTP(w.ctx(), home, owner.Session, setup.Step, w.code(st.Secret))
		w.want(err, StepOver) // it is somebody else's
		e, codes, err := w.p.ConfirmTOTP(w.ctx(), home, s, setup.Step, w.code(st.Secret))
		w.must(err)
		if e.Session.FactorMissing || len(codes) != RecoveryCodes || e.Session.May(w.client, Collect) != Full {
			t.Errorf("session %+v", e.Session)
		}
		_, err = w.p.RemoveTOTP(w.ctx(), home, e.Session)
		w.want(err, LastFactor)
		again, err := w.p.NewRecoveryCodes(w.ctx(), e.Session)
		w.must(err)
		if len(again) != RecoveryCodes || again[0] == codes[0] {
			t.Errorf("%d new codes", len(again))
		}
	})
}

// The vectors of RFC 6238, appendix B, in six digits.
func TestTOTPVectors(t *testing.T) {
	t.Parallel()
	secret := []byte("12345678901234567890")
	for at, want := range map[int64]string{59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130"} {
		if got := totpCode(secret, at/30); got != want {
			t.Errorf("at %d: %s, want %s", at, got, want)
		}
		now := till.TimeOf(time.Unix(at, 0))
		for _, off := range []int64{-60, -30, 0, 30, 60} {
			code := totpCode(secret, (at+off)/30)
			if found := totpStep(secret, code, now); (found != 0) != (off >= -30 && off <= 30 && at+off >= 30) {
				t.Errorf("at %d the code of %+d s is of step %d", at, off, found)
			}
		}
	}
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	for password, want := range map[string]RefusalCode{
		"onze lapins dorment":           "",
		"correct horse battery stable":  "",
		"ça va être tout à fait long":   "",
		"k7#mQ2!vB9xL":                  "",
		"éééééééé":                      PasswordShort, // 8 characters, 16 bytes
		"12345678901":                   PasswordShort,
		"123456789012":                  PasswordCommon,
		"210987654321":                  PasswordCommon,
		"aaaaaaaaaaaaaaa":               PasswordCommon,
		"abcabcabcabc":                  PasswordCommon,
		"Password1234!":                 PasswordCommon,
		"P@ssw0rd!2026":                 PasswordCommon,
		"motdepasse123":                 PasswordCommon,
		"azertyuiop12":                  PasswordCommon,
		"qwertyuiop[]":                  PasswordCommon,
		"password password":             PasswordCommon,
		"brazzaville242":                PasswordCommon,
		"awa.ndala2026!!":               PasswordCommon, // the login's own
		"Awa.Ndala@shop.example":        PasswordCommon,
		strings.Repeat("ab cd ef", 200): PasswordLong,
	} {
		err := checkPassword(password, "awa.ndala@shop.example", "Awa Ndala")
		if r := RefusalOf(err); (r == nil) != (want == "") || r != nil && r.Code != want {
			t.Errorf("%.40q: %v, want %q", password, err, want)
		}
	}
	phc := hashPassword("onze lapins dorment")
	if !strings.HasPrefix(phc, "$argon2id$v=19$m=19456,t=2,p=1$") || !samePassword(phc, "onze lapins dorment") || samePassword(phc, "onze lapins dormenT") {
		t.Errorf("%s", phc)
	}
	for _, broken := range []string{"", "onze lapins dorment", phc[:len(phc)-1], strings.Replace(phc, "t=2", "t=1", 1)} {
		if samePassword(broken, "onze lapins dorment") {
			t.Errorf("%q matches", broken)
		}
	}
	if a, b := hashPassword("x"), hashPassword("x"); a == b {
		t.Error("two hashes have one salt")
	}
}

func TestLogins(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		" Awa@Shop.Example ": "awa@shop.example", "+242 06 123 45 67": "+242061234567", "00242061234567": "+242061234567", "+242-(06) 123.45.67": "+242061234567",
		"awa": "", "061234567": "", "+24": "", "+1234567890123456": "", "@shop": "", "a@": "", "a b@c": "", "a@b@c": "", "a@b\n": "a@b", "<a@b>": "", "": "", "é@b": "",
	} {
		got, err := cleanLogin(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// A hash that anybody can make from the database alone would let codes be
// tried.
func TestRecoveryCodesAreKeyed(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		other, err := New(Config{Store: w.s, Secret: []byte("another secret for tests"), Now: w.clock.Now})
		w.must(err)
		id, second := till.NewID(1), till.NewID(2)
		seen := map[string]bool{}
		for _, h := range [][32]byte{w.p.codeHash(id, "abcd"), other.codeHash(id, "abcd"), w.p.codeHash(second, "abcd"), w.p.codeHash(id, "abce")} {
			seen[hex.EncodeToString(h[:])] = true
		}
		if len(seen) != 4 {
			t.Error("two codes have one hash")
		}
	})
}
