package server_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till/secret"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
	"till/upkeep"
)

// rotating is a running server whose secret is rotated beside it.
type rotating struct {
	*running
	store  *store.Store
	secret string
}

// eventually waits until a change is not refused as too early.
func (r *rotating) eventually(what string, change func() (bool, error)) {
	r.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		changed, err := change()
		if err == nil && changed {
			return
		}
		if !errors.Is(err, upkeep.ErrNotYet) || time.Now().After(end) {
			r.t.Fatalf("%s: %v, %v", what, changed, err)
		}
	}
}

// address waits until the connection's callback address is another than before.
func (r *rotating) address(before string) string {
	r.t.Helper()
	for end := time.Now().Add(2 * time.Minute); r.CallbackURL("first") == before; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatal("the server does not follow")
		}
	}
	return r.CallbackURL("first")
}

// calls returns the status of an operator's call to an address.
func (r *rotating) calls(address string) int {
	r.t.Helper()
	res, err := http.Post(address, "text/plain", strings.NewReader("6f1c1a52-0d0c-4d5a-9a62-51f9a6f0a3c1"))
	if err != nil {
		r.t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// rotate adds a generation and puts it into use.
func (r *rotating) rotate(want int) {
	r.t.Helper()
	number, err := secret.AddKey(r.t.Context(), r.store, r.secret, "person:Anne")
	if err != nil || number != want {
		r.t.Fatalf("added %d, %v", number, err)
	}
	r.eventually("use", func() (bool, error) { return upkeep.UseGeneration(r.t.Context(), r.store, want, "person:Anne") })
}

// The secret is rotated while the server runs: it follows by itself, addresses of the
// generation before work until that is retired, and an address of a payment that is open
// keeps its generation.
func TestTheSecretIsRotatedWhileTheServerRuns(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.ApprovalWindow = 10 * time.Minute // a payment stays open
	if err := withBank(t, &c, oneBank); err != nil {
		t.Fatal(err)
	}
	r := &rotating{running: start(t, c), store: storetest.Open(t, store.Config{Path: c.Database}), secret: secret.File(c.Database)}
	old, err := os.ReadFile(r.secret)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Raw(t, c.Database, `UPDATE installation SET level = 1`) // as an upgraded database has it
	if _, err := secret.AddKey(t.Context(), r.store, r.secret, "person:Anne"); !errors.Is(err, upkeep.ErrGenerationLevel) {
		t.Fatalf("at level 1: %v", err)
	}
	if text, err := os.ReadFile(r.secret); err != nil || string(text) != string(old) {
		t.Fatalf("a refused command has changed the file, %v", err)
	}
	if _, err := upkeep.RaiseLevel(t.Context(), r.store, admin.Level, "person:Anne"); err != nil {
		t.Fatal(err)
	}
	first := r.CallbackURL("first")
	r.rotate(2)
	second := r.address(first)
	if r.calls(first) == http.StatusNotFound || r.calls(second) == http.StatusNotFound || r.calls(second+"x") != http.StatusNotFound {
		t.Error("an address of a generation that is not retired is not known, or any address is")
	}
	r.eventually("retire", func() (bool, error) { return upkeep.RetireGeneration(t.Context(), r.store, 1, "person:Anne") })
	for end := time.Now().Add(2 * time.Minute); r.calls(first) != http.StatusNotFound; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the address of a retired generation is still known")
		}
	}

	id := r.create("242061230003") // its customer does not answer
	r.await(id, "processing")
	r.rotate(3)
	r.address(second)
	_, err = upkeep.RetireGeneration(t.Context(), r.store, 2, "person:Anne")
	for end := time.Now().Add(2 * time.Minute); errors.Is(err, upkeep.ErrNotYet) && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		_, err = upkeep.RetireGeneration(t.Context(), r.store, 2, "person:Anne")
	}
	if err == nil || !strings.Contains(err.Error(), "may call an address of that time") {
		t.Errorf("with an open payment: %v", err)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}

	// A start needs each generation that was used and is not retired.
	newest, err := os.ReadFile(r.secret)
	if err != nil {
		t.Fatal(err)
	}
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(r.secret, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(string(old))
	refused(t, c, "generation 2 is missing")
	put(strings.Replace(string(newest), "\n3 ", "\n4 ", 1))
	refused(t, c, "generation 3 is missing")
	lines := strings.Split(strings.TrimSpace(string(newest)), "\n")
	put(lines[0] + "\n2 " + strings.TrimPrefix(lines[2], "3 ") + "\n" + lines[2] + "\n")
	refused(t, c, "generation 2 in it is another key")
	put(string(newest))
	start(t, c).stop()
}

// If 'till secret add' is killed between the file and the database, the next one goes on.
// An edit keeps the file's mode.
func TestAnInterruptedAddGoesOn(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	if err := start(t, c).stop(); err != nil {
		t.Fatal(err)
	}
	s, path := storetest.Open(t, store.Config{Path: c.Database}), secret.File(c.Database)
	if _, err := upkeep.RaiseLevel(t.Context(), s, admin.Level, "person:Anne"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("2 " + strings.Repeat("ab", 32) + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{2, 3} {
		if number, err := secret.AddKey(t.Context(), s, path, "person:Anne"); err != nil || number != want {
			t.Fatalf("added %d, %v, want %d", number, err, want)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file's mode is %v, %v", info.Mode(), err)
	}
	keys, err := secret.ReadKeys(path)
	if err != nil || len(keys) != 3 || keys[2][0] != 0xab {
		t.Errorf("the file has %d generations, %v", len(keys), err)
	}
	for range 2 {
		if err := secret.RemoveKey(path, 2); err != nil {
			t.Fatal(err)
		}
	}
	if err := secret.RemoveKey(path, 1); err != nil {
		t.Fatal(err)
	}
	if keys, err = secret.ReadKeys(path); err != nil || len(keys) != 2 || keys[1] == nil || keys[3] == nil {
		t.Errorf("the file has %d generations, %v", len(keys), err)
	}
	if left, err := filepath.Glob(path + ".*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// What a killed 'till secret add' or 'retire' has left beside the file is deleted by the
// next one. Everything else stays: copies that a person made have such names, too.
func TestWhatAKilledAddLeftIsDeleted(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	if err := start(t, c).stop(); err != nil {
		t.Fatal(err)
	}
	s, path := storetest.Open(t, store.Config{Path: c.Database}), secret.File(c.Database)
	if _, err := upkeep.RaiseLevel(t.Context(), s, admin.Level, "person:Anne"); err != nil {
		t.Fatal(err)
	}
	stays := []string{".20261118", ".bak", ".partial", ".old.partial", ".1.partial.bak", "2.1.partial", ".-1.partial"}
	leave := func(endings ...string) {
		t.Helper()
		for _, ending := range endings {
			if err := os.WriteFile(path+ending, []byte("a key"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	leave(stays...)
	if err := os.Mkdir(path+".7.partial", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, edit := range []func() error{
		func() error { _, err := secret.AddKey(t.Context(), s, path, "person:Anne"); return err },
		func() error { return secret.RemoveKey(path, 2) },
	} {
		leave(".1234567890.partial", ".5.partial")
		if err := edit(); err != nil {
			t.Fatal(err)
		}
		found, err := filepath.Glob(path + "*")
		if err != nil || len(found) != len(stays)+2 { // the secret and the folder
			t.Errorf("there are %v, %v", found, err)
		}
	}
	if _, err := secret.ReadKeys(path); err != nil {
		t.Error(err)
	}
}
