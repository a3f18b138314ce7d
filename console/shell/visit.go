package shell

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"till"
	"till/console/look"
	"till/console/words"
	"till/internal/door"
	"till/people"
	"till/store"
	"till/webhook"
)

// Visit is one request, from its cookie to its page.
type Visit struct {
	Console *Console
	W       http.ResponseWriter
	R       *http.Request
	Route   *Route
	ID      string // of the request, for people who ask for help
	Now     till.Time
	From    people.Visit

	Session *people.Session // nil: nobody is signed in
	Client  *till.Client    // nil: the page is of no merchant
	Profile *till.Profile   // of the client
	Grant   people.Grant    // how far the person has the route's permission

	Words *words.Catalogue
	Clock look.Clock

	leaves  func() // gives the visit's place among pages back; see enterPages
	Plain   bool   // the page is not compressed: it shows a secret
	status  int    // of the page; 0 means 200
	delayed bool   // the answer may be delayed: somebody tries things out
	Written bool
}

// serve answers one request.
func (k *Console) serve(w http.ResponseWriter, r *http.Request, route *Route) {
	v := &Visit{Console: k, W: w, R: r, Route: route, Now: k.Now(), leaves: func() {}}
	v.ID = till.NewID(v.Now).String()
	v.From = people.Visit{Address: door.Peer(r, k.TrustedProxies), Device: device(r.UserAgent()), Tokens: deviceTokens(k, r), Quiet: asksByItself(r)}
	v.Words = words.For(v.language())
	v.Clock = look.NewClock(v.Words.Lang(), "UTC")
	w.Header().Set("X-Request-Id", v.ID)
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler { // a part must not be taken for the whole
				panic(p)
			}
			k.Log.Error("page failed", "request_id", v.ID, "path", route.Path, "panic", p, "stack", string(debug.Stack()))
			if !v.Written {
				v.fail(errOurs)
			}
		}
	}()
	began := time.Now()
	if err := v.run(); err != nil && !errors.Is(err, errStop) {
		v.fail(err)
	}
	if r.Header.Get("Till-Region") != "" {
		k.streams.readIn(time.Since(began))
	}
}

// asksByItself reports whether a script asks without anybody at the screen: for a
// part of an open page, or for hints.
func asksByItself(r *http.Request) bool {
	return r.Header.Get("Till-Region") != "" || r.Header.Get("Accept") == "text/event-stream"
}

// run takes the visit through the gates in front of its handler.
func (v *Visit) run() error {
	v.R = v.R.WithContext(store.WithCause(v.R.Context(), "console "+v.ID))
	if v.Route.For != Everyone {
		if err := v.SignIn(); err != nil {
			return err
		}
	}
	if err := v.readForm(); err != nil {
		return err
	}
	leave, err := v.enterPages()
	if err != nil {
		return err
	}
	defer leave()
	v.leaves = leave
	switch v.Route.For {
	case Staff:
		err = v.EnterClient()
	case House:
		if !v.Session.MayHouse(v.Route.May) {
			err = &people.Refusal{Code: people.NotAllowed, Need: v.Route.May}
		}
	}
	if err != nil {
		return err
	}
	if err := v.checkProof(); err != nil {
		return err
	}
	return v.Route.Handle(v)
}

// SignIn finds out who visits.
func (v *Visit) SignIn() (err error) {
	token := v.Token()
	if token == "" {
		return &people.Refusal{Code: people.SessionOver}
	}
	if v.Session, err = v.findSession(token); err != nil {
		return err
	}
	person := &v.Session.Person
	v.Words = words.For(person.Language)
	v.Clock = look.NewClock(v.Words.Lang(), person.Zone)
	if v.Session.FactorMissing && !strings.HasPrefix(v.Route.Path, "/me") {
		return &people.Refusal{Code: people.FactorNeeded}
	}
	return nil
}

// EnterClient finds the merchant of the path. One that the person has nothing
// to do with is not there, whether it exists or not.
func (v *Visit) EnterClient() error {
	id, err := till.ParseID(v.R.PathValue("client"))
	if err != nil {
		return ErrNoPage
	}
	err = v.View(func(ctx context.Context, tx *store.Tx) (err error) {
		if v.Client, err = tx.Client(ctx, id); err != nil {
			return err
		}
		v.Profile, err = tx.Profile(ctx, id)
		return err
	})
	if till.ErrorCode(err) == till.CodeClientNotFound || err == nil && v.Session.May(v.Client, people.Member) == people.None {
		v.Client = nil
		return ErrNoPage
	}
	if err != nil {
		return err
	}
	if zone := v.Session.Person.Zone; zone == "" {
		v.Clock = look.NewClock(v.Words.Lang(), v.Profile.Zone)
	}
	if v.Route.TestOnly && v.Client.Mode != till.Test {
		return ErrNoPage
	}
	if v.Grant = v.Session.May(v.Client, v.Route.May); v.Grant == people.None {
		return &people.Refusal{Code: people.NotAllowed, Need: v.Route.May}
	}
	if v.R.Method == http.MethodPost && !v.Route.WhileSuspended {
		if err := v.CheckActive(); err != nil {
			return err
		}
	}
	if v.Session.Looks(v.Client.ID) {
		return v.Console.noteLook(v)
	}
	return nil
}

