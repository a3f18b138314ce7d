package shell

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"till"
	"till/people"
	"till/store"
	"till/store/storetest"
)

// house is a console without rooms, on a real database.
type house struct {
	console *Console
	store   *store.Store
	visitor people.Session // whose every session is
}

func newHouse(t *testing.T) *house {
	t.Helper()
	ctx, w := context.Background(), &house{}
	secret := []byte("a secret for tests only")
	var err error
	if w.store, err = store.Open(ctx, storetest.Engines()[0].Config(t)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.store.Close() })
	if _, err := w.store.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	folk, err := people.New(people.Config{Store: w.store, Secret: secret, Origin: "http://localhost:8080"})
	if err != nil {
		t.Fatal(err)
	}
	if w.console, err = New(Config{Store: w.store, People: folk, Secret: secret, BaseURL: "http://localhost:8080/v1"}, Rooms{}); err != nil {
		t.Fatal(err)
	}
	w.console.SessionOf = func(*Visit, string) (*people.Session, error) { s := w.visitor; return &s, nil }
	return w
}

// be makes the visitor somebody else.
func (w *house) be() {
	w.visitor = people.Session{ID: till.NewID(w.store.Now()), Person: till.Person{ID: till.NewID(w.store.Now()), Name: "Awa N.", Language: "en"}}
}

// ask builds a request as a browser on this machine sends it.
func ask(method, path string) *http.Request {
	r := httptest.NewRequest(method, "http://localhost:8080"+path, nil)
	r.RemoteAddr = "127.0.0.1:50000"
	r.Header.Set("Cookie", "till=token")
	return r
}

// Parts of pages that are read again say how far hints must be apart; whole pages do not.
func TestRegionsSpaceTheHints(t *testing.T) {
	t.Parallel()
	w := newHouse(t)
	w.be()
	route := &Route{For: SignedIn, Handle: func(v *Visit) error { return v.Redirect(Prefix + "/") }}
	r := ask(http.MethodGet, "/")
	if w.console.serve(httptest.NewRecorder(), r, route); w.console.streams.read != 0 {
		t.Error("whole pages space the hints")
	}
	r.Header.Set("Till-Region", "home")
	if w.console.serve(httptest.NewRecorder(), r, route); w.console.streams.read == 0 {
		t.Error("how long a region takes does not space the hints")
	}
}

// Of the tokens of devices that a browser sends, some are looked at.
func TestDeviceTokensAreBounded(t *testing.T) {
	t.Parallel()
	r := ask(http.MethodGet, "/")
	r.AddCookie(&http.Cookie{Name: loopbackCookie + devicesSuffix, Value: strings.Repeat("a.", 50) + "a"})
	if got := deviceTokens(&Console{}, r); len(got) != people.MaxDevices {
		t.Errorf("%d tokens are looked at", len(got))
	}
}

// blocking is a page that is under way until it is let go.
func blocking(audience Audience) (route *Route, began chan struct{}, let func()) {
	began, end := make(chan struct{}, 100), make(chan struct{})
	return &Route{For: audience, Handle: func(v *Visit) error {
		began <- struct{}{}
		<-end
		return v.Redirect(Prefix + "/")
	}}, began, func() { close(end) }
}

// gone returns a request of somebody who does not wait.
func goneRequest(method, path string) *http.Request {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ask(method, path).WithContext(ctx)
}

// A person has four pages under way, and an address eight without a session. The
// next ones wait, and others do not wait for them.
func TestPagesUnderWayAreBoundedByPersonAndAddress(t *testing.T) {
	t.Parallel()
	w := newHouse(t)
	for audience, most := range map[Audience]int{SignedIn: maxPersonPages, Everyone: maxStrangerPages} {
		w.be()
		route, began, let := blocking(audience)
		ended := make(chan int)
		for range most {
			go func() {
				a := httptest.NewRecorder()
				w.console.serve(a, ask(http.MethodGet, "/"), route)
				ended <- a.Code
			}()
		}
		for range most {
			<-began
		}
		a := httptest.NewRecorder()
		if w.console.serve(a, goneRequest(http.MethodGet, "/"), route); a.Code != http.StatusTooManyRequests || len(began) > 0 || a.Header().Get("Retry-After") == "" {
			t.Errorf("one more is answered %d", a.Code)
		}
		w.be() // somebody else, at another address
		r := goneRequest(http.MethodGet, "/")
		r.RemoteAddr = "203.0.113.9:1"
		other := *route
		other.Handle = func(v *Visit) error { return v.Redirect(Prefix + "/") }
		a = httptest.NewRecorder()
		if w.console.serve(a, r, &other); a.Code != http.StatusSeeOther {
			t.Errorf("somebody else is answered %d", a.Code)
		}
		let()
		for range most {
			if got := <-ended; got != http.StatusSeeOther {
				t.Errorf("a page is answered %d", got)
			}
		}
	}
}

// Invented sessions are looked up two at a time per address, and who has been
// here does not wait for them.
func TestInventedSessionsWaitBehindEachOther(t *testing.T) {
	t.Parallel()
	w := newHouse(t)
	began, end := make(chan struct{}, 10), make(chan struct{})
	w.console.SessionOf = func(_ *Visit, token string) (*people.Session, error) {
		if token == "known" {
			s := w.visitor
			return &s, nil
		}
		began <- struct{}{}
		<-end
		return nil, &people.Refusal{Code: people.SessionOver}
	}
	visit := func(token string, gone bool) int {
		r := ask(http.MethodGet, Prefix+"/me")
		if gone {
			r = goneRequest(http.MethodGet, Prefix+"/me")
		}
		r.Header.Set("Cookie", "till="+token)
		a := httptest.NewRecorder()
		w.console.serve(a, r, &Route{For: SignedIn, Handle: func(v *Visit) error { v.Written = true; return nil }})
		return a.Code
	}
	visit("known", false)
	ended := make(chan int)
	for range maxLookups {
		go func() { ended <- visit("invented", false) }()
	}
	for range maxLookups {
		<-began
	}
	if got := visit("another", true); got != http.StatusTooManyRequests {
		t.Errorf("one more is answered %d", got)
	}
	if got := visit("known", true); got != http.StatusOK {
		t.Errorf("who has been here is answered %d", got)
	}
	close(end)
	for range maxLookups {
		if got := <-ended; got != http.StatusSeeOther {
			t.Errorf("an invented session is answered %d", got)
		}
	}
}
