package console

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"till"
	"till/console/shell"
	"till/people"
)

// browser keeps the cookie of one person, and that of the device.
type browser struct {
	*world
	cookie, devices *http.Cookie
}

// newBrowser is a world whose sessions are real.
func newBrowser(t *testing.T) *browser {
	w := newWorld(t, sqlite())
	w.console.SessionOf = func(v *shell.Visit, token string) (*people.Session, error) {
		return w.console.People.Session(v.R.Context(), v.From, token)
	}
	return &browser{world: w}
}

// send sends a request with the cookie and keeps the one that comes back.
func (b *browser) send(method, path string, form url.Values) *httptest.ResponseRecorder {
	b.t.Helper()
	q := request(method, path, form)
	q.Header.Del("Cookie")
	if b.cookie != nil {
		q.AddCookie(b.cookie)
	}
	if b.devices != nil {
		q.AddCookie(b.devices)
	}
	a := b.do(q)
	for _, c := range a.Result().Cookies() {
		if strings.HasSuffix(c.Name, "-devices") {
			b.devices = c
		} else if b.cookie = c; c.MaxAge < 0 {
			b.cookie = nil
		}
		if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" {
			b.t.Errorf("the cookie is %v", c)
		}
	}
	return a
}

func (b *browser) page(path string) string {
	b.t.Helper()
	a := b.send(http.MethodGet, path, nil)
	if a.Code != http.StatusOK {
		b.t.Fatalf("GET %s: %d to %q", path, a.Code, a.Header().Get("Location"))
	}
	return a.Body.String()
}

// post sends a form and wants to be led somewhere.
func (b *browser) post(path string, form url.Values, to string) {
	b.t.Helper()
	a := b.send(http.MethodPost, path, form)
	if got := a.Header().Get("Location"); a.Code != http.StatusSeeOther || got != to {
		b.t.Fatalf("POST %s: %d to %q, want to %q\n%s", path, a.Code, got, to, a.Body.String())
	}
}

// invite returns the path of a link.
func (b *browser) invite(client till.ID, role till.Role, login string) string {
	b.t.Helper()
	_, token, err := b.console.People.InviteAs(context.Background(), "cli:root", client, role, "Awa", login)
	if err != nil {
		b.t.Fatal(err)
	}
	return shell.Prefix + "/join/" + token
}

var hidden = regexp.MustCompile(`name="step" value="([^"]*)"`)

func stepOf(t testing.TB, page string) string {
	t.Helper()
	m := hidden.FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no step in\n%s", page)
	}
	return html.UnescapeString(m[1])
}

// appCode is what an authenticator app shows, by its own reckoning.
func appCode(t testing.TB, page string, now till.Time) string {
	t.Helper()
	m := regexp.MustCompile(`class="mono">([A-Z2-7 ]{30,})<`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no secret in\n%s", page)
	}
	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ReplaceAll(m[1], " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	h := hmac.New(sha1.New, secret)
	binary.Write(h, binary.BigEndian, now.Std().Unix()/30)
	sum := h.Sum(nil)
	at := sum[19] & 15
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[at:])&0x7fffffff%1_000_000)
}

const password = "onze lapins dorment"

