package shell

import "net/http"

// policy is the Content-Security-Policy of every page. Scripts and styles are
// files of ours, nothing is framed, and text becomes markup only by the policy
// of live.js.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types till"

// setHeaders sets the headers of every answer. Referrer-Policy is same-origin
// and not no-referrer, with which browsers would send "Origin: null" and our own
// forms would be refused.
func setHeaders(h http.Header, secure bool) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "publickey-credentials-get=(self), camera=(), microphone=(), geolocation=()")
	if secure {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}
