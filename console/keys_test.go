package console

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"till"
	"till/account"
	"till/console/shell"
	"till/store/storetest"
)

var keyText = regexp.MustCompile(`till_test_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}`)

// E9: a key is made and shown once, replaced and revoked; a developer gives no
// right to move money.
func TestKeys(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, e)
			w.be(till.RoleDeveloper, "en")
			path := w.path("/keys")
			form := url.Values{"act": {till.NewID(w.store.Now()).String()}, "name": {"shop-1"}, "scopes": {"payments:read", "payments:write"}}
			a := w.send(path, form)
			text := keyText.FindString(a.Body.String())
			if a.Code != http.StatusOK || text == "" || !strings.Contains(a.Body.String(), "data-once") {
				t.Fatalf("a new key is answered %d: %s", a.Code, a.Body)
			}
			_, id, _, ok := account.ParseKey(text)
			if !ok {
				t.Fatal("what is shown is no key")
			}
			s, err := w.accounts.Authenticate(t.Context(), text)
			if err != nil || s.Key.Name != "shop-1" || len(s.Key.Scopes) != 2 {
				t.Fatalf("the key opens %+v: %v", s, err)
			}
			if again := w.send(path, form); keyText.FindString(again.Body.String()) != text {
				t.Error("a double click makes another key")
			}
			page := w.get(path)
			if strings.Contains(page, text) || strings.Count(page, "shop-1</b>") != 1 || !strings.Contains(page, "till_test_"+id) {
				t.Error("the list shows the secret, or two keys")
			}
			w.console.Now = func() till.Time { return w.store.Now().Add(time.Minute) }
			if again := w.send(path, form); again.Code != http.StatusSeeOther || keyText.MatchString(again.Body.String()) {
				t.Errorf("a minute later the key is shown again: %d", again.Code)
			}
			w.console.Now = w.store.Now
			strong := url.Values{"act": {till.NewID(w.store.Now()).String()}, "name": {"pays"}, "scopes": {"payouts:write"}}
			if a := w.send(path, strong); a.Header().Get("Location") != path+"?refused=not_allowed" {
				t.Errorf("a developer makes a key that pays out: %d", a.Code)
			}
			w.be(till.RoleOwner, "en")
			if a := w.send(path, strong); a.Code != http.StatusOK || keyText.MatchString(a.Body.String()) || !strings.Contains(a.Body.String(), "up to the whole balance") {
				t.Errorf("an owner is not asked once more: %d", a.Code)
			}
			strong.Set("sure", "1")
			powerful := keyText.FindString(w.send(path, strong).Body.String())
			if powerful == "" {
				t.Fatal("an owner cannot make a key that pays out")
			}
			_, powerfulID, _, _ := account.ParseKey(powerful)
			w.be(till.RoleDeveloper, "en")
			rotate := url.Values{"act": {till.NewID(w.store.Now()).String()}, "key": {powerfulID}, "overlap": {"0"}}
			if a := w.send(path+"/rotate", rotate); a.Header().Get("Location") != path+"?refused=not_allowed" {
				t.Errorf("a developer replaces a key that pays out: %d %s", a.Code, a.Body)
			}
			rotate.Set("key", id)
			a = w.send(path+"/rotate", rotate)
			next := keyText.FindString(a.Body.String())
			if next == "" || next == text {
				t.Fatalf("a key is replaced with %d", a.Code)
			}
			if again := w.send(path+"/rotate", rotate); keyText.FindString(again.Body.String()) != next {
				t.Error("a double click replaces twice")
			}
			if _, err := w.accounts.Authenticate(t.Context(), text); err == nil {
				t.Error("the old key works after an overlap of nothing")
			}
			_, nextID, _, _ := account.ParseKey(next)
			if a := w.send(path+"/revoke", url.Values{"key": {nextID}}); a.Header().Get("Location") != path+"?done=key_revoked" {
				t.Errorf("revoking leads to %d %q", a.Code, a.Header().Get("Location"))
			}
			if _, err := w.accounts.Authenticate(t.Context(), next); err == nil {
				t.Error("a revoked key works")
			}
			if a := w.send(path, url.Values{"act": {till.NewID(w.store.Now()).String()}, "name": {hostile}}); a.Code != http.StatusUnprocessableEntity || !strings.Contains(a.Body.String(), "Choose at least one right") {
				t.Errorf("a key without rights is answered %d", a.Code)
			} else {
				checkPage(t, "keys", a.Body.String())
			}
			if a := w.send(path+"/revoke", url.Values{"key": {"nothing"}}); !strings.HasSuffix(a.Header().Get("Location"), "refused=key_unknown") {
				t.Errorf("an unknown key leads to %q", a.Header().Get("Location"))
			}
			w.audited("key.create", "key.rotate", "key.revoke")
			w.checkAudit(t)
		})
	}
}