// The first person, from the command's link to the pages: without script.
func TestFromLinkToPages(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	if page := b.page(shell.Prefix + "/enter"); !strings.Contains(page, "till person invite") || strings.Contains(page, `name="password"`) {
		t.Error("nobody can sign in, and the page does not say how somebody could")
	}
	link := b.invite(b.client.ID, till.RoleOwner, "")
	for range 3 { // a chat opens it first
		if page := b.page(link + "?lang=fr"); !strings.Contains(page, "Boulangerie Mapassa") || !strings.Contains(page, "propriétaire") {
			t.Fatalf("the link does not say to what:\n%s", page)
		}
	}
	a := b.send(http.MethodPost, link, url.Values{"name": {"Awa N."}, "login": {"awa"}, "password": {password}})
	if a.Code != http.StatusOK || !strings.Contains(a.Body.String(), "country code") || !strings.Contains(a.Body.String(), `value="Awa N."`) || b.cookie != nil {
		t.Fatalf("a wrong login: %d\n%s", a.Code, a.Body.String())
	}
	b.post(link, url.Values{"name": {"Awa N."}, "login": {"awa@shop.example"}, "password": {password}}, "/console/me")

	// An owner needs a second factor before anything else.
	if a := b.send(http.MethodGet, b.path("/payments"), nil); a.Code != http.StatusSeeOther || a.Header().Get("Location") != "/console/me" {
		t.Errorf("payments without a second factor: %d", a.Code)
	}
	if page := b.page(shell.Prefix + "/me"); !strings.Contains(page, "needs a second factor") {
		t.Error("the profile does not say what is missing")
	}
	setup := b.page(shell.Prefix + "/me/totp")
	a = b.send(http.MethodPost, shell.Prefix+"/me/totp", url.Values{"step": {stepOf(t, setup)}, "code": {"12345"}})
	if a.Code != http.StatusOK || appCode(t, a.Body.String(), 0) != appCode(t, setup, 0) {
		t.Errorf("a wrong code: %d, or another secret", a.Code)
	}
	before := b.cookie.Value
	a = b.send(http.MethodPost, shell.Prefix+"/me/totp", url.Values{"step": {stepOf(t, setup)}, "code": {appCode(t, setup, b.store.Now())}})
	if a.Code != http.StatusOK || strings.Count(a.Body.String(), "<li class=\"mono\">") != people.RecoveryCodes || b.cookie.Value == before {
		t.Fatalf("%d\n%s", a.Code, a.Body.String())
	}
	if a.Header().Get("Content-Encoding") != "" || a.Header().Get("Cache-Control") != "no-store" {
		t.Error("what is shown once is compressed or kept")
	}
	recovery := regexp.MustCompile(`[a-z2-7]{4}(-[a-z2-7]{4}){3}`).FindString(a.Body.String())
	b.page(b.path("/payments"))

	// Out, and in again with a recovery code, back to where one was going.
	b.post(shell.Prefix+"/leave", url.Values{}, "/console/enter")
	if b.cookie != nil {
		t.Error("the cookie is still there")
	}
	a = b.send(http.MethodGet, b.path("/payments"), nil)
	to := a.Header().Get("Location")
	if a.Code != http.StatusSeeOther || to != "/console/enter?to="+url.QueryEscape(b.path("/payments")) {
		t.Fatalf("signed out: %d to %q", a.Code, to)
	}
	if page := b.page(to); !strings.Contains(page, `autocomplete="username webauthn"`) {
		t.Error("the login's field offers no passkey")
	}
	a = b.send(http.MethodPost, shell.Prefix+"/enter", url.Values{"login": {"awa@shop.example"}, "password": {password}, "to": {b.path("/payments")}})
	if a.Code != http.StatusOK || b.cookie != nil {
		t.Fatalf("the password alone: %d", a.Code)
	}
	b.post(shell.Prefix+"/enter/code", url.Values{"step": {stepOf(t, a.Body.String())}, "code": {recovery}, "to": {b.path("/payments")}}, b.path("/payments"))
	if page := b.page(link); !strings.Contains(page, "was used already") {
		t.Error("the link can be used again")
	}
}

