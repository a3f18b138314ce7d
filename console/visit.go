package console

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

// visit is one request, from its cookie to its page.
type visit struct {
	k     *Console
	w     http.ResponseWriter
	r     *http.Request
	route *Route
	id    string // of the request, for people who ask for help
	now   till.Time
	from  people.Visit

	session *people.Session // nil: nobody is signed in
	client  *till.Client    // nil: the page is of no merchant
	profile *till.Profile   // of the client
	grant   people.Grant    // how far the person has the route's permission

	words *words.Catalogue
	clock look.Clock

	leaves  func() // gives the visit's place among pages back; see enterPages
	plain   bool   // the page is not compressed: it shows a secret
	status  int    // of the page; 0 means 200
	delayed bool   // the answer may be delayed: somebody tries things out
	written bool
}

// serve answers one request.
func (k *Console) serve(w http.ResponseWriter, r *http.Request, route *Route) {
	v := &visit{k: k, w: w, r: r, route: route, now: k.now(), leaves: func() {}}
	v.id = till.NewID(v.now).String()
	v.from = people.Visit{Address: door.Peer(r, k.TrustedProxies), Device: device(r.UserAgent()), Tokens: deviceTokens(k, r), Quiet: asksByItself(r)}
	v.words = words.For(v.language())
	v.clock = look.NewClock(v.words.Lang(), "UTC")
	w.Header().Set("X-Request-Id", v.id)
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler { // a part must not be taken for the whole
				panic(p)
			}
			k.Log.Error("page failed", "request_id", v.id, "path", route.Path, "panic", p, "stack", string(debug.Stack()))
			if !v.written {
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
func (v *visit) run() error {
	v.r = v.r.WithContext(store.WithCause(v.r.Context(), "console "+v.id))
	if v.route.For != Everyone {
		if err := v.signIn(); err != nil {
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
	switch v.route.For {
	case Staff:
		err = v.enterClient()
	case House:
		if !v.session.MayHouse(v.route.May) {
			err = &people.Refusal{Code: people.NotAllowed, Need: v.route.May}
		}
	}
	if err != nil {
		return err
	}
	if err := v.checkProof(); err != nil {
		return err
	}
	return v.route.handle(v)
}

// signIn finds out who visits.
func (v *visit) signIn() (err error) {
	token := v.token()
	if token == "" {
		return &people.Refusal{Code: people.SessionOver}
	}
	if v.session, err = v.findSession(token); err != nil {
		return err
	}
	person := &v.session.Person
	v.words = words.For(person.Language)
	v.clock = look.NewClock(v.words.Lang(), person.Zone)
	if v.session.FactorMissing && !strings.HasPrefix(v.route.Path, "/me") {
		return &people.Refusal{Code: people.FactorNeeded}
	}
	return nil
}

// enterClient finds the merchant of the path. One that the person has nothing
// to do with is not there, whether it exists or not.
func (v *visit) enterClient() error {
	id, err := till.ParseID(v.r.PathValue("client"))
	if err != nil {
		return errNoPage
	}
	err = v.view(func(ctx context.Context, tx *store.Tx) (err error) {
		if v.client, err = tx.Client(ctx, id); err != nil {
			return err
		}
		v.profile, err = tx.Profile(ctx, id)
		return err
	})
	if till.ErrorCode(err) == till.CodeClientNotFound || err == nil && v.session.May(v.client, people.Member) == people.None {
		v.client = nil
		return errNoPage
	}
	if err != nil {
		return err
	}
	if zone := v.session.Person.Zone; zone == "" {
		v.clock = look.NewClock(v.words.Lang(), v.profile.Zone)
	}
	if v.route.TestOnly && v.client.Mode != till.Test {
		return errNoPage
	}
	if v.grant = v.session.May(v.client, v.route.May); v.grant == people.None {
		return &people.Refusal{Code: people.NotAllowed, Need: v.route.May}
	}
	if v.r.Method == http.MethodPost && !v.route.WhileSuspended {
		if err := v.checkActive(); err != nil {
			return err
		}
	}
	if v.session.Looks(v.client.ID) {
		return v.k.noteLook(v)
	}
	return nil
}

// checkActive refuses an act of a suspended merchant. What asks for money is
// decided once more in its commit.
func (v *visit) checkActive() error {
	if v.client != nil && v.client.Suspended {
		return errSuspended
	}
	return nil
}

// may returns how far the person has a permission with the merchant.
func (v *visit) may(p people.Permission) bool { return v.session.May(v.client, p) != people.None }

// earliest returns the first moment whose payments the person may see; zero:
// all of them.
func (v *visit) earliest() till.Time {
	if v.grant == people.Recent {
		return v.now.Add(-people.RecentWindow)
	}
	return 0
}

// checkProof takes the proof of an act that needs a fresh one from the act's own
// form, and refuses the act without it.
func (v *visit) checkProof() error {
	if !v.route.Fresh || v.r.Method != http.MethodPost || v.session.Fresh() {
		return nil
	}
	err := v.prove()
	if r := people.RefusalOf(err); r != nil && r.Code != people.SessionOver && v.r.PostFormValue("back") != "" {
		return v.stop(v.back(ownPath(v.r.PostFormValue("back")), "", err))
	}
	return err
}

// errStop ends a visit that is answered already.
var errStop = errors.New("the visit is answered")

func (v *visit) stop(err error) error {
	if err != nil {
		return err
	}
	return errStop
}

// view reads from one snapshot.
func (v *visit) view(f func(ctx context.Context, tx *store.Tx) error) error {
	ctx := v.r.Context()
	return v.k.Store.View(ctx, func(tx *store.Tx) error { return f(ctx, tx) })
}

// ref names something of the merchant by the id in the path.
func (v *visit) ref(name string) (store.Ref, error) {
	id, err := till.ParseID(v.r.PathValue(name))
	if err != nil {
		return store.Ref{}, errNoPage
	}
	return store.Ref{Client: v.client.ID, ID: id}, nil
}

// clientPath returns an address below the merchant's.
func (v *visit) clientPath(rest string) string { return pathOf(v.client.ID, rest) }

// pathOf returns an address below a merchant's.
func pathOf(client till.ID, rest string) string { return Prefix + "/c/" + client.String() + rest }

// redirect sends the browser to one of our own paths, by GET.
func (v *visit) redirect(to string) error {
	v.wait()
	v.written = true
	http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	return nil
}

// ownPath returns a path of the console that was handed in, or the start page
// if it is anything else: nobody is led elsewhere by a link of ours.
func ownPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || u.Opaque != "" || strings.ContainsAny(path, "\\\r\n\t") ||
		!strings.HasPrefix(path, Prefix+"/") || strings.HasPrefix(path, "//") || strings.Contains(u.Path, "/..") {
		return Prefix + "/"
	}
	return path
}

// language returns what the browser prefers, or what the address asks for where
// nobody is signed in.
func (v *visit) language() string {
	if l := v.r.URL.Query().Get("lang"); slices.Contains(words.Languages, l) {
		return l
	}
	for part := range strings.SplitSeq(v.r.Header.Get("Accept-Language"), ",") {
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

// noteLook writes down that a person of the house looks into a merchant.
func (k *Console) noteLook(v *visit) error {
	return k.People.NoteLook(v.r.Context(), v.session, v.client)
}

// requester is the person as the functions of webhooks know who asks. Whoever
// may see webhooks may see every kind of event.
func (v *visit) requester() webhook.Requester {
	return webhook.Requester{Actor: v.session.Actor(), Scopes: till.EventScopes}
}