// checkAudit looks into the audit page after the acts of TestKeys.
func (w *world) checkAudit(t *testing.T) {
	t.Helper()
	w.be(till.RoleOwner, "en")
	for path, want := range map[string]string{
		"/audit": "Key replaced", "/audit?name=awa": "Key made", "/audit?act=key.rev": "Key revoked", "/audit?who=all&range=all": "Merchant made", "/audit?before=3": "row 2",
	} {
		page := w.get(w.path(path))
		checkPage(t, path, page)
		if !strings.Contains(page, want) {
			t.Errorf("%s lacks %q: %s", path, want, page)
		}
	}
	for path, not := range map[string]string{"/audit?act=key.rev": "Key made", "/audit?name=nobody": "Key made", "/audit?range=yesterday": "Key made", "/audit?act=%25": "Key made", "/audit?before=3": "row 3"} {
		if page := w.get(w.path(path)); strings.Contains(page, not) {
			t.Errorf("%s has %q", path, not)
		}
	}
	a := w.do(request(http.MethodGet, w.path("/audit.csv?act=key."), nil))
	if text := a.Body.String(); a.Code != http.StatusOK || !strings.HasPrefix(text, `"sequence","at_utc","at_local","zone","actor","action"`) || strings.Count(text, `,"key.revoke",`) != 1 || strings.Contains(text, `,"client.create",`) {
		t.Errorf("the table is answered %d: %s", a.Code, text)
	}
	w.audited("export.audit")
}

// The house reads its own log.
func TestHouseAudit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	for _, c := range []struct {
		role till.Role
		code int
	}{{till.RoleAdmin, 200}, {till.RoleAuditor, 200}, {till.RoleSupport, 403}, {till.RoleOwner, 403}} {
		w.be(c.role, "fr")
		a := w.do(request(http.MethodGet, shell.Prefix+"/house/audit", nil))
		if a.Code != c.code {
			t.Errorf("%s gets %d", c.role, a.Code)
		}
		checkPage(t, string(c.role), a.Body.String())
	}
}

// Settings are changed by an owner, and read by others.
func TestSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	path := w.path("/settings")
	form := url.Values{"name": {"Chez Awa " + hostile[:20]}, "zone": {"Africa/Nairobi"}, "country": {"CG"}, "language": {"fr"}, "receipt_head": {"12 rue\r\nBrazzaville"}, "receipt_foot": {"Merci"}}
	if a := w.send(path, form); a.Header().Get("Location") != path+"?done=profile" {
		t.Fatalf("settings are answered %d: %s", a.Code, a.Body)
	}
	page := w.get(path)
	checkPage(t, "settings", page)
	for _, want := range []string{"Africa/Nairobi", "12 rue\nBrazzaville", "Chez Awa", "MTN MoMo CG"} {
		if !strings.Contains(page, want) {
			t.Errorf("the settings lack %q", want)
		}
	}
	form.Set("zone", "Mars/Olympus")
	if a := w.send(path, form); a.Code != http.StatusUnprocessableEntity || !strings.Contains(a.Body.String(), "Write a zone such as") || !strings.Contains(a.Body.String(), "Mars/Olympus") {
		t.Errorf("a wrong zone is answered %d", a.Code)
	}
	w.audited("client.profile")
	w.be(till.RoleViewer, "fr")
	if page := w.get(path); strings.Contains(page, "<textarea") || !strings.Contains(page, "Africa/Nairobi") {
		t.Error("a viewer may change the settings, or does not see them")
	}
}

// A whole phone is shown in one view, to those who may, and leaves a row.
func TestAWholePhoneIsShownOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	path := w.path("/payments/" + w.pay("242061230003", 2500, "ORDER-1", "loaves").String())
	if page := w.get(path); !strings.Contains(page, path+"/phone") || strings.Contains(page, "06 123") {
		t.Error("the owner has no button, or sees the number without it")
	}
	a := w.send(path+"/phone", url.Values{})
	if page := a.Body.String(); a.Code != http.StatusOK || !strings.Contains(page, "&#43;242") || strings.Contains(page, `id="subject" data-live`) || strings.Contains(page, "/phone?") {
		t.Errorf("the number is not shown, or goes away: %d", a.Code)
	}
	w.audited("phone.reveal")
	if page := w.get(path); strings.Contains(page, "&#43;242") {
		t.Error("the next view shows the number")
	}
	for _, role := range []till.Role{till.RoleDeveloper, till.RoleViewer, till.RoleCashier, till.RoleAuditor} {
		w.be(role, "en")
		if page := w.get(path); strings.Contains(page, path+"/phone") {
			t.Errorf("%s has the button", role)
		}
		if a := w.send(path+"/phone", url.Values{}); a.Code != http.StatusForbidden {
			t.Errorf("%s is answered %d", role, a.Code)
		}
	}
}