// Nobody is led elsewhere, no cookie of a stranger becomes a session, and a
// form of another site does nothing.
func TestSignInAttacks(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	b.post(b.invite(b.client.ID, till.RoleCashier, "brice@shop.example"), url.Values{"name": {"Brice"}, "password": {password}}, "/console/")
	own := b.cookie
	planted := &http.Cookie{Name: own.Name, Value: strings.Repeat("A", len(own.Value))}
	b.cookie = planted
	for _, evil := range []string{"https://evil.example/", "//evil.example", "/console/../v1", "javascript:alert(1)", "/console/\\evil.example", "/v1/payments"} {
		b.cookie = planted
		b.post(shell.Prefix+"/enter", url.Values{"login": {"brice@shop.example"}, "password": {password}, "to": {evil}}, "/console/")
		if b.cookie.Value == planted.Value {
			t.Error("the planted cookie is a session now")
		}
	}
	q := request(http.MethodPost, shell.Prefix+"/enter", url.Values{"login": {"brice@shop.example"}, "password": {password}})
	q.Header.Set("Origin", "https://evil.example")
	q.Header.Set("Sec-Fetch-Site", "cross-site")
	if a := b.do(q); a.Code != http.StatusForbidden || len(a.Result().Cookies()) > 0 {
		t.Errorf("a form of another site: %d", a.Code)
	}

	// Six wrong passwords wait; unknown people get the same words. A slow machine
	// may need more: the first pause is a second.
	b.cookie = nil
	answers := map[string]string{}
	for _, login := range []string{"brice@shop.example", "nobody@shop.example"} {
		for n := 0; n < 6 || n < 20 && !strings.Contains(answers[login], "Wait"); n++ {
			a := b.send(http.MethodPost, shell.Prefix+"/enter", url.Values{"login": {login}, "password": {"wrong wrong wrong"}})
			m := regexp.MustCompile(`role="alert">.*?</svg>([^<]*)<`).FindStringSubmatch(a.Body.String())
			if m == nil || (a.Code == http.StatusTooManyRequests) != strings.Contains(m[1], "Wait") || (a.Header().Get("Retry-After") != "") != strings.Contains(m[1], "Wait") {
				t.Fatalf("%d\n%s", a.Code, a.Body.String())
			}
			answers[login] = regexp.MustCompile(`Wait [0-9]+ seconds?`).ReplaceAllString(m[1], "Wait some seconds")
		}
	}
	if answers["brice@shop.example"] != answers["nobody@shop.example"] || !strings.Contains(answers["brice@shop.example"], "Wait some seconds") {
		t.Errorf("got %q", answers)
	}
}

// The page of people: invite, change, end, and who may not.
func TestPeoplePage(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	local := people.Visit{Address: netip.MustParseAddr("127.0.0.1")}
	token, err := b.console.People.OpenDemo(context.Background(), b.client.ID)
	if err != nil {
		t.Fatal(err)
	}
	if page := b.page(shell.Prefix + "/enter"); strings.Count(page, `action="/console/enter/as"`) != 7 {
		t.Error("the demo's people have no buttons")
	}
	if a := b.send(http.MethodGet, shell.Prefix+"/enter/"+token, nil); a.Code != http.StatusSeeOther || b.cookie == nil {
		t.Fatalf("the demo's link: %d", a.Code)
	}
	if a := b.do(request(http.MethodGet, shell.Prefix+"/enter/"+token[1:]+"x", nil)); a.Code != http.StatusNotFound {
		t.Errorf("another token: %d", a.Code)
	}
	path := b.path("/people")
	if page := b.page(path); !strings.Contains(page, "Brice") || !strings.Contains(page, "Chantal") || strings.Contains(page, "Esther") {
		t.Error("the page lists others")
	}
	a := b.send(http.MethodPost, path+"/invite", url.Values{"name": {hostile}, "role": {"viewer"}})
	if a.Code != http.StatusSeeOther || !strings.Contains(a.Header().Get("Location"), "refused=name_invalid") {
		t.Errorf("a hostile name: %d %s", a.Code, a.Header().Get("Location"))
	}
	a = b.send(http.MethodPost, path+"/invite", url.Values{"name": {`Jean <b>"K"`}, "role": {"viewer"}})
	link := regexp.MustCompile(`http://localhost:8080(/console/join/[A-Za-z0-9_-]{43})`).FindStringSubmatch(a.Body.String())
	if a.Code != http.StatusOK || link == nil || !strings.Contains(a.Body.String(), `<svg class="qr"`) || strings.Contains(a.Body.String(), "Jean <b>") {
		t.Fatalf("%d\n%s", a.Code, a.Body.String())
	}
	if page := b.page(path); strings.Contains(page, link[1]) || !strings.Contains(page, "Open invitations") {
		t.Error("the link is shown again, or not listed")
	}
	jean := &browser{world: b.world}
	jean.post(link[1], url.Values{"name": {"Jean"}, "login": {"+242 06 123 45 67"}, "password": {password}}, "/console/")
	if a := jean.send(http.MethodGet, path, nil); a.Code != http.StatusForbidden {
		t.Errorf("a viewer at the people's page: %d", a.Code)
	}
	s, err := b.console.People.Session(context.Background(), local, jean.cookie.Value)
	if err != nil {
		t.Fatal(err)
	}
	id := s.Person.ID.String()
	b.post(path+"/role", url.Values{"person": {id}, "role": {"cashier"}}, path+"?done=role")
	if a := jean.send(http.MethodGet, b.path("/payments"), nil); a.Code != http.StatusSeeOther {
		t.Errorf("the old session goes on: %d", a.Code)
	}
	b.post(path+"/end", url.Values{"person": {id}}, path+"?done=sessions")
	b.post(path+"/factor", url.Values{"factor": {"1"}}, path+"?done=factor")
	b.post(path+"/role", url.Values{"person": {id}, "role": {"admin"}}, path+"?refused=value_invalid")
	b.post(path+"/role", url.Values{"person": {"x"}, "role": {"viewer"}}, path+"?refused=person_unknown")
	if page := b.page(path + "?refused=person_unknown"); !strings.Contains(page, "no such person") {
		t.Error("the refusal has no words")
	}
	if a := b.send(http.MethodPost, path+"/reset", url.Values{"person": {id}}); a.Code != http.StatusOK || !strings.Contains(a.Body.String(), "/console/join/") {
		t.Errorf("reset: %d", a.Code)
	}
	b.post(path+"/role", url.Values{"person": {id}}, path+"?refused=value_invalid") // to have none is another act
	b.post(path+"/remove", url.Values{"person": {id}}, path+"?done=removed")
	if page := b.page(path); strings.Contains(page, "+242061234567") {
		t.Error("Jean is still there")
	}
	if page := b.page(shell.Prefix + "/roles"); strings.Count(page, "needs fresh proof") < 10 || !strings.Contains(page, "last 48 hours") {
		t.Error("the page of roles lacks something")
	}
}

