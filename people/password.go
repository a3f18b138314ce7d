package people

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"till"
	"till/store"
	"till/store/access"
)

// The bounds of passwords: characters at least, bytes at most.
const (
	minPassword = 12
	maxPassword = 1024
)

// Argon2id: 19 MiB, 2 passes, 1 lane. At most maxHashing passwords are hashed
// at once, because of the memory; others wait hashingQueue.
const (
	argonMemory  = 19 << 10 // KiB
	argonPasses  = 2
	argonLanes   = 1
	saltSize     = 16
	keySize      = 32
	maxHashing   = 2
	hashingQueue = 2 * time.Second
)

// argon is how costly a password's hash is.
type argon struct {
	memory, passes uint32 // KiB
	lanes          uint8
}

// costNow is the cost of new hashes. Older hashes keep theirs until the person
// signs in.
var costNow = argon{argonMemory, argonPasses, argonLanes}

// maxCost bounds what a text in the database can make us do.
var maxCost = argon{256 << 10, 16, 16}

func (a argon) prefix() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$", argon2.Version, a.memory, a.passes, a.lanes)
}

// costOf returns the cost of PHC text and the rest of it, false if it is none of
// ours.
func costOf(phc string) (a argon, rest string, ok bool) {
	var version int
	parts := strings.Split(phc, "$") // nothing, argon2id, version, cost, salt, key
	if len(parts) != 6 {
		return a, "", false
	}
	end := len(phc) - len(parts[4]) - 1 - len(parts[5])
	n, err := fmt.Sscanf(phc[:end], "$argon2id$v=%d$m=%d,t=%d,p=%d$", &version, &a.memory, &a.passes, &a.lanes)
	ok = err == nil && n == 4 && version == argon2.Version && a.passes > 0 && a.lanes > 0 && a.memory <= maxCost.memory && a.passes <= maxCost.passes && a.lanes <= maxCost.lanes &&
		a.prefix() == phc[:end]
	return a, phc[end:], ok
}

// hashPassword returns a password as PHC text.
func hashPassword(password string) string { return costNow.hash(password) }

func (a argon) hash(password string) string {
	salt := make([]byte, saltSize)
	rand.Read(salt)
	key := argon2.IDKey([]byte(password), salt, a.passes, a.memory, a.lanes, keySize)
	return a.prefix() + base64.RawStdEncoding.EncodeToString(salt) + "$" + base64.RawStdEncoding.EncodeToString(key)
}

// samePassword compares a password with PHC text, at the cost that the text
// names.
func samePassword(phc, password string) bool {
	cost, rest, ours := costOf(phc)
	saltText, keyText, found := strings.Cut(rest, "$")
	salt, err1 := base64.RawStdEncoding.DecodeString(saltText)
	want, err2 := base64.RawStdEncoding.DecodeString(keyText)
	if !ours || !found || err1 != nil || err2 != nil || len(want) != keySize {
		return false
	}
	key := argon2.IDKey([]byte(password), salt, cost.passes, cost.memory, cost.lanes, keySize)
	return subtle.ConstantTimeCompare(key, want) == 1
}

// renewHash hashes a password that was just found right at today's cost, if its
// hash is of another.
func (p *People) renewHash(ctx context.Context, person *access.Person, password string) error {
	if cost, _, ok := costOf(person.Password); ok && cost == costNow {
		return nil
	}
	var phc string
	if err := p.inSlot(ctx, func() { phc = hashPassword(password) }); err != nil {
		return err
	}
	return p.commit(ctx, nil, func(tx *store.Tx) ([]entry, error) {
		if _, err := access.LockPerson(ctx, tx, person.ID); err != nil {
			return nil, err
		}
		now, err := access.PersonByID(ctx, tx, person.ID)
		if err != nil || now == nil || now.Password != person.Password {
			return nil, err // somebody has set another one meanwhile
		}
		person.Password = phc
		return nil, access.SetPassword(ctx, tx, person.ID, phc)
	})
}

// inSlot runs f when one of the slots for hashing is free. It refuses with Busy
// if none is in time.
func (p *People) inSlot(ctx context.Context, f func()) error {
	timer := time.NewTimer(hashingQueue)
	defer timer.Stop()
	select {
	case p.hashing <- struct{}{}:
	case <-timer.C:
		return refuse(Busy)
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.hashing }()
	f()
	return nil
}

