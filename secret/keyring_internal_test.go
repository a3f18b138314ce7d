package secret

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"till"
	"till/books"
	"till/certificates"
	"till/internal/seal"
	"till/people"
	"till/store"
	"till/store/access"
	"till/store/admin"
	"till/store/matching"
	"till/store/storetest"
	"till/store/webhooks"
	"till/tokens"
	"till/upkeep"
	"till/webhook"
)

// sealedWorld is a database with a value in each column of sealed bytes.
type sealedWorld struct {
	t         *testing.T
	store     *store.Store
	endpoints []*webhooks.Endpoint
	stray     till.ID
	person    till.ID
}

const worldHost = "pay.example.com"

// newSealedWorld seals with a ring. It has more endpoints than one slice.
func newSealedWorld(t *testing.T, s *store.Store, ring *seal.Ring) *sealedWorld {
	t.Helper()
	w := &sealedWorld{t: t, store: s}
	ctx, client := t.Context(), storetest.NewClient(t, s, till.Test)
	vault, err := webhook.NewSecretSealer(ring)
	if err != nil {
		t.Fatal(err)
	}
	strays, err := books.NewStrays(s, ring)
	if err != nil {
		t.Fatal(err)
	}
	totp, certificate := w.sealer(ring, people.TOTPLabel), w.sealer(ring, certificates.SealLabel)
	err = s.Update(ctx, func(tx *store.Tx) error {
		w.endpoints, w.person = nil, till.NewID(tx.Now())
		for range resealSlice + 20 {
			e := &webhooks.Endpoint{Endpoint: till.Endpoint{ClientID: client.ID, ID: till.NewID(tx.Now()), URL: "https://shop.example/hooks", Enabled: true, CreatedAt: tx.Now(), UpdatedAt: tx.Now()}}
			e.Secret = vault.Seal(secretOf(e.ID, "new"), e.ClientID, e.ID)
			e.OldSecret, e.OldUntil = vault.Seal(secretOf(e.ID, "old"), e.ClientID, e.ID), tx.Now().Add(time.Hour)
			w.endpoints = append(w.endpoints, e)
			if err := webhooks.InsertEndpoint(ctx, tx, e); err != nil {
				return err
			}
		}
		p := &access.Person{Person: till.Person{ID: w.person, Login: "awa@shop.example", Name: "Awa", Language: "fr", CreatedAt: tx.Now()}}
		return errors.Join(access.InsertPerson(ctx, tx, p), access.SetTOTP(ctx, tx, w.person, totp.Seal([]byte("a totp secret"), w.person[:]), 1),
			admin.PutCertificate(ctx, tx, worldHost, certificate.Seal([]byte("a certificate"), []byte(worldHost)), false))
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.token(ring, func(context.Context) (string, time.Duration, error) { return "a token", time.Hour, nil }); err != nil {
		t.Fatal(err)
	}
	stray := &matching.Stray{Connection: "mtn", Reference: till.NewID(s.Now()), Direction: matching.StrayIn}
	if _, _, err := strays.Record(ctx, stray, []byte("a callback")); err != nil {
		t.Fatal(err)
	}
	w.stray = stray.ID
	return w
}

func secretOf(id till.ID, which string) webhook.Secret {
	return webhook.Secret(fmt.Sprintf("%s %s", which, id))
}

func (w *sealedWorld) sealer(ring *seal.Ring, label string) *seal.Sealer {
	w.t.Helper()
	s, err := ring.Sealer(label)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *sealedWorld) token(ring *seal.Ring, fetch func(context.Context) (string, time.Duration, error)) (string, error) {
	cache, err := tokens.New(w.store, ring, nil)
	if err != nil {
		return "", err
	}
	return cache.For("mtn", "settings").Token(w.t.Context(), "collection", "", fetch)
}

// opens checks that the owner of each value reads it with a ring.
func (w *sealedWorld) opens(ring *seal.Ring) {
	w.t.Helper()
	ctx := w.t.Context()
	vault, err := webhook.NewSecretSealer(ring)
	if err != nil {
		w.t.Fatal(err)
	}
	err = w.store.View(ctx, func(tx *store.Tx) error {
		for _, made := range w.endpoints {
			e, err := webhooks.ReadEndpoint(ctx, tx, made.Ref())
			if err != nil {
				return err
			}
			for which, sealed := range map[string][]byte{"new": e.Secret, "old": e.OldSecret} {
				if got, err := vault.Open(sealed, e.ClientID, e.ID); err != nil || !bytes.Equal(got, secretOf(e.ID, which)) {
					return fmt.Errorf("the %s secret of %s: %w", which, e.ID, err)
				}
			}
		}
		p, err := access.PersonByID(ctx, tx, w.person)
		if err != nil {
			return err
		}
		if got, err := w.sealer(ring, people.TOTPLabel).Open(p.TOTP, w.person[:]); err != nil || string(got) != "a totp secret" {
			return fmt.Errorf("the authenticator's secret: %q, %w", got, err)
		}
		c, err := admin.ReadCertificate(ctx, tx, worldHost)
		if err != nil {
			return err
		}
		if got, err := w.sealer(ring, certificates.SealLabel).Open(c.Sealed, []byte(worldHost)); err != nil || string(got) != "a certificate" {
			return fmt.Errorf("the certificate: %q, %w", got, err)
		}
		return nil
	})
	if err != nil {
		w.t.Error(err)
	}
	if got, err := w.token(ring, func(context.Context) (string, time.Duration, error) { return "", 0, errors.New("it is not kept") }); err != nil || got != "a token" {
		w.t.Errorf("the token is %q, %v", got, err)
	}
	strays, err := books.NewStrays(w.store, ring)
	if err != nil {
		w.t.Fatal(err)
	}
	stray, err := books.ShowStray(ctx, w.store, w.stray)
	if err != nil {
		w.t.Fatal(err)
	}
	if got, err := strays.Body(stray); err != nil || string(got) != "a callback" {
		w.t.Errorf("the stray's body is %q, %v", got, err)
	}
}

// Each column is sealed anew, also after an interruption and beside somebody who changes a
// value; then the generation before is not needed any more. What does not open is left.
func TestEveryValueIsSealedAnew(t *testing.T) {
	t.Parallel()
	if kinds := admin.SealedKinds(); len(kinds) != len(sealedUses) {
		t.Fatalf("the store has %d columns of sealed bytes, and here are %d", len(kinds), len(sealedUses))
	}
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		root, second, third := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32), bytes.Repeat([]byte{3}, 32)
		ring, err := seal.NewRing(map[int][]byte{1: root, 2: second}, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := newSealedWorld(t, s, ring)
		if err := ring.Set(map[int][]byte{1: root, 2: second, 3: third}, 3, nil); err != nil {
			t.Fatal(err)
		}
		w.opens(ring)
		var done Resealed
		r := resealer{store: s, kind: admin.SealedSecrets, use: sealedUses[admin.SealedSecrets], sealer: w.sealer(ring, webhook.SealLabel), generation: 3}
		if more, err := r.slice(t.Context(), &done); err != nil || !more || done.Sealed != resealSlice {
			t.Fatalf("the first slice: %+v, %v, %v", done, more, err)
		}
		w.opens(ring) // values of both generations are there
		broken := []byte("\x02 this was never sealed by anybody")
		err = s.Update(t.Context(), func(tx *store.Tx) error {
			return admin.PutCertificate(t.Context(), tx, "broken.example.com", broken, false)
		})
		if err != nil {
			t.Fatal(err)
		}
		all := int64(2*len(w.endpoints) + 4)
		if done, err = Reseal(t.Context(), s, ring); err != nil || done.Sealed != all-resealSlice || done.Unreadable != 1 {
			t.Errorf("the rest: %+v, %v, want %d values", done, err, all-resealSlice)
		}
		if done, err = Reseal(t.Context(), s, ring); err != nil || done.Sealed != 0 || done.Unreadable != 1 {
			t.Errorf("once more: %+v, %v", done, err)
		}
		g, err := upkeep.ReadGenerations(t.Context(), s)
		if err != nil || g.SealedBy(3) != all || g.SealedBy(2) != 1 || g.Sealed[admin.SealedOldSecrets][3] != int64(len(w.endpoints)) {
			t.Errorf("the values by generation: %+v, %v", g.Sealed, err)
		}
		err = s.View(t.Context(), func(tx *store.Tx) error {
			c, err := admin.ReadCertificate(t.Context(), tx, "broken.example.com")
			if err == nil && !bytes.Equal(c.Sealed, broken) {
				err = errors.New("what does not open was changed")
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		// A value that somebody has replaced meanwhile stays as that one.
		stale := admin.Sealed{Key: admin.SealedKey{First: worldHost, Second: worldHost}, Bytes: []byte("\x02 as it was read")}
		err = s.Update(t.Context(), func(tx *store.Tx) error {
			wrote, err := admin.WriteSealed(t.Context(), tx, admin.SealedCertificates, &stale, []byte("\x03 anew"))
			if wrote {
				err = errors.New("a newer value was overwritten")
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		without, err := seal.NewRing(map[int][]byte{1: root, 3: third}, 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.opens(without)
	})
}

// Each package that seals for the database is in sealedUses, or says here why it need not be sealed
// anew.
func TestEverySealerIsKnown(t *testing.T) {
	t.Parallel()
	known := map[string]string{
		"webhook/secrets.go": "SealedSecrets", "tokens/tokens.go": "SealedTokens", "books/strays.go": "SealedStrays", "certificates/cache.go": "SealedCertificates",
		"people/people.go":       "SealedTOTP, and steps of signing in, which last minutes and are in no database",
		"console/shell/shell.go": "parts of addresses, in no database",
		"secret/reseal.go":       "it seals anew",
		"journal/writer.go":      "outside of the database, by the root: every file of the secret must open it",
		"journal/read.go":        "the same",
		"engine/worker.go":       "one-time codes, by the root, for the minutes until the operator's first answer",
		"internal/seal/ring.go":  "its own", "internal/seal/seal.go": "its own",
	}
	err := filepath.WalkDir("..", func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		name := filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
		if bytes.Contains(text, []byte(".Sealer(")) || bytes.Contains(text, []byte("seal.New(")) {
			if known[name] == "" {
				t.Errorf("%s seals: if the database keeps it, it belongs into sealedUses", name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The file of the secret has the root and further generations. Mistakes are named, and
// nothing of the file is quoted.
func TestTheFileOfTheSecret(t *testing.T) {
	t.Parallel()
	line := func(b byte) string { return hex.EncodeToString(bytes.Repeat([]byte{b}, 32)) }
	path := filepath.Join(t.TempDir(), "till.secret")
	for name, c := range map[string]struct {
		text string
		want []int // nil: refused
	}{
		"as it always was":       {line(1), []int{1}},
		"with generations":       {"# ours\n" + line(1) + "\r\n\n2 " + line(2) + "\n  7   " + line(7) + "\n", []int{1, 2, 7}},
		"empty":                  {"\n# nothing\n", nil},
		"a word":                 {"password", nil},
		"short":                  {line(1)[:60], nil},
		"long":                   {line(1) + "00", nil},
		"the same number twice":  {line(1) + "\n2 " + line(2) + "\n2 " + line(3), nil},
		"the root once more":     {line(1) + "\n1 " + line(2), nil},
		"a key without a number": {line(1) + "\n" + line(2), nil},
		"a number without a key": {line(1) + "\n2", nil},
		"a number too high":      {line(1) + "\n256 " + line(2), nil},
		"too large":              {line(1) + strings.Repeat("\n", maxSecretFile), nil},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		keys, err := ReadKeys(path)
		var got []int
		for g := range keys {
			got = append(got, g)
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if err != nil && (strings.Contains(err.Error(), line(1)[:16]) || strings.Contains(err.Error(), line(2)[:16]) || strings.Contains(err.Error(), "password")) {
			t.Errorf("%s: the error quotes the file: %v", name, err)
		}
	}
}