// Fresh proof is taken in the form of the act, and gives a new token.
func TestProofInTheForm(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	b.post(b.invite(b.client.ID, till.RoleCashier, "brice@shop.example"), url.Values{"name": {"Brice"}, "password": {password}}, "/console/")
	old := b.console.SessionOf
	b.console.SessionOf = func(v *shell.Visit, token string) (*people.Session, error) {
		s, err := old(v, token)
		if err == nil {
			s.ProvedAt = s.ProvedAt.Add(-people.ProofWindow) // ten minutes later
		}
		return s, err
	}
	page := b.page(shell.Prefix + "/me")
	if !strings.Contains(page, `name="proof_password"`) {
		t.Fatal("the page does not ask for proof")
	}
	b.post(shell.Prefix+"/me/password", url.Values{"password": {"seize tortues chantent"}}, "/console/me?refused=proof_needed")
	b.post(shell.Prefix+"/me/prove", url.Values{"proof_password": {"wrong"}, "back": {"/console/me"}}, "/console/me?refused=wrong_password")
	b.post(shell.Prefix+"/me/prove", url.Values{"back": {"/console/me"}}, "/console/me?refused=proof_needed")
	before := b.cookie.Value
	b.post(shell.Prefix+"/me/prove", url.Values{"proof_password": {password}, "back": {"https://evil.example"}}, "/console/?done=proved")
	if b.cookie.Value == before {
		t.Error("the proof kept the token")
	}
	b.console.SessionOf = old
	before = b.cookie.Value
	b.post(shell.Prefix+"/me/password", url.Values{"password": {"seize tortues chantent"}}, "/console/me?done=password")
	if b.cookie.Value == before {
		t.Error("the new password kept the token")
	}
	b.post(shell.Prefix+"/me", url.Values{"name": {"Brice K."}, "language": {"fr"}, "theme": {"dark"}, "zone": {"Africa/Douala"}}, "/console/me?done=profile")
	if page := b.page(shell.Prefix + "/me"); !strings.Contains(page, `data-theme="dark"`) || !strings.Contains(page, "Brice K.") || !strings.Contains(page, `data-keys="off"`) {
		t.Error("the profile is not kept")
	}
	b.post(shell.Prefix+"/me/sessions", url.Values{}, "/console/me?done=sessions")
}