// verifyPassword compares a password with a person's, or with a decoy if there
// is no such person or no password, which takes as long.
func (p *People) verifyPassword(ctx context.Context, person *access.Person, password string) (same bool, err error) {
	if len(password) > maxPassword {
		password = password[:maxPassword+1] // still wrong, and no work for us
	}
	known := person != nil && person.Password != ""
	err = p.inSlot(ctx, func() {
		if known {
			same = samePassword(person.Password, password)
		} else {
			samePassword(p.decoy(), password)
		}
	})
	return same, err
}

//go:embed common.txt
var commonText []byte

var commonWords = func() map[string]bool {
	out := map[string]bool{}
	for _, word := range bytes.Fields(commonText) {
		out[string(word)] = true
	}
	return out
}()

// checkPassword refuses what is too short, too long, or among the first guesses
// of anybody: a common word with digits and signs around it, one character or
// a few over and over, a row of the keyboard, the person's own login or name.
func checkPassword(password, login, name string) error {
	switch {
	case !utf8.ValidString(password) || utf8.RuneCountInString(password) < minPassword:
		return refuse(PasswordShort)
	case len(password) > maxPassword:
		return refuse(PasswordLong)
	}
	lower := strings.ToLower(password)
	letters := onlyLetters(lower)
	for _, own := range append(strings.FieldsFunc(strings.ToLower(login+" "+name), func(r rune) bool { return r == ' ' || r == '@' }), login) {
		if own := onlyLetters(strings.ToLower(own)); len(own) >= 3 && letters == own {
			return refuse(PasswordCommon)
		}
	}
	plain := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, lower)
	if plain == strings.ToLower(login) || isRow(plain) || commonWords[plain] || commonWords[shortestUnit(plain)] || len([]rune(shortestUnit(plain))) <= 4 {
		return refuse(PasswordCommon)
	}
	if unit := shortestUnit(letters); letters == "" || commonWords[unit] || isRow(letters) {
		return refuse(PasswordCommon)
	}
	return nil
}

// onlyLetters returns the letters of a text, with the digits and signs that
// people write in place of letters read as these, unless they are at an end.
func onlyLetters(text string) string {
	text = strings.TrimFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && r != '@' && r != '$' })
	var b strings.Builder
	for _, r := range text {
		switch r {
		case '@', '4':
			r = 'a'
		case '0':
			r = 'o'
		case '1', '!':
			r = 'i'
		case '3':
			r = 'e'
		case '5', '$':
			r = 's'
		case '7':
			r = 't'
		}
		if unicode.IsLetter(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// shortestUnit returns the part that a text repeats, or the text.
func shortestUnit(text string) string {
	r := []rune(text)
	for n := 1; n <= len(r)/2; n++ {
		if len(r)%n == 0 && strings.Repeat(string(r[:n]), len(r)/n) == text {
			return string(r[:n])
		}
	}
	return text
}

// rows are what fingers run along.
var rows = []string{
	"0123456789012345678901234567890", "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz",
	"qwertyuiopasdfghjklzxcvbnm", "azertyuiopqsdfghjklmwxcvbn", "qwertzuiopasdfghjklyxcvbnm",
	"1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p", "1q2w3e4r5t6y7u8i9o0p", "1a2z3e4r5t6y7u8i9o0p",
}

func isRow(text string) bool {
	if len(text) < 6 {
		return false
	}
	back := []rune(text)
	for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	for _, row := range rows {
		if strings.Contains(row, text) || strings.Contains(row, string(back)) {
			return true
		}
	}
	return false
}

// newPassword checks a password and returns it as PHC text.
func (p *People) newPassword(ctx context.Context, password, login, name string) (phc string, err error) {
	if err := checkPassword(password, login, name); err != nil {
		return "", err
	}
	err = p.inSlot(ctx, func() { phc = hashPassword(password) })
	return phc, err
}

// SetPassword replaces the person's password and ends their other sessions. s
// needs fresh proof. The session goes on under a new token.
func (p *People) SetPassword(ctx context.Context, v Visit, s *Session, password string) (Entry, error) {
	if !s.Fresh() {
		return Entry{}, refuse(ProofNeeded)
	}
	phc, err := p.newPassword(ctx, password, s.Person.Login, s.Person.Name)
	if err != nil {
		return Entry{}, err
	}
	return p.changeAccess(ctx, v, s, "password.set", "", func(tx *store.Tx, _ till.Time) error {
		return access.SetPassword(ctx, tx, s.Person.ID, phc)
	})
}
