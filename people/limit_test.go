package people

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"till"
	"till/internal/seal"
	"till/store"
	"till/store/access"
)

// Six wrong passwords wait, and the right one works after the pause. The pause
// grows to a minute and no further: a lock would be a weapon.
func TestWrongPasswordsWait(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.join(w.client.ID, till.RoleCashier, "brice@shop.example")
		other := w.people(Config{})
		try := func(p *People, password string) error {
			v := Visit{Address: netip.AddrFrom4([4]byte{203, 0, 113, byte(w.clock.Now() % 251)})} // the address is not what counts here
			_, err := p.SignIn(w.ctx(), v, "brice@shop.example", password, false)
			return err
		}
		for range freeGuesses {
			w.want(try(w.p, otherPassword), WrongCredentials)
		}
		for _, pause := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
			// Not even the right password, and on no instance.
			err := try(other, goodPassword)
			w.want(err, WaitFirst)
			if wait := RefusalOf(err).Wait; wait < pause*time.Second || wait > pause*time.Second+time.Second {
				t.Fatalf("it waits %s and not %d s", wait, pause)
			}
			w.pass(pause * time.Second)
			w.want(try(w.p, otherPassword), WrongCredentials)
		}
		w.pass(time.Minute)
		w.must(try(other, goodPassword))
		for range freeGuesses { // and all is forgiven
			w.want(try(w.p, otherPassword), WrongCredentials)
		}
	})
}

// Codes are guessed no faster than passwords: to know the password does not
// forgive wrong codes.
func TestWrongCodesWait(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		_, secret, _ := w.secured(w.client.ID, till.RoleOwner, "awa@shop.example")
		var err error
		for n := 0; n < freeGuesses; n++ {
			e, signIn := w.p.SignIn(w.ctx(), home, "awa@shop.example", goodPassword, false)
			w.must(signIn)
			_, err = w.p.SignInCode(w.ctx(), home, e.Step, "000000")
			w.want(err, WrongCode)
		}
		_, err = w.p.SignIn(w.ctx(), away, "awa@shop.example", goodPassword, false)
		w.want(err, WaitFirst)
		w.pass(time.Second)
		e, err := w.p.SignIn(w.ctx(), away, "awa@shop.example", goodPassword, false)
		w.must(err)
		_, err = w.p.SignInCode(w.ctx(), away, e.Step, w.nextCode(secret))
		w.must(err)
	})
}

// An unknown login is paused like one that exists: neither words nor waits
// distinguish them.
func TestAnUnknownLoginGoesTheWayOfAWrongPassword(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.join(w.client.ID, till.RoleCashier, "brice@shop.example")
		answers := map[string][]string{}
		for _, login := range []string{"brice@shop.example", "nobody@shop.example"} {
			for range freeGuesses + 1 {
				_, err := w.p.SignIn(w.ctx(), home, login, otherPassword, false)
				answers[login] = append(answers[login], err.Error())
			}
		}
		if a, b := strings.Join(answers["brice@shop.example"], "\n"), strings.Join(answers["nobody@shop.example"], "\n"); a != b {
			t.Errorf("got\n%s\nand\n%s", a, b)
		}
		_, err := w.p.SignIn(w.ctx(), home, "not a login", otherPassword, false)
		w.want(err, WrongCredentials)
	})
}

// An address guesses twenty times at once, and once more every three seconds. A
// whole /64 of IPv6 is one address.
func TestAnAddressGuessesTwentyTimes(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		at := func(text string) Visit { return Visit{Address: netip.MustParseAddr(text)} }
		guess := func(v Visit, n int) error {
			return w.p.admit(w.ctx(), v, fmt.Sprintf("nobody%d@shop.example", n))
		}
		for n := range addressBurst {
			w.must(guess(at("2001:db8:1:2::"+string("0123456789abcdef"[n%16])), n))
		}
		rows := w.rows()
		err := guess(at("2001:db8:1:2:ffff::1"), 99)
		w.want(err, WaitFirst)
		if wait := RefusalOf(err).Wait; wait > addressRefill+time.Second {
			t.Errorf("it waits %s", wait)
		}
		if now := w.rows(); now != rows {
			t.Errorf("a refusal has written %d rows", now-rows)
		}
		w.must(guess(at("2001:db8:1:3::1"), 99))
		w.pass(addressRefill)
		w.must(guess(at("2001:db8:1:2:ffff::1"), 99))
		w.want(guess(at("2001:db8:1:2:ffff::1"), 99), WaitFirst)
	})
}