// CheckActive refuses an act of a suspended merchant. What asks for money is
// decided once more in its commit.
func (v *Visit) CheckActive() error {
	if v.Client != nil && v.Client.Suspended {
		return errSuspended
	}
	return nil
}

// May returns how far the person has a permission with the merchant.
func (v *Visit) May(p people.Permission) bool { return v.Session.May(v.Client, p) != people.None }

// Earliest returns the first moment whose payments the person may see; zero:
// all of them.
func (v *Visit) Earliest() till.Time {
	if v.Grant == people.Recent {
		return v.Now.Add(-people.RecentWindow)
	}
	return 0
}

// checkProof takes the proof of an act that needs a fresh one from the act's own
// form, and refuses the act without it.
func (v *Visit) checkProof() error {
	if !v.Route.Fresh || v.R.Method != http.MethodPost || v.Session.Fresh() {
		return nil
	}
	err := v.prove()
	if r := people.RefusalOf(err); r != nil && r.Code != people.SessionOver && v.R.PostFormValue("back") != "" {
		return v.Stop(v.Back(OwnPath(v.R.PostFormValue("back")), "", err))
	}
	return err
}

// errStop ends a visit that is answered already.
var errStop = errors.New("the visit is answered")

func (v *Visit) Stop(err error) error {
	if err != nil {
		return err
	}
	return errStop
}

// View reads from one snapshot.
func (v *Visit) View(f func(ctx context.Context, tx *store.Tx) error) error {
	ctx := v.R.Context()
	return v.Console.Store.View(ctx, func(tx *store.Tx) error { return f(ctx, tx) })
}

// Ref names something of the merchant by the id in the path.
func (v *Visit) Ref(name string) (store.Ref, error) {
	id, err := till.ParseID(v.R.PathValue(name))
	if err != nil {
		return store.Ref{}, ErrNoPage
	}
	return store.Ref{Client: v.Client.ID, ID: id}, nil
}

// ClientPath returns an address below the merchant's.
func (v *Visit) ClientPath(rest string) string { return PathOf(v.Client.ID, rest) }

// PathOf returns an address below a merchant's.
func PathOf(client till.ID, rest string) string { return Prefix + "/c/" + client.String() + rest }

// Redirect sends the browser to one of our own paths, by GET.
func (v *Visit) Redirect(to string) error {
	v.wait()
	v.Written = true
	http.Redirect(v.W, v.R, to, http.StatusSeeOther)
	return nil
}

// OwnPath returns a path of the console that was handed in, or the start page
// if it is anything else: nobody is led elsewhere by a link of ours.
func OwnPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || u.Opaque != "" || strings.ContainsAny(path, "\\\r\n\t") ||
		!strings.HasPrefix(path, Prefix+"/") || strings.HasPrefix(path, "//") || strings.Contains(u.Path, "/..") {
		return Prefix + "/"
	}
	return path
}

// language returns what the browser prefers, or what the address asks for where
// nobody is signed in.
func (v *Visit) language() string {
	if l := v.R.URL.Query().Get("lang"); slices.Contains(words.Languages, l) {
		return l
	}
	for part := range strings.SplitSeq(v.R.Header.Get("Accept-Language"), ",") {
		tag, _, _ := strings.Cut(strings.TrimSpace(part), ";")
		base, _, _ := strings.Cut(strings.ToLower(tag), "-")
		if slices.Contains(words.Languages, base) {
			return base
		}
	}
	return words.Languages[0]
}

// device returns what a person recognises a browser by: "Firefox, Android".
func device(agent string) string {
	find := func(names ...string) string {
		for _, n := range names {
			key, shown, _ := strings.Cut(n, "=")
			if strings.Contains(agent, key) {
				if shown == "" {
					return key
				}
				return shown
			}
		}
		return ""
	}
	browser := find("Firefox", "Edg/=Edge", "OPR/=Opera", "SamsungBrowser=Samsung Internet", "Chrome", "Safari", "curl")
	system := find("Android", "iPhone", "iPad", "Windows", "Mac OS=macOS", "Linux")
	return strings.Trim(browser+", "+system, ", ")
}

// gone reports whether an error says that the browser has left.
func gone(err error) bool { return errors.Is(err, context.Canceled) }

// noteLook writes down that a person of the house viewed a merchant.
func (k *Console) noteLook(v *Visit) error {
	return k.People.NoteLook(v.R.Context(), v.Session, v.Client)
}

// Requester is the person as the functions of webhooks know who asks. Who
// may see webhooks may see every kind of event.
func (v *Visit) Requester() webhook.Requester {
	return webhook.Requester{Actor: v.Session.Actor(), Scopes: till.EventScopes}
}
