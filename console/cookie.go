package console

import (
	"net/http"
	"strings"

	"till/people"
)

// The session's cookie. The name with __Host- is only taken by browsers from
// HTTPS, for this host and every path; on plain HTTP, which is loopback, there
// is no such guard.
const (
	secureCookie   = "__Host-till"
	loopbackCookie = "till"

	// Of the tokens of devices: they open nothing; see people.NewDevice.
	devicesSuffix = "-devices"
)

func (k *Console) cookieName() string {
	if k.secure {
		return secureCookie
	}
	return loopbackCookie
}

// setToken gives the browser the token of a session. It ends with the browser;
// the session itself ends by the database's clock.
func (v *visit) setToken(token string) { v.setLastingToken(token, 0) }

// setLastingToken is setToken for a phone that stays signed in, in seconds.
func (v *visit) setLastingToken(token string, seconds int) {
	http.SetCookie(v.w, &http.Cookie{Name: v.k.cookieName(), Value: token, Path: "/", MaxAge: seconds, Secure: v.k.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

// dropToken takes the token away, with everything else that the browser keeps
// of the console.
func (v *visit) dropToken() {
	http.SetCookie(v.w, &http.Cookie{Name: v.k.cookieName(), Path: "/", MaxAge: -1, Secure: v.k.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	v.w.Header().Set("Clear-Site-Data", `"cache", "storage"`)
}

// token returns the session's token that the browser sent, "" if none.
func (v *visit) token() string {
	c, err := v.r.Cookie(v.k.cookieName())
	if err != nil {
		return ""
	}
	return c.Value
}

// deviceTokens returns the device tokens that a browser sent.
func deviceTokens(k *Console, r *http.Request) []string {
	c, err := r.Cookie(k.cookieName() + devicesSuffix)
	if err != nil || c.Value == "" {
		return nil
	}
	tokens := strings.SplitN(c.Value, ".", people.MaxDevices+1)
	return tokens[:min(len(tokens), people.MaxDevices)]
}

// keepDevice remembers that a login has signed in with this browser, beside the
// others that did.
func (v *visit) keepDevice(login string) {
	tokens := []string{v.k.People.NewDevice(login)}
	for _, t := range v.from.Tokens {
		if len(tokens) < people.MaxDevices && !v.k.People.DeviceIsOf(t, login) {
			tokens = append(tokens, t)
		}
	}
	http.SetCookie(v.w, &http.Cookie{Name: v.k.cookieName() + devicesSuffix, Value: strings.Join(tokens, "."), Path: "/", MaxAge: int(people.DeviceWindow.Seconds()),
		Secure: v.k.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode})
}