// Nobody needs a session to open a link. So an invented one writes nothing, and
// does not keep those waiting who sign in from the same address.
func TestInventedLinksWriteNothingAndStopNoSignIn(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.join(w.client.ID, till.RoleCashier, "brice@shop.example")
		rows := w.rows()
		for range addressBurst {
			_, err := w.p.Invitation(w.ctx(), home, newToken())
			w.want(err, LinkUnknown)
		}
		for range 10 {
			_, err := w.p.Invitation(w.ctx(), home, newToken())
			w.want(err, WaitFirst)
		}
		if now := w.rows(); now != rows {
			t.Errorf("invented links have written %d rows", now-rows)
		}
		_, err := w.p.SignIn(w.ctx(), home, "brice@shop.example", goodPassword, false)
		w.must(err)
		_, token, err := w.p.InviteAs(w.ctx(), "cli:root", w.client.ID, till.RoleCashier, "Awa", "")
		w.must(err)
		w.pass(addressRefill)
		for range 3 { // a link that exists costs nothing
			_, err = w.p.Invitation(w.ctx(), home, token)
			w.must(err)
		}
	})
}

// Who guesses at a login that is paused is refused by a read: they neither wait for those who
// write nor keep them waiting.
func TestAPausedLoginWaitsForNoWrite(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		for range freeGuesses {
			_, err := w.p.SignIn(w.ctx(), home, "brice@shop.example", otherPassword, false)
			w.want(err, WrongCredentials)
		}
		guessed := make(chan error, 1)
		w.must(w.s.Update(w.ctx(), func(tx *store.Tx) error {
			if _, err := access.LockGuesses(w.ctx(), tx, loginName("brice@shop.example"), w.clock.Now()); err != nil {
				return err
			}
			go func() {
				_, err := w.p.SignIn(w.ctx(), away, "brice@shop.example", otherPassword, false)
				guessed <- err
			}()
			select {
			case err := <-guessed:
				w.want(err, WaitFirst)
			case <-time.After(10 * time.Second):
				t.Error("a refusal waits for who writes")
			}
			return nil
		}))
	})
}

// While a login is paused, a guess writes nothing.
func TestAPausedLoginWritesNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		for range freeGuesses {
			_, err := w.p.SignIn(w.ctx(), home, "brice@shop.example", otherPassword, false)
			w.want(err, WrongCredentials)
		}
		rows := w.rows()
		for range 5 {
			_, err := w.p.SignIn(w.ctx(), away, "brice@shop.example", otherPassword, false)
			w.want(err, WaitFirst)
		}
		if now := w.rows(); now != rows {
			t.Errorf("refusals have written %d rows", now-rows)
		}
	})
}

// Two guesses a second from everywhere, and from the person's own address: on a
// device where they have signed in before, the right password still lets them in.
// The device has a count of its own.
func TestADeviceThatIsKnownWaitsForNoStranger(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		const login = "brice@shop.example"
		w.join(w.client.ID, till.RoleCashier, login)
		w.join(w.client.ID, till.RoleCashier, "awa@shop.example")
		known := home
		known.Tokens = []string{"nonsense", w.p.NewDevice(login)}
		attack := func() {
			for n := range 4 {
				_ = w.p.admit(w.ctx(), Visit{Address: netip.AddrFrom4([4]byte{203, 0, byte(w.clock.Now() % 251), byte(n)})}, login)
			}
		}
		for n := range addressBurst + 1 {
			_ = w.p.admit(w.ctx(), home, fmt.Sprintf("nobody%d@shop.example", n))
		}
		for range 4 {
			attack()
			_, err := w.p.SignIn(w.ctx(), known, login, goodPassword, false)
			w.must(err)
			_, err = w.p.SignIn(w.ctx(), home, login, goodPassword, false)
			w.want(err, WaitFirst)
			w.pass(time.Second / 2)
		}
		// Of another login it says nothing, and a word of it that was changed says
		// nothing either.
		_, err := w.p.SignIn(w.ctx(), known, "awa@shop.example", goodPassword, false)
		w.want(err, WaitFirst)
		forged := []byte(known.Tokens[1])
		forged[20] ^= 1
		_, err = w.p.SignIn(w.ctx(), Visit{Address: home.Address, Tokens: []string{string(forged)}}, login, goodPassword, false)
		w.want(err, WaitFirst)
		// Who has the device guesses no faster than others.
		for range freeGuesses {
			_, err := w.p.SignIn(w.ctx(), known, login, otherPassword, false)
			w.want(err, WrongCredentials)
		}
		_, err = w.p.SignIn(w.ctx(), known, login, goodPassword, false)
		w.want(err, WaitFirst)
		w.pass(time.Second)
		_, err = w.p.SignIn(w.ctx(), known, login, goodPassword, false)
		w.must(err)
		if w.pass(DeviceWindow); w.p.DeviceIsOf(known.Tokens[1], login) {
			t.Error("the device is known for ever")
		}
	})
}

