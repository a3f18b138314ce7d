package shell

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
	if k.Secure {
		return secureCookie
	}
	return loopbackCookie
}

// SetToken gives the browser the token of a session. It ends with the browser;
// the session itself ends by the database's clock.
func (v *Visit) SetToken(token string) { v.SetLastingToken(token, 0) }

// SetLastingToken is setToken for a phone that stays signed in, in seconds.
func (v *Visit) SetLastingToken(token string, seconds int) {
	http.SetCookie(v.W, &http.Cookie{Name: v.Console.cookieName(), Value: token, Path: "/", MaxAge: seconds, Secure: v.Console.Secure, HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

// DropToken removes the token, with everything else that the browser keeps
// of the console.
func (v *Visit) DropToken() {
	http.SetCookie(v.W, &http.Cookie{Name: v.Console.cookieName(), Path: "/", MaxAge: -1, Secure: v.Console.Secure, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	v.W.Header().Set("Clear-Site-Data", `"cache", "storage"`)
}

// Token returns the session's token that the browser sent, "" if none.
func (v *Visit) Token() string {
	c, err := v.R.Cookie(v.Console.cookieName())
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

// KeepDevice remembers that a login has signed in with this browser, beside the
// others that did.
func (v *Visit) KeepDevice(login string) {
	tokens := []string{v.Console.People.NewDevice(login)}
	for _, t := range v.From.Tokens {
		if len(tokens) < people.MaxDevices && !v.Console.People.DeviceIsOf(t, login) {
			tokens = append(tokens, t)
		}
	}
	http.SetCookie(v.W, &http.Cookie{Name: v.Console.cookieName() + devicesSuffix, Value: strings.Join(tokens, "."), Path: "/", MaxAge: int(people.DeviceWindow.Seconds()),
		Secure: v.Console.Secure, HttpOnly: true, SameSite: http.SameSiteLaxMode})
}