// A device token ends with the key that sealed it: who has that key could write one
// for each guess, and never wait.
func TestADeviceEndsWithTheKeyThatSealedIt(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		keys := map[int][]byte{1: []byte("a secret for tests"), 2: []byte("another secret of tests")}
		ring, err := seal.NewRing(keys, 1, nil)
		w.must(err)
		w.p = w.people(Config{Ring: ring})
		const login = "brice@shop.example"
		w.join(w.client.ID, till.RoleCashier, login)
		var written []string
		for range freeGuesses + 1 {
			written = append(written, w.p.NewDevice(login))
		}
		w.must(ring.Set(keys, 2, []int{1}))
		for n, token := range written {
			_, err := w.p.SignIn(w.ctx(), Visit{Address: home.Address, Tokens: []string{token}}, login, otherPassword, false)
			w.want(err, map[bool]RefusalCode{true: WrongCredentials, false: WaitFirst}[n < freeGuesses])
		}
	})
}

// Who is signed in proves who they are, whatever strangers try with the login.
func TestAProofWaitsForNoStranger(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		e := w.join(w.client.ID, till.RoleCashier, "brice@shop.example")
		for range addressBurst + 1 {
			_ = w.p.admit(w.ctx(), home, "brice@shop.example")
		}
		_, err := w.p.SignIn(w.ctx(), home, "brice@shop.example", goodPassword, false)
		w.want(err, WaitFirst)
		for range freeGuesses {
			_, err = w.p.Prove(w.ctx(), home, e.Session, Proof{Password: otherPassword})
			w.want(err, WrongPassword)
		}
		_, err = w.p.Prove(w.ctx(), home, e.Session, Proof{Password: goodPassword})
		w.want(err, WaitFirst)
		w.pass(time.Second)
		_, err = w.p.Prove(w.ctx(), home, e.Session, Proof{Password: goodPassword})
		w.must(err)
	})
}

// Guesses that come at once are counted before they are looked at.
func TestGuessesAtOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		other := w.people(Config{})
		var all sync.WaitGroup
		var mu sync.Mutex
		looked := 0
		for n := range 16 {
			all.Go(func() {
				p := w.p
				if n%2 == 0 {
					p = other
				}
				if err := p.admit(w.ctx(), Visit{Address: netip.AddrFrom4([4]byte{203, 0, 113, byte(n)})}, "brice@shop.example"); err == nil {
					mu.Lock()
					defer mu.Unlock()
					looked++
				} else if r := RefusalOf(err); r == nil || r.Code != WaitFirst {
					t.Errorf("got %v", err)
				}
			})
		}
		all.Wait()
		if looked != freeGuesses {
			t.Errorf("%d guesses were looked at", looked)
		}
	})
}

// At most two passwords are hashed at once; who waits too long is asked to try
// again. An unknown login waits for its turn like one that exists: both are
// hashed, which is nearly all that a sign-in costs.
func TestHashingIsQueued(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.join(w.client.ID, till.RoleCashier, "brice@shop.example")
		w.p.decoy()
		w.p.hashing <- struct{}{}
		w.must(w.p.inSlot(w.ctx(), func() {}))
		w.p.hashing <- struct{}{}
		var all sync.WaitGroup
		for _, login := range []string{"brice@shop.example", "nobody@shop.example", "not a login"} {
			all.Go(func() {
				start := time.Now()
				_, err := w.p.SignIn(w.ctx(), home, login, goodPassword, false)
				if r := RefusalOf(err); r == nil || r.Code != Busy || time.Since(start) < hashingQueue {
					t.Errorf("%s: %v after %s", login, err, time.Since(start))
				}
			})
		}
		all.Wait()
	})
}
